"""CPU execution of CUDA-style kernels: ours, Warp's CPU device and numba's simulator, in turn.

Warp compiles its own Python dialect for the CPU, without warps, barriers or checks; numba's
simulator runs one Python thread per CUDA thread, so it gets a small part of the work and its time
is also given for the whole.
"""

from __future__ import annotations

import os

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
os.environ.setdefault("KERNWRIGHT_DEVICE", "sim")
os.environ.setdefault("KERNWRIGHT_SIM_THREADS", "1")

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import harness

COUNT = 1 << 20
SIZE = 256
SMALL_COUNT = 2048
SMALL_SIZE = 32
ROUNDS = 7
# The simulator's cost is that of its threads, one for each element of the result.
SMALL_PART = {"saxpy_1m": COUNT / SMALL_COUNT, "sgemm_tiled_256": (SIZE / SMALL_SIZE) ** 3}

SOURCE = r"""
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void sgemm(const float* a, const float* b, float* c, int n) {
  __shared__ float ta[16][16], tb[16][16];
  int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int t = 0; t < n; t += 16) {
    ta[threadIdx.y][threadIdx.x] = a[row * n + t + threadIdx.x];
    tb[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + col];
    __syncthreads();
    for (int k = 0; k < 16; ++k) sum += ta[threadIdx.y][k] * tb[k][threadIdx.x];
    __syncthreads();
  }
  c[row * n + col] = sum;
}
"""

Work = tuple[Callable[[], Any], Callable[[], np.ndarray]]


def inputs(count: int, size: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(1)
    x, a, b = (
        rng.uniform(-1, 1, shape).astype(np.float32)
        for shape in (count, (size, size), (size, size))
    )
    return x, a, b


def ours() -> dict[str, Work]:
    import kernwright as kw

    module = kw.module(SOURCE)
    x, a, b = (kw.asarray(v) for v in inputs(COUNT, SIZE))
    y = kw.zeros((COUNT,), dtype="float32")
    c = kw.zeros((SIZE, SIZE), dtype="float32")
    saxpy = module["saxpy"][COUNT // 256, 256]
    sgemm = module["sgemm"][(SIZE // 16, SIZE // 16), (16, 16)]
    return {
        "saxpy_1m": (lambda: saxpy(2.0, x, y, COUNT), y.numpy),
        "sgemm_tiled_256": (lambda: sgemm(a, b, c, SIZE), c.numpy),
    }


def warp() -> dict[str, Work]:
    import warp as wp

    wp.config.quiet = True
    wp.init()

    @wp.kernel
    def saxpy(a: wp.float32, x: wp.array(dtype=wp.float32), y: wp.array(dtype=wp.float32)):
        i = wp.tid()
        y[i] = a * x[i] + y[i]

    @wp.kernel
    def sgemm(
        a: wp.array2d(dtype=wp.float32),
        b: wp.array2d(dtype=wp.float32),
        c: wp.array2d(dtype=wp.float32),
    ):
        i, j = wp.tid()
        total = wp.float32(0.0)
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total

    x, a, b = (wp.array(v, device="cpu") for v in inputs(COUNT, SIZE))
    y = wp.zeros(COUNT, dtype=wp.float32, device="cpu")
    c = wp.zeros((SIZE, SIZE), dtype=wp.float32, device="cpu")
    return {
        "saxpy_1m": (
            lambda: wp.launch(saxpy, dim=COUNT, inputs=[2.0, x, y], device="cpu"),
            y.numpy,
        ),
        "sgemm_tiled_256": (
            lambda: wp.launch(sgemm, dim=(SIZE, SIZE), inputs=[a, b, c], device="cpu"),
            c.numpy,
        ),
    }


def numba_simulator() -> dict[str, Work]:
    global cuda  # the simulator replaces the module where the kernel finds it, among globals
    from numba import cuda, float32

    @cuda.jit
    def saxpy(a, x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = a * x[i] + y[i]

    @cuda.jit
    def sgemm(a, b, c):
        ta = cuda.shared.array((16, 16), float32)
        tb = cuda.shared.array((16, 16), float32)
        col, row = cuda.grid(2)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        total = np.float32(0)
        for t in range(0, a.shape[1], 16):
            ta[ty, tx] = a[row, t + tx]
            tb[ty, tx] = b[t + ty, col]
            cuda.syncthreads()
            for k in range(16):
                total += ta[ty, k] * tb[k, tx]
            cuda.syncthreads()
        c[row, col] = total

    x, a, b = inputs(SMALL_COUNT, SMALL_SIZE)
    y, c = np.zeros(SMALL_COUNT, np.float32), np.zeros((SMALL_SIZE, SMALL_SIZE), np.float32)
    blocks = SMALL_SIZE // 16
    return {
        "saxpy_1m": (lambda: saxpy[SMALL_COUNT // 256, 256](np.float32(2), x, y), lambda: y),
        "sgemm_tiled_256": (lambda: sgemm[(blocks, blocks), (16, 16)](a, b, c), lambda: c),
    }


def error_of(name: str, calls: int, result: np.ndarray) -> float:
    """Largest difference from NumPy in double after `calls` calls."""
    small = result.size in (SMALL_COUNT, SMALL_SIZE**2)
    x, a, b = inputs(SMALL_COUNT, SMALL_SIZE) if small else inputs(COUNT, SIZE)
    if name == "saxpy_1m":
        expected = 2.0 * calls * x.astype(np.float64)
    else:
        expected = a.astype(np.float64) @ b.astype(np.float64)
    return float(np.abs(result - expected).max())


def main() -> None:
    options = harness.arguments(__doc__ or "", "sim_peers")
    subjects: dict[str, dict[str, Work]] = {}
    missing: dict[str, str] = {}
    makers = {"kernwright": ours, "warp_cpu": warp, "numba_simulator": numba_simulator}
    for name, make in makers.items():
        try:
            subjects[name] = make()
        except ImportError as error:
            missing[name] = str(error)
    document: dict[str, Any] = {"subject": "sim_peers", "machine": harness.machine()}
    if missing:
        document["missing"] = missing
    for work in ("saxpy_1m", "sgemm_tiled_256"):
        samples: dict[str, list[float]] = {name: [] for name in subjects}
        for name in subjects:
            subjects[name][work][0]()
        for _ in range(ROUNDS):
            for name, times in samples.items():
                start = time.perf_counter()
                subjects[name][work][0]()
                times.append((time.perf_counter() - start) * 1e3)
        document[work] = {}
        for name, times in samples.items():
            row = {"min_ms": round(min(times), 3), "median_ms": round(statistics.median(times), 3)}
            row["largest_difference"] = error_of(work, ROUNDS + 1, subjects[name][work][1]())
            if name == "numba_simulator":
                row["part_of_the_work"] = 1 / SMALL_PART[work]
                row["whole_ms_extrapolated"] = round(row["min_ms"] * SMALL_PART[work], 1)
            document[work][name] = row
    harness.write(options.output, document)


if __name__ == "__main__":
    main()
