"""Triangles, diagonals, identity matrices, and padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernwright._array.creation import ones
from kernwright._array.operands import device_array, values_like
from kernwright._array.sorting import _whole
from kernwright._core import (
    Array,
    _diagonal,
    _diagonal_matrix,
    _from_numpy,
    _take_at,
    _triangle,
    empty,
)
from kernwright.errors import InvalidArgument

__all__ = ["diag", "eye", "pad", "tril", "triu"]


def tril(x: Any, /, *, k: int = 0) -> Array:
    """The lower triangles of the matrices in the last two axes: zero where column > row + k.

    >>> kw.tril(kw.asarray([[1, 2], [3, 4]])).numpy()
    array([[1, 0],
           [3, 4]])
    """
    return _triangle(device_array(x), k, False)


def triu(x: Any, /, *, k: int = 0) -> Array:
    """The upper triangles of the matrices in the last two axes: zero where column < row + k.

    >>> kw.triu(kw.asarray([[1, 2], [3, 4]])).numpy()
    array([[1, 2],
           [0, 4]])
    """
    return _triangle(device_array(x), k, True)


def diag(x: Any, /, *, k: int = 0) -> Array:
    """Of a vector: the square matrix with it as diagonal `k`, zero elsewhere. Of a matrix: a copy
    of its diagonal `k`. ValueError for other arrays.

    >>> kw.diag(kw.asarray([1, 2])).numpy()
    array([[1, 0],
           [0, 2]])
    >>> kw.diag(kw.asarray([[1, 2], [3, 4]])).numpy()
    array([1, 4])
    """
    x, k = device_array(x), _whole(k, "kw.diag(): k")
    if x.ndim == 1 and abs(k) < 2**63:
        return _diagonal_matrix(x, x.size + abs(k), x.size + abs(k), k)
    return _diagonal(x, k)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Array:
    """A matrix of ones on diagonal `k` and zeros elsewhere; the default dtype is that of
    get_default_dtype().

    >>> kw.eye(2).numpy()
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    one = ones((), dtype, device=device)
    return _diagonal_matrix(one, n_rows, n_rows if n_cols is None else n_cols, k)


def pad(x: Any, pad_width: Any, /, mode: str = "constant", *, constant_values: Any = 0) -> Array:
    """A copy with more elements around: NumPy's pad().

    pad_width: an int, (before, after) for all axes, or such a pair for each axis. mode: "constant"
    (the number `constant_values`), "edge" (the nearest element), "reflect" (mirrored at the edge
    element), "wrap" (from the other end). ValueError for wrong widths, and for continuing an axis
    without elements.

    >>> kw.pad(kw.asarray([1, 2]), (1, 2), "edge").numpy()
    array([1, 1, 2, 2, 2])
    """
    x = device_array(x)
    widths = _widths(pad_width, x.ndim)
    if mode not in ("constant", "edge", "reflect", "wrap"):
        raise InvalidArgument(f'mode is "constant", "edge", "reflect" or "wrap", got {mode!r}')
    if mode != "constant":
        for axis, (before, after) in enumerate(widths):
            if before + after > 0:
                x = _continued(x, axis, before, after, mode)
        whole: Array = x if any(map(sum, widths)) else x.copy()
        return whole
    shape = tuple(n + sum(width) for n, width in zip(x.shape, widths, strict=True))
    result = empty(shape, x.dtype, device=x.device)
    value = values_like(constant_values, x)
    inner = [slice(None)] * x.ndim
    for axis, (before, after) in enumerate(widths):
        stop = before + x.shape[axis]
        for part, size in ((slice(before), before), (slice(stop, None), after)):
            if size:
                border = [*inner]
                border[axis] = part
                result[tuple(border)] = value
        inner[axis] = slice(before, stop)
    result[tuple(inner)] = x
    return result


def _widths(pad_width: Any, ndim: int) -> list[tuple[int, int]]:
    try:
        widths = np.broadcast_to(np.asarray(pad_width), (ndim, 2))
    except ValueError as error:
        raise InvalidArgument(
            f"pad_width {pad_width} is no int and has no (before, after) for each of {ndim} axes"
        ) from error
    if widths.dtype.kind not in "iu" or (widths.size and widths.min() < 0):
        raise InvalidArgument(f"pad_width {pad_width} is not made of ints of 0 and more")
    return [(int(before), int(after)) for before, after in widths]


def _continued(x: Array, axis: int, before: int, after: int, mode: str) -> Array:
    """Padded along one axis from its own elements."""
    extent = x.shape[axis]
    if extent == 0:
        raise InvalidArgument(f"axis {axis} of shape {x.shape} has no element to continue")
    if max(before, after) > extent - (mode == "reflect") and mode != "edge":
        kind: Any = mode
        positions = np.pad(np.arange(extent), (before, after), mode=kind)
        return _take_at(x, [axis], [_from_numpy(positions, x.device)], axis)
    shape = (*x.shape[:axis], before + extent + after, *x.shape[axis + 1 :])
    result = empty(shape, x.dtype, device=x.device)
    front = (slice(None),) * axis
    result[(*front, slice(before, before + extent))] = x
    left, right = _borders(extent, before, after, mode)
    if before:
        result[(*front, slice(before))] = x[(*front, left)]
    if after:
        result[(*front, slice(before + extent, None))] = x[(*front, right)]
    return result


def _borders(extent: int, before: int, after: int, mode: str) -> Sequence[slice]:
    """What of an axis is continued before and after it."""
    if mode == "edge":
        return slice(1), slice(extent - 1, None)
    if mode == "wrap":
        return slice(extent - before, None), slice(after)
    stop = extent - 2 - after
    return slice(before, 0, -1), slice(extent - 2, None if stop < 0 else stop, -1)
