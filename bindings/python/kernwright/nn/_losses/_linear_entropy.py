"""Cross-entropy of a last layer's logits, of which a part exists at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import kernwright
from kernwright import _core
from kernwright._array.operands import device_array
from kernwright._core import Array, _cross_entropy
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.nn._linear import linear

__all__ = ["linear_cross_entropy"]

_LOGITS_BYTES = 1 << 30  # of the logits that exist at a time
_TILE = 128  # rows of a product's tile


class _Sums(NamedTuple):
    """Of all rows: the sum or the mean of the losses, and its gradients, perhaps by a factor."""

    loss: Array
    of_x: Array | None
    of_weight: Array | None


def linear_cross_entropy(
    x: Any, weight: Any, target: Any, *, reduction: Literal["mean", "sum"] = "mean",
    label_smoothing: float = 0.0, ignore_index: int = -100, z_loss: float = 0.0,
    chunk: int | None = None,
) -> Array:  # fmt: skip
    """cross_entropy(linear(x, weight), target) without the memory of all logits.

    x (..., k) and weight (V, k) are real floats of one dtype, `target` (...) is int32 or int64. The
    logits of `chunk` rows exist at a time; without it, 1 GiB of them. Where kw.grad() and its kin
    record, the gradients are computed with the loss, in the memory of the logits; that of `weight`
    is summed over the chunks in float32 (float64 for float64). The other arguments and the result
    are those of cross_entropy(). There is no second derivative. Raises ArgumentError,
    InvalidArgument for shapes that do not fit.

    >>> x, weight = kw.zeros((3, 4)), kw.zeros((8, 4))
    >>> round(kw.nn.linear_cross_entropy(x, weight, kw.asarray([0, 7, 2])).item(), 4)
    2.0794
    """
    if reduction not in ("mean", "sum"):
        raise ArgumentError(f'reduction is "mean" or "sum", got {reduction!r:.40}')
    x, weight = device_array(x, "x"), device_array(weight, "weight")
    target = device_array(target, "target")
    if weight.ndim != 2 or x.ndim < 1 or x.shape[-1] != weight.shape[1]:
        raise InvalidArgument(
            f"linear_cross_entropy() takes x (..., k) and weight (V, k), got {x.shape} and "
            f"{weight.shape}"
        )
    if target.shape != x.shape[:-1]:
        raise InvalidArgument(
            f"target has the shape {x.shape[:-1]} of x's rows, not {target.shape}"
        )
    options = (label_smoothing, z_loss, ignore_index)
    size = _chunk_rows(chunk, target.size, weight)
    whole = 0 < target.size <= size  # one chunk: its kernels compute a mean, too
    if not _core._is_recording():
        kind = reduction if whole else "sum"
        loss = _swept(x, weight, target, (kind, *options), size, (False, False), None).loss
        return loss if kind == reduction else loss / _count(target, ignore_index, loss.dtype)
    from kernwright._grad.recording import is_one, is_traced, note_joint, unrecorded

    if is_traced(target):
        raise ArgumentError("linear_cross_entropy() has no gradient of its target")
    with unrecorded():
        wide = "float64" if x.dtype.name == "float64" else "float32"
        # A mean's factor goes into the gradient of the logits, but float16 would lose digits.
        early = x.dtype.name != "float16"
        kind = reduction if whole and early else "sum"
        count = None if kind == reduction else _count(target, ignore_index, wide)
        wanted = (is_traced(x), is_traced(weight))
        factor = None if count is None or not early else 1 / count
        sums = _swept(x, weight, target, (kind, *options), size, wanted, factor)
        loss = sums.loss if count is None else sums.loss / count

    def pull(grad: Array) -> Sequence[Array | None]:
        if _core._is_recording() and (is_traced(x) or is_traced(weight)):
            raise ArgumentError("the gradient of linear_cross_entropy() has no gradient")
        made = (sums.of_x, sums.of_weight)
        if is_one(grad) and (count is None or early):
            return made
        scale = grad if count is None or early else grad / count
        return [None if each is None else each * scale for each in made]

    note_joint("linear_cross_entropy()", (x, weight), (loss,), pull)
    return loss


def _chunk_rows(chunk: int | None, rows: int, weight: Array) -> int:
    """Rows whose logits exist at a time; without a wish, equal parts in whole tiles."""
    if chunk is not None:
        if isinstance(chunk, bool) or not isinstance(chunk, int) or chunk < 1:
            raise ArgumentError(f"chunk is a number of rows from 1 on, got {chunk!r:.40}")
        return chunk
    parts = -(-rows * weight.shape[0] * weight.itemsize // _LOGITS_BYTES)
    return -(-rows // max(parts, 1) // _TILE) * _TILE or _TILE


def _count(target: Array, ignored: int, dtype: Any) -> Array:
    """The number of targets that count."""
    return kernwright.sum(target != ignored).astype(dtype)


def _swept(
    x: Array, weight: Array, target: Array, options: tuple[str, float, float, int], size: int,
    wanted: tuple[bool, bool], factor: Array | None,
) -> _Sums:  # fmt: skip
    """The sums over all rows, chunk by chunk (of one chunk the mean, as `options` say); `wanted`:
    whether the gradients of x and weight, by a factor."""
    rows, classes = x.reshape(target.size, x.shape[-1]), target.reshape(target.size)
    loss = of_weight = None
    whole = 0 < target.size <= size  # one chunk: nothing is put together
    of_x = kernwright.empty_like(rows) if wanted[0] and not whole else None
    wide = "float64" if x.dtype.name == "float64" else "float32"
    for begin in range(0, max(target.size, 1), size):
        some = rows[begin : begin + size]
        logits = linear(some, weight)
        given = (logits, classes[begin : begin + size], *options)
        part, grad = _cross_entropy(*given, any(wanted), any(wanted), factor, None)
        loss = part if loss is None else loss + part
        if whole and wanted[0]:
            of_x = grad @ weight
        elif of_x is not None:
            of_x[begin : begin + size] = grad @ weight
        if wanted[1]:
            product = grad.mT @ some
            product = product if whole else product.astype(wide, copy=False)
            of_weight = product if of_weight is None else of_weight + product
        del logits, given, grad  # before the next ones are made
    assert loss is not None
    return _Sums(loss, None if of_x is None else of_x.reshape(x.shape), of_weight)
