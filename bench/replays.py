"""Graphs of launches over rotating operands, for kernels that take less than some 50 microseconds.

A single launch between two events takes some microseconds longer than its kernel, and an L2 that
was emptied by writing is full of lines that must be written back first. So a graph launches each
subject many times, every time with other operands; together they are much larger than the L2.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from kernwright._measure.replay import Replay as Graph

COLD_BYTES = 400e6  # of all copies of the operands
LAUNCHES = 36  # of a graph, at least where the copies are few
SETTLED = 2  # the first replays are not counted

Run = Callable[[], Any]
Maker = Callable[[], "Replay"]


def copy_count(nbytes: int) -> int:
    """How many copies of operands with so many bytes keep the L2 cold."""
    return max(2, -(-int(COLD_BYTES) // nbytes))


def repeat_launches(runs: Sequence[Run]) -> list[Run]:
    return max(1, LAUNCHES // len(runs)) * list(runs)


class Replay(Protocol):
    def time(self) -> float:
        """Microseconds of a launch, by one replay."""


class Ours:
    """A graph of our launches."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.graph = Graph(repeat_launches(runs))

    def time(self) -> float:
        return self.graph.milliseconds() * 1e3


class Theirs:
    """The same of torch's."""

    def __init__(self, torch: Any, runs: Sequence[Run]) -> None:
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for run in runs[:2]:
                run()
        torch.cuda.synchronize()
        launches = repeat_launches(runs)
        self.count, self.torch = len(launches), torch
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.kept = [run() for run in launches]
        self.first, self.last = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def time(self) -> float:
        self.graph.replay()
        self.first.record()
        self.graph.replay()
        self.last.record()
        self.torch.cuda.synchronize()
        return float(self.first.elapsed_time(self.last)) * 1e3 / self.count


def in_turn(replays: dict[str, Replay], rounds: int = 7) -> dict[str, float]:
    """Microseconds of a launch of each subject: the median of its replays, taken in turns."""
    samples: dict[str, list[float]] = {title: [] for title in replays}
    for _ in range(rounds):
        for title, replay in replays.items():
            samples[title].append(replay.time())
    return {title: statistics.median(taken[SETTLED:]) for title, taken in samples.items()}


def figures(makers: dict[str, Maker], rounds: int = 7) -> dict[str, float | dict[str, str]]:
    """The same of those that can be made; of the others the error."""
    made: dict[str, Replay] = {}
    errors: dict[str, float | dict[str, str]] = {}
    for title, maker in makers.items():
        try:
            made[title] = maker()
        except Exception as error:  # peers may raise anything
            errors[title] = {"error": f"{type(error).__name__}: {error}"[:300]}
    times = in_turn(made, rounds)
    return {title: errors[title] if title in errors else times[title] for title in makers}


def add_rate(taken: float | dict[str, str], nbytes: int) -> dict[str, Any]:
    """A figure for a document; errors stay."""
    if isinstance(taken, dict):
        return taken
    return {"us": round(taken, 2), "TB/s": round(nbytes / taken / 1e6, 3)}
