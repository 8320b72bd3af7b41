"""The `out` of functions with several results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kernwright.errors import ArgumentError


def one_each(function: str, out: Any, results: Sequence[str]) -> tuple[Any, ...]:
    """The arrays for results of these names: None, or what NumPy takes, a tuple of as many arrays.
    None in it makes a new array. Of one result it is the array. Raises ArgumentError."""
    if out is None:
        return (None,) * len(results)
    if len(results) == 1:
        return (out,)
    if isinstance(out, tuple) and len(out) == len(results):
        return out
    given = f"a tuple of {len(out)}" if isinstance(out, tuple) else type(out).__name__
    raise ArgumentError(
        f"{function}: out is a tuple of {len(results)}, for {', '.join(results)}, of which each is "
        f"an array or None, got {given}"
    )


def chosen(out: Iterable[Any], made: Iterable[Any]) -> tuple[Any, ...]:
    """The caller's own arrays where they are given, and what was made elsewhere."""
    return tuple(new if old is None else old for old, new in zip(out, made, strict=True))
