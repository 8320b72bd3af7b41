"""Lanes and warps that wait for each other in less common ways: results, and no finding."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "sim"))
import corpus

import kernwright as kw

pytestmark = pytest.mark.usefixtures("sim")


def run(text, blocks, threads, *args, checks=("init", "race", "sync")):
    """Runs without the checks and, with fresh results, under them. Returns the findings."""
    if package := corpus.lacks_headers_of(text):
        pytest.skip(f"needs the headers of {package}")
    kernel = kw.kernel(text)
    kernel[blocks, threads](*args)
    with kw.checks(*checks) as report:
        kernel[blocks, threads](*args)
    return report


BRANCHES = """__global__ void f(int* o) {
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t < LIMIT) {
        s[t] = t;
        asm volatile("bar.sync %0;" ::"r"(NUMBER) : "memory");
        o[t] = s[63 - t] + 1;
    } else {
        s[t] = t * 2;
        asm volatile("bar.sync %0;" ::"r"(NUMBER) : "memory");
        o[t] = s[63 - t] + 2;
    }
}"""


@pytest.mark.parametrize(
    "number, limit, found", [(15, 32, 0), (0, 32, 1), (15, 40, 1)], ids=["named", "0", "in a warp"]
)
def test_a_barrier_in_both_branches(number, limit, found):
    out = kw.zeros(64, "int32")
    text = BRANCHES.replace("NUMBER", str(number)).replace("LIMIT", str(limit))
    report = run(text, 1, 64, out)
    assert [finding.kind for finding in report] == ["sync"] * found
    t = np.arange(64)
    written = np.where(t < limit, t, t * 2)
    assert np.array_equal(out.numpy(), written[::-1] + np.where(t < limit, 1, 2))


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
    if package := corpus.lacks_headers_of(text):
        pytest.skip(f"needs the headers of {package}")
    kernel = kw.kernel(text)
    with pytest.raises(kw.DeviceFault, match="out of bounds"):
        kernel[1, 64, None, 256](kw.zeros(1, "int32"), 400)


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


@pytest.mark.parametrize(
    "text, lines",
    [
        # The reader's own atomic operation is the last one; others' came before.
        (
            """__global__ void f(int* o) {
    __shared__ int c;
    if (threadIdx.x == 0) c = 0;
    __syncthreads();
    atomicAdd(&c, 1);
    if (threadIdx.x == 255) o[0] = c;
}""",
            {(5, 6)},
        ),
        (
            """__global__ void f(int* o) {
    if (threadIdx.x == 0) {
        atomicAdd(o + 1, 1);
        if (atomicAdd(o, 1) % 8 == 7) o[2] = o[1];
    }
}""",
            {(3, 4)},
        ),
        (
            """__global__ void f(int* o) {
    if (threadIdx.x != 0) return;
    if (blockIdx.x == 3) while (atomicAdd(o + 1, 0) % 8 != 7) {}  // orders nothing
    atomicCAS(o, 0, 1 + blockIdx.x), atomicCAS(o, 77, 1 + blockIdx.x);
    if (blockIdx.x == 3) o[0] = 77;
    atomicAdd(o + 1, 1);
}""",
            {(4, 5)},
        ),
    ],
)
def test_a_threads_own_atomic_operation_hides_no_other(text, lines):
    report = run(text, 8, 256, kw.zeros(4, "int32"), checks=("race",))
    assert {finding.lines for finding in report} == lines
    with kw.checks("race") as again:  # what is known of a launch is over with it
        kw.kernel("__global__ void g(int* o) { o[threadIdx.x] += 1; }")[1, 4](kw.zeros(4, "int32"))
    assert not again


def test_atomic_operations_that_barriers_and_fences_order_are_no_race():
    out = kw.zeros(4, "int32")
    report = run(
        """__global__ void f(int* o) {
    __shared__ int c;
    if (threadIdx.x == 0) c = 0;
    __syncthreads();
    atomicAdd(&c, 1);
    __syncthreads();
    if (threadIdx.x == 255) {
        atomicAdd(o + 1, c);
        __threadfence();
        if (atomicAdd(o, 1) % gridDim.x == gridDim.x - 1) {
            __threadfence();
            o[2] = o[1];
        }
    }
}""",
        8,
        256,
        out,
    )
    assert not report, str(report)
    assert out.numpy().tolist() == [16, 4096, 4096, 0]


@pytest.mark.parametrize("sync", ["__syncwarp(0xffffu << (t & 16))", "tile.sync()"])
def test_part_of_a_warp_orders_that_part_alone(sync):
    text = f"""#include <cooperative_groups.h>
__global__ void f(const int* a, int* o) {{
    auto tile = cooperative_groups::tiled_partition<16>(cooperative_groups::this_thread_block());
    __shared__ int s[32];
    int t = threadIdx.x;
    s[t] = a[t];
    __syncwarp();
    int v = s[t % 8];
    {sync};
    s[t] = v + t;
    o[t] = s[t];
}}"""
    report = run(text, 1, 32, kw.zeros(32, "int32"), kw.zeros(32, "int32"), checks=("race",))
    assert {finding.lines for finding in report} == {(8, 10)}
    inside = text.replace("s[t % 8]", "s[(t & 16) + t % 8]")
    report = run(inside, 1, 32, kw.zeros(32, "int32"), kw.zeros(32, "int32"))
    assert not report, str(report)


def test_division_of_128_bits():
    kernel = kw.kernel(
        """__global__ void f(const unsigned long long* a, const unsigned long long* b,
                  unsigned long long* q, unsigned long long* r, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned __int128 x = (unsigned __int128)a[2 * i + 1] << 64 | a[2 * i];
    unsigned __int128 y = (unsigned __int128)b[2 * i + 1] << 64 | b[2 * i];
    unsigned __int128 d = x / y, m = x % y;
    q[2 * i] = d; q[2 * i + 1] = d >> 64;
    r[2 * i] = m; r[2 * i + 1] = m >> 64;
}""",
        extra=["--device-int128"],
    )
    random = np.random.default_rng(11)
    n = 300
    # Of every width, so that quotients are long and short, and some are zero.
    words = random.integers(0, 2**64, (2, n, 2), dtype=np.uint64)
    words[:, :, 0] |= 1
    words[:, :, 1] >>= random.integers(0, 64, (2, n)).astype(np.uint64)
    words[:, : n // 3, 1] *= random.integers(0, 2, (2, n // 3)).astype(np.uint64)
    a, b = words
    q, r = kw.zeros((n, 2), "uint64"), kw.zeros((n, 2), "uint64")
    kernel[4, 96](kw.asarray(a), kw.asarray(b), q, r, n)

    def numbers(array):
        return [int(low) | int(high) << 64 for low, high in array]

    expected = [divmod(x, y) for x, y in zip(numbers(a), numbers(b), strict=True)]
    assert list(zip(numbers(q.numpy()), numbers(r.numpy()), strict=True)) == expected


def test_processors_have_numbers_below_their_count():
    out = kw.zeros((64, 2), "uint32")
    kw.kernel(
        """__global__ void f(unsigned* o) {
    asm volatile("mov.u32 %0, %%smid;" : "=r"(o[2 * blockIdx.x]));
    asm volatile("mov.u32 %0, %%nsmid;" : "=r"(o[2 * blockIdx.x + 1]));
}"""
    )[64, 1](out)
    smid, nsmid = out.numpy().T
    assert np.all(smid < nsmid)
    assert set(nsmid) == {kw.current_device().attributes["multiprocessor_count"]}


PLACES = """__global__ void f(unsigned* o) {
    unsigned* row = o + 3 * ((blockIdx.x * blockDim.x + threadIdx.x) / 32);
    asm volatile("mov.u32 %0, %%warpid;" : "=r"(row[0]));
    asm volatile("mov.u32 %0, %%nwarpid;" : "=r"(row[1]));
    asm volatile("mov.u32 %0, %%smid;" : "=r"(row[2]));
}"""


def test_places_of_warps_and_blocks_differ_from_launch_to_launch_under_checks(sim):
    """A GPU puts them anywhere: what relies on one place is wrong there."""
    kernel, slots = kw.kernel(PLACES), sim.attributes["max_threads_per_multiprocessor"] // 32
    drawn = []
    with sim:
        for is_checked in (False, False, True, True, True):
            out = kw.zeros((5, 3, 3), "uint32")
            if is_checked:
                with kw.checks("init") as report:
                    kernel[5, 96](out)
                assert not report, str(report)
            else:
                kernel[5, 96](out)
            places = out.numpy()
            assert set(places[..., 1].flat) == {slots}
            for block in places:
                assert len(set(block[:, 0])) == 3 and max(block[:, 0]) < slots
                assert len(set(block[:, 2])) == 1
            assert len(set(places[:, 0, 2])) == 5
            drawn.append(places)
    assert np.array_equal(drawn[0], drawn[1])
    assert drawn[0][0].tolist() == [[warp, slots, 0] for warp in range(3)]
    assert len({places[..., 0].tobytes() for places in drawn[1:]}) == 4
    assert len({places[..., 2].tobytes() for places in drawn[1:]}) > 2


def test_blocks_of_a_cooperative_launch_may_wait_for_each_other():
    text = """__global__ void f(int* n) {
    atomicAdd(n, 1);
    while (*(volatile int*)n < (int)gridDim.x) {}
}"""
    kernel = kw.kernel(text)
    kernel.launch(kw.LaunchConfig(grid=300, block=1, cooperative=True), kw.zeros(1, "int32"))


def test_a_place_inside_the_compilers_functions_is_the_callers():
    text = """__global__ void f(int* o) {
    o[0] = 1;
    atomicAdd(o + 5, 1);
}"""
    kernel = kw.kernel(text, device_debug=True)
    with pytest.raises(kw.DeviceFault) as caught:
        kernel[1, 1](kw.zeros(1, "int32"))
    assert caught.value.line == 3


def test_reads_of_padding_name_the_bytes():
    text = """struct Q { char c; int i; };
__global__ void fill(Q* q) { q[threadIdx.x].c = 1; q[threadIdx.x].i = 2; }
__global__ void hash(const Q* q, int* r) {
    int2 words = *(const int2*)(q + threadIdx.x);
    r[threadIdx.x] = words.x ^ 31 * words.y;
}"""
    module = kw.module(text)
    with kw.checks("init") as report:
        q, r = kw.empty(256, "uint8"), kw.empty(32, "int32")
        module["fill"][1, 32](q)
        module["hash"][1, 32](q, r)
    (finding,) = report
    assert "of which nothing has written bytes 1 to 3" in finding.message
    assert "padding" in finding.hint


def test_two_lanes_of_one_instruction_are_told_so():
    with kw.checks("race") as report:
        kw.kernel("__global__ void f(int* o) { o[threadIdx.x / 2] = threadIdx.x; }")[1, 32](
            kw.zeros(16, "int32")
        )
    (finding,) = report
    assert "two lanes of one instruction" in finding.hint


@pytest.mark.parametrize("barrier, found", [("", {(4, 6)}), ("__syncthreads();", set())])
def test_an_mbarrier_is_used_after_a_barrier_behind_its_init(barrier, found):
    report = run(
        f"""__global__ void f(float* o) {{
    __shared__ unsigned long long bar;
    unsigned at = (unsigned)__cvta_generic_to_shared(&bar);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" :: "r"(at));
    {barrier}
    asm volatile("{{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }}" :: "r"(at) : "memory");
    o[threadIdx.x] = 1;
}}""",
        1,
        64,
        kw.zeros(64, "float32"),
        checks=("race",),
    )
    assert {finding.lines for finding in report} == found


def test_the_other_access_has_the_bytes_that_it_touched():
    with kw.checks("race") as report:
        kw.kernel(
            """__global__ void f(unsigned char* a, uint4* o) {
    __shared__ alignas(16) unsigned char s[512];
    ((uint4*)s)[threadIdx.x] = make_uint4(0, 0, 0, 0);
    __syncthreads();
    if (threadIdx.x == 0) s[16 + 5] = 0xab;
    if (threadIdx.x == 1) o[0] = ((uint4*)s)[1];
}"""
        )[1, 32](kw.zeros(16, "uint8"), kw.zeros((1, 4), "uint32"))
    (finding,) = report
    assert finding.lines == (5, 6)
    assert finding.other.value == "0xab"
    assert finding.value == "0x" + "00" * 10 + "ab" + "00" * 5
