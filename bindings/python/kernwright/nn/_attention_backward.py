"""Gradients of attention.

>>> import kernwright as kw
>>> x = kw.ones((1, 2, 5, 64), "bfloat16")
>>> y, lse = kw.nn.attention(x, x, x, is_causal=True, return_lse=True)
>>> dq, dk, dv = kw.nn.attention_backward(x, x, x, x, y, lse, is_causal=True)
>>> dk.shape
(1, 2, 5, 64)
"""

from __future__ import annotations

import math
from typing import Any

from kernwright._core import Array, _attention_backward, _AttentionOptions
from kernwright.errors import InvalidArgument
from kernwright.nn._attention import _four_axes, _require_groups, _settings

__all__ = ["attention_backward"]


def attention_backward(
    grad: Any,
    query: Any,
    key: Any,
    value: Any,
    out: Any,
    lse: Any,
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
    seed: int | None = None,
    offset: int = 0,
) -> tuple[Array, Array, Array]:
    """The gradients of query, key and value, from that of attention()'s result.

    `out` and `lse` are what attention(..., return_lse=True) gave for the same arguments; `grad` is
    like `out`. Scores are computed once more, so memory grows with the tokens alone. Each gradient
    is summed in a fixed order: the same call gives the same bits each time. 16-bit elements go
    through matrix units and are summed in float32; weights and changes of scores are rounded to the
    dtype in between. Mask, alibi and sinks get no gradients here; kw.grad() gives them, too.

    A query without any visible key gets 0, and so does a key without any query. Raises
    ArgumentError and InvalidArgument as attention() does.

    >>> x = kw.ones((1, 2, 5, 64), "bfloat16")
    >>> y, lse = kw.nn.attention(x, x, x, return_lse=True)
    >>> dq, dk, dv = kw.nn.attention_backward(x, x, x, x, y, lse)
    >>> dk.shape
    (1, 2, 5, 64)
    """
    left, right = _settings(attn_mask, dropout_p, is_causal, window, seed)
    packed = cu_seqlens_q is not None
    shapes = [getattr(x, "shape", ()) for x in (query, key, value)]
    query, key, value, shape = _four_axes(query, key, value, packed)
    _require_groups(query, key, enable_gqa)
    if shape is not None:
        grad, out = (_like(x, (*query.shape[:-1], value.shape[-1])) for x in (grad, out))
        lse = _like(lse, query.shape[:-1])
    options = _AttentionOptions(
        attn_mask=attn_mask,
        sinks=sinks,
        alibi=alibi,
        query_lengths=query_lengths,
        lengths=lengths,
        query_starts=cu_seqlens_q,
        key_starts=cu_seqlens_k,
        scale=scale,
        soft_cap=soft_cap or 0.0,
        left=left,
        right=right,
        dropout_p=dropout_p,
        seed=seed or 0,
        offset=offset,
    )
    made = _attention_backward(grad, query, key, value, out, lse, options, False)
    if shape is not None:
        made = tuple(x.reshape(of) for x, of in zip(made, shapes, strict=True))
    dq, dk, dv = made
    return dq, dk, dv


def _like(x: Any, shape: tuple[int, ...]) -> Any:
    if not isinstance(x, Array):
        return x
    if x.size != math.prod(shape):
        raise InvalidArgument(
            f"Incompatible dimensions: an array of shape {x.shape} beside a result of {shape}"
        )
    return x.reshape(shape)
