"""Trials of a session's kernel one by one, for a search outside of the session."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kernwright import _core
from kernwright.errors import (
    CompileError,
    DeviceNotFound,
    DriverNotFound,
    Error,
    InvalidArgument,
    LaunchConfigError,
    NvrtcNotFound,
    Timeout,
)
from kernwright.tune._sessions.trial import Trial

if TYPE_CHECKING:
    from kernwright.tune._sessions.session import Session

_ENDS = (DeviceNotFound, DriverNotFound, NvrtcNotFound)  # nothing can be measured
_FIRST_LAUNCHES, _LAST_LAUNCHES = 2, 3  # verified ones before and after the samples


class SingleTrials:
    """Compiles, verifies and measures as the session would, in a worker. The session must not be
    run itself; keep() puts a trial among its own."""

    def __init__(self, session: Session) -> None:
        self._session = session
        settings = {**session._settings, "store": None, "compile_lanes": 1}
        self._core = _core.TuneSession(session.space._core, session._hooks, settings)
        self._began = time.monotonic()

    def __call__(self, config: Mapping[str, Any]) -> Trial:
        """Failures are data, but for those that end a session."""
        index = self._session.space.index(config)
        row: dict[str, Any] = {
            "kind": "trial",
            "number": len(self._session._trials),
            "config": dict(config),
            "status": "correct",
            "error": "",
            "times_ms": [],
            **dict.fromkeys(("median_ms", "interval_ms", "score")),
            "metrics": {},
            "started_s": time.monotonic() - self._began,
        }
        stage = _Stage(row)
        try:
            self._run(index, row, stage)
        except _ENDS:
            raise
        except Error as error:
            row["error"] = str(error)
            row["status"] = stage.status(error)
        finally:
            self._core.lane.forget(index)
        if row["status"] != "correct":
            row.update(times_ms=[], median_ms=None, score=None, metrics={})
        row["ended_s"] = time.monotonic() - self._began
        return Trial(row)

    def keep(self, trial: Trial, score: float | None, metrics: Mapping[str, float]) -> None:
        """With another score and further metrics."""
        row = {**trial.row, "metrics": {**trial.metrics, **metrics}, "score": score,
               "number": len(self._session._trials)}  # fmt: skip
        self._session._keep(Trial(row))

    def _run(self, index: int, row: dict[str, Any], stage: _Stage) -> None:
        lane, settings = self._core.lane, self._session._settings
        seconds = settings["run_timeout"]
        with stage("compile"):
            used = lane.load(index, settings["compile_timeout"] + seconds)
        row["resources"] = dict(
            zip(("registers", "shared_bytes", "local_bytes"), used, strict=True)
        )
        with stage("verify"):
            wrong = lane.verify(index, _FIRST_LAUNCHES, seconds)
        if wrong is None:
            with stage("measure"):
                times, cost, metrics = lane.sample(index, settings["samples"], seconds)
            row.update(times_ms=times, metrics=metrics)
            row["median_ms"] = statistics.median(times) if times else None
            row["score"] = row["median_ms"] if cost is None else cost
            with stage("verify"):
                wrong = lane.verify(index, _LAST_LAUNCHES, seconds)
        if wrong is not None:
            row.update(status="correctness", error=wrong)


class _Stage:
    """Adds the seconds of each stage to a row, and tells what an error in it means."""

    def __init__(self, row: dict[str, Any]) -> None:
        self._row, self._name, self._since = row, "compile", 0.0

    def __call__(self, name: str) -> _Stage:
        self._name = name
        return self

    def __enter__(self) -> None:
        self._since = time.perf_counter()

    def __exit__(self, *error: object) -> None:
        key = f"{self._name}_s"
        self._row[key] = self._row.get(key, 0.0) + time.perf_counter() - self._since

    def status(self, error: Error) -> str:
        if isinstance(error, Timeout):
            return "timeout"
        if isinstance(error, CompileError):
            return "compile"
        is_of_plan = self._name == "compile" and isinstance(error, InvalidArgument)
        return "constraints" if is_of_plan or isinstance(error, LaunchConfigError) else "runtime"
