"""Elements at positions that arrays hold: take, gather, scatter and their kin.

Negative positions count from the end. A position beyond an end raises IndexError, if the host has
it: sequences, NumPy's arrays. Those of the device are not looked at: one beyond an end reads the
nearest element and writes nothing. mode="raise" waits for the device and looks at them, too;
mode="clip" takes the nearest element wherever positions are, the first one for those below 0, and
mode="wrap" counts on at the other end, as in NumPy. What raises has read and written nothing.
"""

from __future__ import annotations

from typing import Any

from kernwright._array.creation import HOST_TYPES
from kernwright._array.methods import without_leading_ones
from kernwright._array.operands import (
    axis_of,
    common_shape,
    device_array,
    host_index,
    index_array,
    require_inside,
    stored,
    values_like,
)
from kernwright._core import Array, _add_at, _count_outside, _gather, _put_at, _scatter, _take_at
from kernwright.errors import InvalidArgument

__all__ = ["gather", "put", "put_along_axis", "scatter", "take", "take_along_axis"]


def take(
    x: Any, /, indices: Any, axis: int | None = None, out: Array | None = None,
    mode: str | None = None,
) -> Array:  # fmt: skip
    """The elements of `x` at `indices` along `axis`: result[a, m, b] = x[a, indices[m], b].

    `indices`: integers of any shape, which takes the place of `axis` in the result; sequences and
    NumPy's are copied to the device. axis=None takes from the flattened array. Any dtype of `x`.
    Positions of the host beyond an end raise IndexError, those of the device take the nearest
    element; mode="raise" raises for both. mode="clip" takes the nearest element for both, the first
    one for positions below 0; mode="wrap" counts on at the other end.
    `out` takes the result. ValueError for an axis or mode that is none.

    >>> kw.take(kw.arange(5), [0, -1]).numpy()
    array([0, 4])
    """
    x = device_array(x)
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = axis_of(axis, x.ndim)
    index = _positions(indices, x, axis, mode)
    made: Array = _take_at(x, [axis], [index], axis)
    if out is None:
        return made
    return stored(made, out)


def take_along_axis(x: Any, /, indices: Any, axis: int = -1, *, mode: str | None = None) -> Array:
    """result[i, j, k] = x[i, indices[i, j, k], k], here for axis 1.

    Both have the same number of axes, and all but `axis` broadcast. What argsort and argmax (with
    keepdims) return fits. mode: as for take(). ValueError where shapes do not fit; IndexError.

    >>> x = kw.asarray([[30, 10], [20, 40]])
    >>> kw.take_along_axis(x, kw.argsort(x)).numpy()
    array([[10, 30],
           [20, 40]])
    """
    x = device_array(x)
    axis = axis_of(axis, x.ndim)
    x, index = _aligned(x, _positions(indices, x, axis, mode), axis)
    return _gather(x, axis, index)


def put_along_axis(
    x: Any, indices: Any, values: Any, axis: int, *, mode: str | None = None,
    unique_indices: bool = False,
) -> None:  # fmt: skip
    """x[i, indices[i, j, k], k] = values[i, j, k], here for axis 1, in place.

    `values` broadcast to the shape of `indices`. Of equal places the last one wins.
    unique_indices=True promises that no places are equal, and saves a pass. ValueError where shapes
    do not fit or `x` is read-only; IndexError with mode="raise".

    >>> x = kw.zeros((2, 2))
    >>> kw.put_along_axis(x, kw.asarray([[1], [0]]), 5, 1)
    >>> x.numpy()
    array([[0., 5.],
           [5., 0.]], dtype=float32)
    """
    x = device_array(x)
    axis = axis_of(axis, x.ndim)
    wide, index = _aligned(x, _positions(indices, x, axis, mode), axis)
    if wide.shape != x.shape:
        raise InvalidArgument(
            f"Incompatible dimensions: indices of shape {index.shape} do not fit into an array of "
            f"shape {x.shape}"
        )
    source = without_leading_ones(values_like(values, x), index.ndim)._broadcast(index.shape)
    _scatter(x, axis, index, source, unique_indices, False)


def gather(x: Any, axis: int, index: Any, *, mode: str | None = None) -> Array:
    """torch's gather: result[i, j, k] = x[i, index[i, j, k], k], here for axis 1.

    `index` has as many axes as `x`, and none but `axis` is longer; nothing broadcasts. The result
    has its shape. ValueError where shapes do not fit; IndexError with mode="raise".

    >>> x = kw.asarray([[1, 2], [3, 4]])
    >>> kw.gather(x, 1, kw.asarray([[1], [0]])).numpy()
    array([[2],
           [3]])
    """
    x = device_array(x)
    axis = axis_of(axis, x.ndim)
    index = _positions(index, x, axis, mode, "index")
    return _gather(x, axis, index)


def scatter(
    x: Any, axis: int, index: Any, src: Any, *, reduce: str | None = None, mode: str | None = None,
    unique_indices: bool = False,
) -> Array:  # fmt: skip
    """torch's scatter: a copy of `x` in which [i, index[i, j, k], k] is src[i, j, k] (axis 1).

    `index` as for gather(); `src`: a number, or an array no shorter than `index` along any axis,
    whose first elements are taken. reduce="add" adds to what is there, in the order of `index`
    and so with the same result each time; without it the last of equal positions wins
    (unique_indices: see put_along_axis()). ValueError, ArgumentError; IndexError with mode="raise".

    >>> x, index = kw.zeros(3), kw.asarray([2, 0, 2])
    >>> kw.scatter(x, 0, index, kw.asarray([1.0, 2.0, 3.0]), reduce="add").numpy()
    array([2., 0., 4.], dtype=float32)
    """
    result = device_array(x).copy()
    axis = axis_of(axis, result.ndim)
    index = _positions(index, result, axis, mode, "index")
    add = _adds(reduce)
    values = values_like(src, result)
    if values.ndim == 0:
        values = values._broadcast(index.shape)
    if values.ndim != index.ndim or any(
        have < need for have, need in zip(values.shape, index.shape, strict=True)
    ):
        raise InvalidArgument(
            f"Incompatible dimensions: src of shape {values.shape} has no element for each of "
            f"the index of shape {index.shape}"
        )
    values = values[tuple(slice(extent) for extent in index.shape)]
    _scatter(result, axis, index, values, unique_indices, add)
    return result


def put(
    x: Any, indices: Any, values: Any, /, axis: int | None = None, *, reduce: str | None = None,
    mode: str | None = None, unique_indices: bool = False,
) -> None:  # fmt: skip
    """x[a, indices[m], b] = values[a, m, b] along `axis`, in place; axis=None: of x.reshape(-1).

    `values` broadcast to what take() returns for the same indices. reduce="add" adds each of them
    in order, as NumPy's add.at: an embedding's gradient. Otherwise the last of equal positions wins
    (unique_indices: see put_along_axis()). ValueError; IndexError with mode="raise".

    >>> x = kw.zeros(4)
    >>> kw.put(x, kw.asarray([1, 3]), 5)
    >>> x.numpy()
    array([0., 5., 0., 5.], dtype=float32)
    """
    x = device_array(x)
    add = _adds(reduce)
    if axis is None and not x.is_contiguous:
        flat = x.reshape(-1)
        put(flat, indices, values, reduce=reduce, mode=mode, unique_indices=unique_indices)
        x[...] = flat.reshape(x.shape)
        return
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = axis_of(axis, x.ndim)
    index = _positions(indices, x, axis, mode)
    given = without_leading_ones(values_like(values, x), x.ndim - 1 + index.ndim)
    if add:
        _add_at(x, [axis], [index], axis, given)
    else:
        _put_at(x, [axis], [index], axis, given, unique_indices)


def _adds(reduce: str | None) -> bool:
    if reduce not in (None, "add"):
        raise InvalidArgument(f'reduce is None or "add", got {reduce!r}')
    return reduce is not None


def _positions(indices: Any, x: Array, axis: int, mode: str | None, name: str = "indices") -> Array:
    """Positions along an axis of `x`, on its device, looked at as `mode` says."""
    if mode not in (None, "clip", "raise", "wrap"):
        raise InvalidArgument(f'mode is "clip", "raise", "wrap" or None, got {mode!r}')
    extent = x.shape[axis]
    if isinstance(indices, HOST_TYPES):
        values = host_index(indices)
        if mode not in ("clip", "wrap") and values.dtype.kind != "b":
            require_inside(values, extent, axis)
        index = index_array(values, x, name)
    else:
        index = index_array(indices, x, name)
        wrong = _count_outside(index, extent) if mode == "raise" and extent > 0 else 0
        if wrong:
            raise IndexError(
                f"{wrong} of {index.size} indices are out of bounds for axis {axis} with size "
                f"{extent}"
            )
    if extent == 0 and index.size > 0:
        raise IndexError(f"there is no element to index along axis {axis} with size 0")
    if mode in ("clip", "wrap") and extent > 0:
        from kernwright._array.elementwise import clip, remainder

        # Positions are compared in 64 bits, because the extent may not fit their own type.
        wide = index if index.dtype.name == "uint64" else index.astype("int64", copy=False)
        return remainder(wide, extent) if mode == "wrap" else clip(wide, 0, extent - 1)
    return index


def _aligned(x: Array, index: Array, axis: int) -> tuple[Array, Array]:
    """Both broadcast along all axes but one."""
    if index.ndim != x.ndim:
        raise InvalidArgument(
            f"Incompatible dimensions: indices of shape {index.shape} need as many axes as the "
            f"array of shape {x.shape}"
        )
    shape = common_shape(
        (*x.shape[:axis], 1, *x.shape[axis + 1 :]),
        (*index.shape[:axis], 1, *index.shape[axis + 1 :]),
    )

    def wide(array: Array) -> Array:
        wanted = (*shape[:axis], array.shape[axis], *shape[axis + 1 :])
        return array if array.shape == wanted else array._broadcast(wanted)

    return wide(x), wide(index)
