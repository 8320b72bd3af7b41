"""Layouts of arrays in memory, as callers have them: each gives a view of the same values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import kernwright as kw


def _contiguous(x: kw.Array) -> kw.Array:
    return x


def _assigned(view: kw.Array, x: kw.Array) -> kw.Array:
    view._assign(x)
    return view


def _sliced(x: kw.Array) -> kw.Array:
    """The middle third of longer rows, as a projection of queries, keys and values has it."""
    n = x.shape[-1]
    return _assigned(kw.empty((*x.shape[:-1], 3 * n), x.dtype)[..., n : 2 * n], x)


def _skipped(x: kw.Array) -> kw.Array:
    """Every other index of the first axis."""
    return _assigned(kw.empty((2 * x.shape[0], *x.shape[1:]), x.dtype)[::2], x)


def _shifted(x: kw.Array) -> kw.Array:
    """Contiguous from an address that is aligned to one element alone."""
    return _assigned(kw.empty(x.size + 1, x.dtype)[1:].reshape(x.shape), x)


def _transposed(x: kw.Array) -> kw.Array:
    shape = (*x.shape[:-2], x.shape[-1], x.shape[-2])
    return _assigned(kw.swapaxes(kw.empty(shape, x.dtype), -1, -2), x)


def _heads_inside(x: kw.Array) -> kw.Array:
    """[..., heads, tokens, size] of memory [..., tokens, heads, size]."""
    heads, tokens, size = x.shape[-3:]
    return _assigned(
        kw.swapaxes(kw.empty((*x.shape[:-3], tokens, heads, size), x.dtype), -2, -3), x
    )


LAYOUTS: dict[str, Callable[[kw.Array], kw.Array]] = {
    "contiguous": _contiguous,
    "sliced": _sliced,
    "every other row": _skipped,
    "shifted": _shifted,
    "transposed": _transposed,
    "heads inside": _heads_inside,
}


def laid(arrays: Sequence[kw.Array], layout: str) -> list[kw.Array]:
    """The arrays in that layout; vectors, such as weights of norms, stay as they are unless they
    come first."""
    function = LAYOUTS[layout]
    return [function(x) if i == 0 or x.ndim > 1 else x for i, x in enumerate(arrays)]
