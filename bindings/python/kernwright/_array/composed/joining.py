"""Joining by place: rows, columns, layers and blocks; elements put in, left out, laid out anew."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from kernwright._array.creation import asarray, full
from kernwright._array.manipulation import concat, tile
from kernwright._array.operands import axes_of, axis_of, common_dtype, device_array, values_like
from kernwright._core import Array, _from_numpy, _result_type
from kernwright.errors import ArgumentError, InvalidArgument

__all__ = [
    "append",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block",
    "column_stack",
    "delete",
    "dstack",
    "hstack",
    "insert",
    "resize",
    "trim_zeros",
    "vstack",
]


def _each(arrays: tuple[Any, ...], shaped: Any) -> Any:
    made = [shaped(device_array(x, f"array {i}")) for i, x in enumerate(arrays)]
    return made[0] if len(made) == 1 else tuple(made)


def atleast_1d(*arrays: Any) -> Any:
    """Views with one dimension at least; a tuple of several.

    >>> kw.atleast_1d(kw.asarray(3)).shape
    (1,)
    """
    return _each(arrays, lambda x: x if x.ndim else x.reshape(1))


def atleast_2d(*arrays: Any) -> Any:
    """Views with two dimensions at least: a vector as one row.

    >>> kw.atleast_2d(kw.ones(3)).shape
    (1, 3)
    """
    return _each(arrays, _matrix)


def atleast_3d(*arrays: Any) -> Any:
    """Views with three dimensions at least: a vector of n as (1, n, 1), a matrix as (m, n, 1).

    >>> kw.atleast_3d(kw.ones(3)).shape
    (1, 3, 1)
    """
    return _each(arrays, _layers)


def _matrix(x: Array) -> Array:
    return x if x.ndim >= 2 else x.reshape(1, -1)


def _layers(x: Array) -> Array:
    return x if x.ndim >= 3 else _matrix(x)[..., None]


def _listed(tup: Any) -> list[Array]:
    return [device_array(x, f"array {i}") for i, x in enumerate(tup)]


def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Array:
    """The arrays side by side: along the second axis, vectors along their only one; `dtype` and
    `casting` as concat() takes them.

    >>> kw.hstack([kw.asarray([1, 2]), kw.asarray([3])]).numpy()
    array([1, 2, 3])
    """
    parts = [x if x.ndim else x.reshape(1) for x in _listed(tup)]
    axis = 0 if parts and parts[0].ndim == 1 else 1
    return concat(parts, axis=axis, dtype=dtype, casting=casting)


def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Array:
    """The arrays below each other, vectors as rows; `dtype` and `casting` as concat() takes them.

    >>> kw.vstack([kw.asarray([1, 2]), kw.asarray([3, 4])]).numpy()
    array([[1, 2],
           [3, 4]])
    """
    return concat([_matrix(x) for x in _listed(tup)], axis=0, dtype=dtype, casting=casting)


def dstack(tup: Any) -> Array:
    """The arrays along the third axis, as atleast_3d() shapes them.

    >>> kw.dstack([kw.asarray([1, 2]), kw.asarray([3, 4])]).shape
    (1, 2, 2)
    """
    return concat([_layers(x) for x in _listed(tup)], axis=2)


def column_stack(tup: Any) -> Array:
    """Vectors as columns, beside each other and beside matrices.

    >>> kw.column_stack([kw.asarray([1, 2]), kw.asarray([3, 4])]).numpy()
    array([[1, 3],
           [2, 4]])
    """
    return concat([x if x.ndim >= 2 else x.reshape(-1, 1) for x in _listed(tup)], axis=1)


def block(arrays: Any) -> Array:
    """Nested lists of arrays and numbers as one: the innermost lists are joined along the last
    axis, those around them along the last but one, and so on.

    Numbers are weak beside the dtype of the arrays, and NumPy's arrays are copied to the device.
    InvalidArgument for lists of unequal depth and for empty lists.

    >>> a, b = kw.ones((2, 2)), kw.zeros((2, 1))
    >>> kw.block([[a, b], [b, a]]).shape
    (4, 3)
    """
    depth = _depth(arrays)
    leaves = _on_device(_leaves(arrays))
    if depth == 0:
        return leaves[0].copy()
    ndim = max(depth, *(x.ndim for x in leaves), 1)
    return _block(arrays, ndim, depth, iter(leaves))


def _depth(arrays: Any) -> int:
    if not isinstance(arrays, list):
        return 0
    depths = {_depth(part) for part in arrays}
    if len(depths) != 1:
        raise InvalidArgument("block() takes lists that are not empty and of equal depth")
    return depths.pop() + 1


def _leaves(arrays: Any) -> list[Any]:
    if not isinstance(arrays, list):
        return [arrays]
    return [leaf for part in arrays for leaf in _leaves(part)]


def _on_device(leaves: list[Any]) -> list[Array]:
    """Numbers get the dtype that they have beside the arrays; alone they are as in asarray()."""
    arrays: list[Array | None] = [None] * len(leaves)
    numbers = (bool, int, float, complex)
    if any(isinstance(leaf, tuple) for leaf in leaves):
        raise ArgumentError("block() takes lists: a tuple is neither an array nor a list of them")
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, (np.ndarray, np.generic)):
            arrays[i] = asarray(leaf)
        elif not isinstance(leaf, numbers):
            arrays[i] = device_array(leaf, f"array {i}")
    known = [x for x in arrays if x is not None]
    if not known:
        return list(asarray(leaves))
    example = full((), 0, common_dtype(known), device=known[0].device)

    def beside(value: Any) -> Array:
        return full((), value, _result_type(example, value), device=example.device)

    return [beside(leaves[i]) if x is None else x for i, x in enumerate(arrays)]


def _block(arrays: Any, ndim: int, depth: int, leaves: Iterator[Array]) -> Array:
    if depth == 0:
        x = next(leaves)
        return x.reshape((1,) * (ndim - x.ndim) + x.shape)
    return concat([_block(part, ndim, depth - 1, leaves) for part in arrays], axis=ndim - depth)


def _beside(value: Any, x: Array) -> Array:
    """Values of the host on the device; Python's numbers are weak beside the dtype of `x`."""
    if isinstance(value, Array):
        return value
    if not isinstance(value, (np.ndarray, np.generic)) and hasattr(value, "__dlpack__"):
        return device_array(value, "values")
    host = np.asarray(value)
    if not isinstance(value, (np.ndarray, np.generic)):
        if host.dtype.kind not in "biufc":
            raise ArgumentError(f"values are numbers or arrays, got {value!r:.60}")
        example = {"b": True, "i": 0, "u": 0, "f": 0.0, "c": 0j}[host.dtype.kind]
        host = host.astype(x.dtype if host.size == 0 else _result_type(x, example))
    return _from_numpy(host, x.device)


def append(x: Any, values: Any, axis: int | None = None) -> Array:
    """`x` and behind it `values` along `axis`; without an axis both flat. `values`: an array, or
    numbers of the host, which are copied to the device.

    >>> kw.append(kw.asarray([1, 2]), [3, 4]).numpy()
    array([1, 2, 3, 4])
    """
    array: Array = device_array(x)
    return concat([array, _beside(values, array)], axis=axis)


def delete(x: Any, obj: Any, axis: int | None = None) -> Array:
    """`x` without the positions `obj` along `axis` (None: of all elements, flat): an int, a slice,
    ints or bools. Arrays of the device are waited for, because they decide the extent of the
    result. IndexError for a position of the host outside.

    >>> kw.delete(kw.asarray([5, 6, 7]), 1).numpy()
    array([5, 7])
    """
    import kernwright as kw

    array: Array = device_array(x)
    if axis is None:
        array, axis = array.reshape(-1), 0
    at = axis_of(axis, array.ndim)
    extent, front = array.shape[at], (slice(None),) * at
    if isinstance(obj, Array):
        keep = kw.ones(extent, "bool", device=array.device)
        if obj.dtype == bool:
            _same_extent(obj.shape, extent)
            keep = kw.logical_not(obj)
        else:
            kw.put(keep, obj.reshape(-1), False)
        return kw.take(array, kw.flatnonzero(keep), axis=at)
    if isinstance(obj, (int, np.integer)) and not isinstance(obj, bool):
        place = operator.index(obj)
        if not -extent <= place < extent:
            raise IndexError(f"index {place} is out of bounds for axis {at} with size {extent}")
        place %= extent
        before, behind = array[(*front, slice(place))], array[(*front, slice(place + 1, None))]
        return concat([before, behind], axis=at)
    if not isinstance(obj, slice) and np.asarray(obj).dtype == bool:
        _same_extent(np.shape(obj), extent)
    kept = np.delete(np.arange(extent), obj)
    return kw.take(array, _from_numpy(kept, array.device), axis=at)


def _same_extent(shape: tuple[int, ...], extent: int) -> None:
    if shape != (extent,):
        raise InvalidArgument(
            f"Incompatible dimensions: a mask of shape {shape} for {extent} elements"
        )


def insert(x: Any, obj: Any, values: Any, axis: int | None = None) -> Array:
    """`x` with `values`, in its dtype, before the positions `obj` along `axis` (None: of all
    elements, flat): an int, a slice, ints or bools, as NumPy has it. `values` broadcast. A `obj`
    on the device is copied to the host. IndexError for a position outside.

    >>> kw.insert(kw.asarray([1, 2, 3]), 1, 9).numpy()
    array([1, 9, 2, 3])
    """
    import kernwright as kw

    array: Array = device_array(x)
    if axis is None:
        array, axis = array.reshape(-1), 0
    at = axis_of(axis, array.ndim)
    given = values_like(values, array)
    where: Any = obj.numpy() if isinstance(obj, Array) else obj
    extent = array.shape[at]
    scalar = not isinstance(where, slice) and np.ndim(where) == 0
    if given.ndim < array.ndim:
        given = given.reshape((1,) * (array.ndim - given.ndim) + given.shape)
    if scalar:  # the first axis of the values runs along `axis`
        given = kw.moveaxis(given, 0, at)
    places = np.zeros(0, np.int64)
    count = given.shape[at]
    if not scalar:
        places = np.arange(extent)[where] if isinstance(where, slice) else np.asarray(where)
        places = np.flatnonzero(places) if places.dtype == bool else places.reshape(-1)
        places = places.astype(np.int64) if places.size == 0 else places
        count = count if places.size == 1 else places.size
    order = np.insert(np.arange(extent), where if scalar else places, extent + np.arange(count))
    shape = (*array.shape[:at], count, *array.shape[at + 1 :])
    whole = concat([array, given._broadcast(shape)], axis=at)
    return kw.take(whole, _from_numpy(order, array.device), axis=at)


def resize(x: Any, new_shape: Any) -> Array:
    """The elements of `x`, row by row and again from the first, in another shape; zeros where `x`
    has none.

    >>> kw.resize(kw.asarray([1, 2, 3]), (2, 2)).numpy()
    array([[1, 2],
           [3, 1]])
    """
    import kernwright as kw

    array: Array = device_array(x)
    given = new_shape if isinstance(new_shape, Sequence) else (new_shape,)
    shape = tuple(operator.index(extent) for extent in given)
    if min(shape, default=0) < 0:
        raise InvalidArgument(f"a shape has no negative extents: {shape}")
    size = math.prod(shape)
    if array.size == 0:
        return kw.zeros(shape, array.dtype, device=array.device)
    flat = array.reshape(-1)
    if size > array.size:
        flat = tile(flat, -(-size // array.size))
    return flat[:size].copy().reshape(shape)


def trim_zeros(x: Any, trim: str = "fb", axis: Any = None) -> Array:
    """A view without the zeros at the front ("f") and at the back ("b") along `axis` (None: all
    axes). Waits for where they end. InvalidArgument for another `trim` and an axis named twice.

    >>> kw.trim_zeros(kw.asarray([0, 1, 0, 2, 0])).numpy()
    array([1, 0, 2])
    """
    import kernwright as kw

    array: Array = device_array(x)
    if trim.lower().strip("fb"):
        raise InvalidArgument(f'trim is made of "f" and "b", got {trim!r}')
    axes = range(array.ndim) if axis is None else axes_of(axis, array.ndim)
    cut: list[Any] = [slice(None)] * array.ndim
    for at in axes:
        others = tuple(d for d in range(array.ndim) if d != at)
        found = kw.any(array != 0, others) if others else array != 0
        places = np.flatnonzero(found.numpy())
        first, last = (places[0], places[-1] + 1) if places.size else (0, 0)
        start = int(first) if "f" in trim.lower() else 0
        stop = int(last) if "b" in trim.lower() or not places.size else array.shape[at]
        cut[at] = slice(start, stop)
    return array[tuple(cut)]
