"""CPU execution of GPU kernels: ours, a C++ loop, Warp's CPU device, Triton's interpreter and
numba's simulator, in turn.

Warp compiles its own Python dialect for the CPU, without warps, barriers or checks. Triton's
interpreter computes whole tiles with NumPy. numba's simulator runs one Python thread per CUDA
thread, so it gets a small part of the work, and its time is scaled to the whole as well. All
figures are processor time over all threads, because other programs hardly change it.
"""

from __future__ import annotations

import os

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
os.environ["TRITON_INTERPRET"] = "1"
os.environ.setdefault("KERNWRIGHT_DEVICE", "sim")
os.environ.setdefault("KERNWRIGHT_SIM_THREADS", "1")

import ctypes
import pathlib
import statistics
import subprocess
import tempfile
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
SLOW_ROUNDS = 1  # for subjects that take seconds
SLOW = ("triton_interpreter", "numba_simulator")
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

LOOPS = r"""
extern "C" void saxpy(float a, const float* x, float* y, int n) {
  for (int i = 0; i < n; ++i) y[i] = a * x[i] + y[i];
}
extern "C" void sgemm(const float* a, const float* b, float* c, int n) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int k = 0; k < n; ++k) sum += a[i * n + k] * b[k * n + j];
      c[i * n + j] = sum;
    }
  }
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


def plain_loop() -> dict[str, Work]:
    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "loops.cpp").write_text(LOOPS)
    command = ["g++", "-O2", "-shared", "-fPIC", "loops.cpp", "-o", "loops.so"]
    subprocess.run(command, cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "loops.so"))
    x, a, b = inputs(COUNT, SIZE)
    y, c = np.zeros(COUNT, np.float32), np.zeros((SIZE, SIZE), np.float32)

    def at(values: np.ndarray) -> ctypes.c_void_p:
        return ctypes.c_void_p(values.ctypes.data)

    return {
        "saxpy_1m": (lambda: library.saxpy(ctypes.c_float(2), at(x), at(y), COUNT), lambda: y),
        "sgemm_tiled_256": (lambda: library.sgemm(at(a), at(b), at(c), SIZE), lambda: c),
    }


class HostArray:
    """The methods of a PyTorch tensor that Triton's interpreter needs, over a NumPy array."""

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.dtype = values, str(values.dtype)

    def data_ptr(self) -> int:
        return int(self.values.ctypes.data)

    def untyped_storage(self) -> HostArray:
        return self

    def cpu(self) -> HostArray:
        return self

    def new_empty(self, *_: Any, **__: Any) -> HostArray:
        return HostArray(self.values)

    def set_(self, storage: HostArray, *_: Any) -> None:
        self.values = storage.values

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple[int, ...]:
        return self.values.shape

    def stride(self) -> tuple[int, ...]:
        return self.values.strides

    def copy_(self, other: HostArray) -> None:
        assert other.data_ptr() == self.data_ptr()


def triton_interpreter() -> dict[str, Work]:
    global tl  # kernels look up names among globals
    import triton
    import triton.language as tl

    @triton.jit
    def saxpy(a, x, y, n, size: tl.constexpr):
        i = tl.program_id(0) * size + tl.arange(0, size)
        inside = i < n
        value = a * tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside)
        tl.store(y + i, value, mask=inside)

    @triton.jit
    def sgemm(a, b, c, n, size: tl.constexpr):
        row = tl.program_id(0) * size + tl.arange(0, size)[:, None]
        col = tl.program_id(1) * size + tl.arange(0, size)[None, :]
        down, across = tl.arange(0, size)[:, None], tl.arange(0, size)[None, :]
        total = tl.zeros((size, size), dtype=tl.float32)
        for t in range(0, n, size):
            left = tl.load(a + row * n + t + across)
            total += tl.dot(left, tl.load(b + (t + down) * n + col))
        tl.store(c + row * n + col, total)

    x, a, b = (HostArray(v) for v in inputs(COUNT, SIZE))
    y = HostArray(np.zeros(COUNT, np.float32))
    c = HostArray(np.zeros((SIZE, SIZE), np.float32))
    tiles = SIZE // 16
    return {
        "saxpy_1m": (lambda: saxpy[(COUNT // 256,)](2.0, x, y, COUNT, size=256), lambda: y.values),
        "sgemm_tiled_256": (
            lambda: sgemm[(tiles, tiles)](a, b, c, SIZE, size=16),
            lambda: c.values,
        ),
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
    global cuda  # kernels look up the simulator's module among globals
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


def relative_error(name: str, calls: int, result: np.ndarray) -> float:
    """Largest difference from NumPy in double after `calls` calls."""
    small = result.size in (SMALL_COUNT, SMALL_SIZE**2)
    x, a, b = inputs(SMALL_COUNT, SMALL_SIZE) if small else inputs(COUNT, SIZE)
    if name == "saxpy_1m":
        expected = 2.0 * calls * x.astype(np.float64)
    else:
        expected = a.astype(np.float64) @ b.astype(np.float64)
    return float(np.abs(result - expected).max())


def measure(name: str, work: str, call: Callable[[], Any], read: Callable[[], np.ndarray]) -> Any:
    rounds = SLOW_ROUNDS if name in SLOW else ROUNDS
    times = []
    call()
    for _ in range(rounds):
        start = time.process_time()
        call()
        times.append((time.process_time() - start) * 1e3)
    row = {"min_ms": round(min(times), 3), "median_ms": round(statistics.median(times), 3)}
    row["largest_difference"] = relative_error(work, rounds + 1, read())
    row["whole_ms"] = row["min_ms"]
    if name == "numba_simulator":
        row["part_of_the_work"] = 1 / SMALL_PART[work]
        row["whole_ms"] = round(row["min_ms"] * SMALL_PART[work], 1)
    return row


def main() -> None:
    options = harness.arguments(__doc__ or "", "sim_peers")
    subjects: dict[str, dict[str, Work]] = {}
    missing: dict[str, str] = {}
    makers = {
        "kernwright": ours,
        "plain_loop": plain_loop,
        "warp_cpu": warp,
        "triton_interpreter": triton_interpreter,
        "numba_simulator": numba_simulator,
    }
    for name, make in makers.items():
        try:
            subjects[name] = make()
        except ImportError as error:
            missing[name] = str(error)
    document: dict[str, Any] = {"subject": "sim_peers", "machine": harness.machine()}
    if missing:
        document["missing"] = missing
    for work in ("saxpy_1m", "sgemm_tiled_256"):
        rows = {name: measure(name, work, *works[work]) for name, works in subjects.items()}
        for row in rows.values():
            row["times_kernwright"] = round(row["whole_ms"] / rows["kernwright"]["whole_ms"], 2)
        document[work] = rows
    harness.write(options.output, document)


if __name__ == "__main__":
    main()
