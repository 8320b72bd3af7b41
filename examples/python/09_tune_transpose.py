"""Tunes tile, rows of a block and padding of a transpose; its report; dispatch by size."""

import pathlib
import tempfile

import numpy as np

import kernwright as kw

SOURCE = r"""
#ifndef TILE  // the kernel as it is, before anything is tuned
#define TILE 16
#define ROWS 4
#define PAD 0
#endif
__global__ void transpose(const float* x, float* y, int n) {
    __shared__ float tile[TILE][TILE + PAD];
    int column = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
    for (int r = 0; r < TILE; r += ROWS)
        if (column < n && row + r < n)
            tile[threadIdx.y + r][threadIdx.x] = x[(row + r) * n + column];
    __syncthreads();
    column = blockIdx.y * TILE + threadIdx.x, row = blockIdx.x * TILE + threadIdx.y;
    for (int r = 0; r < TILE; r += ROWS)
        if (column < n && row + r < n)
            y[(row + r) * n + column] = tile[threadIdx.x][threadIdx.y + r];
}"""

folder = pathlib.Path(tempfile.mkdtemp())
n = 64 if kw.current_device().is_simulated else 4096
x = np.random.default_rng(1).standard_normal((n, n), np.float32)

# The choices, and conditions on valid ones.
space = kw.tune.Space(TILE=[8, 16, 32], ROWS=[2, 4, 8], PAD=[0, 1])
space.require("TILE % ROWS == 0").require_device(threads="TILE * ROWS")

kernel = kw.kernel(SOURCE)
session = kw.tune.Session(
    kernel,
    space,
    (kw.asarray(x), kw.empty((n, n)), n),
    grid=("-(-n // TILE)", "-(-n // TILE)"),
    block=("TILE", "ROWS"),
    verify=lambda x, y, n: (None, x.T, None),  # expected values by argument; None: not compared
    default={"TILE": 16, "ROWS": 4, "PAD": 0},
    store=folder / "tuned.jsonl",
    budget={"seconds": 60},
)
best = session.run()
print(best)
assert all(trial.status == "correct" for trial in session.trials)

session.report(folder / "tune.html")
print(f"{len(session.trials)} trials, report: {folder / 'tune.html'}")

# Now the store gives grid, block and defines, by the size of each call.
fast = kernel.tuned(folder / "tuned.jsonl")
y = kw.empty((n, n))
fast(kw.asarray(x), y, n)
print(fast.why)
assert np.array_equal(y.numpy(), x.T)
