"""Normalisation: RMS, layer, group, instance and L2."""

from __future__ import annotations

from typing import Any

from kernwright import _core
from kernwright._core import Array

__all__ = ["group_norm", "instance_norm", "l2_norm", "layer_norm", "rms_norm"]


def rms_norm(
    x: Array,
    weight: Array | None = None,
    eps: float = 1e-6,
    *,
    residual: Array | None = None,
    quantize: Any = None,
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

    Raises InvalidArgument for other dtypes and for shapes that do not match.

    >>> import numpy as np, kernwright as kw
    >>> x = kw.asarray(np.array([[3.0, -3.0]], np.float32))
    >>> kw.nn.rms_norm(x, eps=0.0).numpy().tolist()
    [[1.0, -1.0]]
    >>> kw.nn.rms_norm(x, quantize="int8")[0].numpy().tolist()
    [[127, -127]]
    """
    results = _core._norm("rms", x, weight, None, eps, residual, quantize, None)
    return _what_was_asked(results)


def layer_norm(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
    *,
    residual: Array | None = None,
    quantize: Any = None,
) -> Any:
    """(x - mean(x)) / sqrt(variance(x) + eps) * weight + bias, over the last axis or axes.

    The axes are those of `weight`, without it those of `bias`, and the last one without both; the
    two have one dtype. The variance is the mean of (x - mean(x))**2. `residual` and `quantize`,
    dtypes and errors are those of rms_norm().

    >>> import numpy as np, kernwright as kw
    >>> x = kw.asarray(np.array([[1.0, 3.0]], np.float32))
    >>> kw.nn.layer_norm(x, eps=0.0).numpy().tolist()
    [[-1.0, 1.0]]
    """
    results = _core._norm("layer", x, weight, bias, eps, residual, quantize, None)
    return _what_was_asked(results)


def group_norm(
    x: Array,
    groups: int,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
) -> Array:
    """layer_norm() of `groups` groups of the channels of `x`, which is (batch, channels, ...).

    `weight` and `bias` have an element for each channel. The number of channels is a multiple of
    `groups`. Dtypes and errors are those of rms_norm().

    >>> import numpy as np, kernwright as kw
    >>> x = kw.asarray(np.array([[[1.0], [3.0], [5.0], [9.0]]], np.float32))
    >>> kw.nn.group_norm(x, 2, eps=0.0).numpy().ravel().tolist()
    [-1.0, 1.0, -1.0, 1.0]
    """
    return _core._norm("layer", x, weight, bias, eps, None, None, groups)[0]


def instance_norm(
    x: Array, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5
) -> Array:
    """group_norm() with a group for each channel: over all axes behind the second.

    >>> import numpy as np, kernwright as kw
    >>> x = kw.asarray(np.array([[[1.0, 3.0], [5.0, 9.0]]], np.float32))
    >>> kw.nn.instance_norm(x, eps=0.0).numpy().tolist()
    [[[-1.0, 1.0], [-1.0, 1.0]]]
    """
    return _core._norm("layer", x, weight, bias, eps, None, None, -1)[0]


def l2_norm(x: Array, axis: int = -1, eps: float = 1e-12) -> Array:
    """x / max(sqrt(sum(x * x)), eps), the sum along `axis`.

    An axis other than the last is moved there by a copy. Dtypes and errors are those of rms_norm(),
    and an axis out of range raises InvalidArgument.

    >>> import numpy as np, kernwright as kw
    >>> kw.nn.l2_norm(kw.asarray(np.array([3.0, 4.0]))).numpy().round(6).tolist()
    [0.6, 0.8]
    """
    return _core._l2_norm(x, axis, eps)


def _what_was_asked(results: tuple[Array | None, ...]) -> Any:
    """Of (result, scales, sum) those that are there; the result alone is no tuple."""
    given = tuple(each for each in results if each is not None)
    return given[0] if len(given) == 1 else given
