"""Variables of a module that the compiler is not asked for by name."""

import numpy as np
import pytest

import kernwright as kw

TEXT = """
__managed__ int counts[3] = {1, 2, 3};
__device__ __managed__ float factor = 4;
__device__ int plain = 5;
template <int N> __device__ int table = N;
template <typename T> __constant__ T constant = T(2);
namespace n {
__managed__ double x = 7;
template <int N> __device__ float row[N];
}
__global__ void k(int* o) {
    o[0] = counts[0] + factor + plain + table<3> + n::x + constant<float> + n::row<4>[1];
    counts[1] = 9;
}
"""


@pytest.mark.parametrize("device_debug", [False, True])
def test_managed_variables_and_instances_of_templates(device_debug):
    module = kw.module(TEXT, device_debug=device_debug)
    out = kw.zeros(1, "int32")
    for name, dtype, value in (
        ("factor", "float32", 4),
        ("plain", "int32", 5),
        ("table<3>", "int32", 3),
        ("n::x", "float64", 7),
    ):
        found = module.symbol(name)
        assert (found.dtype, found.shape, found.item()) == (np.dtype(dtype), (), value)
    counts = module.symbol("counts")
    assert counts.shape == (3,) and counts.numpy().tolist() == [1, 2, 3]
    assert module.symbol("constant< float >", dtype="float32").item() == 2
    assert module.symbol("n::row<4>", dtype="float32").shape == (4,)
    counts[:] = kw.asarray(np.array([100, 20, 30], np.int32))
    module.symbol("table<3>")[...] = 1000
    module["k"][1, 1](out)
    assert out.item() == 100 + 4 + 5 + 1000 + 7 + 2
    assert counts.numpy().tolist() == [100, 9, 30]


def test_an_unknown_variable_lists_what_there_is():
    module = kw.module(TEXT)
    with pytest.raises(kw.NameNotFound, match=r"variable table in .*counts, factor, n::row<4>"):
        module.symbol("table")
    with pytest.raises(kw.NameNotFound, match=r"did you mean table<3>\?"):
        module.symbol("table<9>")


def test_a_managed_variable_costs_no_second_compile():
    kernel = kw.kernel("__managed__ int one = 1; __global__ void k(int* x) { x[0] = one; }")
    kernel.compile()
    assert kernel.report().attempts == 1
