"""The race check on elements of one and two bytes that several warps and blocks read."""

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
