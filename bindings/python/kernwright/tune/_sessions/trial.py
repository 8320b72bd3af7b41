"""Trial and Best: a session's findings about a configuration, and the winner."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from kernwright.errors import ArgumentError
from kernwright.tune._config import Config

STATUSES = ("correct", "correctness", "compile", "runtime", "timeout", "constraints")


class Resources(NamedTuple):
    """Resources of the compiled kernel: registers and local bytes a thread, static shared bytes a
    block."""

    registers: int
    shared_bytes: int
    local_bytes: int


def _pair(values: Any) -> tuple[float, float] | None:
    return None if values is None else (float(values[0]), float(values[1]))


def _row_of(row: Any, what: str, *keys: str) -> Mapping[str, Any]:
    """A row of a store with these keys; sessions make such rows."""
    if not isinstance(row, Mapping):
        raise ArgumentError(f"{what} is made from a row of a store, got {type(row).__name__}")
    missing = [key for key in keys if key not in row]
    if missing:
        raise ArgumentError(f"the row of {what} has no {', '.join(missing)}")
    return row


def _seconds(name: str, doc: str) -> property:
    """A property of a row's seconds."""
    return property(lambda self: float(self._row.get(name) or 0.0), doc=doc)


class Trial:
    """A configuration tried by a session. Immutable.

    `status` is one of T4's words: "correct", "correctness" (an output is wrong), "compile",
    "runtime" (an illegal access, a crash, no memory), "timeout", "constraints" (refused before it
    ran). `error` says why it failed. Times are milliseconds; moments ("started_seconds") are
    seconds since the session began.

    After the example of kw.tune.Session:

    >>> trial = session.trials[0]
    >>> trial.status, trial.config["BLOCK"] in (64, 128, 256)
    ('correct', True)
    """

    __slots__ = {"_row": "", "config": "The value of each parameter, by name."}

    def __init__(self, row: Mapping[str, Any]) -> None:
        self._row = dict(_row_of(row, "Trial", "number", "config", "status"))
        self.config = Config(self._row["config"])

    @property
    def row(self) -> Mapping[str, Any]:
        """The trial as a store has it."""
        return MappingProxyType(self._row)

    @property
    def number(self) -> int:
        """0, 1, ... in the session's order."""
        return int(self._row["number"])

    @property
    def status(self) -> str:
        """ "correct", "correctness", "compile", "runtime", "timeout" or "constraints"."""
        return str(self._row["status"])

    @property
    def error(self) -> str:
        """The failure, in its own words; empty for a correct trial."""
        return str(self._row.get("error") or "")

    @property
    def time(self) -> float | None:
        """The median of `times`, in milliseconds; None where nothing was measured."""
        return self._row.get("median_ms")

    @property
    def times(self) -> tuple[float, ...]:
        """The samples in milliseconds, in the order of measuring."""
        return tuple(self._row.get("times_ms") or ())

    @property
    def interval(self) -> tuple[float, float] | None:
        """The confidence interval (95 %) of the median."""
        return _pair(self._row.get("interval_ms"))

    @property
    def score(self) -> float | None:
        """The value to be minimised; None for a failure."""
        return self._row.get("score")

    @property
    def metrics(self) -> Mapping[str, float]:
        """Its values of the session's objective and metrics, by name."""
        return MappingProxyType(self._row.get("metrics") or {})

    @property
    def code(self) -> str:
        """A hash of the object code; configurations with the same code have the same."""
        return str(self._row.get("code") or "")

    @property
    def resources(self) -> Resources:
        """Registers and local bytes of a thread, static shared bytes of a block."""
        used = self._row.get("resources") or {}
        return Resources(
            *(int(used.get(n, 0)) for n in ("registers", "shared_bytes", "local_bytes"))
        )

    @property
    def same_as(self) -> int | None:
        """The number of the trial with the same code: the result is from there."""
        return self._row.get("same_as")

    @property
    def resumed(self) -> bool:
        """Whether the result is from an earlier session."""
        return bool(self._row.get("resumed"))

    @property
    def extra(self) -> bool:
        """Whether idle lanes tried it while another trial kept the search back for long."""
        return bool(self._row.get("extra"))

    compile_seconds = _seconds("compile_s", "Seconds that the compile took; 0: from a cache.")
    verify_seconds = _seconds("verify_s", "Seconds that checking the results took.")
    measure_seconds = _seconds("measure_s", "Seconds that measuring took.")
    started_seconds = _seconds("started_s", "When it began, in seconds of the session.")
    compile_started_seconds = _seconds("compile_started_s", "When its compile began, likewise.")
    compile_ended_seconds = _seconds("compile_ended_s", "When its compile ended, likewise.")
    ended_seconds = _seconds("ended_s", "When it ended, likewise.")

    def __repr__(self) -> str:
        what = f"{self.status}, {_told(self)}" if self.status == "correct" else self.status
        values = ", ".join(f"{name}={value!r}" for name, value in self.config.items())
        return f"<Trial {self.number}: {values}: {what}>"

    def _repr_html_(self) -> str:
        from kernwright.tune._sessions.display import trial_html

        return trial_html(self)


class Best:
    """The winner of a session. Times are milliseconds; `default` is the median of the default
    configuration, or its score without a clock. `reason`: why the session ended.

    `ties` are all configurations that cannot be told from it, itself among them; `noise` is the
    relative difference that the comparison could have missed. `kernel` is the kernel with the
    winner's defines, compiled already.

    After the example of kw.tune.Session:

    >>> best.config == session.best.config, best.config in best.ties
    (True, True)
    >>> best.kernel[8, best.config["BLOCK"]](x, y, x.size)
    """

    def __init__(self, row: Mapping[str, Any], make_kernel: Any) -> None:
        keys = (
            "config",
            "median_ms",
            "interval_ms",
            "score",
            "default_ms",
            "default_score",
            "reason",
            "ties",
            "noise",
        )
        self.config = Config(_row_of(row, "Best", *keys)["config"])
        self.median: float | None = row["median_ms"]
        self.interval = _pair(row["interval_ms"])
        self.score: float | None = row["score"]
        default = row["default_ms"] if row["default_ms"] is not None else row["default_score"]
        self.default: float | None = default
        self.reason = str(row["reason"])
        self.ties = tuple(Config(config) for config in row["ties"])
        self.noise = float(row["noise"] or 0.0)
        self._make_kernel = make_kernel

    @property
    def time(self) -> float | None:
        """`median`, by its name in trials."""
        return self.median

    @property
    def kernel(self) -> Any:
        """The kernel with the winner's defines, compiled already."""
        return self._make_kernel(self.config)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.config.items())
        return f"<Best: {values}: {_told(self)}>"

    def _repr_html_(self) -> str:
        from kernwright.tune._sessions.display import best_html

        return best_html(self)


def _told(of: Trial | Best) -> str:
    if of.time is not None:
        return f"{of.time:.6g} ms"
    return "no time" if of.score is None else f"score {of.score:.6g}"
