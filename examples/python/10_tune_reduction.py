"""Tunes block, items of a thread and the addition in warps of a sum; some choices are wrong."""

import pathlib
import tempfile

import numpy as np

import kernwright as kw

SOURCE = r"""
#ifndef BLOCK
#define BLOCK 128
#define ITEMS 1
#define SHUFFLE 0
#endif
__global__ void total(const float* x, float* sum, int n) {
    __shared__ float part[BLOCK];
    float own = 0;
    for (int j = 0; j < ITEMS; ++j) {
        int i = (blockIdx.x * ITEMS + j) * BLOCK + threadIdx.x;
        if (i < n) own += x[i];
    }
#if SHUFFLE
    for (int d = 16; d > 0; d /= 2) own += __shfl_down_sync(0xffffffffu, own, d);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, own);
#else
    part[threadIdx.x] = own;
    for (int d = BLOCK / 2; d > 0; d /= 2) {  // wrong where BLOCK is no power of two
        __syncthreads();
        if (threadIdx.x < d) part[threadIdx.x] += part[threadIdx.x + d];
    }
    if (threadIdx.x == 0) atomicAdd(sum, part[0]);
#endif
}"""

folder = pathlib.Path(tempfile.mkdtemp())
n = 5000 if kw.current_device().is_simulated else 1 << 24
x = np.random.default_rng(2).integers(0, 2, n).astype(np.float32)  # sums are exact

space = kw.tune.Space(BLOCK=[64, 96, 128, 256], ITEMS=[1, 2, 4, 8], SHUFFLE=[0, 1])
kernel = kw.kernel(SOURCE)
session = kw.tune.Session(
    kernel,
    space,
    (kw.asarray(x), kw.zeros(1), n),  # the sum is reset to zero before each trial
    grid="-(-n // (BLOCK * ITEMS))",
    block="BLOCK",
    verify=lambda x, sum, n: (None, x.sum(keepdims=True), None),
    default={"BLOCK": 128, "ITEMS": 1, "SHUFFLE": 0},
    store=folder / "tuned.jsonl",
    budget={"seconds": 60},
)
best = session.run()
print(best)

# A wrong result is a recorded trial: the session goes on, and the report lists it.
wrong = [trial for trial in session.trials if trial.status == "correctness"]
print(f"{len(wrong)} of {len(session.trials)} trials were wrong, such as {wrong[0]}")
assert {trial.config["BLOCK"] for trial in wrong} == {96}
session.report(folder / "tune.html")
print(f"report: {folder / 'tune.html'}")

fast = kernel.tuned(folder / "tuned.jsonl")
sum = kw.zeros(1)
fast(kw.asarray(x), sum, n)
print(fast.why)
assert sum.item() == x.sum()
