"""GPT-2. Radford et al., "Language models are unsupervised multitask learners", 2019."""

from __future__ import annotations

from typing import ClassVar

from kernwright._core import Array
from kernwright.llm import _names
from kernwright.llm._config import Config
from kernwright.llm._step import Step
from kernwright.llm.models._layers import MLP, Attention, Embedding, LayerNorm, Linear
from kernwright.nn import Module

__all__ = ["GPT2"]


class Block(Module):
    """x + attention(norm(x)), then the same with two layers around a GELU."""

    def __init__(self, config: Config, layer: int) -> None:
        self.input_norm = LayerNorm(config.hidden_size, config.norm_eps)
        scale = config.head_dim**-0.5 if config.flag("scale_attn_weights", True) else 1.0
        if config.flag("scale_attn_by_inverse_layer_idx", False):
            scale /= layer + 1
        self.attention = Attention(
            config, layer, rope=None, bias=True, output_bias=True, scale=scale
        )
        self.post_norm = LayerNorm(config.hidden_size, config.norm_eps)
        self.mlp = MLP(config, bias=True)

    def __call__(self, x: Array, step: Step) -> Array:
        x = self.attention(self.input_norm(x), step, residual=x)
        return self.mlp(self.post_norm(x), residual=x)


class GPT2(Module):
    """Tables of tokens and of positions, blocks, a norm; the table of tokens gives the logits,
    unless `tie_word_embeddings` is false."""

    names: ClassVar[_names.Names] = _names.GPT2

    def __init__(self, config: Config) -> None:
        self.embedding = Embedding(config.vocab_size, config.hidden_size)
        self.positions = Embedding(config.count("max_position_embeddings"), config.hidden_size)
        self.layers = [Block(config, i) for i in range(config.num_layers)]
        self.norm = LayerNorm(config.hidden_size, config.norm_eps)
        self.head = Linear(config.hidden_size, config.vocab_size)
        if config.flag("tie_word_embeddings", True):
            self.head.weight = self.embedding.weight

    def cache_layers(self) -> list[tuple[int, int]]:
        """(kv_heads, head_dim) of what each layer keeps of a token."""
        return [layer.attention.cache_layer() for layer in self.layers]

    def hidden(self, step: Step) -> Array:
        """What the logits are made of, (rows, hidden), of the rows that step.select() takes."""
        x = self.embedding(step.tokens) + self.positions(step.positions)
        for number, layer in enumerate(self.layers):
            step.observe(number, x)
            x = layer(x, step)
        step.observe(len(self.layers), x)
        return self.norm(step.select(x))  # type: ignore[no-any-return]

    def __call__(self, step: Step) -> Array:
        """Logits (rows, vocabulary) of the rows that step.select() takes."""
        return self.head(self.hidden(step))
