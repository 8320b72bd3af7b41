"""Binary cross-entropy whose positive classes have a weight each, as fused operations."""

from __future__ import annotations

import functools
from typing import Any

import kernwright
from kernwright._array.operands import device_array
from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument


def bce(
    x: Any, target: Any, weight: Any, reduction: str, value: bool, gradient: bool, grad: Any
) -> tuple[Array | None, Array | None]:
    """The loss and the gradient of `x` where they are asked for; see bce_with_logits()."""
    logits, targets = device_array(x, "x"), device_array(target, "target")
    weights = device_array(weight, "pos_weight")
    if logits.dtype != targets.dtype or logits.shape != targets.shape:
        raise InvalidArgument(
            f"x and target have one shape and dtype, got {logits.shape} {logits.dtype} and "
            f"{targets.shape} {targets.dtype}"
        )
    if logits.dtype.name not in ("float16", "bfloat16", "float32", "float64"):
        raise InvalidArgument(f"x is of float16 to float64, not {logits.dtype}")
    if reduction not in ("none", "mean", "sum"):
        raise ArgumentError(f'reduction is "none", "mean" or "sum", got {reduction!r:.40}')
    try:
        spread = kernwright.broadcast_to(weights, logits.shape)
    except InvalidArgument:
        raise InvalidArgument(
            f"pos_weight of shape {weights.shape} does not broadcast to x, {logits.shape}"
        ) from None
    value_of, slope_of = _fused()
    wide = "float64" if logits.dtype.name == "float64" else "float32"
    loss = None
    if value:
        each = value_of(logits, targets, spread, logits.dtype if reduction == "none" else wide)
        loss = {"none": lambda: each, "mean": each.mean, "sum": each.sum}[reduction]()
    if not gradient:
        return loss, None
    above = kernwright.ones((), wide, device=logits.device)
    if grad is not None:
        above = device_array(grad, "grad")
        if above.shape != (logits.shape if reduction == "none" else ()):
            raise InvalidArgument(f"grad has the shape of the loss, got {above.shape}")
    scale = 1.0 / logits.size if reduction == "mean" and logits.size else 1.0
    return loss, slope_of(logits, targets, spread, above, scale, logits.dtype)


@functools.cache
def _fused() -> tuple[Any, Any]:
    """The loss and its slope. No term is the difference of others: the small losses and slopes of
    sure logits keep their digits (see BinaryCrossEntropy of pointwise_loss.cu)."""
    kw = kernwright

    def value(x: Any, t: Any, w: Any, dtype: Any) -> Any:
        x, t, w = (each.astype(_wide(each)) for each in (x, t, w))
        below, above = 1 - t, w * t
        bend = kw.log1p(kw.exp(-abs(x)))
        return ((below + above) * bend + kw.where(x < 0, -above, below) * x).astype(dtype)

    def slope(x: Any, t: Any, w: Any, upstream: Any, scale: Any, dtype: Any) -> Any:
        x, t, w, upstream = (each.astype(_wide(each)) for each in (x, t, w, upstream))
        tail = kw.exp(-abs(x))
        near = 1 / (1 + tail)
        far, below, above = tail * near, 1 - t, w * t
        slopes = kw.where(x < 0, below * far - above * near, below * near - above * far)
        return (slopes * upstream * scale).astype(dtype)

    return kw.fuse(value), kw.fuse(slope)


def _wide(x: Any) -> str:
    return "float64" if x.dtype.name == "float64" else "float32"
