"""Elementwise functions of numbers under NumPy's names: steps, angles, scales, Bessel's.

Operands, `out` and errors: as in elementwise.py. Floating types: as in functions.py.
"""

from __future__ import annotations

from typing import Any

from kernwright._core import Array, _elementwise

__all__ = [
    "angle",
    "bitwise_count",
    "deg2rad",
    "fabs",
    "fix",
    "float_power",
    "fmax",
    "fmin",
    "gcd",
    "heaviside",
    "i0",
    "lcm",
    "ldexp",
    "logaddexp2",
    "rad2deg",
    "rint",
    "sinc",
]


def angle(z: Any, deg: bool = False, *, out: Array | None = None) -> Array:
    """The angle of complex numbers in [-pi, pi]; of real ones 0 or pi. `deg`: in degrees.

    >>> kw.angle(kw.asarray([1j, -1.0])).numpy()
    array([1.5707964, 3.1415927], dtype=float32)
    """
    radians = _elementwise("angle", (z,), out)
    return _elementwise("rad2deg", (radians,), out) if deg else radians


def bitwise_count(x: Any, /, out: Array | None = None) -> Array:
    """How many bits of |x| are set, a uint8. Integers and booleans.

    >>> kw.bitwise_count(kw.asarray([0, 7, -8])).numpy()
    array([0, 3, 1], dtype=uint8)
    """
    return _elementwise("bitwise_count", (x,), out)


def deg2rad(x: Any, /, out: Array | None = None) -> Array:
    """Degrees as radians; real numbers.

    >>> kw.deg2rad(kw.asarray([180.0])).numpy()
    array([3.1415927], dtype=float32)
    """
    return _elementwise("deg2rad", (x,), out)


def fabs(x: Any, /, out: Array | None = None) -> Array:
    """|x| as a floating number; real numbers.

    >>> kw.fabs(kw.asarray([-1, 2])).numpy()
    array([1., 2.])
    """
    return _elementwise("fabs", (x,), out)


def fix(x: Any, /, out: Array | None = None) -> Array:
    """x rounded towards 0, in its type: trunc(); real numbers.

    >>> kw.fix(kw.asarray([-1.5, 1.5])).numpy()
    array([-1.,  1.], dtype=float32)
    """
    return _elementwise("trunc", (x,), out)


def float_power(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """x1 to the power of x2, computed in float64, or in complex128 for complex numbers.

    >>> kw.float_power(kw.asarray([1, 2]), -1).numpy()
    array([1. , 0.5])
    """
    return _elementwise("float_power", (x1, x2), out)


def fmax(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """The larger one; of NaN and a number the number. Complex numbers as in maximum().

    >>> kw.fmax(kw.asarray([1.0, float("nan")]), 0.5).numpy()
    array([1. , 0.5], dtype=float32)
    """
    return _elementwise("fmax", (x1, x2), out)


def fmin(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """The smaller one; of NaN and a number the number. Complex numbers as in minimum().

    >>> kw.fmin(kw.asarray([1.0, float("nan")]), 0.5).numpy()
    array([0.5, 0.5], dtype=float32)
    """
    return _elementwise("fmin", (x1, x2), out)


def gcd(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """The greatest common divisor of |x1| and |x2|; integers.

    >>> kw.gcd(kw.asarray([12, 18]), 8).numpy()
    array([4, 2])
    """
    return _elementwise("gcd", (x1, x2), out)


def heaviside(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """0 for x1 < 0, x2 for 0, 1 above, NaN for NaN; real numbers.

    >>> kw.heaviside(kw.asarray([-1.0, 0.0, 2.0]), 0.5).numpy()
    array([0. , 0.5, 1. ], dtype=float32)
    """
    return _elementwise("heaviside", (x1, x2), out)


def i0(x: Any, /, out: Array | None = None) -> Array:
    """The modified Bessel function of the first kind and of order 0; real numbers. Integers are
    computed in float64.

    >>> kw.i0(kw.asarray([0.0, 1.0])).numpy()
    array([1.       , 1.2660658], dtype=float32)
    """
    if isinstance(x, Array) and x.dtype.kind in "iub":
        x = x.astype("float64")
    return _elementwise("i0", (x,), out)


def lcm(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """The least common multiple of |x1| and |x2|, 0 where either is 0; integers wrap around.

    >>> kw.lcm(kw.asarray([4, 6]), 10).numpy()
    array([20, 30])
    """
    return _elementwise("lcm", (x1, x2), out)


def ldexp(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """x1 * 2**x2 in the floating type of x1; x2 holds integers.

    >>> kw.ldexp(kw.asarray([0.75, 5.0]), kw.asarray([2, -1])).numpy()
    array([3. , 2.5], dtype=float32)
    """
    return _elementwise("ldexp", (x1, x2), out)


def logaddexp2(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """log2(2**x1 + 2**x2) without overflow; real numbers.

    >>> kw.logaddexp2(kw.asarray([1.0, 1000.0]), 1.0).numpy()
    array([   2., 1000.], dtype=float32)
    """
    return _elementwise("logaddexp2", (x1, x2), out)


def rad2deg(x: Any, /, out: Array | None = None) -> Array:
    """Radians as degrees; real numbers.

    >>> kw.rad2deg(kw.asarray([kw.pi])).numpy()
    array([180.], dtype=float32)
    """
    return _elementwise("rad2deg", (x,), out)


def rint(x: Any, /, out: Array | None = None) -> Array:
    """The nearest whole number as a floating one, ties to even.

    >>> kw.rint(kw.asarray([0.5, 1.5, 2.6])).numpy()
    array([0., 2., 3.], dtype=float32)
    """
    return _elementwise("rint", (x,), out)


def sinc(x: Any, /, out: Array | None = None) -> Array:
    """sin(pi * x) / (pi * x), and 1 for 0. Exact zeros at whole numbers.

    >>> kw.sinc(kw.asarray([0.0, 0.5, 1.0])).numpy()
    array([1.        , 0.63661975, 0.        ], dtype=float32)
    """
    return _elementwise("sinc", (x,), out)
