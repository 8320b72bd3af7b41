"""Kernel arguments: every accepted kind, and every mistake refused before a launch."""

import ctypes
import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernwright as kw

C_TYPES = {
    "bool": "bool",
    "signed char": "int8",
    "short": "int16",
    "int": "int32",
    "long long": "int64",
    "unsigned char": "uint8",
    "unsigned short": "uint16",
    "unsigned": "uint32",
    "unsigned long long": "uint64",
    "float": "float32",
    "double": "float64",
    "__half": "float16",
    "__nv_bfloat16": "bfloat16",
}
HEADERS = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"
STORES = HEADERS + "".join(
    f'extern "C" __global__ void store_{name}({kind} value, {kind}* out) {{ *out = value; }}\n'
    for kind, name in C_TYPES.items()
)


@pytest.fixture(scope="session")
def stores():
    return kw.module(STORES)


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def stored(stores, name, value):
    out = kw.zeros(1, name)
    stores[f"store_{name}"][1, 1](value, out)
    return out.numpy()[0]


INTEGERS = [name for name in C_TYPES.values() if "int" in name]
FLOATS = [name for name in C_TYPES.values() if "float" in name]


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_and_their_limits(stores, name):
    limits = np.iinfo(name)
    for value in (0, 1, int(limits.min), int(limits.max)):
        assert stored(stores, name, value) == value
        assert stored(stores, name, np.dtype(name).type(value)) == value
    assert stored(stores, name, True) == 1
    assert stored(stores, name, np.array(5)) == 5
    for value in (int(limits.min) - 1, int(limits.max) + 1, 1 << 70, -(1 << 70)):
        with pytest.raises(kw.ArgumentRangeError) as caught:
            stored(stores, name, value)
        assert isinstance(caught.value, OverflowError)
        assert "parameter 1" in str(caught.value) and str(int(limits.max)) in str(caught.value)


@settings(max_examples=50, deadline=None)
@given(value=st.integers(-(1 << 63), (1 << 63) - 1))
def test_any_64_bit_integer(value):
    out = kw.zeros(1, "int64")
    STORE_64[1, 1](value, out)
    assert out.numpy()[0] == value


STORE_64 = kw.kernel("__global__ void store(long long value, long long* out) { *out = value; }")


@pytest.mark.parametrize("name", FLOATS)
def test_reals(stores, name):
    dtype = dtype_of(name)
    for value in (0.0, -0.0, 1.5, math.pi, 1e-7, -3e-40, 7, True, math.inf, -math.inf):
        expected = np.float64(value).astype(np.float64)
        with np.errstate(all="ignore"):
            wanted = expected.astype(dtype)
        got = stored(stores, name, value)
        assert got.tobytes() == wanted.tobytes(), (value, got, wanted)
    assert np.isnan(np.float64(stored(stores, name, math.nan)))
    for scalar in (np.float64(0.1), np.float32(0.1), np.float16(0.1), ml_dtypes.bfloat16(0.1)):
        assert stored(stores, name, scalar).tobytes() == np.float64(scalar).astype(dtype).tobytes()


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_a_finite_number_must_not_become_infinite(stores, name):
    largest = float(ml_dtypes.finfo(dtype_of(name)).max)
    assert stored(stores, name, largest) == largest
    with pytest.raises(kw.ArgumentRangeError, match="parameter 1"):
        stored(stores, name, largest * 1.01)
    with pytest.raises(kw.ArgumentRangeError):
        stored(stores, "float64", 10**400)


@settings(max_examples=200, deadline=None)
@given(value=st.floats(-65504, 65504))
def test_halves_round_as_numpy_does(value):
    out = kw.zeros(1, "uint16")
    STORE_HALF[1, 1](value, out)
    assert out.numpy()[0] == np.float64(value).astype(np.float16).view(np.uint16)


STORE_HALF = kw.kernel(
    "#include <cuda_fp16.h>\n"
    "__global__ void store(__half value, unsigned short* out) { *(__half*)out = value; }"
)


def test_bools(stores):
    assert stored(stores, "bool", True) and not stored(stores, "bool", np.False_)
    assert stored(stores, "bool", 1)
    with pytest.raises(kw.ArgumentRangeError):
        stored(stores, "bool", 2)
    with pytest.raises(kw.ArgumentError):
        stored(stores, "bool", 1.0)


@pytest.mark.parametrize(
    "value", [1.0, np.float32(1), 2.5, ctypes.c_float(1), 1j, "1", None, [1], b"1"]
)
def test_what_is_no_integer(stores, value):
    with pytest.raises(kw.ArgumentError, match=r"parameter 1 \(int\)") as caught:
        stored(stores, "int32", value)
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize("value", [1j, "1", None, [1.0], np.zeros(3), b"abcd"])
def test_what_is_no_real(stores, value):
    with pytest.raises(kw.ArgumentError, match=r"parameter 1 \(float\)"):
        stored(stores, "float32", value)


def test_an_array_is_no_number(stores):
    with pytest.raises(kw.ArgumentError, match=r"item\(\)"):
        stored(stores, "int32", kw.zeros((), "int32"))


def test_ctypes_scalars_and_index_objects(stores):
    class Seven:
        def __index__(self):
            return 7

    assert stored(stores, "int32", ctypes.c_int(-5)) == -5
    assert stored(stores, "int64", ctypes.c_uint8(255)) == 255
    assert stored(stores, "float32", ctypes.c_double(0.5)) == 0.5
    assert stored(stores, "int32", Seven()) == 7


STRUCTS = r"""
struct Pair { int first; double second; };
__global__ void split(Pair p, int* first, double* second) { *first = p.first; *second = p.second; }
enum class Mode : int { off, on };
__global__ void mode(Mode m, int* out) { *out = (int)m; }
__global__ void vector(float4 v, float* out) {
    out[0] = v.x; out[1] = v.y; out[2] = v.z; out[3] = v.w;
}
__global__ void plane(float2 z, float* out) { out[0] = z.x; out[1] = z.y; }
"""
PAIR = np.dtype([("first", "i4"), ("second", "f8")], align=True)


class PairStruct(ctypes.Structure):
    _fields_ = (("first", ctypes.c_int), ("second", ctypes.c_double))


@pytest.fixture(scope="session")
def structs():
    return kw.module(STRUCTS)


@pytest.mark.parametrize(
    "value",
    [
        np.array((3, 0.25), PAIR),
        np.array((3, 0.25), PAIR)[()],
        np.array([(3, 0.25)], PAIR)[0],
        PairStruct(3, 0.25),
        np.array((3, 0.25), PAIR).tobytes(),
        bytearray(np.array((3, 0.25), PAIR).tobytes()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_structs_by_value(structs, value):
    first, second = kw.zeros(1, "int32"), kw.zeros(1, "float64")
    structs["split"][1, 1](value, first, second)
    assert first.item() == 3 and second.item() == 0.25


@pytest.mark.parametrize("value", [b"123", np.int32(1), np.zeros(3, PAIR)])
def test_structs_of_the_wrong_size(structs, value):
    first, second = kw.zeros(1, "int32"), kw.zeros(1, "float64")
    with pytest.raises(kw.ArgumentError, match="16 bytes"):
        structs["split"][1, 1](value, first, second)


@pytest.mark.parametrize("value", [3, 1.5, None, (3, 0.25), "text"])
def test_what_is_no_struct(structs, value):
    first, second = kw.zeros(1, "int32"), kw.zeros(1, "float64")
    with pytest.raises(kw.ArgumentError, match=r"parameter 1 \(Pair\)"):
        structs["split"][1, 1](value, first, second)


def test_scoped_enumerations(structs):
    out = kw.zeros(1, "int32")
    structs["mode"][1, 1](np.int32(1), out)
    assert out.item() == 1


def test_vectors_by_value(structs):
    out = kw.zeros(4)
    for value in ((1, 2.5, np.float32(3), 4), [1, 2.5, 3, 4], np.array([1, 2.5, 3, 4], "f4")):
        structs["vector"][1, 1](value, out)
        assert out.numpy().tolist() == [1, 2.5, 3, 4]
    structs["plane"][1, 1](1.5 - 2j, out)
    assert out.numpy()[:2].tolist() == [1.5, -2]
    for wrong in ((1, 2, 3), 1.0, np.zeros(4), np.zeros(3, "f4"), (1, 2, 3, "4"), None):
        with pytest.raises(kw.ArgumentError, match=r"parameter 1 \(float4\)"):
            structs["vector"][1, 1](wrong, out)


def test_wrong_counts_name_the_parameter(saxpy):
    x, y = kw.ones(8), kw.zeros(8)
    run = saxpy[1, 8]
    signature = "saxpy(float a, const float* x, float* y, int n)"
    with pytest.raises(kw.ArgumentError) as caught:
        run(1.0, x, y)
    assert str(caught.value).startswith(f"{signature}: parameter 4 (int) is missing")
    with pytest.raises(TypeError, match=r"parameter 1 \(float\) is missing"):
        run()
    with pytest.raises(kw.ArgumentError, match="takes 4 arguments, 5 were given"):
        run(1.0, x, y, 8, 9)
    assert (y.numpy() == 0).all()


def test_wrong_element_types_name_the_parameter(saxpy):
    x, y = kw.ones(8, "float64"), kw.zeros(8)
    with pytest.raises(kw.ArgumentError) as caught:
        saxpy[1, 8](1.0, x, y, 8)
    text = str(caught.value)
    assert "parameter 2 (const float*) got an array of float64" in text
    assert text.startswith("saxpy(float a, const float* x, float* y, int n): ")
    assert 'astype("float32")' in text
    for wrong in ("int32", "uint32", "float16", "bfloat16", "complex64"):
        with pytest.raises(kw.ArgumentError, match=wrong):
            saxpy[1, 8](1.0, kw.ones(8, wrong), y, 8)


def test_a_numpy_array_is_told_the_ways(saxpy):
    x = np.ones(8, np.float32)
    with pytest.raises(TypeError) as caught:
        saxpy[1, 8](1.0, x, x, 8)
    for name in ("parameter 2", "kw.asarray", "kw.In", "kw.Out", "kw.InOut"):
        assert name in str(caught.value)


@pytest.mark.parametrize("value", [1.5, 12345, "text", [1.0], object()])
def test_what_is_no_array(saxpy, value):
    with pytest.raises(kw.ArgumentError, match=r"parameter 3 \(float\*\)"):
        saxpy[1, 8](1.0, kw.ones(8), value, 8)


def test_an_address_is_wrapped(saxpy):
    x, y = kw.ones(8), kw.zeros(8)
    with pytest.raises(kw.ArgumentError, match=r"kw\.Pointer"):
        saxpy[1, 8](1.0, x.ptr, y, 8)
    saxpy[1, 8](1.0, kw.Pointer(x.ptr, np.float32), kw.Pointer(y.ptr), 8)
    assert (y.numpy() == 1).all()
    with pytest.raises(kw.ArgumentError, match="int32"):
        saxpy[1, 8](1.0, kw.Pointer(x.ptr, "int32"), y, 8)
    with pytest.raises(TypeError):
        kw.Pointer("0x10")
    pointer = kw.Pointer(16, "float32")
    assert pointer.address == 16 and pointer.dtype == np.float32 and "0x10" in repr(pointer)


def test_none_is_null():
    is_null = kw.kernel("__global__ void f(const float* p, int* out) { *out = p == nullptr; }")
    out = kw.zeros(1, "int32")
    is_null[1, 1](None, out)
    assert out.item() == 1
    is_null[1, 1](kw.zeros(1), out)
    assert out.item() == 0


def test_non_contiguous_arrays_are_refused_unless_strided(saxpy):
    x, y = kw.arange(16, dtype="float32"), kw.zeros(8)
    with pytest.raises(kw.ArgumentError, match=r"x\.copy\(\)"):
        saxpy[1, 8](1.0, x[::2], y, 8)
    with pytest.raises(kw.ArgumentError, match=r"kw\.strided\(y\).*copy back: y\[\.\.\.\] = t"):
        saxpy[1, 8](1.0, y, x[::2], 8)
    saxpy[1, 8](1.0, kw.strided(x[1::2]), y, 7)
    np.testing.assert_array_equal(y.numpy()[:7], np.arange(1, 8))
    saxpy[1, 8](1.0, x[::2].copy(), y, 8)
    np.testing.assert_array_equal(y.numpy()[7], 14)
    saxpy[1, 8](1.0, x[4:12], y, 8)


def test_arrays_of_another_device_are_refused(saxpy, monkeypatch, sim):
    class FromGpu:
        def __dlpack_device__(self):
            return 2, 0

        def __dlpack__(self, **_):
            raise AssertionError("nothing may be asked of an array of another device")

    with pytest.raises(kw.ArgumentError, match="cuda:0") as caught:
        saxpy[1, 8](1.0, FromGpu(), kw.zeros(8), 8)
    assert "sim" in str(caught.value) and "parameter 2" in str(caught.value)


def test_a_torch_like_tensor_on_a_gpu_is_of_another_device(saxpy, sim):
    class Tensor:
        is_cuda = True

        def data_ptr(self):
            return 4096

        def is_contiguous(self):
            return True

        def get_device(self):
            return 0

    with pytest.raises(kw.ArgumentError, match="cuda:0"):
        saxpy[1, 8](1.0, Tensor(), kw.zeros(8), 8)


def test_host_arrays_of_other_libraries_are_told_the_ways(saxpy):
    class HostTensor:
        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, **_):
            raise AssertionError("host memory is not asked for")

    with pytest.raises(kw.ArgumentError, match=r"kw\.In"):
        saxpy[1, 8](1.0, HostTensor(), kw.zeros(8), 8)


def test_in_out_and_inout(saxpy):
    x, y = np.arange(100, dtype=np.float32), np.ones(100, np.float32)
    saxpy[1, 128](2.0, kw.In(x), kw.InOut(y), 100)
    np.testing.assert_array_equal(y, 2 * x + 1)
    copy = kw.kernel("__global__ void f(const int* a, int* b) { b[threadIdx.x] = a[threadIdx.x]; }")
    a, b = np.arange(24, dtype=np.int32), np.zeros((24, 2), np.int32)
    copy[1, 24](kw.In(a[::-1]), kw.Out(b[:, 1]))
    np.testing.assert_array_equal(b[:, 1], a[::-1])
    assert (b[:, 0] == 0).all()


def test_host_wrappers_refuse(saxpy):
    x, y = np.ones(8, np.float32), kw.zeros(8)
    with pytest.raises(kw.ArgumentError, match="const"):
        saxpy[1, 8](1.0, kw.InOut(x), y, 8)
    with pytest.raises(kw.ArgumentError, match="float64"):
        saxpy[1, 8](1.0, kw.In(np.ones(8)), y, 8)
    with pytest.raises(kw.ArgumentError):
        saxpy[1, 8](kw.In(x), y, y, 8)
    with pytest.raises(kw.ArgumentError, match="NumPy"):
        kw.In([1, 2])
    frozen = np.ones(8, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(kw.ArgumentError, match="read-only"):
        kw.Out(frozen)


POINTEES = r"""
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
__global__ void anything(const void* p, int* out) { *out = 1; }
__global__ void bytes(const char* p, int* out) { *out = 2; }
__global__ void octets(const unsigned char* p, int* out) { *out = 3; }
__global__ void vectors(const float4* p, int* out) { *out = (int)p[0].w; }
__global__ void half_pairs(const __half2* p, int* out) { *out = (int)(float)p[0].y; }
__global__ void brains(const __nv_bfloat16* p, int* out) { *out = (int)(float)p[0]; }
__global__ void eighths(const __nv_fp8_e4m3* p, int* out) { *out = (int)(float)p[0]; }
__global__ void fifths(const __nv_fp8_e5m2* p, int* out) { *out = (int)(float)p[0]; }
__global__ void halves(const half* p, int* out) { *out = (int)__half2float(p[0]); }
__global__ void pointers(float* const* p, int* out) { *out = (int)*p[1]; }
struct Particle { float x; int id; };
__global__ void particles(const Particle* p, int* out) { *out = p[1].id; }
__global__ void complexes(const float2* p, int* out) { *out = (int)p[0].y; }
"""


@pytest.fixture(scope="session")
def pointees():
    return kw.module(POINTEES)


def answer(pointees, name, array):
    out = kw.zeros(1, "int32")
    pointees[name][1, 1](array, out)
    return out.item()


def test_void_takes_any_array(pointees):
    for name in ("float32", "int8", "bfloat16", "complex128"):
        assert answer(pointees, "anything", kw.zeros(3, name)) == 1
    assert answer(pointees, "anything", kw.In(np.zeros(3, PAIR))) == 1


def test_char_takes_any_array_of_bytes(pointees):
    for name in ("int8", "uint8", "bool", "float8_e4m3fn"):
        assert answer(pointees, "bytes", kw.zeros(3, name)) == 2
        assert answer(pointees, "octets", kw.zeros(3, name)) == 3
    with pytest.raises(kw.ArgumentError, match="1 byte"):
        answer(pointees, "bytes", kw.zeros(3, "int16"))


def test_vector_pointees(pointees):
    x = kw.arange(16, dtype="float32")
    assert answer(pointees, "vectors", x) == 3
    assert answer(pointees, "vectors", x[4:]) == 7
    with pytest.raises(kw.ArgumentError, match="16 bytes"):
        answer(pointees, "vectors", x[1:5])
    with pytest.raises(kw.ArgumentError, match="multiple"):
        answer(pointees, "vectors", kw.zeros(5))
    with pytest.raises(kw.ArgumentError, match="float64"):
        answer(pointees, "vectors", kw.zeros(4, "float64"))
    assert answer(pointees, "half_pairs", kw.asarray(np.array([1, 9], "f2"))) == 9
    assert answer(pointees, "complexes", kw.full(2, 1 + 5j)) == 5
    assert answer(pointees, "complexes", kw.asarray(np.array([1, 6], "f4"))) == 6


def test_small_floats(pointees):
    assert answer(pointees, "brains", kw.full(2, 5, "bfloat16")) == 5
    assert answer(pointees, "halves", kw.full(2, 6, "float16")) == 6
    assert answer(pointees, "eighths", kw.full(2, 7, "float8_e4m3fn")) == 7
    assert answer(pointees, "fifths", kw.full(2, 8, "float8_e5m2")) == 8
    for name, wrong in (("brains", "float16"), ("halves", "bfloat16"), ("eighths", "float8_e5m2")):
        with pytest.raises(kw.ArgumentError, match=wrong):
            answer(pointees, name, kw.zeros(2, wrong))


def test_pointers_to_pointers(pointees):
    x, y = kw.full(1, 3.0), kw.full(1, 4.0)
    table = kw.asarray(np.array([x.ptr, y.ptr], np.uint64))
    assert answer(pointees, "pointers", table) == 4
    with pytest.raises(kw.ArgumentError, match="uint64"):
        answer(pointees, "pointers", kw.zeros(2))


def test_pointers_to_structs(pointees):
    dtype = np.dtype([("x", "f4"), ("id", "i4")])
    particles = np.array([(0.5, 11), (1.5, 22)], dtype)
    assert answer(pointees, "particles", kw.asarray(particles.view(np.uint8))) == 22
    assert answer(pointees, "particles", kw.In(particles)) == 22
    with pytest.raises(kw.ArgumentError):
        answer(pointees, "particles", kw.zeros(4))
    with pytest.raises(kw.ArgumentError, match="multiple"):
        answer(pointees, "particles", kw.zeros(9, "uint8"))


def test_many_arguments():
    names = [f"a{i}" for i in range(100)]
    text = (
        f"__global__ void sum({', '.join(f'double {name}' for name in names)}, double* out) "
        f"{{ *out = {' + '.join(names)}; }}"
    )
    out = kw.zeros(1, "float64")
    kw.kernel(text)[1, 1](*range(100), out)
    assert out.item() == sum(range(100))


def test_a_kernel_without_parameters():
    nothing = kw.kernel("__global__ void nothing() {}")
    nothing[1, 1]()
    assert nothing.signature == "nothing()" and nothing.parameters == []
    with pytest.raises(kw.ArgumentError, match="takes 0 arguments, 1 was given"):
        nothing[1, 1](1)


def test_empty_arrays_are_taken(saxpy):
    saxpy[1, 8](1.0, kw.zeros(0), kw.zeros(0), 0)
