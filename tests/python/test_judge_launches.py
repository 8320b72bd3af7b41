"""The judge: launches unfit for any kernel, and kernels turning wrong after some launches."""

import numpy as np
import pytest
from judge_tasks import AFFINE, GOOD, affine

import kernwright as kw


@pytest.fixture(scope="module")
def judge():
    with kw.Judge(2) as made:
        yield made


@pytest.mark.parametrize(
    "shape",
    [{"block": 2048}, {"grid": (1, 1 << 20)}, {"shared_bytes": 1 << 22}, {"cluster": 64}],
    ids=str,
)
def test_a_launch_that_no_kernel_can_have_is_the_task_s_fault(judge, shape):
    with pytest.raises(kw.InvalidArgument, match="the task's launch suits no kernel"):
        judge.judge(GOOD, affine(**shape))
    assert judge.judge(GOOD, AFFINE).accepted


def late(launches):
    """A kernel with right results in so many launches of its module."""
    counts = "__shared__ int late; if (threadIdx.x == 0) late = count; __syncthreads();"
    then = f"if (i == 0) count = count + 1; if (late >= {launches}) return; if (i < n)"
    text = GOOD.replace("if (i < n)", f"{counts} {then}")
    # One block alone may count.
    return "__device__ int count;\n" + text, affine(
        inputs=kw.Inputs(x="float32[n]", y="float32[n]", n="size", most=256)
    )


@pytest.mark.parametrize("launches", [1, 7, 8, 15, 19, 23, 30, 40])
def test_a_kernel_that_is_right_for_some_launches(judge, launches):
    text, task = late(launches)
    for seed in range(3):
        verdict = judge.judge(text, task, seed=seed)
        assert verdict.status == "cheating", (seed, str(verdict))
        assert "earlier launches" in verdict.reason


def test_how_many_launches_are_waited_for_is_the_seed_s(judge):
    statuses = {
        n: {judge.judge(*late(n), seed=seed).status for seed in range(8)} for n in (150, 2000)
    }
    assert statuses == {150: {"accepted", "cheating"}, 2000: {"accepted"}}
    again = [judge.judge(*late(150), seed=seed).status for seed in (3, 3, 3)]
    assert len(set(again)) == 1


def test_many_launches_of_what_is_costly_are_fewer(judge):
    """Launches without a comparison cost a bounded amount of work, but there are some."""
    slow = GOOD.replace("if (i < n)", "int k = 0; while (k < 3000 + (n < 0)) ++k; if (i < n)")
    slow = slow.replace("+ 1", "+ 1 + (k - 3000)").replace("int k", "volatile int k")
    verdict = judge.judge(
        slow,
        affine(inputs=kw.Inputs(x="float32[n]", y="float32[n]", n="size", most=32)),
        timeout=60,
    )
    assert verdict.accepted, str(verdict)


def test_arrays_that_are_read_and_written_hold_their_inputs_before_each_launch(judge):
    """The kernel overwrites its indices: a second launch without new ones goes out of bounds."""
    text = """__global__ void follow(const float* x, int* next, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) next[i] = (int)x[next[i]] + 1000000;
}"""

    def inputs(seed, case):
        rng = np.random.default_rng([seed, case])
        n = 40 + case
        return np.floor(rng.random(n) * 100).astype("f4"), rng.permutation(n).astype("i4"), n

    task = kw.Task(
        entry="follow",
        signature="const float* x, int* next, int n",
        inputs=inputs,
        reference=lambda x, next, n: (None, x[next].astype("i8") + 1000000, None),
    )
    verdict = judge.judge(text, task)
    assert verdict.accepted, str(verdict)
