"""Conversions to small floats: rounded once, to nearest, ties to even, by their neighbours."""

import ml_dtypes
import numpy as np
import pytest

import kernwright as kw


@np.errstate(all="ignore")
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_a_double_is_rounded_once(name):
    """The nearest of two neighbours, at a tie the one with an even code."""
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    codes = np.arange(2 ** (8 * dtype.itemsize - 1), dtype=f"u{dtype.itemsize}")
    numbers = codes.view(dtype).astype("f8")
    last = np.flatnonzero(np.isfinite(numbers))[-1]
    first, second, code = numbers[:last], numbers[1 : last + 1], codes[:last]
    middle = (first + second) / 2
    tie = code + code % 2
    cases = [(middle, tie), (first, code)]
    for step in (1e-15, 1e-10):
        cases += [(middle * (1 + step), code + 1), (middle * (1 - step), code)]
    for given, expected in cases:
        for sign in (1, -1):
            x = kw.asarray(given * sign)
            wanted = (expected.astype(codes.dtype).view(dtype).astype("f8")) * sign
            np.testing.assert_array_equal(x.astype(name).numpy().astype("f8"), wanted)
            out = kw.zeros(last, name)
            out[...] = x
            np.testing.assert_array_equal(out.numpy().astype("f8"), wanted)
    large = kw.asarray(np.array([1e308, -1e308, np.inf, np.nan])).astype(name).numpy()
    assert not np.isfinite(large.astype("f8")[2:]).any()
    expected = [np.nan] * 2 if name == "float8_e4m3fn" else [np.inf, -np.inf]
    np.testing.assert_array_equal(large.astype("f8")[:2], expected)


@pytest.mark.parametrize("kind", ["int32", "uint32", "int64", "uint64"])
def test_an_integer_is_rounded_once(kind):
    """bfloat16 has numbers beyond 2**24, which float32 does not hold exactly."""
    given, expected = [], []
    for power in range(9, np.iinfo(kind).bits - (kind[0] == "i")):
        unit = 1 << (power - 7)
        for steps in (0, 1, 77, 126):
            low = (1 << power) + steps * unit
            odd = steps % 2 * unit
            rounded = [(0, 0), (unit // 2, odd), (unit // 2 + 1, unit), (unit // 2 - 1, 0)]
            given += [low + more for more, _ in rounded]
            expected += [low + more for _, more in rounded]
    x = kw.asarray(np.array(given, kind))
    np.testing.assert_array_equal(x.astype("bfloat16").numpy().astype("f8"), np.float64(expected))
    if kind[0] == "i":
        np.testing.assert_array_equal(
            (-x).astype("bfloat16").numpy().astype("f8"), -np.float64(expected)
        )
