"""The gradients of lstm() and gru()."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import kernwright
from kernwright._array.operands import device_array
from kernwright._core import Array, _recurrent_backward, empty
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.nn import _gates
from kernwright.nn._recurrent._arguments import (
    Masks,
    Network,
    States,
    network_of,
    states_of,
    without_batch,
)
from kernwright.nn._recurrent._networks import LayerReserve, run

__all__ = ["gru_backward", "lstm_backward"]


class RecurrentGradients(NamedTuple):
    """Gradients in the order of the arguments: of x, of hx, and of each of the weights."""

    x: Array
    hx: Any
    weights: list[Array]


def lstm_backward(
    grad: Any,
    x: Any,
    hx: Any,
    weights: Sequence[Any],
    *,
    num_layers: int = 1,
    bidirectional: bool = False,
    batch_first: bool = False,
    dropout: float = 0.0,
    seed: int | None = None,
    offset: int = 0,
    counter: Array | None = None,
    reserve: Any = None,
) -> RecurrentGradients:
    """The gradients of `x`, of `hx` (h_0 and c_0, also where they were None) and of the weights.

    `grad` is the gradient of the output, or (that, (of h_n, of c_n)), where None is zero. The other
    arguments are those of lstm(); without its `reserve` the network is computed again first. All
    gradients have the dtype of `x`; sums are float32 (float64 for float64) in a fixed order, so
    that a call gives the same bits each time.

    >>> x, weights = kw.ones((5, 1, 3)), [kw.ones((8, 3)), kw.ones((8, 2))]
    >>> output, _, reserve = kw.nn.lstm(x, None, weights, reserve=True)
    >>> grads = kw.nn.lstm_backward(kw.ones(output.shape), x, None, weights, reserve=reserve)
    >>> grads.x.shape, grads.hx[0].shape, [each.shape for each in grads.weights]
    ((5, 1, 3), (1, 1, 2), [(8, 3), (8, 2)])
    """
    masks = Masks(dropout, seed, offset, counter)
    network = network_of("lstm", x, hx, weights, num_layers, bidirectional, batch_first, masks)
    return _backward(network, grad, reserve)


def gru_backward(
    grad: Any,
    x: Any,
    hx: Any,
    weights: Sequence[Any],
    *,
    num_layers: int = 1,
    bidirectional: bool = False,
    batch_first: bool = False,
    dropout: float = 0.0,
    seed: int | None = None,
    offset: int = 0,
    counter: Array | None = None,
    reserve: Any = None,
) -> RecurrentGradients:
    """The gradients of gru(): as lstm_backward(), with h alone as the state; `grad` is the gradient
    of the output, or (that, of h_n).

    >>> x, weights = kw.ones((5, 1, 3)), [kw.ones((6, 3)), kw.ones((6, 2))]
    >>> grads = kw.nn.gru_backward(kw.ones((5, 1, 2)), x, None, weights)
    >>> grads.x.shape, grads.hx.shape, [each.shape for each in grads.weights]
    ((5, 1, 3), (1, 1, 2), [(6, 3), (6, 2)])
    """
    masks = Masks(dropout, seed, offset, counter)
    network = network_of("gru", x, hx, weights, num_layers, bidirectional, batch_first, masks)
    return _backward(network, grad, reserve)


def _backward(network: Network, grad: Any, reserve: Any) -> RecurrentGradients:
    of_output, of_states = _gradients_given(network, grad)
    kept = run(network, True)[3] if reserve is None else _require_reserve(network, reserve)
    device, dtype = network.x.device, network.x.dtype
    h_0 = empty(network.states_shape, dtype, device=device)
    c_0 = empty(network.states_shape, dtype, device=device) if network.cell == "lstm" else None
    of_weights: list[list[Array]] = []
    for number in reversed(range(len(network.weights))):
        of_x, made = _layer_backward(
            network, number, of_output, network.states_of(number, of_states),
            network.states_of(number, (h_0, c_0)), kept[number],
        )  # fmt: skip
        of_weights = made + of_weights
        of_output = of_x
        if number > 0 and network.masks.p > 0:
            place = network.masks.of_layer(number - 1)
            of_output = _gates.dropout_backward(of_x, network.masks.p, **place)
    states = [without_batch(network, each) for each in (h_0, c_0) if each is not None]
    return RecurrentGradients(
        without_batch(network, of_x),
        tuple(states) if network.cell == "lstm" else states[0],
        [array for each in of_weights for array in each],
    )


def _gradients_given(network: Network, grad: Any) -> tuple[Array | None, States]:
    """The gradients of the output and of the last states."""
    of_states: States = (None, None)
    if isinstance(grad, (tuple, list)):
        if len(grad) != 2:
            raise ArgumentError(
                f"the gradient of {network.cell}() is that of the output, or a pair with those of "
                f"the states, got {len(grad)} values"
            )
        names = ("the gradient of h_n", "the gradient of c_n")
        of_states = states_of(network, grad[1], names if network.cell == "lstm" else names[:1])
        grad = grad[0]
    if grad is None:
        return None, of_states
    array, x = device_array(grad, "grad"), network.x
    shape = (*x.shape[:2], network.directions * network.hidden)
    wanted = (shape[0], shape[2]) if network.unbatched else shape
    if array.shape != wanted or array.dtype != x.dtype:
        raise InvalidArgument(
            f"the gradient of the output must have the shape {wanted} and be {x.dtype}, got "
            f"{array.shape} of {array.dtype}"
        )
    return array.reshape(shape), of_states


def _require_reserve(network: Network, reserve: Any) -> list[LayerReserve]:
    layers = len(network.weights)
    if not isinstance(reserve, (tuple, list)) or len(reserve) != layers:
        raise ArgumentError(f"reserve is what {network.cell}(..., reserve=True) of {layers} layers "
                            f"gave, got {type(reserve).__name__}")  # fmt: skip
    return list(reserve)


def _layer_backward(
    network: Network, number: int, of_output: Array | None, of_states: States, to_states: States,
    kept: LayerReserve,
) -> tuple[Array, list[list[Array]]]:  # fmt: skip
    """The gradients of a layer's input and of the weights of each direction."""
    layer, hx = network.weights[number], network.states_of(number, network.hx)
    of_gates, of_products = _recurrent_backward(
        network.cell, of_output, of_states, [each[1] for each in layer], kept.saved, kept.cells,
        kept.output, hx, to_states, network.batch_first, None,
    )  # fmt: skip
    of_x: Array | None = None
    of_weights = []
    inputs = _rows(kept.x)
    for way, arrays in enumerate(layer):
        gates, products = _rows(of_gates[way]), _rows(of_products[way])
        before = _rows(_states_before(network, kept.output, hx[0], way))
        made = [gates.T @ inputs, products.T @ before]
        if len(arrays) > 2:
            biases = kernwright.sum(gates, axis=0)
            both = gates is products or of_gates[way] is of_products[way]
            made += [biases, biases.copy() if both else kernwright.sum(products, axis=0)]
        of_weights.append([each.astype(network.x.dtype, copy=False) for each in made])
        part = (gates @ arrays[0]).reshape(kept.x.shape)
        of_x = part if of_x is None else of_x + part
    assert of_x is not None
    return of_x, of_weights


def _states_before(network: Network, output: Array, h_0: Array | None, way: int) -> Array:
    """The hidden state in front of each step of a direction, laid out as the output."""
    hidden = network.hidden
    own = output[..., way * hidden : (way + 1) * hidden]
    axis = 1 if network.batch_first else 0
    length = output.shape[axis]
    shape = (network.batch, hidden)
    first = kernwright.zeros(shape, output.dtype, device=output.device) if h_0 is None else h_0[way]
    first = kernwright.expand_dims(first, axis=axis)
    if length == 0:
        return own
    rest = slice(0, length - 1) if way == 0 else slice(1, length)
    inner = own[:, rest] if network.batch_first else own[rest]
    return kernwright.concat([first, inner] if way == 0 else [inner, first], axis=axis)


def _rows(array: Array) -> Array:
    """(length, batch, n) as rows of n."""
    return array.reshape((math.prod(array.shape[:-1]), array.shape[-1]))
