"""Other parts of the library as tasks of a scheduler."""

from __future__ import annotations

import contextlib
from typing import Any

from kernwright import _core
from kernwright.errors import ArgumentError


def require_scheduler(scheduler: Any) -> Any:
    """The scheduler, or None. Raises ArgumentError for anything else."""
    if scheduler is not None and not isinstance(scheduler, _core.Scheduler):
        raise ArgumentError(
            f"scheduler= is a kw.schedule.Scheduler or None, got {type(scheduler).__name__}"
        )
    return scheduler


def as_task(scheduler: Any, name: str, qos: str = "best_effort") -> Any:
    """A block as a task of the scheduler; without one nothing special."""
    if scheduler is None:
        return contextlib.nullcontext()
    return scheduler.task(qos=qos, name=name)


def is_busy(scheduler: Any) -> bool:
    """Whether tasks in front of best effort wait or run."""
    classes = scheduler.stats()["classes"]
    return any(
        classes[name]["running"] or classes[name]["waiting"] for name in ("guaranteed", "burstable")
    )


def engine_steps(scheduler: Any) -> Any:
    """A block with each launch as a guaranteed task of the scheduler, if there is one."""
    if scheduler is None:
        return contextlib.nullcontext()
    return scheduler._launches(qos="guaranteed", name="engine")
