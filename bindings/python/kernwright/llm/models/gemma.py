"""Gemma 2 and 3 (texts).

Gemma Team, "Gemma 2: Improving open language models at a practical size", 2024; "Gemma 3 technical
report", 2025.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import kernwright as kw
from kernwright._core import Array
from kernwright.llm import _names
from kernwright.llm._config import Config
from kernwright.llm._step import Step
from kernwright.llm.models._layers import Attention, Embedding, GatedMLP, RMSNorm, RotaryTables
from kernwright.llm.models.llama import Llama
from kernwright.nn import Module

__all__ = ["Gemma2", "Gemma3", "Gemma3Texts"]


class SandwichBlock(Module):
    """Norms before and behind attention, and before and behind the gated layer; weights of norms
    are float32, since files keep them less 1."""

    def __init__(self, config: Config, attention: Attention) -> None:
        hidden, eps = config.hidden_size, config.norm_eps
        self.input_norm = RMSNorm(hidden, eps, "float32")
        self.attention = attention
        self.post_norm = RMSNorm(hidden, eps, "float32")
        self.mlp_norm = RMSNorm(hidden, eps, "float32")
        self.mlp = GatedMLP(config)
        self.mlp_post_norm = RMSNorm(hidden, eps, "float32")

    def __call__(self, x: Array, step: Step) -> Array:
        x = x + self.post_norm(self.attention(self.input_norm(x), step))
        return x + self.mlp_post_norm(self.mlp(self.mlp_norm(x)))  # type: ignore[no-any-return]


class Gemma2(Llama):
    """Attention with a soft cap, every other layer over a window; logits with a soft cap."""

    names: ClassVar[_names.Names] = _names.GEMMA
    wide_residuals = True

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        scale = math.sqrt(config.hidden_size)
        self.embedding = Embedding(config.vocab_size, config.hidden_size, scale)
        self.head.weight = self.embedding.weight
        self.norm = RMSNorm(config.hidden_size, config.norm_eps, "float32")
        self._logit_cap = config.number("final_logit_softcapping", 0.0)

    def block(self, config: Config, layer: int) -> Any:
        full = layer % 2 == 1 if config.layer_kinds() is None else config.windows()[layer] is None
        attention = Attention(
            config, layer, rope=self._rope, scale=_scale(config),
            soft_cap=config.number("attn_logit_softcapping", 0.0) or None,
            window=None if full else config.sliding_window,
        )  # fmt: skip
        return SandwichBlock(config, attention)

    def __call__(self, step: Step) -> Array:
        logits = super().__call__(step)
        cap = self._logit_cap
        return cap * kw.tanh(logits / cap) if cap else logits


class Gemma3(Gemma2):
    """Norms of heads in place of the soft caps; five layers of six have a window, and rotate with
    a base of their own."""

    def __init__(self, config: Config) -> None:
        self._local_rope = RotaryTables(config, theta=_local_theta(config))
        super().__init__(config)

    def block(self, config: Config, layer: int) -> Any:
        pattern = config.count("sliding_window_pattern", 6, least=1)
        full = config.windows()[layer] is None
        if config.layer_kinds() is None:
            full = (layer + 1) % pattern == 0
        attention = Attention(
            config, layer, rope=self._rope if full else self._local_rope, scale=_scale(config),
            qk_norm="heads", norm_dtype="float32", window=None if full else config.sliding_window,
        )  # fmt: skip
        return SandwichBlock(config, attention)


class Gemma3Texts(Gemma3):
    """The texts of models for texts and pictures; what reads pictures is left out."""

    names: ClassVar[_names.Names] = _names.GEMMA_TEXTS
    unread: ClassVar[tuple[str, ...]] = tuple(
        prefix + part
        for prefix in ("", "model.") for part in ("vision_tower.", "multi_modal_projector.")
    )  # fmt: skip


def _scale(config: Config) -> float:
    return 1.0 / math.sqrt(config.above_zero("query_pre_attn_scalar", config.head_dim))


def _local_theta(config: Config) -> float:
    """The base of the layers with a window."""
    given = config.fields.get("rope_parameters")
    local = given.get("sliding_attention") if isinstance(given, Mapping) else None
    if isinstance(local, Mapping) and isinstance(local.get("rope_theta"), (int, float)):
        return float(local["rope_theta"])
    return config.number("rope_local_base_freq", 10000.0)
