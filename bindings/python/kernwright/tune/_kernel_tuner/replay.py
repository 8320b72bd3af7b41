"""Kernel Tuner's simulation mode: a search over results that a file has."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from typing import Any

from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.tune._config import Config
from kernwright.tune._kernel_tuner import results
from kernwright.tune._kernel_tuner.cache import KernelTunerCache
from kernwright.tune._kernel_tuner.results import Environment, Metrics, best_of
from kernwright.tune._kernel_tuner.stepwise import Search
from kernwright.tune._sessions.trial import Trial
from kernwright.tune._space import Space
from kernwright.tune._store import Store
from kernwright.tune._strategy import Strategy

_STEPS = ("compile_time", "verification_time", "benchmark_time")


def _extents(size: Any) -> Any:
    """A problem size without extents of 1 at its end, so that 500 is (500, 1, 1)."""
    if isinstance(size, str) or not isinstance(size, Iterable):
        return [size]
    extents = list(size)
    while len(extents) > 1 and extents[-1] == 1:
        extents.pop()
    return extents


class Replay:
    """The rows of a cache file of Kernel Tuner, or of the trials of a store."""

    def __init__(self, cache: Any, kernel_name: str, problem_size: Any, space: Space) -> None:
        if not cache:
            raise ArgumentError("simulation_mode= wants cache=, the file with the results")
        self._path, self._space = os.fspath(cache), space
        self._rows: dict[Config, Mapping[str, Any]]
        self._trials: dict[Config, Trial] = {}
        self._device = "Simulation"
        if not os.path.isfile(self._path):
            raise InvalidArgument(f"simulation_mode= wants results, and there is no {self._path}")
        with open(self._path, "rb") as file:
            data = file.read()
        self._cache = (
            KernelTunerCache(data, self._path) if KernelTunerCache.is_cache(data) else None
        )
        if self._cache is None:
            self._read_store(kernel_name)
        else:
            self._check(self._cache, kernel_name, problem_size)

    def _check(self, cache: KernelTunerCache, kernel_name: str, problem_size: Any) -> None:
        document = cache.document
        self._device = str(document.get("device_name", self._device))
        names = list(self._space.parameters)
        different = []
        if document.get("kernel_name") not in (None, kernel_name):
            different.append(f"the kernel {document['kernel_name']!r}, not {kernel_name!r}")
        size = document.get("problem_size")
        is_known = size not in (None, "callable") and not callable(problem_size)
        if is_known and _extents(size) != _extents(problem_size):
            different.append(f"the problem size {size!r}, not {problem_size!r}")
        if sorted(cache.keys) != sorted(names):
            different.append(f"the parameters {', '.join(cache.keys)}, not {', '.join(names)}")
        if different:
            raise InvalidArgument(
                f"{self._path} has results of {' and of '.join(different)}: "
                "kw.tune.Table.from_t4(path).replay(strategy) searches it as it is"
            )

    def _read_store(self, kernel_name: str) -> None:
        store = Store(self._path)
        sessions = {
            row["session"] for row in store.rows("session") if row.get("kernel") == kernel_name
        }
        for row in store.rows("trial"):
            if row["session"] in sessions and row.get("config", {}).keys() == set(
                self._space.parameters
            ):
                trial = Trial(row)
                self._trials[trial.config] = trial
        if not self._trials:
            raise InvalidArgument(
                f"{self._path} has no results of {kernel_name}, neither as a cache file of Kernel "
                "Tuner nor as a store"
            )

    def result(self, config: Config, derived: Metrics) -> dict[str, Any]:
        if self._cache is None:
            if config in self._trials:
                trial = self._trials[config]
                return derived.result(trial, trial.row.get("observed"))
        elif config in self._cache.rows:
            found = dict(self._cache.rows[config])
            error = self._cache.error_of(config)
            if error is None:
                self._cache.cost(config, "time")  # refuses what is no time
                derived.derive(found)
            else:
                failure = getattr(results, error)("")
                measured = [name for name in ("time", *derived.objectives) if name not in _STEPS]
                found.update(dict.fromkeys(measured, failure))
                found["__error__"] = failure
            return found
        raise InvalidArgument(
            f"{self._path} has no result for {config!r}: with simulation_mode= the file has all "
            "configurations of the space"
        )

    def run(self, search: Search) -> Environment:
        """Gives each result to the search, in its order. The budget's seconds are those that the
        results took when they were measured."""
        if search.own is not None:
            found: list[dict[str, Any]] = []

            def measure(config: Config) -> dict[str, Any]:
                found.append(self.result(config, search.derived))
                return found[-1]

            rows = search.run(measure).costs()
        else:
            found, rows = self._searched(search)
        return self._environment(found, rows, len(search.derived.objectives))

    def _searched(
        self, search: Search
    ) -> tuple[list[dict[str, Any]], list[tuple[list[Any], dict[str, Any]]]]:
        derived = search.derived
        limits = search.budget or {}
        most = limits.get("evaluations") or math.inf
        seconds = limits.get("seconds") or math.inf
        strategy = Strategy(self._space, search.chosen, seed=search.seed)
        found: list[dict[str, Any]] = []
        rows = []
        while len(found) < most and self._milliseconds(found) < 1000 * seconds:
            asked = strategy.ask(1)
            if not asked:
                break
            row = self.result(asked[0], derived)
            failed = "__error__" in row
            costs = [None if failed else derived.cost(name, row) for name in derived.objectives]
            strategy.tell(asked[0], costs[0])
            if not failed:
                rows.append((costs, row))
            found.append(row)
            search.keep(row)
        return found, rows

    @staticmethod
    def _milliseconds(found: list[dict[str, Any]], steps: Iterable[str] = _STEPS) -> float:
        return sum(float(row.get(step) or 0) for row in found for step in steps)

    def _environment(
        self, found: list[dict[str, Any]], rows: list[tuple[list[Any], dict[str, Any]]],
        objectives: int,
    ) -> Environment:  # fmt: skip
        """Of results; `rows` are the costs of each objective and the result of those that did not
        fail."""
        env = Environment(
            {
                "device_name": self._device,
                "simulation": True,
                "simulated_time": self._milliseconds(found),
                **{f"total_{step}": self._milliseconds(found, [step]) for step in _STEPS},
            }
        )
        if rows:
            env["best_config"] = best_of(rows, objectives)
        return env
