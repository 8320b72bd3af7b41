"""Graphs of many launches, for kernels that are shorter than the events around a single one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kernwright import _core


class Replay:
    """A graph of one call of each of `runs`, on a stream of its own. What they return lives as long
    as the graph. The first one is called once before, so that its kernels are compiled. For one
    thread."""

    def __init__(self, runs: Sequence[Callable[[], Any]], device: Any = None) -> None:
        self._stream, self._graph = _core.Stream(device=device), _core.Graph(device=device)
        self._count = len(runs)
        runs[0]()
        with self._graph.capture(self._stream):
            self._kept = [run() for run in runs]
        self._first, self._last = _core.Event(device=device), _core.Event(device=device)

    def milliseconds(self) -> float:
        """Of one run, by one replay. Waits for it."""
        self._graph.launch(self._stream)  # keeps the device busy until the rest is queued
        self._first.record(self._stream)
        self._graph.launch(self._stream)
        self._last.record(self._stream)
        self._last.synchronize()
        return float(self._last.elapsed_ms(self._first)) / self._count
