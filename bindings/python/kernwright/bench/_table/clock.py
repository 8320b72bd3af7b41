"""Times of several subjects with the same work, in turns on one stream of a GPU.

Work that moves 192 MiB and more, some 50 us, is timed run by run. Before each run the same work
runs on other inputs, so L2 holds the remains of such a run. Where the host needs long to queue,
fills keep the device busy before that, and the host's time is no part of a sample. Smaller work is
captured many times into a CUDA graph. Where a run moves a megabyte or more, the inputs together
exceed L2. The time is a replay's, divided by its runs. All subjects of a row are measured the same
way, and a row so in each run of the table.
"""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import kernwright as kw

_LARGE = 192 << 20  # bytes
_REPLAY = 1.0  # milliseconds that a replay takes, about
_FEWEST_RUNS, _MOST_RUNS = 8, 200  # in a graph
_HEADROOM = 3.0  # how much longer the device is busy than the host needs to queue
_BLOCK_BYTES = 1 << 28  # of a fill that keeps the device busy
_MOST_BLOCKS = 64
_WARM_BYTES = 1 << 20  # work on less stays in L2 whatever is done
_FEWEST, _MOST = 7, 200  # rounds


class Subject:
    """A subject: it queues the work: `call(i)` on the inputs number i."""

    def __init__(
        self,
        name: str,
        call: Callable[[int], object],
        captured: Callable[[Callable[[], object]], Callable[[], object]],
        within: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        self.name = name
        self.call = call
        self.captured = captured
        self.within = within
        self.error: str | None = None
        self.policy = ""
        self.batch = 1
        self.blocks = 0
        self.samples: list[float] = []
        self._work: Callable[[], object] = lambda: None

    def use(self, work: Callable[[], object], policy: str, batch: int) -> None:
        self._work, self.policy, self.batch = work, policy, batch

    def queue(self) -> None:
        self._work()


def in_a_line(error: BaseException) -> str:
    first = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {first}"[:200]


def graph_of(run: Callable[[], object], stream: kw.Stream) -> Callable[[], object]:
    """Our own capture."""
    graph = kw.Graph()
    with graph.capture(stream):
        run()
    return lambda: graph.launch(stream)


def copies_wanted(moved: float, l2: int) -> int:
    """How many sets of inputs make each run meet its data in memory."""
    if moved < _WARM_BYTES:
        return 1
    if moved >= 16 * l2:
        return 1
    return max(2, min(64, math.ceil(3 * l2 / moved)))


class Clock:
    def __init__(self, stream: kw.Stream) -> None:
        self.stream = stream
        self._events = kw.Event(), kw.Event()
        self._blocker = kw.empty(_BLOCK_BYTES, "uint8")
        fills = [self._between(lambda: self._blocker._fill(0))[0] for _ in range(3)]
        self._fill_time = max(min(fills), 1e-3)

    def _between(self, work: Callable[[], object]) -> tuple[float, float]:
        """Milliseconds of the device, and of the host to queue it."""
        start, end = self._events
        begin = time.perf_counter()
        start.record(self.stream)
        work()
        end.record(self.stream)
        queued = (time.perf_counter() - begin) * 1e3
        end.synchronize()
        return end.elapsed_ms(start), queued

    def _sample(self, subject: Subject) -> float:
        for _ in range(subject.blocks):
            self._blocker._fill(0)
        subject.queue()
        return self._between(subject.queue)[0] / subject.batch

    def _prepare(self, subject: Subject) -> None:
        """Runs it warm, and finds how many fills hide the time of the host."""
        found = [self._between(subject.queue) for _ in range(3)]
        busy, queued = min(f[0] for f in found), min(f[1] for f in found)
        if busy > _HEADROOM * queued:
            subject.blocks = 0
            return
        wanted = math.ceil(_HEADROOM * queued / self._fill_time)
        subject.blocks = max(1, min(_MOST_BLOCKS, wanted))

    def _estimate(self, subject: Subject) -> float:
        subject.use(lambda: subject.call(0), "cold", 1)
        self._prepare(subject)
        return min(self._sample(subject) for _ in range(3))

    def _choose(self, subject: Subject, large: bool, shortest: float, copies: int) -> None:
        """One run at a time, or many in a graph; queued ones where it cannot be captured."""
        if large:
            count = itertools.cycle(range(copies))
            subject.use(lambda: subject.call(next(count)), "cold", 1)
            return
        runs = min(_MOST_RUNS, max(_FEWEST_RUNS, round(_REPLAY / max(shortest, 1e-3))))
        runs = max(copies, runs // copies * copies)

        def many() -> None:
            for i in range(runs):
                subject.call(i % copies)

        policy = "graph" if copies > 1 else "graph, warm"
        try:
            subject.use(subject.captured(many), policy, runs)
        except Exception as error:
            subject.error = f"not captured: {in_a_line(error)}"
            subject.use(many, "queued", runs)

    def measure(
        self, subjects: Sequence[Subject], moved: float, copies: int, seconds: float
    ) -> list[Subject]:
        """Fills in samples, in turns; those that raise keep none and have an error. Returns the
        ones that were measured. `moved`: bytes of a run; `copies`: sets of inputs."""
        shortest = math.inf
        alive = list(subjects)

        def attempt(step: Callable[[Subject], object]) -> None:
            for subject in list(alive):
                try:
                    with subject.within():
                        step(subject)
                except Exception as error:
                    subject.error = in_a_line(error)
                    subject.samples.clear()
                    alive.remove(subject)

        estimates: dict[str, float] = {}
        attempt(lambda s: estimates.__setitem__(s.name, self._estimate(s)))
        shortest = min(estimates.values(), default=math.inf)
        attempt(lambda s: self._choose(s, moved >= _LARGE, shortest, copies))
        attempt(self._prepare)
        deadline = time.perf_counter() + seconds
        for rounds in range(_MOST + 1):
            if rounds >= _FEWEST and time.perf_counter() >= deadline:
                break
            attempt(lambda s: s.samples.append(self._sample(s)))
            alive.reverse()  # who is first changes
        for subject in alive:
            del subject.samples[0]  # the first of a series is never like the others
        return alive


def interval(samples: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the median, by order statistics."""
    ordered = sorted(samples)
    n = len(ordered)
    reach = 0.98 * math.sqrt(n)
    low = max(0, math.floor(n / 2 - reach))
    high = min(n - 1, math.ceil(n / 2 + reach))
    return ordered[low], ordered[high]


def noise(samples: Sequence[float]) -> float:
    """Standard deviation as a part of the mean."""
    mean = statistics.fmean(samples)
    return statistics.stdev(samples) / mean if len(samples) > 1 and mean > 0 else 0.0


def paired_ratio(samples: Sequence[float], others: Sequence[float]) -> float:
    """The median of others / samples of the same round."""
    return statistics.median(b / a for a, b in zip(samples, others, strict=False) if a > 0)
