"""Rounding to a number of decimal digits."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from kernwright._array.operands import device_array
from kernwright._core import Array, _elementwise


def round_digits(x: Any, decimals: Any) -> Array:
    """The nearest numbers with `decimals` digits behind the point, as numpy.round() computes them:
    scaled by a power of ten, rounded, and scaled back, in the type of `x`. Floats below 32 bits are
    computed in float32."""
    x, digits = device_array(x), operator.index(decimals)
    if x.dtype.kind == "c":
        made: Array = x.copy()
        made.real, made.imag = round_digits(x.real, digits), round_digits(x.imag, digits)
        return made
    if x.dtype.kind == "b" or (x.dtype.kind in "iu" and digits >= 0):
        return _elementwise("round", (x,), None)
    if x.dtype.kind in "iu":
        return _round_integers(x, 10**-digits)
    return _round_floats(x, digits)


def _round_floats(x: Array, digits: int) -> Array:
    largest = 308 if x.dtype == np.float64 else 38
    if digits > largest:
        return x.copy()
    if digits < -largest:
        return x * 0
    made: Array = _scaled(digits < 0)(x=x, scale=10.0 ** abs(digits))
    return made.astype(x.dtype, copy=False)


@functools.cache
def _scaled(is_down: bool) -> Any:
    """A kernel of one pass. Numbers whose product with the scale is infinite have no digits to
    round."""
    from kernwright._fuse.elementwise import elementwise

    if is_down:
        return elementwise("y = round(x / scale) * scale", name="round_tens")
    return elementwise(
        "y = where(isfinite(x * scale), round(x * scale) / scale, x)", name="round_digits"
    )


def _round_integers(x: Array, power: int) -> Array:
    if power > np.iinfo(x.dtype).max:
        return x * 0
    rest = x % power
    missing = power - rest
    is_odd = (x // power) % 2 == 1
    is_up = (rest > missing) | ((rest == missing) & is_odd)
    return (
        x - rest + is_up.astype(x.dtype) * power
    )  # a step that wraps around is undone by the next
