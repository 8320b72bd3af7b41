"""Arrays turned, flattened and split: views wherever strides allow it."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from kernwright._array.manipulation import flip, permute_dims, swapaxes
from kernwright._array.operands import axes_of, axis_of, device_array
from kernwright._core import Array
from kernwright.errors import AxisError, InvalidArgument

__all__ = [
    "array_split",
    "dsplit",
    "fliplr",
    "flipud",
    "hsplit",
    "ravel",
    "rollaxis",
    "rot90",
    "transpose",
    "vsplit",
]


def transpose(x: Any, axes: Sequence[int] | None = None) -> Array:
    """A view whose axis i is axis axes[i] of `x`; without `axes` all in reverse.

    >>> kw.transpose(kw.ones((2, 3, 4))).shape
    (4, 3, 2)
    """
    array: Array = device_array(x)
    return permute_dims(array, tuple(reversed(range(array.ndim))) if axes is None else axes)


def ravel(x: Any, order: str = "C") -> Array:
    """The elements in one axis, row by row (order="C") or column by column ("F"): a view where
    strides allow it. InvalidArgument for another order.

    >>> kw.ravel(kw.asarray([[1, 2], [3, 4]]), "F").numpy()
    array([1, 3, 2, 4])
    """
    array: Array = device_array(x)
    if order not in ("C", "F"):
        raise InvalidArgument(f'order is "C" or "F", got {order!r}')
    return (array if order == "C" else transpose(array)).reshape(-1)


def rot90(x: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Array:
    """A view turned by `k` quarters from the first of two axes towards the second.

    >>> kw.rot90(kw.asarray([[1, 2], [3, 4]])).numpy()
    array([[2, 4],
           [1, 3]])
    """
    array: Array = device_array(x)
    first, second = _two(axes, array.ndim)
    turns = operator.index(k) % 4
    if turns == 0:
        return array[...]
    if turns == 2:
        return flip(array, axis=(first, second))
    if turns == 1:
        return swapaxes(flip(array, axis=second), first, second)
    return flip(swapaxes(array, first, second), axis=second)


def _two(axes: Any, ndim: int) -> tuple[int, int]:
    found = axes_of(tuple(axes), ndim)
    if len(found) != 2:
        raise InvalidArgument(f"rot90() turns in a plane of two axes, got {tuple(axes)}")
    return found[0], found[1]


def fliplr(x: Any) -> Array:
    """A view with the second axis in reverse. AxisError with fewer than two.

    >>> kw.fliplr(kw.asarray([[1, 2], [3, 4]])).numpy()
    array([[2, 1],
           [4, 3]])
    """
    array = _of_axes(x, 2, "fliplr")
    return flip(array, axis=1)


def flipud(x: Any) -> Array:
    """A view with the first axis in reverse. AxisError without one.

    >>> kw.flipud(kw.asarray([[1, 2], [3, 4]])).numpy()
    array([[3, 4],
           [1, 2]])
    """
    array = _of_axes(x, 1, "flipud")
    return flip(array, axis=0)


def _of_axes(x: Any, least: int, name: str) -> Array:
    array: Array = device_array(x)
    if array.ndim < least:
        raise AxisError(f"{name}() needs {least} axes or more, got shape {array.shape}")
    return array


def rollaxis(x: Any, axis: int, start: int = 0) -> Array:
    """A view with `axis` moved to where it comes before the axis `start`.

    >>> kw.rollaxis(kw.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    array: Array = device_array(x)
    moved = axis_of(axis, array.ndim)
    place = operator.index(start)
    if not -array.ndim <= place <= array.ndim:
        raise AxisError(f"start {place} is out of range for an array of {array.ndim} axes")
    place += array.ndim if place < 0 else 0
    order = [at for at in range(array.ndim) if at != moved]
    order.insert(place - (moved < place), moved)
    return permute_dims(array, order)


# ---- Parts


def array_split(x: Any, sections: Any, axis: int = 0) -> list[Array]:
    """Views of consecutive parts of `x` along `axis`: so many, the first ones longer by one where
    the extent is no multiple, or cut before each of the given positions. InvalidArgument.

    >>> [part.numpy().tolist() for part in kw.array_split(kw.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    array: Array = device_array(x)
    at = axis_of(axis, array.ndim)
    extent, front = array.shape[at], (slice(None),) * at
    sections = _on_host(sections)
    if isinstance(sections, Sequence):
        edges = [0, *(slice(None, cut).indices(extent)[1] for cut in sections), extent]
    else:
        count = operator.index(sections)
        if count <= 0:
            raise InvalidArgument(f"an array is split into one part or more, not {count}")
        size, longer = divmod(extent, count)
        edges = [i * size + min(i, longer) for i in range(count + 1)]
    pairs = itertools.pairwise(edges)
    return [array[(*front, slice(start, max(start, stop)))] for start, stop in pairs]


def _on_host(sections: Any) -> Any:
    """Positions of an array, of the device too, as a list."""
    if isinstance(sections, Array):
        sections = sections.numpy()
    return sections.tolist() if isinstance(sections, np.ndarray) else sections


def _split(x: Any, sections: Any, axis: int, least: int, name: str) -> list[Array]:
    from kernwright._array.manipulation import split

    array = _of_axes(x, least, name)
    return split(array, _on_host(sections), axis=axis)


def hsplit(x: Any, sections: Any) -> list[Array]:
    """split() along the second axis, of a vector along its only one.

    >>> [part.numpy().tolist() for part in kw.hsplit(kw.arange(4), 2)]
    [[0, 1], [2, 3]]
    """
    return _split(x, sections, 0 if device_array(x).ndim == 1 else 1, 1, "hsplit")


def vsplit(x: Any, sections: Any) -> list[Array]:
    """split() along the first axis of two or more.

    >>> [part.shape for part in kw.vsplit(kw.ones((4, 3)), 2)]
    [(2, 3), (2, 3)]
    """
    return _split(x, sections, 0, 2, "vsplit")


def dsplit(x: Any, sections: Any) -> list[Array]:
    """split() along the third axis.

    >>> [part.shape for part in kw.dsplit(kw.ones((2, 3, 4)), 2)]
    [(2, 3, 2), (2, 3, 2)]
    """
    return _split(x, sections, 2, 3, "dsplit")
