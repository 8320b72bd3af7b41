"""Observers of sensors: a package, a device that has sensors, and averages of their readings."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.tune.observers import BenchmarkObserver


def package(name: str, user: str, distribution: str) -> Any:
    """The module of a package that is no requirement of this one."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ArgumentError(
            f"{user} reads sensors by the package {name} ({error}): pip install {distribution}"
        ) from error


def refuse_simulated(user: str, dev: Any, what: str) -> None:
    """InvalidArgument for a simulated device."""
    device = getattr(dev, "device", None)
    if getattr(device, "is_simulated", False):
        raise InvalidArgument(
            f"{user} observes {what}, and {dev.name} has no sensor: run it on a GPU, or leave the "
            "observer out"
        )


def require_observables(observables: Sequence[str], supported: Sequence[str]) -> list[str]:
    """InvalidArgument for a name that is none of `supported`."""
    for observable in observables:
        if observable not in supported:
            raise InvalidArgument(
                f"the observable {observable!r} is none of {', '.join(supported)}"
            )
    return list(observables)


class SensorObserver(BenchmarkObserver):
    """Averages of `observables` over the launches of a configuration; with `save_all` also the mean
    of each launch, under the name with an s. A subclass sets `readers`, a function for each, when
    it gets its device."""

    readers: Mapping[str, Callable[[], float]]

    def __init__(self, observables: Sequence[str], save_all: bool = False) -> None:
        self.observables, self.save_all = list(observables), save_all
        self._launch: dict[str, list[float]] = {}  # readings during one launch
        self._launches: dict[str, list[float]] = {each: [] for each in observables}

    def before_start(self) -> None:
        self._launch = {each: [] for each in self.observables}

    def after_start(self) -> None:
        self.during()  # a short kernel has one reading

    def during(self) -> None:
        for each in self.observables:
            self._launch[each].append(self.readers[each]())

    def after_finish(self) -> None:
        for each in self.observables:
            self._launches[each].append(float(np.mean(self._launch[each])))

    def get_results(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for each, values in self._launches.items():
            if self.save_all:
                found[f"{each}s"] = values
            found[each] = float(np.mean(values))
            self._launches[each] = []
        return found
