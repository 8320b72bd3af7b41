"""Types of results: NumPy's own table, and its rules for numbers."""

import ml_dtypes
import numpy as np
import pytest
from conftest import DTYPES

import kernwright as kw

TYPES = {name: np.dtype(getattr(ml_dtypes, name, name)) for name in DTYPES}


def test_the_table_is_that_of_numpy():
    for name, a in TYPES.items():
        for other, b in TYPES.items():
            try:
                expected = np.promote_types(a, b)
            except TypeError:
                with pytest.raises(kw.ArgumentError, match="no type in common"):
                    kw.promote_types(name, other)
                continue
            assert kw.promote_types(name, other) == expected
            assert kw.result_type(a, b) == expected
            assert kw.can_cast(a, b) == np.can_cast(a, b)


def test_same_kind():
    plain = [d for d in TYPES.values() if d.kind != "V"]
    for a in plain:
        for b in plain:
            expected = np.can_cast(a, b, "same_kind")
            assert kw.can_cast(a, b, "same_kind") == expected, (a, b)


@pytest.mark.parametrize(
    "number", [True, 3, 2.5, 1j, np.int8(3), np.uint64(3), np.float32(2), np.complex128(1j)]
)
def test_numbers_beside_arrays(number):
    for name, dtype in TYPES.items():
        if dtype.kind == "V" or (dtype.itemsize == 1 and dtype.kind == "f"):
            continue
        expected = np.result_type(np.ones(2, dtype), number)
        x = kw.ones(2, name)
        assert kw.result_type(x, number) == kw.result_type(number, x) == expected
        if name in ("bool", "int32", "float16"):
            got = number * x
            assert got.dtype == expected
            np.testing.assert_array_equal(got.numpy(), number * np.ones(2, dtype))


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_numbers_keep_small_floats(name):
    x = kw.ones(2, name)
    for number in (True, 2, 0.5):
        assert kw.result_type(x, number) == kw.result_type(number, x) == x.dtype
    assert (x + 0.5).dtype == x.dtype
    assert kw.result_type(x, 1j) == np.complex64
    assert kw.result_type(x, np.float32(1)) == np.float32


def test_numbers_alone():
    assert kw.result_type(1) == np.int64 and kw.result_type(1.0) == np.float32
    assert kw.result_type(1, 2.0) == np.float32 and kw.result_type(1j, 1) == np.complex64
    assert kw.result_type(True) == np.bool_ and kw.result_type(True, 1) == np.int64
    assert kw.result_type("int8", np.float16, kw.ones(1, "u2"), 3) == np.float32


def test_wrong_types():
    with pytest.raises(kw.ArgumentError, match="at least one"):
        kw.result_type()
    with pytest.raises(kw.ArgumentError, match="element type"):
        kw.result_type("text")
    with pytest.raises(kw.ArgumentError):
        kw.promote_types("bfloat16", "float16")
    with pytest.raises(kw.InvalidArgument, match="same_kind"):
        kw.can_cast("f4", "f8", "unsafe")
