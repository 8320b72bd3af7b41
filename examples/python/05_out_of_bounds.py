"""Finding an access out of bounds with no GPU: the simulated device checks each one."""

import numpy as np

import kernwright as kw

source = r"""
__global__ void shift(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i + 1];  // the last thread reads one element too far
}"""

with kw.Device("sim"):
    shift = kw.kernel(source)
    x, out = kw.asarray(np.ones(1000, np.float32)), kw.zeros(1000)
    try:
        shift[4, 256](x, out, 1000)
        kw.current_device().synchronize()
    except kw.DeviceFault as fault:
        print(fault)
        assert fault.kind == "bounds"
        assert source.splitlines()[fault.line - 1].strip().startswith("out[i] = in[i + 1];")
        assert fault.block == (3, 0, 0) and fault.thread == (231, 0, 0)
    else:
        raise SystemExit("the fault was not found")
