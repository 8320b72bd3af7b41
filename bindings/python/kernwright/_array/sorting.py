"""Sorting, the largest elements, search in sorted arrays, and sets: along axes, on the device."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from kernwright import _core
from kernwright._array.creation import full
from kernwright._array.logic import greater_equal, less_equal, logical_not
from kernwright._core import Array, _adopt, _elementwise, _promote_types
from kernwright.errors import ArgumentError, InvalidArgument

__all__ = [
    "argsort",
    "isin",
    "searchsorted",
    "sort",
    "topk",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]


class TopK(NamedTuple):
    """The elements in order, and where along the axis they are (int64)."""

    values: Array
    indices: Array


class UniqueAllResult(NamedTuple):
    """Of unique_all()."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """Of unique_counts()."""

    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """Of unique_inverse()."""

    values: Array
    inverse_indices: Array


def sort(
    x: Array,
    /,
    axis: int | None = -1,
    kind: str | None = None,
    *,
    descending: bool = False,
    stable: bool | None = True,
) -> Array:
    """The elements of `x` in order along `axis` (None: of all, flat), a new array.

    Any shape and real dtype, bool too; the result has both. Always stable, with `descending` too:
    equal elements keep their order. `kind` is one of NumPy's names and changes nothing. NaN is
    above all numbers, so last, or first with `descending`; -0 and 0 are equal. InvalidArgument for
    an axis outside and another kind, ArgumentError for complex numbers.

    >>> kw.sort(kw.asarray([3, 1, 2])).numpy()
    array([1, 2, 3])
    """
    _check_kind(kind)
    x, along = _along(x, axis)
    return _core._sort(x, along, bool(descending))


def argsort(
    x: Array,
    /,
    axis: int | None = -1,
    kind: str | None = None,
    *,
    descending: bool = False,
    stable: bool | None = True,
) -> Array:
    """Where along `axis` the elements of sort() are: int64 of the shape of `x`.

    >>> kw.argsort(kw.asarray([3, 1, 2])).numpy()
    array([1, 2, 0])
    """
    _check_kind(kind)
    x, along = _along(x, axis)
    return _core._argsort(x, along, bool(descending))


def _check_kind(kind: str | None) -> None:
    """NumPy's names of algorithms."""
    if kind not in (None, "quicksort", "mergesort", "heapsort", "stable"):
        raise InvalidArgument(
            f'kind is None, "quicksort", "mergesort", "heapsort" or "stable", got {kind!r:.60}'
        )


def topk(
    x: Array,
    k: int,
    axis: int | None = -1,
    largest: bool = True,
    sorted: bool = True,
) -> TopK:
    """The `k` largest elements along `axis` (the smallest unless `largest`), and their indices.

    Both results have the shape of `x` with k in place of the axis' extent; the indices are int64.
    In order, largest (or smallest) first, also where `sorted` asks for none. Of equal elements the
    one with the lower index comes first. NaN is above all numbers, as torch has it. Any real dtype.
    InvalidArgument for an axis outside and a k that is not from 0 to the extent.

    >>> values, indices = kw.topk(kw.asarray([3, 9, 5]), 2)
    >>> values.numpy(), indices.numpy()
    (array([9, 5]), array([1, 2]))
    """
    x, along = _along(x, axis)
    return TopK(*_core._topk(x, _whole(k, "k"), along, bool(largest)))


def searchsorted(x1: Array, /, v: Any, side: str = "left", sorter: Array | None = None) -> Array:
    """Where each element of `v` would go into `x1` to keep it in order: int64, shape of `v`.

    `x1` has one dimension and rises, or does so in the order of the indices `sorter`. Before equal
    elements with side="left" (x1[i - 1] < v[j] <= x1[i]), behind them with "right"
    (x1[i - 1] <= v[j] < x1[i]). NaN is above all numbers. `v` may be a number. Arrays of two dtypes
    are compared in their common one, uint64 and signed integers by their values. An index of
    `sorter` outside counts as the nearest inside. InvalidArgument for a wrong side, wrong shapes,
    and dtypes without a common one.

    >>> kw.searchsorted(kw.asarray([10, 20, 30]), kw.asarray([20, 25])).numpy()
    array([1, 2])
    """
    if side not in ("left", "right"):
        raise InvalidArgument(f'side is "left" or "right", got {side!r}')
    x1, x2 = _pair(_operand(x1, "x1"), v, "v")
    if sorter is not None:
        sorter = _operand(sorter, "sorter")
        if sorter.dtype.kind not in "iu":
            raise ArgumentError(f"a sorter holds integers, got {sorter.dtype}")
        sorter = sorter.astype(np.int64, copy=False)
    if x1.dtype == x2.dtype:
        return _core._searchsorted(x1, x2, side == "right", sorter)
    found = _core._searchsorted(x1, x2.astype(x1.dtype), side == "right", sorter)
    behind = 0 if x1.dtype == np.uint64 else x1.size
    return _elementwise("where", (_fits(x2, x1.dtype), found, behind), None)


def isin(
    x1: Any, /, test_elements: Any, assume_unique: bool = False, invert: bool = False, *,
    kind: str | None = None,
) -> Array:  # fmt: skip
    """Whether each element of `x1` is among `test_elements`: bool of the shape of `x1`.

    With `invert` whether it is not. NaN is in nothing. Either may be a number. `test_elements` are
    sorted, then searched: O((n + m) log m) comparisons for n and m elements. `assume_unique` and
    `kind` ("sort", "table") are NumPy's, and change nothing.

    >>> kw.isin(kw.asarray([1, 2, 3]), kw.asarray([3, 1])).numpy()
    array([ True, False,  True])
    """
    if kind not in (None, "sort", "table"):
        raise InvalidArgument(f'kind is None, "sort" or "table", got {kind!r:.60}')
    if isinstance(x1, (bool, int, float, np.generic)):
        among, wanted = _pair(_operand(test_elements, "test_elements"), x1, "x1")
    else:
        wanted, among = _pair(_operand(x1, "x1"), test_elements, "test_elements")
    if wanted.dtype == among.dtype:
        return _core._isin(wanted, among, bool(invert))
    found = _core._isin(wanted.astype(among.dtype), among, False)
    inside = _fits(wanted, among.dtype)
    return logical_not(found & inside) if invert else found & inside


def unique_all(x: Array, /) -> UniqueAllResult:
    """The different elements of `x`, ascending, with the index of the first occurrence and the
    count of each.

    (values, indices, inverse_indices, counts): the values have one dimension and the dtype of `x`;
    the rest is int64. `indices` count row-major through `x`, and values[inverse_indices] is `x`
    again, in its shape. Each NaN differs from all others; of -0 and 0 the first one stands for
    both. Complex numbers rise by their real part, then by their imaginary part. As the number of
    values is known on the device only, the call waits for it: CaptureError while the stream is
    being captured.

    >>> kw.unique_all(kw.asarray([5, 7, 5])).counts.numpy()
    array([2, 1])
    """
    return UniqueAllResult(*_core._unique(x, True, True, True))


def unique_counts(x: Array, /) -> UniqueCountsResult:
    """(values, counts) of unique_all().

    >>> kw.unique_counts(kw.asarray([5, 3, 5])).counts.numpy()
    array([1, 2])
    """
    values, _, _, counts = _core._unique(x, False, False, True)
    return UniqueCountsResult(values, counts)


def unique_inverse(x: Array, /) -> UniqueInverseResult:
    """(values, inverse_indices) of unique_all().

    >>> kw.unique_inverse(kw.asarray([5, 3, 5])).inverse_indices.numpy()
    array([1, 0, 1])
    """
    values, _, inverse, _ = _core._unique(x, False, True, False)
    return UniqueInverseResult(values, inverse)


def unique_values(x: Array, /) -> Array:
    """The values of unique_all(), rising.

    >>> kw.unique_values(kw.asarray([5, 3, 5])).numpy()
    array([3, 5])
    """
    values: Array = _core._unique(x, False, False, False)[0]
    return values


# ---- Methods of Array


def sort_in_place(
    x: Array, axis: int = -1, kind: str | None = None, *, descending: bool = False,
    stable: bool | None = True,
) -> None:  # fmt: skip
    """Puts the elements of `x` in order along `axis`, as sort() does."""
    x._assign(sort(x, _whole(axis, "axis"), kind, descending=descending, stable=stable))


# ---- Arguments


def _operand(x: Any, name: str) -> Array:
    """Our array, or a view of another library's."""
    if isinstance(x, Array):
        return x
    adopted = None if isinstance(x, (bool, int, float, complex)) else _adopt(x)
    if adopted is None:
        raise ArgumentError(
            f"{name} is {x!r:.60}, and must be an array of a device: copy host data there with "
            "kernwright.asarray()"
        )
    return adopted


def _whole(value: Any, name: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} is an int, got {value!r:.60}") from None


def _along(x: Any, axis: Any) -> tuple[Array, int]:
    x = _operand(x, "x")
    if axis is None:
        return x.reshape(-1), 0
    if isinstance(axis, (bool, np.bool_)):
        raise ArgumentError(f"an axis is an int, got {axis}")
    return x, _whole(axis, "axis")


def _pair(x: Array, other: Any, name: str) -> tuple[Array, Array]:
    """`x` and the other, an array or a number, in one dtype. uint64 beside a signed integer has
    none that holds both: then one is uint64, and the other int64.
    """
    if isinstance(other, (bool, int, float, np.generic)):
        value = np.asarray(other)
        dtype = _number_dtype(x.dtype, value)
        other = full((), value.astype(dtype)[()], dtype, device=x.device)
    else:
        other = _operand(other, name)
    if _is_mixed(x.dtype, other.dtype):
        return _wide(x), _wide(other)
    dtype = _common_dtype(x.dtype, other.dtype)
    return x.astype(dtype, copy=False), other.astype(dtype, copy=False)


def _is_mixed(a: np.dtype[Any], b: np.dtype[Any]) -> bool:
    """Whether one is uint64 and the other a signed integer."""
    return (a == np.uint64 and b.kind == "i") or (a.kind == "i" and b == np.uint64)


def _wide(x: Array) -> Array:
    return x if x.dtype == np.uint64 else x.astype(np.int64, copy=False)


def _fits(x: Array, dtype: np.dtype[Any]) -> Array:
    """Which elements of int64 are in the range of uint64, or those of uint64 in that of int64."""
    return greater_equal(x, 0) if dtype == np.uint64 else less_equal(x, 2**63 - 1)


def _number_dtype(dtype: np.dtype[Any], value: np.ndarray[Any, Any]) -> np.dtype[Any]:
    """That of an array where the number fits it by kind and value, else a common one."""
    real = dtype.kind not in "iubc"
    if real and value.dtype.kind in "iubf":
        return dtype
    if dtype.kind in "iu" and value.dtype.kind in "iub":
        limits = np.iinfo(dtype)
        if limits.min <= int(value) <= limits.max:
            return dtype
    if _is_mixed(dtype, value.dtype):
        return np.dtype(np.int64 if dtype == np.uint64 else np.uint64)
    return _common_dtype(dtype, value.dtype)


def _common_dtype(a: np.dtype[Any], b: np.dtype[Any]) -> np.dtype[Any]:
    if a == b:
        return a
    try:
        return _promote_types(a, b)
    except ArgumentError:
        raise InvalidArgument(
            f"there is no common dtype of {a} and {b}: cast one with .astype()"
        ) from None
