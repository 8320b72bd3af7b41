"""What a session tells its caller: warnings, trials for callables."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from typing import Any

from kernwright._support.warn import warn_caller
from kernwright.tune._sessions.trial import Trial


class TrialObserver:
    """A callable that gets trials alone."""

    def __init__(self, function: Callable[[Trial], Any]) -> None:
        self.trial = function

    def lane(self, kind: str, begins: bool, number: int, seconds: float) -> None:
        pass


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def warn_of_end(
    trials: Sequence[Trial], has_none: bool, reason: str, unsaved: int, why: str
) -> None:
    """The session is over: without a correct trial, or with `unsaved` rows that no disk has."""
    told = []
    if has_none and trials:
        counts = collections.Counter(trial.status for trial in trials)
        statuses = ", ".join(f"{count} {status}" for status, count in counts.most_common())
        first = trials[0].error
        told.append(f"no configuration was correct ({statuses}), the first because: {first}")
    elif has_none and reason != "cancelled":
        told.append("the session tried nothing: its budget ended before the first trial did")
    if unsaved:
        told.append(
            f"the session is over, and {_rows(unsaved)} of it stayed in memory alone, because "
            f"{why}. session.rows has all"
        )
    for text in told:
        warn_caller(text)


def warn_of_unsaved(count: int, why: str) -> None:
    """The disk refuses rows."""
    warn_caller(
        f"the disk refuses rows of the session, {count} so far: they are in memory alone, because "
        f"{why}. They are written with the next one that can be; session.rows has all"
    )
