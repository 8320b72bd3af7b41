"""Losses of logarithms of probabilities: the likelihood of classes, the divergence of Kullback and
Leibler."""

from __future__ import annotations

import functools
from typing import Any, Literal

import kernwright
from kernwright._array.operands import device_array
from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.nn._losses._entropy import Reduction

__all__ = ["kl_div", "kl_div_backward", "nll_loss", "nll_loss_backward"]

_FLOATS = ("float16", "bfloat16", "float32", "float64")


def nll_loss(
    log_probs: Any, target: Any, *, weight: Any = None, ignore_index: int = -100,
    reduction: Reduction = "mean",
) -> Array:  # fmt: skip
    """-weight[t] * log_probs[..., t] of rows (..., C) with classes `target` (...) of integers.

    Rows whose target is `ignore_index` are 0; "mean" divides by the sum of the weights of the
    others (1 each without `weight`, (C,) of floats). A target outside of [0, C) gives NaN. The
    reduced loss is float32 (float64 for float64), that of "none" has the dtype of `log_probs`. The
    classes lie along the last axis, as in cross_entropy(); in torch along the second.

    >>> kw.nn.nll_loss(kw.asarray([[-1.0, -3.0], [-2.0, -4.0]]), kw.asarray([0, 1])).item()
    2.5
    """
    rows, ids, factors = _classes(log_probs, target, weight, ignore_index)
    picked = kernwright.take_along_axis(rows, ids[..., None], axis=-1)[..., 0]
    each = -(factors * picked.astype(factors.dtype))
    if reduction == "none":
        return each.astype(rows.dtype)
    total = each.sum()
    return total if reduction == "sum" else total / _counted(factors)


def nll_loss_backward(
    grad: Any, log_probs: Any, target: Any, *, weight: Any = None, ignore_index: int = -100,
    reduction: Reduction = "mean",
) -> Array:  # fmt: skip
    """The gradient of `log_probs`, times `grad`, that of the loss and of its shape.

    >>> x = kw.asarray([[-1.0, -3.0]])
    >>> kw.nn.nll_loss_backward(kw.ones(()), x, kw.asarray([1])).numpy().tolist()
    [[0.0, -1.0]]
    """
    rows, ids, factors = _classes(log_probs, target, weight, ignore_index)
    above = _upstream(grad, ids.shape if reduction == "none" else ())
    slopes = -(factors * above.astype(factors.dtype))
    if reduction == "mean":
        slopes = slopes / _counted(factors)
    made = kernwright.zeros(rows.shape, rows.dtype, device=rows.device)
    kernwright.put_along_axis(made, ids[..., None], slopes.astype(rows.dtype)[..., None], axis=-1)
    return made


def kl_div(
    x: Any, target: Any, *, reduction: Literal["none", "mean", "sum", "batchmean"] = "mean",
    log_target: bool = False,
) -> Array:  # fmt: skip
    """target * (log(target) - x) for logarithms `x` of probabilities, 0 for targets of 0; with
    `log_target` the targets are logarithms too: exp(target) * (target - x).

    "batchmean", the divergence itself, divides the sum by the first extent; "mean" by the number of
    elements. `x` and `target` have one shape and dtype; the reduced loss is float32 (float64).

    >>> p = kw.asarray([[0.25, 0.75]])
    >>> kw.nn.kl_div(kw.log(kw.asarray([[0.5, 0.5]])), p, reduction="batchmean").item().__round__(4)
    0.1308
    """
    values, targets = _pair(x, target)
    wide = "float64" if values.dtype.name == "float64" else "float32"
    dtype = values.dtype if reduction == "none" else wide
    divisor = _divisor(values, reduction)
    each: Array = _divergence(bool(log_target))(values, targets, dtype)
    return each if reduction == "none" else each.sum() / divisor


def kl_div_backward(
    grad: Any, x: Any, target: Any, *,
    reduction: Literal["none", "mean", "sum", "batchmean"] = "mean", log_target: bool = False,
) -> Array:  # fmt: skip
    """The gradient of `x`, times `grad`, that of the loss and of its shape.

    >>> x = kw.asarray([[-1.0, -1.0]])
    >>> kw.nn.kl_div_backward(kw.ones(()), x, kw.asarray([[0.5, 0.25]]), reduction="sum").numpy()
    array([[-0.5 , -0.25]], dtype=float32)
    """
    values, targets = _pair(x, target)
    above = _upstream(grad, values.shape if reduction == "none" else ())
    divisor = _divisor(values, reduction)
    chances = kernwright.exp(targets) if log_target else targets
    return (-(chances * above.astype(chances.dtype)) / divisor).astype(values.dtype)


@functools.cache
def _divergence(log_target: bool) -> Any:
    kw = kernwright

    def of_logarithms(x: Any, target: Any, dtype: Any) -> Any:
        wide = "float64" if x.dtype.name == "float64" else "float32"
        x, target = x.astype(wide), target.astype(wide)
        return (kw.exp(target) * (target - x)).astype(dtype)

    def of_probabilities(x: Any, target: Any, dtype: Any) -> Any:
        wide = "float64" if x.dtype.name == "float64" else "float32"
        x, target = x.astype(wide), target.astype(wide)
        logs = kw.log(kw.where(target == 0, 1.0, target))
        return kw.where(target == 0, 0.0, target * (logs - x)).astype(dtype)

    return kw.fuse(of_logarithms if log_target else of_probabilities)


def _divisor(values: Array, reduction: str) -> int:
    """What the sum of the elements is divided by: 1 for "sum" and "none"."""
    if reduction == "batchmean":
        if values.ndim == 0:
            raise InvalidArgument("batchmean divides by the first extent, and x has no axis")
        return max(values.shape[0], 1)
    if reduction not in ("none", "mean", "sum"):
        raise ArgumentError(
            f'reduction is "none", "mean", "batchmean" or "sum", got {reduction!r:.40}'
        )
    return max(values.size, 1) if reduction == "mean" else 1


def _pair(x: Any, target: Any) -> tuple[Array, Array]:
    values, targets = device_array(x, "x"), device_array(target, "target")
    if values.shape != targets.shape or values.dtype != targets.dtype:
        raise InvalidArgument(
            f"x and target have one shape and dtype, got {values.shape} {values.dtype} and "
            f"{targets.shape} {targets.dtype}"
        )
    if values.dtype.name not in _FLOATS:
        raise InvalidArgument(f"x is of float16 to float64, not {values.dtype}")
    return values, targets


def _classes(
    log_probs: Any, target: Any, weight: Any, ignore_index: int
) -> tuple[Array, Array, Array]:
    """Rows, classes to read, and the factor of each row: 0 if ignored, NaN for no class."""
    kw = kernwright
    rows, ids = device_array(log_probs, "log_probs"), device_array(target, "target")
    if rows.dtype.name not in _FLOATS or ids.dtype.kind not in "iu":
        raise InvalidArgument(
            f"log_probs are floats and targets integers, got {rows.dtype} and {ids.dtype}"
        )
    if rows.ndim == 0 or rows.shape[:-1] != ids.shape or rows.shape[-1] == 0:
        raise InvalidArgument(
            f"targets have the shape of log_probs without its classes, got {rows.shape} and "
            f"{ids.shape}"
        )
    count, wide = rows.shape[-1], "float64" if rows.dtype.name == "float64" else "float32"
    ignored = ids == ignore_index
    inside = (ids >= 0) & (ids < count)
    chosen = kw.where(inside & ~ignored, ids, 0).astype("int64")
    factors = kw.where(inside, 1.0, float("nan")).astype(wide)
    if weight is not None:
        weights = device_array(weight, "weight")
        if weights.shape != (count,) or weights.dtype.name not in _FLOATS:
            raise InvalidArgument(
                f"weight is ({count},) of floats, got {weights.shape} {weights.dtype}"
            )
        factors = factors * kw.take(weights, chosen).astype(wide)
    return rows, chosen, kw.where(ignored, 0.0, factors).astype(wide)


def _counted(factors: Array) -> Array:
    """What "mean" divides by: the weights of targets that are classes."""
    return kernwright.where(kernwright.isnan(factors), 0.0, factors).sum()


def _upstream(grad: Any, shape: tuple[int, ...]) -> Array:
    above = device_array(grad, "grad")
    if above.shape != shape:
        raise InvalidArgument(f"grad has the shape of the loss, {shape}, got {above.shape}")
    return above
