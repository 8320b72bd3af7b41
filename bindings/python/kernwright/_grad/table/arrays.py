"""Gradients of views, movement, indexing, sorting."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

import kernwright as kw
from kernwright import _core
from kernwright._core import Array
from kernwright._grad.recording import Joint, Pairs, is_traced, note, unrecorded


def same(result: Array, x: Any, *args: Any, **kwargs: Any) -> Pairs:
    """A result with the elements of x, maybe repeated along new axes, in another dtype."""
    return ((x, _itself),)


def _itself(g: Array) -> Array:
    return g


def reshape(result: Array, x: Array, *shape: Any) -> Pairs:
    before = x.shape
    return ((x, lambda g: g.reshape(before)),)


def transpose(result: Array, x: Array, *axes: Any) -> Pairs:
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
        axes = tuple(axes[0] or ())
    return ((x, (lambda g: _moved_back(g, axes)) if axes else _turned),)


def _turned(g: Array) -> Array:
    return g.T


def _moved_back(g: Array, axes: tuple[int, ...]) -> Array:
    order = [axis % g.ndim for axis in axes]
    return g.transpose(*(int(i) for i in np.argsort(order)))


def view(result: Array, x: Array, dtype: Any = None) -> Pairs:
    if dtype is None or result.dtype == x.dtype:
        return ((x, _itself),)
    parts = {"complex64": "float32", "complex128": "float64"}.get(x.dtype.name)
    if parts == result.dtype.name:  # real and imaginary parts, as kw.real() takes them
        before = x.dtype
        return ((x, lambda g: g.copy().view(before)),)
    if is_traced(x):
        raise kw.ArgumentError(
            f"view({result.dtype}) of an array of {x.dtype} has no gradient: its bytes are no "
            "function of its numbers; call astype(), or kw.stop_gradient() before"
        )
    return ()


def to(result: Array, x: Array, *args: Any, **kwargs: Any) -> Pairs:
    home = x.device
    return ((x, lambda g: g.to(home)),)


def _zeros(shape: tuple[int, ...], like: Array) -> Array:
    return kw.zeros(shape, dtype=like.dtype, device=like.device)


def placed(g: Array, shape: tuple[int, ...], key: Any) -> Array:
    """Zeros of a shape with `g` at a basic index."""
    with unrecorded():
        made = _zeros(shape, g)
        made[key] = g
    note("an index", [(g, lambda h: h[key])], made)
    return made


def getitem(result: Array, x: Array, key: Any) -> Pairs:
    shape = x.shape
    return ((x, lambda g: placed(g, shape, key)),)


def added_at(g: Array, shape: tuple[int, ...], axes: Any, indices: Any, position: int) -> Array:
    """Zeros of a shape, where `g` is added at the positions that take_at() read."""
    with unrecorded():
        made = _zeros(shape, g)
        _core._add_at(made, axes, indices, position, g)
    note("an index", [(g, lambda h: _core._take_at(h, axes, indices, position))], made)
    return made


def take_at(result: Array, x: Array, axes: Any, indices: Any, position: int) -> Pairs:
    shape = x.shape
    return ((x, lambda g: added_at(g, shape, axes, indices, position)),)


def scattered(g: Array, shape: tuple[int, ...], axis: int, index: Array) -> Array:
    """Zeros of a shape, where `g` is added at the places of take_along_axis()."""
    with unrecorded():
        made = _zeros(shape, g)
        _core._scatter(made, axis, index, g, False, True)
    note("take_along_axis()", [(g, lambda h: _core._gather(h, axis, index))], made)
    return made


def gather(result: Array, x: Array, axis: int, index: Array) -> Pairs:
    shape = x.shape
    return ((x, lambda g: scattered(g, shape, axis, index)),)


def rows_by_index(result: Array, x: Array, index: Array) -> Pairs:
    shape = x.shape
    return ((x, lambda g: added_at(g, shape, [0], [index], 0)),)


def concat(result: Array, parts: Any, axis: int) -> Joint:
    extents = [part.shape[axis] for part in parts]

    def pull(g: Array) -> Sequence[Any]:
        before = (slice(None),) * (axis % g.ndim)
        ends = list(itertools.accumulate(extents, initial=0))
        return [g[(*before, slice(*pair))] for pair in itertools.pairwise(ends)]

    return parts, (result,), pull


def triangle(result: Array, x: Array, k: int, upper: bool) -> Pairs:
    return ((x, lambda g: _core._triangle(g, k, upper)),)


def on_diagonal(g: Array, shape: tuple[int, ...], offset: int, first: int, second: int) -> Array:
    with unrecorded():
        made = _zeros(shape, g)
        _core._diagonal_view(made, offset, first, second)[...] = g
    back = lambda h: _core._diagonal_view(h, offset, first, second)  # noqa: E731
    note("diagonal()", [(g, back)], made)
    return made


def diagonal_view(result: Array, x: Array, offset: int, first: int, second: int) -> Pairs:
    shape = x.shape
    return ((x, lambda g: on_diagonal(g, shape, offset, first, second)),)


def diagonal(result: Array, x: Array, k: int) -> Pairs:
    shape = x.shape
    return ((x, lambda g: on_diagonal(g, shape, k, 0, 1)),)


def diagonal_matrix(result: Array, values: Array, rows: int, columns: int, k: int) -> Pairs:
    return ((values, lambda g: _core._diagonal(g, k)),)


def sort(x: Any, axis: int, descending: bool) -> Array:
    """The handler: places first, so that they are there for the gradient."""
    if not is_traced(x):
        return _core._unrecorded(_core._sort, x, axis, descending)  # type: ignore[no-any-return]
    with unrecorded():
        places = _core._argsort(x, axis, descending)
    made: Array = _core._gather(x, axis, places)
    return made


def compress(x: Any, mask: Any) -> Array:
    """The handler: the places of the mask."""
    if not is_traced(x):
        return _core._unrecorded(_core._compress, x, mask)  # type: ignore[no-any-return]
    with unrecorded():
        places = _core._true_positions(mask)
    return _core._take_at(x, [0], [places], 0)
