"""Functions that pass over NaN: places of extremes, running sums and products."""

from __future__ import annotations

import functools
from typing import Any

from kernwright._array.operands import device_array, holds_somewhere
from kernwright._core import Array, _reduce
from kernwright.errors import ArgumentError, InvalidArgument

__all__ = ["nanargmax", "nanargmin", "nancumprod", "nancumsum"]


@functools.cache
def _replaced() -> Any:
    from kernwright._fuse.elementwise import elementwise

    return elementwise("y = where(x != x, other, x)", name="without_nan")


def _without_nan(array: Array, other: float) -> Array:
    import kernwright as kw

    if array.dtype.kind in "iub":
        return array
    if array.dtype.kind == "c":
        return kw.where(kw.isnan(array), other, array)
    made: Array = _replaced()(x=array, other=other)
    return made


def _place(name: str, x: Any, other: float, axis: Any, out: Any, keepdims: bool) -> Array:
    import kernwright as kw

    array: Array = device_array(x)
    if array.dtype.kind == "c":
        raise ArgumentError(f"nan{name}() of complex numbers: they have no order")
    if array.dtype.kind in "iub":
        return _reduce(name, array, axis, keepdims, out=out)
    found = _reduce(name, _without_nan(array, other), axis, keepdims)
    nowhere = kw.all(kw.isnan(array), axis, keepdims=keepdims)
    if holds_somewhere(nowhere, lambda: nowhere):
        raise InvalidArgument(f"nan{name}() of a slice that holds NaN alone (All-NaN slice)")
    return kw.where(nowhere, -1, found, out=out)


def nanargmax(x: Any, axis: Any = None, out: Array | None = None, keepdims: bool = False) -> Array:
    """Where the largest element that is not NaN is, as argmax() counts.

    InvalidArgument if a slice holds NaN alone: of floating elements the call waits for that answer.
    A capture cannot wait, and its replays give -1 there.

    >>> kw.nanargmax(kw.asarray([1.0, float("nan"), 2.0])).item()
    2
    """
    return _place("argmax", x, float("-inf"), axis, out, keepdims)


def nanargmin(x: Any, axis: Any = None, out: Array | None = None, keepdims: bool = False) -> Array:
    """Where the smallest element that is not NaN is; as nanargmax() otherwise.

    >>> kw.nanargmin(kw.asarray([float("nan"), 3.0, 2.0])).item()
    2
    """
    return _place("argmin", x, float("inf"), axis, out, keepdims)


def nancumsum(
    x: Any, axis: int | None = None, dtype: Any = None, out: Array | None = None
) -> Array:
    """cumsum() with 0 in place of NaN.

    >>> kw.nancumsum(kw.asarray([1.0, float("nan"), 2.0])).numpy()
    array([1., 1., 3.], dtype=float32)
    """
    return _without_nan(device_array(x), 0.0).cumsum(axis, dtype, out)


def nancumprod(
    x: Any, axis: int | None = None, dtype: Any = None, out: Array | None = None
) -> Array:
    """cumprod() with 1 in place of NaN.

    >>> kw.nancumprod(kw.asarray([2.0, float("nan"), 3.0])).numpy()
    array([2., 2., 6.], dtype=float32)
    """
    return _without_nan(device_array(x), 1.0).cumprod(axis, dtype, out)
