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
