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
        if isinstance(step, PagedStep) and step.keeps_latent(self._layer):
            y = self._absorbed(step, q[..., :plain], q_turned, latent, k_turned)
        else:
            y = self._by_heads(step, q[..., :plain], q_turned, latent, k_turned)
        return self.out(y.reshape((count, -1)), **options)

    def _by_heads(
        self, step: Step, q: Array, q_turned: Array, latent: Array, k_turned: Array
    ) -> Array:
        """(tokens, heads, values): keys and values of all heads are made."""
        count, plain = q.shape[0], self._plain
        kv = self.kv_up(latent).reshape((count, self._heads, -1))
        k_turned = kw.broadcast_to(k_turned, (count, self._heads, self._turned))
        values = kw.pad(kv[..., plain:], ((0, 0), (0, 0), (0, plain + self._turned - self._value)))
        y = step.attend(
            self._layer, kw.concat([q, q_turned], axis=-1),
            kw.concat([kv[..., :plain], k_turned], axis=-1), values, scale=self._scale,
        )  # fmt: skip
        return y[..., : self._value]

    def _absorbed(
        self, step: PagedStep, q: Array, q_turned: Array, latent: Array, k_turned: Array
    ) -> Array:
        """The same from the latent vectors: weights of keys are multiplied into queries, those of
        values into results. So pages hold one vector of each token for all heads."""
        weights = self.kv_up.numbers(q).reshape((self._heads, -1, self._rank))
        adapters, q = self.kv_up.adapters, q.copy()
        wide = kw.matmul(q.transpose(1, 0, 2), weights[:, : self._plain]).transpose(1, 0, 2).copy()
        if adapters is not None:
            adapters.add_heads(q, wide, 0, transposed=True)
        y = step.attend_latent(
            self._layer, kw.concat([wide, q_turned], axis=-1), latent, k_turned[:, 0],
            scale=self._scale,
        )  # fmt: skip
        values = kw.matmul(y.transpose(1, 0, 2), weights[:, self._plain :].mT)
        made = values.transpose(1, 0, 2).copy()
        if adapters is not None:
            adapters.add_heads(y, made, self._plain, transposed=False)
        return made


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
