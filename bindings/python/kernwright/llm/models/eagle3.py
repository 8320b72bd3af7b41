"""EAGLE-3: a layer for guesses of tokens from a model's hidden states.

Li et al., "EAGLE-3: Scaling up inference acceleration of large language models via training-time
test", 2025.
"""

from __future__ import annotations

from typing import Any, ClassVar

import kernwright as kw
from kernwright._core import Array
from kernwright.llm import _names
from kernwright.llm._config import Config
from kernwright.llm._errors import ModelError
from kernwright.llm._step import Step
from kernwright.llm.models._layers import (
    Attention,
    Embedding,
    GatedMLP,
    Linear,
    RMSNorm,
    RotaryTables,
)
from kernwright.nn import Module

__all__ = ["Eagle3", "feature_layers"]


class Eagle3(Module):
    """A layer over the embedding of a token and a hidden state of `hidden_size` numbers.

    mix() makes such a state of three hidden states of the model, of a token's predecessor. layer()
    gives the next state, which takes the place of mix() while there is none of the model, and
    logits() those of `draft_vocab_size` tokens.
    """

    names: ClassVar[_names.Names] = _names.EAGLE3
    """The parameters by their names in files."""

    def __init__(self, config: Config) -> None:
        hidden = config.hidden_size
        if config.num_layers != 1:
            raise ModelError(
                f"{config.source}: an EAGLE-3 head has one layer, not {config.num_layers}"
            )
        self._before = config.flag("norm_before_residual", False)
        self._rope = RotaryTables(config)
        self.embedding = Embedding(config.vocab_size, hidden)
        self.mixer = Linear(3 * config.count("target_hidden_size", hidden, least=1), hidden)
        self.input_norm = RMSNorm(hidden, config.norm_eps)
        self.hidden_norm = RMSNorm(hidden, config.norm_eps)
        bias = config.flag("attention_bias", False)
        self.attention = Attention(config, 0, rope=self._rope, bias=bias)
        parts = {name: self.attention.qkv.rows_of(name) for name in ("q", "k", "v")}
        widths = {name: rows.stop - rows.start for name, rows in parts.items()}
        self.attention.qkv = Linear(2 * hidden, widths, bias)
        self.post_norm = RMSNorm(hidden, config.norm_eps)
        self.mlp = GatedMLP(config, bias=config.flag("mlp_bias", False))
        self.norm = RMSNorm(hidden, config.norm_eps)
        self.head = Linear(hidden, config.count("draft_vocab_size", config.vocab_size, least=1))

    def cache_layers(self) -> list[tuple[int, int]]:
        """(kv_heads, head_dim) of what its layer keeps of a token."""
        return [self.attention.cache_layer()]

    def mix(self, features: Array) -> Array:
        """(tokens, hidden) of the three hidden states, one behind the other in a row."""
        return self.mixer(features)

    def layer(self, states: Array, step: Step) -> Array:
        """The next states, (tokens, hidden), of those before the tokens of a step."""
        normed = self.hidden_norm(states)
        rest = normed if self._before else states
        x = kw.concat([self.input_norm(self.embedding(step.tokens)), normed], axis=-1)
        x = self.attention(x, step, residual=rest)
        return self.mlp(x, self.post_norm, residual=x)

    def logits(self, states: Array) -> Array:
        """(rows, draft_vocab_size) of what layer() gave."""
        return self.head(self.norm(states))


def feature_layers(config: Config, layers: int) -> tuple[int, ...]:
    """The states are those in front of three of a model's `layers`: as the config says, else of a
    low one, one in the middle, a high one. Raises ModelError."""
    inner: Any = config.fields.get("eagle_config") or {}
    name = "eagle_aux_hidden_state_layer_ids"
    listed = inner.get(name) if isinstance(inner, dict) else None
    behind = 0 if listed is None else 1  # files of both kinds count from layers on or behind them
    found = config.fields.get(name) if listed is None else listed
    if found is None:
        return min(2, layers), layers // 2, max(layers - 3, 0)
    known = isinstance(found, list) and len(found) == 3
    if not known or any(
        type(each) is not int or not 0 <= each + behind <= layers for each in found
    ):
        raise ModelError(f"{config.source}: {name} are three of {layers} layers, got {found!r:.60}")
    return tuple(each + behind for each in found)
