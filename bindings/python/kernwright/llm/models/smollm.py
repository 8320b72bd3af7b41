"""SmolLM3. Hugging Face, "SmolLM3: smol, multilingual, long-context reasoner", 2025."""

from __future__ import annotations

from typing import Any

from kernwright.llm._config import Config
from kernwright.llm._errors import ModelError
from kernwright.llm.models._layers import Attention, GatedMLP
from kernwright.llm.models.llama import Block, Llama

__all__ = ["SmolLM3"]


class SmolLM3(Llama):
    """Llama where every fourth layer does not rotate."""

    def block(self, config: Config, layer: int) -> Any:
        rotates = config.fields.get("no_rope_layers")
        if rotates is None:
            interval = config.count("no_rope_layer_interval", 4, least=1)
            rotates = [(i + 1) % interval != 0 for i in range(config.num_layers)]
        if not isinstance(rotates, list) or len(rotates) != config.num_layers:
            raise ModelError(f"{config.source}: no_rope_layers has a number for each layer")
        bias = config.flag("attention_bias", False)
        attention = Attention(
            config, layer, rope=self._rope if rotates[layer] else None, bias=bias,
            output_bias=bias, window=config.windows()[layer],
        )  # fmt: skip
        return Block(config, attention, GatedMLP(config, bias=config.flag("mlp_bias", False)))
