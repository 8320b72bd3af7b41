"""What somebody else measured, as a session takes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.tune._sessions.trial import STATUSES, Trial


def told_row(trial: Any, outcome: Any, error: str) -> dict[str, Any]:
    """The row of a trial that was asked for: `outcome` is a time in milliseconds, a sequence of
    them, or a status."""
    if not isinstance(trial, Trial):
        raise ArgumentError(f"tell(trial, outcome) wants a Trial, got {type(trial).__name__}")
    row: dict[str, Any] = {"number": trial.number, "status": "correct", "error": error}
    if isinstance(outcome, str):
        if outcome not in STATUSES[1:]:
            raise InvalidArgument(
                f"the outcome {outcome!r} is no status: {', '.join(STATUSES[1:])}"
            )
        row["status"] = outcome
        row["error"] = error or outcome
        return row
    times = outcome if isinstance(outcome, Iterable) else [outcome]
    try:
        row["times_ms"] = [float(time) for time in times]
    except (TypeError, ValueError):
        raise ArgumentError(f"an outcome is a time, several or a status, got {outcome!r}") from None
    if not row["times_ms"] or not all(0 < time < float("inf") for time in row["times_ms"]):
        raise InvalidArgument(f"times are numbers above 0, got {outcome!r}")
    return row
