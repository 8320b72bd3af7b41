"""Llama 1 to 3, and the families that differ from it in a setting or two.

Touvron et al., "LLaMA: Open and efficient foundation language models", 2023; Grattafiori et al.,
"The Llama 3 herd of models", 2024.
"""

from __future__ import annotations

from typing import Any, ClassVar

from kernwright._core import Array
from kernwright.llm import _names
from kernwright.llm._config import Config
from kernwright.llm._step import Step
from kernwright.llm.models._layers import (
    Attention,
    Embedding,
    GatedMLP,
    Linear,
    RMSNorm,
    RotaryTables,
    normed,
)
from kernwright.nn import Module

__all__ = ["Block", "Llama"]


class Block(Module):
    """x + attention(norm(x)), then the same with the gated layer."""

    def __init__(self, config: Config, attention: Module, mlp: Module) -> None:
        self.input_norm = RMSNorm(config.hidden_size, config.norm_eps)
        self.attention = attention
        self.post_norm = RMSNorm(config.hidden_size, config.norm_eps)
        self.mlp = mlp

    def __call__(self, x: Array, step: Step) -> Array:
        x = normed(self.attention, self.input_norm, x, step, residual=x)
        return normed(self.mlp, self.post_norm, x, residual=x)


class Llama(Module):
    """A decoder of texts: an embedding, blocks, a norm, logits."""

    names: ClassVar[_names.Names] = _names.LLAMA
    """The parameters by their names in files."""
    interleaved: ClassVar[bool] = False
    """Whether neighbours turn as pairs, in place of elements that are half a head apart."""

    wide_residuals: ClassVar[bool] = False
    """Whether the sums of layers pass float16, so that weights of that dtype have float32 ones."""

    def __init__(self, config: Config) -> None:
        self.embedding = Embedding(config.vocab_size, config.hidden_size)
        self._rope = self.rope(config)
        self.layers = [self.block(config, i) for i in range(config.num_layers)]
        self.norm = RMSNorm(config.hidden_size, config.norm_eps)
        self.head = Linear(config.hidden_size, config.vocab_size)
        if config.tied:
            self.head.weight = self.embedding.weight

    def rope(self, config: Config) -> RotaryTables:
        """The tables of rotary positions."""
        return RotaryTables(config, interleaved=self.interleaved)

    def block(self, config: Config, layer: int) -> Any:
        """One of the blocks; families differ in it."""
        bias = config.flag("attention_bias", False)
        attention = Attention(
            config, layer, rope=self._rope, bias=bias, output_bias=bias,
            window=config.windows()[layer],
        )  # fmt: skip
        return Block(config, attention, GatedMLP(config, bias=config.flag("mlp_bias", False)))

    def cache_layers(self) -> list[tuple[int, int]]:
        """(kv_heads, head_dim) of what each layer keeps of a token."""
        return [layer.attention.cache_layer() for layer in self.layers]

    def hidden(self, step: Step) -> Array:
        """What the logits are made of, (rows, hidden), of the rows that step.select() takes."""
        x = self.embedding(step.tokens)
        for number, layer in enumerate(self.layers):
            step.observe(number, x)
            x = layer(x, step)
        step.observe(len(self.layers), x)
        return self.norm(step.select(x))  # type: ignore[no-any-return]

    def __call__(self, step: Step) -> Array:
        """Logits (rows, vocabulary) of the rows that step.select() takes."""
        return self.head(self.hidden(step))
