"""What a session tells its caller: warnings, trials for callables."""

from __future__ import annotations

import collections
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from kernwright.tune._sessions.trial import Trial


class TrialObserver:
    """A callable that gets trials alone."""

    def __init__(self, function: Callable[[Trial], Any]) -> None:
        self.trial = function

    def lane(self, kind: str, begins: bool, number: int, seconds: float) -> None:
        pass


def warn_of_failure(trials: Sequence[Trial]) -> None:
    """All of them failed."""
    counts = collections.Counter(trial.status for trial in trials)
    told = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    warnings.warn(
        f"no configuration was correct ({told}), the first because: {trials[0].error}",
        RuntimeWarning,
        stacklevel=6,
    )


def warn_of_unsaved(count: int, why: str) -> None:
    """The disk refused rows."""
    warnings.warn(
        f"{count} rows of the session are in memory alone, because {why}. They are written with "
        "the next one that can be; session.rows has them all",
        RuntimeWarning,
        stacklevel=5,
    )
