"""Arrays of more than 2^31 elements: sizes, strides, slices and copies count in 64 bits."""

import gc

import numpy as np
import pytest

import kernwright as kw

N = (1 << 31) + 1000

TOUCH = r"""
__global__ void touch(unsigned char* x, long long n, long long step) {
    long long i = (blockIdx.x * (long long)blockDim.x + threadIdx.x) * step;
    if (i < n) x[i] = (unsigned char)(i / step % 251);
}
__global__ void add(const unsigned char* x, const unsigned char* y, unsigned char* z, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    for (; i < n; i += (long long)gridDim.x * blockDim.x) z[i] = x[i] + y[i];
}
"""


@pytest.fixture
def large(device):
    if device.memory_info().free < 1.3 * N:
        pytest.skip("needs 3 GB of device memory")
    yield kw.empty(N, np.uint8)
    gc.collect()
    kw.memory.trim()


def test_sizes_and_views(large):
    assert large.size == large.nbytes == N
    rows = large.reshape(2, -1)
    assert rows.shape == (2, N // 2) and rows.strides == (N // 2, 1)
    assert rows[1].ptr == large.ptr + N // 2
    assert rows.T.strides == (1, N // 2)
    assert large[-1:].ptr == large.ptr + N - 1
    assert large[::-1].ptr == large.ptr + N - 1 and large[::-1].strides == (-1,)
    assert len(large) == N


def test_slices_beyond_2_31_are_written_and_read(large):
    around = slice((1 << 31) - 500, (1 << 31) + 500)
    values = np.arange(1000).astype(np.uint8)
    large[around] = values
    large[-10:] = 9
    large[0] = 3
    assert (large[around].numpy() == values).all()
    assert (large[-12:].numpy()[2:] == 9).all()
    assert large[0].item() == 3 and large[N - 1].item() == 9
    assert (large[around][::-1].numpy() == values[::-1]).all()
    copied = large[around].copy()
    assert (copied.astype(np.int32).numpy() == values).all()


def test_strides_beyond_2_31_are_followed(large):
    step = 1 << 26
    kernel = kw.kernel(TOUCH, "touch")
    kernel[1, 64](large, N, step)
    assert (large[::step].numpy() == np.arange(33)).all()
    assert (large[::step][::-4].copy().numpy() == np.arange(33)[::-4]).all()
    assert large[step * 32].item() == 32


def test_three_thousand_million_elements_are_added(device):
    count = 3_000_000_000
    if device.is_simulated or device.memory_info().free < 4 * count:
        pytest.skip("needs a GPU with 12 GB free")
    x, y, z = (kw.empty(count, np.uint8) for _ in range(3))
    kw.kernel(TOUCH, "touch")[(count + 255) // 256, 256](x, count, 1)
    y[:] = x
    kw.kernel(TOUCH, "add")[4096, 256](x, y, z, count)
    for begin in (0, (1 << 31) - 1000, (1 << 32) % count, count - 2000):
        i = np.arange(begin, begin + 2000)
        assert (z[begin : begin + 2000].numpy() == (2 * (i % 251)).astype(np.uint8)).all()
    total = sum(int(part.numpy().sum(dtype=np.int64)) for part in (z[:251], z[-1:]))
    assert total == sum(2 * k % 256 for k in range(251)) + (2 * ((count - 1) % 251)) % 256
