"""Attention with its projections, and rotary positions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import kernwright
from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.nn import _attention, _rope
from kernwright.nn._modules import settings
from kernwright.nn._modules.linear import Linear, seeds
from kernwright.nn._modules.module import Module
from kernwright.nn._modules.norms import RMSNorm

__all__ = ["MultiHeadAttention", "Rope"]


class Rope(Module):
    """Rotary positions of queries and keys (batch, tokens, heads, head_dim); no parameters.

    `dim` elements of a head are turned. The tables have `max_positions` rows, and grow when a call
    needs more that the host knows of. `scaling` as in kw.nn.rope_frequencies().

    >>> q, k = kw.nn.Rope(8)(kw.ones((1, 5, 4, 8)), kw.ones((1, 5, 2, 8)))
    >>> q.shape, k.shape
    ((1, 5, 4, 8), (1, 5, 2, 8))
    """

    def __init__(
        self, dim: int, base: float = 10000.0, *, scaling: Mapping[str, Any] | None = None,
        interleaved: bool = False, max_positions: int = 2048,
    ) -> None:  # fmt: skip
        self.dim = settings.extent(dim, "dim", least=2, most=65536)
        if self.dim % 2 != 0:
            raise InvalidArgument(f"dim of Rope is even, got {dim}")
        self.base = settings.positive(base, "base")
        self.interleaved = settings.flag(interleaved, "interleaved")
        self.max_positions = settings.extent(max_positions, "max_positions")
        if scaling is not None and not isinstance(scaling, Mapping):
            raise ArgumentError(f"scaling is a mapping, got {scaling!r:.60}")
        self._scaling = dict(scaling) if scaling is not None else None
        if self._scaling:  # the kernel's rule knows which numbers make sense
            _rope.rope_frequencies(
                self.dim, base=self.base, scaling=self._scaling, seq_len=self.max_positions
            )
        self._tables: tuple[Array, Array] | None = None

    def __call__(self, q: Any, k: Any = None, *, positions: Any = None, offset: int = 0) -> Any:
        if q.ndim < 3 or (k is not None and k.ndim < 3):
            shapes = q.shape if k is None else f"{q.shape} and {k.shape}"
            raise InvalidArgument(f"Rope takes (..., tokens, heads, head_dim), got {shapes}")
        needed = max(self.max_positions, offset + q.shape[-3])
        if self._tables is None or self._tables[0].shape[0] < needed:
            self._tables = _rope.rope_tables(
                needed, self.dim, base=self.base, scaling=self._scaling, device=q.device
            )
        return _rope.rope(
            q, k, *self._tables, positions=positions, offset=offset, interleaved=self.interleaved
        )

    def extra_repr(self) -> str:
        """The extents and settings that repr() shows."""
        return f"{self.dim}, base={self.base}, max_positions={self.max_positions}"


class MultiHeadAttention(Module):
    """Attention of x (batch, tokens, dim) with projections q_proj, k_proj, v_proj and o_proj.

    `num_kv_heads` below `num_heads` is grouped-query attention; `head_dim` is dim / num_heads
    unless given. `rope` turns queries and keys, `qk_norm` puts an RMSNorm over each of their heads
    first (q_norm, k_norm). `window`, `soft_cap`, `scale`: see kw.nn.attention(). `sinks` adds a
    parameter of one logit for each head, which has no value. `dtype` is float16, bfloat16 or
    float32.

    >>> attention = kw.nn.MultiHeadAttention(64, 4, 2, rope=kw.nn.Rope(16), is_causal=True)
    >>> attention(kw.ones((1, 5, 64))).shape
    (1, 5, 64)
    """

    def __init__(
        self, dim: int, num_heads: int, num_kv_heads: int | None = None,
        head_dim: int | None = None, *, bias: bool = False, rope: Rope | None = None,
        qk_norm: bool = False, is_causal: bool = False, window: int | tuple[int, int] | None = None,
        soft_cap: float | None = None, scale: float | None = None, sinks: bool = False,
        norm_eps: float = 1e-6, dtype: Any = None, seed: int | None = None, device: Any = None,
    ) -> None:  # fmt: skip
        dim, num_heads = settings.extent(dim, "dim"), settings.extent(num_heads, "num_heads")
        kv_heads = num_heads
        if num_kv_heads is not None:
            kv_heads = settings.extent(num_kv_heads, "num_kv_heads")
        if num_heads % kv_heads != 0:
            raise InvalidArgument(f"num_kv_heads divides num_heads, got {num_heads} and {kv_heads}")
        if head_dim is None and dim % num_heads != 0:
            raise InvalidArgument(
                f"num_heads divides dim where head_dim is not given, got {dim} and {num_heads}"
            )
        width = dim // num_heads if head_dim is None else settings.extent(head_dim, "head_dim")
        self._require_settings(rope, window, soft_cap, scale, width)
        for name, value in (("qk_norm", qk_norm), ("is_causal", is_causal), ("sinks", sinks)):
            settings.flag(value, name)
        norm_eps = settings.positive(norm_eps, "norm_eps")
        self.num_heads, self.num_kv_heads, self.head_dim = num_heads, kv_heads, width
        self.is_causal, self.window, self.soft_cap, self.scale = is_causal, window, soft_cap, scale
        options = {"dtype": dtype, "device": device}
        of_q, of_k, of_v, of_o = seeds(seed, 4)
        self.q_proj = Linear(dim, num_heads * width, bias, seed=of_q, **options)
        settings.require_float(self.q_proj.weight, ("float16", "bfloat16", "float32"))
        self.k_proj = Linear(dim, kv_heads * width, bias, seed=of_k, **options)
        self.v_proj = Linear(dim, kv_heads * width, bias, seed=of_v, **options)
        self.o_proj = Linear(num_heads * width, dim, bias, seed=of_o, **options)
        self.q_norm = RMSNorm(width, norm_eps, **options) if qk_norm else None
        self.k_norm = RMSNorm(width, norm_eps, **options) if qk_norm else None
        self.rope = rope
        self.sinks = kernwright.zeros(num_heads, "float32", device=device) if sinks else None

    @staticmethod
    def _require_settings(rope: Any, window: Any, soft_cap: Any, scale: Any, width: int) -> None:
        if rope is not None and not callable(rope):
            raise ArgumentError(f"rope is a kw.nn.Rope, got {rope!r:.60}")
        if isinstance(rope, Rope) and rope.dim > width:
            raise InvalidArgument(f"a Rope of {rope.dim} elements turns heads of {width}")
        _attention.window_sides(window)
        if scale is not None:
            settings.number(scale, "scale")
        if soft_cap is not None and settings.number(soft_cap, "soft_cap") < 0:
            raise InvalidArgument(f"soft_cap is at least 0, where 0 is none, got {soft_cap}")

    def __call__(
        self, x: Any, mask: Any = None, *, context: Any = None, positions: Any = None,
        offset: int = 0,
    ) -> Array:  # fmt: skip
        """`context` (batch, keys, dim) gives keys and values in place of x; `mask` is attn_mask of
        kw.nn.attention(), `positions` and `offset` are those of the rotation."""
        q, k, v = self.project(x, x if context is None else context)
        if self.rope is not None:
            q, k = self.rope(q, k, positions=positions, offset=offset)
        # The heads of a token lie side by side, as the next layer reads them.
        out = kernwright.empty(q.shape, dtype=q.dtype, device=q.device)
        y = _attention.attention(
            _heads_first(q), _heads_first(k), _heads_first(v), mask, is_causal=self.is_causal,
            scale=self.scale, enable_gqa=self.num_heads != self.num_kv_heads, window=self.window,
            soft_cap=self.soft_cap, sinks=self.sinks, out=_heads_first(out),
        )  # fmt: skip
        width = self.num_heads * self.head_dim
        return self.o_proj(_heads_first(y).reshape((*x.shape[:-1], width)))

    def project(self, x: Any, context: Any) -> tuple[Array, Array, Array]:
        """Queries of x and keys and values of the context, (batch, tokens, heads, head_dim), with
        their norms and without rotation.

        >>> x = kw.ones((1, 5, 64))
        >>> [each.shape for each in kw.nn.MultiHeadAttention(64, 4, 2).project(x, x)]
        [(1, 5, 4, 16), (1, 5, 2, 16), (1, 5, 2, 16)]
        """
        q, k, v = self.q_proj(x), self.k_proj(context), self.v_proj(context)
        q = q.reshape((*x.shape[:-1], self.num_heads, self.head_dim))
        k, v = (y.reshape((*context.shape[:-1], self.num_kv_heads, self.head_dim)) for y in (k, v))
        if self.q_norm is not None and self.k_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        return q, k, v


def _heads_first(x: Array) -> Array:
    return kernwright.swapaxes(x, -3, -2)
