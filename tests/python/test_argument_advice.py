"""The remedies in errors of arguments: they work, and keep everything the kernel writes."""

import numpy as np
import pytest

import kernwright as kw


def advice(pointer, array):
    """The remedy in the error of this argument."""
    kernel = kw.kernel(f"struct S {{ int a, b; }}; __global__ void f({pointer} p) {{ (void)p; }}")
    with pytest.raises(kw.ArgumentError) as caught:
        kernel[1, 1](array)
    return str(caught.value)


@pytest.mark.parametrize(
    ("pointer", "dtype", "wanted"),
    [
        ("unsigned long long*", "int64", "uint64"),
        ("const unsigned*", "int32", "uint32"),
        ("int*", "float32", "int32"),
        ("float*", "uint8", "float32"),
        ("double2*", "uint8", "float64"),
        ("S*", "float32", "uint8"),
        ("char*", "int32", "uint8"),
        ("float**", "float64", "uint64"),
    ],
)
def test_the_advice_to_view_works(pointer, dtype, wanted):
    array = kw.zeros(16, dtype)
    text = advice(pointer, array)
    assert f'pass p.view("{wanted}")' in text
    kernel = kw.kernel(f"struct S {{ int a, b; }}; __global__ void f({pointer} p) {{ (void)p; }}")
    kernel[1, 1](array.view(wanted))


@pytest.mark.parametrize("pointer", ["float*", "unsigned long long*", "float4*", "S*", "char*"])
@pytest.mark.parametrize("dtype", ["float64", "int64", "uint8", "int8", "bool", "complex64"])
@pytest.mark.parametrize("strided", [False, True])
def test_advice_for_an_output_keeps_the_result(pointer, dtype, strided):
    kernel = kw.kernel(f"struct S {{ int a, b; }}; __global__ void f({pointer} p) {{ (void)p; }}")
    array = kw.zeros(33, dtype)[: 24 * (1 + strided) : 1 + strided]
    try:
        kernel[1, 1](array)
    except kw.ArgumentError as error:
        text = str(error)
    else:
        return  # it fits
    assert ".copy()" not in text and "pass p.astype" not in text
    assert ("astype" not in text and "contiguous array t" not in text) or "p[...] = t" in text


def test_counters_of_another_sign_count():
    count = kw.kernel("__global__ void count(unsigned long long* c) { atomicAdd(c, 5ull); }")
    c = kw.zeros(1, "int64")
    assert 'c.view("uint64"), which is the same memory' in (
        advice("unsigned long long*", c).replace("p.view", "c.view")
    )
    count[1, 1](c.view("uint64"))
    assert c.numpy().tolist() == [5]
    host = np.zeros(1, np.int64)
    with pytest.raises(kw.ArgumentError, match=r'the same memory as c\.view\("uint64"\)'):
        count[1, 1](kw.InOut(host))
    count[1, 1](kw.InOut(host.view("uint64")))
    assert host.tolist() == [5]


def test_a_function_pointer_takes_addresses_alone(sim):
    module = kw.module(
        "__device__ float twice(float x) { return 2 * x; }\n"
        "__device__ float (*pointer)(float) = twice;\n"
        "__global__ void f(float (*g)(float), float* o) { o[0] = g(3); }"
    )
    f, out = module["f"], kw.zeros(1)
    address = int(module.symbol("pointer").numpy())
    f[1, 1](kw.Pointer(address), out)
    assert out.item() == 6
    structs = np.zeros(1, [("a", "u8")])
    for wrong in (address, kw.zeros(8, "u1"), kw.zeros(1, "u8"), kw.In(np.zeros(8, "u1")), out):
        with pytest.raises(kw.ArgumentError, match="wants the address of a device function"):
            f[1, 1](wrong, out)
    with pytest.raises(kw.ArgumentError, match="wants the address of a device function"):
        f[1, 1](kw.In(structs), out)


def test_arrays_go_to_pointers_whose_elements_name_functions(sim):
    kernel = kw.kernel(
        "template <typename F> struct Named { F f; int n; };\n"
        "__global__ void f(Named<float (*)(float)>* s, float* o) { o[0] = s->n; }"
    )
    out = kw.zeros(1)
    kernel[1, 1](kw.zeros(16, "u1"), out)
    assert out.item() == 0
