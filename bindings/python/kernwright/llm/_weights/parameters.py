"""The parameters of a module that are still to be filled, by its layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kernwright._core import Array
from kernwright.llm.models._layers import Experts, Parts, Unread
from kernwright.nn import Module
from kernwright.nn._packed_weight import PackedWeight
from kernwright.nn._scaled_weight import ScaledWeight

__all__ = ["LayerPlace", "Parameters", "Slot", "array_sizes", "arrays_of"]


class Slot(NamedTuple):
    """Where a parameter stands that is still to be filled."""

    holder: Any
    key: Any
    unread: Unread

    @property
    def value(self) -> Any:
        """What stands there now."""
        return _found(self.holder, self.key)

    def put(self, value: Any) -> None:
        """Puts a value there."""
        _put(self.holder, self.key, value)


class LayerPlace(NamedTuple):
    """A module in a list or a module, and its path: "layers.3"."""

    holder: Any
    key: Any
    path: str

    @property
    def module(self) -> Any:
        """What stands there."""
        return _found(self.holder, self.key)

    def put(self, module: Module) -> None:
        """Puts a module there."""
        _put(self.holder, self.key, module)


def _found(holder: Any, key: Any) -> Any:
    """What a module has as an attribute, a list or dict as an item."""
    return getattr(holder, key) if isinstance(holder, Module) else holder[key]


def _put(holder: Any, key: Any, value: Any) -> None:
    if isinstance(holder, Module):
        setattr(holder, key, value)
    else:
        holder[key] = value


class Parameters:
    """The unfilled parameters of a module. One that stands at several places has several paths.

    `first` has a path for each, `layers` the modules of lists, which run one after another,
    `experts` the mixtures.

    >>> from kernwright import llm
    >>> from kernwright.llm._weights.parameters import Parameters
    >>> Parameters(llm.models.Linear(4, 8)).slots["weight"].unread.shape
    (8, 4)
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.layers: list[LayerPlace] = []
        self.experts: list[LayerPlace] = []
        self._layer_of: dict[str, int | None] = {}
        self.slots = dict(self._walk(module, "", None))
        self.first: dict[int, str] = {}
        owners: dict[int, set[int | None]] = {}
        for path, slot in self.slots.items():
            self.first.setdefault(id(slot.unread), path)
            owners.setdefault(id(slot.unread), set()).add(self._layer_of[path])
        # What two layers share belongs to neither.
        self._owner = {
            key: next(iter(found)) if len(found) == 1 else None for key, found in owners.items()
        }

    def _walk(self, value: Any, path: str, layer: int | None) -> Iterator[tuple[str, Slot]]:
        parts: Any = ()
        if isinstance(value, Module):
            parts = [(k, k, v) for k, v in vars(value).items() if not k.startswith("_")]
        elif isinstance(value, dict):
            parts = [(str(k), k, v) for k, v in value.items()]
        elif isinstance(value, list):
            parts = [(str(i), i, v) for i, v in enumerate(value)]
        are_layers = (
            layer is None
            and isinstance(value, list)
            and bool(value)
            and all(isinstance(each, Module) for each in value)
        )
        for name, key, each in parts:
            full = f"{path}.{name}" if path else name
            below = layer
            if are_layers:
                below = len(self.layers)
                self.layers.append(LayerPlace(value, key, full))
            if isinstance(each, Experts):
                self.experts.append(LayerPlace(value, key, full))
            if isinstance(each, Unread):
                self._layer_of[full] = layer
                yield full, Slot(value, key, each)
            else:
                yield from self._walk(each, full, below)

    def paths(self, layer: int | None) -> list[str]:
        """The first paths of the parameters of a layer; None: of those outside of all layers."""
        return [path for key, path in self.first.items() if self._owner[key] == layer]

    def take_experts_as_layers(self) -> None:
        """From now on `layers` are the mixtures, of whose parameters the experts' alone belong to
        them."""
        numbers = {id(each.module): number for number, each in enumerate(self.experts)}
        self.layers = self.experts
        for key, path in self.first.items():
            holder, name, _ = self.slots[path]
            is_weight = name in ("gate_up", "down") and len(self.places(path)) == 1
            self._owner[key] = numbers.get(id(holder)) if is_weight else None

    def places(self, path: str) -> list[Slot]:
        """All places of the parameter at `path`."""
        unread = self.slots[path].unread
        return [slot for slot in self.slots.values() if slot.unread is unread]

    def put(self, path: str, value: Any) -> None:
        """Puts a parameter at all of its places."""
        for slot in self.places(path):
            slot.put(value)


def arrays_of(
    value: Any, change: Callable[[Array], Callable[[Any], Array]]
) -> Callable[[Any], Any]:
    """A function that makes a parameter's value anew from what `change` gave for its arrays: called
    with x, it calls each of these with x. Nothing of it holds an array of `value`."""
    if isinstance(value, Array):
        return change(value)
    if isinstance(value, ScaledWeight):
        codes, scale = change(value.codes), change(value.scale)
        return lambda x: ScaledWeight(codes(x), scale(x))
    if isinstance(value, PackedWeight):
        format, shape, group, tile = value.format, value.shape, value.group, value.tile
        made = [None if each is None else change(each) for each in value.arrays]
        return lambda x: PackedWeight(
            format, shape, tuple(None if each is None else each(x) for each in made),
            group=group, tile=tile,
        )  # fmt: skip
    if isinstance(value, Parts):
        weights = {name: arrays_of(each, change) for name, each in value.weights.items()}
        return lambda x: Parts({name: each(x) for name, each in weights.items()})
    raise TypeError(f"a parameter is no {type(value).__name__}")


def array_sizes(value: Any) -> list[int]:
    """The bytes of each array of a parameter."""
    sizes: list[int] = []

    def count(array: Array) -> Callable[[Any], Array]:
        sizes.append(array.nbytes)
        return lambda _: array

    arrays_of(value, count)
    return sizes
