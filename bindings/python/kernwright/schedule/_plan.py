"""Tasks on an imagined machine: block counts and measured times, in simulated time."""

from __future__ import annotations

import heapq
import math
import operator
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from kernwright.errors import ArgumentError, InvalidArgument

CLASSES = ("guaranteed", "burstable", "best_effort")
MOST_TASKS = 1_000_000
MOST_ROUNDS = 10_000_000


class Planned(NamedTuple):
    """Work for plan(): `kernels` are (blocks, microseconds of a block), one after the other. The
    task comes at `begin` microseconds, and again every `period` until `times` have come.

    >>> decode = kw.schedule.Planned("decode", [(132, 20.0)] * 4, begin=100.0, period=5000.0)
    >>> decode.qos
    'guaranteed'
    """

    name: str
    kernels: Sequence[tuple[int, float]]
    qos: str = "guaranteed"
    begin: float = 0.0
    period: float = 0.0
    times: int = 1


class PlannedTask(NamedTuple):
    """One task of a plan; times are microseconds from the beginning of the plan.

    >>> kw.schedule.plan([kw.schedule.Planned("a", [(10, 5.0)])], sms=4).tasks[0].end
    15.0
    """

    name: str
    qos: str
    submitted: float
    begin: float
    end: float


class Plan:
    """The result of plan(). `tasks` are in the order of their ends, `busy` is the busy part of the
    machine, `end` the end of the last task in microseconds.

    >>> found = kw.schedule.plan([kw.schedule.Planned("a", [(10, 5.0)])], sms=4)
    >>> found.end, found.latency("a")
    (15.0, 15.0)
    """

    def __init__(self, tasks: list[PlannedTask], busy: float, end: float) -> None:
        self.tasks, self.busy, self.end = tasks, busy, end

    def latency(self, name: str, quantile: float = 0.5) -> float:
        """Microseconds from the submission to the end, of the tasks of a name: the smallest time
        for the part `quantile` of them. Raises InvalidArgument for an unknown name."""
        times = sorted(each.end - each.submitted for each in self.tasks if each.name == name)
        if not times or not 0 <= quantile <= 1:
            raise InvalidArgument(f"latency({name!r}, {quantile}): no such tasks, or quantile")
        return times[max(math.ceil(quantile * len(times)) - 1, 0)]

    def rate(self, name: str) -> float:
        """Tasks of a name in a second of the plan."""
        return sum(each.name == name for each in self.tasks) / self.end * 1e6 if self.end else 0.0

    def __repr__(self) -> str:
        return f"<Plan: {len(self.tasks)} tasks in {self.end:g} us, {100 * self.busy:.1f} % busy>"


class _Running:
    """A task with a kernel on the machine."""

    def __init__(self, task: Planned, submitted: float) -> None:
        self.task, self.submitted, self.begin = task, submitted, -1.0
        self.rank = CLASSES.index(task.qos)
        self.next = 0  # kernel
        self.pending = self.running = 0  # blocks
        self.block_us = 0.0

    def launch(self) -> None:
        self.pending, self.block_us = self.task.kernels[self.next]
        self.next += 1


def plan(work: Iterable[Planned], *, sms: int, resident: int = 1, policy: str = "default") -> Plan:
    """Runs `work` in simulated time on a machine with `sms` multiprocessors, each with `resident`
    blocks at once. So times of one machine tell about a larger one.

    Blocks that run are not stopped. A free place goes to the most urgent class with blocks left,
    and within a class to whoever came first. With `policy` "default" and "strict" no kernel of best
    effort begins while a guaranteed task is there (with "strict" also a burstable one). "fifo" has
    no classes: all kernels go in the order of their launches. Memory, copies and the host take no
    time. Raises InvalidArgument for numbers without sense and for plans of more than ten million
    groups of blocks that begin together, ArgumentError for other values.

    >>> decode = kw.schedule.Planned("decode", [(64, 10.0)], begin=5.0)
    >>> train = kw.schedule.Planned("train", [(1320, 50.0)], qos="best_effort")
    >>> kw.schedule.plan([decode, train], sms=132).latency("decode")
    55.0
    >>> kw.schedule.plan([decode, train], sms=264).end
    260.0
    """
    places = _count("sms", sms) * _count("resident", resident)
    if policy not in ("default", "strict", "fifo"):
        raise InvalidArgument(f'policy="default", "strict" or "fifo", got {policy!r}')
    return _Machine(places, policy).run(_arrivals(work, places))


def _count(name: str, value: Any) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name}= is an int, got {type(value).__name__}") from None
    if number < 1:
        raise InvalidArgument(f"{name}={number}: at least 1")
    return number


def _arrivals(work: Iterable[Planned], places: int) -> list[_Running]:
    made: list[_Running] = []
    rounds = 0
    for given in work:
        if not isinstance(given, Planned):
            raise ArgumentError(f"plan() takes kw.schedule.Planned, got {type(given).__name__}")
        task = _checked(given)
        rounds += task.times * sum(-(-blocks // places) for blocks, _ in task.kernels)
        if rounds > MOST_ROUNDS:
            raise InvalidArgument(
                f"{task.name}: more than {MOST_ROUNDS} rounds of blocks with {places} at once; "
                "give fewer and longer blocks"
            )
        made += [_Running(task, task.begin + i * task.period) for i in range(task.times)]
    return sorted(made, key=lambda each: each.submitted)


def _checked(task: Planned) -> Planned:
    """The task with plain numbers."""
    if task.qos not in CLASSES:
        raise InvalidArgument(f"{task.name}: qos={task.qos!r} is none of {', '.join(CLASSES)}")
    try:
        # 0.0 + value refuses texts, which float() takes.
        kernels = [(operator.index(blocks), float(0.0 + us)) for blocks, us in task.kernels]
        times = operator.index(task.times)
        begin, period = float(0.0 + task.begin), float(0.0 + task.period)
    except (TypeError, ValueError, OverflowError):
        kernels, times, begin, period = [], 0, 0.0, 0.0
    moments = 0 <= begin < math.inf and 0 <= period < math.inf
    are_kernels = all(blocks >= 1 and 0 < us < math.inf for blocks, us in kernels)
    if not kernels or not are_kernels or not moments or not 1 <= times <= MOST_TASKS:
        raise InvalidArgument(
            f"{task}: kernels are pairs of blocks (an int, at least 1) and a time above 0, "
            "begin and period are numbers of at least 0, times is an int, from 1 to "
            f"{MOST_TASKS}"
        )
    return task._replace(kernels=kernels, begin=begin, period=period, times=times)


class _Machine:
    def __init__(self, places: int, policy: str) -> None:
        self.places = self.free = places
        self.policy = policy
        self.now = self.used = 0.0
        self.lanes: list[deque[_Running]] = [deque(), deque(), deque()]  # with blocks to start
        self.live = [0, 0, 0]
        self.held: deque[_Running] = deque()  # best effort in front of its next kernel
        self.ends: list[tuple[float, int, int, _Running]] = []
        self.done: list[PlannedTask] = []
        self.turn = 0

    def run(self, tasks: list[_Running]) -> Plan:
        coming = deque(tasks)
        while coming or self.ends:
            times = [self.ends[0][0]] if self.ends else []
            times += [coming[0].submitted] if coming else []
            self.now = min(times)
            while coming and coming[0].submitted <= self.now:
                task = coming.popleft()
                self.live[task.rank] += 1
                self.enter(task)
            while self.ends and self.ends[0][0] <= self.now:
                self.end_blocks()
            self.release()
            self.start_blocks()
        total = self.now * self.places
        return Plan(self.done, self.used / total if total else 0.0, self.now)

    def enter(self, task: _Running) -> None:
        """In front of the launch of a kernel."""
        if task.rank == 2 and self.is_held():
            self.held.append(task)
            return
        task.launch()
        self.lanes[0 if self.policy == "fifo" else task.rank].append(task)

    def is_held(self) -> bool:
        if self.policy == "fifo":
            return False
        return self.live[0] > 0 or (self.policy == "strict" and self.live[1] > 0)

    def release(self) -> None:
        while self.held and not self.is_held():
            self.enter(self.held.popleft())

    def start_blocks(self) -> None:
        for lane in self.lanes:
            while lane and self.free:
                task = lane[0]
                if task.begin < 0:
                    task.begin = self.now
                if self.turn == MOST_ROUNDS:
                    raise InvalidArgument(
                        f"{task.task.name}: the blocks end at more than {MOST_ROUNDS} different "
                        "times; give fewer and longer blocks"
                    )
                count = min(self.free, task.pending)
                task.pending -= count
                task.running += count
                self.free -= count
                self.turn += 1
                heapq.heappush(self.ends, (self.now + task.block_us, self.turn, count, task))
                if task.pending == 0:
                    lane.popleft()

    def end_blocks(self) -> None:
        _, _, count, task = heapq.heappop(self.ends)
        self.free += count
        self.used += count * task.block_us
        task.running -= count
        if task.running or task.pending:
            return
        if task.next < len(task.task.kernels):
            self.enter(task)
        else:
            self.live[task.rank] -= 1
            name, qos = task.task.name, task.task.qos
            self.done.append(PlannedTask(name, qos, task.submitted, task.begin, self.now))
