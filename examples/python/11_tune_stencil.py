"""Tunes a stencil for two sizes; each later call uses the result for its own size."""

import pathlib
import tempfile

import numpy as np

import kernwright as kw

SOURCE = r"""
#ifndef BX
#define BX 32
#define BY 4
#define SHARED 0
#endif
__global__ void blur(const float* x, float* y, int width, int height) {
    int i = blockIdx.x * BX + threadIdx.x, j = blockIdx.y * BY + threadIdx.y;
#if SHARED
    __shared__ float part[BY + 2][BX + 2];
    for (int b = threadIdx.y; b < BY + 2; b += BY)
        for (int a = threadIdx.x; a < BX + 2; a += BX) {
            int u = min(max((int)blockIdx.x * BX + a - 1, 0), width - 1);
            int v = min(max((int)blockIdx.y * BY + b - 1, 0), height - 1);
            part[b][a] = x[v * width + u];
        }
    __syncthreads();
#define AT(di, dj) part[threadIdx.y + 1 + (dj)][threadIdx.x + 1 + (di)]
#else
#define AT(di, dj) \
    x[min(max(j + (dj), 0), height - 1) * width + min(max(i + (di), 0), width - 1)]
#endif
    if (i < width && j < height)
        y[j * width + i] =
            0.2f * (AT(0, 0) + AT(-1, 0) + AT(1, 0) + AT(0, -1) + AT(0, 1));
}"""


def expected(x):
    p = np.pad(x, 1, mode="edge").astype(np.float64)
    return 0.2 * (p[1:-1, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] + p[:-2, 1:-1] + p[2:, 1:-1])


folder = pathlib.Path(tempfile.mkdtemp())
store = folder / "tuned.jsonl"
kernel = kw.kernel(SOURCE)
space = kw.tune.Space(BX=[8, 16, 32], BY=[1, 2, 4, 8], SHARED=[0, 1])
space.require("32 <= BX * BY")
simulated = kw.current_device().is_simulated
sizes = [(64, 16), (16, 64)] if simulated else [(8192, 512), (512, 8192)]

for width, height in sizes:
    x = np.random.default_rng(3).standard_normal((height, width), np.float32)
    session = kw.tune.Session(
        kernel,
        space,
        (kw.asarray(x), kw.empty((height, width)), width, height),
        grid=("-(-width // BX)", "-(-height // BY)"),
        block=("BX", "BY"),
        verify=lambda x, y, width, height: (None, expected(x), None, None),
        store=store,  # one file for all sizes; cat adds sessions of other machines
        seed=0,
    )
    print(f"{width} x {height}: {session.run()}")

session.report(folder / "tune.html")
print(f"report of the last session: {folder / 'tune.html'}")

fast = kernel.tuned(store)
for width, height in [*sizes, (7, 5)]:  # the last one was never tuned: the default, with a warning
    x = np.random.default_rng(4).standard_normal((height, width), np.float32)
    y = kw.empty((height, width))
    fast(kw.asarray(x), y, width, height)
    assert np.allclose(y.numpy(), expected(x), rtol=1e-5, atol=1e-5)
print(fast.why)
