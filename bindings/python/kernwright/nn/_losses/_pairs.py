"""Losses of pairs of elements and their gradients."""

from __future__ import annotations

from typing import Any

from kernwright._core import Array, _pointwise_loss
from kernwright.errors import InvalidArgument
from kernwright.nn._losses import _weighted
from kernwright.nn._losses._entropy import Reduction

__all__ = [
    "bce_with_logits",
    "bce_with_logits_backward",
    "bce_with_logits_grad",
    "huber_loss",
    "huber_loss_backward",
    "huber_loss_grad",
    "l1_loss",
    "l1_loss_backward",
    "l1_loss_grad",
    "mse_loss",
    "mse_loss_backward",
    "mse_loss_grad",
    "smooth_l1_loss",
    "smooth_l1_loss_backward",
    "smooth_l1_loss_grad",
]


def mse_loss(x: Any, target: Any, *, reduction: Reduction = "mean") -> Array:
    """(x - target)^2: its mean, its sum, or every element.

    `x` and `target` have the same shape, real floating dtype and device, else InvalidArgument. The
    reduced loss is of float32 (float64 for float64), that of "none" has the dtype of `x`.

    >>> kw.nn.mse_loss(kw.asarray([1.0, 2.0]), kw.asarray([1.0, 4.0])).item()
    2.0
    """
    return _pointwise_loss("squared", x, target, reduction, 1.0, True, False, None)[0]


def mse_loss_grad(x: Any, target: Any, *, reduction: Reduction = "mean") -> tuple[Array, Array]:
    """mse_loss() and the gradient of `x`, in one pass.

    >>> loss, gradient = kw.nn.mse_loss_grad(kw.asarray([1.0, 2.0]), kw.asarray([1.0, 4.0]))
    >>> loss.item(), gradient.numpy().tolist()
    (2.0, [0.0, -2.0])
    """
    loss, gradient = _pointwise_loss("squared", x, target, reduction, 1.0, True, True, None)
    return loss, gradient


def mse_loss_backward(grad: Any, x: Any, target: Any, *, reduction: Reduction = "mean") -> Array:
    """The gradient of `x`, times `grad`, that of the loss and of its shape.

    >>> x, target = kw.asarray([1.0, 2.0]), kw.asarray([1.0, 4.0])
    >>> kw.nn.mse_loss_backward(kw.ones(()), x, target).numpy()
    array([ 0., -2.], dtype=float32)
    """
    return _pointwise_loss("squared", x, target, reduction, 1.0, False, True, grad)[1]


def l1_loss(x: Any, target: Any, *, reduction: Reduction = "mean") -> Array:
    """abs(x - target).

    >>> kw.nn.l1_loss(kw.asarray([1.0, 5.0]), kw.asarray([3.0, 1.0])).item()
    3.0
    """
    return _pointwise_loss("absolute", x, target, reduction, 1.0, True, False, None)[0]


def l1_loss_grad(x: Any, target: Any, *, reduction: Reduction = "mean") -> tuple[Array, Array]:
    """l1_loss() and the gradient of `x`, in one pass.

    >>> loss, gradient = kw.nn.l1_loss_grad(kw.asarray([1.0, 5.0]), kw.asarray([3.0, 1.0]))
    >>> loss.item(), gradient.numpy().tolist()
    (3.0, [-0.5, 0.5])
    """
    loss, gradient = _pointwise_loss("absolute", x, target, reduction, 1.0, True, True, None)
    return loss, gradient


def l1_loss_backward(grad: Any, x: Any, target: Any, *, reduction: Reduction = "mean") -> Array:
    """The gradient of `x`, times `grad`, that of the loss and of its shape.

    >>> x, target = kw.asarray([1.0, 5.0]), kw.asarray([3.0, 1.0])
    >>> kw.nn.l1_loss_backward(kw.ones(()), x, target).numpy()
    array([-0.5,  0.5], dtype=float32)
    """
    return _pointwise_loss("absolute", x, target, reduction, 1.0, False, True, grad)[1]


def huber_loss(x: Any, target: Any, *, reduction: Reduction = "mean", delta: float = 1.0) -> Array:
    """0.5 d^2 up to delta, delta (d - 0.5 delta) beyond, for d = abs(x - target).

    >>> kw.nn.huber_loss(kw.asarray([1.0, 4.0]), kw.zeros(2), reduction="none").numpy()
    array([0.5, 3.5], dtype=float32)
    """
    return _pointwise_loss("huber", x, target, reduction, delta, True, False, None)[0]


def huber_loss_grad(
    x: Any, target: Any, *, reduction: Reduction = "mean", delta: float = 1.0
) -> tuple[Array, Array]:
    """huber_loss() and the gradient of `x`, in one pass.

    >>> kw.nn.huber_loss_grad(kw.asarray([0.5, 4.0]), kw.zeros(2), reduction="sum")[1].numpy()
    array([0.5, 1. ], dtype=float32)
    """
    loss, gradient = _pointwise_loss("huber", x, target, reduction, delta, True, True, None)
    return loss, gradient


def huber_loss_backward(
    grad: Any, x: Any, target: Any, *, reduction: Reduction = "mean", delta: float = 1.0
) -> Array:
    """The gradient of `x`, times `grad`, that of the loss and of its shape.

    >>> x = kw.asarray([0.5, 4.0])
    >>> kw.nn.huber_loss_backward(kw.ones(2), x, kw.zeros(2), reduction="none").numpy()
    array([0.5, 1. ], dtype=float32)
    """
    return _pointwise_loss("huber", x, target, reduction, delta, False, True, grad)[1]


def smooth_l1_loss(
    x: Any, target: Any, *, reduction: Reduction = "mean", beta: float = 1.0
) -> Array:
    """0.5 d^2 / beta below beta, d - 0.5 beta beyond, for d = abs(x - target); with a `beta` of 0
    it is l1_loss(). It is huber_loss() over beta.

    >>> kw.nn.smooth_l1_loss(kw.asarray([1.0, 4.0]), kw.zeros(2), reduction="none").numpy()
    array([0.5, 3.5], dtype=float32)
    """
    if _not_negative(beta, "beta") == 0:
        return l1_loss(x, target, reduction=reduction)
    return huber_loss(x, target, reduction=reduction, delta=beta) / beta


def smooth_l1_loss_grad(
    x: Any, target: Any, *, reduction: Reduction = "mean", beta: float = 1.0
) -> tuple[Array, Array]:
    """smooth_l1_loss() and the gradient of `x`.

    >>> kw.nn.smooth_l1_loss_grad(kw.asarray([1.0, 4.0]), kw.zeros(2), beta=2.0)[1].numpy()
    array([0.25, 0.5 ], dtype=float32)
    """
    if _not_negative(beta, "beta") == 0:
        return l1_loss_grad(x, target, reduction=reduction)
    loss, gradient = huber_loss_grad(x, target, reduction=reduction, delta=beta)
    return loss / beta, gradient / beta


def smooth_l1_loss_backward(
    grad: Any, x: Any, target: Any, *, reduction: Reduction = "mean", beta: float = 1.0
) -> Array:
    """The gradient of `x`, times `grad`, that of the loss and of its shape.

    >>> kw.nn.smooth_l1_loss_backward(kw.ones(()), kw.asarray([1.0, 4.0]), kw.zeros(2)).numpy()
    array([0.5, 0.5], dtype=float32)
    """
    if _not_negative(beta, "beta") == 0:
        return l1_loss_backward(grad, x, target, reduction=reduction)
    return huber_loss_backward(grad, x, target, reduction=reduction, delta=beta) / beta


def bce_with_logits(
    x: Any, target: Any, *, reduction: Reduction = "mean", pos_weight: Any = 1.0
) -> Array:
    """(1 - t) x + (1 + (pos_weight - 1) t) log(1 + exp(-x)) for targets t from 0 to 1.

    `pos_weight` is a number, or an array that broadcasts to `x`: one for each class, say.

    >>> kw.nn.bce_with_logits(kw.asarray([100.0, -100.0]), kw.asarray([1.0, 1.0])).item()
    50.0
    """
    loss: Array = _bce(x, target, reduction, pos_weight, True, False, None)[0]
    return loss


def bce_with_logits_grad(
    x: Any, target: Any, *, reduction: Reduction = "mean", pos_weight: Any = 1.0
) -> tuple[Array, Array]:
    """bce_with_logits() and the gradient of `x`, in one pass.

    >>> x, target = kw.zeros(2), kw.asarray([0.0, 1.0])
    >>> kw.nn.bce_with_logits_grad(x, target, reduction="sum")[1].numpy()
    array([ 0.5, -0.5], dtype=float32)
    """
    loss, gradient = _bce(x, target, reduction, pos_weight, True, True, None)
    return loss, gradient


def bce_with_logits_backward(
    grad: Any, x: Any, target: Any, *, reduction: Reduction = "mean", pos_weight: Any = 1.0
) -> Array:
    """The gradient of `x`, times `grad`, that of the loss and of its shape.

    >>> x, target = kw.zeros(2), kw.asarray([0.0, 1.0])
    >>> kw.nn.bce_with_logits_backward(kw.ones(2), x, target, reduction="none").numpy()
    array([ 0.5, -0.5], dtype=float32)
    """
    gradient: Array = _bce(x, target, reduction, pos_weight, False, True, grad)[1]
    return gradient


def _bce(
    x: Any, target: Any, reduction: Reduction, pos_weight: Any, value: bool, gradient: bool,
    grad: Any,
) -> Any:  # fmt: skip
    """By the kernel of pairs, or with an array of weights by fused operations."""
    if hasattr(pos_weight, "shape") and pos_weight.shape != ():
        return _weighted.bce(x, target, pos_weight, reduction, value, gradient, grad)
    weight = float(pos_weight)
    return _pointwise_loss(
        "binary_cross_entropy", x, target, reduction, weight, value, gradient, grad
    )


def _not_negative(value: Any, name: str) -> float:
    number = float(value)
    if not number >= 0:
        raise InvalidArgument(f"{name} is not negative, got {number}")
    return number
