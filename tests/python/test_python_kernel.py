"""kw.tune.PythonKernel against NumPy."""

import numpy as np
import pytest

import kernwright as kw

ADD = """
__global__ void vector_add(float* c, const float* a, const float* b, int n) {
    int i = blockIdx.x * block_size_x + threadIdx.x;
    if (i < n) c[i] += a[i] + b[i];
}
"""
N = 1000
RNG = np.random.default_rng(1)


def arrays():
    return (RNG.standard_normal(N).astype(np.float32) for _ in range(2))


def made(**more):
    c, a, b = (np.zeros(N, np.float32) for _ in range(3))
    return kw.tune.PythonKernel(
        "vector_add", ADD, N, [c, a, b, np.int32(N)], {"block_size_x": 128}, **more
    )


def test_inputs_are_copied_and_outputs_returned():
    add, zeros = made(), np.zeros(N, np.float32)
    for _ in range(2):
        a, b = arrays()
        found = add(zeros, a, b, np.int32(N))
        assert len(found) == 3  # the number is no array
        np.testing.assert_array_equal(found[0], a + b)
        np.testing.assert_array_equal(found[1], a)
    assert add.params == {"block_size_x": 128}


def test_memory_that_is_no_input_keeps_what_the_last_launch_left():
    inputs = [False, True, True, True]
    add, zeros = made(inputs=inputs, outputs=[not each for each in inputs]), np.zeros(N, "f")
    a, b = arrays()
    first = add(zeros, a, b, np.int32(N))
    second = add.run_kernel([zeros, a, b, np.int32(N)])
    assert len(first) == 1
    np.testing.assert_array_equal(first[0], a + b)
    np.testing.assert_array_equal(second[0], (a + b) + (a + b))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros(N, "f"),) * 3, "takes 4 arguments, got 3"),
        (
            (np.zeros(N, "f"),) * 2 + (np.zeros(N - 1, "f"), 5),
            r"argument 2 is float32 of \(1000,\)",
        ),
        ((np.zeros(N, "f"),) * 2 + (np.zeros(N), 5), "got float64"),
        ((np.zeros(N, "f"),) * 2 + (3.0, 5), "argument 2 is an array, got float"),
    ],
)
def test_arguments_that_do_not_fit(arguments, message):
    with pytest.raises(kw.ArgumentError, match=message):
        made()(*arguments)


def test_what_is_refused():
    with pytest.raises(kw.ArgumentError, match="inputs has a flag for each argument: 4, not 1"):
        made(inputs=[True])
    with pytest.raises(kw.InvalidArgument, match="results_file="):
        made(results_file="results.json")
