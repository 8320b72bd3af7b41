"""Running sums, products and extremes of arrays along an axis."""

from __future__ import annotations

from typing import Any

from kernwright._core import Array, _scan

__all__ = ["cumulative_max", "cumulative_min", "cumulative_prod", "cumulative_sum"]


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


def cumulative_max(x: Any, /, *, axis: int | None = None, out: Array | None = None) -> Array:
    """The largest of the elements up to each, of the dtype of `x`; NaN from the first NaN on.
    ValueError for complex numbers, which have no order.

    >>> kw.cumulative_max(kw.asarray([1, 3, 2])).numpy()
    array([1, 3, 3])
    """
    return _scan("cumulative_max", x, axis, out=out)


def cumulative_min(x: Any, /, *, axis: int | None = None, out: Array | None = None) -> Array:
    """The smallest of the elements up to each; as cumulative_max() otherwise."""
    return _scan("cumulative_min", x, axis, out=out)
