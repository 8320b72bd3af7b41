"""Types of results: NumPy's own table, and its rules for numbers."""

import ml_dtypes
import numpy as np
import pytest
from conftest import DTYPES

import kernwright as kw

TYPES = {name: np.dtype(getattr(ml_dtypes, name, name)) for name in DTYPES}


def promoted(a, b):
    try:
        return np.promote_types(a, b)
    except TypeError:  # ml_dtypes has all pairs since 0.7
        narrow = {np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)}
        both, bfloat16 = {a, b}, np.dtype(ml_dtypes.bfloat16)
        if bfloat16 in both and both & narrow:
            return bfloat16
        small = narrow | {bfloat16}
        return np.promote_types(*(np.float32 if each in small else each for each in (a, b)))


def test_the_table_is_that_of_numpy():
    for name, a in TYPES.items():
        for other, b in TYPES.items():
            expected = promoted(a, b)
            assert kw.promote_types(name, other) == expected
            assert kw.result_type(a, b) == expected
            assert kw.can_cast(a, b) == (np.can_cast(a, b) or expected == b)


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


@pytest.mark.parametrize("other", ["int16", "int32", "uint64", "float16", "float8_e5m2"])
@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn"])
def test_small_floats_beside_all_types(name, other):
    a, b = (np.arange(1, 7).astype(TYPES[each]) for each in (name, other))
    x, y, expected = kw.asarray(a), kw.asarray(b), promoted(a.dtype, b.dtype)
    for got, exact in ((x + y, np.arange(1, 7) * 2), (y * x, np.arange(1, 7) ** 2)):
        assert got.dtype == expected
        np.testing.assert_array_equal(got.numpy().astype(np.float64), exact)
    joined = kw.concat([x, y])
    assert joined.dtype == expected
    np.testing.assert_array_equal(joined.numpy().astype(np.float64), [*range(1, 7), *range(1, 7)])
    assert kw.where(kw.asarray([True, False] * 3), x, y).dtype == expected


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
    with pytest.raises(kw.ArgumentError, match="element type"):
        kw.promote_types("bfloat16", "text")
    with pytest.raises(kw.InvalidArgument, match="same_kind"):
        kw.can_cast("f4", "f8", "unsafe")
