"""PMTObserver: power and energy by the package pmt, the Power Measurement Toolkit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernwright.errors import InvalidArgument
from kernwright.tune._kernel_tuner.sensors import package
from kernwright.tune.observers import BenchmarkObserver, ContinuousObserver

__all__ = ["PMTObserver"]

_METERS = ("powersensor2", "powersensor3", "nvidia", "likwid", "rapl", "rocm", "xilinx")


class PMTObserver(BenchmarkObserver):
    """Adds METER_energy (Joules) and METER_power (Watts) to each result, for each meter of
    `observable`: a name, a list of names and (name, device) pairs, or a dict of both.

    With `use_continuous_observer` they are measured while launches follow each other for
    `continuous_duration` seconds, for sensors that are slow. ArgumentError when the tuning begins
    and there is no package pmt.
    """

    def __init__(
        self, observable: Any, use_continuous_observer: bool = False, continuous_duration: float = 1
    ) -> None:
        if isinstance(observable, str):
            observable = [observable]
        if not isinstance(observable, Mapping):
            pairs = [item if isinstance(item, tuple) else (item, None) for item in observable]
            observable = dict(pairs)
        unknown = [name for name in observable if name not in _METERS]
        if unknown:
            raise InvalidArgument(f"the meter {unknown[0]!r} is none of {', '.join(_METERS)}")
        self.observable: Mapping[str, Any] = observable
        self._begins: list[Any] = []
        self._results: dict[str, list[float]] = {}
        if use_continuous_observer:
            self.continuous_observer = _Continuous("pmt", [], self, continuous_duration)

    def register_device(self, dev: Any) -> None:
        super().register_device(dev)
        self._pmt = package("pmt", "PMTObserver", "pmt")
        self._meters = {n: self._pmt.create(n, device) for n, device in self.observable.items()}

    def after_start(self) -> None:
        self._begins = [meter.read() for meter in self._meters.values()]

    def after_finish(self) -> None:
        for name, meter, begin in zip(
            self._meters, self._meters.values(), self._begins, strict=True
        ):
            end = meter.read()
            self._results.setdefault(f"{name}_energy", []).append(self._pmt.joules(begin, end))
            self._results.setdefault(f"{name}_power", []).append(self._pmt.watts(begin, end))

    def get_results(self) -> dict[str, float]:
        found = {name: float(np.mean(values)) for name, values in self._results.items()}
        self._results = {}
        return found


class _Continuous(ContinuousObserver):
    """The parent's own readings around all launches; the energy is that of one."""

    def before_start(self) -> None:
        pass

    def after_start(self) -> None:
        self.parent.after_start()

    def during(self) -> None:
        pass

    def after_finish(self) -> None:
        self.parent.after_finish()

    def get_results(self) -> dict[str, Any]:
        found: dict[str, float] = self.parent.get_results()
        for name in self.parent.observable:
            found[f"{name}_energy"] = found[f"{name}_power"] * self.results["time"] / 1e3
        return found
