"""Names of Kernel Tuner's module util that scripts and strategies of users take from it."""

from __future__ import annotations

import math
import numbers
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.tune._kernel_tuner.results import (
    CompilationFailedConfig,
    ErrorConfig,
    InvalidConfig,
    RuntimeFailedConfig,
)

__all__ = [
    "CompilationFailedConfig",
    "ErrorConfig",
    "InvalidConfig",
    "RuntimeFailedConfig",
    "StopCriterionReached",
    "TuningBudget",
    "get_best_config",
    "get_config_string",
]


class StopCriterionReached(Exception):
    """The budget is used up. A strategy may catch it, or let it pass: the tuning then ends.

    >>> try:
    ...     raise kw.tune.util.StopCriterionReached("max_fevals (20) reached")
    ... except kw.tune.util.StopCriterionReached as end:
    ...     print(end)
    max_fevals (20) reached
    """


class TuningBudget:
    """Evaluations and seconds of a search, from now on; None: no limit. InvalidArgument for limits
    that are not above 0.

    >>> budget = kw.tune.util.TuningBudget(max_fevals=4)
    >>> budget.add_evaluations(3)
    >>> budget.is_done(), budget.get_fraction_consumed()
    (False, 0.75)
    """

    def __init__(self, time_limit: float | None = None, max_fevals: int | None = None) -> None:
        for name, limit in (("time_limit", time_limit), ("max_fevals", max_fevals)):
            if limit is None:
                continue
            if isinstance(limit, bool) or not isinstance(limit, numbers.Real):
                raise ArgumentError(f"{name} is a number, got {limit!r:.60}")
            if not limit > 0:
                raise InvalidArgument(f"{name} is {limit}, not above 0")
        self.time_limit, self.max_fevals = time_limit, max_fevals
        self.num_fevals = 0
        self._began, self._extra = time.monotonic(), 0.0

    def add_evaluations(self, n: int = 1) -> None:
        """Counts `n` more."""
        self.num_fevals += n

    def add_time(self, seconds: float = 0, milliseconds: float = 0) -> None:
        """Counts time that did not pass, as that of a replay."""
        self._extra += seconds + milliseconds / 1000

    def get_time_spent(self) -> float:
        """Seconds."""
        return time.monotonic() - self._began + self._extra

    def get_evaluations_spent(self) -> int:
        """How many were counted."""
        return self.num_fevals

    def get_evaluations_remaining(self) -> float:
        """How many are left; infinity without a limit."""
        if self.max_fevals is None:
            return math.inf
        return max(self.max_fevals - self.num_fevals, 0)

    def is_done(self) -> bool:
        """Whether it is used up."""
        if self.max_fevals is not None and self.num_fevals >= self.max_fevals:
            return True
        return self.time_limit is not None and self.get_time_spent() > self.time_limit

    def raise_exception_if_done(self) -> None:
        """StopCriterionReached where it is used up."""
        if self.max_fevals is not None and self.num_fevals >= self.max_fevals:
            raise StopCriterionReached(f"max_fevals ({self.max_fevals}) reached")
        if self.is_done():
            raise StopCriterionReached(f"time_limit ({self.time_limit} s) exceeded")

    def get_fraction_consumed(self) -> float:
        """From 0 to 1."""
        parts = [0.0]
        if self.max_fevals is not None:
            parts.append(self.num_fevals / self.max_fevals)
        if self.time_limit is not None:
            parts.append(self.get_time_spent() / self.time_limit)
        return min(1.0, max(parts))


def get_config_string(
    params: Mapping[str, Any],
    keys: Iterable[str] | None = None,
    units: Mapping[str, str] | None = None,
) -> str:
    """A result, or the parts of it by `keys`, on one line.

    >>> kw.tune.util.get_config_string({"block_size_x": 64, "time": 0.25}, units={"time": "ms"})
    'block_size_x=64, time=0.250ms'
    """
    wanted = list(params) if keys is None else list(keys)
    shown = []
    for name, value in params.items():
        if name in wanted:
            unit = "" if isinstance(value, ErrorConfig) else (units or {}).get(name, "")
            shown.append(f"{name}={value:.3f}{unit}" if isinstance(value, float)
                         else f"{name}={value}{unit}")  # fmt: skip
    return ", ".join(shown)


def get_best_config(
    results: Sequence[Mapping[str, Any]], objective: str, objective_higher_is_better: bool = False
) -> Mapping[str, Any]:
    """The best result. InvalidArgument where all failed.

    >>> kw.tune.util.get_best_config([{"x": 1, "time": 0.5}, {"x": 2, "time": 0.25}], "time")["x"]
    2
    """
    correct = [row for row in results if "__error__" not in row]
    if not correct:
        raise InvalidArgument("there is no best result: no configuration was measured")
    choose = max if objective_higher_is_better else min
    return choose(correct, key=lambda row: row[objective])
