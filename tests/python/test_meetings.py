"""Lanes and warps that wait for each other in less common ways: results, and no finding."""

import numpy as np
import pytest

import kernwright as kw

pytestmark = pytest.mark.usefixtures("sim")


def run(text, blocks, threads, *args, checks=("init", "race", "sync")):
    """Runs without the checks and, with fresh results, under them. Returns the findings."""
    kernel = kw.kernel(text)
    kernel[blocks, threads](*args)
    with kw.checks(*checks) as report:
        kernel[blocks, threads](*args)
    return report


def test_syncwarp_in_both_branches():
    out = kw.zeros(32, "int32")
    report = run(
        """__global__ void f(int* o) {
    __shared__ int s[32];
    int t = threadIdx.x;
    if (t < 16) {
        s[t] = t;
        __syncwarp();
        o[t] = s[t + 16] + 1;
    } else {
        s[t] = t;
        __syncwarp();
        o[t] = s[t - 16] + 2;
    }
}""",
        1,
        32,
        out,
    )
    lanes = np.arange(32)
    assert np.array_equal(out.numpy(), (lanes ^ 16) + np.where(lanes < 16, 1, 2))
    assert not report, str(report)


def test_a_race_beside_a_meeting_in_branches_is_found():
    report = run(
        """__global__ void f(int* o) {
    __shared__ int s[32];
    int t = threadIdx.x;
    if (t < 16) {
        __syncwarp();
        s[t] = t;
        o[t] = t;
    } else {
        __syncwarp();
        o[t] = s[t - 16];
    }
}""",
        1,
        32,
        kw.zeros(32, "int32"),
        checks=("race",),
    )
    assert {finding.lines for finding in report} == {(6, 10)}


@pytest.mark.parametrize("size", [64, 128, 256])
def test_tiles_of_several_warps_leave_shared_memory_alone(size):
    text = f"""#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__global__ void f(const int* a, int* o, int* sums) {{
    __shared__ cg::block_tile_memory<256> scratch;
    __shared__ int s[256];
    auto block = cg::this_thread_block(scratch);
    auto tile = cg::tiled_partition<{size}>(block);
    int r = block.thread_rank();
    s[r] = a[r];
    tile.sync();
    int sum = cg::reduce(tile, a[r], cg::plus<int>());
    o[r] = s[r / {size} * {size} + (r + 1) % {size}];
    sums[r] = sum;
}}"""
    a = np.arange(256, dtype=np.int32) * 3 + 1000
    out, sums = kw.zeros(256, "int32"), kw.zeros(256, "int32")
    report = run(text, 2, 256, kw.asarray(a), out, sums, checks=("init", "sync"))
    tiles = a.reshape(-1, size)
    assert np.array_equal(out.numpy(), np.roll(tiles, -1, axis=1).ravel())
    assert np.array_equal(sums.numpy(), np.repeat(tiles.sum(axis=1), size))
    assert not report, str(report)


def test_tiles_of_several_warps_order_their_threads():
    text = """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void f(int* o) {
    __shared__ cg::block_tile_memory<128> scratch;
    __shared__ int s[128];
    auto block = cg::this_thread_block(scratch);
    auto tile = cg::tiled_partition<64>(block);
    int r = block.thread_rank();
    s[r] = r;
    tile.sync();
    o[r] = s[r ^ 32];
}"""
    out = kw.zeros(128, "int32")
    report = run(text, 1, 128, out)
    assert np.array_equal(out.numpy(), np.arange(128) ^ 32)
    assert not report, str(report)
    report = run(text.replace("r ^ 32", "r ^ 64"), 1, 128, out, checks=("race",))
    assert {finding.lines for finding in report} == {(9, 11)}


def test_shared_memory_ends_where_the_systems_part_does_not_begin():
    text = """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void f(int* o, int n) {
    __shared__ cg::block_tile_memory<64> scratch;
    extern __shared__ int s[];
    auto tile = cg::tiled_partition<64>(cg::this_thread_block(scratch));
    s[n] = 1;
    tile.sync();
    o[0] = s[0];
}"""
    kernel = kw.kernel(text)
    with pytest.raises(kw.DeviceFault, match="out of bounds"):
        kernel[1, 64, 256](kw.zeros(1, "int32"), 400)


@pytest.mark.parametrize("lock, data", [(0, 1), (1, 0)])
def test_a_lock_orders_wherever_it_lies(lock, data):
    out = kw.zeros(64, "int32")
    report = run(
        f"""__global__ void f(int* o) {{
    __shared__ int s[2];
    if (threadIdx.x < 2) s[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x % 32 == 0) {{
        while (atomicCAS(&s[{lock}], 0, 1)) {{}}
        __threadfence_block();
        s[{data}]++;
        __threadfence_block();
        atomicExch(&s[{lock}], 0);
    }}
    __syncthreads();
    o[threadIdx.x] = s[{data}];
}}""",
        1,
        64,
        out,
    )
    assert np.all(out.numpy() == 2)
    assert not report, str(report)


@pytest.mark.parametrize("kind, count", [("int", 10), ("char", 5), ("float3", 3), ("short", 7)])
def test_the_end_of_a_local_array_is_its_own(kind, count):
    value = "make_float3(i, i, i)" if kind == "float3" else "i"
    text = f"""__global__ void f(int* o, int n) {{
    {kind} t[{count}];
    #pragma unroll 1
    for (int i = 0; i <= n; i++) t[i] = {value};
    {kind} last = t[o[threadIdx.x] % {count}];
    o[threadIdx.x] = {"last.x" if kind == "float3" else "last"};
}}"""
    kernel = kw.kernel(text)
    kernel[1, 32](kw.zeros(32, "int32"), count - 1)
    with pytest.raises(kw.DeviceFault) as caught:
        kernel[1, 32](kw.zeros(32, "int32"), count)
    assert (caught.value.kind, caught.value.line) == ("bounds", 4)
