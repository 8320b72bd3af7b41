"""Shuffles in which some lanes take no part. CUDA leaves open what is read from those; GPUs give 0,
and reductions over parts of a warp rely on it."""

import numpy as np
import pytest

import kernwright as kw

SUM = """
__device__ int sum(unsigned mask, int v) {
    #pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) v += __shfl_down_sync(mask, v, offset);
    return v;
}
"""
WAYS = {
    "ballot": """unsigned mask = __ballot_sync(0xffffffffu, threadIdx.x < n);
        if (threadIdx.x < n) y[threadIdx.x] = sum(mask, x[threadIdx.x]);""",
    "early return": """if (threadIdx.x >= n) return;
        y[threadIdx.x] = sum(0xffffffffu, x[threadIdx.x]);""",
    "else": """if (threadIdx.x < n) y[threadIdx.x] = sum((1u << n) - 1, x[threadIdx.x]);
        else y[threadIdx.x] = sum(~((1u << n) - 1), -x[threadIdx.x]);""",
}


def reduced(values, lanes):
    """What each of the first lanes of a warp has after `sum`, 0 coming from all others."""
    v = np.zeros(64, np.int32)
    v[:lanes] = values[:lanes]
    for offset in (16, 8, 4, 2, 1):
        source = np.arange(32) + offset
        read = np.where(source < 32, v[source], v[:32])
        v[:lanes] += read[:lanes]
    return v[:lanes]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("lanes", [1, 8, 20, 31])
def test_sums_over_the_first_lanes(way, lanes):
    kernel = kw.kernel(
        f"{SUM}__global__ void k(const int* x, int* y, int n) {{ {WAYS[way]} }}", name="k"
    )
    values = np.arange(32, dtype=np.int32) * 7 + 1
    y = kw.zeros(32, "int32")
    kernel[1, 32](kw.asarray(values), y, lanes)
    np.testing.assert_array_equal(y.numpy()[:lanes], reduced(values, lanes))


@pytest.mark.parametrize("threads", [1, 20, 48])
def test_blocks_that_end_within_a_warp(threads):
    kernel = kw.kernel(
        f"{SUM}__global__ void k(const int* x, int* y) "
        "{ y[threadIdx.x] = sum(0xffffffffu, x[threadIdx.x]); }",
        name="k",
    )
    values = np.arange(threads, dtype=np.int32) * 5 - 3
    y = kw.zeros(threads, "int32")
    kernel[1, threads](kw.asarray(values), y)
    expected = [
        reduced(values[at : at + 32], min(32, threads - at)) for at in range(0, threads, 32)
    ]
    np.testing.assert_array_equal(y.numpy(), np.concatenate(expected))
