"""gpt-oss. OpenAI, "gpt-oss-120b and gpt-oss-20b model card", 2025."""

from __future__ import annotations

from typing import Any, ClassVar

import kernwright as kw
from kernwright._core import Array
from kernwright.llm import _names
from kernwright.llm._config import Config
from kernwright.llm.models._layers import Attention, Linear, Unread, gate_up_rows
from kernwright.llm.models.llama import Block, Llama
from kernwright.nn import Module

__all__ = ["GptOss"]


@kw.fuse
def clamped_gate(gate: Any, up: Any) -> Any:
    """(up + 1) * gate * sigmoid(1.702 gate), with gate up to 7 and up within -7 and 7."""
    gate = kw.minimum(gate, 7.0)
    up = kw.clip(up, -7.0, 7.0)
    return (up + 1.0) * gate / (1.0 + kw.exp(-1.702 * gate))


class BiasedExperts(Module):
    """Experts with biases and clamped gates; softmax over the chosen ones.

    gate_up (experts, 2 * width, hidden) has the gates' rows before the others'.
    """

    gate_up: Any
    gate_up_bias: Any
    down: Any
    down_bias: Any

    def __init__(self, config: Config) -> None:
        self._count = config.count("num_local_experts")
        self._top_k = config.count("num_experts_per_tok")
        hidden, width = config.hidden_size, config.intermediate_size
        self._width = width
        self.router = Linear(hidden, self._count, bias=True)
        self.gate_up = Unread((self._count, 2 * width, hidden))
        self.gate_up_bias = Unread((self._count, 2 * width))
        self.down = Unread((self._count, hidden, width))
        self.down_bias = Unread((self._count, hidden))

    def rows_of(self, part: str) -> slice:
        """The rows of an expert's gate_up that one part has."""
        return gate_up_rows(part, self._width)

    def __call__(self, x: Array, residual: Array) -> Array:
        weights, experts = kw.nn.route(self.router(x), self._top_k)
        chosen = kw.nn.permute(x, experts, self._count)
        y = kw.nn.grouped_linear(chosen.rows, self.gate_up, chosen.offsets, self.gate_up_bias)
        half = y.shape[-1] // 2
        y = clamped_gate(y[:, :half], y[:, half:])
        y = kw.nn.grouped_linear(y, self.down, chosen.offsets, self.down_bias)
        return kw.nn.unpermute(y, chosen.positions, weights) + residual


class GptOss(Llama):
    """Llama with experts, sinks of attention, and a window in every other layer."""

    names: ClassVar[_names.Names] = _names.GPT_OSS
    wide_residuals = True

    def block(self, config: Config, layer: int) -> Any:
        windows = config.windows()
        if config.layer_kinds() is None:
            windows = [None if i % 2 else config.sliding_window for i in range(config.num_layers)]
        attention = Attention(
            config, layer, rope=self._rope, bias=config.flag("attention_bias", True),
            output_bias=config.flag("attention_bias", True), window=windows[layer], sinks=True,
        )  # fmt: skip
        return Block(config, attention, BiasedExperts(config))
