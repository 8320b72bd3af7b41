"""Parts of floating numbers, and numbers in place of NaN and infinities."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from kernwright._array.operands import device_array, stored
from kernwright._core import Array
from kernwright.errors import ArgumentError

Outputs = tuple[Array | None, Array | None] | None

__all__ = ["frexp", "modf", "nan_to_num"]

_FREXP = """
int power = 0;
const Compute number = x;
mantissa = frexp(number, &power);
exponent = isfinite(number) ? power : 0;
"""
_MODF = """
const Compute number = x;
const Compute part = trunc(number);
const Compute rest = isinf(number) ? Compute(0) : number - part;
fraction = copysign(rest, number);
whole = part;
"""


@functools.cache
def _two_results(name: str, dtype: str) -> Any:
    """A kernel with two outputs."""
    from kernwright._fuse.elementwise import ElementwiseKernel

    compute = "double" if dtype == "float64" else "float"
    outputs = "T mantissa, int32 exponent" if name == "frexp" else "T fraction, T whole"
    code = _FREXP if name == "frexp" else _MODF
    return ElementwiseKernel("T x", outputs, code.replace("Compute", compute), f"{name}_parts")


def _floating(x: Any, name: str) -> Array:
    array: Array = device_array(x)
    if array.dtype.kind == "c":
        raise ArgumentError(f"{name}() takes real numbers, got {array.dtype}: kw.real(x)")
    if array.dtype.kind in "iub":
        sizes = {1: np.float16, 2: np.float32}
        array = array.astype(sizes.get(array.dtype.itemsize, np.float64))
    return array


def _parts(name: str, x: Any, out: Outputs) -> tuple[Array, Array]:
    array = _floating(x, name)
    made: tuple[Array, Array] = _two_results(name, array.dtype.name)(array)
    if out is None:
        return made
    if not isinstance(out, tuple) or len(out) != 2:
        raise ArgumentError(f"{name}(): out is a tuple of two arrays, or of None, got {out!r:.60}")
    first, second = (
        part if given is None else stored(part, given)
        for part, given in zip(made, out, strict=True)
    )
    return first, second


def frexp(x: Any, /, *, out: Outputs = None) -> tuple[Array, Array]:
    """(mantissa, exponent) with x = mantissa * 2**exponent, the mantissa 0 or in [0.5, 1) with a
    sign, the exponent an int32. NaN and infinities are their own mantissa. `out` is a tuple of two
    arrays for the results, or of None for a new one. ArgumentError for complex numbers.

    >>> mantissa, exponent = kw.frexp(kw.asarray([3.0, 8.0]))
    >>> mantissa.numpy(), exponent.numpy()
    (array([0.75, 0.5 ], dtype=float32), array([2, 4], dtype=int32))
    """
    return _parts("frexp", x, out)


def modf(x: Any, /, *, out: Outputs = None) -> tuple[Array, Array]:
    """(fraction, whole part), both with the sign of x. `out` as in frexp(). ArgumentError for
    complex numbers.

    >>> fraction, whole = kw.modf(kw.asarray([2.5, -0.5]))
    >>> fraction.numpy(), whole.numpy()
    (array([ 0.5, -0.5], dtype=float32), array([ 2., -0.], dtype=float32))
    """
    return _parts("modf", x, out)


@functools.cache
def _replaced() -> Any:
    from kernwright._fuse.elementwise import elementwise

    return elementwise(
        "y = where(isnan(x), other, where(isinf(x), where(signbit(x), low, high), x))",
        name="nan_to_num",
    )


def nan_to_num(
    x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None
) -> Array:
    """`x` with numbers in place of NaN and infinities: `nan`, `posinf` and `neginf`, which are the
    largest and the lowest number of the dtype unless given. Of complex numbers both parts. Numbers
    without such values are copied. copy=False writes into `x`.

    >>> kw.nan_to_num(kw.asarray([1.0, float("nan"), float("-inf")]), neginf=-9).numpy()
    array([ 1.,  0., -9.], dtype=float32)
    """
    from kernwright._array.data_types import finfo

    array: Array = device_array(x)
    if array.dtype.kind in "iub":
        return array.copy() if copy else array
    limits = finfo(array.dtype)
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    parts = array
    if array.dtype.kind == "c":
        parts = array if array.is_contiguous else array.copy()
        parts = parts.reshape((*array.shape, 1)).view(limits.dtype)
    made: Array = _replaced()(x=parts, other=float(nan), low=float(low), high=float(high))
    if array.dtype.kind == "c":
        made = made.view(array.dtype).reshape(array.shape)
    if copy:
        return made
    array[...] = made
    return array
