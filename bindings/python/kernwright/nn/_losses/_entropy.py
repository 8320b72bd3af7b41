"""Cross-entropy of rows of logits, the negative log-likelihood of classes, and their gradients."""

from __future__ import annotations

from typing import Any, Literal

from kernwright._core import Array, _cross_entropy
from kernwright.errors import InvalidArgument

__all__ = ["cross_entropy", "cross_entropy_backward", "cross_entropy_grad"]

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
    inplace: bool = False,
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

    Where a gradient is recorded, `inplace` computes it at once and writes it over the logits, which
    saves a pass over them and the memory of a second array. They may not be used afterwards.

    >>> kw.nn.cross_entropy(kw.asarray([[100.0, 0.0], [0.0, 100.0]]), kw.asarray([0, 0])).item()
    50.0
    """
    if check:
        _require_classes(target, logits, ignore_index)
    return _cross_entropy(
        logits,
        target,
        reduction,
        label_smoothing,
        z_loss,
        ignore_index,
        False,
        inplace,
        None,
        weight,
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
