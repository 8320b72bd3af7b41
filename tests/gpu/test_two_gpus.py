"""Two GPUs of one host: copies between them, and kernels on both."""

import numpy as np
import pytest

import kernwright as kw

GPUS = [device for device in kw.devices() if not device.is_simulated]
pytestmark = pytest.mark.skipif(len(GPUS) < 2, reason="there are fewer than two GPUs")


@pytest.mark.parametrize("dtype", ["uint8", "float32", "complex128", "bfloat16"])
@pytest.mark.parametrize("count", [0, 1, 1000, (1 << 24) + 3])
def test_a_copy_to_the_other_gpu_is_exact(dtype, count):
    values = np.random.default_rng(count).integers(0, 256, count, dtype="uint8")
    with GPUS[0]:
        there = kw.asarray(values).astype(dtype) if count < 2000 else kw.asarray(values)
    copy = there.to(GPUS[1])
    assert copy.device == GPUS[1] and copy.dtype == there.dtype
    assert copy.numpy().tobytes() == there.numpy().tobytes()
    back = copy.to(GPUS[0])
    assert back.device == GPUS[0]
    assert back.numpy().tobytes() == there.numpy().tobytes()


def test_kernels_run_where_their_stream_is():
    kernel = kw.kernel("__global__ void f(int* x, int v) { x[threadIdx.x] += v; }")
    arrays = []
    for number, device in enumerate(GPUS[:2]):
        with device:
            arrays.append(kw.full(64, number, "int32"))
            kernel[1, 64](arrays[-1], 10)
    assert [set(array.numpy()) for array in arrays] == [{10}, {11}]


def test_a_copy_waits_for_the_kernel_before_it():
    kernel = kw.kernel(
        """__global__ void late(int* x, long long n) {
            long long start = clock64();
            while (clock64() - start < n) {}
            x[threadIdx.x] = 7;
        }"""
    )
    with GPUS[0]:
        x = kw.zeros(256, "int32")
        kernel[1, 256](x, 50_000_000)
        y = x.to(GPUS[1])
    assert (y.numpy() == 7).all()


def test_an_array_of_the_other_gpu_is_refused():
    kernel = kw.kernel("__global__ void f(int* x) { x[0] = 1; }")
    with GPUS[1]:
        x = kw.zeros(1, "int32")
    with GPUS[0], pytest.raises(kw.ArgumentError, match="cuda:1"):
        kernel[1, 1](x)
