"""One template kernel, instantiated by name expressions."""

import numpy as np

import kernwright as kw

module = kw.module(r"""
template <typename T, int N>
__global__ void scale(const T* in, T* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] * T(N);
}""")

for dtype, name in ((np.float32, "float"), (np.int64, "long long"), (np.float64, "double")):
    kernel = module[f"scale<{name}, 3>"]
    values = np.arange(1000).astype(dtype)
    out = np.empty_like(values)
    kernel.forall(values.size)(kw.In(values), kw.Out(out), values.size)
    np.testing.assert_array_equal(out, values * dtype(3))
    print(f"{kernel.signature}: right")
