"""The tables of rotary positions that a model's layers share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import kernwright as kw
from kernwright._core import Array
from kernwright._core import _launched as launched
from kernwright.errors import OutOfMemory
from kernwright.llm._config import Config
from kernwright.llm._errors import ModelError
from kernwright.llm._step import Rotation
from kernwright.llm._weights.available import available_bytes

__all__ = ["RotaryTables"]

_LEAST_POSITIONS = 4096  # of tables, where the context is longer
_AHEAD = 64  # positions behind the longest text, which drafts may have


class RotaryTables:
    """Cosines and sines of the positions that texts have, made when first asked for; layers share
    them. Longer texts have longer tables made; the shorter ones stay for recorded steps.

    >>> from kernwright import llm
    >>> config = llm.Config.from_fields({
    ...     "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
    ...     "num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 1 << 30,
    ... })
    >>> tables = llm.models.RotaryTables(config)
    >>> tables.on(None, 100).cos.shape, tables.on(None, 10_000).cos.shape
    ((4096, 8), (16384, 8))
    """

    def __init__(
        self, config: Config, *, theta: float | None = None,
        scaling: Mapping[str, Any] | None = None, dim: int | None = None,
        interleaved: bool = False,
    ) -> None:  # fmt: skip
        self._dim, self._length = dim or config.rope_dim, config.max_length
        self._theta = config.rope_theta if theta is None else theta
        self._scaling = config.rope_scaling if theta is None else scaling
        self._short = config.short_length() if self._scaling is config.rope_scaling else 0
        self._interleaved = interleaved or config.flag("rope_interleaved", False)
        self._made: list[Rotation] = []  # the longest ones last

    def check(self, source: str, device: Any) -> None:
        """Raises ModelError for a rule that makes no sense; `source` is the file that has it."""
        try:
            for length in (1, self._length):  # longrope has factors for short and for long texts
                kw.nn.rope_frequencies(
                    self._dim, base=self._theta, scaling=self._scaling, seq_len=length,
                    device=device,
                )  # fmt: skip
        except (kw.errors.ArgumentError, kw.errors.InvalidArgument, OverflowError) as error:
            raise ModelError(f"{source}: rotary positions: {error}") from None

    def difference(self, other: RotaryTables, name: str) -> str | None:
        """How the angles of two tables differ; None where they are the same."""
        ours, theirs = self._angles(), other._angles()
        if (self._dim, self._length) != (other._dim, other._length):
            return f"{name}: {self._dim} x {self._length} and {other._dim} x {other._length}"
        same = all(np.allclose(a, b, rtol=1e-5) for a, b in zip(ours, theirs, strict=True))
        return None if same else f"{name}: other angles of rotary positions"

    def _angles(self) -> list[Any]:
        """Frequencies of short and of long texts, and cosines at position 0: their factor."""
        rule: dict[str, Any] = {"base": self._theta, "scaling": self._scaling}
        short, long = (
            kw.nn.rope_frequencies(self._dim, seq_len=length, **rule).numpy()
            for length in (1, self._length)
        )
        return [short, long, kw.nn.rope_tables(1, self._dim, **rule)[0].numpy()]

    def on(self, device: Any, longest: int | None = None) -> Rotation:
        """The tables on a device, for texts of up to `longest` tokens (Step.longest); of the whole
        context without it. Raises OutOfMemory, which tells the context that would fit."""
        device = kw.empty((0,), device=device).device if device is None else device
        if self._made and self._made[-1].cos.device != device:
            self._made = []
        rows = self._rows(longest)
        if not self._made or self._made[-1].cos.shape[0] < self._short + rows:
            rule: dict[str, Any] = {"base": self._theta, "scaling": self._scaling, "device": device}
            # The tables stay, so a call without launches makes them, too.
            cos, sin = launched(lambda: self._fitting_tables(rows, rule))
            self._made.append(Rotation(cos, sin, self._interleaved, self._short))
        return self._made[-1]

    def _rows(self, longest: int | None) -> int:
        """Powers of two, so that growing texts have few tables made."""
        if longest is None or longest >= self._length:
            return self._length
        needed = max(longest + _AHEAD, _LEAST_POSITIONS)
        return min(1 << (needed - 1).bit_length(), self._length)

    def _fitting_tables(self, rows: int, rule: dict[str, Any]) -> tuple[Array, Array]:
        """Raises OutOfMemory, which tells the context that would fit."""
        try:
            return self._tables(rows, rule)
        except OutOfMemory as error:
            raise OutOfMemory(self._too_large(rows, rule["device"])) from error

    def _too_large(self, rows: int, device: Any) -> str:
        """What fits in place of the context."""
        token = 4 * self._dim  # a cosine and a sine for each pair
        left = available_bytes(device)
        # "longrope" has the rows of both rules, which are made apart and then joined.
        fitting = left // token if not self._short else left // (2 * token) - self._short
        most = min(max(fitting, 0), rows)
        return (
            f"the rotary positions of a context of {rows} tokens need "
            f"{rows * token / 2**30:.2f} GiB, {token} bytes each, and {device.name} has "
            f"{left / 2**30:.2f} GiB left: a context of {most} tokens at most fits, and less "
            "beside keys and values; load the model with a smaller max_length (--max-seq-len of "
            "a command)"
        )

    def _tables(self, rows: int, rule: dict[str, Any]) -> tuple[Array, Array]:
        cos, sin = kw.nn.rope_tables(rows, self._dim, seq_len=self._length, **rule)
        if not self._short:
            return cos, sin
        short = kw.nn.rope_tables(self._short, self._dim, **rule)
        return kw.concat([short[0], cos], axis=0), kw.concat([short[1], sin], axis=0)
