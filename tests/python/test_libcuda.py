"""A program of cuda-python that knows nothing of Kernwright runs on the simulated device."""

import os
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.skipif(
        "KERNWRIGHT_TEST_BUILD" not in os.environ, reason="needs the build's library"
    ),
]
pytest.importorskip("cuda.bindings", reason="needs cuda-bindings")

PROGRAM = r'''
import ctypes
import numpy as np
from cuda.bindings import driver, nvrtc

def check(result):
    assert int(result[0]) == 0, result[0]
    return result[1] if len(result) == 2 else result[1:]

SOURCE = b"""
extern "C" __global__ void saxpy(float a, const float* x, float* y, size_t n) {
    size_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}"""
check(driver.cuInit(0))
device = check(driver.cuDeviceGet(0))
print(check(driver.cuDeviceGetName(64, device)).rstrip(b"\0 ").decode())
context = check(driver.cuCtxCreate(None, 0, device))
program = check(nvrtc.nvrtcCreateProgram(SOURCE, b"saxpy.cu", 0, [], []))
check(nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=compute_80"]))
ptx = b" " * check(nvrtc.nvrtcGetPTXSize(program))
check(nvrtc.nvrtcGetPTX(program, ptx))
module = check(driver.cuModuleLoadData(np.char.array(ptx).ctypes.data))
kernel = check(driver.cuModuleGetFunction(module, b"saxpy"))
n = 10_007
x, y = np.random.default_rng(0).random((2, n), dtype=np.float32)
expected = np.float32(2.5) * x + y
dx, dy = check(driver.cuMemAlloc(x.nbytes)), check(driver.cuMemAlloc(y.nbytes))
stream = check(driver.cuStreamCreate(0))
check(driver.cuMemcpyHtoDAsync(dx, x.ctypes.data, x.nbytes, stream))
check(driver.cuMemcpyHtoDAsync(dy, y.ctypes.data, y.nbytes, stream))
arguments = ((2.5, dx, dy, n), (ctypes.c_float, None, None, ctypes.c_size_t))
check(driver.cuLaunchKernel(kernel, 40, 1, 1, 256, 1, 1, 0, stream, arguments, 0))
check(driver.cuMemcpyDtoHAsync(y.ctypes.data, dy, y.nbytes, stream))
check(driver.cuStreamSynchronize(stream))
np.testing.assert_allclose(y, expected, rtol=1e-6)
too_many = ((2.5, dx, dy, n + 1), arguments[1])
failed = driver.cuLaunchKernel(kernel, 40, 1, 1, 256, 1, 1, 0, stream, too_many, 0)
assert failed[0] == driver.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS, failed
for pointer in (dx, dy):
    check(driver.cuMemFree(pointer))
check(driver.cuStreamDestroy(stream))
check(driver.cuModuleUnload(module))
check(driver.cuCtxDestroy(context))
'''


def test_a_saxpy_of_cuda_python_runs_unchanged():
    folder = os.path.join(os.environ["KERNWRIGHT_TEST_BUILD"], "libcuda")
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "LD_LIBRARY_PATH": folder},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "Kernwright simulated device"
    # The program knows nothing of reports: what its second launch did wrong is on stderr.
    assert "out of bounds" in result.stderr
    assert "in saxpy" in result.stderr
