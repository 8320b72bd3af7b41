"""DeepSeek-V2: keys and values made of a short latent vector; experts beside shared ones.

DeepSeek-AI, "DeepSeek-V2: A strong, economical, and efficient mixture-of-experts language model",
2024.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import kernwright as kw
from kernwright._core import Array
from kernwright.llm import _names
from kernwright.llm._config import Config
from kernwright.llm._errors import ModelError
from kernwright.llm._paged_step import PagedStep
from kernwright.llm._step import Step
from kernwright.llm.models._layers import Experts, GatedMLP, Linear, RMSNorm, RotaryTables
from kernwright.llm.models.llama import Block, Llama
from kernwright.nn import Module

__all__ = ["DeepseekV2"]

_NO_KEYS = -1e30  # in place of the logarithm of 0


class LatentAttention(Module):
    """Keys and values are products of a latent vector of `kv_lora_rank` numbers a token; one
    rotated key part is shared by all heads."""

    def __init__(self, config: Config, layer: int, rope: RotaryTables) -> None:
        self._layer, self._heads, self._rope = layer, config.num_heads, rope
        self._plain = config.count("qk_nope_head_dim")
        self._turned = config.count("qk_rope_head_dim")
        self._value = config.count("v_head_dim")
        self._rank = config.count("kv_lora_rank")
        head = self._plain + self._turned
        self._scale = head**-0.5 * _score_scale(config)
        hidden, rank = config.hidden_size, config.count("q_lora_rank", 0)
        if rank:
            self.q_down = Linear(hidden, rank)
            self.q_norm = RMSNorm(rank, config.norm_eps)
        self.q_up = Linear(rank or hidden, self._heads * head)
        self.kv_down = Linear(hidden, {"latent": self._rank, "rope": self._turned})
        self.kv_norm = RMSNorm(self._rank, config.norm_eps)
        self.kv_up = Linear(self._rank, self._heads * (self._plain + self._value))
        self.out = Linear(self._heads * self._value, hidden)
        self._has_q_rank = rank > 0

    def cache_layer(self) -> tuple[int, int, int]:
        """(kv_heads, head_dim) of keys and values, as wide as keys, and the elements of the
        vector in their place."""
        return self._heads, self._plain + self._turned, self._rank + self._turned

    def __call__(self, x: Array, step: Step, **options: Any) -> Array:
        """Attention of x (tokens, hidden); `options` go to the last product: residual."""
        count, plain = x.shape[0], self._plain
        q = self.q_up(self.q_norm(self.q_down(x)) if self._has_q_rank else x)
        q = q.reshape((count, self._heads, -1))
        latent, shared = self.kv_down.split(x)
        latent = self.kv_norm(latent)
        cos, sin, interleaved, _ = self._rope.on(x.device, step.longest)
        q_turned, k_turned = kw.nn.rope(
            q[..., plain:], shared.reshape((count, 1, self._turned)), cos, sin,
            positions=step.positions, interleaved=interleaved,
        )  # fmt: skip
        q = q[..., :plain]
        if not isinstance(step, PagedStep) or not step.keeps_latent(self._layer):
            keys, values = self._keys_and_values(latent, k_turned)
            values = kw.pad(values, ((0, 0), (0, 0), (0, keys.shape[-1] - self._value)))
            y = step.attend(
                self._layer, kw.concat([q, q_turned], axis=-1), keys, values, scale=self._scale
            )[..., : self._value]
        else:
            step.keep_latent(self._layer, latent, k_turned[:, 0])
            y = self._over_pages(step, q.copy(), q_turned, latent, k_turned)
        return self.out(y.reshape((count, -1)), **options)

    def _keys_and_values(self, latent: Array, turned: Array) -> tuple[Array, Array]:
        """Those of all heads, (tokens, heads, elements)."""
        kv = self.kv_up(latent).reshape((latent.shape[0], self._heads, -1))
        turned = kw.broadcast_to(turned, (latent.shape[0], self._heads, self._turned))
        return kw.concat([kv[..., : self._plain], turned], axis=-1), kv[..., self._plain :]

    def _over_pages(
        self, step: PagedStep, q: Array, q_turned: Array, latent: Array, k_turned: Array
    ) -> Array:
        """(tokens, heads, values). Pages hold one vector of each token for all heads: weights of
        keys are absorbed into queries, those of values into results. In long chunks that is done
        for earlier tokens alone."""
        weights = self.kv_up.numbers(q).reshape((self._heads, -1, self._rank))
        wide = kw.concat([self._absorbed(q, weights), q_turned], axis=-1)
        if not step.has_long_chunks:
            y = step.attend_latent(self._layer, wide, self._rank, scale=self._scale)
            return self._values_of(y, weights)
        keys, values = self._keys_and_values(latent, k_turned)
        starts = step.arrays["query_starts"]
        new, new_sums = kw.nn.attention(
            kw.concat([q, q_turned], axis=-1), keys, values, is_causal=True, scale=self._scale,
            cu_seqlens_q=starts, cu_seqlens_k=starts, return_lse=True,
        )  # fmt: skip
        y, sums = step.attend_earlier(self._layer, wide, self._rank, scale=self._scale)
        values = self._values_of(y, weights)
        made: Array = merged(new, values, _by_tokens(new_sums), _by_tokens(sums))
        return made.astype(new.dtype)

    def _absorbed(self, q: Array, weights: Array) -> Array:
        """Queries (tokens, heads, plain) times the weights of keys: (tokens, heads, rank)."""
        made = kw.matmul(q.transpose(1, 0, 2), weights[:, : self._plain]).transpose(1, 0, 2).copy()
        if self.kv_up.adapters is not None:
            self.kv_up.adapters.add_heads(q, made, 0, transposed=True)
        return made

    def _values_of(self, y: Array, weights: Array) -> Array:
        """Sums of latent vectors (tokens, heads, rank) times the weights of values."""
        made = kw.matmul(y.transpose(1, 0, 2), weights[:, self._plain :].mT)
        made = made.transpose(1, 0, 2).copy()
        if self.kv_up.adapters is not None:
            self.kv_up.adapters.add_heads(y, made, self._plain, transposed=False)
        return made


@kw.fuse
def merged(new: Any, earlier: Any, new_sums: Any, sums: Any) -> Any:
    """Attention over two parts of the keys, by the logarithms of their sums; 0 where both are
    none."""
    share = 1.0 / (1.0 + kw.exp(kw.maximum(sums, _NO_KEYS) - kw.maximum(new_sums, _NO_KEYS)))
    return earlier + (new - earlier) * share


def _by_tokens(sums: Array) -> Array:
    """(tokens, heads, 1) of (heads, tokens)."""
    return sums.mT[..., None]


class SharedExperts(Module):
    """Experts, and a gated layer that all tokens go through."""

    def __init__(self, config: Config) -> None:
        width = config.count("moe_intermediate_size")
        grouped = config.fields.get("topk_method", "greedy") == "group_limited_greedy"
        self.experts = Experts(
            config, count=config.count("n_routed_experts"),
            top_k=config.count("num_experts_per_tok"), width=width,
            renormalise=config.flag("norm_topk_prob", False),
            scale=config.number("routed_scaling_factor", 1.0),
            groups=config.count("n_group", 1) if grouped else 1,
            groups_kept=config.count("topk_group", 1) if grouped else 1,
        )  # fmt: skip
        shared = config.count("n_shared_experts", 0)
        self.shared = GatedMLP(config, intermediate_size=shared * width) if shared else None

    def __call__(self, x: Array, residual: Array) -> Array:
        y = self.experts(x, residual=residual)
        return y if self.shared is None else self.shared(x, residual=y)


class DeepseekV2(Llama):
    """Llama with latent attention, and experts behind the first layers."""

    names: ClassVar[_names.Names] = _names.DEEPSEEK_V2
    interleaved = True

    def __init__(self, config: Config) -> None:
        if config.fields.get("topk_method", "greedy") not in ("greedy", "group_limited_greedy"):
            raise ModelError(
                f"{config.source}: topk_method {config.fields['topk_method']!r:.60} is unknown; "
                "known are greedy and group_limited_greedy"
            )
        super().__init__(config)

    def rope(self, config: Config) -> RotaryTables:
        return RotaryTables(
            config, dim=config.count("qk_rope_head_dim"), interleaved=self.interleaved
        )

    def block(self, config: Config, layer: int) -> Any:
        dense = layer < config.count("first_k_dense_replace", 0)
        mlp = GatedMLP(config) if dense else SharedExperts(config)
        return Block(config, LatentAttention(config, layer, self._rope), mlp)


def _score_scale(config: Config) -> float:
    """Yarn's factor of scores, as the model's own code has it: mscale squared."""
    scaling = config.rope_scaling or {}
    try:
        mscale, factor = (float(scaling.get(each, 0)) for each in ("mscale_all_dim", "factor"))
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"{config.source}: mscale_all_dim and factor are numbers") from None
    if not mscale or not 1 < factor < math.inf:
        return 1.0
    return float((0.1 * mscale * math.log(factor) + 1.0) ** 2)
