"""OLMo 2. OLMo Team, "2 OLMo 2 Furious", 2025."""

from __future__ import annotations

from typing import Any, ClassVar

from kernwright._core import Array
from kernwright.llm import _names
from kernwright.llm._config import Config
from kernwright.llm._step import Step
from kernwright.llm.models._layers import Attention, GatedMLP, RMSNorm
from kernwright.llm.models.llama import Llama
from kernwright.nn import Module

__all__ = ["Olmo2"]


class PostNormBlock(Module):
    """x + norm(attention(x)), then the same with the gated layer."""

    def __init__(self, config: Config, attention: Attention) -> None:
        self.attention = attention
        self.post_norm = RMSNorm(config.hidden_size, config.norm_eps)
        self.mlp = GatedMLP(config)
        self.mlp_post_norm = RMSNorm(config.hidden_size, config.norm_eps)

    def __call__(self, x: Array, step: Step) -> Array:
        x = x + self.post_norm(self.attention(x, step))
        return x + self.mlp_post_norm(self.mlp(x))  # type: ignore[no-any-return]


class Olmo2(Llama):
    """Norms behind the layers in place of before, and of all heads of queries and keys."""

    names: ClassVar[_names.Names] = _names.OLMO2

    def block(self, config: Config, layer: int) -> Any:
        bias = config.flag("attention_bias", False)
        attention = Attention(
            config, layer, rope=self._rope, bias=bias, output_bias=bias, qk_norm="all"
        )
        return PostNormBlock(config, attention)
