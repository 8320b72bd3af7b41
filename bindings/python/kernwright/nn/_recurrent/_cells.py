"""One step of an LSTM or a GRU."""

from __future__ import annotations

from typing import Any

import kernwright
from kernwright._array.operands import device_array
from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument

__all__ = ["gru_cell", "lstm_cell"]


def lstm_cell(
    x: Any, hx: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any = None, bias_hh: Any = None
) -> tuple[Array, Array]:
    """(h, c) after one step: x (batch, inputs) or (inputs,), `hx` (h, c) of (batch, hidden) or
    (hidden,), or None for zeros; the weights as in lstm(). One step is two launches.

    >>> h, c = kw.nn.lstm_cell(kw.ones((1, 3)), None, kw.ones((8, 3)), kw.ones((8, 2)))
    >>> h.shape, c.shape
    ((1, 2), (1, 2))
    """
    array, weights = _cell_arguments("lstm_cell", x, [weight_ih, weight_hh, bias_ih, bias_hh])
    if hx is not None and not (isinstance(hx, (tuple, list)) and len(hx) == 2):
        raise ArgumentError("the states of lstm_cell() are (h, c) or None")
    states = None if hx is None else tuple(_as_first_layer(each) for each in hx)
    _, (h, c) = kernwright.nn.lstm(array, states, weights)
    return h.reshape(h.shape[1:]), c.reshape(c.shape[1:])


def gru_cell(
    x: Any, hx: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any = None, bias_hh: Any = None
) -> Array:
    """h after one step: as lstm_cell(), with h alone as the state and the weights of gru().

    >>> kw.nn.gru_cell(kw.ones((1, 3)), None, kw.ones((6, 3)), kw.ones((6, 2))).shape
    (1, 2)
    """
    array, weights = _cell_arguments("gru_cell", x, [weight_ih, weight_hh, bias_ih, bias_hh])
    h: Array = kernwright.nn.gru(array, None if hx is None else _as_first_layer(hx), weights)[1]
    return h.reshape(h.shape[1:])


def _cell_arguments(name: str, x: Any, weights: list[Any]) -> tuple[Array, list[Any]]:
    array = device_array(x, "x")
    if array.ndim not in (1, 2):
        raise InvalidArgument(f"{name}() takes (batch, inputs) or (inputs,), got {array.shape}")
    given = [each for each in weights if each is not None]
    if len(given) not in (2, 4):
        raise ArgumentError(f"{name}() takes bias_ih and bias_hh, or neither")
    return array.reshape((1, *array.shape)), given


def _as_first_layer(state: Any) -> Array:
    array = device_array(state, "a state")
    return array.reshape((1, *array.shape))
