"""The instructions of one thread with their values, and each line's cost: simulated device."""

import numpy as np

import kernwright as kw

with kw.Device("sim"):
    length = kw.kernel(r"""
__global__ void length(const float* x, float* y, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int column = 0; column < n; ++column)
        sum += x[row * n + column] * x[row * n + column];
    y[row] = sqrtf(sum);
}""")
    x, y = kw.asarray(np.arange(128, dtype=np.float32)), kw.zeros(64, "float32")

    with kw.trace(length, block=1, thread=3) as trace:
        length[2, 32](x, y, 2)
    print(trace)

    (stored,) = [
        access.after[0]
        for step in trace.steps
        for access in step.accesses
        if access.what == "store"
    ]
    assert stored == np.float32(np.hypot(70, 71)) == y.numpy()[35]

    with kw.line_profile(length) as profile:
        length[2, 32](x, y, 2)
    print(profile.annotated())
    (loads,) = [line.counts for line in profile.lines if "sum +=" in line.source]
    assert loads.global_bytes == 2 * 64 * 4  # x[...] is read once for both factors
    assert loads.sectors_per_request == 8 and loads.coalescing == 0.5  # every other word
