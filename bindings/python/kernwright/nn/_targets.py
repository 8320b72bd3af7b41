"""The `out` of functions with several results, and of attention."""

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


def of_attention(
    function: str, out: Any, return_lse: bool, rows: tuple[int, ...] | None = None
) -> tuple[Any, Any, tuple[int, ...] | None] | None:
    """Targets of the result and its logarithms, as the extension takes them. `rows`: the axes in
    front of the result's elements where they are others than those of the query that it gets."""
    if out is None or not return_lse:
        return None if out is None else (out, None, rows)
    result, logarithms = one_each(function, out, ("result", "logarithms"))
    return result, logarithms, rows


def chosen(out: Iterable[Any], made: Iterable[Any]) -> tuple[Any, ...]:
    """The caller's own arrays, and in place of None the new ones."""
    return tuple(new if own is None else own for own, new in zip(out, made, strict=True))
