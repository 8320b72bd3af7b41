"""Granite 3 and 4 (dense). IBM, "Granite 3.0 language models", 2024."""

from __future__ import annotations

from typing import Any

from kernwright._core import Array
from kernwright.llm._config import Config
from kernwright.llm._step import Step
from kernwright.llm.models._layers import Attention, Embedding, GatedMLP
from kernwright.llm.models.llama import Block, Llama

__all__ = ["Granite"]


class ScaledBlock(Block):
    """Llama's block, where what is added to x is multiplied by a number."""

    def __init__(self, config: Config, attention: Attention) -> None:
        super().__init__(config, attention, GatedMLP(config, bias=config.flag("mlp_bias", False)))
        self._scale = config.number("residual_multiplier", 1.0)

    def __call__(self, x: Array, step: Step) -> Array:
        x = x + self.attention(x, step, self.input_norm) * self._scale
        return x + self.mlp(x, self.post_norm) * self._scale  # type: ignore[no-any-return]


class Granite(Llama):
    """Llama with multipliers of the embedding, of residuals, of scores and of logits."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        scale = config.number("embedding_multiplier", 1.0)
        self.embedding = Embedding(config.vocab_size, config.hidden_size, scale)
        if config.tied:
            self.head.weight = self.embedding.weight
        self._logits_scaling = config.above_zero("logits_scaling", 1.0)

    def block(self, config: Config, layer: int) -> Any:
        bias = config.flag("attention_bias", False)
        attention = Attention(
            config, layer, rope=self._rope, bias=bias, output_bias=bias,
            scale=config.number("attention_multiplier", 1.0),
        )  # fmt: skip
        return ScaledBlock(config, attention)

    def __call__(self, step: Step) -> Array:
        return super().__call__(step) / self._logits_scaling
