"""PanelState: what a live panel shows of a running session, kept up to date event by event."""

from __future__ import annotations

import collections
import dataclasses
import math
import time
from collections.abc import Mapping
from typing import Any

from kernwright._support.words import pairs_text, time_text

_BARS = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
_WIDTH = 40
_LAST_FAILURES = 3


def duration(seconds: float) -> str:
    """4.2 s, 3:05, 1:02:03"""
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"


def sparkline(values: list[float], width: int = _WIDTH) -> str:
    """Values as bars of eighths on a logarithmic scale; the lowest is the lowest bar."""
    if not values:
        return ""
    count = min(width, max(len(values), 1))
    shown = [values[(i + 1) * len(values) // count - 1] for i in range(count)]
    low, high = min(shown), max(shown)
    if low <= 0 or high <= low:
        return _BARS[0] * len(shown)
    scale = (len(_BARS) - 1) / math.log(high / low)
    return "".join(_BARS[round(math.log(value / low) * scale)] for value in shown)


@dataclasses.dataclass
class Lanes:
    """Those of one kind: how many work, and how much of them was used."""

    count: int
    running: dict[int, float] = dataclasses.field(default_factory=dict)  # trial: since
    busy: float = 0.0  # seconds of all that ended

    def event(self, begins: bool, number: int, seconds: float) -> None:
        if begins:
            self.running[number] = seconds
            self.count = max(self.count, len(self.running))
            return
        since = self.running.pop(number, None)
        if since is not None:
            self.busy += max(seconds - since, 0.0)

    def use(self, now: float) -> float:
        """The share of all lanes' time until now in which they worked."""
        worked = self.busy + sum(max(now - since, 0.0) for since in self.running.values())
        return min(worked / (now * self.count), 1.0) if now > 0 and self.count else 0.0


class PanelState:
    """Not thread-safe. `budget` has some of seconds, evaluations, gpu_seconds, target."""

    def __init__(
        self,
        title: str,
        budget: Mapping[str, Any] | None = None,
        compile_lanes: int = 0,
        device_lanes: int = 1,
        clock: Any = time.monotonic,
    ) -> None:
        self.title = title
        self.budget = {k: v for k, v in dict(budget or {}).items() if v is not None}
        self.compile = Lanes(compile_lanes)
        self.device = Lanes(device_lanes)
        self.counts: collections.Counter[str] = collections.Counter()
        self.bests: list[float] = []  # after each trial, from the first correct one on
        self.best: Any = None  # the trial
        self.failures: collections.deque[Any] = collections.deque(maxlen=_LAST_FAILURES)
        self._clock = clock
        self._begin = clock()

    @property
    def seconds(self) -> float:
        return float(self._clock() - self._begin)

    @property
    def trials(self) -> int:
        return sum(self.counts.values())

    def trial(self, trial: Any) -> bool:
        """One has ended. Returns whether it is the best so far."""
        status = str(trial.status)
        self.counts[status] += 1
        value = value_of(trial) if status == "correct" else None
        if status != "correct":
            self.failures.append(trial)
        is_best = value is not None and (not self.bests or value < self.bests[-1])
        if value is not None and is_best:
            self.best = trial
            self.bests.append(value)
        elif self.bests:
            self.bests.append(self.bests[-1])
        return is_best

    def lane(self, kind: str, begins: bool, number: int, seconds: float) -> None:
        (self.compile if kind == "compile" else self.device).event(begins, number, seconds)

    def left(self) -> float | None:
        """Seconds until the budget is used up, at the speed so far; None where nothing says so."""
        now, found = self.seconds, []
        if "seconds" in self.budget:
            found.append(float(self.budget["seconds"]) - now)
        if "evaluations" in self.budget and self.trials:
            rest = float(self.budget["evaluations"]) - self.trials
            found.append(rest * now / self.trials)
        spent = self.device.use(now) * now * self.device.count
        if "gpu_seconds" in self.budget and spent > 0:
            found.append((float(self.budget["gpu_seconds"]) - spent) * now / spent)
        return max(min(found), 0.0) if found else None


def value_of(trial: Any) -> float | None:
    """What is minimised: the score, else the time in milliseconds."""
    for name in ("score", "time"):
        value = getattr(trial, name, None)
        if isinstance(value, (int, float)) and math.isfinite(value):
            return float(value)
    return None


def value_text(trial: Any) -> str:
    """With its unit where it is a time."""
    value = value_of(trial)
    if value is None:
        return "?"
    if value != getattr(trial, "time", None):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.5g}"
    return time_text(value)


def config_text(trial: Any) -> str:
    return pairs_text(trial.config)
