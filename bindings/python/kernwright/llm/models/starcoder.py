"""StarCoder 2. Lozhkov et al., "StarCoder 2 and The Stack v2: the next generation", 2024."""

from __future__ import annotations

from typing import Any, ClassVar

from kernwright.llm import _names
from kernwright.llm._config import Config
from kernwright.llm.models._layers import MLP, Attention, LayerNorm
from kernwright.llm.models.llama import Block, Llama

__all__ = ["Starcoder2"]


class Starcoder2(Llama):
    """Llama with layer norms, biases, and two layers around a GELU."""

    names: ClassVar[_names.Names] = _names.STARCODER2

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.norm = LayerNorm(config.hidden_size, config.norm_eps)  # type: ignore[assignment]

    def block(self, config: Config, layer: int) -> Any:
        bias = config.flag("use_bias", True)
        attention = Attention(
            config, layer, rope=self._rope, bias=bias, output_bias=bias,
            window=config.windows()[layer],
        )  # fmt: skip
        block: Any = Block(config, attention, MLP(config, bias=bias))
        block.input_norm = LayerNorm(config.hidden_size, config.norm_eps)
        block.post_norm = LayerNorm(config.hidden_size, config.norm_eps)
        return block
