"""Record: the rows of a store about one session, ready to be shown."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Row: TypeAlias = Mapping[str, Any]
_LARGEST = 1e150  # squares and differences of such numbers are finite


def number(value: Any) -> float | None:
    """A finite number for pictures, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if abs(found) < _LARGEST else None


def numbers(value: Any) -> tuple[float, ...]:
    """The finite numbers of a list; nothing of anything else."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return ()
    return tuple(found for found in map(number, value) if found is not None)


def table(value: Any) -> dict[str, Any]:
    """A JSON object with its names as text; empty for anything else."""
    return {str(key): item for key, item in value.items()} if isinstance(value, Mapping) else {}


def text(value: Any) -> str:
    """A value in one line; a list's items after each other."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {text(item)}" for key, item in value.items())
    if isinstance(value, Sequence):
        return ", ".join(map(text, value))
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else str(value)


@dataclasses.dataclass(frozen=True)
class TrialRow:
    """One trial; what its row does not say is None or empty. `value` is minimised."""

    number: int
    config: dict[str, Any]
    status: str
    error: str
    value: float | None
    times: tuple[float, ...]
    interval: tuple[float, ...]
    metrics: dict[str, float]
    compile_s: float
    measure_s: float
    verify_s: float
    compile_span: tuple[float, float] | None
    ended_s: float | None
    code: str
    resources: dict[str, Any]

    @property
    def correct(self) -> bool:
        return self.status == "correct"

    @property
    def device_span(self) -> tuple[float, float] | None:
        """When the trial had the device, in seconds of the session."""
        spent = self.measure_s + self.verify_s
        if self.ended_s is None or spent <= 0:
            return None
        return max(self.ended_s - spent, 0.0), self.ended_s

    def later(self, seconds: float, number: int) -> TrialRow:
        """The same trial in a session with a start so many seconds sooner."""
        span, ended = self.compile_span, self.ended_s
        return dataclasses.replace(
            self,
            number=number,
            compile_span=None if span is None else (span[0] + seconds, span[1] + seconds),
            ended_s=None if ended is None else ended + seconds,
        )

    @classmethod
    def of(cls, row: Row, place: int) -> TrialRow:
        status = text(row.get("status")) or "correct"
        value = number(row.get("score"))
        if value is None:
            value = number(row.get("median_ms"))
        interval = numbers(row.get("interval_ms"))
        begin, end = number(row.get("compile_started_s")), number(row.get("compile_ended_s"))
        whole = number(row.get("number"))
        metrics = {k: number(v) for k, v in table(row.get("metrics")).items()}
        return cls(
            number=place if whole is None else int(whole),
            config=table(row.get("config")),
            status=status,
            error=text(row.get("error")),
            value=value if status == "correct" else None,
            times=numbers(row.get("times_ms")),
            interval=interval if len(interval) == 2 and interval[0] <= interval[1] else (),
            metrics={key: value for key, value in metrics.items() if value is not None},
            compile_s=number(row.get("compile_s")) or 0.0,
            measure_s=number(row.get("measure_s")) or 0.0,
            verify_s=number(row.get("verify_s")) or 0.0,
            compile_span=(begin, end)
            if begin is not None and end is not None and end >= begin
            else None,
            ended_s=number(row.get("ended_s")),
            code=text(row.get("code")),
            resources=table(row.get("resources")),
        )


@dataclasses.dataclass(frozen=True)
class Record:
    """A session, its trials in the order of their ends, and its result where it has one.
    `sessions`: how many were joined, each of which went on with what the former left."""

    session: dict[str, Any]
    trials: tuple[TrialRow, ...]
    result: dict[str, Any]
    store: str | None = None
    sessions: int = 1

    @property
    def kernel(self) -> str:
        return text(self.session.get("kernel") or self.result.get("kernel")) or "kernel"

    @property
    def device(self) -> str:
        device = self.session.get("device") or self.result.get("device")
        return text(table(device).get("name") if isinstance(device, Mapping) else device)

    @property
    def objective(self) -> str:
        return text(self.session.get("objective")) or "time"

    @property
    def is_counted(self) -> bool:
        """Whether a device without a clock counted instructions and transactions."""
        device = table(self.session.get("device"))
        counted = bool(device.get("is_simulated")) or self.session.get("policy") == "counts"
        return self.objective == "time" and counted

    @property
    def in_ms(self) -> bool:
        """Whether values are times in milliseconds; else they are counts, or a metric."""
        return self.objective == "time" and not self.is_counted

    @property
    def parameters(self) -> list[str]:
        return list(dict.fromkeys(name for trial in self.trials for name in trial.config))

    @functools.cached_property
    def correct(self) -> list[TrialRow]:
        """Those with a value, the best first."""
        good = [trial for trial in self.trials if trial.value is not None]
        return sorted(good, key=lambda trial: (trial.value or 0.0, trial.number))

    @functools.cached_property
    def best(self) -> TrialRow | None:
        """The winner named by the result, else the trial of the smallest value."""
        named = self.result.get("config") or self.result.get("best")
        wanted = table(table(named).get("config") or named)
        for trial in self.correct:
            if wanted and trial.config == wanted:
                return trial
        return self.correct[0] if self.correct else None

    @functools.cached_property
    def default(self) -> TrialRow | None:
        wanted = table(self.session.get("default"))
        same = (trial for trial in self.correct if trial.config == wanted)
        return next(same, None) if wanted else None

    @property
    def default_value(self) -> float | None:
        if self.default is not None:
            return self.default.value
        return number(self.result.get("default_ms"))

    @functools.cached_property
    def ties(self) -> list[TrialRow]:
        """The trials as good as the winner within noise, without the winner itself."""
        named = self.result.get("ties")
        if not isinstance(named, Sequence) or isinstance(named, str):
            return []
        wanted = [table(table(tie).get("config") or tie) for tie in named]
        return [t for t in self.correct if t is not self.best and t.config in wanted]

    @property
    def seconds(self) -> float | None:
        ends = [trial.ended_s for trial in self.trials if trial.ended_s is not None]
        return number(self.result.get("seconds")) or (max(ends) if ends else None)
