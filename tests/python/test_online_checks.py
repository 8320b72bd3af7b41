"""kernel.online() serves no candidate that is right once, writes nothing, or spoils inputs."""

import numpy as np
import pytest

import kernwright as kw
from kernwright.tune import Space

TWICE = """
__device__ unsigned launches;
__global__ void twice(const T* x, T* y, int n) {
  int i = threadIdx.x;
  if (MODE == 0 && i < n) { y[i] = 2 * x[i]; for (int k = 0; k < 50; ++k) __nanosleep(1); }
  if (MODE == 1 && i < n && launches < 1) y[i] = 2 * x[i];
  if (MODE == 3 && i < n) { y[i] = 2 * x[i]; const_cast<T*>(x)[i] = 1; }
  if (MODE == 4 && i < n && launches < 3) y[i] = 2 * x[i];
  if (MODE == 7 && i < n && launches % 3 != PHASE) y[i] = 2 * x[i];
  if (MODE == 5 && i < n) y[i] = 2 * x[i];
  if (MODE == 8 && i < n) { y[i] = 2 * x[i]; if (launches == 2) const_cast<T*>(x)[i] = 1; }
  if (MODE == 6 && i < n) { y[i] = 2 * abs(x[i]); const_cast<T*>(x)[i] = -x[i]; }
  __syncthreads();
  if (i == 0) ++launches;
}
"""


def online(dtype, mode, phase=0):
    kernel = kw.kernel(TWICE, defines={"T": dtype, "PHASE": phase})
    return kernel.online(
        Space(MODE=[0, mode]), grid=1, block=64, overhead=10.0, default={"MODE": 0}
    )


def serve_all(serve, x, y, calls=120):
    given = x.numpy()
    for _ in range(calls):
        serve(x, y, x.size)
        np.testing.assert_array_equal(y.numpy(), 2 * given)
        if serve.frozen:
            break
    np.testing.assert_array_equal(x.numpy(), given)
    assert serve.frozen


@pytest.mark.parametrize("dtype", ["float", "int"])
@pytest.mark.parametrize("mode", [1, 2, 3, 4, 6])
def test_a_wrong_candidate_never_serves(sim, dtype, mode):
    serve = online(dtype, mode)
    x = kw.arange(50, dtype="float32" if dtype == "float" else "int32") + 3
    serve_all(serve, x, kw.zeros(50, dtype=x.dtype))
    assert serve.config == {"MODE": 0}
    assert [trial.status for trial in serve.trials] == ["correctness"]
    if mode in (3, 6):
        assert "const in the kernel's signature" in serve.trials[0].error


@pytest.mark.parametrize("phase", [0, 1, 2])
def test_a_candidate_that_is_wrong_in_every_third_launch_never_serves(sim, phase):
    serve = online("float", 7, phase)
    serve_all(serve, kw.arange(50, dtype="float32") + 3, kw.zeros(50))
    assert serve.config == {"MODE": 0}
    assert [trial.status for trial in serve.trials] == ["correctness"]


@pytest.mark.parametrize("dtype", ["float", "int"])
def test_a_candidate_that_spoils_inputs_while_it_is_timed_spoils_copies(sim, dtype):
    serve = online(dtype, 8)
    x = kw.arange(50, dtype="float32" if dtype == "float" else "int32") + 3
    serve_all(serve, x, kw.zeros(50, dtype=x.dtype))
    assert serve.trials


def test_a_right_one_serves_though_the_outputs_hold_the_answer(sim):
    serve = online("float", 5)
    x = kw.arange(50, dtype="float32")
    serve_all(serve, x, 2 * x)
    assert serve.config == {"MODE": 5}


def test_without_any_evidence_nothing_is_promoted(sim):
    serve = online("int", 5)
    x = kw.arange(50, dtype="int32")
    serve_all(serve, x, 2 * x)
    assert serve.config == {"MODE": 0}
    assert "held the right values before each" in serve.trials[0].error


def test_outputs_that_add_to_what_they_hold_are_compared_as_they_are(sim):
    text = """__global__ void add(const float* x, float* y, int n) {
      int i = threadIdx.x;
      if (i < n) { y[i] += x[i] + WRONG; if (!FAST) for (int k = 0; k < 50; ++k) __nanosleep(1); }
    }"""
    serve = kw.kernel(text).online(
        Space(FAST=[0, 1], WRONG=[0, 1]), grid=1, block=64, overhead=10.0,
        default={"FAST": 0, "WRONG": 0},
    )  # fmt: skip
    x, y = kw.ones(50), kw.zeros(50)
    for call in range(100):
        serve(x, y, 50)
        assert (y.numpy() == call + 1).all()
    assert serve.frozen and serve.config == {"FAST": 1, "WRONG": 0}
