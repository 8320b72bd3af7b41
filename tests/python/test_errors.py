"""The exceptions: their families, and that they travel between processes."""

import pickle

import pytest

import kernwright as kw

FAMILIES = {
    "InvalidArgument": ValueError,
    "ArgumentError": TypeError,
    "ArgumentRangeError": OverflowError,
    "LaunchConfigError": ValueError,
    "NameNotFound": KeyError,
    "DriverNotFound": ImportError,
    "NvrtcNotFound": ImportError,
    "OutOfMemory": MemoryError,
    "Timeout": TimeoutError,
    "DeviceLost": kw.DriverError,
    "CompileError": kw.Error,
    "DeviceFault": kw.Error,
    "DeviceNotFound": kw.Error,
    "DriverError": kw.Error,
    "UnsupportedInstruction": kw.Error,
}


@pytest.mark.parametrize("name", FAMILIES)
def test_families(name):
    kind = getattr(kw, name)
    assert issubclass(kind, kw.Error)
    assert issubclass(kind, FAMILIES[name])
    assert str(kind("what 'happened'")) == "what 'happened'"


def test_errors_pickle_with_their_attributes():
    with pytest.raises(kw.CompileError) as caught:
        kw.kernel("__global__ void broken(int* x) { x[0] = nothing; }").compile()
    error = pickle.loads(pickle.dumps(caught.value))
    assert str(error) == str(caught.value)
    assert error.diagnostics == caught.value.diagnostics
    assert error.source == caught.value.source


def test_a_refused_instruction_names_itself_its_line_and_what_to_do(sim):
    fetch = kw.kernel("""
#define FETCH(a, b, c, d, t, z) asm("tex.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %5}];" \\
                                    : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(t), "f"(z))
__global__ void fetch(unsigned long long t, float* y) {
    float b, c, d, z = 0;
    FETCH(*y, b, c, d, t, z);
}""")
    with pytest.raises(kw.UnsupportedInstruction) as caught:
        fetch[1, 1](0, kw.zeros(1, "f4"))
    message = str(caught.value)
    assert "the instruction tex.2d.v4.f32.f32 is not simulated: no textures" in message
    assert "read global memory through a pointer (__ldg for its cache)" in message
    assert "line 6 of the kernel's text" in message
