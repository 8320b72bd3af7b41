"""New tokens of a model that writes token by token, on their way into its caches.

>>> import kernwright as kw
>>> caches = [kw.zeros((1, 2, 16, 8)) for _ in range(2)]     # two heads of 8, 16 places
>>> cos, sin = kw.nn.rope_tables(16, 8)
>>> qkv, length = kw.ones((1, 1, (4 + 2 + 2) * 8)), kw.zeros(1, "int32")
>>> q = kw.nn.append_qkv(qkv, *caches, length, cos, sin)
>>> kw.nn.decode_attention(q, *caches, length + 1).shape
(1, 4, 1, 8)
"""

from __future__ import annotations

from typing import Any

from kernwright._core import Array, _append_cache, _append_qkv
from kernwright.errors import ArgumentError, InvalidArgument

__all__ = ["append_cache", "append_qkv"]


def append_cache(
    key: Any,
    value: Any,
    key_cache: Any,
    value_cache: Any,
    positions: Any,
    *,
    page_table: Any = None,
    token_rows: Any = None,
    key_scale: Any = None,
    value_scale: Any = None,
    check: bool = False,
) -> None:
    """Writes new tokens' keys and values to the caches of decode_attention(), in place.

    key and value (batch, kv_heads, tokens, E): token t of batch b goes to place positions[b] + t;
    positions is int32 (batch,), on the device: the lengths before. Caches have the tokens' dtype,
    or int8, float8_e4m3fn or float8_e5m2; then x / scale is stored, rounded to nearest and kept
    inside of the range, with key_scale and value_scale float32 (kv_heads,), 1 without them. Tokens
    with a place outside of the cache, or with an invalid page, are left out; `check` waits, and
    raises InvalidArgument for any before something is written. Raises ArgumentError and
    InvalidArgument for wrong arguments, and for caches that would need a copy.

    key_scale and value_scale of the cache's shape without its last axis are written, too: each
    token and head has a scale of its own, its largest magnitude divided by 127 (int8), 448 or 57344
    (float8). Heads then have at most 256 elements. A head with NaN gets the scale NaN.

    With `token_rows`, int32 (tokens,), tokens of many sequences are packed as for
    paged_attention(): key and value are (tokens, kv_heads, E), or (tokens, kv_heads, 1, E), and
    positions (tokens,) has each token's own place. Token i belongs to row token_rows[i] of
    page_table, or of the caches without one; tokens that pad the array have -1 and are left out.

    >>> key_cache, value_cache = kw.zeros((1, 2, 16, 8)), kw.zeros((1, 2, 16, 8))
    >>> key = value = kw.ones((1, 2, 3, 8))
    >>> kw.nn.append_cache(key, value, key_cache, value_cache, kw.asarray([4], "int32"))
    >>> key_cache[0, 0, :8, 0].numpy()
    array([0., 0., 0., 0., 1., 1., 1., 0.], dtype=float32)
    """
    if check:
        tokens = key.shape[2] if getattr(key, "ndim", 0) == 4 else 1
        _require_places("append_cache", tokens, key_cache, positions, page_table, token_rows)
    if token_rows is not None:
        key, value = (_with_axis(x, 3, 2) for x in (key, value))
    places = [page_table, key_scale, value_scale, token_rows]
    _append_cache(key, value, key_cache, value_cache, positions, places)


def append_qkv(
    qkv: Any,
    key_cache: Any,
    value_cache: Any,
    positions: Any,
    cos: Any = None,
    sin: Any = None,
    *,
    q_weight: Any = None,
    k_weight: Any = None,
    eps: float = 1e-6,
    interleaved: bool = False,
    rope_positions: Any = None,
    page_table: Any = None,
    token_rows: Any = None,
    key_scale: Any = None,
    value_scale: Any = None,
    check: bool = False,
) -> Array:
    """From the projection of new tokens to decode_attention(): split, norm, rope, append, one pass.

    qkv: (batch, tokens, (heads + 2 kv_heads) head_dim), as split_qkv() takes it, with kv_heads and
    head_dim of the caches; or a tuple (q, k, v) of (batch, tokens, heads, head_dim) each, any
    strides. float16, bfloat16 or float32, head_dim at most 256. Returns the queries, (batch, heads,
    tokens, head_dim). In this order:

    - with q_weight, k_weight, (head_dim,) of the tokens' dtype or float32: each head of queries, of
      keys becomes x / sqrt(mean(x^2) + eps) * weight, as by rms_norm().
    - with cos and sin, those of rope_tables(): queries and keys turn, as by rope(), in pairs of
      neighbours with `interleaved`. Token t of batch b takes row positions[b] + t, or
      rope_positions[b, t], int32, where keys stand elsewhere than their positions say. Rows outside
      of the tables give NaN.
    - keys and values are written to their places, as append_cache() writes them: the caches,
      `positions`, `page_table`, `token_rows`, scales and `check` are its own.

    With `token_rows` tokens are packed: qkv is (tokens, (heads + 2 kv_heads) head_dim) or a tuple
    of (tokens, heads, head_dim), positions and rope_positions (tokens,). The queries are (tokens,
    heads, head_dim), for paged_attention(). Arrays with an axis of 1 behind that of the tokens are
    taken too: batches of one token.

    Every step's result is rounded to the tokens' dtype, so the results are those of the functions
    called one by one. Raises ArgumentError and InvalidArgument as these do.

    >>> keys, values = kw.zeros((1, 2, 16, 8)), kw.zeros((1, 2, 16, 8))
    >>> qkv = kw.ones((1, 1, (4 + 2 + 2) * 8))
    >>> kw.nn.append_qkv(qkv, keys, values, kw.asarray([3], "int32")).shape
    (1, 4, 1, 8)
    """
    tokens = list(qkv) if isinstance(qkv, (tuple, list)) else [qkv, None, None]
    if len(tokens) != 3:
        raise ArgumentError(f"append_qkv: (q, k, v) are three arrays, got {len(tokens)}")
    if check:
        several = token_rows is None and getattr(tokens[0], "ndim", 0) >= 3
        count = tokens[0].shape[1] if several else 1
        _require_places("append_qkv", count, key_cache, positions, page_table, token_rows)
    packed = False
    if token_rows is not None:
        axes = 2 if tokens[1] is None else 3
        packed = getattr(tokens[0], "ndim", 0) == axes
        tokens = [_with_axis(x, axes, 1) for x in tokens]
        rope_positions = _with_axis(rope_positions, 1, 1)
    others = [q_weight, k_weight, cos, sin, rope_positions]
    places = [page_table, key_scale, value_scale, token_rows]
    made: Array = _append_qkv(
        tokens, key_cache, value_cache, positions, others, places, eps, interleaved
    )
    return made[:, :, 0] if packed else made


def _with_axis(x: Any, ndim: int, axis: int) -> Any:
    """An array of `ndim` axes with one more, of extent 1."""
    return x[(slice(None),) * axis + (None,)] if getattr(x, "ndim", 0) == ndim else x


def _require_places(
    name: str, tokens: int, cache: Any, positions: Any, table: Any, rows: Any
) -> None:
    """Waits, and raises InvalidArgument where a new token has no row, no place or no page."""
    paged = table is not None
    arrays = [x for x in (cache, positions, table, rows) if x is not None]
    right = all(isinstance(each, Array) for each in arrays) and cache.ndim == 4
    if not right or positions.ndim != 1 or (paged and table.ndim != 2) or tokens == 0:
        return  # what is wrong is named where arguments are read
    if rows is not None and rows.shape != positions.shape:
        return
    import kernwright as kw

    places = positions.reshape((-1, 1)) + kw.arange(tokens, dtype="int32", device=cache.device)
    page, capacity = cache.shape[1], cache.shape[2]
    if paged:
        capacity = page * table.shape[1]
    outside = (places < 0) | (places >= capacity)
    count = (table if paged else cache).shape[0]
    if rows is not None and paged and count > 0:
        table = kw.take(table, kw.clip(rows, 0, count - 1), axis=0)
    if paged and capacity > 0 and count > 0:
        pages = kw.take_along_axis(table, kw.clip(places // page, 0, table.shape[1] - 1), axis=1)
        outside = outside | (pages < 0) | (pages >= cache.shape[0])
    if rows is not None:  # -1: the token pads the array
        outside = (outside & (rows != -1)[:, None]) | ((rows < -1) | (rows >= count))[:, None]
    wrong = int(outside.sum())
    if wrong:
        kinds = ", or a page that is none" if paged else ""
        kinds += f", or a row that is none of the {count}" if rows is not None else ""
        raise InvalidArgument(
            f"{name}: {wrong} of {places.size} tokens have no place in the cache of {capacity} "
            f"places a sequence{kinds}"
        )
