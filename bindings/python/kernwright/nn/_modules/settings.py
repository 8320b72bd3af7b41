"""Checks of the settings of layers, made when a layer is."""

from __future__ import annotations

import math
import numbers
import operator
from typing import Any

from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument

_MOST = 2**31 - 1
_FLOATS = ("float16", "bfloat16", "float32", "float64")


def extent(value: Any, name: str, least: int = 1, most: int = _MOST) -> int:
    """An int from `least` to `most`. ArgumentError for other kinds, a bool among them."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ArgumentError(f"{name} is an int, got {value!r:.60}")
    made = operator.index(value)
    if not least <= made <= most:
        raise InvalidArgument(f"{name} is from {least} to {most}, got {made}")
    return made


def extents(value: Any, name: str) -> tuple[int, ...]:
    """An int or some, at least one."""
    given = [value] if hasattr(value, "__index__") else value
    if not isinstance(given, (list, tuple)) or not given:
        raise ArgumentError(f"{name} is an int or several, got {value!r:.60}")
    return tuple(extent(each, name, least=0) for each in given)


def flag(value: Any, name: str) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise ArgumentError(f"{name} is True or False, got {value!r:.60}")
    return value


def number(value: Any, name: str) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ArgumentError(f"{name} is a number, got {value!r:.60}")
    try:
        made = float(value)
    except OverflowError:
        made = math.inf
    if not math.isfinite(made):
        raise InvalidArgument(f"{name} is a finite number, got {value!r:.60}")
    return made


def positive(value: Any, name: str) -> float:
    """A finite number above 0."""
    made = number(value, name)
    if made <= 0:
        raise InvalidArgument(f"{name} is above 0, got {value!r:.60}")
    return made


def chance(value: Any, name: str) -> float:
    """A number from 0 to 1."""
    made = number(value, name)
    if not 0 <= made <= 1:
        raise InvalidArgument(f"{name} is a chance from 0 to 1, got {value!r:.60}")
    return made


def require_float(array: Array, names: tuple[str, ...] = _FLOATS) -> Array:
    """A parameter of a dtype that the layer computes in."""
    if array.dtype.name not in names:
        raise ArgumentError(f"dtype is one of {', '.join(names)}, got {array.dtype.name}")
    return array
