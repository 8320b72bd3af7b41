"""Outputs of two kernels compared on the device, as NumPy compares them on the host."""

import numpy as np
import pytest

import kernwright as kw
from kernwright.tune._shadow import Shadow, difference, is_equal_on_device

TYPES = ["float32", "float64", "complex64", "complex128", "bool", "int8", "uint8", "int16",
         "uint16", "int32", "uint32", "int64", "uint64"]  # fmt: skip
VALUES = [0.0, -0.0, 1.0, -1.0, 1e-9, 1e30, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("size", [1, 3, 257, 1000])
def test_one_element_that_differs_is_found(dtype, size):
    rng = np.random.default_rng(size)
    a = rng.integers(0, 2, size).astype(dtype)
    for at in {0, size // 2, size - 1}:
        b = a.copy()
        b[at] = not b[at]
        assert is_equal_on_device(kw.asarray(a), kw.asarray(a), 1e-5, 1e-8) is True
        assert is_equal_on_device(kw.asarray(a), kw.asarray(b), 1e-5, 1e-8) is False
        for on_device in (False, True):
            arrays = [kw.asarray(a)], [kw.asarray(b)]
            said = difference(*arrays, 1e-5, 1e-8, on_device=on_device)
            assert said.startswith(f"written array 0 differs at ({at},)")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("rtol", "atol"), [(0.0, 0.0), (1e-5, 1e-8), (0.1, 0.0), (0.0, 2.0)])
def test_tolerances_and_special_values_are_numpys(dtype, rtol, atol):
    for x in VALUES:
        for y in [*VALUES, x * (1 + 1e-6), x * 1.05, x + 1.5]:
            a, b = np.array([x], dtype), np.array([y], dtype)
            with np.errstate(invalid="ignore", over="ignore"):
                same = bool(np.isclose(b, a, rtol=rtol, atol=atol, equal_nan=True)[0])
            found = is_equal_on_device(kw.asarray(a), kw.asarray(b), rtol, atol)
            assert found == same, (x, y)


def test_other_types_shapes_and_none_at_all():
    half = kw.asarray(np.ones(5, np.float16))
    assert is_equal_on_device(half, half, 0.0, 0.0) is None
    assert difference([half], [half], 0.0, 0.0, on_device=True) == ""
    none = kw.zeros(0)
    assert is_equal_on_device(none, none, 0.0, 0.0) is True
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    b = a.copy()
    b[2, 1] += 1
    said = difference([kw.asarray(a)], [kw.asarray(b)], 0.0, 0.0, on_device=True)
    assert said.startswith("written array 0 differs at (2, 1)")
    assert difference([], [], 0.0, 0.0, on_device=True) == ""


def test_poisons_take_turns():
    """What is right over one of them by chance is not over the next."""
    kernel = kw.kernel("__global__ void f(float* y, int* k, const float* x) { *y = *x + *k; }")
    y, k, x = kw.ones(3), kw.ones(3, "int32"), kw.ones(3)
    shadow = Shadow(kernel.parameters, (y, k, x), 1 << 20)
    contents = []
    for turn in range(3):
        assert shadow.poison(turn)
        contents.append(shadow.copies[0].numpy().tobytes())
    assert contents[0] != contents[1] and contents[2] == contents[0]
    assert np.isnan(np.frombuffer(contents[0], np.float32)).all()
    assert (shadow.copies[1].numpy() == 1).all() and (y.numpy() == 1).all()  # floats alone
    assert not Shadow(kernel.parameters, (y[:0], k, x), 1 << 20).poison(0)
