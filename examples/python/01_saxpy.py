"""A kernel written as a string: compile, launch, check."""

import numpy as np

import kernwright as kw

saxpy = kw.kernel(r"""
__global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}""")

x = kw.asarray(np.arange(1 << 20, dtype=np.float32))
y = kw.ones_like(x)
saxpy[-(-x.size // 256), 256](2.0, x, y, x.size)
np.testing.assert_array_equal(y.numpy(), 2 * x.numpy() + 1)
print(f"{saxpy.signature} on {kw.current_device().name}: right")

try:
    saxpy[1, 256](2.0, x, y)
except TypeError as error:
    print(f"one argument short: {error}")
