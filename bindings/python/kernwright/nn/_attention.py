"""Attention over arrays, and over the caches of a model that writes token by token.

>>> import kernwright as kw
>>> q, kv = kw.ones((1, 8, 5, 64), "bfloat16"), kw.ones((1, 2, 7, 64), "bfloat16")
>>> kw.nn.attention(q, kv, kv, is_causal=True, enable_gqa=True).shape
(1, 8, 5, 64)
>>> kw.nn.decode_attention(q[:, :, :1], kv, kv).shape
(1, 8, 1, 64)
"""

from __future__ import annotations

import math
from typing import Any

from kernwright._core import Array, _attention, _AttentionOptions
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.nn._attention_float8 import attended, is_float8, widened
from kernwright.nn._targets import chosen, of_attention

__all__ = ["attention", "decode_attention"]


def attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    window: int | tuple[int, int] | None = None,
    soft_cap: float | None = None,
    sinks: Any = None,
    alibi: Any = None,
    query_lengths: Any = None,
    lengths: Any = None,
    cu_seqlens_q: Any = None,
    cu_seqlens_k: Any = None,
    max_seqlen_q: int | None = None,
    seed: int | None = None,
    offset: int = 0,
    return_lse: bool = False,
    query_scale: Any = None,
    key_scale: Any = None,
    value_scale: Any = None,
    use_fast_accum: bool = False,
    out: Any = None,
) -> Any:
    """softmax(scale * query key^T + attn_mask) value, as torch's scaled_dot_product_attention.

    query (..., heads, L, E), key (..., heads, S, E), value (..., heads, S, Ev), of float16,
    bfloat16 or float32, any strides, E and Ev at most 256; the result is (..., heads, L, Ev), of
    the query's dtype. With `enable_gqa` key and value may have fewer heads, a divisor of the
    query's. A row that sees no key is 0. The same call gives the same bits each time.

    - attn_mask: bool (True: the key is seen), or float32 or the query's dtype to add; broadcasts to
      (batch, heads, L, S). -inf hides a key, finite numbers do not. Not with `is_causal`.
    - is_causal: query i sees keys up to i, also with more keys than queries.
    - scale: 1 / sqrt(E) without one. soft_cap: scores become soft_cap * tanh(score / soft_cap).
    - dropout_p: the chance of a weight to be dropped, 0 to 1; takes `seed`, and `offset`.
    - window: (left, right): query i sees keys i - left to i + right, -1 for no limit; a number w
      stands for (w - 1, 0).
    - sinks: float32 (heads,): logits of one more key of each head that has no value.
    - alibi: float32 (heads,) or (batch, heads): -slope * |i - j| is added.
    - lengths, query_lengths: int32 (batch,): later keys and queries are ignored, also NaN.
    - cu_seqlens_q, cu_seqlens_k: int32 (batch + 1,) starts of packed sequences: query (tokens,
      heads, E), key and value (tokens, heads, E). Results of tokens outside of all sequences are
      not written. `max_seqlen_q`: the queries of the longest sequence.
    - return_lse: also log(sum(exp(score))), float32 (batch, heads, L) or (heads, tokens).
    - query_scale, key_scale, value_scale: for float8 operands, a number, or float32 (), (heads,) or
      (batch, heads). `use_fast_accum`: their products are added with fewer bits.
    - out: takes the result, and is returned; with `return_lse` a tuple for both.

    kw.grad() gives gradients of query, key and value, of a mask of numbers, sinks and alibi; a mask
    and alibi cost an attention() for each 256 keys. Raises ArgumentError for arguments of a wrong
    kind, InvalidArgument for shapes and dtypes that do not go together.

    >>> q, kv = kw.ones((1, 8, 5, 64), "bfloat16"), kw.ones((1, 2, 7, 64), "bfloat16")
    >>> kw.nn.attention(q, kv, kv, is_causal=True, enable_gqa=True).shape
    (1, 8, 5, 64)
    """
    left, right = _settings(attn_mask, dropout_p, is_causal, window, seed)
    packed = cu_seqlens_q is not None
    query, key, value, shape = _four_axes(query, key, value, packed)
    _require_groups(query, key, enable_gqa)
    scales = (query_scale, key_scale, value_scale)
    scaled = query_scale is not None or key_scale is not None or value_scale is not None
    options = _AttentionOptions(  # Python makes a dict first where more than 15 have names
        attn_mask,
        sinks,
        alibi,
        query_lengths=query_lengths,
        lengths=lengths,
        query_starts=cu_seqlens_q,
        key_starts=cu_seqlens_k,
        scale=scale,
        soft_cap=soft_cap or 0.0,
        left=left,
        right=right,
        return_lse=return_lse,
        dropout_p=dropout_p,
        seed=seed or 0,
        offset=offset,
        max_queries=max_seqlen_q or 0,
    )
    targets = of_attention("attention", out, return_lse, shape)
    made = None
    if scaled or is_float8(query) or is_float8(key) or is_float8(value):
        operands = (query, key, value)
        if not dropout_p:
            made = attended(operands, scales, packed, options, bool(use_fast_accum), targets)
        if made is None:
            query, key, value = widened(operands, scales, packed)
    result, lse = made or _attention(False, query, key, value, options, targets)
    if shape is not None:
        result = result.reshape((*shape, result.shape[-1]))
        lse = lse if lse is None else lse.reshape(shape)
    if targets is not None:
        result, lse = chosen(targets[:2], (result, lse))
    return (result, lse) if return_lse else result


def decode_attention(
    query: Any,
    key_cache: Any,
    value_cache: Any,
    lengths: Any = None,
    *,
    page_table: Any = None,
    scale: float | None = None,
    window: int | None = None,
    soft_cap: float | None = None,
    sinks: Any = None,
    alibi: Any = None,
    key_scale: Any = None,
    value_scale: Any = None,
    return_lse: bool = False,
    splits: int | None = None,
    check: bool = False,
    out: Any = None,
) -> Any:
    """Attention of a sequence's last tokens over its cache; the result is like the query.

    query (batch, heads, tokens, E): the last tokens of `lengths` (int32 (batch,); the whole cache
    without it), whose keys and values are in the cache already. Each token sees itself and all
    before it; with a `window` w it sees the last w of them. key_cache and value_cache (batch,
    kv_heads, S, E), kv_heads a divisor of heads; any strides, so that caches (batch, S, kv_heads,
    E) go in as a view. With `page_table`, int32 (batch, pages), caches are (page count, page size,
    kv_heads, E), of any page size, and token t is in row t % page size of page page_table[b, t //
    page size]. There queries and keys of 16 bits may have 576 elements, values 256 at most: those
    of latent attention are a view of its keys.

    float16 and bfloat16 on matrix units, float32 by plain multiplications; beside queries of 16
    bits, caches may also be int8, float8_e4m3fn or float8_e5m2, times key_scale and value_scale,
    float32 (kv_heads,), or those of tokens as append_cache() writes them. scale, soft_cap, sinks,
    alibi, return_lse and out are those of attention(); alibi counts from the token's place in its
    sequence.

    Blocks share the context, `splits` of them (as many as the device needs without it); their
    results are put together in a fixed order. A page number outside of the cache reads nothing: the
    batch's result is NaN; `check` waits and raises InvalidArgument. Numbers of pages behind a
    batch's length, and of those in front of its window, are not looked at. Lengths beyond the cache
    count as the whole cache. Raises ArgumentError and InvalidArgument as attention() does.

    >>> q, cache = kw.ones((1, 8, 1, 64), "bfloat16"), kw.ones((1, 2, 32, 64), "bfloat16")
    >>> kw.nn.decode_attention(q, cache, cache, kw.asarray([7], "int32")).shape
    (1, 8, 1, 64)
    """
    if window is not None and (not isinstance(window, int) or window < 1):
        raise ArgumentError(f"decode_attention: a window is a number of tokens, got {window!r}")
    if check and page_table is not None:
        _require_pages(query, key_cache, page_table, lengths, window)
    targets = of_attention("decode_attention", out, return_lse)
    options = _AttentionOptions(
        sinks=sinks,
        alibi=alibi,
        lengths=lengths,
        page_table=page_table,
        key_scale=key_scale,
        value_scale=value_scale,
        scale=scale,
        soft_cap=soft_cap or 0.0,
        left=-1 if window is None else min(window, 2**62) - 1,
        right=0,
        bottom=True,
        return_lse=return_lse,
        splits=splits or 0,
    )
    result, lse = _attention(True, query, key_cache, value_cache, options, targets)
    if targets is not None:
        result, lse = chosen(targets[:2], (result, lse))
    return (result, lse) if return_lse else result


def _require_pages(query: Any, cache: Any, table: Any, lengths: Any, window: int | None) -> None:
    """Waits, and raises InvalidArgument where a page that is read is none of the cache."""
    arrays = (query, cache, table) if lengths is None else (query, cache, table, lengths)
    right = all(isinstance(each, Array) for each in arrays) and query.ndim == cache.ndim == 4
    if not right or table.ndim != 2 or (lengths is not None and lengths.ndim != 1):
        return  # what is wrong is named where arguments are read
    import kernwright as kw

    outside = (table < 0) | (table >= cache.shape[0])
    page, pages = cache.shape[1], table.shape[1]
    ends = kw.full((1, 1), page * pages, "int64", device=table.device)
    if lengths is not None:
        ends = kw.minimum(ends, lengths.astype("int64").reshape((-1, 1)))
    begins = page * kw.arange(pages, dtype="int64", device=table.device)
    outside = outside & (begins < ends)
    if window is not None:
        outside = outside & (begins + page > ends - (query.shape[2] + window - 1))
    count = int(outside.sum())
    if count:
        raise InvalidArgument(
            f"decode_attention: {count} entries of page_table are no pages of the {cache.shape[0]} "
            "of the cache"
        )


def _settings(
    attn_mask: Any, dropout_p: float, is_causal: bool, window: Any, seed: int | None
) -> tuple[int, int]:
    """Keys seen on either side; raises for arguments that exclude each other."""
    if attn_mask is not None and is_causal:
        raise InvalidArgument("attention: attn_mask and is_causal exclude each other, as in torch")
    if dropout_p and seed is None:
        raise ArgumentError("attention: dropout_p takes a seed, as in seed=1")
    left, right = window_sides(window)
    return left, 0 if is_causal else right


def window_sides(window: Any) -> tuple[int, int]:
    """Keys seen before and after a query's own, -1 for no limit."""
    if window is None:
        return -1, -1
    sides = window if isinstance(window, (tuple, list)) and len(window) == 2 else [window]
    if all(isinstance(side, int) and not isinstance(side, bool) for side in sides):
        if len(sides) == 2:
            return sides[0], sides[1]
        if window >= 1:
            return min(window, 2**62) - 1, 0
    raise ArgumentError(f"attention: a window is a number of keys or (left, right), got {window!r}")


def _four_axes(query: Any, key: Any, value: Any, packed: bool) -> tuple[Any, Any, Any, Any]:
    """Operands of four axes, and the shape of the result's rows where that is another."""
    ndim = getattr(query, "ndim", 4)
    if packed or ndim == 4 or not all(isinstance(x, Array) for x in (query, key, value)):
        return query, key, value, None
    if ndim < 2 or key.ndim != ndim or value.ndim != ndim:
        raise InvalidArgument(
            f"Incompatible dimensions: query has shape {query.shape}, key {key.shape}, value "
            f"{value.shape}; they have the axes (..., heads, tokens, head_dim)"
        )
    shape = query.shape[:-1]
    query, key, value = (
        x.reshape((1,) * (4 - ndim) + x.shape)
        if ndim < 4
        else x.reshape((math.prod(x.shape[:-3]), *x.shape[-3:]))
        for x in (query, key, value)
    )
    return query, key, value, shape


def _require_groups(query: Any, key: Any, enable_gqa: bool) -> None:
    q, k = getattr(query, "shape", ()), getattr(key, "shape", ())
    axis = -3 if len(q) == 4 else -2
    if len(q) >= 3 and len(k) == len(q) and q[axis] != k[axis] and not enable_gqa:
        raise InvalidArgument(
            f"Incompatible dimensions: the query has {q[axis]} heads, the key {k[axis]}; "
            "enable_gqa=True lets heads share keys"
        )
