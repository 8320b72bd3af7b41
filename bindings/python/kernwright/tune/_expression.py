"""Expression: a text over parameters and sizes of the problem, evaluated without eval()."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernwright import _core
from kernwright.errors import ArgumentError
from kernwright.tune._config import Value, mapping, plain


class Expression:
    """An expression in a part of Python: integers of 64 bits (more is an error), floats, strings,
    bools; + - * / // % ** & | ^ << >> ~, comparisons in chains, `in` with a tuple or list, and, or,
    not, `a if c else b`, min, max, abs, int, float, bool. It means what Python means by it.

    >>> kw.tune.Expression("-(-n // block)")(n=1000, block=256)
    4

    A text that is no such expression raises InvalidArgument with the column.
    """

    __slots__ = {"_compiled": "", "text": "The expression as it was written."}

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise ArgumentError(f"an expression is a str, got {type(text).__name__}")
        self.text = text
        self._compiled = _core.TuneExpression(text)

    @property
    def names(self) -> tuple[str, ...]:
        """The names in it, in order of appearance."""
        return tuple(self._compiled.names())

    def __call__(self, values: Mapping[str, Any] | None = None, /, **more: Any) -> Value:
        """The value for these values of its names; other names are left alone. Raises
        InvalidArgument where Python would raise, NameNotFound for a name without a value."""
        given = {**mapping(values, "the values of an expression"), **more}
        names = self.names
        own = {key: plain(value, key) if key in names else False for key, value in given.items()}
        return self._compiled.evaluate(own)

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    def __reduce__(self) -> tuple[type[Expression], tuple[str]]:
        return Expression, (self.text,)
