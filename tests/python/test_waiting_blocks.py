"""Blocks of plain launches that wait for each other, as a GPU that holds all of them runs them."""

import numpy as np
import pytest
from children import run_child

import kernwright as kw

FLAGS = """
__device__ int load(const int* p) {
    int x;
    asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(x) : "l"(p) : "memory");
    return x;
}
__device__ void store(int* p, int x) {
    asm volatile("st.release.gpu.global.b32 [%0], %1;" :: "l"(p), "r"(x) : "memory");
}
"""

# Each block adds to what the one before it (`step` 1) or behind it (-1) left.
CHAIN = (
    FLAGS
    + """__global__ void chain(int* sum, int* flag, int step) {
    int before = (int)blockIdx.x - step, first = before < 0 || before >= gridDim.x;
    if (threadIdx.x == 0 && !first) while (load(flag + before) == 0) {}
    __syncthreads();
    if (threadIdx.x == 40) sum[blockIdx.x] = (first ? 0 : sum[before]) * 3 + blockIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) store(flag + blockIdx.x, 1);
}"""
)

# A barrier of the grid made by hand, between the steps of a stencil.
BARRIER = (
    FLAGS
    + """__global__ void steps(int* x, int* y, int* count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, last = gridDim.x * blockDim.x - 1;
    for (int k = 1; k <= n; ++k) {
        y[i] = x[i] + x[i > 0 ? i - 1 : last] % 7 + x[i < last ? i + 1 : 0] % 5;
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(count, 1);
            while (load(count) < k * gridDim.x) {}
        }
        __syncthreads();
        int* other = x; x = y; y = other;
    }
}"""
)

# All wait for the last block.
LAST = (
    FLAGS
    + """__global__ void last(int* flag) {
    if (blockIdx.x == gridDim.x - 1) store(flag, 1);
    while (load(flag) == 0) {}
}"""
)

# Blocks wait for those behind them in loops that hold more than the load: barriers of the block, or
# much that is done once only.
LOOPS = {
    "barriers": """
        __shared__ int seen;
        do {
            if (threadIdx.x == 40) seen = load(flag + blockIdx.x + 1);
            __syncthreads();
        } while (!__syncthreads_and(seen));
        x = sum[blockIdx.x + 1] * 3;""",
    "much work": """
        for (bool waits = true; waits;) {
            if (load(flag + blockIdx.x + 1) == 0) continue;
            x = sum[blockIdx.x + 1];
            #pragma unroll
            for (int i = 0; i < 200; ++i) x = (x ^ x >> 3) * (i | 1) + i;
            x *= 3;
            waits = false;
        }
        __syncthreads();""",
}
BACKWARDS = (
    FLAGS
    + """__global__ void backwards(unsigned* sum, int* flag) {
    unsigned x = 0;
    if (blockIdx.x < gridDim.x - 1) { WAIT }
    if (threadIdx.x == 0) {
        sum[blockIdx.x] = x + blockIdx.x;
        store(flag + blockIdx.x, 1);
    }
}"""
)

PROGRAM = """
import kernwright as kw
kernel = kw.kernel('''{source}''')
flag = kw.zeros(1, "int32")
try:
    kernel[{grid}, 1, None, {shared}](flag)
    kw.current_device().synchronize()
    print("ended")
except kw.Timeout as error:
    print(error)
"""


@pytest.fixture(scope="module")
def chain():
    return kw.kernel(CHAIN)


@pytest.fixture(scope="module")
def steps():
    return kw.kernel(BARRIER)


def check_chain(chain, blocks, step):
    total, flag = kw.zeros(blocks, "int32"), kw.zeros(blocks, "int32")
    chain[blocks, 64](total, flag, step)
    expected = np.zeros(blocks, np.int32)
    order = range(blocks) if step > 0 else range(blocks - 1, -1, -1)
    before = 0
    for block in order:
        with np.errstate(over="ignore"):
            before = np.int32(before) * np.int32(3) + np.int32(block)
        expected[block] = before
    np.testing.assert_array_equal(total.numpy(), expected)


def check_steps(steps, blocks, count):
    n = blocks * 64
    x = np.arange(n, dtype=np.int32) * 37 % 101
    on_device, other = kw.asarray(x), kw.zeros(n, "int32")
    steps[blocks, 64](on_device, other, kw.zeros(1, "int32"), count)
    for _ in range(count):
        x = x + np.roll(x, 1) % 7 + np.roll(x, -1) % 5
    np.testing.assert_array_equal((other if count % 2 else on_device).numpy(), x)


def check_backwards(kernel, loop, blocks):
    total, flag = kw.zeros(blocks, "uint32"), kw.zeros(blocks, "int32")
    kernel[blocks, 64](total, flag)
    expected, before = [], None
    for block in range(blocks - 1, -1, -1):
        x = 0 if before is None else before
        if before is not None and loop == "much work":
            for i in range(200):
                x = ((x ^ x >> 3) * (i | 1) + i) % 2**32
        before = (x * 3 + block) % 2**32
        expected.insert(0, before)
    np.testing.assert_array_equal(total.numpy(), np.array(expected, np.uint32))


@pytest.mark.parametrize("loop", LOOPS)
def test_loops_that_hold_more_than_the_wait(loop):
    check_backwards(kw.kernel(BACKWARDS.replace("WAIT", LOOPS[loop])), loop, 24)


@pytest.mark.parametrize("loop", LOOPS)
def test_such_loops_under_checks_and_in_any_order(sim, loop):
    kernel = kw.kernel(BACKWARDS.replace("WAIT", LOOPS[loop]))
    with kw.checks("init", "race", "sync") as report:
        check_backwards(kernel, loop, 12)
    report.raise_if_any()
    for seed in range(3):
        with kw.checks.schedule(seed):
            check_backwards(kernel, loop, 12)


@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize("blocks", [1, 2, 30])
def test_a_chain_in_either_direction(chain, blocks, step):
    check_chain(chain, blocks, step)


@pytest.mark.parametrize("blocks", [1, 3, 20])
def test_a_barrier_of_the_grid_made_by_hand(steps, blocks):
    check_steps(steps, blocks, 5)


def test_checks_find_nothing(sim, chain, steps):
    with kw.checks("init", "race", "sync") as report:
        check_chain(chain, 12, -1)
        check_steps(steps, 6, 3)
    report.raise_if_any()


@pytest.mark.parametrize("seed", range(4))
def test_under_any_order(sim, chain, steps, seed):
    with kw.checks.schedule(seed):
        check_chain(chain, 40, 1)
        check_chain(chain, 40, -1)
        check_steps(steps, 9, 3)


@pytest.mark.parametrize("threads", ["1", "2", "7"])
@pytest.mark.parametrize("seed", ["", "5"])
def test_on_any_number_of_host_threads(sim, threads, seed):
    environment = {"KERNWRIGHT_DEVICE": "sim", "KERNWRIGHT_SIM_THREADS": threads}
    if seed:
        environment["KERNWRIGHT_SIM_SEED"] = seed
    ended = run_child(PROGRAM.format(source=LAST, grid=200, shared=0), **environment)
    assert ended.out == "ended\n", ended.err


@pytest.mark.parametrize("work", ['printf("w")', "__match_any_sync(~0u, threadIdx.x)"])
def test_what_takes_long_in_a_loop_that_waits_is_no_sign_of_work(sim, work):
    program = f"""
import kernwright as kw
kernel = kw.kernel('''__global__ void wait(volatile int* x) {{
    if (blockIdx.x == 1) x[1] = 1;
    else while (x[1] == 0) x[2 + threadIdx.x] = {work};
}}''')
x = kw.zeros(34, "int32")
kernel[2, 32](x)
assert x.numpy()[1] == 1
print("\\nended")
"""
    environment = {"KERNWRIGHT_DEVICE": "sim", "KERNWRIGHT_SIM_THREADS": "1"}
    ended = run_child(program, **environment)
    assert ended.out.endswith("ended\n"), ended.err


@pytest.mark.parametrize(("checks", "ending"), [("init", "ended\n"), ("race", "a warp ran more")])
def test_fences_count_for_what_they_cost_the_race_check(sim, checks, ending):
    program = """
import kernwright as kw
kernel = kw.kernel("__global__ void k(int n) { for (int i = 0; i < n; ++i) __threadfence(); }")
try:
    kernel[2, 32](1000)
    kw.current_device().synchronize()
    print("ended")
except kw.Timeout as error:
    print(error)
"""
    environment = {"KERNWRIGHT_DEVICE": "sim", "KERNWRIGHT_SIM_BUDGET": "100000"}
    ended = run_child(program, **environment, KERNWRIGHT_CHECKS=checks)
    assert ending in ended.out, ended


@pytest.mark.parametrize("seed", ["", "5"])
def test_more_blocks_than_the_device_holds_wait_in_vain(sim, seed):
    environment = {"KERNWRIGHT_DEVICE": "sim", "KERNWRIGHT_SIM_BUDGET": "3000000"}
    if seed:
        environment["KERNWRIGHT_SIM_SEED"] = seed
    program = PROGRAM.format(source=LAST, grid=1000, shared=160000)  # one on each multiprocessor
    ended = run_child(program, **environment)
    assert "a warp ran more than 3000000 instructions" in ended.out, ended
    assert "blocks that have not begun" in ended.out


# The same with clusters, whose blocks wait for those of other clusters.
CLUSTERS = """
import numpy as np, kernwright as kw
kernels = kw.kernel('''{source}''', name="chain"), kw.kernel('''{barrier}''', name="steps")
for clusters in 1, 2, 15:
    blocks = 2 * clusters
    config = kw.LaunchConfig(grid=blocks, block=64, cluster=2)
    for step in 1, -1:
        total, flag = kw.zeros(blocks, "int32"), kw.zeros(blocks, "int32")
        kernels[0].launch(config, total, flag, step)
        expected, before = [0] * blocks, 0
        for block in range(blocks)[::step]:
            before = (before * 3 + block) % 2**32
            expected[block] = before
        assert total.numpy().view("uint32").tolist() == expected, (clusters, step)
    x = np.arange(blocks * 64, dtype=np.int32) * 37 % 101
    on_device, other = kw.asarray(x), kw.zeros(blocks * 64, "int32")
    kernels[1].launch(config, on_device, other, kw.zeros(1, "int32"), 4)
    for _ in range(4):
        x = x + np.roll(x, 1) % 7 + np.roll(x, -1) % 5
    assert (on_device.numpy() == x).all(), clusters
print("fine")
"""

# Each block adds what its cluster's other block has in shared memory, once a later cluster is done.
FAR = (
    FLAGS
    + """__global__ void __cluster_dims__(2, 1, 1) far(int* flag, int* y) {
    __shared__ int mine;
    unsigned other;
    int value, cluster = blockIdx.x / 2, last = gridDim.x / 2 - 1;
    mine = blockIdx.x;
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(other)
        : "r"((unsigned)__cvta_generic_to_shared(&mine)), "r"(blockIdx.x % 2 ^ 1));
    if (blockIdx.x % 2 == 0 && cluster < last) while (load(flag + cluster + 1) == 0) {}
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(other));
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    y[blockIdx.x] = value + (cluster < last ? y[blockIdx.x + 2] : 0);
    __threadfence();
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    if (blockIdx.x % 2 == 0) store(flag + cluster, 1);
}"""
)

SIMULATED_9 = {"KERNWRIGHT_DEVICE": "sim", "KERNWRIGHT_SIM_CAPABILITY": "9.0"}


@pytest.mark.parametrize("threads", ["1", "2", "7"])
@pytest.mark.parametrize("checks", ["", "all"])
def test_clusters_wait_for_others(sim, threads, checks):
    environment = {**SIMULATED_9, "KERNWRIGHT_SIM_THREADS": threads}
    if checks:
        environment["KERNWRIGHT_CHECKS"] = checks
    ended = run_child(CLUSTERS.format(source=CHAIN, barrier=BARRIER), **environment)
    assert (ended.out, ended.err.count("race:")) == ("fine\n", 0), ended.err


@pytest.mark.parametrize("threads", ["1", "3"])
def test_a_cluster_that_waits_keeps_its_shared_memory(sim, threads):
    program = f"""
import kernwright as kw
flag, y = kw.zeros(9, "int32"), kw.zeros(18, "int32")
kw.kernel('''{FAR}''', name="far")[18, 1](flag, y)
print(y.numpy().tolist())
"""
    ended = run_child(program, **SIMULATED_9, KERNWRIGHT_SIM_THREADS=threads)
    values = [sum(later ^ 1 for later in range(block, 18, 2)) for block in range(18)]
    assert ended.out == f"{values}\n", ended.err


def test_more_clusters_than_the_device_holds_wait_in_vain(sim):
    program = PROGRAM.format(source=LAST, grid=1000, shared=160000).replace(
        "kernel[1000, 1, None, 160000](flag)",
        "kernel.launch(kw.LaunchConfig(1000, 1, None, 160000, cluster=2), flag)",
    )
    ended = run_child(program, **SIMULATED_9, KERNWRIGHT_SIM_BUDGET="3000000")
    assert "a warp ran more than 3000000 instructions" in ended.out, ended
    assert "blocks that have not begun" in ended.out
