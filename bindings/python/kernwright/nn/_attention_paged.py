"""Attention of chunks of new tokens over caches in pages.

>>> import kernwright as kw
>>> pages = kw.zeros((6, 16, 2, 64), "bfloat16")        # six pages of 16 tokens, two heads of 64
>>> table = kw.asarray([[4, 1], [0, 3]], "int32")       # two for each of two sequences
>>> lengths = kw.asarray([20, 7], "int32")              # the first has 20 tokens, five are new
>>> starts = kw.asarray([0, 5, 6], "int32")             # the last one of the second is new
>>> q = kw.ones((6, 8, 64), "bfloat16")
>>> kw.nn.paged_attention(q, pages, pages, table, lengths, starts).shape
(6, 8, 64)
"""

from __future__ import annotations

from typing import Any

from kernwright._core import _AttentionOptions, _paged_attention
from kernwright.errors import ArgumentError
from kernwright.nn._targets import chosen, of_attention

__all__ = ["paged_attention"]


def paged_attention(
    query: Any,
    key_cache: Any,
    value_cache: Any,
    page_table: Any,
    lengths: Any,
    query_starts: Any,
    *,
    is_causal: bool = True,
    max_queries: int | None = None,
    scale: float | None = None,
    window: int | None = None,
    soft_cap: float | None = None,
    sinks: Any = None,
    key_scale: Any = None,
    value_scale: Any = None,
    return_lse: bool = False,
    out: Any = None,
) -> Any:
    """Attention of new tokens over pages, for sequences of any lengths in one call.

    query (tokens, heads, E), packed, any strides: sequence i has the tokens query_starts[i] to
    query_starts[i + 1], the last of its lengths[i] tokens. The keys and values of all these tokens
    are in the pages already. Each token sees the earlier tokens and its own, or with a `window` w
    the last w of these. The result is like the query, with the values' elements.

    - key_cache, value_cache (page count, page size, kv_heads, E), any page size, kv_heads a divisor
      of heads. E is at most 256; 576 for queries and keys of 16 bits (latent attention), whose
      value_cache may be a view of key_cache. The dtype is the query's, or int8 or float8 for
      queries of 16 bits, times key_scale and value_scale: float32 (kv_heads,), or (page count,
      page size, kv_heads) as append_qkv() writes for each token.
    - page_table int32 (sequences, pages): token t of sequence i is in row t % page size of page
      page_table[i, t // page size].
    - lengths int32 (sequences,), query_starts int32 (sequences + 1,), from 0 on and not falling.
      A captured call may be replayed with other values: they are read on the device.
    - is_causal=False: each token sees all `lengths` tokens, such as an earlier context.
    - max_queries: at least the new tokens of every sequence; small values are faster. Further
      tokens of a sequence are not written.
    - scale, soft_cap, sinks, out and return_lse (float32 (heads, tokens)) are those of attention().

    Tokens without a visible key give 0, such as those after the last start. Tokens that see an
    invalid page number are NaN, and other tokens of the sequence may be; numbers of pages outside
    of the length and the window are not read. Raises ArgumentError and InvalidArgument as
    decode_attention() does.

    >>> q, pages = kw.ones((3, 8, 64), "bfloat16"), kw.ones((2, 16, 2, 64), "bfloat16")
    >>> table, lengths = kw.asarray([[1], [0]], "int32"), kw.asarray([9, 4], "int32")
    >>> starts = kw.asarray([0, 2, 3], "int32")
    >>> kw.nn.paged_attention(q, pages, pages, table, lengths, starts)[2, 0, :2].numpy().tolist()
    [1.0, 1.0]
    """
    if not isinstance(is_causal, bool) or (window is not None and not is_causal):
        raise ArgumentError(
            f"paged_attention: is_causal is True, or False without a window, got {is_causal!r:.60}"
        )
    for name, number in (("window", window), ("max_queries", max_queries)):
        if number is not None and (not isinstance(number, int) or number < 1):
            raise ArgumentError(f"paged_attention: {name} is a number of tokens, got {number!r}")
    targets = of_attention("paged_attention", out, return_lse)
    options = _AttentionOptions(
        sinks=sinks,
        lengths=lengths,
        query_starts=query_starts,
        page_table=page_table,
        key_scale=key_scale,
        value_scale=value_scale,
        scale=scale,
        soft_cap=soft_cap or 0.0,
        left=-1 if window is None else min(window, 2**62) - 1,
        right=0 if is_causal else -1,
        return_lse=return_lse,
        max_queries=max_queries or 0,
    )
    result, lse = _paged_attention(query, key_cache, value_cache, options, targets)
    if targets is not None:
        result, lse = chosen(targets[:2], (result, lse))
    return (result, lse) if return_lse else result
