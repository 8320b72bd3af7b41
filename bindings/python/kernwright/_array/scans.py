"""Running sums, products and extremes of arrays along an axis; differences of neighbours."""

from __future__ import annotations

from typing import Any

from kernwright._array.operands import axis_of, device_array
from kernwright._core import Array, _scan
from kernwright.errors import InvalidArgument

__all__ = [
    "cumprod",
    "cumsum",
    "cumulative_max",
    "cumulative_min",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
]


def cumulative_sum(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False,
    out: Array | None = None,
) -> Array:  # fmt: skip
    """Sums of the elements up to each, along `axis` (which arrays of one dimension need not name).

    Dtypes are those of sum(): 64 bits for integers and bools, `dtype` to choose another. With
    `include_initial` a 0 comes first, and the axis is one longer. The result is the same each time,
    bit by bit. `out` is an array of the result's shape and dtype that takes the result.

    >>> kw.cumulative_sum(kw.asarray([1, 2, 3])).numpy()
    array([1, 3, 6])
    """
    return _scan("cumulative_sum", x, axis, dtype, include_initial, out)


def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False,
    out: Array | None = None,
) -> Array:  # fmt: skip
    """Products of the elements up to each; 1 is the initial one. As cumulative_sum() otherwise.

    >>> kw.cumulative_prod(kw.asarray([1, 2, 3, 4])).numpy()
    array([ 1,  2,  6, 24])
    """
    return _scan("cumulative_prod", x, axis, dtype, include_initial, out)


def cumsum(
    x: Any, /, axis: int | None = None, dtype: Any = None, out: Array | None = None
) -> Array:
    """NumPy's cumsum(): cumulative_sum(), but without an axis of all elements row by row.

    >>> kw.cumsum(kw.asarray([[1, 2], [3, 4]])).numpy()
    array([ 1,  3,  6, 10])
    """
    return device_array(x).cumsum(axis, dtype, out)


def cumprod(
    x: Any, /, axis: int | None = None, dtype: Any = None, out: Array | None = None
) -> Array:
    """NumPy's cumprod(): cumulative_prod(), but without an axis of all elements row by row.

    >>> kw.cumprod(kw.asarray([[1, 2], [3, 4]])).numpy()
    array([ 1,  2,  6, 24])
    """
    return device_array(x).cumprod(axis, dtype, out)


def cumulative_max(x: Any, /, *, axis: int | None = None, out: Array | None = None) -> Array:
    """The largest of the elements up to each, of the dtype of `x`; NaN from the first NaN on.
    ValueError for complex numbers, which have no order.

    >>> kw.cumulative_max(kw.asarray([1, 3, 2])).numpy()
    array([1, 3, 3])
    """
    return _scan("cumulative_max", x, axis, out=out)


def cumulative_min(x: Any, /, *, axis: int | None = None, out: Array | None = None) -> Array:
    """The smallest of the elements up to each; as cumulative_max() otherwise.

    >>> kw.cumulative_min(kw.asarray([3, 1, 2])).numpy()
    array([3, 1, 1])
    """
    return _scan("cumulative_min", x, axis, out=out)


def diff(x: Any, /, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Array:
    """Differences of neighbours along `axis`, `n` times over: x[i + 1] - x[i]; of bools whether
    they differ. `prepend` and `append` are put in front and behind first: arrays, or numbers for
    all of the axis. The axis gets `n` shorter, down to none. ValueError for a negative `n` and an
    array without dimensions.

    >>> kw.diff(kw.asarray([1, 4, 9, 16])).numpy()
    array([3, 5, 7])
    """
    import kernwright as kw

    array: Array = device_array(x)
    if n < 0:
        raise InvalidArgument(f"diff(): n must be at least 0, got {n}")
    at = axis_of(axis, array.ndim)
    if n == 0:
        return array
    parts = [_edge(part, array, at) for part in (prepend, array, append) if part is not None]
    if len(parts) > 1:
        array = kw.concat(parts, axis=at)
    front = (slice(None),) * at
    for _ in range(min(n, array.shape[at])):  # then there is no element left
        later, earlier = array[(*front, slice(1, None))], array[(*front, slice(None, -1))]
        array = kw.not_equal(later, earlier) if array.dtype == bool else later - earlier
    return array


def _edge(part: Any, array: Array, axis: int) -> Array:
    """One element along the axis of what has no dimension."""
    from kernwright._array.composed.joining import _beside

    made = _beside(part, array)
    if made.ndim:
        return made
    return made._broadcast((*array.shape[:axis], 1, *array.shape[axis + 1 :]))
