"""Restrictions that are functions of Python."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kernwright.errors import ArgumentError, InvalidArgument, NameNotFound
from kernwright.tune._config import Value

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _label(function: Callable[..., Any]) -> str:
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", None) or repr(function)
    return f"{name} (line {code.co_firstlineno})" if code else name


def _signature(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


class CallableRestriction:
    """A function of parameters by their names, of problem values, of one dict of all, or, as
    `def f(*args)`, of all parameters in order.

    `parameters` are those whose choices test() gets; `values` has each one's values.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        names: Sequence[str] | None,
        values: Mapping[str, Sequence[Value]],
        problem: Mapping[str, Value],
    ) -> None:
        self.function = function
        self.label = _label(function)
        self._problem = problem
        if names is None and self._takes_all():
            names = list(values)
        self._positional = names is not None
        self._names = list(names) if names is not None else self._named(values)
        self.parameters = list(values) if self._names is None else [
            name for name in self._names if name in values
        ]  # fmt: skip
        self._values = [tuple(values[name]) for name in self.parameters]
        unknown = [n for n in self._names or () if n not in values and n not in problem]
        if unknown and (names is not None or not self.parameters):
            known = ", ".join(values)
            raise NameNotFound(
                f"the restriction {self.label} wants {unknown[0]!r}, which is no parameter; "
                f"there is: {known}"
            )
        self._unknown = unknown

    def _takes_all(self) -> bool:
        signature = _signature(self.function)
        return signature is not None and [p.kind for p in signature] == [
            inspect.Parameter.VAR_POSITIONAL
        ]

    def _named(self, values: Mapping[str, Sequence[Value]]) -> list[str] | None:
        """The names that the function asks for; None where it takes a dict."""
        signature = _signature(self.function)
        if signature is None:
            return None
        own = [p for p in signature if p.kind in _BY_NAME]
        wanted = [p.name for p in own if p.default is p.empty or p.name in values]
        if any(name in values or name in self._problem for name in wanted):
            return wanted
        positional = [p for p in signature if p.kind <= inspect.Parameter.VAR_POSITIONAL]
        if len(wanted) <= 1 and len(positional) >= 1:
            return None
        if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in signature) and not wanted:
            return list(values)
        return wanted

    def _call(self, choices: Sequence[int]) -> bool:
        own = {
            name: values[choice]
            for name, values, choice in zip(self.parameters, self._values, choices, strict=True)
        }
        everything = {**self._problem, **own}
        if self._names is None:
            return bool(self.function(everything))
        if self._positional:
            return bool(self.function(*(everything[name] for name in self._names)))
        return bool(self.function(**{name: everything[name] for name in self._names}))

    def test(self, choices: Sequence[int]) -> bool | None:
        """Whether the restriction holds; None where it raised."""
        try:
            return self._call(choices)
        except Exception:
            return None

    def fail(self, choices: Sequence[int]) -> None:
        """Raises what test() met."""
        if self._unknown:
            raise NameNotFound(
                f"the restriction {self.label} wants {self._unknown[0]!r}: there is no such "
                f"parameter or problem value; give it with space.with_problem(...)"
            )
        own = ", ".join(
            f"{name}={values[choice]!r}"
            for name, values, choice in zip(self.parameters, self._values, choices, strict=True)
        )
        try:
            self._call(choices)
        except Exception as error:
            raise InvalidArgument(
                f"the restriction {self.label} raised {type(error).__name__}: {error}, for {own}"
            ) from error


def parts_of(restriction: Any) -> tuple[Callable[..., Any], Sequence[str] | None]:
    """A callable and the names that it gets by position, or None."""
    if callable(restriction):
        return restriction, None
    if isinstance(restriction, tuple) and len(restriction) == 2 and callable(restriction[0]):
        function, names = restriction
        if not isinstance(names, str) and all(isinstance(name, str) for name in names):
            return function, list(names)
    raise ArgumentError(
        "a restriction is an expression as str, a callable, or (callable, names), got "
        f"{type(restriction).__name__}"
    )
