"""Gradients of the terms that attention adds to its scores: a mask of numbers, slopes of ALiBi.

The gradient of a score is weight * (<gradient, value> - <gradient, result>). Attention itself gives
the weights of a block of keys, as its result for values that are columns of the identity: so masks,
windows, caps, sinks, lengths and dropout are what they were.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import kernwright as kw
from kernwright._core import Array

__all__ = ["mask_and_slopes"]

_KEYS = 256  # of a block: the most elements that a value may have

# The result of attention for a value: of all weights as they were, or without dropout.
Attend = Callable[[Array, bool], Array]


def mask_and_slopes(
    g: Array, value: Array, out: Array, starts: tuple[Any, Any], has_dropout: bool, attend: Attend,
    mask: Array | None, slopes: Array | None,
) -> tuple[Array | None, Array | None]:  # fmt: skip
    """The gradients, not yet summed over axes along which a term was broadcast in front; None for
    terms that are None. `starts`: of packed queries and keys, or None twice."""
    is_packed = starts[0] is not None
    grad, values, result = (_batched(x, is_packed) for x in (g, value, out))
    delta = kw.sum(grad * result, axis=-1, keepdims=True)
    batch, heads, queries, _ = grad.shape
    kv_heads, keys = values.shape[1:3]
    grouped = grad.reshape(batch, kv_heads, heads // max(kv_heads, 1), queries, grad.shape[-1])
    query_at, key_at = (
        _places(count, start, g) for count, start in zip((queries, keys), starts, strict=True)
    )
    of_mask: list[Array] = []
    rows: Array | None = None
    for first in range(0, keys, _KEYS):
        end = min(first + _KEYS, keys)
        identity = kw.eye(keys, end - first, k=-first, dtype=value.dtype, device=value.device)
        shape = (*value.shape[:-1], end - first)
        one = kw.broadcast_to(identity[:, None] if is_packed else identity, shape)
        kept = _batched(attend(one, True), is_packed)
        weights = _batched(attend(one, False), is_packed) if has_dropout else kept
        changes = kw.matmul(grouped, values[:, :, None, first:end].mT)
        changes = kept * changes.reshape(kept.shape) - weights * delta
        changes = kw.where(weights == 0, 0, changes)  # values that nobody sees may be NaN
        if mask is not None:
            of_mask.append(_summed_like(mask, changes))
        if slopes is not None:
            distances = kw.abs(query_at[:, None] - key_at[first:end]).astype("float32")
            part = kw.sum(changes * -distances, axis=-1)
            rows = part if rows is None else rows + part
    of_slopes = None
    if slopes is not None:
        if rows is None:
            rows = kw.zeros((batch, heads, queries), "float32", device=g.device)
        of_slopes = _of_rows(rows, starts[0], slopes)
    return _joined(of_mask, mask), of_slopes


def _batched(x: Array, is_packed: bool) -> Array:
    """(batch, heads, tokens, elements) in float32."""
    return (kw.swapaxes(x, 0, 1)[None] if is_packed else x).astype("float32")


def _summed_like(mask: Array, changes: Array) -> Array:
    """Over the axes that the mask has no extent of."""
    extents = (1,) * (4 - mask.ndim) + mask.shape
    axes = tuple(n for n in range(4) if extents[n] == 1 and changes.shape[n] != 1)
    return kw.sum(changes, axis=axes, keepdims=True) if axes else changes


def _joined(parts: list[Array], mask: Array | None) -> Array | None:
    """The gradient of the mask from those of blocks of keys."""
    if mask is None:
        return None
    if not parts:
        return kw.zeros(mask.shape, "float32", device=mask.device)
    if mask.shape[-1:] in ((), (1,)):
        return sum(parts[1:], start=parts[0])
    return kw.concat(parts, axis=-1) if len(parts) > 1 else parts[0]


def _sequences(count: int, starts: Array) -> Array:
    """The sequence of each token: -1 in front of the first start."""
    tokens = kw.arange(count, dtype="int32", device=starts.device)
    return kw.searchsorted(starts, tokens, side="right") - 1


def _places(count: int, starts: Array | None, near: Array) -> Array:
    """The place of each token in its sequence."""
    tokens = kw.arange(count, dtype="int64", device=near.device)
    if starts is None:
        return tokens
    return tokens - kw.take(starts, kw.clip(_sequences(count, starts), 0, None)).astype("int64")


def _of_rows(rows: Array, starts: Array | None, slopes: Array) -> Array:
    """The gradient of slopes from that of each head and query; of each batch or not."""
    if starts is None:
        return kw.sum(rows, axis=2)
    numbers = kw.arange(starts.size - 1, dtype="int64", device=rows.device)
    belongs = numbers[:, None] == _sequences(rows.shape[2], starts)
    of_sequences = kw.where(belongs[:, None], rows, 0).sum(axis=-1)
    return of_sequences if slopes.ndim == 2 else of_sequences.sum(axis=0)
