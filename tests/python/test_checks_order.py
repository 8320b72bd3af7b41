"""The race check in every schedule: hidden by atomics, early loads, the farthest finding."""

import os

import numpy as np
import pytest
from children import run_child

import kernwright as kw

pytestmark = pytest.mark.usefixtures("sim")

SCHEDULES = [None, *range(1, 13)]


def findings(source, grid, block, schedule=None, count=256, dtype="int32", **defines):
    """Of one launch on zeros, by the race check."""
    kernel = kw.kernel(source, defines=defines)
    data = kw.asarray(np.zeros(count, dtype))
    with kw.checks("race") as report, kw.checks.schedule(schedule):
        kernel[grid, block](data)
    return list(report)


HIDDEN = """__global__ void k(int* d) {
    if (blockIdx.x == 0 && threadIdx.x == 0) FIRST;
    SYNC;
    if (threadIdx.x == 0) atomicAdd(d, 1);
}"""


@pytest.mark.parametrize("sync", ["__syncthreads()", "__syncwarp()", ""])
@pytest.mark.parametrize("first", ["*d = 7", "*(short*)d = 7", "((int2*)d)[0] = make_int2(7, 8)"])
def test_a_plain_write_before_atomic_operations_races_with_other_blocks(first, sync):
    for schedule in SCHEDULES:
        found = findings(HIDDEN, 2, 64, schedule, FIRST=first, SYNC=sync)
        assert found, schedule
        assert {finding.hint[:6] for finding in found} == {"blocks"}
        assert not findings(HIDDEN, 1, 64, schedule, FIRST=first, SYNC=sync)


LAST = """__global__ void k(int* d) {
    __shared__ bool last;
    if (threadIdx.x == 0) { __threadfence(); last = COUNT == gridDim.x - 1; }
    __syncthreads();
    if (last && threadIdx.x == WHO) RESET;
}"""


@pytest.mark.parametrize("who", [0, 40])
@pytest.mark.parametrize("reset", ["*d = 0", "d[1] = *d"])
@pytest.mark.parametrize("count", ["atomicAdd(d, 1)", "atomicInc((unsigned*)d, gridDim.x)"])
def test_the_last_of_several_blocks_may_use_the_counter_plainly(who, reset, count):
    """The value of the last atomic operation comes from all before it."""
    for schedule in SCHEDULES:
        assert not findings(LAST, 5, 64, schedule, WHO=who, RESET=reset, COUNT=count)


@pytest.mark.parametrize(
    "count",
    [
        "atomicAdd_block(d, 1)",  # does not reach other blocks
        "(atomicAdd(d, 1), blockIdx.x)",  # nobody uses the result
        "(atomicCAS(d, 9, 1), blockIdx.x)",  # swaps nothing
    ],
)
def test_a_counter_that_does_not_tell_of_other_blocks_orders_nothing(count):
    found = [findings(LAST, 5, 64, s, WHO=0, RESET="*d = 0", COUNT=count) for s in SCHEDULES]
    assert any(found)


def test_a_plain_reset_races_with_later_atomic_operations():
    source = LAST.replace("gridDim.x - 1", "gridDim.x - 2")
    for schedule in SCHEDULES:
        found = findings(source, 5, 64, schedule, WHO=0, RESET="*d = 0", COUNT="atomicAdd(d, 1)")
        assert found, schedule


def test_atomic_operations_of_other_blocks_hide_no_read():
    source = """__global__ void k(int* d) {
        if (blockIdx.x == READER) { if (threadIdx.x == 0) d[1] = *d; }
        else atomicAdd(d, 1);
    }"""
    for schedule in SCHEDULES:
        for reader in (0, 3):
            assert findings(source, 4, 64, schedule, READER=reader)
        assert not findings(source, 4, 64, schedule, READER=9)


def test_an_atomic_read_races_with_a_plain_write():
    source = """__global__ void k(int* d) {
        if (blockIdx.x == READER) {
            int x; asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(x) : "l"(d)); d[1] = x;
        } else WRITE;
    }"""
    for schedule in SCHEDULES:
        for reader in (0, 1):
            assert findings(source, 2, 1, schedule, READER=reader, WRITE="*d = 3")
            assert not findings(source, 2, 1, schedule, READER=reader, WRITE="atomicExch(d, 3)")


EARLY = """__global__ void k(float* out) {
    __shared__ TYPE s[2];
    if (threadIdx.x == 0) { *(char*)&s[0] = out[0]; *(char*)&s[1] = out[1]; }
    __syncthreads();
    TYPE v = TAKES ? s[0] : TYPE();
    BETWEEN;
    if (threadIdx.x == 0) s[0] = s[1];
    __syncthreads();
    out[threadIdx.x] = *(char*)&v + *(char*)&s[0];
}"""


@pytest.mark.parametrize("kind", ["float", "double", "char", "short", "float2", "float4"])
def test_loads_count_for_the_lanes_that_take_them(kind):
    for schedule in SCHEDULES[:5]:

        def races(takes, between="", schedule=schedule):
            defines = {"TYPE": kind, "TAKES": takes, "BETWEEN": between}
            found = findings(EARLY, 1, 64, schedule, dtype="float32", **defines)
            return {finding.hint.split("put ")[1].split("(")[0] for finding in found}

        assert races("threadIdx.x == 0") == set()
        assert races("out[200] > 1") == set()
        assert races("threadIdx.x == 5") == {"__syncwarp"}
        assert races("threadIdx.x == 5", "__syncwarp()") == set()
        assert races("threadIdx.x == 40") == {"__syncthreads"}
        assert races("threadIdx.x == 40", "__syncwarp()") == {"__syncthreads"}
        assert "__syncthreads" in races("threadIdx.x >= 3")
        assert races("threadIdx.x >= 3", "__syncthreads()") == set()


def test_an_early_load_behind_a_branch_counts_there():
    source = """__global__ void k(float* out) {
        __shared__ float s[64];
        s[threadIdx.x] = threadIdx.x;
        __syncthreads();
        float v = s[63 - threadIdx.x];
        if (threadIdx.x < TAKERS) out[threadIdx.x] = v;
        if (threadIdx.x == 63) s[63] = 1;
    }"""
    for schedule in SCHEDULES[:5]:
        assert findings(source, 1, 64, schedule, dtype="float32", TAKERS=1)
        assert not findings(source, 1, 64, schedule, dtype="float32", TAKERS=0)


def test_early_loads_of_global_memory():
    source = """__global__ void k(float* d) {
        float early;
        asm volatile("{ .reg .pred p; .reg .f32 x; setp.ne.u32 p, %1, 0;"
                     "ld.global.f32 x, [%2]; selp.f32 %0, x, 0f00000000, p; }"
                     : "=f"(early) : "r"((int)(TAKES)), "l"(d));
        d[64 + blockIdx.x * blockDim.x + threadIdx.x] = early;
        if (blockIdx.x == 1 && threadIdx.x == 0) d[0] = 1;
    }"""
    for schedule in SCHEDULES[:5]:
        for takes in ("blockIdx.x == 0 && threadIdx.x == 5", "threadIdx.x == 40", "true"):
            assert findings(source, 2, 64, schedule, dtype="float32", TAKES=takes)
        own = "blockIdx.x == 1 && threadIdx.x == 0"
        assert not findings(source, 2, 64, schedule, dtype="float32", TAKES=own)
        assert not findings(source, 2, 64, schedule, dtype="float32", TAKES="false")


BLUR = """__global__ void k(float* d) {
    __shared__ float tile[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = d[i];
    SYNC;
    if (threadIdx.x > 0) d[i + 512] = tile[threadIdx.x] + tile[threadIdx.x - 1];
}"""
SHIFT = """__global__ void k(float* d) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    d[i + 1] = 2;
    SYNC;
    d[i + 512] = d[i];
}"""


@pytest.mark.parametrize(
    ("source", "sync", "grid", "hint"),
    [
        (BLUR, "", 4, "__syncthreads()"),
        (BLUR, "__syncwarp()", 4, "__syncthreads()"),
        (BLUR, "__syncthreads()", 4, None),
        (SHIFT, "", 4, "blocks run in any order"),
        (SHIFT, "__syncthreads()", 4, "blocks run in any order"),
        (SHIFT, "__syncwarp()", 1, "__syncthreads()"),
        (SHIFT, "__syncthreads()", 1, None),
    ],
)
def test_of_merged_races_the_farthest_tells_what_to_do(source, sync, grid, hint):
    for schedule in SCHEDULES:
        found = findings(source, grid, 64, schedule, 1024, "float32", SYNC=sync)
        if hint is None:
            assert not found, schedule
        else:  # under a seed both orders of the two accesses are findings
            assert any(hint in finding.hint for finding in found), schedule
            assert schedule is not None or len(found) == 1


def test_races_of_a_cluster_take_the_barrier_of_a_cluster():
    program = """
        import numpy as np, kernwright as kw
        kernel = kw.kernel('''__global__ void __cluster_dims__(2) k(float* d) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            d[i + 1] = 1;
            d[i + 512] = d[i];
        }''', arch="sm_90a")
        for grid in (2, 4):
            with kw.checks("race") as report, kw.checks.schedule(None):
                kernel[grid, 64](kw.asarray(np.zeros(1024, "float32")))
            print(sorted({finding.hint.split("(")[0][:17] for finding in report}))
    """
    environment = {"KERNWRIGHT_DEVICE": "sim", "KERNWRIGHT_SIM_CAPABILITY": "9.0"}
    ended = run_child(program, **environment)
    assert ended.out == "['put cluster.sync']\n['blocks run in any']\n", ended.err


@pytest.mark.parametrize("checks", [("race",), ("init",), ("init", "race")])
def test_checks_end_at_the_last_addresses(checks):
    """One process for all accesses: a check that runs past 2**64 would never end."""
    program = f"""
        import kernwright as kw
        kinds = {{"char": 1, "short": 2, "int": 4, "long long": 8, "float4": 16}}
        for access in ("out[0] = *(const char*)p", "*p = {{}}"):
            for kind, size in kinds.items():
                source = "__global__ void k(TYPE* p, char* out) {{ %s; }}" % access
                kernel = kw.kernel(source, defines={{"TYPE": kind}})
                for packs in (1, 2, 3, 4):
                    out = kw.zeros(16, "int8")
                    try:
                        with kw.checks(*{checks!r}):
                            kernel[1, 1](kw.Pointer(2**64 - packs * size), out)
                    except kw.DeviceFault:
                        print(access, kind, packs, "fault")
                    kw.current_device().reset()
    """
    environment = {**os.environ, "KERNWRIGHT_DEVICE": "sim", "KERNWRIGHT_SIM_TIMEOUT": "5"}
    ended = run_child(program, **environment)
    faults = [
        f"{access} {kind} {packs} fault"
        for access in ("out[0] = *(const char*)p", "*p = {}")
        for kind in ("char", "short", "int", "long long", "float4")
        for packs in (1, 2, 3, 4)
    ]
    assert ended.out.splitlines() == faults, ended.err


def test_an_atomic_that_left_the_value_of_a_store_is_a_race_all_the_same():
    """In another order the sum is another."""
    text = "__global__ void k(int* d) { if (blockIdx.x == STORES) d[0] = 1; else atomicAdd(d, 1); }"
    for storing in (0, 1):
        for schedule in SCHEDULES:
            found = findings(text, 2, 1, schedule, STORES=storing)
            assert [finding.kind for finding in found] == ["race"]
