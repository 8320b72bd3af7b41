"""Programs and packages of other people run unchanged on libcuda.so.1."""

import pytest
from libcuda_program import run

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


@pytest.mark.parametrize("per_thread", ["0", "1"])
def test_a_saxpy_of_cuda_python_runs_unchanged(per_thread):
    pytest.importorskip("cuda.bindings", reason="needs cuda-bindings")
    result = run(PROGRAM, CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM=per_thread)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "Kernwright simulated device"
    # The program knows nothing of reports: what its second launch did wrong is on stderr.
    assert "out of bounds" in result.stderr
    assert "in saxpy" in result.stderr


CORE = r"""
import numpy as np
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

device = Device()
device.set_current()
stream = device.create_stream()
source = '''template <typename T>
__global__ void saxpy(T a, const T* x, const T* y, T* out, size_t n) {
    size_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a * x[i] + y[i];
}'''
options = ProgramOptions(std="c++17", arch=f"compute_{device.arch}")
code = Program(source, code_type="c++", options=options).compile(
    "ptx", name_expressions=("saxpy<float>",)
)
kernel = code.get_kernel("saxpy<float>")
n = 1000
x, y, out = np.random.default_rng(0).random((3, n), dtype=np.float32)
buffers = [device.memory_resource.allocate(4 * n, stream=stream) for _ in range(3)]
for array, buffer in zip((x, y), buffers):
    result, = driver.cuMemcpyHtoDAsync(int(buffer.handle), array.ctypes.data, 4 * n, stream.handle)
    assert result == 0
launch(stream, LaunchConfig(grid=8, block=128), kernel, np.float32(2), *buffers, np.uint64(n))
result, = driver.cuMemcpyDtoHAsync(out.ctypes.data, int(buffers[2].handle), 4 * n, stream.handle)
stream.sync()
np.testing.assert_allclose(out, np.float32(2) * x + y, rtol=1e-6)
"""
TINYGRAD = r"""
import numpy as np
from tinygrad import Device, Tensor, TinyJit

assert Device.DEFAULT == "CUDA"
a, b = np.random.rand(37, 51).astype("f4"), np.random.rand(51, 13).astype("f4")
np.testing.assert_allclose((Tensor(a) @ Tensor(b)).relu().numpy(), np.maximum(a @ b, 0), rtol=1e-4)
f = TinyJit(lambda t: ((t * 2 + 1).sum(axis=0).contiguous() * 3).realize())
for i in range(5):  # the later ones are launches of a graph
    result = f(Tensor(a + i).realize()).numpy()
    np.testing.assert_allclose(result, ((a + i) * 2 + 1).sum(0) * 3, rtol=1e-3)
"""


@pytest.mark.parametrize(
    ("package", "program"), [("cuda.core", CORE), ("tinygrad", TINYGRAD)], ids=["core", "tinygrad"]
)
def test_other_packages_run_unchanged(package, program):
    pytest.importorskip(package, reason=f"needs {package}")
    result = run(program, DEV="CUDA")
    assert result.returncode == 0, result.stderr


def test_a_process_with_kernwright_shares_its_devices():
    result = run(
        r"""
import ctypes
import numpy as np
import kernwright as kw

k = kw.kernel("__global__ void fill(int* x) { x[threadIdx.x] = 7 * threadIdx.x; }")
x = kw.zeros(32, np.int32)
k[1, 32](x)
driver = ctypes.CDLL("libcuda.so.1")
values = np.zeros(32, np.int32)
address = ctypes.c_uint64(x.ptr)
context = ctypes.c_void_p()
assert driver.cuInit(0) == 0
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == 0
size = ctypes.c_size_t(values.nbytes)
assert driver.cuMemcpyDtoH_v2(ctypes.c_void_p(values.ctypes.data), address, size) == 0
np.testing.assert_array_equal(values, 7 * np.arange(32))
""",
        KERNWRIGHT_DEVICE="sim",
    )
    assert result.returncode == 0, result.stderr
