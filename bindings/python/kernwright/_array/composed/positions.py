"""Positions of triangles, diagonals and grids; positions in one dimension and in several."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from kernwright._array.creation import HOST_TYPES, arange
from kernwright._array.operands import device_array, host_index
from kernwright._core import Array, _from_numpy, _split_positions
from kernwright.errors import ArgumentError, InvalidArgument

__all__ = [
    "diag_indices",
    "diag_indices_from",
    "indices",
    "ix_",
    "ravel_multi_index",
    "tril_indices",
    "tril_indices_from",
    "triu_indices",
    "triu_indices_from",
    "unravel_index",
]


def tril_indices(n: int, k: int = 0, m: int | None = None, *, device: Any = None) -> Any:
    """(rows, columns) of the elements with column <= row + k of an n by m matrix (m: n), row by
    row, int64. Computed on the device; nothing is waited for.

    >>> rows, columns = kw.tril_indices(2)
    >>> rows.numpy(), columns.numpy()
    (array([0, 1, 1]), array([0, 0, 1]))
    """
    return _triangle(n, n if m is None else m, k, False, device)


def triu_indices(n: int, k: int = 0, m: int | None = None, *, device: Any = None) -> Any:
    """(rows, columns) of the elements with column >= row + k; as tril_indices() otherwise.

    >>> rows, columns = kw.triu_indices(2)
    >>> rows.numpy(), columns.numpy()
    (array([0, 0, 1]), array([0, 1, 1]))
    """
    return _triangle(n, n if m is None else m, k, True, device)


def tril_indices_from(x: Any, k: int = 0) -> Any:
    """tril_indices() for a matrix, on its device. InvalidArgument for other arrays.

    >>> kw.tril_indices_from(kw.ones((2, 2)))[0].numpy()
    array([0, 1, 1])
    """
    matrix = _matrix(x)
    return tril_indices(matrix.shape[0], k, matrix.shape[1], device=matrix.device)


def triu_indices_from(x: Any, k: int = 0) -> Any:
    """triu_indices() for a matrix, on its device. InvalidArgument for other arrays.

    >>> kw.triu_indices_from(kw.ones((2, 2)))[0].numpy()
    array([0, 0, 1])
    """
    matrix = _matrix(x)
    return triu_indices(matrix.shape[0], k, matrix.shape[1], device=matrix.device)


def _matrix(x: Any) -> Array:
    array: Array = device_array(x)
    if array.ndim != 2:
        raise InvalidArgument(f"a matrix has two dimensions, got shape {array.shape}")
    return array


def _triangle(rows: Any, columns: Any, k: Any, upper: bool, device: Any) -> tuple[Array, ...]:
    import kernwright as kw

    n, m, k = (operator.index(value) for value in (rows, columns, k))
    if n < 0 or m < 0:
        raise InvalidArgument(f"a matrix of {n} by {m} elements: extents are not negative")
    # The rows below the first one with an element, and what is left out of each.
    ends = np.clip(np.arange(n, dtype=np.int64) + (k if upper else k + 1), 0, m)
    count = int((m - ends).sum() if upper else ends.sum())
    mask = kw.tril(kw.ones((n, m), "bool", device=device), k=k - 1 if upper else k)
    order = kw.argsort(mask.reshape(-1), descending=not upper)
    made = _split_positions(order[:count], (n, m))
    return tuple(made[d] for d in range(2))


def diag_indices(n: int, ndim: int = 2, *, device: Any = None) -> tuple[Array, ...]:
    """The positions of the diagonal of an array of `ndim` axes of `n` elements: views of one array.

    >>> kw.diag_indices(2)[1].numpy()
    array([0, 1])
    """
    return (arange(n, device=device),) * operator.index(ndim)


def diag_indices_from(x: Any) -> tuple[Array, ...]:
    """diag_indices() for an array, on its device. InvalidArgument unless all of its axes, two or
    more, have one extent.

    >>> kw.diag_indices_from(kw.ones((2, 2)))[0].numpy()
    array([0, 1])
    """
    array: Array = device_array(x)
    if array.ndim < 2 or len(set(array.shape)) != 1:
        raise InvalidArgument(
            f"a diagonal needs two axes or more of one extent, got shape {array.shape}"
        )
    return diag_indices(array.shape[0], array.ndim, device=array.device)


def indices(
    dimensions: Sequence[int], dtype: Any = "int64", sparse: bool = False, *, device: Any = None
) -> Any:
    """The positions of a grid: element [d, i, j, ...] is the position along axis d. With `sparse` a
    tuple of arrays that broadcast to the grid.

    >>> kw.indices((2, 2)).numpy().tolist()
    [[[0, 0], [1, 1]], [[0, 1], [0, 1]]]
    """
    import kernwright as kw

    shape = tuple(operator.index(extent) for extent in dimensions)
    lines = tuple(
        arange(extent, dtype=dtype, device=device).reshape(
            tuple(extent if at == d else 1 for at in range(len(shape)))
        )
        for d, extent in enumerate(shape)
    )
    if sparse:
        return lines
    if not lines:
        return kw.empty((0,), dtype, device=device)
    return kw.stack([line._broadcast(shape) for line in lines])


def unravel_index(
    indices: Any, shape: Any, order: str = "C", *, mode: str | None = None
) -> tuple[Array, ...]:
    """For each axis of an array of `shape` the positions of the elements that `indices` count, row
    by row (order="C") or column by column ("F").

    Integers of the host are checked. Those of the device are with ``mode="raise"`` alone, which
    waits for the device; else one outside gives positions outside. InvalidArgument for indices
    outside, ArgumentError for other types.

    >>> [part.numpy().tolist() for part in kw.unravel_index(kw.asarray([5, 7]), (3, 4))]
    [[1, 1], [1, 3]]
    """
    import kernwright as kw

    extents = tuple(operator.index(n) for n in (shape if isinstance(shape, Sequence) else (shape,)))
    turned = _turned(order)
    if mode not in (None, "raise"):
        raise InvalidArgument(f'mode is "raise" or None, got {mode!r:.40}')
    given = indices if isinstance(indices, Array) else np.asarray(indices)
    _require_integers(given.dtype)
    if given is not indices or mode == "raise":
        outside: Any = (given < 0) | (given >= math.prod(extents))
        if bool(kw.any(outside) if given is indices else outside.any()):
            raise InvalidArgument(f"an index is out of bounds for an array of shape {extents}")
    flat = given if isinstance(given, Array) else _from_numpy(given, None)
    split = _split_positions(
        flat.reshape(-1).astype(np.int64, copy=False), extents[::-1] if turned else extents
    )
    parts = [split[d].reshape(flat.shape) for d in range(len(extents))]
    return tuple(parts[::-1] if turned else parts)


def _turned(order: str) -> bool:
    if order not in ("C", "F"):
        raise InvalidArgument(f'order is "C" or "F", got {order!r}')
    return order == "F"


def _require_integers(dtype: Any) -> None:
    if dtype.kind not in "iu":
        raise ArgumentError(f"indices are integers, got {dtype}")


def ravel_multi_index(
    multi_index: Any, dims: Sequence[int], mode: Any = "raise", order: str = "C"
) -> Array:
    """Where the elements at the positions `multi_index`, an array for each axis, are in an array of
    shape `dims`, counted row by row (order="C") or column by column ("F"): int64. Positions of the
    host are copied to the device of the others.

    mode, one for all axes or one for each: "raise" waits for the device and raises InvalidArgument
    for a position outside, "clip" takes the nearest inside, "wrap" counts on at the other end.

    >>> kw.ravel_multi_index((kw.asarray([1, 2]), kw.asarray([0, 3])), (3, 4)).numpy()
    array([ 4, 11])
    """
    import kernwright as kw

    extents = tuple(operator.index(extent) for extent in dims)
    given = [part for part in multi_index if isinstance(part, Array)]
    device = given[0].device if given else None
    parts = [
        _from_numpy(host_index(part), device)
        if isinstance(part, HOST_TYPES)
        else device_array(part, f"index {d}")
        for d, part in enumerate(multi_index)
    ]
    modes = (mode,) * len(extents) if isinstance(mode, str) else tuple(mode)
    if not parts or not len(parts) == len(extents) == len(modes):
        raise InvalidArgument(
            f"{len(parts)} indices and {len(modes)} modes for {len(extents)} dimensions"
        )
    step, result, wrong = 1, None, None
    axes = range(len(extents)) if _turned(order) else reversed(range(len(extents)))
    for d in axes:
        part, extent = parts[d], extents[d]
        _require_integers(part.dtype)
        part = part.astype(np.int64, copy=False)
        if modes[d] == "wrap":
            part = kw.remainder(part, extent)
        elif modes[d] == "clip":
            part = kw.clip(part, 0, extent - 1)
        elif modes[d] == "raise":
            outside = kw.logical_or(part < 0, part >= extent)
            wrong = outside if wrong is None else kw.logical_or(wrong, outside)
        else:
            raise InvalidArgument(f'mode is "raise", "wrap" or "clip", got {modes[d]!r}')
        result = part * step if result is None else result + part * step
        step *= extent
    if wrong is not None and bool(kw.any(wrong)):
        raise InvalidArgument(f"positions are out of bounds for an array of shape {extents}")
    assert result is not None
    return result


def ix_(*args: Any) -> tuple[Array, ...]:
    """Vectors of positions as arrays that index a grid: x[kw.ix_(rows, columns)]. Vectors of bools
    stand for where they are true, and are waited for. Those of the host are copied to the current
    device.

    >>> x = kw.reshape(kw.arange(6), (2, 3))
    >>> x[kw.ix_(kw.asarray([1, 0]), kw.asarray([0, 2]))].numpy()
    array([[3, 5],
           [0, 2]])
    """
    import kernwright as kw

    parts = []
    for d, given in enumerate(args):
        part: Array = (
            _from_numpy(host_index(given), None)
            if isinstance(given, HOST_TYPES)
            else device_array(given, f"argument {d}")
        )
        if part.ndim != 1:
            raise InvalidArgument(f"argument {d} of ix_() has one dimension, got {part.shape}")
        if part.dtype == bool:
            part = kw.flatnonzero(part)
        parts.append(part.reshape((1,) * d + (part.size,) + (1,) * (len(args) - d - 1)))
    return tuple(parts)
