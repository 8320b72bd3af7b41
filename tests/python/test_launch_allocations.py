"""A launch allocates no Python object, by the count of tracemalloc."""

import tracemalloc

import numpy as np
import pytest

import kernwright as kw

SOURCE = """
__global__ void mix(float a, const float* x, float* y, int n, double d, long long l, bool b) {
    int i = threadIdx.x;
    if (i < n) y[i] += a * x[i] + (float)d + (float)l + b;
}"""


def allocated_by(call, times=5):
    """Most bytes held by Python during one of the last calls, beyond those held before it."""
    most = 0
    tracemalloc.start()
    try:
        for index in range(times):
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            call()
            peak = tracemalloc.get_traced_memory()[1]
            if index >= times - 3:  # the first ones fill caches
                most = max(most, peak - before)
    finally:
        tracemalloc.stop()
    return most


@pytest.fixture
def case():
    x, y = kw.ones(32), kw.zeros(32)
    bound = kw.kernel(SOURCE)[1, 32]
    bound(0.0, x, y, 32, 0.0, 0, False)
    return bound, x, y


def test_what_is_counted():
    assert allocated_by(lambda: [0] * 1000) >= 8000
    assert allocated_by(lambda: None) < 200


def test_a_launch_allocates_nothing(case):
    bound, x, y = case
    nothing = allocated_by(lambda: None)

    def launch():  # a new frame each time
        bound(2.0, x, y, 32, 0.5, 7, True)

    assert allocated_by(launch) <= nothing
    assert (y.numpy() == 5 * (2 + 0.5 + 7 + 1)).all()


def test_null_and_a_grid_chosen_by_itself_allocate_nothing_either(case):
    _, x, y = case
    nothing = allocated_by(lambda: None)
    null = kw.kernel("__global__ void null(const float* p, int n) {}")[1, 1]
    null(None, 1)
    assert allocated_by(lambda: null(None, 1)) <= nothing
    spread = kw.kernel(SOURCE).forall(32)
    spread(0.0, x, y, 32, 0.0, 0, False)
    assert allocated_by(lambda: spread(2.0, x, y, 32, 0.5, 7, True)) <= nothing


def test_brackets_take_the_memory_of_the_configuration_before(case):
    _, x, y = case
    nothing = allocated_by(lambda: None)
    kernel = kw.kernel(SOURCE)
    kernel[1, 32](0.0, x, y, 32, 0.0, 0, False)
    assert allocated_by(lambda: kernel[1, 32](2.0, x, y, 32, 0.5, 7, True)) <= nothing


def test_configurations_that_live_at_once_are_apart(case):
    _, x, y = case
    kernel = kw.kernel(SOURCE)
    stream = kw.Stream()
    for _ in range(3):
        y[...] = np.zeros(32, np.float32)
        kept = [kernel[1, lanes, stream] for lanes in (8, 16, 32)]
        assert [repr(one) for one in kept] == [
            f"<mix[(1, 1, 1), ({n}, 1, 1)]>" for n in (8, 16, 32)
        ]
        for one in kept:
            one(1.0, x, y, 32, 0.0, 0, False)
        stream.synchronize()
        assert y.numpy().tolist() == [3.0] * 8 + [2.0] * 8 + [1.0] * 16
        del one, kept[1]
