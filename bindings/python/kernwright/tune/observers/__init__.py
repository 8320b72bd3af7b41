"""Kernel Tuner's observers: objects that measure something about each configuration.

`tune_kernel(..., observers=[...])` calls them around launches in this process, behind the checks
and the samples of a configuration: for each of the `iterations` before_start(), a launch,
after_start(), during() again and again until the kernel has finished, after_finish(); then
get_results() once, whose dict becomes part of the result. At the begin of a tuning comes
register_device(dev), at that of a configuration register_configuration(params).
"""

# ruff: noqa: B027 - an observer overrides the methods that it wants
from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kernwright._support.typed import publish
from kernwright.errors import InvalidArgument

__all__ = [
    "BenchmarkObserver",
    "ContinuousObserver",
    "IterationObserver",
    "OutputObserver",
    "PrologueObserver",
]


class BenchmarkObserver(ABC):
    """The base of observers. All methods but get_results() may be left out.

    `dev` has name, env (a dict with uuid and pci_bus_id), device (a kw.Device), max_threads and
    num_regs, the registers of a thread of the current configuration.

    >>> class Launches(kw.tune.observers.BenchmarkObserver):
    ...     count = 0
    ...     def after_finish(self):
    ...         self.count += 1
    ...     def get_results(self):
    ...         return {"launches": self.count}
    >>> text = "__global__ void twice(float* x) { x[blockIdx.x * BLOCK + threadIdx.x] *= 2; }"
    >>> [row], _ = kw.tune.tune_kernel(
    ...     "twice", text, 64, [np.ones(64, np.float32)], {"BLOCK": [32]}, quiet=True,
    ...     block_size_names=["BLOCK"], observers=[Launches()], iterations=3)
    >>> row["launches"]
    3
    """

    dev: Any = None

    def register_device(self, dev: Any) -> None:
        """Once, before the first configuration; keeps `dev`."""
        self.dev = dev

    def register_configuration(self, params: Mapping[str, Any]) -> None:
        """Before the launches of a configuration."""

    def before_start(self) -> None:
        """Before each launch."""

    def after_start(self) -> None:
        """Directly behind each launch, which may run still."""

    def during(self) -> None:
        """As often as possible while the kernel runs."""

    def after_finish(self) -> None:
        """After each launch, when the kernel has finished."""

    @abstractmethod
    def get_results(self) -> dict[str, Any]:
        """Values by name, once after the launches of a configuration; most observers average."""


class IterationObserver(BenchmarkObserver):
    """A BenchmarkObserver by another name.

    >>> issubclass(kw.tune.observers.IterationObserver, kw.tune.observers.BenchmarkObserver)
    True
    """


class OutputObserver(BenchmarkObserver):
    """Looks at the output of a configuration. Where there is one, `answer` is compared by the
    observers alone unless there is `verify=`, as in Kernel Tuner.

    >>> class Sum(kw.tune.observers.OutputObserver):
    ...     def process_output(self, answer, output):
    ...         self.total = float(output[0].sum())
    ...     def get_results(self):
    ...         return {"total": self.total}
    """

    @abstractmethod
    def process_output(self, answer: Any, output: Sequence[Any]) -> None:
        """`output` has the contents of each array after one launch: None for values, and for arrays
        that `answer` has None for."""


class PrologueObserver(BenchmarkObserver):
    """Has a launch of its own before the others, between before_start() and after_finish().

    >>> issubclass(kw.tune.observers.PrologueObserver, kw.tune.observers.BenchmarkObserver)
    True
    """


class ContinuousObserver(BenchmarkObserver):
    """Measures power while launches follow each other for `continuous_duration` seconds, behind the
    others. `parent`, the observer that has it as its attribute continuous_observer, gives Watts by
    read_power(); `observables` are NAME_power (the median), NAME_energy (Joules of one launch) and
    power_readings ([seconds, Watts] each).

    >>> meter = kw.tune.observers.ContinuousObserver("card", ["card_power"], parent=None)
    >>> meter.continuous_duration
    1
    """

    def __init__(
        self, name: str, observables: Sequence[str], parent: Any, continuous_duration: float = 1
    ) -> None:
        supported = [f"{name}_power", f"{name}_energy", "power_readings"]
        for observable in observables:
            if observable not in supported:
                raise InvalidArgument(
                    f"the observable {observable!r} is none of {', '.join(supported)}"
                )
        if not continuous_duration > 0:
            raise InvalidArgument(f"continuous_duration is {continuous_duration}, not above 0")
        self.name, self.observables, self.parent = name, list(observables), parent
        self.continuous_duration = continuous_duration
        self.results: Mapping[str, Any] = {}  # of the launches before, with "time" in milliseconds
        self.power = self.energy = 0.0
        self.power_readings: list[list[float]] = []

    def before_start(self) -> None:
        """Before the series of launches."""
        self.parent.before_start()
        self.power = self.energy = 0.0
        self.power_readings = []

    def after_start(self) -> None:
        """Directly behind the series, which may run still."""
        self.parent.after_start()
        self._began = time.perf_counter()

    def during(self) -> None:
        """Reads the power."""
        self.parent.during()
        power = self.parent.read_power()
        moment = time.perf_counter() - self._began
        last = self.power_readings[-1] if self.power_readings else None
        if last is None or last[1] != power or moment - last[0] > 0.01:
            self.power_readings.append([moment, power])

    def after_finish(self) -> None:
        """After the series: the median of the readings."""
        self.parent.after_finish()
        if not self.power_readings:  # the launches were over before a reading
            self.power_readings.append([0.0, self.parent.read_power()])
        self.power = float(np.median([power for _, power in self.power_readings]))
        self.energy = self.power * self.results["time"] / 1e3

    def get_results(self) -> dict[str, Any]:
        """The observables, and the parent's results by names with pwr_ before them."""
        found = {f"pwr_{name}": value for name, value in self.parent.get_results().items()}
        own = {
            f"{self.name}_power": self.power,
            f"{self.name}_energy": self.energy,
            "power_readings": self.power_readings,
        }
        return {**found, **{name: own[name] for name in self.observables}}


publish(globals(), __all__)
