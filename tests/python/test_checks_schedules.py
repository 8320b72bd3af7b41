"""Schedules: a seed chooses the order of blocks and warps, and replays it exactly."""

import os
import subprocess
import sys

import numpy as np
import pytest

import kernwright as kw

pytestmark = pytest.mark.usefixtures("sim")

LAST = """__global__ void last(int* x) {
    if (threadIdx.x == 0) x[0] = blockIdx.x;
}"""

SUM = """__global__ void sum(const int* x, int* y) {
    atomicAdd(y, x[blockIdx.x * blockDim.x + threadIdx.x]);
}"""

MIRROR = """__global__ void mirror(const int* x, int* y) {
    __shared__ int s[128];
    s[threadIdx.x] = x[threadIdx.x];
    BARRIER
    y[threadIdx.x] = s[127 - threadIdx.x];
}"""


def last_block(kernel):
    x = kw.zeros(1, "int32")
    kernel[16, 32](x)
    return int(x.numpy()[0])


def test_a_seed_replays_and_seeds_differ():
    kernel = kw.kernel(LAST)
    seen = {}
    for seed in range(12):
        for _ in range(2):
            with kw.checks.schedule(seed):
                got = last_block(kernel)
            assert seen.setdefault(seed, got) == got
    assert len(set(seen.values())) > 2


def test_after_a_schedule_one_thread_runs_blocks_in_their_order():
    program = f'''
import kernwright as kw
kernel = kw.kernel("""{LAST}""")
for schedule in (3, None):
    x = kw.zeros(1, "int32")
    if schedule is None:
        kernel[16, 32](x)
    else:
        with kw.checks.schedule(schedule):
            kernel[16, 32](x)
print(x.numpy()[0])
'''
    variables = {**os.environ, "KERNWRIGHT_DEVICE": "sim", "KERNWRIGHT_SIM_THREADS": "1"}
    variables.pop("KERNWRIGHT_SIM_SEED", None)
    result = subprocess.run(
        [sys.executable, "-c", program], env=variables, capture_output=True, text=True, timeout=60
    )
    assert result.stdout.split() == ["15"], result.stderr


def test_without_a_seed_blocks_run_in_their_order_however_many_threads_there_are():
    # Block 0 is the last to write on any thread, unless this thread also runs the others after it.
    program = """
import kernwright as kw
kernel = kw.kernel('''__global__ void late(int* x) {
    if (blockIdx.x == 0) for (int i = 0; i < 20000; ++i) __threadfence_block();
    x[0] = blockIdx.x;
}''')
def run():
    x = kw.zeros(1, "int32")
    kernel[16, 1](x)
    return x
for _ in range(3):
    with kw.checks.schedule(3), kw.checks.schedule(None):
        print(run().numpy()[0])
print(kw.checks.fuzz(run, 1, seed=kw.checks.fuzz(run).seed).what)
"""
    variables = {**os.environ, "KERNWRIGHT_DEVICE": "sim", "KERNWRIGHT_SIM_THREADS": "4"}
    variables.pop("KERNWRIGHT_SIM_SEED", None)
    result = subprocess.run(
        [sys.executable, "-c", program], env=variables, capture_output=True, text=True, timeout=60
    )
    assert result.stdout.split() == ["15", "15", "15", "output"], result.stderr


def test_fuzz_agrees_where_the_order_does_not_matter():
    kernel = kw.kernel(SUM)
    x = kw.asarray(np.arange(512, dtype=np.int32))

    def run():
        y = kw.zeros(1, "int32")
        kernel[8, 64](x, y)
        return y

    assert kw.checks.fuzz(run) is None


def test_fuzz_names_the_seed_of_the_first_difference():
    kernel = kw.kernel(LAST)

    def run():
        x = kw.zeros(1, "int32")
        kernel[16, 32](x)
        return x

    difference = kw.checks.fuzz(run, 10)
    assert difference.what == "output"
    with kw.checks.schedule(difference.seed):
        assert last_block(kernel) != 15


def test_fuzz_finds_a_barrier_that_is_missing():
    x = kw.asarray(np.arange(128, dtype=np.int32))

    def run(kernel):
        y = kw.zeros(128, "int32")
        kernel[1, 128](x, y)
        return y

    missing = kw.kernel(MIRROR.replace("BARRIER", ""))
    assert kw.checks.fuzz(lambda: run(missing), 10) is not None
    fixed = kw.kernel(MIRROR.replace("BARRIER", "__syncthreads();"))
    assert kw.checks.fuzz(lambda: run(fixed), 10) is None


def test_a_new_finding_is_a_difference():
    source = """__global__ void late(int* x) {
        if (threadIdx.x % 32 != 0) return;
        if (atomicAdd(&x[0], 1) == 0 && blockIdx.x != 0) x[1 + (1 << 20)] = 1;
    }"""
    kernel = kw.kernel(source)

    def run():
        kernel[8, 32](kw.zeros(4, "int32"))

    difference = kw.checks.fuzz(run, 10)
    assert difference.what == "error"
    assert f"schedule {difference.seed}" in str(difference)


def test_the_same_fault_at_another_address_is_no_difference():
    kernel = kw.kernel("""__global__ void beyond(int* x) {
    x[1 << 20] = 1;
}""")
    kept = []

    def run():
        kept.append(kw.zeros(1000, "int32"))
        kernel[1, 1](kept[-1])

    assert kw.checks.fuzz(run, 3) is None


def test_a_fault_of_another_thread_is_a_difference():
    kernel = kw.kernel("""__global__ void beyond(int* x, int who) {
    if (threadIdx.x == who) x[1 << 20] = 1;
}""")
    turn = iter(range(9))
    difference = kw.checks.fuzz(lambda: kernel[1, 32](kw.zeros(4, "int32"), next(turn)), 3)
    assert difference.what == "error"
    assert "thread (1, 0, 0), not " in difference.message
    assert difference.message.endswith("thread (0, 0, 0)")


def test_another_number_of_outputs_is_a_difference():
    numbers = iter((1, 2))
    difference = kw.checks.fuzz(lambda: (np.zeros(1),) * next(numbers), 3)
    assert (difference.what, difference.message) == ("output", "2 outputs, not 1")


def test_an_inner_schedule_does_not_end_the_outer_one():
    kernel = kw.kernel(LAST)
    with kw.checks.schedule(3):
        alone = [last_block(kernel) for _ in range(6)]
    with kw.checks.schedule(3):
        around = [last_block(kernel) for _ in range(3)]
        with kw.checks.schedule(4):
            last_block(kernel)
        around += [last_block(kernel) for _ in range(3)]
    assert alone == around


def test_fuzz_refuses_a_negative_count():
    with pytest.raises(kw.InvalidArgument, match="count = -3"):
        kw.checks.fuzz(lambda: None, -3)
