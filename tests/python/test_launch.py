"""Launches: brackets, configurations, streams, and refusals before anything is sent."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from conftest import SAXPY

import kernwright as kw


def test_the_first_example(saxpy):
    x = kw.asarray(np.arange(1 << 16, dtype=np.float32))
    y = kw.ones_like(x)
    result = saxpy[-(-x.size // 256), 256](2.0, x, y, x.size)
    assert result is None
    np.testing.assert_allclose(y.numpy(), 2 * x.numpy() + 1)


WHERE = r"""
__global__ void where(unsigned* out) {
    unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    out[block * (blockDim.x * blockDim.y * blockDim.z) + thread] = block * 1000 + thread;
}
"""


@pytest.mark.parametrize(
    ("grid", "block"),
    [(1, 1), (3, 33), ((2,), (5,)), ((2, 3), (4, 5)), ((2, 3, 4), (3, 2, 2)), ([2], np.int64(7))],
)
def test_grids_and_blocks_of_up_to_three_dimensions(grid, block):
    where = kw.kernel(WHERE)
    blocks, threads = int(np.prod(grid)), int(np.prod(block))
    out = kw.zeros(blocks * threads, "uint32")
    where[grid, block](out)
    expected = np.arange(blocks)[:, None] * 1000 + np.arange(threads)
    np.testing.assert_array_equal(out.numpy(), expected.ravel())


def test_a_bound_configuration_is_reusable(saxpy):
    x, y = kw.ones(100), kw.zeros(100)
    run = saxpy[1, 128]
    for _ in range(3):
        run(1.0, x, y, 100)
    assert (y.numpy() == 3).all()
    assert "saxpy" in repr(run) and "128" in repr(run)


def test_forall_chooses_grid_and_block(saxpy):
    for n in (1, 31, 1000, 5000):
        x, y = kw.ones(n), kw.zeros(n)
        saxpy.forall(n)(1.0, x, y, n)
        assert (y.numpy() == 1).all()
    saxpy.forall(0)(1.0, x, y, n)
    assert (y.numpy() == 1).all()
    for wrong in (-1, 1 << 62):
        with pytest.raises(kw.LaunchConfigError):
            saxpy.forall(wrong)(1.0, x, y, n)
    with pytest.raises(TypeError):
        saxpy.forall(1.5)


def test_launch_config(saxpy):
    x, y = kw.ones(64), kw.zeros(64)
    stream = kw.Stream()
    config = kw.LaunchConfig(grid=2, block=(32,), stream=stream, shared_bytes=16)
    x.device.synchronize()
    saxpy.launch(config, 1.0, x, y, 64)
    stream.synchronize()
    assert (y.numpy() == 1).all()
    assert config.grid == (2, 1, 1) and config.block == (32, 1, 1)
    assert config.stream is stream and config.shared_bytes == 16 and config.cluster is None
    assert "grid=(2, 1, 1)" in repr(config)
    with pytest.raises(TypeError, match="LaunchConfig"):
        saxpy.launch((2, 32), 1.0, x, y, 64)
    with pytest.raises(TypeError):
        saxpy.launch()


SHARED = r"""
__global__ void reverse(int* x, int n) {
    extern __shared__ int tile[];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < n) x[threadIdx.x] = tile[n - 1 - threadIdx.x];
}
"""


def test_dynamic_shared_memory():
    reverse = kw.kernel(SHARED)
    x = kw.arange(64, dtype="int32")
    reverse[1, 64, None, 64 * 4](x, 64)
    np.testing.assert_array_equal(x.numpy(), np.arange(64)[::-1])
    reverse[1, 64, None, 100_000](x, 64)
    np.testing.assert_array_equal(x.numpy(), np.arange(64))


@pytest.mark.parametrize(
    ("configuration", "told"),
    [
        ((0, 256), "0"),
        ((1, 0), "0"),
        ((-1, 1), "-1"),
        ((1, 2048), "1024"),
        ((1, (32, 64)), "1024"),
        ((1, (1, 1, 100)), "64"),
        (((1, 70000), 1), "65535"),
        ((1 << 31, 1), "2147483647"),
        ((1 << 40, 1), "1099511627776"),
        (((1, 1, 1, 1), 1), "three"),
        (((), 1), "three"),
        ((1, 1, None, 1 << 28), "shared"),
        ((1, 1, None, -1), "shared"),
    ],
)
def test_configurations_outside_the_limits(saxpy, configuration, told):
    x, y = kw.ones(4), kw.zeros(4)
    with pytest.raises(kw.LaunchConfigError) as caught:
        saxpy[configuration](1.0, x, y, 4)
    assert told in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert (y.numpy() == 0).all()


@pytest.mark.parametrize(
    "configuration",
    [1, (1,), (1, 1, None, 0, 0), (1.5, 1), ("1", 1), (True, 1), (1, None), ((1, 2.0), 1)],
)
def test_what_is_no_configuration(saxpy, configuration):
    with pytest.raises(kw.ArgumentError):
        saxpy[configuration]


def test_a_kernel_is_not_called_without_its_configuration(saxpy):
    with pytest.raises(TypeError, match=r"saxpy\[grid, block\]"):
        saxpy(1.0)


def test_keywords_are_refused(saxpy):
    x = kw.ones(4)
    with pytest.raises(kw.ArgumentError, match="'n'"):
        saxpy[1, 4](1.0, x, x, n=4)


def test_streams_of_other_libraries(saxpy):
    stream = kw.Stream()

    class Protocol:
        def __cuda_stream__(self):
            return 0, stream.handle

    class Torch:
        cuda_stream = stream.handle

    class Cupy:
        ptr = stream.handle

    x, y = kw.ones(8), kw.zeros(8)
    x.device.synchronize()
    for given in (stream, stream.handle, Protocol(), Torch(), Cupy()):
        saxpy[1, 8, given](1.0, x, y, 8)
    stream.synchronize()
    assert (y.numpy() == 5).all()
    saxpy[1, 8, None](1.0, x, y, 8)
    saxpy[1, 8, 0](1.0, x, y, 8)
    assert (y.numpy() == 7).all()


def test_a_stream_of_another_device_decides_where_to_run(saxpy, sim):
    stream = kw.Stream()
    x, y = kw.ones(8), kw.zeros(8)
    with kw.Device():
        saxpy[1, 8, stream](1.0, x, y, 8)
    stream.synchronize()
    assert (y.numpy() == 1).all()


def test_threads_launch_at_once():
    kernel = kw.kernel(SAXPY.replace("saxpy", "saxpy_of_threads"))
    errors, results = [], []

    def work(index):
        try:
            x, y = kw.full(500, float(index)), kw.zeros(500)
            for _ in range(20):
                kernel[2, 256](1.0, x, y, 500)
            results.append((index, y.numpy()))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and len(results) == 8
    for index, y in results:
        assert (y == 20 * index).all()


def test_threads_compile_once():
    kernel = kw.kernel(SAXPY.replace("saxpy", "compiled_once"))
    barrier = threading.Barrier(8)
    codes = []

    def work():
        barrier.wait()
        codes.append(kernel.compile().ptx)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(codes) == 8 and len(set(codes)) == 1


def test_a_bound_kernel_holds_its_kernel_and_drops_it(saxpy):
    before = sys.getrefcount(saxpy)
    # More than one at a time: the memory of one is kept for the next.
    bound = [saxpy[1, 32] for _ in range(5)] + [saxpy.forall(7)]
    assert sys.getrefcount(saxpy) == before + len(bound)
    del bound
    assert sys.getrefcount(saxpy) == before


def test_python_runs_on_while_a_kernel_compiles(monkeypatch):
    monkeypatch.setenv("KERNWRIGHT_CACHE", "off")  # else an earlier run has compiled it
    kernel = kw.kernel(
        SAXPY.replace("saxpy", "compiled_aside"), headers={"big.h": "#pragma once\n"}
    )
    compiled = []
    thread = threading.Thread(target=lambda: compiled.append(kernel.compile()))
    thread.start()
    rounds = 0
    while thread.is_alive():
        thread.join(0.0005)
        rounds += 1
    assert compiled == [kernel]
    assert rounds > 2


FORK = """
import os, sys
import kernwright as kw
k = kw.kernel("__global__ void f(int* x) { x[0] = 1; }")
x = kw.zeros(1, "int32")
k[1, 1](x)
assert x.numpy()[0] == 1
child = os.fork()
if child == 0:
    try:
        k[1, 1](x)
    except kw.Error as error:
        print(error)
        sys.stdout.flush()
        os._exit(0 if "fork" in str(error) else 3)
    os._exit(4)
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def test_a_forked_child_is_told_so():
    result = subprocess.run(
        [sys.executable, "-c", FORK], capture_output=True, text=True, env={**os.environ}
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "fork" in result.stdout


FORK_FIRST = """
import os, sys
import kernwright as kw
child = os.fork()
if child == 0:
    x = kw.ones(4)
    os._exit(0 if x.numpy().sum() == 4 else 3)
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def test_a_child_forked_before_first_use_works():
    result = subprocess.run([sys.executable, "-c", FORK_FIRST], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_fault_names_the_kernel_the_line_and_the_launch(sim):
    first = sys._getframe().f_lineno + 2  # where the text begins in this file
    bad = kw.kernel(
        """__global__ void bad(float* x, int n) {
            int i = threadIdx.x;
            x[i + n] = 1.0f;
        }"""
    )
    x = kw.zeros(32)
    line = sys._getframe().f_lineno + 2
    with pytest.raises(kw.DeviceFault) as caught:
        bad[1, 32](x, 100)
        sim.synchronize()
    fault = caught.value
    assert fault.kind == "bounds" and fault.line == 3
    here = os.path.basename(__file__)
    assert f"{here}:{first + 2} (line 3 of the kernel's text" in str(fault)
    assert fault.block == (0, 0, 0) and fault.thread == (0, 0, 0)
    assert fault.address == x.ptr + 400
    assert "128" in fault.allocation or "128" in fault.report
    assert "bad" in str(fault) and f"{here}:{line}" in str(fault)


def test_the_device_goes_on_after_a_fault(sim, saxpy):
    bad = kw.kernel("__global__ void outside(float* x) { x[1 << 20] = 0; }")
    with pytest.raises(kw.DeviceFault):
        bad[1, 1](kw.zeros(1))
        sim.synchronize()
    x, y = kw.ones(4), kw.zeros(4)
    saxpy[1, 4](1.0, x, y, 4)
    assert (y.numpy() == 1).all()


def test_an_endless_loop_ends(sim):
    code = """
import kernwright as kw
k = kw.kernel("__global__ void forever(volatile int* x) { while (x[0] == 0) {} }")
x = kw.zeros(1, "int32")
try:
    k[1, 1](x)
    kw.current_device().synchronize()
except kw.Timeout as error:
    print("ended:", error)
"""
    env = {**os.environ, "KERNWRIGHT_DEVICE": "sim", "KERNWRIGHT_SIM_BUDGET": "100000"}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert "ended:" in result.stdout and "forever" in result.stdout, result.stderr


PLACES = r"""
__global__ void places(int* out, int d, int h, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    int* own = &out[(z * h + y) * w + x];
    if (x < w && y < h && z < d) atomicAdd(own, 1 + x + 1000 * y + 100000 * z);
    if (x == 0 && y == 0 && z == 0) {
        out[d * h * w] = blockDim.x;
        out[d * h * w + 1] = blockDim.y * blockDim.z;
    }
}"""


@pytest.mark.parametrize(
    "extents",
    [(7,), (1, 1), (5, 3), (33, 65), (1, 1000), (1000, 1), (2, 3, 5), (70, 2, 1), (1, 1, 300)],
)
def test_forall_takes_the_extents_of_a_shape(extents):
    d, h, w = (1,) * (3 - len(extents)) + extents
    out = kw.zeros(d * h * w + 2, "int32")
    places = kw.kernel(PLACES)
    places.forall(extents)(out, d, h, w)
    z, y, x = np.indices((d, h, w))
    result = out.numpy()
    np.testing.assert_array_equal(result[:-2], (1 + x + 1000 * y + 100000 * z).ravel())
    assert result[-2] * result[-1] <= 1024
    if len(extents) > 1 and w >= 32:
        assert result[-2] % 32 == 0  # whole warps along x
    assert repr(extents).strip("(),").split(",")[0] in repr(places.forall(extents))


def test_forall_refuses_other_extents():
    places = kw.kernel(PLACES)
    out = kw.zeros(3, "int32")
    for nothing in ((0, 5), (5, 0), (2, 0, 2), (0,)):
        places.forall(nothing)(out, 1, 1, 1)
    assert not out.numpy().any()
    for wrong in ((), (1, 2, 3, 4), (1.5, 2), (True, 2), "ab", ("2", 3), None):
        with pytest.raises(kw.ArgumentError, match="forall"):
            places.forall(wrong)
    for wrong in ((-1, 5), (5, -1), -3):
        with pytest.raises(kw.LaunchConfigError, match="at least 0"):
            places.forall(wrong)
    with pytest.raises(kw.LaunchConfigError, match=r"forall\(\(100000000, 2\)\): .* along y"):
        places.forall((100_000_000, 2))(out, 1, 1, 1)
    with pytest.raises(kw.ArgumentError, match="out of range"):
        places.forall((1 << 80, 2))
