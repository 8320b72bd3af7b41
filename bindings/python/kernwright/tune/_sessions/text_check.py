"""Checks of a session's call by the kernel's text, before anything is compiled."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kernwright import _core
from kernwright._jit.options import make_options
from kernwright._support.warn import warn_caller
from kernwright.errors import InvalidArgument, NameNotFound
from kernwright.tune._config import Value
from kernwright.tune._launch_rule import LaunchRule
from kernwright.tune._sessions.arguments import wrong_count
from kernwright.tune._sessions.signature import (
    base_name,
    declared_parameters,
    macro_arguments,
    macros_that_declare,
)
from kernwright.tune._sessions.variables import most_bytes

_QUOTED = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
_VARIABLE = re.compile(r"__(?:constant|device|managed)__([^;(){}]*)")
_WORD = re.compile(r"[A-Za-z_]\w*")


class KernelText:
    """What is in sight of a kernel: its text, headers that are texts, defines."""

    def __init__(self, name: str, text: str, options: Any) -> None:
        options = make_options(options, {})
        self.name, self.text = name, text
        self.kernels: list[str] = []  #: that the text declares
        self.headers: Mapping[str, str] = options.headers
        self.defines: Mapping[str, object] = options.defines
        quoted = [n for t in (self.text, *self.headers.values()) for n in _QUOTED.findall(t)]
        #: whether files that nobody looks at may declare more
        self.is_open = bool(options.include_dirs) or any(n not in self.headers for n in quoted)

    @classmethod
    def of(cls, kernel: _core.Kernel) -> KernelText:
        program: Any = kernel._program
        made = cls(kernel.name, str(program.text), program.options)
        made.kernels = list(program.declared)
        return made

    def _words(self) -> set[str]:
        texts = [self.text, *self.headers.values(), *map(str, self.defines.values())]
        return {word for text in texts for word in _WORD.findall(text)}

    def unused(self, parameters: Iterable[str]) -> list[str]:
        """Those without a mention in sight."""
        words = self._words() | set(_WORD.findall(self.name))
        return [name for name in parameters if name not in words]

    def lacks_kernel(self) -> bool:
        """Whether nothing in sight has the kernel's name, or may put it together."""
        is_made = any("##" in text for text in (self.text, *self.headers.values()))
        return not self.is_open and not is_made and base_name(self.name) not in self._words()

    def parameters(self) -> list[str] | None:
        """Names of the kernel's parameters; None where the text does not tell."""
        given = self.text, self.name, self.headers, self.defines
        return declared_parameters(*given, self.is_open)

    def variables(self) -> list[str]:
        """Names of __constant__ and __device__ variables."""
        texts = (self.text, *self.headers.values())
        return [name for text in texts for name in _core._tune_variable_names(text)]

    def room(self, variable: str, parameters: Mapping[str, Sequence[Value]]) -> int | None:
        """The bytes that the variable has at most; None where the text does not tell."""
        if self.is_open:
            return None
        return most_bytes(self.text, variable, parameters, self.headers, self.defines)

    def may_have(self, variable: str) -> bool:
        """Whether there is such a variable, or may be: of an included file, or made by a macro."""
        if self.is_open or variable in self.variables():
            return True
        made = macro_arguments(self.text, self.headers, self.defines)
        made += macros_that_declare(self.text, self.headers, self.defines, base_name(variable))
        if "<" in variable:  # of a template
            made += " ".join(_VARIABLE.findall(self.text))
        return base_name(variable) in _WORD.findall(made)


def _names(text: KernelText) -> dict[str, str]:
    """Names of the kernel and of its parameters, with their kinds."""
    found = dict.fromkeys(text.parameters() or (), f"a parameter of {text.name}")
    return {**found, base_name(text.name): "the kernel itself"}


def check_clashes(parameters: Mapping[str, Iterable[Value]], kernels: Iterable[KernelText]) -> None:
    """Raises InvalidArgument for a parameter of the space that has the name of the kernels or of
    one of their own parameters: the define would write a number in its place."""
    texts = [_names(text) for text in kernels]
    for name, values in parameters.items():
        is_text = all(isinstance(value, str) for value in values)
        if texts and not is_text and all(name in own for own in texts):
            raise InvalidArgument(
                f"the space's parameter {name} has the name of {texts[0][name]}: each parameter "
                f"becomes a define, so that the text would have {next(iter(values))!r} in its "
                "place. Rename one of both"
            )


def check_names(texts: Sequence[KernelText]) -> None:
    """Raises NameNotFound where none of the texts has its kernel."""
    if texts and all(text.lacks_kernel() for text in texts):
        known = ", ".join(texts[0].kernels)
        raise NameNotFound(f"the text has no kernel {texts[0].name}; there is: {known or 'none'}")


def check_count(texts: Sequence[KernelText], given: int) -> None:
    """Raises ArgumentError where none of the kernels takes as many arguments as are given."""
    wrong = [names for text in texts if (names := text.parameters()) is not None]
    if wrong and len(wrong) == len(texts) and all(len(names) != given for names in wrong):
        raise wrong_count(wrong[0], given)


def check_constants(
    texts: Sequence[KernelText],
    constants: Mapping[str, bytes],
    parameters: Mapping[str, Sequence[Value]],
) -> None:
    """Raises NameNotFound where none of the kernels has a variable of that name, InvalidArgument
    where it has no room in any of them."""
    for name, data in constants.items() if texts else ():
        if any(text.may_have(name) for text in texts):
            rooms = [text.room(name, parameters) for text in texts]
            room = max((each for each in rooms if each is not None), default=0)
            if None not in rooms and room < len(data):
                raise InvalidArgument(
                    f"constants[{name!r}] has {len(data)} bytes, and the variable {name} has "
                    f"{room} at most"
                )
            continue
        known = list(dict.fromkeys(each for text in texts for each in text.variables()))
        has = f"it has {', '.join(known)}" if known else "it has none"
        raise NameNotFound(
            f"there is no __constant__ or __device__ variable {name!r} to fill in the kernel's "
            f"text: {has}"
        )


def warn_of_unused(
    kernel: _core.Kernel,
    parameters: Iterable[str],
    rules: Iterable[LaunchRule],
) -> None:
    """Warns of parameters without a mention in the text and in the launch."""
    text = KernelText.of(kernel)
    rules = list(rules)
    if text.is_open or any(rule.calls for rule in rules):
        return  # they may be named where nobody can look
    named = {name for rule in rules for name in rule.names}
    unused = text.unused(name for name in parameters if name not in named)
    if unused:
        warn_caller(
            f"the kernel does not use {', '.join(unused)}: neither its text nor grid, block, "
            "shared_bytes or cluster name it, so that its values make no difference"
        )
