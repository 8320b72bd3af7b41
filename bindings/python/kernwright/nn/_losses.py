"""Losses and their gradients: cross-entropy of logits, and losses of pairs of elements.

>>> import numpy as np, kernwright as kw
>>> x, t = (kw.asarray(np.array(v, np.float32)) for v in ([1.0, 2.0], [1.0, 4.0]))
>>> kw.nn.mse_loss(x, t).item()
2.0
"""

from __future__ import annotations

from typing import Any, Literal

from kernwright._core import Array, _cross_entropy, _pointwise_loss
from kernwright.errors import InvalidArgument

__all__ = [
    "bce_with_logits",
    "bce_with_logits_backward",
    "bce_with_logits_grad",
    "cross_entropy",
    "cross_entropy_backward",
    "cross_entropy_grad",
    "huber_loss",
    "huber_loss_backward",
    "huber_loss_grad",
    "l1_loss",
    "l1_loss_backward",
    "l1_loss_grad",
    "mse_loss",
    "mse_loss_backward",
    "mse_loss_grad",
]

Reduction = Literal["none", "mean", "sum"]


def cross_entropy(
    logits: Any,
    target: Any,
    *,
    reduction: Reduction = "mean",
    label_smoothing: float = 0.0,
    ignore_index: int = -100,
    z_loss: float = 0.0,
    weight: Any = None,
    check: bool = False,
) -> Array:
    """The cross-entropy of rows of logits (..., V) with classes (...) of int32 or int64.

    With s = log(sum(exp(x))) of a row x, its target t and e = label_smoothing:
    (1 - e) (s - x[t]) + e (s - mean(x)) + z_loss s^2, in float32 (float64 for float64 logits).
    "mean" divides by the number of targets other than `ignore_index`; rows with that target are 0.
    With `weight`, (V,) of a real floating dtype, it is
    w[t] ((1 - e) (s - x[t]) + z_loss s^2) + e sum_c w[c] (s - x[c]) / V, and "mean" divides by the
    sum of w[t]: what torch computes. A target outside of [0, V) gives NaN; with `check` the call
    waits for the device and raises InvalidArgument with the first such target. Raises
    ArgumentError for other dtypes, InvalidArgument for shapes that do not fit.

    >>> kw.nn.cross_entropy(kw.asarray([[100.0, 0.0], [0.0, 100.0]]), kw.asarray([0, 0])).item()
    50.0
    """
    if check:
        _require_classes(target, logits, ignore_index)
    return _cross_entropy(
        logits, target, reduction, label_smoothing, z_loss, ignore_index, False, False, None, weight
    )[0]


def _require_classes(target: Any, logits: Any, ignored: int) -> None:
    """InvalidArgument for the first target that is no class and is not ignored."""
    import kernwright as kw
    from kernwright._array.operands import device_array

    ids, values = device_array(target, "target"), device_array(logits, "logits")
    if ids.size == 0 or ids.dtype.kind not in "iu" or values.ndim == 0:
        return
    classes = values.shape[-1]
    wrong = ((ids < 0) | (ids >= classes)) & (ids != ignored)
    place = kw.argmax(wrong.astype("uint8")).item()
    if wrong.reshape(-1)[place].item():
        found = ids.reshape(-1)[place].item()
        raise InvalidArgument(
            f"target {found} (element {place} of target) is none of the {classes} classes of an "
            f"array of shape {values.shape}"
        )


def cross_entropy_grad(
    logits: Any,
    target: Any,
    *,
    reduction: Reduction = "mean",
    label_smoothing: float = 0.0,
    ignore_index: int = -100,
    z_loss: float = 0.0,
    weight: Any = None,
    inplace: bool = False,
) -> tuple[Array, Array]:
    """cross_entropy() and the gradient of the logits, in one pass over them.

    The gradient has the shape and dtype of the logits; `inplace` writes it over them, which saves
    the memory of a second array. For logits in chunks of rows take "sum" and divide at the end.

    >>> loss, gradient = kw.nn.cross_entropy_grad(kw.zeros((1, 2)), kw.asarray([0]))
    >>> gradient.numpy()
    array([[-0.5,  0.5]], dtype=float32)
    """
    loss, gradient = _cross_entropy(
        logits,
        target,
        reduction,
        label_smoothing,
        z_loss,
        ignore_index,
        True,
        inplace,
        None,
        weight,
    )
    return loss, gradient


def cross_entropy_backward(
    grad: Any,
    logits: Any,
    target: Any,
    *,
    reduction: Reduction = "mean",
    label_smoothing: float = 0.0,
    ignore_index: int = -100,
    z_loss: float = 0.0,
    weight: Any = None,
    inplace: bool = False,
) -> Array:
    """The gradient of the logits, times `grad`, that of the loss and of its shape.

    >>> kw.nn.cross_entropy_backward(kw.ones(()), kw.zeros((1, 2)), kw.asarray([0])).numpy()
    array([[-0.5,  0.5]], dtype=float32)
    """
    return _cross_entropy(
        logits,
        target,
        reduction,
        label_smoothing,
        z_loss,
        ignore_index,
        True,
        inplace,
        grad,
        weight,
    )[1]


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


def bce_with_logits(
    x: Any, target: Any, *, reduction: Reduction = "mean", pos_weight: float = 1.0
) -> Array:
    """(1 - t) x + (1 + (pos_weight - 1) t) log(1 + exp(-x)) for targets t from 0 to 1.

    >>> kw.nn.bce_with_logits(kw.asarray([100.0, -100.0]), kw.asarray([1.0, 1.0])).item()
    50.0
    """
    return _pointwise_loss(
        "binary_cross_entropy", x, target, reduction, pos_weight, True, False, None
    )[0]


def bce_with_logits_grad(
    x: Any, target: Any, *, reduction: Reduction = "mean", pos_weight: float = 1.0
) -> tuple[Array, Array]:
    """bce_with_logits() and the gradient of `x`, in one pass.

    >>> x, target = kw.zeros(2), kw.asarray([0.0, 1.0])
    >>> kw.nn.bce_with_logits_grad(x, target, reduction="sum")[1].numpy()
    array([ 0.5, -0.5], dtype=float32)
    """
    loss, gradient = _pointwise_loss(
        "binary_cross_entropy", x, target, reduction, pos_weight, True, True, None
    )
    return loss, gradient


def bce_with_logits_backward(
    grad: Any, x: Any, target: Any, *, reduction: Reduction = "mean", pos_weight: float = 1.0
) -> Array:
    """The gradient of `x`, times `grad`, that of the loss and of its shape.

    >>> x, target = kw.zeros(2), kw.asarray([0.0, 1.0])
    >>> kw.nn.bce_with_logits_backward(kw.ones(2), x, target, reduction="none").numpy()
    array([ 0.5, -0.5], dtype=float32)
    """
    return _pointwise_loss(
        "binary_cross_entropy", x, target, reduction, pos_weight, False, True, grad
    )[1]
