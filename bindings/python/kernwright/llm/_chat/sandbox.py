"""The environment of chat templates: as in transformers, with bounds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from sys import getsizeof
from typing import Any

from kernwright.llm._chat.memory import (
    TooMuchWork,
    bounded_filter,
    charge,
    charge_call,
    charge_operator,
    charge_result,
    charge_text,
    fromkeys,
    joined,
    made_bytes,
)
from kernwright.llm._fields import import_extra

_MOST_STEPS = 2_000_000  # of one text: the rounds of its loops, and its calls
_CALL = 4  # steps of a call
_MOST_INDENT = 64  # characters of tojson's indent and separators

_steps: ContextVar[int] = ContextVar("steps", default=0)
_tracked: ContextVar[tuple[list[str], list[tuple[int, int]]] | None] = ContextVar(
    "tracked", default=None
)


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
    for part in ("ext", "sandbox", "visitor"):
        import_extra(f"jinja2.{part}", "llm.ChatTemplate")

    base: Any = jinja2.sandbox.ImmutableSandboxedEnvironment
    rewriting = _rewriting(jinja2)

    class Environment(base):  # type: ignore[misc]
        intercepted_binops = frozenset(["*", "**", "+", "%"])
        concat = staticmethod(joined)

        def _parse(self, *arguments: Any) -> Any:
            return rewriting.visit(super()._parse(*arguments))

        def call(self, context: Any, called: Any, *arguments: Any, **named: Any) -> Any:
            _count(_CALL)
            arguments = charge_call(called, arguments, named)
            return charge_result(super().call(context, called, *arguments, **named))

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            if operator == "+" and type(left) is type(right) is str:  # most of them
                charge(getsizeof(left) + getsizeof(right))
                return left + right
            charge_operator(operator, left, right)
            return super().call_binop(context, operator, left, right)

    made = Environment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[_generation(jinja2), jinja2.ext.loopcontrols],
        finalize=charge_text,
    )
    for name in ("urlize", "xmlattr", "wordwrap"):  # of HTML
        del made.filters[name]
    made.filters = {name: bounded_filter(name, each) for name, each in made.filters.items()}
    made.filters["_joined"] = joined
    made.filters["_contained"] = charge_text
    made.filters["_slice"] = lambda value, *ends: charge_result(value[slice(*ends)])
    made.filters["_counted"] = _counted
    made.filters["tojson"] = _to_json
    made.globals["raise_exception"] = _refuse(jinja2.TemplateError)
    made.globals["strftime_now"] = lambda format: datetime.now().strftime(format)
    made.globals["dict"] = _Dict()
    made.globals["namespace"] = _namespace(jinja2)
    made.globals.pop("lipsum", None)
    return made


def _rewriting(jinja2: Any) -> Any:
    nodes = jinja2.nodes

    class Rewriting(jinja2.visitor.NodeTransformer):  # type: ignore[misc]
        """Loops, ~, slices and new lists become filters, where they are counted. A list in a list
        in a list that is there twice each would be too large to write, or to compare."""

        def visit_For(self, node: Any) -> Any:
            self.generic_visit(node)
            node.iter = nodes.Filter(node.iter, "_counted", [], [], None, None)
            return node

        def visit_Concat(self, node: Any) -> Any:
            self.generic_visit(node)
            return nodes.Filter(nodes.List(node.nodes), "_joined", [], [], None, None)

        def visit_Tuple(self, node: Any) -> Any:
            self.generic_visit(node)
            if getattr(node, "ctx", "load") != "load" or not any(
                map(_computes, node.iter_child_nodes())
            ):
                return node
            return nodes.Filter(node, "_contained", [], [], None, None)

        visit_List = visit_Dict = visit_Tuple

        def visit_Getitem(self, node: Any) -> Any:
            self.generic_visit(node)
            if not isinstance(node.arg, nodes.Slice):
                return node
            ends = (node.arg.start, node.arg.stop, node.arg.step)
            given = [nodes.Const(None) if each is None else each for each in ends]
            return nodes.Filter(node.node, "_slice", given, [], None, None)

    def _computes(node: Any) -> bool:
        return not isinstance(node, nodes.Const) and not (
            isinstance(node, nodes.Pair) and isinstance(node.value, nodes.Const)
        )

    return Rewriting()


def _to_json(
    x: Any,
    ensure_ascii: bool = False,
    indent: Any = None,
    separators: Any = None,
    sort_keys: bool = False,
) -> str:
    """Without the escapes for HTML of jinja2's own filter."""
    width = indent if isinstance(indent, int) else len(indent or "")
    if max(width, sum(map(len, separators or ()))) > _MOST_INDENT:
        raise TooMuchWork(f"tojson has an indent or separators of more than {_MOST_INDENT}")
    charge_text(x)
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
        return dict(*arguments, **charge_text(named))

    fromkeys = staticmethod(fromkeys)


def _namespace(jinja2: Any) -> Any:
    class Namespace(jinja2.utils.Namespace):  # type: ignore[misc]
        """Without names of a leading underscore, and without a text of its values."""

        def __repr__(self) -> str:
            return "<Namespace>"

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
    """Counts the steps and the bytes of one text from zero."""
    token, bytes_token = _steps.set(0), made_bytes.set(0)
    try:
        yield
    finally:
        _steps.reset(token)
        made_bytes.reset(bytes_token)


def render_tracked(template: Any, variables: dict[str, Any]) -> tuple[str, list[tuple[int, int]]]:
    """The text of a template, and where the parts within {% generation %} are."""
    blocks: list[str] = []
    ranges: list[tuple[int, int]] = []
    token = _tracked.set((blocks, ranges))
    try:
        for block in template.generate(**variables):
            charge(len(block))
            blocks.append(block)
    finally:
        _tracked.reset(token)
    return "".join(blocks), ranges
