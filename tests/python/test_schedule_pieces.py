"""Best-effort launches in pieces: slices of kernels, runs of a graph's nodes; equal results."""

import numpy as np
import pytest
from children import run_child
from sliced_kernels import CASES

import kernwright as kw
from kernwright.schedule import Scheduler

# Each block takes long enough that a launch of many is longer than the window of best effort.
ROWS = r"""
__global__ void rows(const float* x, float* y, int n) {
    __shared__ float room[12000];  // few blocks at once on a multiprocessor
    room[threadIdx.x] = x[threadIdx.x];
    __syncwarp();
    float sum = 0;
    for (int i = 0; i < n; ++i) sum += room[i % 32] * (i + blockIdx.x);
    if (threadIdx.x == 0) y[blockIdx.x] = sum / gridDim.x + gridDim.y;
}
"""
COUNTS = "__device__ int calls;\n" + ROWS.replace("float sum = 0;", "float sum = calls;")
# A GPU does a turn in some nanoseconds.
TURNS = 100 if kw.current_device().is_simulated else 100_000


@pytest.fixture(scope="module")
def blocks():
    return 8 * kw.current_device().attributes["multiprocessor_count"]


@pytest.fixture
def arrays(blocks):
    rng = np.random.default_rng(2)
    return kw.asarray(rng.standard_normal(32).astype("f4")), kw.zeros(blocks)


def run_twice(scheduler, kernel, blocks, arrays, qos, turns=TURNS):
    """The numbers of launches of two tasks with equal work; their results are equal."""
    x, y = arrays
    launches, results = [], []
    for _ in range(2):
        y[...] = -1
        task = scheduler.submit(kernel[blocks, 32], x, y, turns, qos=qos)
        task.result()
        launches.append(task.stats["launches"])
        results.append(y.numpy())
    np.testing.assert_array_equal(*results)
    assert (results[0][:blocks] != -1).all()
    return launches


def test_long_kernels_of_best_effort_are_cut_once_they_are_measured(blocks, arrays):
    rows = kw.kernel(ROWS)
    with Scheduler() as scheduler:
        first, second = run_twice(scheduler, rows, blocks, arrays, "best_effort")
        assert first == 1 and second > 1
        assert run_twice(scheduler, rows, blocks, arrays, "guaranteed") == [1, 1]
        # Blocks that are all there at once may wait for each other.
        few = kw.current_device().attributes["multiprocessor_count"]
        assert run_twice(scheduler, rows, few, arrays, "best_effort", 1000) == [1, 1]


def test_what_cannot_be_cut_stays_whole(blocks, arrays):
    with Scheduler() as scheduler:
        counts = kw.kernel(COUNTS)
        assert run_twice(scheduler, counts, blocks, arrays, "best_effort") == [1, 1]


def test_slices_of_the_users_own_go_through_the_gate(blocks, arrays):
    rows = kw.kernel(ROWS)
    with Scheduler() as scheduler:
        task = scheduler.submit(rows.slice(blocks // 2)[blocks, 32], *arrays, 3, qos="best_effort")
        task.result()
        assert task.stats["launches"] == 2


def test_kernels_of_many_authors_are_bit_equal_in_slices_of_tasks():
    assert len(CASES) >= 30
    with Scheduler(memory=1 << 20, background=False) as scheduler:
        for case in CASES:
            kernel = kw.module(case.text, **case.options)[case.kernel]
            threads = int(np.prod(case.grid)) * case.block
            results, launches = [], []
            for each in (kernel, kernel.slice(2)):
                out = kw.asarray(np.arange(threads, dtype=np.int32) % 2)
                work = each[case.grid, case.block, None, case.shared]
                task = scheduler.submit(work, out, threads - 3, qos="best_effort")
                task.result()
                results.append(out.numpy().tobytes())
                launches.append(task.stats["launches"])
            assert results[0] == results[1], case.name
            assert launches[0] == 1 < launches[1], case.name


def test_graphs_of_best_effort_are_cut_at_their_nodes(blocks, arrays):
    rows = kw.kernel(ROWS)
    x, _ = arrays
    outputs = [kw.zeros(blocks) for _ in range(4)]
    graph = kw.Graph()
    with graph.capture(kw.Stream()) as stream:
        for i, each in enumerate(outputs):
            rows[blocks, 32, stream](x if i == 0 else outputs[i - 1], each, TURNS)
    graph.launch()
    kw.synchronize()
    expected = [each.numpy() for each in outputs]
    with Scheduler() as scheduler:
        launches = []
        for _ in range(3):
            for each in outputs:
                each[...] = 0
            task = scheduler.submit(graph, qos="best_effort")
            task.result()
            launches.append(task.stats["launches"])
            for each, wanted in zip(outputs, expected, strict=True):
                np.testing.assert_array_equal(each.numpy(), wanted)
        assert launches[0] == 1 and launches[1:] == [4, 4]
        assert scheduler.submit(graph).result() is None
        np.testing.assert_array_equal(outputs[3].numpy(), expected[3])


# A slow driver makes the first fill long on every machine.
FILLS = """
import kernwright as kw
from kernwright._core import _faults as faults

faults.install("sim")
count = 17 * 1024 * kw.current_device().attributes["multiprocessor_count"]
launches, seconds, results = [], [], []
with kw.schedule.Scheduler() as scheduler:
    faults.arm("cuLaunchKernelEx", 0, after=True, delay=1.0)
    for _ in range(2):
        kw.random.seed(5)
        task = scheduler.submit(kw.random.uniform, count, qos="best_effort")
        results.append(task.result().numpy().tobytes())
        launches.append(task.stats["launches"])
        seconds.append(task.stats["device"])
assert faults.fired() == 1 and seconds[0] >= 0.5, seconds
print(launches, results[0] == results[1])
"""


def test_random_fills_are_cut_into_rounds_of_blocks_and_have_the_same_numbers():
    """Sixteen blocks for each multiprocessor share the work of a whole fill, and it has seventeen
    times as many pieces of work: each round of those is a launch."""
    ended = run_child(FILLS, timeout=300, KERNWRIGHT_DEVICE="sim")
    assert (ended.code, ended.out, ended.err) == (0, "[1, 17] True\n", "")


def test_captured_steps_of_best_effort_get_their_arguments(blocks):
    rows = kw.kernel(ROWS)

    def step(x, scale):
        y = kw.zeros(blocks)
        rows[blocks, 32](x * scale, y, TURNS)
        z = kw.zeros(blocks)
        rows[blocks, 32](y, z, TURNS)
        return z + 1

    rng = np.random.default_rng(3)
    inputs = [kw.asarray(rng.standard_normal(32).astype("f4")) for _ in range(6)]
    with Scheduler() as scheduler:
        captured = kw.captured(step, scheduler=scheduler)
        for i, x in enumerate(inputs):
            np.testing.assert_array_equal(captured(x, float(i)).numpy(), step(x, i).numpy())
        classes = scheduler.stats()["classes"]
        assert classes["best_effort"]["done"] == 6 and classes["guaranteed"]["submitted"] == 0
