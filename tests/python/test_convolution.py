"""convolve, correlate: against NumPy, and beyond the length from which transforms are used."""

import ml_dtypes
import numpy as np
import pytest
from numpy_pairs import compare, same, views

import kernwright as kw

RNG = np.random.default_rng(9)


@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_modes_and_lengths(name):
    for n, m in ((7, 3), (3, 7), (4, 4), (6, 2), (2, 6), (1, 1), (5, 1), (300, 31)):
        x, y = RNG.normal(size=n), RNG.normal(size=m)
        for mode in ("full", "same", "valid"):
            same(name, x, y, mode)
            same(name, x + 1j * x[::-1], y - 2j, mode)
    same(name, np.arange(5), np.array([1, -2]), "full")
    same(name, np.array([200, 100], np.uint8), np.array([2, 3], np.uint8), "full")
    same(name, np.array([2**62, 3]), np.array([2, 7]), "full")
    same(name, np.array([True, False, True]), np.array([True, True]), "full")
    same(name, np.arange(5), np.array([0.5, 1]), "same")
    if name == "convolve":
        same(name, np.array(2.0), np.arange(3.0))


def test_views_and_short_floats():
    x = RNG.normal(size=(1, 30))
    for view in views(x):
        compare(kw.convolve(view[0], kw.asarray(x[0, :4])), np.convolve(x[0], x[0, :4]))
    short = x[0].astype(ml_dtypes.bfloat16)
    found = kw.convolve(kw.asarray(short), kw.asarray(short))
    assert found.dtype == short.dtype
    wide = short.astype(float)
    np.testing.assert_allclose(found.numpy().astype(float), np.convolve(wide, wide), atol=0.1)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_transforms_of_long_vectors(mode):
    x, y = RNG.normal(size=2500), RNG.normal(size=2049)
    same("convolve", x, y, mode, rtol=1e-10)
    same("correlate", y, x, mode, rtol=1e-10)
    single = kw.convolve(kw.asarray(np.float32(x)), kw.asarray(np.float32(y)), mode)
    compare(single, np.float32(np.convolve(x, y, mode)), rtol=2e-6)
    whole = RNG.integers(-9, 9, 2100)
    same("convolve", whole, whole, mode)


def test_errors():
    for name in ("convolve", "correlate"):
        call = getattr(kw, name)
        with pytest.raises(kw.InvalidArgument, match="empty"):
            call(kw.ones(0), kw.ones(2))
        with pytest.raises(kw.InvalidArgument, match="vectors"):
            call(kw.ones((2, 2)), kw.ones(2))
        with pytest.raises(kw.InvalidArgument, match="mode"):
            call(kw.ones(2), kw.ones(2), "half")
