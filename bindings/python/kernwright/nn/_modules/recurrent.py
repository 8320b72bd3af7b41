"""LSTM and GRU with their weights, named and laid out as torch's."""

from __future__ import annotations

import math
from typing import Any, Literal

import kernwright
from kernwright._core import Array
from kernwright.errors import InvalidArgument
from kernwright.nn._modules import settings
from kernwright.nn._modules.dropout import MaskSequence
from kernwright.nn._modules.linear import seeds
from kernwright.nn._modules.module import Module
from kernwright.nn._recurrent._arguments import GATES
from kernwright.nn.init import _functions as init

__all__ = ["GRU", "LSTM", "GRUCell", "LSTMCell"]

_NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
_Cell = Literal["lstm", "gru"]


class _Weights(Module):
    """Sets of weights of one cell as attributes, from uniform numbers within 1 / sqrt(hidden)."""

    _cell: _Cell

    def _draw(
        self, sets: list[tuple[str, int]], hidden: int, bias: bool, dtype: Any, seed: int | None,
        device: Any,
    ) -> None:  # fmt: skip
        """`sets` has the end of the names and the inputs of each set."""
        rows, bound = GATES[self._cell] * hidden, 1.0 / math.sqrt(hidden)
        of_each = seeds(seed, len(sets) * len(_NAMES))
        for i, (end, inputs) in enumerate(sets):
            shapes: tuple[tuple[int, ...], ...] = ((rows, inputs), (rows, hidden), (rows,), (rows,))
            for j, (name, shape) in enumerate(zip(_NAMES, shapes, strict=True)):
                drawn = None
                if bias or j < 2:
                    drawn = settings.require_float(
                        init.uniform(
                            shape, -bound, bound, dtype=dtype, device=device,
                            seed=of_each[i * len(_NAMES) + j],
                        )
                    )  # fmt: skip
                setattr(self, name + end, drawn)

    def _set(self, end: str) -> list[Any]:
        return [getattr(self, name + end) for name in _NAMES]


class _RecurrentNetwork(_Weights):
    """What LSTM and GRU have in common."""

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
        proj_size: int = 0, *, dtype: Any = None, seed: int | None = None, device: Any = None,
    ) -> None:  # fmt: skip
        if proj_size != 0:
            raise InvalidArgument(
                f"{type(self).__name__} has no projections: proj_size is 0, got {proj_size}"
            )
        self.input_size = settings.extent(input_size, "input_size")
        self.hidden_size = settings.extent(hidden_size, "hidden_size")
        self.num_layers = settings.extent(num_layers, "num_layers")
        self.bias = settings.flag(bias, "bias")
        self.batch_first = settings.flag(batch_first, "batch_first")
        self.dropout = settings.chance(dropout, "dropout")
        self.bidirectional = settings.flag(bidirectional, "bidirectional")
        ways = ("", "_reverse") if bidirectional else ("",)
        self._ends = [f"_l{layer}{way}" for layer in range(num_layers) for way in ways]
        inputs = [input_size] * len(ways) + [len(ways) * hidden_size] * (
            len(self._ends) - len(ways)
        )
        of_weights, of_masks = seeds(seed, 2)
        self._draw(
            list(zip(self._ends, inputs, strict=True)), hidden_size, bias, dtype, of_weights, device
        )
        has_masks = self.dropout > 0 and num_layers > 1
        self._masks = MaskSequence(of_masks, device) if has_masks else None

    def weights(self) -> list[Array]:
        """The parameters in the order in which kw.nn.lstm() and gru() take them.

        >>> [each.shape for each in kw.nn.LSTM(3, 2).weights()]
        [(8, 3), (8, 2), (8,), (8,)]
        """
        arrays = [array for end in self._ends for array in self._set(end)]
        return [array for array in arrays if array is not None]

    def __call__(self, x: Any, hx: Any = None) -> Any:
        options: dict[str, Any] = {
            "num_layers": self.num_layers, "bidirectional": self.bidirectional,
            "batch_first": self.batch_first,
        }  # fmt: skip
        if self.training and self._masks is not None:
            masks = self._masks
            counter = masks.take(self.num_layers - 1, x.device)
            options |= {"dropout": self.dropout, "seed": masks.seed, "counter": counter}
        return getattr(kernwright.nn, self._cell)(x, hx, self.weights(), **options)

    def extra_repr(self) -> str:
        """The extents and settings that repr() shows."""
        text = f"{self.input_size}, {self.hidden_size}"
        plain = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0,
                 "bidirectional": False}  # fmt: skip
        for name, usual in plain.items():
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        return text


class LSTM(_RecurrentNetwork):
    """(output, (h_n, c_n)) of a sequence, as torch's: x (length, batch, input_size), or with
    `batch_first` (batch, length, input_size), or without a batch; see kw.nn.lstm().

    The weights are weight_ih_l0 (4 hidden_size, input_size), weight_hh_l0 (4 hidden_size,
    hidden_size), bias_ih_l0 and bias_hh_l0, with the gates i, f, g, o; those of deeper layers have
    l1, ..., those of the second direction the end "_reverse". `dropout` is the chance of Dropout
    between layers while `training`. There are no projections: another `proj_size` than 0 raises
    InvalidArgument.

    >>> net = kw.nn.LSTM(3, 4, bidirectional=True, seed=1)
    >>> output, (h_n, c_n) = net(kw.ones((5, 1, 3)))
    >>> output.shape, h_n.shape, c_n.shape
    ((5, 1, 8), (2, 1, 4), (2, 1, 4))
    """

    _cell = "lstm"


class GRU(_RecurrentNetwork):
    """(output, h_n) of a sequence, as torch's: the arguments and names of LSTM, with the gates
    r, z, n; see kw.nn.gru().

    >>> output, h_n = kw.nn.GRU(3, 4, num_layers=2, seed=1)(kw.ones((5, 1, 3)))
    >>> output.shape, h_n.shape
    ((5, 1, 4), (2, 1, 4))
    """

    _cell = "gru"


class _RecurrentCell(_Weights):
    """What LSTMCell and GRUCell have in common."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, *, dtype: Any = None,
        seed: int | None = None, device: Any = None,
    ) -> None:  # fmt: skip
        self.input_size = settings.extent(input_size, "input_size")
        self.hidden_size = settings.extent(hidden_size, "hidden_size")
        self.bias = settings.flag(bias, "bias")
        self._draw([("", input_size)], hidden_size, bias, dtype, seed, device)

    def __call__(self, x: Any, hx: Any = None) -> Any:
        return getattr(kernwright.nn, f"{self._cell}_cell")(x, hx, *self._set(""))

    def extra_repr(self) -> str:
        """The extents and settings that repr() shows."""
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


class LSTMCell(_RecurrentCell):
    """(h, c) after one step, as torch's: x (batch, input_size) or (input_size,), hx (h, c) or None.

    The weights are weight_ih, weight_hh, bias_ih and bias_hh; see kw.nn.lstm_cell().

    >>> h, c = kw.nn.LSTMCell(3, 4, seed=1)(kw.ones((2, 3)))
    >>> h.shape, c.shape
    ((2, 4), (2, 4))
    """

    _cell = "lstm"


class GRUCell(_RecurrentCell):
    """h after one step, as torch's: the weights and arguments of LSTMCell, with h alone as state.

    >>> kw.nn.GRUCell(3, 4, seed=1)(kw.ones((2, 3))).shape
    (2, 4)
    """

    _cell = "gru"
