"""The adapters of a model: which one is in which slot, and what engines know of it."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import kernwright as kw
from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.llm._adapters.files import Adapter, AdapterWeights, linear_at, read_adapter
from kernwright.llm._adapters.slots import LayerSlots, StepSlots, padded_rank
from kernwright.llm._config import Config
from kernwright.llm._errors import ModelError
from kernwright.llm._step import Step
from kernwright.llm._waits import wait_for_device
from kernwright.nn import Module

__all__ = ["AdapterPlace", "Adapters", "require_limits"]


class AdapterPlace(NamedTuple):
    """Where an adapter is: its slot, and a number that no other one of the model ever has. Pages of
    keys and values are shared within one number."""

    slot: int = -1
    number: int = 0


def require_limits(**limits: int) -> None:
    """Raises ArgumentError and InvalidArgument for numbers of adapters and of ranks without
    sense."""
    for name, value in limits.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise ArgumentError(f"{name} is an int, got {value!r:.60}")
        if not 1 <= value <= 4096:
            raise InvalidArgument(f"{name} is from 1 to 4096, got {value}")


class _Engine(Protocol):
    """What an engine tells and does between two steps."""

    def require_thread(self) -> None: ...
    def uses_adapter(self, slot: int) -> bool: ...
    def drop_graphs(self) -> None: ...


class Adapters:
    """The adapters of a model, `most` at a time, with ranks up to `most_rank`.

    A layer gets slots when the first adapter changes it. They have the highest rank so far; where a
    higher one comes they are made anew, and engines record their steps again. read() may be called
    by any thread, put() by the one that calls the model.
    """

    def __init__(
        self, module: Module, config: Config, *, most: int, most_rank: int, device: Any
    ) -> None:  # fmt: skip
        require_limits(max_adapters=most, max_adapter_rank=most_rank)
        self._module, self._config, self._device = module, config, device
        self._most, self._most_rank = most, most_rank
        self._lock = threading.Lock()
        self._loaded: dict[str, tuple[Adapter, AdapterPlace]] = {}
        self._written: set[int] = set()  # slots of adapters, loaded or not any more
        self._last_number = 0
        self._layers: dict[str, LayerSlots] = {}
        self._step = StepSlots()
        self._engines: weakref.WeakSet[Any] = weakref.WeakSet()

    @property
    def loaded(self) -> dict[str, Adapter]:
        """By their names."""
        with self._lock:
            return {name: adapter for name, (adapter, _) in self._loaded.items()}

    @property
    def has_layers(self) -> bool:
        """Whether an adapter has ever changed a layer."""
        return bool(self._layers)

    def join(self, engine: _Engine) -> None:
        """From now on the engine is asked which slots it uses."""
        self._engines.add(engine)

    def place(self, name: str | None) -> AdapterPlace:
        """Where an adapter is; that of None: nowhere. Raises ModelError for an unknown name."""
        if name is None:
            return AdapterPlace()
        with self._lock:
            found = self._loaded.get(name)
            names = ", ".join(self._loaded) or "none"
        if found is None:
            raise ModelError(f"the model has no adapter {name!r:.80}; there are {names}")
        return found[1]

    def read(self, path: Any, name: str | None) -> AdapterWeights:
        """An adapter in the device's memory, checked. Any thread. Raises ModelError, StoreError."""
        if name is not None and (not isinstance(name, str) or not name):
            raise ArgumentError(f"the name of an adapter is a text, got {name!r:.60}")
        with kw.Stream(device=self._device) as stream:
            weights = read_adapter(
                path, name, self._module, self._config, most_rank=self._most_rank,
                device=self._device,
            )  # fmt: skip
            stream.synchronize()
        return weights

    def put(self, weights: AdapterWeights) -> Adapter:
        """Loads an adapter into a slot; it is there when this returns. Raises ModelError for a name
        that is in use, and where all slots are; Error where an engine runs in another thread."""
        adapter = weights.adapter
        for engine in list(self._engines):
            engine.require_thread()
        if adapter.name in self.loaded:
            raise ModelError(f"an adapter {adapter.name!r} is loaded already: unload it first")
        slot = self._free_slot()
        wait_for_device(self._device)
        self._make_layers(weights)
        for path, layer in self._layers.items():
            layer.write(slot, weights.layers.get(path, ()))
        wait_for_device(self._device)
        with self._lock:
            self._last_number += 1
            self._loaded[adapter.name] = adapter, AdapterPlace(slot, self._last_number)
            self._written.add(slot)
        return adapter

    def drop(self, name: str) -> None:
        """Unloads an adapter: new requests do not find it, those that have it end with it, and its
        slot is free when they have. Any thread. Raises ModelError for an unknown name."""
        self.place(name)
        with self._lock:
            self._loaded.pop(name, None)

    @contextlib.contextmanager
    def within(self, step: Step, slots: Array) -> Iterator[None]:
        """Around the call of the model with a step: the slots of its tokens."""
        self._step.set(step, slots)
        try:
            yield
        finally:
            self._step.set(None, None)

    def whole(self, step: Step, name: str | None) -> contextlib.AbstractContextManager[None]:
        """Around a step whose tokens have one adapter."""
        place = self.place(name)
        if name is None:
            return contextlib.nullcontext()
        slots = kw.full(step.tokens.shape, place.slot, "int32", device=self._device)
        return self.within(step, slots)

    def _free_slot(self) -> int:
        """A slot that no adapter has, and no sequence uses any more."""
        with self._lock:
            taken = {place.slot for _, place in self._loaded.values()}
        for slot in range(self._most):
            if slot in taken:
                continue
            used = slot in self._written
            if not (used and any(each.uses_adapter(slot) for each in list(self._engines))):
                return slot
        left = self._most - len(taken)
        raise ModelError(
            f"all {self._most} slots of adapters are in use"
            + (f", {left} by requests of adapters that were unloaded: wait for them" if left else
               ": unload one, or load the model with max_adapters=...")
        )  # fmt: skip

    def _make_layers(self, weights: AdapterWeights) -> None:
        """Slots for all layers of an adapter. All are made before one is put in its place."""
        made: dict[str, LayerSlots] = {}
        for path, parts in weights.layers.items():
            rank = padded_rank(max(each.rank for each in parts))
            before = self._layers.get(path)
            if before is not None and before.rank >= rank:
                continue
            made[path] = LayerSlots(
                linear_at(self._module, path), self._step, slots=self._most, rank=rank,
                dtype=self._dtype, device=self._device,
            )  # fmt: skip
            if before is not None:
                made[path].copy_from(before)
        if not made:
            return
        wait_for_device(self._device)
        for each in list(self._engines):
            each.drop_graphs()
        for path, layer in made.items():
            linear_at(self._module, path).set_adapters(layer)
        self._layers |= made

    @property
    def _dtype(self) -> str:
        """That of products: of the first parameter."""
        return str(next(iter(dict(self._module.named_parameters()).values())).dtype.name)
