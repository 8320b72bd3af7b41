"""The arguments of recurrent networks: checked, and told apart by layers and directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from kernwright._array.operands import device_array
from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument

GATES = {"lstm": 4, "gru": 3}
FLOATS = ("float16", "bfloat16", "float32", "float64")
_DTYPES = frozenset((np.dtype("f2"), np.dtype(ml_dtypes.bfloat16), np.dtype("f4"), np.dtype("f8")))
_NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
States = tuple[Array | None, Array | None]


class Masks(NamedTuple):
    """What dropout between layers takes: its chance, and the place of the first mask."""

    p: float
    seed: int | None
    offset: int
    counter: Array | None

    def of_layer(self, layer: int) -> dict[str, Any]:
        """The arguments of dropout() behind a layer."""
        return {"seed": self.seed, "offset": self.offset + layer, "counter": self.counter}


@dataclass
class Network:
    """A checked call. `x` is (length, batch, inputs), or (batch, length, inputs)."""

    cell: str
    x: Array
    hx: States  # h_0 and c_0 of (layers * directions, batch, hidden)
    weights: list[list[list[Array]]]  # of each layer and direction
    batch_first: bool
    unbatched: bool
    masks: Masks
    directions: int
    hidden: int = 0  # numbers of a state
    batch: int = 0  # sequences

    def states_of(self, layer: int, states: States) -> States:
        """A layer's part of h and c."""
        if len(self.weights) == 1:
            return states
        part = slice(layer * self.directions, (layer + 1) * self.directions)
        h, c = states
        return (None if h is None else h[part]), (None if c is None else c[part])

    @property
    def states_shape(self) -> tuple[int, int, int]:
        """That of h_0, h_n and their kin."""
        return (len(self.weights) * self.directions, self.batch, self.hidden)


def network_of(
    cell: str, x: Any, hx: Any, weights: Any, num_layers: int, bidirectional: bool,
    batch_first: bool, masks: Masks,
) -> Network:  # fmt: skip
    """The call of a network with these arguments; raises for what does not fit."""
    array = device_array(x, "x")
    if array.ndim not in (2, 3) or array.dtype not in _DTYPES:
        raise InvalidArgument(
            f"{cell}() takes x of (length, batch, inputs) or (length, inputs), of "
            f"{', '.join(FLOATS)}, got {array.shape} of {array.dtype}"
        )
    unbatched = array.ndim == 2
    if unbatched:
        array = array.reshape((array.shape[0], 1, array.shape[1]))
    layers = _layers_of(cell, weights, num_layers, 2 if bidirectional else 1)
    made = Network(
        cell, array, (None, None), layers, batch_first and not unbatched, unbatched, masks,
        2 if bidirectional else 1,
    )  # fmt: skip
    made.batch = array.shape[0 if made.batch_first else 1]
    _require_weights(made)
    made.hx = states_of(made, hx, ("h_0", "c_0") if cell == "lstm" else ("h_0",))
    if not 0 <= masks.p <= 1:
        raise InvalidArgument(f"dropout is a chance from 0 to 1, got {masks.p!r:.60}")
    if masks.p > 0 and masks.seed is None and num_layers > 1:
        raise ArgumentError("dropout between layers takes a seed: pass seed=")
    return made


def _layers_of(
    cell: str, weights: Any, num_layers: int, directions: int
) -> list[list[list[Array]]]:
    if isinstance(num_layers, bool) or not isinstance(num_layers, int) or num_layers < 1:
        raise InvalidArgument(f"num_layers is 1 or more, got {num_layers!r:.60}")
    if not isinstance(weights, Sequence):
        raise ArgumentError(f"weights is a list of arrays, got {type(weights).__name__}")
    count, parts = len(weights), num_layers * directions
    each = count // parts
    if each * parts != count or each not in (2, 4):
        wanted = "weight_ih, weight_hh, bias_ih, bias_hh or the first two alone"
        raise InvalidArgument(
            f"{cell}() of {parts} layers and directions takes {wanted} for each, {2 * parts} or "
            f"{4 * parts} arrays, got {count}; projections (proj_size) are not supported"
        )
    arrays = [device_array(value, _NAMES[i % each]) for i, value in enumerate(weights)]
    sets = [arrays[i : i + each] for i in range(0, count, each)]
    return [sets[i : i + directions] for i in range(0, parts, directions)]


def _require_weights(network: Network) -> None:
    x, first = network.x, network.weights[0][0]
    if any(each.ndim != 2 for each in first[:2]):
        found = f"{first[0].shape} and {first[1].shape}"
        raise InvalidArgument(f"weight_ih and weight_hh have two dimensions, got {found}")
    hidden = network.hidden = first[1].shape[1]
    rows, dtype, device = GATES[network.cell] * hidden, x.dtype, x.device
    if first[0].shape[1] != x.shape[-1]:
        raise InvalidArgument(
            f"the last axis of x has {x.shape[-1]} numbers, and {network.cell}() with weight_ih of "
            f"shape {first[0].shape} takes input_size={first[0].shape[1]}"
        )
    if x.dtype != first[0].dtype or device != first[0].device:
        raise InvalidArgument(
            f"x is {dtype} on {device}, and the weights of {network.cell}() are {first[0].dtype} "
            f"on {first[0].device}: convert one of them"
        )
    for number, layer in enumerate(network.weights):
        inputs = x.shape[-1] if number == 0 else network.directions * hidden
        shapes = [(rows, inputs), (rows, hidden), (rows,), (rows,)]
        for way, arrays in enumerate(layer):
            for name, array, shape in zip(_NAMES, arrays, shapes, strict=False):
                if hidden < 1 or array.shape != shape:
                    raise InvalidArgument(
                        f"{_label(name, number, way)} of {network.cell}() must have the shape "
                        f"{shape}, got {array.shape}: x has {x.shape[-1]} inputs, weight_hh "
                        f"{hidden} hidden units and {GATES[network.cell]} gates each"
                    )
                if array.dtype != dtype or array.device != device:
                    raise InvalidArgument(
                        f"{_label(name, number, way)} must be {dtype} on the device of x, got "
                        f"{array.dtype} on {array.device}"
                    )


def _label(name: str, layer: int, way: int) -> str:
    return f"{name}_l{layer}{'_reverse' if way else ''}"


def states_of(network: Network, value: Any, names: tuple[str, ...]) -> States:
    """h and c, of (layers * directions, batch, hidden), or without the batch as x."""
    if value is None:
        return None, None
    parts = (value,) if len(names) == 1 else value
    if not isinstance(parts, (tuple, list)) or len(parts) != len(names):
        raise ArgumentError(f"the states of {network.cell}() are ({', '.join(names)}) or None")
    made: list[Array | None] = [None, None]
    layers, _, hidden = shape = network.states_shape
    for i, (name, part) in enumerate(zip(names, parts, strict=True)):
        if part is None:
            continue
        array = device_array(part, name)
        wanted = (layers, hidden) if network.unbatched else shape
        if array.shape != wanted or array.dtype != network.x.dtype:
            raise InvalidArgument(
                f"{name} of {network.cell}() must have the shape {wanted} and be "
                f"{network.x.dtype}, got {array.shape} of {array.dtype}"
            )
        made[i] = array.reshape(shape) if network.unbatched else array
    return made[0], made[1]


def without_batch(network: Network, array: Array, axis: int = 1) -> Array:
    """The array without the batch's axis where x had none."""
    if not network.unbatched:
        return array
    return array.reshape((*array.shape[:axis], *array.shape[axis + 1 :]))
