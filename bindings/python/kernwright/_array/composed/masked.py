"""Reductions of the elements that a mask chooses, and reductions that begin at a number."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernwright._array.operands import device_array, stored
from kernwright._core import Array, _dtype, _reduce
from kernwright.errors import InvalidArgument

__all__ = ["reduced"]

# What an element that the mask leaves out is taken as.
_NEUTRAL = {"sum": 0, "prod": 1, "any": False, "all": True}
_COMBINED = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}


def reduced(
    name: str, x: Any, axis: Any, keepdims: bool, dtype: Any = None, parameter: float = 0.0,
    out: Array | None = None, initial: Any = None, where: Any = None,
) -> Array:  # fmt: skip
    """_reduce() with NumPy's arguments `initial` and `where`."""
    if initial is None and (where is None or where is True):
        return _reduce(name, x, axis, keepdims, dtype, parameter, out)
    array: Array = device_array(x)
    plain = name.removeprefix("nan")
    if plain in ("mean", "var", "std"):
        made = _moment(name, array, axis, keepdims, dtype, parameter, where)
    else:
        made = _accumulated(name, array, axis, keepdims, dtype, initial, where)
    return made if out is None else stored(made, out)


def _accumulated(
    name: str, x: Array, axis: Any, keepdims: bool, dtype: Any, initial: Any, where: Any
) -> Array:
    import kernwright as kw

    plain = name.removeprefix("nan")
    ordered = plain in ("max", "min")
    if ordered and initial is None:
        raise InvalidArgument(
            f"{name}(where=...) needs initial=, the result where the mask chooses no element"
        )
    if where is not None:
        neutral = initial if ordered else _NEUTRAL[plain]
        x = kw.where(where, x, neutral)
    if ordered and x.size == 0:
        made = kw.full_like(_reduce("sum", x, axis, keepdims), initial, dtype=x.dtype)
    else:
        made = _reduce(name, x, axis, keepdims, dtype)
    if initial is None:
        return made
    if ordered and name != plain:
        plain = f"f{plain}"  # kw.fmax and kw.fmin pass over NaN
        return getattr(kw, plain)(made, initial)  # type: ignore[no-any-return]
    combined: Array = getattr(kw, _COMBINED[plain])(made, initial)
    return combined if dtype is None else combined.astype(made.dtype, copy=False)


def _moment(
    name: str, x: Array, axis: Any, keepdims: bool, dtype: Any, free: float, where: Any
) -> Array:
    """Means, variances and deviations of the elements that `where` chooses."""
    import kernwright as kw

    result = np.dtype(_dtype(dtype)) if dtype is not None else x.dtype
    if dtype is None and result.kind in "iub":
        result = np.dtype(np.float64)
    # Sums of float16, bfloat16 and 8-bit floats are rounded once, at the end.
    narrow = result.itemsize < 4
    values = x.astype(np.float32 if narrow else result, copy=False)
    mask = kw.logical_and(where, kw.ones_like(values, dtype="bool"))
    if name.startswith("nan") and values.dtype.kind not in "iub":
        mask = kw.logical_and(mask, kw.logical_not(kw.isnan(values)))
    values = kw.where(mask, values, 0)
    count = _reduce("sum", mask, axis, True).astype(kw.real(values).dtype, copy=False)
    made = kw.divide(_reduce("sum", values, axis, True), count)
    if not name.endswith("mean"):
        distances = kw.where(mask, kw.square(kw.abs(values - made)), 0)
        made = kw.divide(_reduce("sum", distances, axis, True), kw.maximum(count - free, 0))
        made = kw.sqrt(made) if name.endswith("std") else made
        result = _real_of(result)
    if not keepdims:
        made = made.reshape(_reduce("any", mask, axis, False).shape)
    return made.astype(result, copy=False)


def _real_of(dtype: Any) -> Any:
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
