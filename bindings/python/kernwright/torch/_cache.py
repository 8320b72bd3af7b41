"""Models of torch that write token by token: new tokens into the caches, attention over them."""

from __future__ import annotations

from typing import Any

import torch

import kernwright as kw
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.torch._operators import call, call_changing, define, empty

__all__ = ["append_qkv", "decode_attention"]


def decode_attention(
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    lengths: torch.Tensor | None = None,
    *,
    page_table: torch.Tensor | None = None,
    scale: float | None = None,
    window: int | None = None,
    soft_cap: float | None = None,
    sinks: torch.Tensor | None = None,
    alibi: torch.Tensor | None = None,
    key_scale: torch.Tensor | None = None,
    value_scale: torch.Tensor | None = None,
    return_lse: bool = False,
    splits: int | None = None,
) -> Any:
    """Attention of a sequence's last tokens over its cache: kernwright.nn.decode_attention().

    query (batch, heads, tokens, E), caches (batch, kv_heads, S, E) of any strides, or with
    `page_table` (page count, page size, kv_heads, E); lengths int32 (batch,), with the new tokens.
    The result is row-major, of the query's shape and dtype; with `return_lse` the logarithms of
    the sums, float32 (batch, heads, tokens), come too. There is no gradient, and no `check`: a
    page outside of the cache gives NaN. Raises ArgumentError and InvalidArgument as kw.nn's does.

    >>> import torch, kernwright.torch as kt
    >>> cache = torch.ones(1, 2, 16, 8, dtype=torch.bfloat16)
    >>> kt.decode_attention(cache[:, :, :1], cache, cache, splits=1).shape
    torch.Size([1, 2, 1, 8])
    """
    if window is not None and (not isinstance(window, int) or window < 1):
        raise ArgumentError(f"decode_attention: a window is a number of tokens, got {window!r}")
    out, lse = _decode(
        query,
        key_cache,
        value_cache,
        lengths,
        page_table,
        sinks,
        alibi,
        key_scale,
        value_scale,
        scale,
        window,
        soft_cap,
        return_lse,
        splits,
    )
    return (out, lse) if return_lse else out


def append_qkv(
    qkv: torch.Tensor | tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    positions: torch.Tensor,
    cos: torch.Tensor | None = None,
    sin: torch.Tensor | None = None,
    *,
    q_weight: torch.Tensor | None = None,
    k_weight: torch.Tensor | None = None,
    eps: float = 1e-6,
    interleaved: bool = False,
    rope_positions: torch.Tensor | None = None,
    page_table: torch.Tensor | None = None,
    key_scale: torch.Tensor | None = None,
    value_scale: torch.Tensor | None = None,
) -> torch.Tensor:
    """New tokens' projection, split, normed, turned and put into the caches in one pass; in place.

    kernwright.nn.append_qkv(): qkv is (batch, tokens, (heads + 2 kv_heads) head_dim), or (q, k, v)
    of (batch, tokens, heads, head_dim) each; key_cache and value_cache are those of
    decode_attention(), and are written to; positions int32 (batch,) are the lengths before. Returns
    the queries, (batch, heads, tokens, head_dim). There is no gradient, and no `check`: a token
    without a place is left out. Raises ArgumentError and InvalidArgument as kw.nn's does.

    >>> import torch, kernwright.torch as kt
    >>> caches = torch.zeros(2, 1, 2, 16, 8)
    >>> length = torch.zeros(1, dtype=torch.int32)
    >>> kt.append_qkv(torch.ones(1, 3, (4 + 2 + 2) * 8), *caches, length).shape
    torch.Size([1, 4, 3, 8])
    >>> caches.sum().item()
    96.0
    """
    tokens = [qkv] if isinstance(qkv, torch.Tensor) else list(qkv)
    if len(tokens) not in (1, 3) or not all(isinstance(each, torch.Tensor) for each in tokens):
        raise ArgumentError(f"append_qkv: (q, k, v) are three tensors, got {len(tokens)}")
    made: torch.Tensor = _append(
        tokens,
        key_cache,
        value_cache,
        positions,
        cos,
        sin,
        q_weight,
        k_weight,
        rope_positions,
        page_table,
        key_scale,
        value_scale,
        eps,
        interleaved,
    )
    return made


def _run_decode(
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    lengths: torch.Tensor | None,
    page_table: torch.Tensor | None,
    sinks: torch.Tensor | None,
    alibi: torch.Tensor | None,
    key_scale: torch.Tensor | None,
    value_scale: torch.Tensor | None,
    scale: float | None,
    window: int | None,
    soft_cap: float | None,
    return_lse: bool,
    splits: int | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    def run(q: Any, k: Any, v: Any, *rest: Any) -> Any:
        lengths, pages, sinks, alibi, key_scale, value_scale = rest
        return kw.nn.decode_attention(
            q,
            k,
            v,
            lengths,
            page_table=pages,
            scale=scale,
            window=window,
            soft_cap=soft_cap,
            sinks=sinks,
            alibi=alibi,
            key_scale=key_scale,
            value_scale=value_scale,
            return_lse=return_lse,
            splits=splits,
        )

    rest = lengths, page_table, sinks, alibi, key_scale, value_scale
    made = call(run, query, query, key_cache, value_cache, *rest)
    return made if return_lse else (made, _no_lse(query))


def _no_lse(query: torch.Tensor) -> torch.Tensor:
    return empty(query, (0,), torch.float32)


def _fake_decode(q: torch.Tensor, *rest: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return empty(q), empty(q, q.shape[:-1], torch.float32) if rest[-2] else _no_lse(q)


def _run_append(
    qkv: list[torch.Tensor],
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    positions: torch.Tensor,
    cos: torch.Tensor | None,
    sin: torch.Tensor | None,
    q_weight: torch.Tensor | None,
    k_weight: torch.Tensor | None,
    rope_positions: torch.Tensor | None,
    page_table: torch.Tensor | None,
    key_scale: torch.Tensor | None,
    value_scale: torch.Tensor | None,
    eps: float,
    interleaved: bool,
) -> torch.Tensor:
    def run(caches: Any, positions: Any, *rest: Any) -> Any:
        key_cache, value_cache = caches
        cos, sin, q_weight, k_weight, places, pages, key_scale, value_scale, *tokens = rest
        return kw.nn.append_qkv(
            tuple(tokens) if len(tokens) == 3 else tokens[0],
            key_cache,
            value_cache,
            positions,
            cos,
            sin,
            q_weight=q_weight,
            k_weight=k_weight,
            eps=eps,
            interleaved=interleaved,
            rope_positions=places,
            page_table=pages,
            key_scale=key_scale,
            value_scale=value_scale,
        )

    caches = [key_cache, value_cache]
    if any(cache.device != qkv[0].device for cache in caches):
        raise InvalidArgument(
            "all tensors must be on the same device, got "
            f"{qkv[0].device}, {key_cache.device} and {value_cache.device}"
        )
    rest = cos, sin, q_weight, k_weight, rope_positions, page_table, key_scale, value_scale
    made: torch.Tensor = call_changing(run, qkv[0], [caches], positions, *rest, *qkv)
    return made


def _fake_append(qkv: Any, key_cache: torch.Tensor, *rest: Any) -> torch.Tensor:
    batch, tokens = qkv[0].shape[:2]
    if len(qkv) == 3:
        return empty(qkv[0], (batch, qkv[0].shape[2], tokens, qkv[0].shape[3]))
    paged, dim = rest[7] is not None, key_cache.shape[3]
    kv_heads = key_cache.shape[2 if paged else 1]
    return empty(qkv[0], (batch, qkv[0].shape[2] // dim - 2 * kv_heads, tokens, dim))


_decode = define(
    "decode_attention",
    _run_decode,
    _fake_decode,
)
_append = define(
    "append_qkv",
    _run_append,
    _fake_append,
    ("key_cache", "value_cache"),
)
