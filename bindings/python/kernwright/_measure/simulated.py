"""Times of the simulated device, marked as such wherever they are shown."""

from __future__ import annotations

REMARK = "times of the simulated device: this machine's CPU, not a GPU"


class SimulatedMilliseconds(float):
    """Milliseconds that a CPU took to simulate a GPU: a float whose text says so."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{float(self)!r} (simulated)"
