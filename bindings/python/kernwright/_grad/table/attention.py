"""Gradients of attention, and of the heads that it reads."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import kernwright as kw
from kernwright import _core
from kernwright._core import Array, _AttentionOptions
from kernwright._grad.recording import Joint, is_traced, note_joint, recordings, refuse_stale
from kernwright._grad.table.attention_scores import mask_and_slopes
from kernwright._grad.table.nn import constant
from kernwright.errors import ArgumentError

__all__ = ["attention", "merge_qkv", "split_qkv"]


def attention(
    decode: bool, query: Any, key: Any, value: Any, options: _AttentionOptions, targets: Any
) -> tuple[Any, Any]:
    """The handler of attention(): the logarithms of the sums are kept for the gradient."""
    mask, sinks, slopes = options.attn_mask, options.sinks, options.alibi
    added = (sinks, mask, slopes)
    turns_heads = any(is_traced(each) for each in (query, key, value))
    is_constant = not turns_heads and not any(is_traced(each) for each in added)
    if decode and not is_constant:
        constant("decode_attention()", query=query, key=key, value=value, sinks=sinks, alibi=slopes)
    rows = None if is_constant else _rows_of(query, key, value)
    if rows is not None and targets is None:
        targets = (_by_tokens(query, value.shape[-1]), None, None)
    wanted = options if is_constant else options._replace(return_lse=True)
    out, lse = _core._unrecorded(_core._attention, decode, query, key, value, wanted, targets)
    if is_constant:
        return out, lse

    def attend(values: Array, drops: bool) -> Any:
        dropout_p = options.dropout_p if drops else 0.0
        given = options._replace(return_lse=False, dropout_p=dropout_p)
        return _core._attention(decode, query, key, values, given, None)[0]

    def pull(g: Any, of_lse: Any = None) -> Sequence[Any]:
        if of_lse is not None:
            raise ArgumentError("the lse of attention() has no gradient: kw.stop_gradient(lse)")
        if g is None:
            return (None,) * len(operands)
        heads: Sequence[Any] = (None,) * (len(operands) - len(added))
        if turns_heads:
            heads = _core._attention_backward(
                g, query, key, value, out, lse, options._replace(return_lse=False, max_queries=0),
                rows is not None,
            )  # fmt: skip
        of_sinks, of_mask, of_slopes = None, None, None
        if wants_sinks:
            of_sinks = _of_sinks(g, out, lse, sinks, options.query_starts is not None)
        if wants_mask or wants_slopes:
            of_mask, of_slopes = mask_and_slopes(
                g, value, out, (options.query_starts, options.key_starts),
                bool(options.dropout_p), attend,
                mask if wants_mask else None, slopes if wants_slopes else None,
            )  # fmt: skip
        return *heads, of_sinks, of_mask, of_slopes

    wants_sinks, wants_mask, wants_slopes = (is_traced(each) for each in added)
    operands = (*((query, key, value) if rows is None else (rows,)), *added)
    note_joint("attention()", operands, (out, lse), pull)
    return out, lse if options.return_lse else None


def _by_tokens(query: Array, dim: int) -> Array:
    """Memory of a result whose heads lie side by side in each token: the next layer takes its rows
    as they are. Of heads whose bytes are no multiples of 16 it would be a copy."""
    batch, heads, tokens, _ = query.shape
    if dim * query.itemsize % 16 != 0:
        return kw.empty((batch, heads, tokens, dim), dtype=query.dtype, device=query.device)
    made = kw.empty((batch, tokens, heads, dim), dtype=query.dtype, device=query.device)
    return kw.swapaxes(made, 1, 2)


def _of_sinks(g: Array, out: Array, lse: Array, sinks: Array, is_packed: bool) -> Array:
    """A sink takes the share exp(sink - lse) of each row and adds nothing to it: its gradient is
    minus the sum of share * <g, out>. Rows without keys have no share."""
    products = kw.sum(g.astype("float32") * out.astype("float32"), axis=-1)
    products = products.mT if is_packed else products  # as the logarithms lie
    shares = kw.exp(sinks[:, None] - lse)
    parts = kw.where(products == 0, 0, shares * products)
    axes = tuple(axis for axis in range(parts.ndim) if axis != parts.ndim - 2)
    return -kw.sum(parts, axis=axes)


def _rows_of(query: Array, key: Array, value: Array) -> Array | None:
    """The array that split_qkv() made views of: its gradient then needs no merging. None where a
    recording knows the heads by another operation."""
    parts: Any = (query, key, value)
    found: Array | None = None
    refuse_stale("attention()", parts)
    unknown = []
    for recording in recordings():
        places = [recording.place(each) for each in parts]
        if places == [None] * 3:
            unknown.append(recording)
            continue
        if any(place is None or place[0] is not places[0][0] for place in places):
            return None
        found = getattr(places[0][0].joint, "rows", None)
        if found is None or [place[1] for place in places] != [0, 1, 2]:
            return None
    if found is None or any(recording.place(found) is not None for recording in unknown):
        return None
    return found


def split_qkv(qkv: Any, heads: int, kv_heads: int, heads_first: bool) -> Any:
    """The handler: views of `qkv`, which attention() reads where they lie."""
    if not is_traced(qkv):
        return _core._unrecorded(_core._split_qkv, qkv, heads, kv_heads, heads_first)
    counts = (heads, kv_heads, kv_heads)
    parts = _core._unrecorded(_heads, qkv, counts, heads_first)
    if parts is None:  # it says so
        return _core._unrecorded(_core._split_qkv, qkv, heads, kv_heads, heads_first)

    def pull(*given: Any) -> Sequence[Any]:
        like = next(g for g in given if g is not None)
        shape, axis = list(like.shape), like.ndim - (3 if heads_first else 2)

        def zeros(count: int) -> Array:
            shape[axis] = count
            return kw.zeros(shape, dtype=like.dtype, device=like.device)

        q, k, v = (zeros(n) if g is None else g for g, n in zip(given, counts, strict=True))
        return (_core._merge_qkv(q, k, v, heads_first),)

    if heads_first and qkv.ndim == 3:
        pull.rows = qkv  # type: ignore[attr-defined]
    note_joint("split_qkv()", (qkv,), parts, pull)
    return parts


def _heads(qkv: Array, counts: tuple[int, ...], heads_first: bool) -> tuple[Array, ...] | None:
    """Views of groups of heads; None where they do not fit."""
    total, (*before, extent) = sum(counts), qkv.shape
    if total < 1 or extent % total != 0 or not before:
        return None
    whole = qkv.reshape(*before, total, extent // total)
    if heads_first:
        whole = kw.swapaxes(whole, -2, -3)
    after = (slice(None),) * (2 if heads_first else 1)
    ends = itertools.accumulate(counts, initial=0)
    return tuple(whole[(..., slice(*pair), *after)] for pair in itertools.pairwise(ends))


def merge_qkv(y: Array, q: Array, k: Array, v: Array, heads_first: bool) -> Joint:
    axis = q.ndim - (3 if heads_first else 2)
    heads, kv_heads = q.shape[axis], k.shape[axis]
    return (q, k, v), (y,), lambda g: _core._split_qkv(g, heads, kv_heads, heads_first)
