"""RegisterObserver: how many registers a thread of the kernel has."""

from __future__ import annotations

from kernwright.tune.observers import BenchmarkObserver

__all__ = ["RegisterObserver"]


class RegisterObserver(BenchmarkObserver):
    """Adds "num_regs" to each result. On the simulated device, which has no registers, it is 0."""

    def get_results(self) -> dict[str, int]:
        return {"num_regs": self.dev.num_regs}
