"""Arrays in other shapes and orders, joined, split, repeated. What can be a view is one."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from kernwright._array.creation import empty_like, stack_equal
from kernwright._array.operands import (
    axes_of,
    axis_of,
    common_dtype,
    common_shape,
    device_array,
    stored,
)
from kernwright._core import (
    Array,
    _can_cast,
    _concat,
    _dtype,
    _from_numpy,
    _repeat_positions,
    _take_at,
)
from kernwright.errors import ArgumentError, InvalidArgument

__all__ = [
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "cat",
    "concat",
    "expand_dims",
    "flip",
    "matrix_transpose",
    "meshgrid",
    "moveaxis",
    "permute_dims",
    "repeat",
    "repeat_interleave",
    "reshape",
    "roll",
    "split",
    "squeeze",
    "stack",
    "swapaxes",
    "tile",
    "unstack",
]


def reshape(x: Any, /, shape: Any, order: str = "C", *, copy: bool | None = None) -> Array:
    """The elements of `x`, row by row (order="C") or column by column ("F"), in another shape; one
    extent may be -1. A view if strides allow it, unless copy=True. If they do not, copy=False
    raises ValueError.

    >>> kw.reshape(kw.arange(4), (2, 2)).numpy()
    array([[0, 1],
           [2, 3]])
    """
    x = device_array(x)
    wanted = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    if order not in ("C", "F"):
        raise InvalidArgument(f'order is "C" or "F", got {order!r:.60}')
    if order == "F":
        return reshape(x.transpose(), wanted[::-1], copy=copy).transpose()
    result: Array = (x.copy() if copy else x).reshape(wanted)
    if copy is False and x.size > 0 and result.ptr != x.ptr:
        raise InvalidArgument(
            f"an array of shape {x.shape} with strides {x.strides} becomes one of shape {wanted} "
            "only by a copy"
        )
    return result


def concat(
    arrays: Sequence[Any], /, axis: int | None = 0, out: Array | None = None, *,
    dtype: Any = None, casting: str = "same_kind",
) -> Array:  # fmt: skip
    """The arrays one after the other along `axis`; axis=None joins them flattened.

    All extents but that of `axis` are the same; types are promoted as NumPy does. `dtype` is that
    of the result, if all arrays may be converted to it by NumPy's rule `casting`; or `out` takes
    the result. ValueError ("Incompatible dimensions", "same device") where they do not fit.

    >>> kw.concat([kw.zeros((2, 3)), kw.ones((1, 3))]).shape
    (3, 3)
    """
    parts = _parts(arrays, dtype, casting, out)
    if axis is None:
        parts, axis = [part.reshape(-1) for part in parts], 0
    return _joined(parts, axis_of(axis, parts[0].ndim), out)


def cat(arrays: Sequence[Any], /, axis: int | None = 0) -> Array:
    """torch's name of concat().

    >>> kw.cat([kw.zeros((2, 3)), kw.ones((2, 1))], 1).shape
    (2, 4)
    """
    return concat(arrays, axis=axis)


def stack(
    arrays: Sequence[Any], /, axis: int = 0, out: Array | None = None, *, dtype: Any = None,
    casting: str = "same_kind",
) -> Array:  # fmt: skip
    """The arrays, all of one shape, along a new axis `axis` of the result; `out`, `dtype` and
    `casting` as for concat(). ValueError.

    >>> kw.stack([kw.asarray([1, 2]), kw.asarray([3, 4])]).numpy()
    array([[1, 2],
           [3, 4]])
    """
    parts = _parts(arrays, dtype, casting, out)
    made = stack_equal(parts, axis_of(axis, parts[0].ndim + 1))
    return made if out is None else stored(made, out)


def _joined(parts: list[Array], axis: int, out: Array | None) -> Array:
    made = _concat(parts, axis)
    return made if out is None else stored(made, out)


def _parts(arrays: Sequence[Any], dtype: Any, casting: str, out: Array | None) -> list[Array]:
    """Arrays of one type."""
    if isinstance(arrays, Array):
        arrays = list(arrays)
    parts = [device_array(array, f"array {i}") for i, array in enumerate(arrays)]
    if not parts:
        raise InvalidArgument("there is no array to join")
    if dtype is None:
        wanted = common_dtype(parts)
    elif out is not None:
        raise ArgumentError("give out or dtype: the type of out is that of the result")
    else:
        wanted = np.dtype(_dtype(dtype))
        for part in parts:
            if not _may_convert(part.dtype, wanted, casting):
                raise ArgumentError(
                    f"{part.dtype} cannot be converted to {wanted} by the rule {casting!r}"
                )
    return [part if part.dtype == wanted else part.astype(wanted) for part in parts]


def _may_convert(part: np.dtype[Any], wanted: np.dtype[Any], casting: str) -> bool:
    if casting in ("safe", "same_kind"):
        return _can_cast(part, wanted, casting)
    return np.can_cast(part, wanted, casting)  # type: ignore[arg-type]


def split(x: Any, /, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Array]:
    """Views of consecutive parts of `x` along `axis`: so many of one size, or cut before each of
    the given positions. ValueError where the extent is no multiple.

    >>> [x.numpy().tolist() for x in kw.split(kw.arange(6), 3)]
    [[0, 1], [2, 3], [4, 5]]
    """
    x, sections = device_array(x), indices_or_sections
    axis = axis_of(axis, x.ndim)
    extent = x.shape[axis]
    if isinstance(sections, Sequence):
        cuts = [slice(None, cut).indices(extent)[1] for cut in sections]
    else:
        count = operator.index(sections)
        if count <= 0 or extent % count:
            raise InvalidArgument(f"an axis of {extent} elements has no {sections} equal parts")
        cuts = [extent // count * i for i in range(1, count)]
    front = (slice(None),) * axis
    return [
        x[(*front, slice(start, max(start, stop)))]
        for start, stop in zip([0, *cuts], [*cuts, extent], strict=True)
    ]


def unstack(x: Any, /, axis: int = 0) -> tuple[Array, ...]:
    """Views of `x` at each position of `axis`, which they lack.

    >>> kw.unstack(kw.asarray([[1, 2], [3, 4]]))[1].numpy()
    array([3, 4])
    """
    x = device_array(x)
    front = (slice(None),) * axis_of(axis, x.ndim)
    return tuple(x[(*front, i)] for i in range(x.shape[len(front)]))


def permute_dims(x: Any, /, axes: Sequence[int]) -> Array:
    """A view whose axis i is axis axes[i] of `x`; each is named once. ValueError.

    >>> kw.permute_dims(kw.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    x = device_array(x)
    order = axes_of(tuple(axes), x.ndim)
    if len(order) != x.ndim:
        raise InvalidArgument(f"{len(order)} axes do not order an array of {x.ndim}")
    result: Array = x.transpose(order) if order else x
    return result


def matrix_transpose(x: Any, /) -> Array:
    """A view with the last two axes exchanged.

    >>> kw.matrix_transpose(kw.asarray([[1, 2], [3, 4]])).numpy()
    array([[1, 3],
           [2, 4]])
    """
    return swapaxes(x, -1, -2)


def swapaxes(x: Any, /, axis1: int, axis2: int) -> Array:
    """A view with two axes exchanged.

    >>> kw.swapaxes(kw.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    x = device_array(x)
    first, second = axis_of(axis1, x.ndim), axis_of(axis2, x.ndim)
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    result: Array = x.transpose(order)
    return result


def moveaxis(x: Any, /, source: Any, destination: Any) -> Array:
    """A view with axes moved to other places, the rest in their order.

    >>> kw.moveaxis(kw.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = device_array(x)
    sources, targets = axes_of(source, x.ndim), axes_of(destination, x.ndim)
    if len(sources) != len(targets):
        raise InvalidArgument(f"{len(sources)} axes cannot move to {len(targets)} places")
    order = [axis for axis in range(x.ndim) if axis not in sources]
    for target, axis in sorted(zip(targets, sources, strict=True)):
        order.insert(target, axis)
    result: Array = x.transpose(order) if order else x
    return result


def expand_dims(x: Any, /, axis: Any = 0) -> Array:
    """A view with axes of extent 1 at the places `axis` (an int or several) of the result.

    >>> kw.expand_dims(kw.ones(3), 0).shape
    (1, 3)
    """
    x = device_array(x)
    count = len(axis) if isinstance(axis, Sequence) else 1
    places = axes_of(axis, x.ndim + count)
    result: Array = x[tuple(None if at in places else slice(None) for at in range(x.ndim + count))]
    return result


def squeeze(x: Any, /, axis: Any = None) -> Array:
    """A view without axes of extent 1: those of `axis`, or all. ValueError for a longer one.

    >>> kw.squeeze(kw.ones((1, 3, 1))).shape
    (3,)
    """
    x = device_array(x)
    every = tuple(at for at, extent in enumerate(x.shape) if extent == 1)
    gone = every if axis is None else axes_of(axis, x.ndim)
    for at in gone:
        if x.shape[at] != 1:
            raise InvalidArgument(f"axis {at} of shape {x.shape} has {x.shape[at]} elements, not 1")
    result: Array = (
        x[tuple(0 if at in gone else slice(None) for at in range(x.ndim))] if gone else x
    )
    return result


def flip(x: Any, /, axis: Any = None) -> Array:
    """A view with the elements along `axis` (an int, several, or all) in reverse.

    >>> kw.flip(kw.asarray([1, 2, 3])).numpy()
    array([3, 2, 1])
    """
    x = device_array(x)
    turned = range(x.ndim) if axis is None else axes_of(axis, x.ndim)
    back, ahead = slice(None, None, -1), slice(None)
    result: Array = (
        x[tuple(back if at in turned else ahead for at in range(x.ndim))] if x.ndim else x
    )
    return result


def broadcast_to(x: Any, /, shape: Any) -> Array:
    """A view of `x` in a shape that it broadcasts to: repeated elements share memory. ValueError.

    Write to a copy of it.

    >>> kw.broadcast_to(kw.asarray([1, 2]), (2, 2)).numpy()
    array([[1, 2],
           [1, 2]])
    """
    wanted = tuple(shape) if isinstance(shape, Sequence) else (operator.index(shape),)
    return device_array(x)._broadcast(wanted)


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that arrays of these shapes broadcast to; () of none. ValueError.

    >>> kw.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    for shape in shapes:
        if any(extent < 0 for extent in shape):
            raise InvalidArgument(f"a shape has no negative extents: {shape}")
    return common_shape(*shapes)


def broadcast_arrays(*arrays: Any) -> tuple[Array, ...]:
    """Views of all in the shape that they broadcast to. ValueError.

    >>> [x.shape for x in kw.broadcast_arrays(kw.ones((2, 1)), kw.ones(3))]
    [(2, 3), (2, 3)]
    """
    parts = [device_array(array, f"array {i}") for i, array in enumerate(arrays)]
    shape = common_shape(*(part.shape for part in parts))
    return tuple(part if part.shape == shape else part._broadcast(shape) for part in parts)


def meshgrid(
    *arrays: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Array, ...]:
    """Coordinates over a grid of vectors: result i varies along axis i ("ij"), or with the first
    two axes exchanged ("xy"). With `sparse` the other axes have one element, so that the results
    broadcast to the grid. Copies, or with copy=False views. ValueError.

    >>> kw.meshgrid(kw.asarray([1, 2]), kw.asarray([5, 6]))[1].numpy()
    array([[5, 5],
           [6, 6]])
    """
    if indexing not in ("xy", "ij"):
        raise InvalidArgument(f'indexing is "xy" or "ij", got {indexing!r}')
    parts = [device_array(array, f"array {i}").reshape(-1) for i, array in enumerate(arrays)]
    places = list(range(len(parts)))
    if indexing == "xy" and len(parts) > 1:
        places[:2] = [1, 0]
    lines = [
        part.reshape(tuple(part.size if at == place else 1 for at in range(len(parts))))
        for part, place in zip(parts, places, strict=True)
    ]
    whole = lines if sparse else broadcast_arrays(*lines)
    return tuple(line.copy() if copy else line for line in whole)


def roll(x: Any, /, shift: Any, axis: Any = None) -> Array:
    """A copy with the elements moved by `shift` along `axis`; those that fall off come in at the
    other end. Several axes take as many shifts, or one; axis=None rolls the flattened array.

    >>> kw.roll(kw.asarray([1, 2, 3]), 1).numpy()
    array([3, 1, 2])
    """
    x = device_array(x)
    if axis is None:
        steps = sum(shift) if isinstance(shift, Sequence) else shift
        return roll(x.reshape(-1), steps, axis=0).reshape(x.shape)
    given = tuple(axis) if isinstance(axis, Sequence) else (axis,)
    shifts = tuple(shift) if isinstance(shift, Sequence) else (shift,) * len(given)
    if len(shifts) != len(given):
        raise InvalidArgument(f"{len(shifts)} shifts do not fit {len(given)} axes")
    total: dict[int, int] = {}
    for one, steps in zip(given, shifts, strict=True):
        at = axis_of(one, x.ndim)
        total[at] = total.get(at, 0) + operator.index(steps)
    return _rolled(x, {at: n % x.shape[at] for at, n in total.items() if x.shape[at]})


def _rolled(x: Array, shifts: dict[int, int]) -> Array:
    moved = {at: steps for at, steps in shifts.items() if steps}
    if not moved or x.size == 0:
        return x.copy()
    result = empty_like(x)
    for low in itertools.product((True, False), repeat=len(moved)):
        source, target = [slice(None)] * x.ndim, [slice(None)] * x.ndim
        for (at, steps), first in zip(moved.items(), low, strict=True):
            cut = x.shape[at] - steps
            source[at] = slice(cut) if first else slice(cut, None)
            target[at] = slice(steps, None) if first else slice(steps)
        result[tuple(target)] = x[tuple(source)]
    return result


def repeat(x: Any, /, repeats: Any, axis: int | None = None) -> Array:
    """Each element along `axis` repeated: by an int, or by one count for each of them.

    axis=None repeats the flattened array. With counts on the device the call waits, because they
    decide the length of the result. ValueError.

    >>> kw.repeat(kw.asarray([1, 2]), 2).numpy()
    array([1, 1, 2, 2])
    """
    x = device_array(x)
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = axis_of(axis, x.ndim)
    if isinstance(repeats, (int, np.integer)):
        return _repeated(x, operator.index(repeats), axis)
    counts = repeats if isinstance(repeats, Array) else np.atleast_1d(np.asarray(repeats))
    if counts.dtype.kind not in "iu":
        raise ArgumentError(f"repeats are integers, got {counts.dtype}")
    if counts.shape not in ((x.shape[axis],), (1,)):
        raise InvalidArgument(
            f"Incompatible dimensions: {counts.shape} counts for {x.shape[axis]} elements"
        )
    if counts.dtype.kind == "i" and counts.size and int(counts.min()) < 0:
        raise InvalidArgument(f"elements cannot be repeated {int(counts.min())} times")
    if isinstance(counts, np.ndarray):
        wide = np.broadcast_to(counts, (x.shape[axis],))
        index = _from_numpy(np.repeat(np.arange(x.shape[axis]), wide), x.device)
    else:
        index = _repeat_positions(counts._broadcast((x.shape[axis],)))
    return _take_at(x, [axis], [index], axis)


def repeat_interleave(x: Any, repeats: Any, /, axis: int | None = None) -> Array:
    """torch's name for repeat().

    >>> kw.repeat_interleave(kw.asarray([1, 2]), 2).numpy()
    array([1, 1, 2, 2])
    """
    return repeat(x, repeats, axis)


def _repeated(x: Array, count: int, axis: int) -> Array:
    if count < 0:
        raise InvalidArgument(f"elements cannot be repeated {count} times")
    shape = x.shape
    wide = x[(*(slice(None),) * (axis + 1), None)]
    wide = wide._broadcast((*shape[: axis + 1], count, *shape[axis + 1 :])).copy()
    return wide.reshape((*shape[:axis], shape[axis] * count, *shape[axis + 1 :]))


def tile(x: Any, /, reps: Any) -> Array:
    """`x` laid out side by side, so many times along each axis, the last ones when there are
    fewer numbers. A copy.

    >>> kw.tile(kw.asarray([1, 2]), 2).numpy()
    array([1, 2, 1, 2])
    """
    x = device_array(x)
    given = tuple(reps) if isinstance(reps, Sequence) else (reps,)
    ndim = max(x.ndim, len(given))
    counts = (1,) * (ndim - len(given)) + tuple(operator.index(count) for count in given)
    if min(counts, default=0) < 0:
        raise InvalidArgument(f"tile(): an array cannot be laid out {counts} times")
    shape = (1,) * (ndim - x.ndim) + x.shape
    apart = x.reshape(tuple(itertools.chain.from_iterable((1, extent) for extent in shape)))
    pairs = tuple(itertools.chain.from_iterable(zip(counts, shape, strict=True)))
    whole = tuple(math.prod(pair) for pair in zip(counts, shape, strict=True))
    result: Array = apart._broadcast(pairs).copy().reshape(whole)
    return result
