"""Mixtral: Mistral with experts. Jiang et al., "Mixtral of experts", 2024."""

from __future__ import annotations

from typing import Any, ClassVar

from kernwright.llm import _names
from kernwright.llm._config import Config
from kernwright.llm.models._layers import Attention, Experts
from kernwright.llm.models.llama import Block, Llama

__all__ = ["Mixtral"]


class Mixtral(Llama):
    """Each token goes through two of the experts of a layer."""

    names: ClassVar[_names.Names] = _names.MIXTRAL

    def block(self, config: Config, layer: int) -> Any:
        attention = Attention(config, layer, rope=self._rope, window=config.windows()[layer])
        experts = Experts(
            config, count=config.count("num_local_experts"),
            top_k=config.count("num_experts_per_tok", 2), width=config.intermediate_size,
        )  # fmt: skip
        return Block(config, attention, experts)
