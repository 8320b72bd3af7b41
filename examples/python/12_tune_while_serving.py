"""Tunes a kernel while it serves: trials take a tenth of the time, and no result is wrong."""

import pathlib
import tempfile

import numpy as np

import kernwright as kw

SOURCE = r"""
#ifndef BLOCK
#define BLOCK 64
#define TILE 1
#endif
__global__ void axpy(float a, const float* x, float* y, int n) {
    for (int j = 0; j < TILE; ++j) {
        int i = (blockIdx.x * TILE + j) * BLOCK + threadIdx.x;
        if (i < n) y[i] += a * x[i];
    }
}"""

folder = pathlib.Path(tempfile.mkdtemp())
store = folder / "tuned.jsonl"
n = 4096 if kw.current_device().is_simulated else 1 << 22
x, y = kw.ones(n), kw.zeros(n)

kernel = kw.kernel(SOURCE)
serve = kernel.online(
    kw.tune.Space(BLOCK=[64, 128, 256], TILE=[1, 2, 4]),
    overhead=0.1,  # the share of the time for trials
    grid="-(-n // (BLOCK * TILE))",
    block="BLOCK",
    default={"BLOCK": 64, "TILE": 1},
    store=store,
)
calls = 0
while not serve.frozen and calls < 1000000:
    serve(1.0, x, y, n)  # launched exactly once, with the best configuration so far
    calls += 1
print(f"frozen after {calls} calls at {serve.config}, {100 * serve.overhead:.1f} % spent on trials")
assert (y.numpy() == calls).all(), "trials run on copies: each call counted once"
assert serve.frozen and serve.overhead <= 0.1 + 0.05

# The store keeps the result, so a later process can dispatch from it.
fast = kernel.tuned(store)
fast(1.0, x, y, n)
print(fast.why)
assert np.all(y.numpy() == calls + 1)
