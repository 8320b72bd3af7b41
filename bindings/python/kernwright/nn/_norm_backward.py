"""Gradients of the norms."""

from __future__ import annotations

from kernwright import _core
from kernwright._core import Array

__all__ = [
    "group_norm_backward",
    "instance_norm_backward",
    "l2_norm_backward",
    "layer_norm_backward",
    "rms_norm_backward",
]


def rms_norm_backward(
    dy: Array, x: Array, weight: Array | None = None, eps: float = 1e-6
) -> tuple[Array, Array | None]:
    """(dx, dweight) for the gradient `dy` of y = rms_norm(x, weight, eps).

    With x_hat = x / sqrt(mean(x * x) + eps) and g = dy * weight: dx = (g - x_hat * mean(g * x_hat))
    / sqrt(mean(x * x) + eps), dweight = sum(dy * x_hat) over all rows, None without a weight. `dy`
    and `x` have one shape and dtype. For a norm with a residual pass the returned sum as `x`. dx,
    plus further gradients of that sum, is then the gradient of both summands. Sums are made in
    float32, float64 for float64, in a fixed order. Raises InvalidArgument as rms_norm() does.

    >>> import numpy as np, kernwright as kw
    >>> x = kw.asarray(np.array([[3.0, -4.0]], np.float32))
    >>> dx, dweight = kw.nn.rms_norm_backward(x, x, kw.ones(2), eps=0.0)
    >>> (abs(dx.numpy()) < 1e-6).all()
    np.True_
    """
    dx, dweight, *_ = _core._norm_backward("rms", dy, x, weight, eps, False, None)
    return dx, dweight


def layer_norm_backward(
    dy: Array,
    x: Array,
    weight: Array | None = None,
    eps: float = 1e-5,
    *,
    bias: bool = True,
) -> tuple[Array, Array | None, Array | None]:
    """(dx, dweight, dbias) for the gradient `dy` of y = layer_norm(x, weight, bias, eps).

    With x_hat = (x - mean(x)) / sqrt(variance(x) + eps) and g = dy * weight:
    dx = (g - mean(g) - x_hat * mean(g * x_hat)) / sqrt(variance(x) + eps),
    dweight = sum(dy * x_hat) and dbias = sum(dy) over all rows. dweight is None without a weight,
    dbias where `bias` is False; it has the weight's shape and dtype, else the last axis and the
    dtype of `x`. The rest is as for rms_norm_backward().

    >>> import numpy as np, kernwright as kw
    >>> x = kw.asarray(np.array([[1.0, 3.0], [2.0, 2.0]], np.float32))
    >>> kw.nn.layer_norm_backward(x, x)[2].numpy().tolist()
    [3.0, 5.0]
    """
    return _core._norm_backward("layer", dy, x, weight, eps, bias, None)[:3]


def group_norm_backward(
    dy: Array,
    x: Array,
    groups: int,
    weight: Array | None = None,
    eps: float = 1e-5,
    *,
    bias: bool = True,
) -> tuple[Array, Array | None, Array | None]:
    """(dx, dweight, dbias) for the gradient `dy` of y = group_norm(x, groups, weight, bias, eps).

    The formulas are those of layer_norm_backward(); dweight and dbias have an element for each
    channel.

    >>> import numpy as np, kernwright as kw
    >>> x = kw.asarray(np.array([[[1.0], [3.0], [5.0], [9.0]]], np.float32))
    >>> kw.nn.group_norm_backward(x, x, 2)[2].numpy().tolist()
    [1.0, 3.0, 5.0, 9.0]
    """
    return _core._norm_backward("layer", dy, x, weight, eps, bias, groups)[:3]


def instance_norm_backward(
    dy: Array,
    x: Array,
    weight: Array | None = None,
    eps: float = 1e-5,
    *,
    bias: bool = True,
) -> tuple[Array, Array | None, Array | None]:
    """(dx, dweight, dbias) for the gradient `dy` of y = instance_norm(x, weight, bias, eps).

    >>> import numpy as np, kernwright as kw
    >>> x = kw.asarray(np.array([[[1.0, 3.0], [5.0, 9.0]]], np.float32))
    >>> kw.nn.instance_norm_backward(x, x)[2].numpy().tolist()
    [4.0, 14.0]
    """
    return _core._norm_backward("layer", dy, x, weight, eps, bias, -1)[:3]


def l2_norm_backward(dy: Array, x: Array, axis: int = -1, eps: float = 1e-12) -> Array:
    """dx for the gradient `dy` of y = l2_norm(x, axis, eps).

    dx = (dy - y * sum(dy * y)) / sqrt(sum(x * x)), the sums along `axis`; dy / eps where the norm
    is at most `eps`.

    >>> import numpy as np, kernwright as kw
    >>> x = kw.asarray(np.array([3.0, 4.0]))
    >>> dy = kw.asarray(np.array([1.0, 0.0]))
    >>> kw.nn.l2_norm_backward(dy, x).numpy().round(3).tolist()
    [0.128, -0.096]
    """
    return _core._l2_norm_backward(dy, x, axis, eps)
