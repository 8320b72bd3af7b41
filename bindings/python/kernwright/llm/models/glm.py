"""GLM-4. Team GLM, "ChatGLM: a family of large language models from GLM-130B to GLM-4", 2024."""

from __future__ import annotations

from typing import Any, ClassVar

from kernwright._core import Array
from kernwright.llm import _names
from kernwright.llm._config import Config
from kernwright.llm._step import Step
from kernwright.llm.models._layers import Attention, GatedMLP, RMSNorm
from kernwright.llm.models.llama import Block, Llama

__all__ = ["Glm", "Glm4"]


class Glm(Llama):
    """Llama whose queries and keys turn in pairs of neighbours, by half."""

    names: ClassVar[_names.Names] = _names.GLM
    interleaved = True

    def block(self, config: Config, layer: int) -> Any:
        bias = config.flag("attention_bias", False)
        attention = Attention(config, layer, rope=self._rope, bias=bias)
        return Block(config, attention, GatedMLP(config))


class Glm4Block(Block):
    """Llama's block with norms behind attention and the gated layer, too."""

    def __init__(self, config: Config, attention: Attention) -> None:
        super().__init__(config, attention, GatedMLP(config))
        self.attention_post_norm = RMSNorm(config.hidden_size, config.norm_eps)
        self.mlp_post_norm = RMSNorm(config.hidden_size, config.norm_eps)

    def __call__(self, x: Array, step: Step) -> Array:
        x = x + self.attention_post_norm(self.attention(x, step, self.input_norm))
        return x + self.mlp_post_norm(self.mlp(x, self.post_norm))  # type: ignore[no-any-return]


class Glm4(Glm):
    """Glm with four norms in each block."""

    names: ClassVar[_names.Names] = _names.GLM4

    def block(self, config: Config, layer: int) -> Any:
        bias = config.flag("attention_bias", False)
        return Glm4Block(config, Attention(config, layer, rope=self._rope, bias=bias))
