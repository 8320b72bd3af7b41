"""arange() and linspace() on the device: NumPy's values to the last bit."""

import ml_dtypes
import numpy as np
import pytest

import kernwright as kw

WHOLE = [f"{sign}int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u")]
REAL = ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"]


def host_dtype(name):
    return np.dtype(getattr(ml_dtypes, name, name))


@pytest.mark.parametrize("dtype", WHOLE)
def test_whole_numbers(dtype):
    low = 0 if dtype.startswith("u") else -60
    for arguments in ((100,), (low, 61), (low, 61, 7), (61, low, -5), (5, 5), (5, 4)):
        found = kw.arange(*arguments, dtype=dtype)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.numpy(), np.arange(*arguments).astype(dtype))


@pytest.mark.parametrize("dtype", REAL)
def test_real_numbers(dtype):
    wide = host_dtype(dtype)
    for start, stop, step in ((0, 40, 1), (0.1, 7.3, 0.1), (3, -2.5, -0.37), (1, 1.0, 0.5)):
        count = max(0, int(np.ceil((stop - start) / step)))
        expected = (start + step * np.arange(count, dtype=np.float64)).astype(wide)
        found = kw.arange(start, stop, step, dtype=dtype)
        assert found.numpy().tobytes() == expected.tobytes()
    for options in ({}, {"endpoint": False}):
        expected = np.linspace(-1.3, 2.9, 371, **options).astype(wide)
        found = kw.linspace(-1.3, 2.9, 371, dtype=dtype, **options)
        assert found.numpy().tobytes() == expected.tobytes()


def test_ends():
    assert kw.arange(2**63 - 3, 2**63 - 1).numpy().tolist() == [2**63 - 3, 2**63 - 2]
    assert kw.arange(2**63, 2**63 + 3, dtype="uint64").numpy().tolist()[-1] == 2**63 + 2
    assert kw.linspace(0, 1, 1).numpy().tolist() == [0]
    assert kw.linspace(0, 1, 0).shape == (0,)
    assert kw.linspace(3, 3, 4).numpy().tolist() == [3] * 4
    assert kw.linspace(0.0, 0.1, 7, dtype="float64").numpy()[-1] == 0.1
    assert kw.linspace(0, 1e-323, 9, dtype="float64").numpy().tolist() == (
        np.linspace(0, 1e-323, 9).tolist()
    )
    assert kw.arange(4).dtype == "int64" and kw.arange(4.0).dtype == "float32"
    with pytest.raises(kw.ArgumentRangeError, match="do not fit int8"):
        kw.arange(300, dtype="int8")
    with pytest.raises(kw.ArgumentRangeError):
        kw.arange(-1, 3, dtype="uint8")
    with pytest.raises(kw.Error):
        kw.arange(10**30)


def test_long_ones():
    found = kw.arange(300_000, dtype="int32").numpy()
    np.testing.assert_array_equal(found, np.arange(300_000, dtype=np.int32))
