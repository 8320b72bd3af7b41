"""The `out` of functions with several results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kernwright.errors import ArgumentError


def one_each(function: str, out: Any, results: Sequence[str]) -> tuple[Any, ...]:
    """The target of each result: `out` is a tuple with an array, or None for a new one, for each of
    several results, and the array itself for a single one. Raises ArgumentError."""
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
    """The caller's own arrays, and in place of None the new ones."""
    return tuple(new if own is None else own for own, new in zip(out, made, strict=True))
