"""What a launch costs while others are served: events on a GPU, counts on the simulated device."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from kernwright import _core
from kernwright.errors import Error


class Meter(Protocol):
    """`run` does the work and gives a function that tells its cost, or None while it runs. A
    synchronous meter gives None for an unknown cost."""

    unit: str
    is_synchronous: bool

    def run(self, work: Callable[[], Any]) -> Callable[[], float | None]: ...
    def host(self) -> float:
        """What the host did so far, in the same unit; only differences count."""
        ...


class EventMeter:
    """Milliseconds between two events of the current stream. Nothing waits."""

    unit = "ms"
    is_synchronous = False

    def run(self, work: Callable[[], Any]) -> Callable[[], float | None]:
        start, end = _core.Event(), _core.Event()
        start.record()
        work()
        end.record()
        return lambda: end.elapsed_ms(start) if end.done else None

    def host(self) -> float:
        return time.perf_counter() * 1e3


class CountMeter:
    """Instructions of warps and transactions of memory: the same at each run."""

    unit = "counts"
    is_synchronous = True

    def run(self, work: Callable[[], Any]) -> Callable[[], float | None]:
        from kernwright._sim.line_profile import line_profile

        profile = line_profile()
        try:
            profile.__enter__()
        except Error:  # the user counts himself
            work()
            return lambda: None
        try:
            work()
        finally:
            profile.__exit__(None, None, None)
        total = profile.total
        cost = float(
            total.instructions
            + total.global_sectors
            + total.local_sectors
            + total.shared_wavefronts
            + total.atomic_passes
            + total.uncounted
        )
        return lambda: cost

    def host(self) -> float:
        return 0.0


def meter_for(device: _core.Device) -> Meter:
    return CountMeter() if device.is_simulated else EventMeter()
