"""The environment of chat templates: as in transformers, with bounds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Any

from kernwright.llm._fields import import_extra

_MOST_STEPS = 2_000_000  # of one text: the rounds of its loops, and its calls
_CALL = 4  # steps of a call
_MOST_REPEATED = 10_000_000  # elements of a repeated text or list
_MOST_BITS = 40_000  # of a power

_steps: ContextVar[int] = ContextVar("steps", default=0)
_tracked: ContextVar[tuple[list[str], list[tuple[int, int]]] | None] = ContextVar(
    "tracked", default=None
)


class TooMuchWork(Exception):
    """A template has run for too long."""


def _count(steps: int) -> None:
    done = _steps.get() + steps
    if done > _MOST_STEPS:
        raise TooMuchWork(f"its loops and calls take more than {_MOST_STEPS} steps")
    _steps.set(done)


def _counted(items: Iterable[Any]) -> Iterator[Any]:
    for each in items:
        _count(1)
        yield each


def make_environment() -> Any:
    """An environment for templates: immutable, sandboxed, with the extensions of transformers."""
    jinja2 = import_extra("jinja2", "llm.ChatTemplate")
    for part in ("ext", "sandbox"):
        import_extra(f"jinja2.{part}", "llm.ChatTemplate")

    base: Any = jinja2.sandbox.ImmutableSandboxedEnvironment

    class Environment(base):  # type: ignore[misc]
        intercepted_binops = frozenset(["*", "**"])

        def _parse(self, *arguments: Any) -> Any:
            tree = super()._parse(*arguments)
            for loop in tree.find_all(jinja2.nodes.For):
                loop.iter = jinja2.nodes.Filter(loop.iter, "_counted", [], [], None, None)
            return tree

        def call(self, context: Any, called: Any, *arguments: Any, **named: Any) -> Any:
            _count(_CALL)
            for each in arguments:
                if isinstance(each, int) and abs(each) > _MOST_REPEATED:
                    raise TooMuchWork(f"it calls a function with the number {each}")
            return super().call(context, called, *arguments, **named)

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            _bound(operator, left, right)
            return super().call_binop(context, operator, left, right)

    made = Environment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[_generation(jinja2), jinja2.ext.loopcontrols],
    )
    made.filters["_counted"] = _counted
    made.filters["tojson"] = _to_json
    made.globals["raise_exception"] = _refuse(jinja2.TemplateError)
    made.globals["strftime_now"] = lambda format: datetime.now().strftime(format)
    made.globals["dict"] = _Dict()
    made.globals["namespace"] = _namespace(jinja2)
    made.globals.pop("lipsum", None)
    return made


def _bound(operator: str, left: Any, right: Any) -> None:
    """Refuses products and powers of much memory."""
    if operator == "**":
        whole = isinstance(left, int) and isinstance(right, int)
        if whole and right * abs(left).bit_length() > _MOST_BITS:
            raise TooMuchWork(f"it computes {left!r:.40} ** {right!r:.40}")
        return
    for sequence, count in ((left, right), (right, left)):
        repeats = isinstance(sequence, (str, list, tuple)) and isinstance(count, int)
        if repeats and len(sequence) * count > _MOST_REPEATED:
            raise TooMuchWork(f"it repeats {len(sequence)} elements {count} times")


def _to_json(
    x: Any,
    ensure_ascii: bool = False,
    indent: Any = None,
    separators: Any = None,
    sort_keys: bool = False,
) -> str:
    """Without the escapes for HTML of jinja2's own filter."""
    return json.dumps(
        x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _refuse(error: type[Exception]) -> Any:
    def raise_exception(message: str) -> None:
        raise error(message)

    return raise_exception


class _Dict:
    """The builtin without its attributes."""

    def __call__(self, *arguments: Any, **named: Any) -> dict[Any, Any]:
        return dict(*arguments, **named)

    def fromkeys(self, *arguments: Any) -> dict[Any, Any]:
        return dict.fromkeys(*arguments)


def _namespace(jinja2: Any) -> Any:
    class Namespace(jinja2.utils.Namespace):  # type: ignore[misc]
        """Without names of a leading underscore."""

        def __init__(*arguments: Any, **named: Any) -> None:
            self, *rest = arguments
            attributes = dict(*rest, **named)
            for name in attributes:
                _allow(name)
            jinja2.utils.Namespace.__init__(self, attributes)

        def __setitem__(self, name: str, value: Any) -> None:
            _allow(name)
            super().__setitem__(name, value)

    def _allow(name: Any) -> None:
        if isinstance(name, str) and name.startswith("_"):
            raise jinja2.exceptions.SecurityError(f"a namespace cannot have the name {name!r}")

    return Namespace


def _generation(jinja2: Any) -> Any:
    class Generation(jinja2.ext.Extension):  # type: ignore[misc]
        """The tag {% generation %} around the words of the assistant."""

        tags = frozenset(["generation"])

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return jinja2.nodes.CallBlock(self.call_method("_write"), [], [], body).set_lineno(line)

        def _write(self, caller: Any) -> str:
            text: str = caller()
            tracked = _tracked.get()
            if tracked is not None:
                begin = sum(map(len, tracked[0]))
                tracked[1].append((begin, begin + len(text)))
            return text

    return Generation


@contextmanager
def counting() -> Iterator[None]:
    """Counts the steps of one text from zero."""
    token = _steps.set(0)
    try:
        yield
    finally:
        _steps.reset(token)


def render_tracked(template: Any, variables: dict[str, Any]) -> tuple[str, list[tuple[int, int]]]:
    """The text of a template, and where the parts within {% generation %} are."""
    blocks: list[str] = []
    ranges: list[tuple[int, int]] = []
    token = _tracked.set((blocks, ranges))
    try:
        for block in template.generate(**variables):
            blocks.append(block)
    finally:
        _tracked.reset(token)
    return "".join(blocks), ranges
