"""MiMo: Qwen2 with a layer that predicts the token behind the next one.

Xia et al., "MiMo: Unlocking the reasoning potential of language model", 2025.
"""

from __future__ import annotations

from typing import Any, ClassVar

import kernwright as kw
from kernwright._core import Array
from kernwright.llm import _names
from kernwright.llm._config import Config
from kernwright.llm._step import Step
from kernwright.llm.models._layers import Attention, GatedMLP, Linear, RMSNorm, RotaryTables
from kernwright.llm.models.llama import Block
from kernwright.llm.models.qwen import Qwen2
from kernwright.nn import Module

__all__ = ["MiMo"]


class MiMoPredictor(Module):
    """The layer of multi-token prediction (MTP): a block over the embedding of a token and the
    hidden state before that token.

    layer() gives a state from which logits() are made with the model's last product. This state
    takes the place of the model's where there is none. `embedding` and `head` are the model's.
    """

    names: ClassVar[_names.Names] = _names.MIMO_PREDICTOR
    """The parameters by their names in files."""
    prefix: ClassVar[str] = "model.mtp_layers."
    """In front of the names of all tensors of such layers."""

    embedding: Any = None
    head: Any = None

    def __init__(self, config: Config) -> None:
        hidden = config.hidden_size
        self._rope = RotaryTables(config)
        self.token_norm = RMSNorm(hidden, config.norm_eps)
        self.hidden_norm = RMSNorm(hidden, config.norm_eps)
        self.mixer = Linear(2 * hidden, hidden)
        attention = Attention(config, 0, rope=self._rope, bias=True)
        self._cache_layer = attention.cache_layer()
        self.block = Block(config, attention, GatedMLP(config))
        self.norm = RMSNorm(hidden, config.norm_eps)

    def share(self, model: Any) -> None:
        """Takes the table of tokens and the last product of a model."""
        self.embedding = model.embedding
        self.head = Linear(*reversed(model.head.extents))
        self.head.weight, self.head.bias = model.head.weight, model.head.bias

    def cache_layers(self) -> list[tuple[int, int]]:
        """(kv_heads, head_dim) of what its block keeps of a token."""
        return [self._cache_layer]

    def mix(self, features: Array) -> Array:
        """The hidden states (tokens, hidden) as they are: behind the last layer of the model."""
        return features

    def layer(self, states: Array, step: Step) -> Array:
        """The next states, (tokens, hidden), of those before the tokens of a step."""
        tokens = self.token_norm(self.embedding(step.tokens))
        x = self.mixer(kw.concat([self.hidden_norm(states), tokens], axis=-1))
        return self.norm(self.block(x, step))  # type: ignore[no-any-return]

    def logits(self, states: Array) -> Array:
        """(rows, vocabulary) of what layer() gave."""
        return self.head(states)  # type: ignore[no-any-return]


class MiMo(Qwen2):
    """Qwen2; drafts may come from the layer that files have beside it."""

    predictor: ClassVar[type] = MiMoPredictor
    """The layer of draft="mtp"."""
