"""Normalisation: RMS, layer, group, instance and L2."""

from __future__ import annotations

import functools
from typing import Any

import kernwright
from kernwright import _core
from kernwright._array.operands import device_array
from kernwright._core import Array
from kernwright.errors import InvalidArgument
from kernwright.nn._targets import chosen, one_each

__all__ = [
    "cosine_similarity",
    "group_norm",
    "instance_norm",
    "l2_norm",
    "layer_norm",
    "rms_norm",
]


def rms_norm(
    x: Array,
    weight: Array | None = None,
    eps: float = 1e-6,
    *,
    residual: Array | None = None,
    quantize: Any = None,
    out: Any = None,
) -> Any:
    """x / sqrt(mean(x * x) + eps) * weight, over the last axis, or the axes of `weight`.

    `x` is of float16, bfloat16 or float32, which are computed in float32, or of float64; any
    strides. The result has its shape and dtype. `weight` has the shape of the last axis of `x`, or
    axes, and any of these dtypes.

    With a `residual`, of the shape and dtype of `x`, the sum x + residual is rounded to that dtype
    and normalised, and returned too: (result, sum).

    With `quantize`, "int8" or "float8_e4m3fn", the result has that dtype, and a second result has a
    float32 scale for each row. result * scale is the norm; its largest magnitude becomes 127 or
    448. All together: (result, scales, sum). Rows may have 32768 elements at most.

    `out` takes the result, and is returned. It has the result's shape, dtype and device, is
    contiguous and begins at a multiple of 16 bytes. It may be `x` or the `residual`, but for a
    quantised result, and else shares no memory with arguments. Of several results it is a tuple of
    as many, in which None makes a new array; the sum's may be `x` or the `residual`, too.

    Raises InvalidArgument for other dtypes, for shapes that do not match and for an `out` that does
    not fit, ArgumentError for a tuple of another length.

    >>> import numpy as np, kernwright as kw
    >>> x = kw.asarray(np.array([[3.0, -3.0]], np.float32))
    >>> kw.nn.rms_norm(x, eps=0.0).numpy().tolist()
    [[1.0, -1.0]]
    >>> kw.nn.rms_norm(x, quantize="int8")[0].numpy().tolist()
    [[127, -127]]
    """
    return _normed("rms", x, weight, None, eps, residual, quantize, None, out)


def layer_norm(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
    *,
    residual: Array | None = None,
    quantize: Any = None,
    out: Any = None,
) -> Any:
    """(x - mean(x)) / sqrt(variance(x) + eps) * weight + bias, over the last axis or axes.

    The axes are those of `weight`, without it those of `bias`, and the last one without both; the
    two have one dtype. The variance is the mean of (x - mean(x))**2. `residual`, `quantize`, `out`,
    dtypes and errors are those of rms_norm().

    >>> import numpy as np, kernwright as kw
    >>> x = kw.asarray(np.array([[1.0, 3.0]], np.float32))
    >>> kw.nn.layer_norm(x, eps=0.0).numpy().tolist()
    [[-1.0, 1.0]]
    """
    return _normed("layer", x, weight, bias, eps, residual, quantize, None, out)


def group_norm(
    x: Array,
    groups: int,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
    *,
    out: Array | None = None,
) -> Array:
    """layer_norm() of `groups` groups of the channels of `x`, which is (batch, channels, ...).

    `weight` and `bias` have an element for each channel. The number of channels is a multiple of
    `groups`. `out`, dtypes and errors are those of rms_norm().

    >>> import numpy as np, kernwright as kw
    >>> x = kw.asarray(np.array([[[1.0], [3.0], [5.0], [9.0]]], np.float32))
    >>> kw.nn.group_norm(x, 2, eps=0.0).numpy().ravel().tolist()
    [-1.0, 1.0, -1.0, 1.0]
    """
    made: Array = _normed("layer", x, weight, bias, eps, None, None, groups, out)
    return made


def instance_norm(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
    *,
    out: Array | None = None,
) -> Array:
    """group_norm() with a group for each channel: over all axes behind the second.

    >>> import numpy as np, kernwright as kw
    >>> x = kw.asarray(np.array([[[1.0, 3.0], [5.0, 9.0]]], np.float32))
    >>> kw.nn.instance_norm(x, eps=0.0).numpy().tolist()
    [[[-1.0, 1.0], [-1.0, 1.0]]]
    """
    made: Array = _normed("layer", x, weight, bias, eps, None, None, -1, out)
    return made


def l2_norm(x: Array, axis: int = -1, eps: float = 1e-12, *, out: Array | None = None) -> Array:
    """x / max(sqrt(sum(x * x)), eps), the sum along `axis`.

    An axis other than the last is moved there by a copy, and the result is copied back. `out`,
    dtypes and errors are those of rms_norm(), and an axis out of range raises InvalidArgument.

    >>> import numpy as np, kernwright as kw
    >>> kw.nn.l2_norm(kw.asarray(np.array([3.0, 4.0]))).numpy().round(6).tolist()
    [0.6, 0.8]
    """
    if out is None:
        return _core._l2_norm(x, axis, eps)
    _core._l2_norm(x, axis, eps, out=out)
    return out


def _normed(
    kind: str, x: Any, weight: Any, bias: Any, eps: float, residual: Any, quantize: Any,
    groups: int | None, out: Any,
) -> Any:  # fmt: skip
    """Of (result, scales, sum) those that are asked for; the result alone is no tuple."""
    call = (kind, x, weight, bias, eps, residual, quantize, groups)
    if out is None:
        made: tuple[Any, ...] = _core._norm(*call)
    else:
        asked = {"result": True, "scales": quantize is not None, "sum": residual is not None}
        names = [name for name in asked if asked[name]]
        given = dict(zip(names, one_each(f"{kind}_norm", out, names), strict=True))
        targets = (given["result"], given.get("scales"), given.get("sum"))
        made = chosen(targets, _core._norm(*call, out=targets))
    results = tuple(each for each in made if each is not None)
    return results[0] if len(results) == 1 else results


def cosine_similarity(x1: Any, x2: Any, axis: int = 1, eps: float = 1e-8) -> Array:
    """sum(x1 * x2) / (max(norm(x1), eps) * max(norm(x2), eps)) along `axis` of two arrays that
    broadcast: torch's, and its default axis.

    One dtype of float16, bfloat16, float32 or float64; sums are made in float32 (float64). Raises
    InvalidArgument.

    >>> kw.nn.cosine_similarity(kw.asarray([[3.0, 4.0]]), kw.asarray([[4.0, 3.0]])).numpy()
    array([0.96], dtype=float32)
    """
    one, two = device_array(x1, "x1"), device_array(x2, "x2")
    floats = ("float16", "bfloat16", "float32", "float64")
    if one.dtype != two.dtype or one.dtype.name not in floats:
        raise InvalidArgument(f"x1 and x2 have one dtype of floats, got {one.dtype}, {two.dtype}")
    made: Array = _similarity(axis)(*kernwright.broadcast_arrays(one, two), float(eps))
    return made


@functools.lru_cache(maxsize=16)
def _similarity(axis: int) -> Any:
    """For one axis: a number in a call would be a parameter of the kernel."""
    kw = kernwright

    def similarity(x1: Any, x2: Any, eps: Any) -> Any:
        lengths = [kw.maximum(kw.sqrt((x * x).sum(axis=axis)), eps) for x in (x1, x2)]
        return (x1 * x2).sum(axis=axis) / (lengths[0] * lengths[1])

    return kw.fuse(similarity)
