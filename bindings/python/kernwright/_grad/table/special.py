"""Gradients of Bessel's function I0 and of the parts of floating numbers."""

from __future__ import annotations

import functools
from typing import Any

import kernwright as kw
from kernwright._core import Array
from kernwright._grad.recording import Joint, note, unrecorded

__all__ = ["frexp", "i0", "modf"]


@functools.cache
def _kernel(wide: bool) -> Any:
    from kernwright._fuse.elementwise import ElementwiseKernel

    code = "y = cyl_bessel_i1((double)x);" if wide else "y = cyl_bessel_i1f((float)x);"
    return ElementwiseKernel("T x", "T y", code, "bessel_i1")


def _i1(x: Array) -> Array:
    """Bessel's I1, the slope of I0, as an operation of the open recordings."""
    with unrecorded():
        made: Array = _kernel(x.dtype.name == "float64")(x)
    note("the gradient of i0()", ((x, lambda g: g * _slope(x)),), made)
    return made


def _slope(x: Array) -> Any:
    """I1'(x) = I0(x) - I1(x) / x, and 1/2 at 0."""
    zero = x == 0
    return kw.where(zero, 0.5, kw.i0(x) - _i1(x) / kw.where(zero, 1, x))


def i0(x: Array, g: Array) -> Any:
    return g * _i1(x)


def modf(result: Any, x: Any) -> Joint:
    return (x,), (result[0],), lambda of_fraction: (of_fraction,)


def frexp(result: Any, x: Any) -> Joint:
    mantissa, exponent = result
    return (x,), (mantissa,), lambda g: (kw.ldexp(g, -exponent),)
