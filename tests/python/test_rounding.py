"""Rounding to decimal digits, clip() and round() as methods, against NumPy."""

import ml_dtypes
import numpy as np
import pytest

import kernwright as kw

RNG = np.random.default_rng(8)


@pytest.mark.parametrize(("dtype", "digits"), [
    ("float64", 1), ("float32", 2), ("float32", -2), ("float64", 12), ("int64", -3), ("int8", -1),
    ("uint8", -2), ("int16", 3), ("int8", -3), ("complex64", 1), ("float32", 0),
])  # fmt: skip
def test_digits_are_numpys(dtype, digits):
    limits = np.iinfo(dtype) if np.dtype(dtype).kind in "iu" else None
    values = RNG.standard_normal(300) * 1000
    if limits is not None:
        values = RNG.integers(limits.min // 2, limits.max // 2, 300)
        values[:40] = np.arange(40) * 5 - (100 if limits.min else 0)
    values = values.astype(dtype)
    if dtype == "complex64":
        values = values + 1j * values[::-1]
    with np.errstate(all="ignore"):
        expected = np.round(values, digits)
    if limits is not None:
        expected = np.array([round(int(value), digits) for value in values])
    x = kw.asarray(values)
    for found in (kw.round(x, digits), x.round(decimals=digits), round(x, digits)):
        assert found.dtype == values.dtype
        error = 1e-7 if dtype == "complex64" else 0  # NumPy divides by a complex number
        np.testing.assert_allclose(found.numpy(), expected.astype(dtype), rtol=error)


def test_ties_views_and_what_is_not_finite():
    values = np.array([[0.125, 0.375, -0.125], [1e300, np.inf, np.nan]])
    for view in (values, values.T, values[:, ::-2], values[:0]):
        np.testing.assert_array_equal(kw.asarray(view).round(2).numpy(), np.round(view, 2))
    np.testing.assert_array_equal(kw.asarray(values).round(-400).numpy()[0], 0)
    assert kw.asarray(np.float32(3e38)).round(30).item() == np.float32(3e38)
    half = np.array([600.126, 0.129], np.float16)  # float16 has no room for 60012.6
    np.testing.assert_allclose(kw.asarray(half).round(2).numpy(), [600, 0.13], rtol=1e-3)
    small = kw.asarray(np.array([1.26, 2.5], ml_dtypes.bfloat16)).round(1)
    assert small.dtype == ml_dtypes.bfloat16 and abs(small.tolist()[0] - 1.3) < 0.01


def test_large_integers_keep_their_digits():
    values = [2**62 + 1234567, -(2**62) - 7654321, 15, 25, -15, -25]
    found = kw.asarray(values).round(-1).tolist()
    assert found == [round(value, -1) for value in values]
    assert kw.asarray(np.array([2**64 - 1], np.uint64)).round(-2).tolist() == [2**64 - 16]


def test_out_and_clip():
    x, out = kw.asarray([1.26, -2.25, 9.0]), kw.zeros(3)
    assert x.round(1, out) is out and np.array_equal(out.numpy(), np.float32([1.3, -2.2, 9]))
    assert kw.round(x, out=out) is out and out.tolist() == [1, -2, 9]
    assert x.clip(-1, 2, out) is out and out.tolist() == [np.float32(1.26), -1, 2]
    assert x.clip(max=0).tolist() == [0, -2.25, 0] and x.clip(min=0).tolist()[1] == 0
    assert x.clip(kw.asarray([2.0, 0.0, 0.0]), 5).tolist() == [2, 0, 5]
    with pytest.raises(TypeError):
        x.round(1.5)
