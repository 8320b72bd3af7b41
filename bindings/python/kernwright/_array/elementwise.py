"""Elementwise arithmetic on arrays and numbers.

Operands are arrays of the device (ours or another library's), at least one, and numbers. They are
broadcast; each is read in its own type and converted in the kernel. Numbers of Python take the
type of the arrays beside them. `out` gets the result instead of a new array: it has the broadcast
shape and a type that holds the result up to digits.

Errors: InvalidArgument for shapes that do not broadcast ("Incompatible dimensions") and arrays not
on the same device; ArgumentError for types without such an operation, values that are no operands,
and arrays in host memory.
"""

from __future__ import annotations

from typing import Any, overload

from kernwright._core import Array, _elementwise
from kernwright.errors import ArgumentError

__all__ = [
    "abs",
    "add",
    "clip",
    "conj",
    "copysign",
    "divide",
    "floor_divide",
    "fmod",
    "hypot",
    "imag",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nextafter",
    "positive",
    "pow",
    "real",
    "reciprocal",
    "remainder",
    "sign",
    "square",
    "subtract",
    "where",
]


def abs(x: Any, /, out: Array | None = None) -> Array:
    """|x|, of complex numbers the length as a real one. Integers wrap around.

    >>> kw.abs(kw.asarray([-1, 2]))
    """
    return _elementwise("abs", (x,), out)


def add(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """x1 + x2; of booleans: or. Integers wrap around.

    >>> kw.add(kw.asarray([1, 2, 3]), 1)
    """
    return _elementwise("add", (x1, x2), out)


def clip(
    x: Any, /, min: Any = None, max: Any = None, out: Array | None = None, *, a_min: Any = None,
    a_max: Any = None,
) -> Array:  # fmt: skip
    """minimum(maximum(x, min), max); a bound of None is none. NaN stays NaN. a_min and a_max are
    older names of the bounds.

    >>> kw.clip(kw.asarray([1, 2, 3]), 2)
    """
    for bound, older, name in ((min, a_min, "min"), (max, a_max, "max")):
        if bound is not None and older is not None:
            raise ArgumentError(f"{name} and a_{name} are one argument: give one")
    min = a_min if min is None else min
    max = a_max if max is None else max
    if min is None and max is None:
        return _elementwise("positive", (x,), out)
    if max is None:
        return _elementwise("maximum", (x, min), out)
    if min is None:
        return _elementwise("minimum", (x, max), out)
    return _elementwise("clip", (x, min, max), out)


def conj(x: Any, /, out: Array | None = None) -> Array:
    """The complex conjugate; real numbers as they are.

    >>> kw.conj(kw.asarray([1 + 2j]))
    """
    return _elementwise("conj", (x,), out)


def copysign(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """|x1| with the sign of x2 (that of -0.0 and NaN too); floating.

    >>> kw.copysign(kw.asarray([1.0, 2.0]), -1.0)
    """
    return _elementwise("copysign", (x1, x2), out)


def divide(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """x1 / x2; of integers and booleans in float64. By 0: inf or NaN.

    >>> kw.divide(kw.asarray([1, 2, 3]), 2)
    """
    return _elementwise("divide", (x1, x2), out)


def floor_divide(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """The largest whole number that is not above x1 / x2. Integers by 0 give 0.

    >>> kw.floor_divide(kw.asarray([-3, 3]), 2)
    """
    return _elementwise("floor_divide", (x1, x2), out)


def fmod(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """What x1 / x2 rounded to 0 leaves: with the sign of x1. Integers by 0 give 0.

    >>> kw.fmod(kw.asarray([-3, 3]), 2)
    """
    return _elementwise("fmod", (x1, x2), out)


def hypot(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """sqrt(x1 * x1 + x2 * x2) without overflow; floating.

    >>> kw.hypot(kw.asarray([3.0]), 4.0)
    """
    return _elementwise("hypot", (x1, x2), out)


def imag(x: Any, /, out: Array | None = None) -> Array:
    """The imaginary part as a real number; 0 for real numbers.

    >>> kw.imag(kw.asarray([1 + 2j]))
    """
    return _elementwise("imag", (x,), out)


def maximum(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """The larger one; NaN where either is. Complex numbers by real part, then imaginary.

    >>> kw.maximum(kw.asarray([1, 2, 3]), 2)
    """
    return _elementwise("maximum", (x1, x2), out)


def minimum(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """The smaller one; NaN where either is. Complex numbers by real part, then imaginary.

    >>> kw.minimum(kw.asarray([1, 2, 3]), 2)
    """
    return _elementwise("minimum", (x1, x2), out)


def multiply(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """x1 * x2; of booleans: and. Integers wrap around.

    >>> kw.multiply(kw.asarray([1, 2, 3]), 2)
    """
    return _elementwise("multiply", (x1, x2), out)


def negative(x: Any, /, out: Array | None = None) -> Array:
    """-x; of unsigned integers 2**bits - x. Not of booleans.

    >>> kw.negative(kw.asarray([1, 2, 3]))
    """
    return _elementwise("negative", (x,), out)


def nextafter(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """The floating number next to x1 towards x2, in the type of both.

    >>> kw.nextafter(kw.asarray([1.0]), 2.0)
    """
    return _elementwise("nextafter", (x1, x2), out)


def positive(x: Any, /, out: Array | None = None) -> Array:
    """A copy of x. Not of booleans.

    >>> kw.positive(kw.asarray([1, 2, 3]))
    """
    return _elementwise("positive", (x,), out)


def pow(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """x1 to the power of x2. Integers wrap around; to the power of a negative number they raise, of
    a negative element of an array they give 0 (but for 1 and -1).

    >>> kw.pow(kw.asarray([1, 2, 3]), 2)
    """
    return _elementwise("pow", (x1, x2), out)


def real(x: Any, /, out: Array | None = None) -> Array:
    """The real part; real numbers as they are.

    >>> kw.real(kw.asarray([1 + 2j]))
    """
    return _elementwise("real", (x,), out)


def reciprocal(x: Any, /, out: Array | None = None) -> Array:
    """1 / x in the type of x: of integers 1, -1 or 0.

    >>> kw.reciprocal(kw.asarray([2.0, 4.0]))
    """
    return _elementwise("reciprocal", (x,), out)


def remainder(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """x1 - floor(x1 / x2) * x2: with the sign of x2. Integers by 0 give 0.

    >>> kw.remainder(kw.asarray([-3, 3]), 2)
    """
    return _elementwise("remainder", (x1, x2), out)


def sign(x: Any, /, out: Array | None = None) -> Array:
    """-1, 0 or 1, and NaN of NaN; of complex numbers x / |x|. Not of booleans.

    >>> kw.sign(kw.asarray([-2, 0, 3]))
    """
    return _elementwise("sign", (x,), out)


def square(x: Any, /, out: Array | None = None) -> Array:
    """x * x.

    >>> kw.square(kw.asarray([1, 2, 3]))
    """
    return _elementwise("square", (x,), out)


def subtract(x1: Any, x2: Any, /, out: Array | None = None) -> Array:
    """x1 - x2. Integers wrap around. Not of booleans.

    >>> kw.subtract(kw.asarray([1, 2, 3]), 1)
    """
    return _elementwise("subtract", (x1, x2), out)


@overload
def where(condition: Any, /) -> tuple[Array, ...]: ...


@overload
def where(condition: Any, x1: Any, x2: Any, /, out: Array | None = None) -> Array: ...


def where(condition: Any, x1: Any = None, x2: Any = None, /, out: Array | None = None) -> Any:
    """x1 where the condition is not 0, else x2; of the promoted type of x1 and x2. The condition
    alone gives nonzero() of it.

    >>> kw.where(kw.asarray([True, False]), 1.0, kw.asarray([2.0, 3.0]))
    """
    if x1 is None and x2 is None and out is None:
        from kernwright._array.counting import indices_of

        return indices_of(condition, "condition", "where()")
    if x1 is None or x2 is None:
        raise ArgumentError(f"kw.where(): x{1 if x1 is None else 2} is missing")
    return _elementwise("where", (condition, x1, x2), out)
