"""Comparisons, logic and bits of arrays, element by element.

Operands, `out` and errors: as in elementwise.py.
"""

from __future__ import annotations

from typing import Any

from kernwright._core import Array, _elementwise

__all__ = [
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "equal",
    "greater",
    "greater_equal",
    "iscomplex",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "not_equal",
    "signbit",
]


def bitwise_and(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """x1 & x2; integers and booleans.

    >>> kw.bitwise_and(kw.asarray([1, 2, 3]), 1)
    """
    return _elementwise("bitwise_and", (x1, x2), out)


def bitwise_invert(x: Any, /, out: Array | None = None) -> Array:
    """~x; of booleans: not.

    >>> kw.bitwise_invert(kw.asarray([1, 2, 3]))
    """
    return _elementwise("bitwise_invert", (x,), out)


def bitwise_left_shift(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """x1 << x2; 0 where x2 is the width or more. Integers.

    >>> kw.bitwise_left_shift(kw.asarray([1, 2, 3]), 1)
    """
    return _elementwise("bitwise_left_shift", (x1, x2), out)


def bitwise_or(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """x1 | x2; integers and booleans.

    >>> kw.bitwise_or(kw.asarray([1, 2, 3]), 1)
    """
    return _elementwise("bitwise_or", (x1, x2), out)


def bitwise_right_shift(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """x1 >> x2 with the sign filled in. Integers.

    >>> kw.bitwise_right_shift(kw.asarray([1, 2, 3]), 1)
    """
    return _elementwise("bitwise_right_shift", (x1, x2), out)


def bitwise_xor(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """x1 ^ x2; integers and booleans.

    >>> kw.bitwise_xor(kw.asarray([1, 2, 3]), 1)
    """
    return _elementwise("bitwise_xor", (x1, x2), out)


def equal(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """x1 == x2 as a boolean array. NaN equals nothing.

    >>> kw.equal(kw.asarray([1, 2, 3]), 2)
    """
    return _elementwise("equal", (x1, x2), out)


def greater(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """x1 > x2 as a boolean array. Integers of both signs compare exactly.

    >>> kw.greater(kw.asarray([1, 2, 3]), 2)
    """
    return _elementwise("greater", (x1, x2), out)


def greater_equal(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """x1 >= x2 as a boolean array.

    >>> kw.greater_equal(kw.asarray([1, 2, 3]), 2)
    """
    return _elementwise("greater_equal", (x1, x2), out)


def iscomplex(x: Any, /, out: Array | None = None) -> Array:
    """Whether the imaginary part is not 0.

    >>> kw.iscomplex(kw.asarray([1 + 2j, 3])).numpy()
    array([ True, False])
    """
    return _elementwise("iscomplex", (x,), out)


def isfinite(x: Any, /, out: Array | None = None) -> Array:
    """Whether x is neither infinite nor NaN; of complex numbers both parts.

    >>> kw.isfinite(kw.asarray([1.0, float("inf")]))
    """
    return _elementwise("isfinite", (x,), out)


def isinf(x: Any, /, out: Array | None = None) -> Array:
    """Whether x is infinite; of complex numbers either part.

    >>> kw.isinf(kw.asarray([1.0, float("inf")]))
    """
    return _elementwise("isinf", (x,), out)


def isnan(x: Any, /, out: Array | None = None) -> Array:
    """Whether x is NaN; of complex numbers either part.

    >>> kw.isnan(kw.asarray([1.0, float("nan")]))
    """
    return _elementwise("isnan", (x,), out)


def isneginf(x: Any, /, out: Array | None = None) -> Array:
    """Whether x is -inf; real numbers.

    >>> kw.isneginf(kw.asarray([1.0, float("-inf")])).numpy()
    array([False,  True])
    """
    return _elementwise("isneginf", (x,), out)


def isposinf(x: Any, /, out: Array | None = None) -> Array:
    """Whether x is +inf; real numbers.

    >>> kw.isposinf(kw.asarray([1.0, float("inf")])).numpy()
    array([False,  True])
    """
    return _elementwise("isposinf", (x,), out)


def isreal(x: Any, /, out: Array | None = None) -> Array:
    """Whether the imaginary part is 0.

    >>> kw.isreal(kw.asarray([1 + 2j, 3])).numpy()
    array([False,  True])
    """
    return _elementwise("isreal", (x,), out)


def less(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """x1 < x2 as a boolean array.

    >>> kw.less(kw.asarray([1, 2, 3]), 2)
    """
    return _elementwise("less", (x1, x2), out)


def less_equal(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """x1 <= x2 as a boolean array.

    >>> kw.less_equal(kw.asarray([1, 2, 3]), 2)
    """
    return _elementwise("less_equal", (x1, x2), out)


def logical_and(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """Whether neither is 0. Any types.

    >>> kw.logical_and(kw.asarray([True, False]), True)
    """
    return _elementwise("logical_and", (x1, x2), out)


def logical_not(x: Any, /, out: Array | None = None) -> Array:
    """Whether x is 0. Any type.

    >>> kw.logical_not(kw.asarray([True, False]))
    """
    return _elementwise("logical_not", (x,), out)


def logical_or(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """Whether either is not 0. Any types.

    >>> kw.logical_or(kw.asarray([True, False]), True)
    """
    return _elementwise("logical_or", (x1, x2), out)


def logical_xor(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """Whether exactly one is not 0. Any types.

    >>> kw.logical_xor(kw.asarray([True, False]), True)
    """
    return _elementwise("logical_xor", (x1, x2), out)


def not_equal(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """x1 != x2 as a boolean array.

    >>> kw.not_equal(kw.asarray([1, 2, 3]), 2)
    """
    return _elementwise("not_equal", (x1, x2), out)


def signbit(x: Any, /, out: Array | None = None) -> Array:
    """Whether the sign is negative, of -0.0 and NaN too; real numbers.

    >>> kw.signbit(kw.asarray([-0.0, 1.0]))
    """
    return _elementwise("signbit", (x,), out)
