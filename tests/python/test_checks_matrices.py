"""kw.checks on wmma: tiles of a wider matrix are lines, and memory between them is others'."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "sim"))
import corpus

import kernwright as kw

pytestmark = pytest.mark.usefixtures("sim")

# Each block multiplies its 16 columns of b and its warps 16 rows of a; factors go through shared
# memory in lines of 16. Behind each line, eight halves stay unwritten.
PRODUCT = """#include <mma.h>
using namespace nvcuda;
__global__ void product(const __half* a, const __half* b, float* c, int columns) {
    __shared__ alignas(32) __half left[2][16 * 24], right[16 * 24];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int i = lane; i < 256; i += 32) left[warp][i / 16 * 24 + i % 16] = a[warp * 256 + i];
    for (int i = threadIdx.x; i < FILLED; i += 64)
        right[i / 16 * 24 + i % 16] = b[i / 16 * columns + blockIdx.x * 16 + i % 16];
    __syncthreads();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> y;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    wmma::load_matrix_sync(x, left[warp], 24);
    wmma::load_matrix_sync(y, right, 24);
    wmma::mma_sync(sum, x, y, sum);
    STORE
}"""
BY_ROWS = """float* at = c + ROW * columns + blockIdx.x * 16;
    wmma::store_matrix_sync(at, sum, columns, wmma::mem_row_major);"""
BY_COLUMNS = """float* at = c + blockIdx.x * 16 * 32 + ROW;
    wmma::store_matrix_sync(at, sum, 32, wmma::mem_col_major);"""


def findings(store, row="warp * 16", filled="256"):
    if package := corpus.lacks_headers_of(PRODUCT):
        pytest.skip(f"needs the headers of {package}")
    source = PRODUCT.replace("STORE", store).replace("ROW", row).replace("FILLED", filled)
    random = np.random.default_rng(1)
    a = random.integers(-4, 5, (32, 16)).astype(np.float16)
    b = random.integers(-4, 5, (16, 64)).astype(np.float16)
    with kw.checks("init", "race") as report:
        c = kw.zeros((32, 64) if store == BY_ROWS else (64, 32), "float32")
        kw.kernel(source)[4, 64](kw.asarray(a), kw.asarray(b), c, 64)
    if row == "warp * 16" and filled == "256":
        product = a.astype(np.float64) @ b.astype(np.float64)
        np.testing.assert_array_equal(c.numpy(), product if store == BY_ROWS else product.T)
    return [finding.kind for finding in report]


@pytest.mark.parametrize("store", [BY_ROWS, BY_COLUMNS])
def test_neighbouring_tiles_of_one_matrix(store):
    assert findings(store) == []


@pytest.mark.parametrize("store", [BY_ROWS, BY_COLUMNS])
def test_tiles_that_overlap(store):
    assert findings(store, row="warp * 8") == ["race"]


def test_a_line_that_nothing_wrote():
    assert findings(BY_ROWS, filled="240") == ["init"]
