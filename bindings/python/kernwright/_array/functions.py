"""Elementwise functions of numbers: exponential, trigonometric, rounding.

Operands, `out` and errors: as in elementwise.py.
Floating: integers of 8 bits are computed in float16, of 16 in float32, wider ones in float64.
float16, bfloat16 and the 8-bit floats are computed in float32 and rounded once.
"""

from __future__ import annotations

from typing import Any

from kernwright._core import Array, _elementwise

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "cos",
    "cosh",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "round",
    "rsqrt",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
]


def acos(x: Any, /, out: Array | None = None) -> Array:
    """The angle in [0, pi] whose cosine is x.

    >>> kw.acos(kw.asarray([0.5, 1.0]))
    """
    return _elementwise("acos", (x,), out)


def acosh(x: Any, /, out: Array | None = None) -> Array:
    """The inverse of cosh, not negative.

    >>> kw.acosh(kw.asarray([1.0, 2.0]))
    """
    return _elementwise("acosh", (x,), out)


def asin(x: Any, /, out: Array | None = None) -> Array:
    """The angle in [-pi/2, pi/2] whose sine is x.

    >>> kw.asin(kw.asarray([0.5, 1.0]))
    """
    return _elementwise("asin", (x,), out)


def asinh(x: Any, /, out: Array | None = None) -> Array:
    """The inverse of sinh.

    >>> kw.asinh(kw.asarray([0.5, 1.0]))
    """
    return _elementwise("asinh", (x,), out)


def atan(x: Any, /, out: Array | None = None) -> Array:
    """The angle in [-pi/2, pi/2] whose tangent is x.

    >>> kw.atan(kw.asarray([0.5, 1.0]))
    """
    return _elementwise("atan", (x,), out)


def atan2(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """The angle of the point (x2, x1) in [-pi, pi]; real numbers.

    >>> kw.atan2(kw.asarray([0.5, 1.0]), 1.0)
    """
    return _elementwise("atan2", (x1, x2), out)


def atanh(x: Any, /, out: Array | None = None) -> Array:
    """The inverse of tanh.

    >>> kw.atanh(kw.asarray([0.0, 0.5]))
    """
    return _elementwise("atanh", (x,), out)


def cbrt(x: Any, /, out: Array | None = None) -> Array:
    """The cube root; real numbers.

    >>> kw.cbrt(kw.asarray([8.0, -27.0]))
    """
    return _elementwise("cbrt", (x,), out)


def ceil(x: Any, /, out: Array | None = None) -> Array:
    """The smallest whole number that is not below x; real numbers, in their type.

    >>> kw.ceil(kw.asarray([0.5, 1.0]))
    """
    return _elementwise("ceil", (x,), out)


def cos(x: Any, /, out: Array | None = None) -> Array:
    """The cosine.

    >>> kw.cos(kw.asarray([0.5, 1.0]))
    """
    return _elementwise("cos", (x,), out)


def cosh(x: Any, /, out: Array | None = None) -> Array:
    """The hyperbolic cosine, (exp(x) + exp(-x)) / 2.

    >>> kw.cosh(kw.asarray([0.5, 1.0]))
    """
    return _elementwise("cosh", (x,), out)


def erf(x: Any, /, out: Array | None = None) -> Array:
    """The error function, 2 / sqrt(pi) times the integral of exp(-t*t) from 0 to x.

    >>> kw.erf(kw.asarray([0.5, 1.0]))
    """
    return _elementwise("erf", (x,), out)


def exp(x: Any, /, out: Array | None = None) -> Array:
    """e to the power of x.

    >>> kw.exp(kw.asarray([0.5, 1.0]))
    """
    return _elementwise("exp", (x,), out)


def exp2(x: Any, /, out: Array | None = None) -> Array:
    """2 to the power of x.

    >>> kw.exp2(kw.asarray([0.5, 1.0]))
    """
    return _elementwise("exp2", (x,), out)


def expm1(x: Any, /, out: Array | None = None) -> Array:
    """exp(x) - 1, exact near 0.

    >>> kw.expm1(kw.asarray([0.5, 1.0]))
    """
    return _elementwise("expm1", (x,), out)


def floor(x: Any, /, out: Array | None = None) -> Array:
    """The largest whole number that is not above x; real numbers, in their type.

    >>> kw.floor(kw.asarray([0.5, 1.0]))
    """
    return _elementwise("floor", (x,), out)


def log(x: Any, /, out: Array | None = None) -> Array:
    """The natural logarithm. Of 0 -inf, of negative real numbers NaN.

    >>> kw.log(kw.asarray([0.5, 1.0]))
    """
    return _elementwise("log", (x,), out)


def log10(x: Any, /, out: Array | None = None) -> Array:
    """The logarithm to base 10.

    >>> kw.log10(kw.asarray([0.5, 1.0]))
    """
    return _elementwise("log10", (x,), out)


def log1p(x: Any, /, out: Array | None = None) -> Array:
    """log(1 + x), exact near 0.

    >>> kw.log1p(kw.asarray([0.5, 1.0]))
    """
    return _elementwise("log1p", (x,), out)


def log2(x: Any, /, out: Array | None = None) -> Array:
    """The logarithm to base 2.

    >>> kw.log2(kw.asarray([0.5, 1.0]))
    """
    return _elementwise("log2", (x,), out)


def logaddexp(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """log(exp(x1) + exp(x2)) without overflow; real numbers.

    >>> kw.logaddexp(kw.asarray([0.5, 1.0]), 1000.0)
    """
    return _elementwise("logaddexp", (x1, x2), out)


def round(x: Any, /, decimals: int = 0, out: Array | None = None) -> Array:
    """The nearest number with `decimals` digits behind the point, ties to even, in the type of x.
    Negative `decimals` round to tens, hundreds, ...

    >>> kw.round(kw.asarray([0.5, 1.5]))
    >>> kw.round(kw.asarray([1.25, -2.0]), 1)
    """
    if decimals == 0:
        return _elementwise("round", (x,), out)
    from kernwright._array.rounding import round_digits

    made = round_digits(x, decimals)
    return made if out is None else _elementwise("positive", (made,), out)


def rsqrt(x: Any, /, out: Array | None = None) -> Array:
    """1 / sqrt(x).

    >>> kw.rsqrt(kw.asarray([4.0]))
    """
    return _elementwise("rsqrt", (x,), out)


def sin(x: Any, /, out: Array | None = None) -> Array:
    """The sine.

    >>> kw.sin(kw.asarray([0.5, 1.0]))
    """
    return _elementwise("sin", (x,), out)


def sinh(x: Any, /, out: Array | None = None) -> Array:
    """The hyperbolic sine, (exp(x) - exp(-x)) / 2.

    >>> kw.sinh(kw.asarray([0.5, 1.0]))
    """
    return _elementwise("sinh", (x,), out)


def sqrt(x: Any, /, out: Array | None = None) -> Array:
    """The square root. Of negative real numbers NaN.

    >>> kw.sqrt(kw.asarray([4.0]))
    """
    return _elementwise("sqrt", (x,), out)


def tan(x: Any, /, out: Array | None = None) -> Array:
    """The tangent.

    >>> kw.tan(kw.asarray([0.5, 1.0]))
    """
    return _elementwise("tan", (x,), out)


def tanh(x: Any, /, out: Array | None = None) -> Array:
    """The hyperbolic tangent.

    >>> kw.tanh(kw.asarray([0.5, 1.0]))
    """
    return _elementwise("tanh", (x,), out)


def trunc(x: Any, /, out: Array | None = None) -> Array:
    """x without its digits behind the point; real numbers, in their type.

    >>> kw.trunc(kw.asarray([-1.5, 1.5]))
    """
    return _elementwise("trunc", (x,), out)
