"""Reductions of arrays over any of their axes.

`axis` is an int, a tuple of ints, or None for all axes. With `keepdims` the axes stay with an
extent of 1. `out` is an array of the result's shape and dtype that takes the result. `where`, a
bool array of the device that broadcasts with `x`, chooses elements; `initial` is a number that the
result begins with. max() and min() need an `initial` beside `where`.
"""

from __future__ import annotations

from typing import Any

from kernwright._array.composed.masked import reduced
from kernwright._core import Array, _reduce
from kernwright.errors import ArgumentError

__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "logsumexp",
    "max",
    "mean",
    "min",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
    "prod",
    "std",
    "sum",
    "var",
]


def sum(
    x: Any, /, axis: Any = None, dtype: Any = None, out: Array | None = None,
    keepdims: bool = False, initial: Any = None, where: Any = None,
) -> Array:  # fmt: skip
    """The sum of the elements; 0 of none.

    Integers and bools are added up in 64 bits (int64, uint64), float16, bfloat16 and 8-bit floats
    in float32, rounded once to their own dtype. `dtype`: the elements are taken as this, and so is
    the result. The same array gives the same bits each time.

    >>> kw.sum(kw.asarray([[1, 2], [3, 4]]), axis=0).numpy()
    array([4, 6])
    """
    return reduced("sum", x, axis, keepdims, dtype, out=out, initial=initial, where=where)


def prod(
    x: Any, /, axis: Any = None, dtype: Any = None, out: Array | None = None,
    keepdims: bool = False, initial: Any = None, where: Any = None,
) -> Array:  # fmt: skip
    """The product of the elements, 1 of none; dtypes as of sum().

    >>> kw.prod(kw.asarray([2.0, 3.0, 4.0])).item()
    24.0
    """
    return reduced("prod", x, axis, keepdims, dtype, out=out, initial=initial, where=where)


def mean(
    x: Any, /, axis: Any = None, dtype: Any = None, out: Array | None = None,
    keepdims: bool = False, *, where: Any = None,
) -> Array:  # fmt: skip
    """The sum divided by the number of elements; NaN of none. Of integers and bools a float64.

    >>> kw.mean(kw.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=1).numpy()
    array([1.5, 3.5], dtype=float32)
    """
    return reduced("mean", x, axis, keepdims, dtype, out=out, where=where)


def max(
    x: Any, /, axis: Any = None, out: Any = None, keepdims: bool = False,
    initial: Any = None, where: Any = None,
) -> Array:  # fmt: skip
    """The largest element, NaN where there is one. InvalidArgument (ValueError) of no elements, and
    of complex numbers, which have no order.

    >>> kw.max(kw.asarray([3, 1, 2])).item()
    3
    """
    return reduced("max", x, axis, keepdims, out=out, initial=initial, where=where)


def min(
    x: Any, /, axis: Any = None, out: Any = None, keepdims: bool = False,
    initial: Any = None, where: Any = None,
) -> Array:  # fmt: skip
    """The smallest element; as max() otherwise.

    >>> kw.min(kw.asarray([[1, 4], [3, 2]]), axis=1).numpy()
    array([1, 2])
    """
    return reduced("min", x, axis, keepdims, out=out, initial=initial, where=where)


def argmax(x: Any, /, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Array:
    """Where the largest element is, an int64: along one axis, or with None in the array row by row.
    The first of equal elements; the first NaN where there is one.

    >>> kw.argmax(kw.asarray([[1, 5], [7, 7]]), axis=1).numpy()
    array([1, 0])
    """
    return _reduce("argmax", x, axis, keepdims, out=out)


def argmin(x: Any, /, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Array:
    """Where the smallest element is; as argmax() otherwise.

    >>> kw.argmin(kw.asarray([30, 10, 20])).item()
    1
    """
    return _reduce("argmin", x, axis, keepdims, out=out)


def any(
    x: Any, /, axis: Any = None, out: Any = None, keepdims: bool = False, *,
    where: Any = None,
) -> Array:  # fmt: skip
    """Whether an element is not 0 (NaN is not), a bool; False of none.

    >>> kw.any(kw.asarray([[0, 1], [0, 0]]), axis=1).numpy()
    array([ True, False])
    """
    return reduced("any", x, axis, keepdims, out=out, where=where)


def all(
    x: Any, /, axis: Any = None, out: Any = None, keepdims: bool = False, *,
    where: Any = None,
) -> Array:  # fmt: skip
    """Whether no element is 0, a bool; True of none.

    >>> kw.all(kw.asarray([[1, 1], [0, 1]]), axis=1).numpy()
    array([ True, False])
    """
    return reduced("all", x, axis, keepdims, out=out, where=where)


def count_nonzero(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """How many elements are not 0, an int64.

    >>> kw.count_nonzero(kw.asarray([0, 5, 7])).item()
    2
    """
    return _reduce("count_nonzero", x, axis, keepdims)


def var(
    x: Any, /, axis: Any = None, dtype: Any = None, out: Any = None,
    ddof: float | None = None, keepdims: bool = False, *, correction: float = 0.0,
    where: Any = None,
) -> Array:  # fmt: skip
    """The variance, sum(abs(x - mean(x)) ** 2) / (N - correction), without loss of digits.

    Of integers a float64, of complex numbers a real one, else of the dtype of `x`. `dtype`: the
    elements are taken as this, and so is the result. `ddof` is NumPy's name of `correction`.

    >>> kw.var(kw.asarray([1.0, 2.0, 3.0, 4.0]), correction=1).item()
    1.6666666269302368
    """
    return reduced("var", x, axis, keepdims, dtype, _free(correction, ddof), out, where=where)


def std(
    x: Any, /, axis: Any = None, dtype: Any = None, out: Any = None,
    ddof: float | None = None, keepdims: bool = False, *, correction: float = 0.0,
    where: Any = None,
) -> Array:  # fmt: skip
    """The standard deviation: the root of var().

    >>> kw.std(kw.asarray([1.0, 5.0])).item()
    2.0
    """
    return reduced("std", x, axis, keepdims, dtype, _free(correction, ddof), out, where=where)


def logsumexp(x: Any, /, axis: Any = None, *, keepdims: bool = False, out: Any = None) -> Array:
    """log(sum(exp(x))) in one pass and without overflow; -inf of no elements.

    >>> kw.logsumexp(kw.asarray([1000.0, 1000.0])).item()
    1000.6931762695312
    """
    return _reduce("logsumexp", x, axis, keepdims, out=out)


def nansum(
    x: Any, /, axis: Any = None, dtype: Any = None, out: Array | None = None,
    keepdims: bool = False, initial: Any = None, where: Any = None,
) -> Array:  # fmt: skip
    """The sum of the elements that are not NaN; otherwise as sum().

    >>> kw.nansum(kw.asarray([1.0, float("nan"), 2.0])).item()
    3.0
    """
    return reduced("nansum", x, axis, keepdims, dtype, out=out, initial=initial, where=where)


def nanprod(
    x: Any, /, axis: Any = None, dtype: Any = None, out: Array | None = None,
    keepdims: bool = False, initial: Any = None, where: Any = None,
) -> Array:  # fmt: skip
    """The product of the elements that are not NaN; otherwise as prod().

    >>> kw.nanprod(kw.asarray([3.0, float("nan"), 2.0])).item()
    6.0
    """
    return reduced("nanprod", x, axis, keepdims, dtype, out=out, initial=initial, where=where)


def nanmean(
    x: Any, /, axis: Any = None, dtype: Any = None, out: Array | None = None,
    keepdims: bool = False, *, where: Any = None,
) -> Array:  # fmt: skip
    """The mean of the elements that are not NaN, NaN where there is none; otherwise as mean().

    >>> kw.nanmean(kw.asarray([1.0, float("nan"), 2.0])).item()
    1.5
    """
    return reduced("nanmean", x, axis, keepdims, dtype, out=out, where=where)


def nanmax(
    x: Any, /, axis: Any = None, out: Any = None, keepdims: bool = False,
    initial: Any = None, where: Any = None,
) -> Array:  # fmt: skip
    """The largest element that is not NaN, NaN where there is none; otherwise as max().

    >>> kw.nanmax(kw.asarray([1.0, float("nan"), 2.0])).item()
    2.0
    """
    return reduced("nanmax", x, axis, keepdims, out=out, initial=initial, where=where)


def nanmin(
    x: Any, /, axis: Any = None, out: Any = None, keepdims: bool = False,
    initial: Any = None, where: Any = None,
) -> Array:  # fmt: skip
    """The smallest element that is not NaN, NaN where there is none; otherwise as min().

    >>> kw.nanmin(kw.asarray([1.0, float("nan"), 2.0])).item()
    1.0
    """
    return reduced("nanmin", x, axis, keepdims, out=out, initial=initial, where=where)


def nanvar(
    x: Any, /, axis: Any = None, dtype: Any = None, out: Any = None,
    ddof: float | None = None, keepdims: bool = False, *, correction: float = 0.0,
    where: Any = None,
) -> Array:  # fmt: skip
    """The variance of the elements that are not NaN; N is their number. Otherwise as var().

    >>> kw.nanvar(kw.asarray([1.0, float("nan"), 2.0])).item()
    0.25
    """
    return reduced("nanvar", x, axis, keepdims, dtype, _free(correction, ddof), out, where=where)


def nanstd(
    x: Any, /, axis: Any = None, dtype: Any = None, out: Any = None,
    ddof: float | None = None, keepdims: bool = False, *, correction: float = 0.0,
    where: Any = None,
) -> Array:  # fmt: skip
    """The root of nanvar().

    >>> kw.nanstd(kw.asarray([1.0, float("nan"), 2.0])).item()
    0.5
    """
    return reduced("nanstd", x, axis, keepdims, dtype, _free(correction, ddof), out, where=where)


def _free(correction: Any, ddof: Any) -> float:
    """What the count is reduced by, under either name."""
    if ddof is None:
        return _number("correction", correction)
    if correction != 0:
        raise ArgumentError(f"correction={correction} and ddof={ddof} are one argument: give one")
    return _number("ddof", ddof)


def _number(name: str, value: Any) -> float:
    if not isinstance(value, (int, float)) and not hasattr(value, "__float__"):
        raise ArgumentError(f"{name} is {value!r}, and must be a number")
    return float(value)
