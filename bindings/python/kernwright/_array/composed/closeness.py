"""Whether numbers are close, and arrays equal."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from kernwright._array.creation import full
from kernwright._array.operands import common_shape, device_array
from kernwright._core import Array
from kernwright.errors import InvalidArgument

__all__ = ["allclose", "array_equal", "array_equiv", "isclose"]


@functools.cache
def _close(equal_nan: bool) -> Any:
    from kernwright._fuse.elementwise import elementwise

    near = "abs(p - q) <= atol + rtol * abs(q)"
    close = f"where(isfinite(p) & isfinite(q), {near}, p == q)"
    text = f"p = a * 1.0; q = b * 1.0; r = {close}"
    return elementwise(text + " | ((p != p) & (q != q))" * equal_nan, name="isclose")


def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Array:
    """Whether |a - b| <= atol + rtol * |b| for finite numbers, a == b for others; NaN is close to
    NaN with `equal_nan`. Operands are arrays and numbers, at least one an array.

    >>> kw.isclose(kw.asarray([1.0, 2.0]), kw.asarray([1.000001, 2.1])).numpy()
    array([ True, False])
    """
    import kernwright as kw

    if not any(getattr(x, "dtype", np.dtype("f4")).kind == "c" or isinstance(x, complex)
               for x in (a, b)):  # fmt: skip
        made: Array = _close(bool(equal_nan))(a=a, b=b, rtol=rtol, atol=atol)
        return made
    bound = kw.abs(b) * rtol + atol if isinstance(b, Array) else abs(b) * rtol + atol
    finite = kw.isfinite(kw.add(a, b))
    near = kw.logical_and(finite, kw.less_equal(kw.abs(kw.subtract(a, b)), bound))
    made = kw.logical_or(near, kw.equal(a, b))
    if equal_nan:
        made = kw.logical_or(made, kw.logical_and(kw.not_equal(a, a), kw.not_equal(b, b)))
    return made


def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Array:
    """Whether all elements are close, as isclose() says: a bool array without dimensions, on the
    device; `if kw.allclose(a, b):` waits for it.

    >>> bool(kw.allclose(kw.ones(3), 1.000001))
    True
    """
    import kernwright as kw

    return kw.all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Array:
    """Whether two arrays have one shape and equal elements: a bool array without dimensions. NaN
    equals NaN with `equal_nan`.

    >>> bool(kw.array_equal(kw.asarray([1, 2]), kw.asarray([1, 2])))
    True
    """
    x, y = device_array(a1, "a1"), device_array(a2, "a2")
    if x.shape != y.shape:
        return full((), False, device=x.device)
    return _all_equal(x, y, equal_nan)


def array_equiv(a1: Any, a2: Any) -> Array:
    """Whether two arrays broadcast to one shape and are equal there.

    >>> bool(kw.array_equiv(kw.asarray([1, 2]), kw.asarray([[1, 2], [1, 2]])))
    True
    """
    x, y = device_array(a1, "a1"), device_array(a2, "a2")
    try:
        common_shape(x.shape, y.shape)
    except InvalidArgument:
        return full((), False, device=x.device)
    return _all_equal(x, y, False)


def _all_equal(x: Array, y: Array, equal_nan: bool) -> Array:
    import kernwright as kw

    equal = kw.equal(x, y)
    if equal_nan and (x.dtype.kind not in "iub" and y.dtype.kind not in "iub"):
        equal = kw.logical_or(equal, kw.logical_and(kw.isnan(x), kw.isnan(y)))
    return kw.all(equal)
