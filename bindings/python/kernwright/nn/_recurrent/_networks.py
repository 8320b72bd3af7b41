"""lstm() and gru(): layers over whole sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from kernwright._core import Array, _recurrent, empty
from kernwright.nn import _gates, _linear
from kernwright.nn._recurrent._arguments import Masks, Network, network_of, without_batch

__all__ = ["gru", "lstm"]


class LayerReserve(NamedTuple):
    """What the gradient of a layer takes: its input, its output, and gates of each direction."""

    x: Array
    output: Array
    saved: list[Array]
    cells: list[Array]


def lstm(
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
    reserve: bool = False,
) -> Any:
    """(output, (h_n, c_n)) of a network of LSTM layers, as torch's.

    `x` has the shape (length, batch, inputs), with `batch_first` (batch, length, inputs), without a
    batch (length, inputs). `hx` is (h_0, c_0), each of (num_layers * directions, batch, hidden), or
    None for zeros. `weights` has for each layer, and for each direction of it, weight_ih (4 hidden,
    inputs), weight_hh (4 hidden, hidden), bias_ih and bias_hh (4 hidden,), or the first two alone;
    the gates are i, f, g, o. The inputs of a deeper layer are the directions * hidden outputs of
    the one before. All are float16, bfloat16, float32 or float64 of one dtype. The output has
    directions * hidden numbers of the last layer for each element; those of the second direction,
    which begins at the end, come behind the others.

    `dropout` is the chance of dropout() between layers, which takes `seed`, `offset` (one for each
    layer but the last) and `counter`. With ``reserve=True`` a third value is what lstm_backward()
    takes to compute nothing twice.

    The inputs' products are one product of the whole sequence. Then all steps are one launch if
    weight_hh fits into the shared memory of a cluster of up to 8 multiprocessors (from compute
    capability 9.0 on) or of all of them; else a step is one launch. Sums are float32 (float64 for
    float64) in a fixed order. States and gates are rounded to the dtype of x where they are stored.
    Raises InvalidArgument for shapes and dtypes that do not fit, ArgumentError for what is no
    array.

    >>> weights = [kw.ones((8, 3)), kw.ones((8, 2))]
    >>> output, (h_n, c_n) = kw.nn.lstm(kw.ones((5, 1, 3)), None, weights)
    >>> output.shape, h_n.shape, c_n.shape
    ((5, 1, 2), (1, 1, 2), (1, 1, 2))
    """
    masks = Masks(dropout, seed, offset, counter)
    network = network_of("lstm", x, hx, weights, num_layers, bidirectional, batch_first, masks)
    output, h_n, c_n, kept = run(network, reserve)
    states = tuple(without_batch(network, each) for each in (h_n, c_n) if each is not None)
    result = (without_batch(network, output), states)
    return (*result, kept) if reserve else result


def gru(
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
    reserve: bool = False,
) -> Any:
    """(output, h_n) of a network of GRU layers, as torch's.

    As lstm(), with h_0 alone as `hx`, and three gates r, z, n: weight_ih (3 hidden, inputs),
    weight_hh (3 hidden, hidden), bias_ih and bias_hh (3 hidden,). n is tanh(W_in x + b_in +
    r * (W_hn h + b_hn)), h is (1 - z) n + z h.

    >>> weights = [kw.ones((6, 3)), kw.ones((6, 2))]
    >>> output, h_n = kw.nn.gru(kw.ones((5, 1, 3)), None, weights)
    >>> output.shape, h_n.shape
    ((5, 1, 2), (1, 1, 2))
    """
    masks = Masks(dropout, seed, offset, counter)
    network = network_of("gru", x, hx, weights, num_layers, bidirectional, batch_first, masks)
    output, h_n, _, kept = run(network, reserve)
    result = (without_batch(network, output), without_batch(network, h_n))
    return (*result, kept) if reserve else result


def run(network: Network, keep: bool) -> tuple[Array, Array, Array | None, list[LayerReserve]]:
    """output, h_n, c_n and, with `keep`, the reserve of each layer."""
    x, masks = network.x, network.masks
    h_n = empty(network.states_shape, x.dtype, device=x.device)
    c_n = empty(network.states_shape, x.dtype, device=x.device) if network.cell == "lstm" else None
    kept = []
    for number, layer in enumerate(network.weights):
        if number > 0 and masks.p > 0:
            x = _gates.dropout(x, masks.p, **masks.of_layer(number - 1))
        gates = [_linear.linear(x, each[0], each[2] if len(each) > 2 else None) for each in layer]
        output, saved, cells = _recurrent(
            network.cell,
            gates,
            [each[1] for each in layer],
            [each[3] for each in layer if len(each) > 2],
            network.states_of(number, network.hx),
            network.states_of(number, (h_n, c_n)),
            network.batch_first,
            keep,
            None,
        )
        if keep:
            kept.append(LayerReserve(x, output, saved, cells))
        x = output
    return x, h_n, c_n, kept
