"""Launches without array checks, on request."""

import numpy as np
import pytest

import kernwright as kw


def test_checks_can_be_left_out_and_come_back(saxpy):
    x, y = kw.ones(8), kw.zeros(8)
    wrong = kw.ones(8, dtype="int32")
    with kw.checked(False):
        saxpy[1, 8](1.0, wrong, y, 8)  # as it is: the bits of an int 1 are a tiny float
        with pytest.raises(kw.ArgumentError, match="missing"):
            saxpy[1, 8](1.0, x, y)
        with pytest.raises(kw.ArgumentError, match="wants an array"):
            saxpy[1, 8](1.0, object(), y, 8)
        with kw.checked(True), pytest.raises(kw.ArgumentError, match="int32"):
            saxpy[1, 8](1.0, wrong, y, 8)
        saxpy[1, 8](1.0, wrong, y, 8)
    assert (y.numpy() == 2 * np.array(1, "i4").view("f4")).all()
    with pytest.raises(kw.ArgumentError, match="int32"):
        saxpy[1, 8](1.0, wrong, y, 8)
    kw.checked(False)  # from now on
    saxpy[1, 8](1.0, wrong, y, 8)
    kw.checked(True)
    with pytest.raises(TypeError):
        kw.checked(None)


def test_an_address_is_checked_as_an_array_is(saxpy):
    source = "__global__ void first(const float4* x, float* y) { *y = x->x; }"
    first = kw.kernel(source)
    x, y = kw.arange(8, dtype="float32"), kw.zeros(1)
    for dtype in (None, "float32"):
        first[1, 1](kw.Pointer(x.ptr + 16, dtype), y)
        assert y.item() == 4
        message = rf"parameter 1 .* at address {x.ptr + 8:#x}, not aligned to 16 bytes"
        with pytest.raises(kw.ArgumentError, match=message):
            first[1, 1](kw.Pointer(x.ptr + 8, dtype), y)
    pair = kw.kernel("__global__ void pair(const float2* x, float* y) { *y = x->x; }")
    for dtype in ("float32", "complex64"):  # the second has elements of the vector's size
        pair[1, 1](kw.Pointer(x.ptr + 8, dtype), y)
        assert y.item() == 2
        with pytest.raises(kw.ArgumentError, match="not aligned to 8 bytes"):
            pair[1, 1](kw.Pointer(x.ptr + 4, dtype), y)
    take = kw.kernel(
        "__global__ void take(const float4* x, unsigned long long* y) { *y = (size_t)x; }"
    )
    address = kw.zeros(1, "uint64")
    with kw.checked(False):
        for pointer in (kw.Pointer(x.ptr + 8), kw.Pointer(x.ptr + 4, "int32")):
            take[1, 1](pointer, address)
            assert address.item() == pointer.address
        saxpy[1, 1](1.0, kw.Pointer(x.ptr, "int32"), y, 0)
    with pytest.raises(kw.ArgumentError, match="got memory of int32: x wants float32"):
        saxpy[1, 8](1.0, kw.Pointer(x.ptr, "int32"), y, 8)
