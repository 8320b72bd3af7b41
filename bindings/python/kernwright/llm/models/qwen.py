"""Qwen 2, 2.5 and 3, and their mixtures of experts.

Yang et al., "Qwen2 technical report", 2024; "Qwen3 technical report", 2025.
"""

from __future__ import annotations

from typing import Any, ClassVar

import kernwright as kw
from kernwright._core import Array
from kernwright.llm import _names
from kernwright.llm._config import Config
from kernwright.llm._errors import ModelError
from kernwright.llm.models._layers import Attention, Experts, GatedMLP, Linear
from kernwright.llm.models.llama import Block, Llama
from kernwright.nn import Module

__all__ = ["Qwen2", "Qwen2Moe", "Qwen3", "Qwen3Moe"]


class Qwen2(Llama):
    """Llama with biases of queries, keys and values."""

    def block(self, config: Config, layer: int) -> Any:
        attention = Attention(
            config, layer, rope=self._rope, bias=True, window=_window(config, layer)
        )
        return Block(config, attention, self.mlp(config, layer))

    def mlp(self, config: Config, layer: int) -> Module:
        """What follows attention in a block."""
        return GatedMLP(config)


class Qwen3(Qwen2):
    """Llama with norms of the heads of queries and keys."""

    def block(self, config: Config, layer: int) -> Any:
        bias = config.flag("attention_bias", False)
        attention = Attention(
            config, layer, rope=self._rope, bias=bias, output_bias=bias, qk_norm="heads",
            window=_window(config, layer),
        )  # fmt: skip
        return Block(config, attention, self.mlp(config, layer))


class SharedExperts(Module):
    """Experts, and a gated layer that all tokens go through, times sigmoid(gate(x))."""

    def __init__(self, config: Config) -> None:
        self.experts = _experts(config, renormalise=False)
        self.shared = GatedMLP(
            config, intermediate_size=config.count("shared_expert_intermediate_size")
        )
        self.shared_gate = Linear(config.hidden_size, 1)

    def __call__(self, x: Array, residual: Array) -> Array:
        shared = self.shared(x) * kw.nn.sigmoid(self.shared_gate(x))
        return self.experts(x, residual=residual) + shared


class Qwen2Moe(Qwen2):
    """Qwen2 with experts beside a shared one."""

    names: ClassVar[_names.Names] = _names.QWEN2_MOE

    def mlp(self, config: Config, layer: int) -> Module:
        return SharedExperts(config) if _has_experts(config, layer) else GatedMLP(config)


class Qwen3Moe(Qwen3):
    """Qwen3 with experts."""

    names: ClassVar[_names.Names] = _names.QWEN3_MOE

    def mlp(self, config: Config, layer: int) -> Module:
        return _experts(config) if _has_experts(config, layer) else GatedMLP(config)


def _window(config: Config, layer: int) -> int | None:
    """Without layer_types, layers from max_window_layers on have the window."""
    if config.layer_kinds() is not None:
        return config.windows()[layer]
    if not config.flag("use_sliding_window", False):
        return None
    return config.sliding_window if layer >= config.count("max_window_layers", 28) else None


def _experts(config: Config, renormalise: bool = True) -> Experts:
    return Experts(
        config, count=_expert_count(config), top_k=config.count("num_experts_per_tok"),
        width=config.count("moe_intermediate_size"),
        renormalise=config.flag("norm_topk_prob", renormalise),
    )  # fmt: skip


def _has_experts(config: Config, layer: int) -> bool:
    step = config.count("decoder_sparse_step", 1, least=1)
    dense = config.fields.get("mlp_only_layers") or []
    if not isinstance(dense, list):
        raise ModelError(f"{config.source}: mlp_only_layers is a list, got {dense!r:.60}")
    return layer not in dense and _expert_count(config) > 0 and (layer + 1) % step == 0


def _expert_count(config: Config) -> int:
    """The field has two names."""
    name = "num_local_experts" if "num_local_experts" in config.fields else "num_experts"
    return config.count(name)
