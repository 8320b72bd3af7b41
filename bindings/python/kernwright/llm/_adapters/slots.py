"""Slots for the weights of adapters, at fixed addresses: graphs of steps stay valid while adapters
come and go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import kernwright as kw
from kernwright._core import Array
from kernwright.errors import InvalidArgument
from kernwright.llm._adapters.files import LowRank
from kernwright.llm._adapters.head_products import HeadColumns, add_by_heads
from kernwright.llm._adapters.products import expand, shrink
from kernwright.llm._adapters.tensor_products import expand_tiles, shrink_tiles, takes_tiles
from kernwright.llm._step import Step
from kernwright.llm.models._layers import Linear

__all__ = ["LayerSlots", "StepSlots", "padded_rank", "slot_bytes"]

_RANKS = 8  # ranks are padded to a multiple


def padded_rank(rank: int) -> int:
    """The rank of slots that hold one of so much.

    >>> from kernwright.llm._adapters.slots import padded_rank
    >>> padded_rank(1), padded_rank(16)
    (8, 16)
    """
    return -(-rank // _RANKS) * _RANKS


def slot_bytes(layer: Linear, slots: int, rank: int, dtype: str) -> int:
    """Bytes of the device that LayerSlots of a layer take."""
    (outputs, inputs), parts = layer.extents, len(layer.part_names())
    item = kw.empty((0,), dtype).dtype.itemsize
    return slots * (rank * (parts * inputs + outputs) * item + 4) + 4 * parts


class StepSlots:
    """The slots of a step's tokens, (tokens,) int32; -1: no adapter. While a step runs, layers find
    it here."""

    def __init__(self) -> None:
        self._tokens: Array | None = None
        self._step: Step | None = None
        self._selected: Array | None = None

    @property
    def is_set(self) -> bool:
        """Whether a step runs whose tokens may have adapters."""
        return self._tokens is not None

    def set(self, step: Step | None, tokens: Array | None) -> None:
        """A step begins, or ends with None."""
        self._step, self._tokens, self._selected = step, tokens, None

    def of_rows(self, count: int) -> Array:
        """The slots of all tokens, or of the rows whose logits are wanted."""
        assert self._tokens is not None and self._step is not None
        # A step with drafts may have as many outputs as tokens, in another order.
        if count == self._tokens.shape[0] and not self._step._has_selected:
            return self._tokens
        if self._selected is None:
            self._selected = self._step.select(self._tokens)
        if count != self._selected.shape[0]:
            raise InvalidArgument(
                f"a layer with an adapter has rows of {count} tokens, and its step has "
                f"{self._tokens.shape[0]} tokens, of which {self._selected.shape[0]} are selected"
            )
        return self._selected


class LayerSlots:
    """The weights that adapters add to one layer: for each slot down (parts, rank, inputs) and up
    (rank, outputs), of which used[slot] ranks count. Layers of several projections have a part for
    each."""

    def __init__(
        self, layer: Linear, step: StepSlots, *, slots: int, rank: int, dtype: str, device: Any
    ) -> None:  # fmt: skip
        self._layer, self._step = layer, step
        outputs, inputs = layer.extents
        ends = [layer.rows_of(name).stop for name in layer.part_names()]
        self._parts_are_whole = all(end % 8 == 0 for end in ends)
        self._ends = kw.asarray(np.asarray(ends, np.int32), device=device)
        self.down = kw.zeros((slots, len(ends), rank, inputs), dtype, device=device)
        self.up = kw.zeros((slots, rank, outputs), dtype, device=device)
        self.used = kw.zeros((slots,), "int32", device=device)

    @property
    def rank(self) -> int:
        """The highest rank that a slot holds."""
        return int(self.up.shape[1])

    def write(self, slot: int, weights: Sequence[LowRank]) -> None:
        """The slot has these weights from now on; without any it adds nothing."""
        self.used[slot] = max((each.rank for each in weights), default=0)
        if not weights:
            return
        self.down[slot] = 0
        self.up[slot] = 0
        dtype = self.up.dtype.name
        for each in weights:
            parts = range(self.down.shape[1]) if each.part is None else (each.part,)
            for part in parts:
                self.down[slot, part, : each.rank] = each.down.astype(dtype)
            wide = each.up.astype("float32") * each.scale
            self.up[slot, : each.rank, each.rows] = wide.T.astype(dtype)

    def copy_from(self, other: LayerSlots) -> None:
        """Takes over all slots of one with a lower rank."""
        self.down[:, :, : other.rank] = other.down
        self.up[:, : other.rank] = other.up
        self.used[...] = other.used

    @property
    def is_wanted(self) -> bool:
        """Whether tokens of the step may have adapters."""
        return self._step.is_set

    def apply(
        self, product: Callable[..., Array], x: Array, *, activation: str | None = None,
        gate: str | None = None, residual: Array | None = None, **options: Any,
    ) -> Array:  # fmt: skip
        """The layer product(x, **options), with what the adapters of the tokens add to it before an
        activation or a gate."""
        if activation is None and gate is None:
            y = product(x, residual=residual, **options)
            return self._add(x, y)
        y = self._add(x, product(x, **options))
        if activation is not None:
            y = _activated(activation, y)
        if gate is not None:
            half = y.shape[-1] // 2
            y = _activated(gate, y[..., :half]) * y[..., half:]
        return y if residual is None else y + residual

    def add_heads(self, x: Array, y: Array, first: int, *, transposed: bool) -> None:
        """Adds the adapters of a layer in latent attention, where each head has an equal share of
        the outputs: to y (tokens, heads, n), in place, x (tokens, heads, inputs) times the weights
        of outputs `first` to first + n of each head; or `transposed`, to y (tokens, heads, inputs),
        x (tokens, heads, n) times these."""
        outputs, inputs = self._layer.extents
        width = x.shape[-1] if transposed else y.shape[-1]
        down = HeadColumns(self.down, 0, 0, inputs)
        up = HeadColumns(self.up, outputs // x.shape[1], first, width)
        sides = (up, down) if transposed else (down, up)
        add_by_heads(x, *sides, self._step.of_rows(x.shape[0]), self.used, y)

    def _add(self, x: Array, y: Array) -> Array:
        outputs, inputs = self._layer.extents
        rows = x.astype(self.down.dtype.name, copy=False).reshape((-1, inputs))
        rows = rows if rows.is_contiguous else rows.copy()
        slots = self._step.of_rows(rows.shape[0])
        results = y.reshape((-1, outputs))
        if takes_tiles(rows, self.down, results, self._parts_are_whole):
            low = shrink_tiles(rows, self.down, slots, self.used)
            expand_tiles(low, self.up, slots, self.used, self._ends, results)
        else:
            low = shrink(rows, self.down, slots, self.used)
            expand(low, self.up, slots, self.used, self._ends, results)
        return y


def _activated(name: str, y: Array) -> Array:
    """What kw.nn.linear() calls by that name."""
    if name == "gelu_tanh":
        return kw.nn.gelu(y, approximate="tanh")
    return getattr(kw.nn, name)(y)  # type: ignore[no-any-return]
