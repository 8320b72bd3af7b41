"""Sets of the elements of arrays. As their sizes are known on the device only, calls wait."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernwright import _core
from kernwright._array.composed.ordering import lexsort
from kernwright._array.operands import axis_of, common_dtype, device_array
from kernwright._core import Array
from kernwright.errors import InvalidArgument

__all__ = ["intersect1d", "setdiff1d", "setxor1d", "union1d", "unique"]


def unique(
    x: Any, /, return_index: bool = False, return_inverse: bool = False,
    return_counts: bool = False, axis: int | None = None, *, equal_nan: bool = True,
    sorted: bool = True,
) -> Any:  # fmt: skip
    """NumPy's unique(): the values, ascending, alone, or with what else is asked for, in a tuple.

    The order is (values, indices, inverse_indices, counts). `axis`: the different parts of `x`
    along it, in the order of their first elements, then of their second, and so on; the inverse
    indices have one dimension then. All NaN are one value; with equal_nan=False, as in
    unique_all(), each of them is a value. The call waits for the number of values. Values always
    rise, also with sorted=False, which allows any order. AxisError.

    >>> kw.unique(kw.asarray([5, 7, 5]), return_counts=True)[1].numpy()
    array([2, 1])
    >>> kw.unique(kw.asarray([[3, 1], [1, 2], [3, 1]]), axis=0).numpy()
    array([[1, 2],
           [3, 1]])
    """
    asked = (bool(return_index), bool(return_inverse), bool(return_counts))
    if axis is not None:
        values, *rest = _unique_parts(device_array(x), axis, equal_nan)
    else:
        values, *rest = _core._unique(x, *asked)
        if equal_nan and values.dtype.kind not in "iub":
            values, rest = _one_nan(values, rest, asked)
    parts = [part for part, wanted in zip(rest, asked, strict=True) if wanted]
    return (values, *parts) if parts else values


def _one_nan(values: Array, rest: list[Any], asked: tuple[bool, ...]) -> tuple[Array, list[Any]]:
    """All NaN, the last of the values, as one."""
    import kernwright as kw

    count = int(kw.sum(kw.isnan(values)))
    if count < 2:
        return values, rest
    kept = values.size - count + 1
    index, inverse, counts = rest
    if asked[0]:
        index = kw.concat([index[: kept - 1], kw.min(index[kept - 1 :], keepdims=True)])
    if asked[1]:
        inverse = kw.minimum(inverse, kept - 1)
    if asked[2]:
        counts = kw.concat([counts[: kept - 1], kw.sum(counts[kept - 1 :], keepdims=True)])
    return values[:kept], [index, inverse, counts]


def _unique_parts(x: Array, axis: int, equal_nan: bool) -> tuple[Array, ...]:
    import kernwright as kw

    at = axis_of(axis, x.ndim)
    moved = kw.moveaxis(x, at, 0)
    count = moved.shape[0]
    width = int(np.prod(moved.shape[1:], dtype=np.int64))
    rows = moved.reshape((count, width))
    if count == 0 or width == 0:
        kept = min(count, 1)
        inverse = kw.zeros(count, "int64", device=x.device)
        counts = kw.full(kept, count, "int64", device=x.device)
        return x[(*(slice(None),) * at, slice(kept))], inverse[:kept], inverse, counts
    order = lexsort([rows[:, column] for column in reversed(range(width))])
    ordered = kw.take(rows, order, axis=0)
    differs = kw.not_equal(ordered[1:], ordered[:-1])
    if equal_nan and x.dtype.kind not in "iub":
        both = kw.logical_and(kw.isnan(ordered[1:]), kw.isnan(ordered[:-1]))
        differs = kw.logical_and(differs, kw.logical_not(both))
    first = kw.ones(1, "bool", device=x.device)
    starts = kw.concat([first, kw.any(differs, axis=1)])
    places = kw.flatnonzero(starts)
    inverse = kw.empty_like(order)
    kw.put(inverse, order, kw.cumulative_sum(starts) - 1, unique_indices=True)
    index = kw.take(order, places)
    end = kw.full(1, count, "int64", device=x.device)
    counts = kw.diff(places, append=end)
    return kw.take(x, index, axis=at), index, inverse, counts


def _pair(ar1: Any, ar2: Any) -> tuple[Array, Array]:
    """Both flat, in their common dtype."""
    first, second = device_array(ar1, "ar1"), device_array(ar2, "ar2")
    if first.device != second.device:
        raise InvalidArgument(f"ar1 is on {first.device}, ar2 on {second.device}: not the same "
                              "device; copy one with .to(device)")  # fmt: skip
    dtype = common_dtype([first, second])
    return first.reshape(-1).astype(dtype, copy=False), second.reshape(-1).astype(dtype, copy=False)


def union1d(ar1: Any, ar2: Any) -> Array:
    """The different elements of both arrays, ascending; all NaN are one.

    >>> kw.union1d(kw.asarray([3, 1]), kw.asarray([2, 3])).numpy()
    array([1, 2, 3])
    """
    import kernwright as kw

    made: Array = unique(kw.concat(list(_pair(ar1, ar2))))
    return made


def intersect1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False
) -> Any:
    """The different elements that are in both arrays, ascending, and with `return_indices` where
    they are first in each, flat, in a tuple. `assume_unique`: no array has an element twice.

    >>> kw.intersect1d(kw.asarray([3, 1, 3]), kw.asarray([2, 3])).numpy()
    array([3])
    """
    import kernwright as kw

    first, second = _pair(ar1, ar2)
    if _mixes_signs(ar1, ar2):
        made = _intersect_integers(ar1, ar2, assume_unique)
        return made if return_indices else made[0]
    size, places = first.size, None
    if not assume_unique:
        first, index1 = unique(first, return_index=True)
        second, index2 = unique(second, return_index=True)
        size, places = first.size, (index1, index2)
    whole = kw.concat([first, second])
    order = kw.argsort(whole)
    ordered = kw.take(whole, order)
    at = kw.flatnonzero(kw.equal(ordered[1:], ordered[:-1]))
    values = kw.take(ordered, at) if ordered.size else ordered
    if not return_indices:
        return values
    found = [kw.take(order, at), kw.take(order, at + 1) - size] if order.size else [order, order]
    if places is not None and order.size:
        found = [kw.take(index, one) if index.size else one
                 for index, one in zip(places, found, strict=True)]  # fmt: skip
    return (values, *found)


def _mixes_signs(ar1: Array, ar2: Array) -> bool:
    """Integers whose common dtype is float64, in which neighbours above 2^53 are equal."""
    return {ar1.dtype.kind, ar2.dtype.kind} == {"i", "u"} and common_dtype([ar1, ar2]).kind == "f"


def _intersect_integers(ar1: Array, ar2: Array, assume_unique: bool) -> tuple[Array, ...]:
    """Compared by their values; what both have fits into int64."""
    import kernwright as kw

    flat = [ar1.reshape(-1), ar2.reshape(-1)]
    places = [kw.flatnonzero(kw.isin(flat[i], flat[1 - i])) for i in (0, 1)]
    both = [one[at].astype("int64") for one, at in zip(flat, places, strict=True)]
    first, second = both
    values, *found = intersect1d(first, second, assume_unique, True)
    return (values.astype("float64"), *(at[i] for at, i in zip(places, found, strict=True)))


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Array:
    """The different elements of `ar1` that are not in `ar2`, ascending; with `assume_unique` in
    their order.

    >>> kw.setdiff1d(kw.asarray([3, 1, 2]), kw.asarray([2])).numpy()
    array([1, 3])
    """
    import kernwright as kw

    _pair(ar1, ar2)  # says what does not fit
    first, second = (device_array(each).reshape(-1) for each in (ar1, ar2))
    if not assume_unique:
        first = unique(first)
    return first[kw.isin(first, second, invert=True)]


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Array:
    """The different elements that are in one array only, ascending. `assume_unique`: no array has
    an element twice.

    >>> kw.setxor1d(kw.asarray([3, 1]), kw.asarray([2, 3])).numpy()
    array([1, 2])
    """
    import kernwright as kw

    first, second = _pair(ar1, ar2)
    if _mixes_signs(ar1, ar2):
        parts = [setdiff1d(ar1, ar2, assume_unique), setdiff1d(ar2, ar1, assume_unique)]
        return kw.sort(kw.concat(parts))
    if not assume_unique:
        first, second = unique(first), unique(second)
    ordered = kw.sort(kw.concat([first, second]))
    if ordered.size < 2:
        return ordered
    end = kw.ones(1, "bool", device=ordered.device)
    differs = kw.concat([end, kw.not_equal(ordered[1:], ordered[:-1]), end])
    return ordered[kw.logical_and(differs[1:], differs[:-1])]
