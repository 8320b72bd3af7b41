"""The race check on elements of one and two bytes, read by several warps and blocks."""

import numpy as np
import pytest

import kernwright as kw

pytestmark = pytest.mark.usefixtures("sim")

TYPES = {"uint8": "unsigned char", "uint16": "unsigned short"}

# Everybody reads everything, several times; then `writer` of block `block` writes one element, or
# each block its own ones.
SOURCE = """__global__ void f(TYPE* x, unsigned* out, int n, int block, int writer, int at) {
    unsigned sum = 0;
    for (int k = 0; k < 3; ++k) {
        for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[i];
        for (int i = 0; i < n; ++i) sum += x[i];
    }
    atomicAdd(out, sum);
    if (blockIdx.x == block && threadIdx.x == writer) x[at] = 200;
}
__global__ void own(TYPE* x, int n) {
    int first = blockIdx.x * n;
    for (int k = 0; k < 3; ++k) {
        for (int i = threadIdx.x; i < n; i += blockDim.x) x[first + i] += 1;
        __syncthreads();
        unsigned sum = 0;
        for (int i = 0; i < n; ++i) sum += x[first + i];
        __syncthreads();
        for (int i = threadIdx.x; i < n; i += blockDim.x) x[first + i] += sum;
    }
}"""


# Neighbours in rows: of whole granules of 64 bytes (warps touch them as one), and of others.
ROWS = """__global__ void scale(TYPE* x, int n, int from) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[from + i] *= 3;
}
__global__ void pairs(TYPE* x, unsigned* y, int n, int wait) {
    __shared__ int s;
    s = 0;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] += 1;
    if (wait) __syncthreads();
    int other = blockIdx.x * blockDim.x + (threadIdx.x ^ 32);
    y[i] = ((const unsigned*)x)[other / 2];
}
__global__ void words(unsigned* x) { x[threadIdx.x] += 1; }
__global__ void shift(TYPE* x, TYPE* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i];
    if (threadIdx.x == blockDim.x - 1) x[i + 1] = 5;
}"""


LINE = next(i for i, line in enumerate(SOURCE.splitlines(), 1) if "x[at] = 200" in line)


def lines_of(finding):
    return {finding.line, finding.other.line}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("grid", [1, 3])
@pytest.mark.parametrize("block", [64, 32])
def test_a_write_to_what_many_have_read(dtype, grid, block):
    module = kw.module(SOURCE.replace("TYPE", TYPES[dtype]))
    n = 75
    values = np.arange(n, dtype=dtype)
    for writer in (None, (0, 3, 7), (grid - 1, block - 1, 74)):
        x, out = kw.asarray(values), kw.zeros(1, "uint32")
        with kw.checks("race") as report:
            module["f"][grid, block](x, out, n, *(writer or (-1, 0, 0)))
        if writer is None:
            assert out.numpy()[0] == 3 * grid * (1 + block) * values.sum(dtype=np.uint32)
            report.raise_if_any()
        else:
            assert {finding.kind for finding in report} == {"race"}
            assert LINE in {line for finding in report for line in lines_of(finding)}


@pytest.mark.parametrize("dtype", TYPES)
def test_parts_of_words_that_threads_change_in_place(dtype):
    module = kw.module(SOURCE.replace("TYPE", TYPES[dtype]))
    n, grid = 70, 3
    x = kw.zeros(n * grid, dtype)
    with kw.checks("race", "init") as report:
        module["own"][grid, 64](x, n)
    report.raise_if_any()
    expected = 0
    for _ in range(3):
        expected += 1
        expected += expected * n
    np.testing.assert_array_equal(x.numpy(), np.full(n * grid, expected).astype(dtype))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("block", [32, 33, 64, 100])
@pytest.mark.parametrize("start", [0, 1, 16, 32])
def test_rows_in_place(dtype, block, start):
    module = kw.module(ROWS.replace("TYPE", TYPES[dtype]))
    n = 500
    values = np.arange(n + 64).astype(dtype)
    x = kw.asarray(values)
    with kw.checks("race", "init") as report:
        for turn in range(3):  # rows of another length in between
            module["scale"][-(-n // block), block](x, n, start)
            module["scale"][-(-n // 48), 48](x, n, start + turn)
    report.raise_if_any()
    for turn in range(3):
        values[start : start + n] *= 3
        values[start + turn : start + turn + n] *= 3
    np.testing.assert_array_equal(x.numpy(), values)


@pytest.mark.parametrize("grid", [1, 3])
def test_halves_that_others_read_as_words(grid):
    module = kw.module(ROWS.replace("TYPE", "unsigned short"))
    n = 64 * grid
    x, y = kw.zeros(n, "uint16"), kw.zeros(n, "uint32")
    with kw.checks("race") as report:
        module["pairs"][grid, 64](x, y, n, 1)
        module["words"][1, n // 2](kw.Pointer(x.ptr))
        module["pairs"][grid, 64](x, y, n, 1)
    report.raise_if_any()
    assert (y.numpy() == 0x20003).all()
    with kw.checks("race") as report:
        module["pairs"][grid, 64](x, y, n, 0)
    assert {finding.kind for finding in report} == {"race"}


def test_a_half_that_another_block_writes():
    module = kw.module(ROWS.replace("TYPE", "unsigned short"))
    x, y = kw.zeros(129, "uint16"), kw.zeros(128, "uint16")
    with kw.checks("race") as report:
        module["shift"][2, 64](x, y)
    assert {finding.kind for finding in report} == {"race"}
    assert any(finding.other.block != finding.block for finding in report)
