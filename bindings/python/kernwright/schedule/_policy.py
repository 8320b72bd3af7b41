"""What a policy written in Python sees."""

from __future__ import annotations

from typing import NamedTuple

from kernwright import _core


class Candidate(NamedTuple):
    """A task that could begin: the first in line of its class and account. Times are seconds on the
    scheduler's clock; `used` is its account's part of the device's last second, `progress` device
    time divided by the share.

    >>> class Shortest:
    ...     def choose(self, candidates, load):
    ...         return min(candidates, key=lambda task: task.used)
    >>> scheduler = kw.schedule.Scheduler(policy=Shortest())
    >>> scheduler.submit(kw.ones, 3).result().shape
    (3,)
    """

    id: int
    name: str
    model: str
    qos: str
    priority: int
    deadline: float | None
    submitted: float
    share: float
    used: float
    progress: float


class Load(NamedTuple):
    """The moment of a choice: `waiting` and `running` are numbers of tasks by class.

    >>> kw.schedule.Load(0.5, {"guaranteed": 1}, {"guaranteed": 0}).waiting["guaranteed"]
    1
    """

    now: float
    waiting: dict[str, int]
    running: dict[str, int]


def policies() -> list[str]:
    """The names of the policies.

    >>> kw.schedule.policies()
    ['default', 'strict', 'weighted', 'deadline']
    """
    return _core._policy_names()
