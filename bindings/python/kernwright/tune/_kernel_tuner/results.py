"""Results as Kernel Tuner's lists have them: rows of plain data, metrics and objectives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.tune._expression import Expression
from kernwright.tune._sessions.trial import Trial

_HIGHER = {"GFLOP/s", "TFLOP/s", "GB/s", "TB/s", "GFLOPS/W", "GFLOP/J", "TFLOP/J"}


class ErrorConfig(str):
    """Stands in a result where a failed configuration has no time: the name of its class, as
    Kernel Tuner writes it into files. `message` tells what failed.

    >>> error = kw.tune.util.ErrorConfig("no room")
    >>> str(error), error.message
    ('ErrorConfig', 'no room')
    """

    message: str

    def __new__(cls, message: str = "") -> ErrorConfig:
        made = super().__new__(cls, cls.__name__)
        made.message = message
        return made


class InvalidConfig(ErrorConfig):
    """Limits of the device refuse it.

    >>> kw.tune.util.InvalidConfig("2048 threads").message
    '2048 threads'
    """


class CompilationFailedConfig(ErrorConfig):
    """It does not compile.

    >>> kw.tune.util.CompilationFailedConfig("a ; is missing").message
    'a ; is missing'
    """


class RuntimeFailedConfig(ErrorConfig):
    """It crashed, took too long or computed something else.

    >>> kw.tune.util.RuntimeFailedConfig("argument 0[3] is 1, not 2").message
    'argument 0[3] is 1, not 2'
    """


ERRORS = {"compile": CompilationFailedConfig, "constraints": InvalidConfig}


def _cost(trial: Trial) -> float:
    """What stands for the time on the simulated device, whatever the objective is."""
    if "instructions" not in trial.metrics or trial.score is None:
        return float("nan") if trial.score is None else trial.score
    return trial.metrics["instructions"] + trial.metrics["transactions"]


class Metrics:
    """The dict of a result, and what is derived from it."""

    def __init__(self, metrics: Any, objectives: Mapping[str, bool]) -> None:
        self._metrics = dict(metrics or {})
        self.objectives = objectives

    def result(self, trial: Trial, observed: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """`observed`: further values of a correct trial."""
        found: dict[str, Any] = dict(trial.config)
        if trial.status == "correct":
            found.update(observed or {})
            found.update(trial.config)
            found["time"] = _cost(trial) if trial.time is None else trial.time
            found["times"] = list(trial.times)
            if "energy_j" in trial.metrics:
                found["nvml_energy"] = trial.metrics["energy_j"]
            self.derive(found)
        else:
            failure = ERRORS.get(trial.status, RuntimeFailedConfig)(trial.error)
            found.update(dict.fromkeys(("time", *self.objectives), failure))
            found["__error__"] = failure
        found["compile_time"] = 1000 * trial.compile_seconds
        found["verification_time"] = 1000 * trial.verify_seconds
        found["benchmark_time"] = 1000 * trial.measure_seconds
        found["strategy_time"] = found["framework_time"] = 0.0
        return found

    def derive(self, found: dict[str, Any]) -> None:
        """Adds the metrics to what was measured."""
        for name, metric in self._metrics.items():
            values = {k: v for k, v in found.items() if not isinstance(v, list)}
            value = metric(found) if callable(metric) else Expression(metric)(values)
            found[name] = value.item() if isinstance(value, np.generic) else value

    def score(self, name: str, trial: Trial) -> float:
        return self.cost(name, self.result(trial))

    def cost(self, name: str, found: Mapping[str, Any]) -> float:
        """The objective in a result, less being better."""
        if name not in found:
            raise InvalidArgument(
                f"objective {name!r} is neither measured nor in metrics=; there is: "
                f"{', '.join(key for key in found if key != 'times')}"
            )
        return float(found[name]) * (-1 if self.objectives[name] else 1)

    def functions(self) -> list[Any]:
        if list(self.objectives) == ["time"] and not self.objectives["time"]:
            return ["time"]

        def function(name: str) -> Callable[[Trial], float]:
            def of(trial: Trial) -> float:
                return self.score(name, trial)

            of.__name__ = name
            return of

        return [function(name) for name in self.objectives]


def objectives_of(objective: Any, higher: Any, objectives: Any) -> dict[str, bool]:
    if objectives is not None:
        if objective is not None or not isinstance(objectives, Mapping):
            raise ArgumentError(
                "objectives= is a dict of name: higher is better, without objective="
            )
        return {str(name): bool(value) for name, value in objectives.items()}
    names = list(objective) if isinstance(objective, (list, tuple)) else [objective or "time"]
    given = list(higher) if isinstance(higher, (list, tuple)) else [higher] * len(names)
    if len(given) != len(names):
        raise InvalidArgument("objective_higher_is_better= has another length than objective=")
    found = {}
    for name, is_higher in zip(names, given, strict=True):
        if is_higher is None and name not in _HIGHER and not name.startswith(("time", "energy")):
            raise InvalidArgument(
                f"objective={name!r} wants objective_higher_is_better=True or False"
            )
        found[name] = name in _HIGHER if is_higher is None else bool(is_higher)
    return found


def best_of(rows: list[tuple[list[Any], dict[str, Any]]], objectives: int) -> Any:
    """Of pairs of costs and a result: the cheapest result, or the Pareto front of several
    objectives; None of none."""
    if not rows:
        return None
    if objectives == 1:
        return min(rows, key=lambda row: row[0][0])[1]

    def is_beaten(costs: list[Any]) -> bool:
        return any(
            all(a <= b for a, b in zip(other, costs, strict=True)) and other != costs
            for other, _ in rows
        )

    return [found for costs, found in rows if not is_beaten(costs)]


class Environment(dict[str, Any]):
    """What a tuning says besides its results: plain data, as files of JSON take it. `session` is
    the kw.tune.Session, None after a replay."""

    session: Any = None
