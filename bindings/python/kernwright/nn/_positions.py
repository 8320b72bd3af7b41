"""Positions in attention besides rotary embedding: ALiBi, PoPE, iRoPE; fused q, k and v.

>>> import kernwright as kw
>>> kw.nn.alibi_slopes(4).numpy().tolist()
[0.25, 0.0625, 0.015625, 0.00390625]
"""

from __future__ import annotations

from typing import Any

from kernwright._core import (
    Array,
    _alibi_bias,
    _alibi_slopes,
    _merge_qkv,
    _pope,
    _pope_shifts,
    _scale_tokens,
    _split_qkv,
)

__all__ = [
    "alibi_bias",
    "alibi_slopes",
    "attention_temperature",
    "merge_qkv",
    "pope",
    "pope_backward",
    "pope_shifts_backward",
    "split_qkv",
]


def alibi_slopes(heads: int, *, device: Any = None) -> Array:
    """The (heads,) slopes of float32: 2^(-8 (h + 1) / heads) for a power of two.

    Beyond the greatest power of two m below `heads`: every second slope of 2 m heads.

    >>> kw.nn.alibi_slopes(4).numpy()
    array([0.25      , 0.0625    , 0.015625  , 0.00390625], dtype=float32)
    """
    return _alibi_slopes(device, heads)


def alibi_bias(
    heads: int, queries: int, keys: int | None = None, *, dtype: Any = None, device: Any = None
) -> Array:
    """(heads, queries, keys) of -slope * |query - key|; the last query is at the last key.

    `keys` is `queries` unless told otherwise, `dtype` float32 or another real float.

    >>> kw.nn.alibi_bias(8, 3)[0, 2].numpy()
    array([-1. , -0.5, -0. ], dtype=float32)
    """
    return _alibi_bias(device, heads, queries, queries if keys is None else keys, dtype)


def pope(
    x: Any,
    cos: Any,
    sin: Any,
    *,
    shifts: Any = None,
    positions: Any = None,
    offset: int = 0,
    heads_first: bool = False,
) -> Array:
    """Polar positions (PoPE): softplus(x) cos(a), then softplus(x) sin(a): twice the last axis.

    The angle a of an element is position * frequency, plus its shift. x as q in rope(); the tables
    of shape (positions, head_dim) are rope_tables(length, 2 * head_dim). `shifts`, for keys:
    float32 of shape (head_dim,) or (heads, head_dim). Attention of results is then the sum of
    softplus(q) softplus(k) cos((s - t) frequency + shift). Positions as in rope().

    >>> cos, sin = kw.nn.rope_tables(16, 16)
    >>> kw.nn.pope(kw.ones((1, 5, 2, 8)), cos, sin).shape
    (1, 5, 2, 16)
    """
    return _pope(x, cos, sin, shifts, None, positions, offset, heads_first)


def pope_backward(
    grad: Any,
    x: Any,
    cos: Any,
    sin: Any,
    *,
    shifts: Any = None,
    positions: Any = None,
    offset: int = 0,
    heads_first: bool = False,
) -> Array:
    """The gradient of x; `grad`, that of the result, has twice the last axis.

    >>> cos, sin = kw.nn.rope_tables(16, 16)
    >>> kw.nn.pope_backward(kw.ones((1, 5, 2, 16)), kw.ones((1, 5, 2, 8)), cos, sin).shape
    (1, 5, 2, 8)
    """
    return _pope(x, cos, sin, shifts, grad, positions, offset, heads_first)


def pope_shifts_backward(
    grad: Any,
    x: Any,
    cos: Any,
    sin: Any,
    *,
    shifts: Any,
    positions: Any = None,
    offset: int = 0,
    heads_first: bool = False,
) -> Array:
    """The gradient of the shifts of pope(), float32 of their shape.

    Of head h and element c it is the sum over batch and tokens of
    softplus(x) (cos(a) grad[c + head_dim] - sin(a) grad[c]); shifts of shape (head_dim,) sum over
    heads too. The order of the sums is fixed.

    >>> cos, sin = kw.nn.rope_tables(16, 16)
    >>> grad, x, shifts = kw.ones((1, 5, 2, 16)), kw.ones((1, 5, 2, 8)), kw.zeros((2, 8))
    >>> kw.nn.pope_shifts_backward(grad, x, cos, sin, shifts=shifts).shape
    (2, 8)
    """
    return _pope_shifts(grad, x, cos, sin, shifts, positions, offset, heads_first)


def attention_temperature(
    q: Any,
    *,
    positions: Any = None,
    offset: int = 0,
    floor_scale: float = 8192.0,
    attn_scale: float = 0.1,
    heads_first: bool = False,
) -> Array:
    """q times log(floor((position + 1) / floor_scale) + 1) * attn_scale + 1, by token.

    What Llama 4 does in its layers without rotary embedding (iRoPE). q and positions as in rope().
    The gradient of q is the same function of the gradient.

    >>> kw.nn.attention_temperature(kw.ones((1, 4, 2, 8))).shape
    (1, 4, 2, 8)
    """
    return _scale_tokens(q, floor_scale, attn_scale, positions, offset, heads_first)


def split_qkv(
    qkv: Any, heads: int, kv_heads: int | None = None, *, heads_first: bool = False
) -> tuple[Array, Array, Array]:
    """Rows (batch, tokens, (heads + 2 kv_heads) head_dim) as q, k and v, in one launch.

    Each is (batch, tokens, heads, head_dim), with `heads_first` (batch, heads, tokens, head_dim);
    the batch may be missing. `kv_heads` is `heads` unless told otherwise.

    >>> q, k, v = kw.nn.split_qkv(kw.ones((1, 5, (4 + 2 + 2) * 8)), heads=4, kv_heads=2)
    >>> q.shape, k.shape
    ((1, 5, 4, 8), (1, 5, 2, 8))
    """
    return _split_qkv(qkv, heads, heads if kv_heads is None else kv_heads, heads_first)


def merge_qkv(q: Any, k: Any, v: Any, *, heads_first: bool = False) -> Array:
    """The inverse of split_qkv(), and the gradient through it.

    >>> q, kv = kw.ones((1, 5, 4, 8)), kw.ones((1, 5, 2, 8))
    >>> kw.nn.merge_qkv(q, kv, kv).shape
    (1, 5, 64)
    """
    return _merge_qkv(q, k, v, heads_first)
