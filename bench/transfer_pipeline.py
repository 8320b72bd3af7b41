"""Three stages (upload, compute, download) at once and one after the other, through an engine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import harness
import kernwright as kw

# Rounds per element make a kernel as long as a copy: the hardest case for the pipeline, with a
# third of the serial time as the lower limit.
SOURCE = r"""
__global__ void work(float* x, int rounds, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float v = x[i];
        for (int r = 0; r < rounds; r++) v = v * 0.5f + 1.0f;
        x[i] = v;
    }
}"""
PIECES = 16
BUFFERS = 3
REPEATS = 7


class Pipeline:
    """PIECES pieces of `n` floats through `engine`; `pinned` or plain memory on the host."""

    def __init__(self, n: int, pinned: bool) -> None:
        self.n = n
        make = kw.pinned if pinned else np.empty
        self.inputs = [make(n, np.float32) for _ in range(PIECES)]
        self.outputs = [make(n, np.float32) for _ in range(PIECES)]
        for i, piece in enumerate(self.inputs):
            piece[:] = i
        self.buffers = [kw.zeros(n) for _ in range(BUFFERS)]
        self.engine = kw.TransferEngine()
        self.compute = kw.Stream()
        self.grid = 8 * kw.current_device().attributes["multiprocessor_count"]
        self.kernel = kw.kernel(SOURCE)[self.grid, 256, self.compute]
        self.rounds = 0

    def balance(self) -> None:
        """Sets `rounds` so that a kernel takes as long as a copy in one direction."""
        x = self.buffers[0]
        copy = seconds(lambda: self.engine.upload(self.inputs[0], x).wait())
        self.rounds = 1000
        one = seconds(lambda: (self.kernel(x, self.rounds, self.n), self.compute.synchronize()))
        self.rounds = max(1, round(self.rounds * copy / one))

    def overlapped(self) -> None:
        downs: list[kw.Transfer] = []
        for i in range(PIECES):
            x = self.buffers[i % BUFFERS]
            if i >= BUFFERS:
                downs[i - BUFFERS].wait_on(self.engine.upload_stream)
            self.engine.upload(self.inputs[i], x, after=self.engine.upload_stream).wait_on(
                self.compute
            )
            self.kernel(x, self.rounds, self.n)
            downs.append(self.engine.download(x, self.outputs[i], after=self.compute))
        for down in downs:
            down.wait()

    def serial(self) -> None:
        x = self.buffers[0]
        for i in range(PIECES):
            self.engine.upload(self.inputs[i], x).wait()
            self.kernel(x, self.rounds, self.n)
            self.compute.synchronize()
            self.engine.download(x, self.outputs[i]).wait()

    def check(self) -> bool:
        expected = np.arange(PIECES, dtype=np.float32)
        for _ in range(self.rounds):
            expected = expected * np.float32(0.5) + np.float32(1.0)
        return all((out == value).all() for out, value in zip(self.outputs, expected, strict=True))


def seconds(call: Callable[[], Any]) -> float:
    """The median of some runs; the first is dropped."""
    call()
    samples = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        samples.append(time.perf_counter() - start)
    return statistics.median(samples)


def measure(n: int, pinned: bool) -> dict[str, Any]:
    pipeline = Pipeline(n, pinned)
    pipeline.balance()
    serial = seconds(pipeline.serial)
    right_serial = pipeline.check()
    for out in pipeline.outputs:
        out[:] = -1
    overlapped = seconds(pipeline.overlapped)
    moved = 2 * PIECES * n * 4
    return {
        "megabytes per piece": n * 4 / 1e6,
        "serial ms": round(serial * 1e3, 3),
        "pipeline ms": round(overlapped * 1e3, 3),
        "pipeline / serial": round(overlapped / serial, 3),
        "GB/s both ways": round(moved / overlapped / 1e9, 2),
        "correct": right_serial and pipeline.check(),
    }


def main() -> None:
    options = harness.arguments(__doc__.splitlines()[0], "transfer_pipeline")
    n = 1 << 12 if kw.current_device().is_simulated else 1 << 22
    harness.write(
        options.output,
        {"subject": "transfer_pipeline", "machine": harness.machine(), "pieces": PIECES,
         "page-locked": measure(n, True), "pageable": measure(n, False)},
    )  # fmt: skip


if __name__ == "__main__":
    main()
