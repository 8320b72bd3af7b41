"""Structs, their layouts and types that a kernel keeps to itself, as arguments."""

import ctypes

import numpy as np
import pytest

import kernwright as kw

LAYOUT = r"""
struct T { float value; int value2; };
__global__ void many(const T* a, float* o) { o[threadIdx.x] = a[threadIdx.x].value; }
__global__ void one(T t, float* o) { o[0] = t.value2; }
__global__ void lanes(float4 v, const float2* a, float* o) { o[0] = v.w + a[1].x; }
enum class E : short { A, B };
__global__ void enums(E* e) { *e = E::B; }
"""
WRONG = [
    [("value", "f4"), ("value2", "i8")],
    [("value2", "i4"), ("value", "f4")],
    [("a", "f4"), ("b", "f4")],
    [("value", "f8")],
    [("value", ">f4"), ("value2", "i4")],
    [("value", "f4"), ("value2", "u4")],
    [("value", "i2"), ("x", "i2"), ("value2", "i4")],
]
RIGHT = [
    [("value", "f4"), ("value2", "i4")],
    [("a", "f4"), ("b", "i4")],
    [("a", "f4"), ("b", "V4")],
    [("both", [("value", "f4"), ("value2", "i4")])],
    {"names": ["value2"], "formats": ["i4"], "offsets": [4], "itemsize": 8},
]


@pytest.fixture(scope="session")
def layout():
    return kw.module(LAYOUT)


def test_the_dtype_of_a_struct_is_its_layout(layout):
    wanted = np.dtype([("value", "f4"), ("value2", "i4")])
    assert layout["many"].parameters[0].dtype == layout["one"].parameters[0].dtype == wanted
    values = np.zeros(3, layout["many"].parameters[0].dtype)
    values["value"] = [1, 2, 3]
    out = kw.zeros(3)
    layout["many"][1, 3](kw.In(values), out)
    assert out.numpy().tolist() == [1, 2, 3]


@pytest.mark.parametrize("fields", WRONG, ids=str)
def test_other_layouts_are_refused(layout, fields):
    dtype, out = np.dtype(fields), kw.zeros(4)
    for _ in range(2):
        with pytest.raises(
            kw.ArgumentError, match=r"parameter 1 \(const T\*\).*(bytes|in the kernel)"
        ):
            layout["many"][1, 1](kw.In(np.zeros(4, dtype)), out)
        with pytest.raises(kw.ArgumentError, match=r"parameter 1 \(T\).*(bytes|in the kernel)"):
            layout["one"][1, 1](np.zeros((), dtype), out)


@pytest.mark.parametrize("fields", RIGHT, ids=str)
def test_the_same_layout_by_other_names_is_taken(layout, fields):
    dtype, out = np.dtype(fields), kw.zeros(4)
    values = np.zeros(4, dtype)
    values.view("i4")[1] = 5
    for _ in range(2):
        layout["many"][1, 4](kw.In(values), out)
        layout["one"][1, 1](values[0], out)
        assert out.numpy()[0] == 5


def test_kinds_of_values_for_a_struct(layout):
    class Right(ctypes.Structure):
        _fields_ = (("value", ctypes.c_float), ("value2", ctypes.c_int))

    class Wrong(ctypes.Structure):
        _fields_ = (("value", ctypes.c_int), ("value2", ctypes.c_int))

    out = kw.zeros(1)
    for right in (Right(0, 3), bytes((0, 0, 0, 0, 3, 0, 0, 0)), memoryview(np.array([0, 3], "i4"))):
        layout["one"][1, 1](right, out)
        assert out.item() == 3
    for wrong in (Wrong(0, 3), np.zeros(2, "i4"), np.zeros(2, "f4"), np.float64(3), np.int64(3)):
        with pytest.raises(kw.ArgumentError, match="in the kernel"):
            layout["one"][1, 1](wrong, out)


def test_structured_vectors(layout):
    xyzw = np.dtype([(lane, "f4") for lane in "xyzw"])
    pairs, out = np.zeros(2, [("x", "f4"), ("y", "f4")]), kw.zeros(1)
    pairs["x"] = [1, 2]
    layout["lanes"][1, 1](np.array((1, 2, 3, 4), xyzw), kw.In(pairs), out)
    assert out.item() == 6
    with pytest.raises(kw.ArgumentError, match="float4"):
        layout["lanes"][1, 1](np.zeros((), [(lane, "i4") for lane in "xyzw"]), kw.In(pairs), out)
    with pytest.raises(kw.ArgumentError, match="float2"):
        layout["lanes"][1, 1]((1, 2, 3, 4), kw.In(np.zeros(2, "i4,i4")), out)
    with pytest.raises(kw.ArgumentError, match="float2"):
        layout["lanes"][1, 1]((1, 2, 3, 4), kw.In(np.zeros(2, "f4,f4,f4")), out)


def test_pointers_to_enums_take_their_integer(layout):
    values = kw.zeros(2, "int16")
    layout["enums"][1, 1](values)
    assert values.numpy().tolist() == [1, 0]
    with pytest.raises(kw.ArgumentError, match="int16"):
        layout["enums"][1, 1](kw.zeros(2, "int32"))


INTERNAL = r"""
namespace { struct Q { int a; }; }
class S { struct P { float a; }; friend __global__ void priv(float* o, S::P p); };
struct { int b; } __device__ unnamed;
__global__ void anon(float* o, Q p, const Q* q) { o[0] = p.a + q[1].a; }
__global__ void plain(float* o, float x) { o[0] = x; }
__global__ void priv(float* o, S::P p) { o[0] = p.a; }
extern "C" __global__ void nameless(float* o, decltype(unnamed) p) { o[0] = p.b; }
#define class struct
#define template nonsense
#define void int
"""


def test_internal_types_and_odd_macros_leave_the_other_types_alone():
    module = kw.module(INTERNAL)
    out = kw.zeros(1)
    module["plain"][1, 1](out, 2.5)
    assert out.item() == 2.5
    module["anon"][1, 1](out, np.int32(1), kw.In(np.array([1, 2], "i4").view("V4")))
    module["priv"][1, 1](out, np.float32(4))
    assert out.item() == 4
    module["nameless"][1, 1](out, np.array([9], "i4"))
    assert out.item() == 9
    for name in ("plain", "anon", "priv", "nameless"):
        arguments = [kw.zeros(1, "float64"), *([None] * (len(module[name].parameters) - 1))]
        with pytest.raises(kw.ArgumentError, match=r"parameter 1 \(float\*\).*float64"):
            module[name][1, 1](*arguments)
        arguments[0] = out.ptr
        with pytest.raises(kw.ArgumentError, match=r"kw\.Pointer"):
            module[name][1, 1](*arguments)


def test_members_that_are_structs_may_be_nested_or_flat():
    made = kw.kernel("""
    struct V3 { float x, y, z; };
    struct P { V3 pos; float m; };
    __global__ void add_up(P p, float* o) { *o = p.pos.x + 2 * p.pos.y + 3 * p.pos.z + 4 * p.m; }
    """)
    nested = [("pos", [("x", "f4"), ("y", "f4"), ("z", "f4")]), ("m", "f4")]
    for fields in (nested, [("pos", "f4", 3), ("m", "f4")]):
        out = kw.zeros(1)
        made[1, 1](np.array([1, 2, 3, 4], "f4").view(fields)[0], out)
        assert out.item() == 30
    with pytest.raises(kw.Error, match="in the kernel"):
        made[1, 1](np.zeros((), [("pos", nested[0][1]), ("m", "i4")]), kw.zeros(1))
