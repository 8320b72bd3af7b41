"""Observers around launches of a configuration in this process."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from kernwright import _core
from kernwright._array.creation import asarray
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.tune._config import Config
from kernwright.tune._kernel_tuner.run_kernel import fill_constants, module_of
from kernwright.tune._kernel_tuner.source import KernelTunerLaunch, KernelTunerSource
from kernwright.tune._kernel_tuner.step_store import identities

CLOCKS = ("nvml_pwr_limit", "nvml_gr_clock", "nvml_mem_clock")  # parameters that observers set
_EVENTS = ("register_device", "register_configuration", "before_start", "after_start", "during",
           "after_finish")  # fmt: skip


def made_observers(given: Any, device: Any, lang: str | None) -> list[Any]:
    """Observers, and the results of callables that make one of what Kernel Tuner tells them."""
    if isinstance(given, (str, Mapping)) or not hasattr(given or (), "__iter__"):
        raise ArgumentError(f"observers= is a list of observers, got {type(given).__name__}")
    facts = {"device": device, "platform": 0, "compiler": None, "lang": lang or "CUDA"}
    return [_made(observer, facts) for observer in given or ()]


def _made(observer: Any, facts: Mapping[str, Any]) -> Any:
    if isinstance(observer, type) or (callable(observer) and not _is_observer(observer)):
        observer = observer(facts)
    if not _is_observer(observer):
        raise ArgumentError(
            f"observers= has a {type(observer).__name__}: an observer has get_results() and "
            f"{', '.join(_EVENTS)}"
        )
    return observer


def _is_observer(value: Any) -> bool:
    return all(callable(getattr(value, name, None)) for name in (*_EVENTS, "get_results"))


def _is_kind(observer: Any, name: str) -> bool:
    """Whether it is one of that base class, here or in Kernel Tuner itself."""
    return any(base.__name__ == name for base in type(observer).__mro__)


def looks_at_outputs(observer: Any) -> bool:
    """Then the answer is compared by observers alone."""
    return hasattr(observer, "process_output")


class ObservedDevice:
    """What observers know of the device."""

    units: Mapping[str, str] = {"time": "ms"}
    num_regs = 0

    def __init__(self, device: _core.Device, iterations: int, observers: Sequence[Any]) -> None:
        self.device, self.iterations, self.observers = device, iterations, list(observers)
        self.name = device.name
        self.max_threads = device.attributes["max_threads_per_block"]
        self.env = {
            "device_name": device.name,
            "uuid": device.uuid,
            "pci_bus_id": device.pci_bus_id,
            "compute_capability": "{}{}".format(*device.compute_capability),
        }

    def synchronize(self) -> None:
        self.device.synchronize()

    def kernel_finished(self) -> bool:
        return _core.current_stream().done


class Observation:
    """The observers of a tuning. Nothing else measures while they do."""

    def __init__(
        self, observers: Sequence[Any], device: _core.Device, iterations: int, answer: Any,
        arguments: int,
    ) -> None:  # fmt: skip
        """`arguments`: their number."""
        self.observers, self.answer = list(observers), answer
        self._dev = ObservedDevice(device, iterations, observers)
        self._prologue = [o for o in observers if _is_kind(o, "PrologueObserver")]
        self._usual = [o for o in observers if o not in self._prologue]
        self._outputs = list(filter(looks_at_outputs, observers))
        if self._outputs and answer is not None and len(answer) != arguments:
            raise InvalidArgument(
                f"answer= has {len(answer)} values for {arguments} arguments: one for each, None "
                "where none is looked at"
            )
        self.identities = identities(self.observers)
        for observer in self.observers:
            observer.register_device(self._dev)

    def configure(self, config: Mapping[str, Any]) -> None:
        """Before the trial of a configuration: sets clocks that are parameters of it."""
        for observer in self.observers:
            if hasattr(getattr(observer, "nvml", None), "configure"):
                observer.nvml.configure(config)

    def close(self) -> None:
        for observer in self.observers:
            if hasattr(getattr(observer, "nvml", None), "restore_defaults"):
                observer.nvml.restore_defaults()

    def __call__(self, launches: Launches, config: Config, milliseconds: float | None,
                 registers: int) -> dict[str, Any]:  # fmt: skip
        """What the observers found out about a configuration that is right."""
        if not self.observers:
            return {}
        self._dev.num_regs = registers
        launch, memory = launches.of(config)
        if self._outputs:
            launch()
            outputs = self._contents(memory)
            for observer in self._outputs:
                observer.process_output(self.answer, outputs)
        for observer in self.observers:
            observer.register_configuration(dict(config))
        found: dict[str, Any] = {}
        for observer in self._prologue:
            self._dev.synchronize()
            observer.before_start()
            launch()
            self._dev.synchronize()
            observer.after_finish()
            found.update(_results(observer))
        began = time.perf_counter()
        for _ in range(self._dev.iterations):
            self._observe(self._usual, launch, 1)
        taken = 1000 * (time.perf_counter() - began) / self._dev.iterations
        for observer in self._usual:
            found.update(_results(observer))
        found.update(self._continuous(launch, milliseconds or taken, found))
        return {name: _plain(value) for name, value in found.items()}

    def _contents(self, memory: Sequence[Any]) -> list[Any]:
        wanted = self.answer if self.answer is not None else [0] * len(memory)
        return [
            m.numpy() if isinstance(m, _core.Array) and value is not None else None
            for m, value in zip(memory, wanted, strict=True)
        ]

    def _observe(self, observers: Sequence[Any], launch: Callable[[], None], count: int) -> None:
        for observer in observers:
            observer.before_start()
        self._dev.synchronize()
        for _ in range(count):
            launch()
        for observer in observers:
            observer.after_start()
        while not self._dev.kernel_finished():
            for observer in observers:
                observer.during()
            time.sleep(1e-6)
        self._dev.synchronize()
        for observer in observers:
            observer.after_finish()

    def _continuous(
        self, launch: Callable[[], None], milliseconds: float, found: Mapping[str, Any]
    ) -> dict[str, Any]:
        observers = [o.continuous_observer for o in self.observers
                     if hasattr(o, "continuous_observer")]  # fmt: skip
        if not observers:
            return {}
        seconds = max(float(observer.continuous_duration) for observer in observers)
        for observer in observers:
            observer.results = {**found, "time": milliseconds}
        self._observe(observers, launch, math.ceil(1000 * seconds / milliseconds))
        results: dict[str, Any] = {}
        for observer in observers:
            results.update(_results(observer))
        return results


def _results(observer: Any) -> Mapping[str, Any]:
    found = observer.get_results()
    if not isinstance(found, Mapping):
        raise ArgumentError(
            f"get_results() of {type(observer).__name__} gives a dict, got {type(found).__name__}"
        )
    return found


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value


class Launches:
    """Makes launches of configurations in this process, with memory of their own."""

    def __init__(
        self, source: KernelTunerSource, launch: KernelTunerLaunch, shared: Any, constants: Any
    ) -> None:
        self._source, self._launch = source, launch
        self._shared, self._constants = shared, constants or {}
        self.arguments: Sequence[Any] = ()

    def of(self, config: Config) -> tuple[Callable[[], None], list[Any]]:
        """A function that launches, and its arguments, with their contents before a launch."""
        module, kernel = module_of(self._source, config)
        fill_constants(module, self._constants)
        memory = [asarray(a) if isinstance(a, np.ndarray) and a.ndim else a for a in self.arguments]
        shared = self._shared(dict(config)) if callable(self._shared) else self._shared
        ready = kernel[self._launch.grid(config), self._launch.block(config), None, int(shared)]
        return lambda: ready(*memory), memory
