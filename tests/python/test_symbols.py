"""Variables of a module that the compiler is not asked for by name."""

import uuid

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
    text = "__managed__ int one = 1; __global__ void k(int* x) { x[0] = one; }"
    kernel = kw.kernel(f"// {uuid.uuid4()}: in no cache\n{text}")
    kernel.compile()
    assert kernel.report().attempts == 1


STRUCTS = """
#include <cuda_fp16.h>
enum Mode : unsigned char { A, B = 2 };
typedef float real;
struct S { int id; float w[3]; float2 p; private: int h; };
__device__ Mode mode = B; __constant__ float2 origin; __device__ real r[2][3];
__device__ half h[4]; __device__ float* address; __device__ S one; __device__ S many[4];
__device__ __half2 pair; __managed__ Mode managed[3]; __device__ struct { int z; } nameless;
class Closed { long long a, b; };
__device__ Closed wide;
__global__ void f(float* o) {
    o[0] = one.id + one.w[1] + many[2].p.y; o[1] = mode; o[2] = origin.y + nameless.z;
}
"""


@pytest.fixture(scope="module")
def variables():
    return kw.module(STRUCTS)


@pytest.mark.parametrize(
    ("name", "dtype", "shape"),
    [
        ("mode", "uint8", ()),
        ("origin", "float32", (2,)),
        ("r", "float32", (2, 3)),
        ("h", "float16", (4,)),
        ("address", "uint64", ()),
        ("pair", "float16", (2,)),
        ("managed", "uint8", (3,)),
    ],
)
def test_variables_have_their_type(variables, name, dtype, shape):
    found = variables.symbol(name)
    assert (found.dtype, found.shape) == (np.dtype(dtype), shape)


def test_structs_are_views_with_their_layout(variables):
    dtype = np.dtype(
        {
            "names": ["id", "w", "p"],
            "formats": ["i4", ("f4", 3), ("f4", 2)],
            "offsets": [0, 4, 16],
            "itemsize": 32,
        }
    )
    one, many = variables.symbol("one"), variables.symbol("many")
    assert one.dtype == many.dtype == dtype and (one.shape, many.shape) == ((), (4,))
    one["id"] = 7
    one["w"][...] = kw.full(3, 2.0)
    many["p"][...] = 3
    variables.symbol("mode")[...] = 1
    variables.symbol("origin")[...] = 5
    variables.symbol("nameless")["z"] = 10
    out = kw.zeros(3)
    variables["f"][1, 1](out)
    assert out.numpy().tolist() == [12, 1, 15]
    assert many["p"].shape == (4, 2) and many.numpy()["p"].tolist() == [[3, 3]] * 4
    values = np.zeros(4, dtype)
    values["id"] = range(4)
    many[...] = values
    assert many["id"].numpy().tolist() == [0, 1, 2, 3] == np.asarray(many)["id"].tolist()
    one[...] = (1, (2, 3, 4), (5, 6))
    assert one.numpy()["w"].tolist() == [2, 3, 4] and one.nbytes == 32
    one[...] = bytes(32)
    assert not one.numpy()["w"].any()


def test_a_scalar_is_not_spread_over_the_bytes_of_more(variables):
    wide = variables.symbol("wide")
    before = wide.bytes.numpy()
    for value in (1, 1.5, np.float32(1), np.zeros(4, "f4"), np.zeros((), [("a", "f4")]), b"1"):
        with pytest.raises(kw.ArgumentError, match="16 bytes"):
            wide[...] = value
        with pytest.raises(kw.ArgumentError, match="32 bytes"):
            variables.symbol("one")[...] = value
    with pytest.raises(kw.ArgumentError, match=r'symbol\("wide", dtype='):
        wide[...] = 1
    assert (wide.bytes.numpy() == before).all()
    with pytest.raises(kw.ArgumentError, match="'id', 'w', 'p'"):
        variables.symbol("one")["none"]
    with pytest.raises(kw.ArgumentError):
        variables.symbol("one", dtype=[("a", "f8")] * 1, shape=5)


def test_structs_on_a_device_are_not_compared():
    module = kw.module("struct S { int a, b; }; __device__ S s; __global__ void k() { s.a = 1; }")
    one = module.symbol("s")
    for compare in (lambda: one == module.symbol("s"), lambda: one != one, lambda: hash(one)):
        with pytest.raises((kw.Error, TypeError), match=r"compared|unhashable"):
            compare()


def test_wrong_values_of_structs_are_errors_of_ours(variables):
    one, many = variables.symbol("one"), variables.symbol("many")
    for value in ((1, 2), (1, "x", 2)):
        with pytest.raises(kw.ArgumentError, match="no value of one"):
            one[...] = value
    for value in ([1, 2, 3, 4], [(1, (2, 3, 4), (5, 6))] * 3 + [7], [[1]] * 4):
        with pytest.raises(kw.ArgumentError, match="it is no struct"):
            many[...] = value
    many[...] = [(i, (2, 3, 4), (5, 6)) for i in range(4)]
    assert many["id"].numpy().tolist() == [0, 1, 2, 3]
    with pytest.raises(
        kw.InvalidArgument, match=r"\(2,\) do not broadcast to shape \(4,\) of many"
    ):
        many[...] = np.zeros(2, many.dtype)


def test_a_kernel_takes_a_variable_of_structs():
    text = "struct S { int a; float b; };\n"
    module = kw.module(text + "__device__ S s[3]; __global__ void k() {}")
    structs = module.symbol("s")
    structs[...] = np.array([(1, 2), (3, 4), (5, 6)], structs.dtype)
    kernel = kw.kernel(text + "__global__ void k(S* x, float* o) { *o = x[2].b; x[1].a = 9; }")
    out = kw.zeros(1)
    kernel[1, 1](structs, out)
    assert out.item() == 6 and structs["a"].numpy().tolist() == [1, 9, 5]
    with pytest.raises(kw.ArgumentError, match="uint8"):
        kernel[1, 1](structs, structs)
