"""polyval, polyfit: against NumPy."""

import numpy as np
import pytest
from numpy_pairs import compare, same, views

import kernwright as kw

RNG = np.random.default_rng(11)
X = np.linspace(-2, 3, 21)
Y = 2 * X**3 - X + RNG.normal(size=21)


def test_values():
    p = np.array([1.5, -2.0, 0.0, 3.0])
    rows = RNG.normal(size=(4, 5))
    for view in views(rows):
        compare(kw.polyval(kw.asarray(p), view), np.polyval(p, rows))
    same("polyval", np.arange(3), np.arange(4))
    same("polyval", p, X[:0])
    same("polyval", p[:1], X)
    same("polyval", p * 1j, X)
    same("polyval", np.array([True, True]), np.array([True, False]))
    same("polyval", np.array([2**40, 5]), np.array([2**40, 3]))
    compare(kw.polyval([1, 2.5], kw.asarray(X)), np.polyval([1, 2.5], X))
    single = kw.polyval([1, 2.5], kw.asarray(np.float32(X)))
    assert single.dtype == np.float32
    with pytest.raises(kw.InvalidArgument, match="vector"):
        kw.polyval(kw.ones((2, 2)), kw.ones(2))


def test_fits():
    for degree in (0, 1, 3, 6):
        same("polyfit", X, Y, degree, rtol=1e-9)
    same("polyfit", X, np.stack([Y, Y**2], 1), 2, rtol=1e-9)
    same("polyfit", X, Y + 1j * X, 2, rtol=1e-9)
    same("polyfit", X, Y, 2, w=np.abs(Y), rtol=1e-9)
    same("polyfit", np.arange(5), np.arange(5) ** 2, 2, rtol=1e-9)
    single = kw.polyfit(kw.asarray(np.float32(X)), kw.asarray(np.float32(Y)), 3)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single.numpy(), np.polyfit(X, Y, 3), rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore")
def test_details_of_fits():
    coefficients, residuals, rank, singular, limit = np.polyfit(X, Y, 3, full=True)
    found = kw.polyfit(kw.asarray(X), kw.asarray(Y), 3, full=True)
    compare(found[0], coefficients, rtol=1e-9)
    compare(found[1], residuals, rtol=1e-9)
    assert int(found[2]) == rank and found[4] == limit
    compare(found[3], singular, rtol=1e-9)
    for cov in (True, "unscaled"):
        same("polyfit", X, Y, 3, cov=cov, rtol=1e-8)
        same("polyfit", X, np.stack([Y, Y**2], 1), 2, cov=cov, rtol=1e-8)
    few = kw.polyfit(kw.asarray(X[:2]), kw.asarray(Y[:2]), 3)
    compare(few, np.polyfit(X[:2], Y[:2], 3), rtol=1e-8)


def test_errors():
    x = kw.asarray(X)
    with pytest.raises(kw.InvalidArgument, match="negative"):
        kw.polyfit(x, x, -1)
    with pytest.raises(kw.InvalidArgument, match="places"):
        kw.polyfit(x, x[:3], 1)
    with pytest.raises(kw.InvalidArgument, match="x is a vector"):
        kw.polyfit(kw.ones(0), kw.ones(0), 1)
    with pytest.raises(kw.InvalidArgument, match="w of shape"):
        kw.polyfit(x, x, 1, w=kw.ones(3))
    with pytest.raises(kw.InvalidArgument, match="covariances"):
        kw.polyfit(x[:2], x[:2], 1, cov=True)
