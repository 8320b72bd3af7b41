"""Float8 operands of attention, and their scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import kernwright
from kernwright._core import Array, _AttentionOptions, _float8_attention
from kernwright.errors import ArgumentError, InvalidArgument

FLOAT8 = ("float8_e4m3fn", "float8_e5m2")
_NAMES = ("query", "key", "value")
_NUMBERS = (int, float, np.integer, np.floating)


def is_float8(x: Any) -> bool:
    # The name of a dtype takes microseconds; most operands have wider elements.
    return isinstance(x, Array) and x.itemsize == 1 and str(x.dtype) in FLOAT8


def attended(
    operands: Sequence[Any],
    scales: Sequence[Any],
    packed: bool,
    options: _AttentionOptions,
    fast_accum: bool,
    out: tuple[Any, Any, Any] | None,
) -> tuple[Any, Any] | None:
    """The result and its logarithms by products of float8; nothing where operands have to be
    widened. With `fast_accum` tensor cores accumulate alone. `out`: as of_attention() makes it."""
    biased = options.attn_mask is not None or options.alibi is not None
    if biased or not all(is_float8(x) for x in operands):
        return None
    factors = [1.0, 1.0, 1.0]
    given: list[Any] = [None, None, None]
    for i, (name, x, scale) in enumerate(zip(_NAMES, operands, scales, strict=True)):
        if isinstance(scale, _NUMBERS):
            factors[i] = float(scale)
        elif scale is not None:
            given[i] = _checked(f"{name}_scale", x, scale, packed)
    scores, values = factors[0] * factors[1], factors[2]
    query, key, value = operands
    return _float8_attention(query, key, value, options, given, scores, values, fast_accum, out)


def widened(operands: Sequence[Any], scales: Sequence[Any], packed: bool) -> list[Any]:
    """Query, key and value of four axes (three where `packed`). Those of float8 become what their
    bytes stand for, times their scales, in the query's dtype or bfloat16: one kernel each. Others
    stay. Raises ArgumentError and InvalidArgument for scales that do not fit."""
    query = operands[0]
    dtype = "bfloat16" if is_float8(query) or not isinstance(query, Array) else str(query.dtype)
    made = []
    for name, x, scale in zip(_NAMES, operands, scales, strict=True):
        if scale is not None:
            factor = _factor(f"{name}_scale", x, scale, packed)
            x = _times(dtype)(x, factor)
        elif is_float8(x):
            x = x.astype(dtype)
        made.append(x)
    return made


def _factor(name: str, x: Any, scale: Any, packed: bool) -> Array:
    """`scale` in the axes of the heads of `x`."""
    factor = _checked(name, x, scale, packed)
    return factor.reshape((*factor.shape, *(1,) * (1 if packed else 2))) if factor.ndim else factor


def _checked(name: str, x: Any, scale: Any, packed: bool) -> Array:
    """`scale` as an array, of the heads of `x` or of all."""
    if not is_float8(x):
        what = getattr(x, "dtype", type(x).__name__)
        raise InvalidArgument(f"attention: {name} is for float8 operands; this one is {what}")
    if isinstance(scale, _NUMBERS):
        scale = kernwright.asarray(np.float32(scale), device=x.device)
    if not isinstance(scale, Array) or str(scale.dtype) != "float32":
        what = str(scale.dtype) if isinstance(scale, Array) else f"a {type(scale).__name__}"
        raise ArgumentError(f"attention: {name} is a number or a float32 array, not {what}")
    heads = x.shape[1]
    shapes = [(), (heads,)] if packed else [(), (heads,), (x.shape[0], heads)]
    if scale.shape not in shapes:
        raise InvalidArgument(
            f"Incompatible dimensions for attention: {name} has shape {scale.shape}, and must be "
            f"one of {', '.join(map(str, shapes))} for an operand of shape {x.shape}"
        )
    made: Array = scale
    return made


_kept: dict[str, Any] = {}


def _times(dtype: str) -> Any:
    """x * scale in one kernel in float32, rounded once."""
    if dtype not in _kept:
        _kept[dtype] = kernwright.fuse(lambda x, scale: (x * scale).astype(dtype))
    return _kept[dtype]
