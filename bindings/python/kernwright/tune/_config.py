"""Config: the values of one configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from kernwright.errors import ArgumentError, NameNotFound

Value: TypeAlias = bool | int | float | str


def plain(value: Any, what: str) -> Value:
    """`value` as a bool, int, float or str of Python; also of NumPy's scalars."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (bool, int, float, str)):
        return value
    raise ArgumentError(f"{what} is a bool, int, float or str, got {type(value).__name__}")


def mapping(value: Any, what: str) -> Mapping[str, Any]:
    """`value`, or nothing for None. Raises ArgumentError for what maps no names."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ArgumentError(f"{what}: a mapping of names is wanted, got {type(value).__name__}")
    return value


class Config(Mapping[str, Value]):
    """A value for each parameter, in the parameters' order. Immutable and hashable; equal to any
    mapping with the same names and values.

    >>> config = kw.tune.Config(BLOCK=128, VEC=2)
    >>> config["BLOCK"], config == {"BLOCK": 128, "VEC": 2}
    (128, True)
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Value] | None = None, /, **more: Value) -> None:
        merged = {**mapping(values, "Config()"), **more}
        for name in merged:
            if not isinstance(name, str):
                raise ArgumentError(f"a parameter's name is a str, got {type(name).__name__}")
        self._values = {name: plain(value, f"{name} of a Config") for name, value in merged.items()}

    def __getitem__(self, name: str) -> Value:
        try:
            return self._values[name]
        except KeyError:
            known = ", ".join(self._values)
            raise NameNotFound(f"there is no parameter {name!r}; there is: {known}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __repr__(self) -> str:
        return f"Config({', '.join(f'{name}={value!r}' for name, value in self._values.items())})"
