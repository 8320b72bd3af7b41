"""isclose, allclose, array_equal, array_equiv: against NumPy."""

import numpy as np
import pytest
from numpy_pairs import compare, same, views

import kernwright as kw

X = np.array([0.0, 1.0, -2.0, 1e300, np.inf, -np.inf, np.nan, 1e-9])
Y = np.array([1e-9, 1.000009, -2.1, 1e300, np.inf, np.inf, np.nan, 0.0])


def test_close_numbers():
    for equal_nan in (False, True):
        same("isclose", X, Y, equal_nan=equal_nan)
        same("isclose", X[:, None], Y, 0.1, atol=1e-10, equal_nan=equal_nan)
        same("isclose", X + 1j * Y[::-1], Y + 1j * Y[::-1], equal_nan=equal_nan)
        same("allclose", X, X, equal_nan=equal_nan)
    same("isclose", np.array([2**62, 5]), np.array([2**62 + 1, 6], np.uint64))
    same("isclose", np.array([True, False]), 1)
    same("isclose", X, 1.0)
    same("isclose", X, Y, atol=np.abs(Y))
    near = np.array([1.0, 1.1, 0.0, 3e-8, 5e-9, 1e5])
    far = np.array([1.1, 1.0, 3e-8, 0.0, 0.0, 1e5 + 0.9])
    same("isclose", near, far)
    for one in (near, near + 0j):  # rtol is a part of the second number: 1.1 or 1.0
        compare(kw.isclose(*map(kw.asarray, (one, far)), 0.0953), np.isclose(one, far, 0.0953))
    same("isclose", X[:0], Y[:0])
    same("allclose", X[:0], Y[:0])
    for view in views(np.resize(X, (3, 8))):
        compare(kw.isclose(view, 1.0, equal_nan=True), np.isclose(np.resize(X, (3, 8)), 1.0))


def test_equal_arrays():
    for equal_nan in (False, True):
        same("array_equal", X, X, equal_nan=equal_nan)
        same("array_equal", X, Y, equal_nan=equal_nan)
    same("array_equal", X, X[:3])
    same("array_equal", np.arange(3), np.arange(3.0))
    same("array_equiv", np.arange(3), np.array([np.arange(3)] * 2))
    same("array_equiv", np.arange(3), np.arange(4))
    same("array_equiv", np.arange(3), np.array([[0, 1, 3]]))


def test_errors():
    with pytest.raises(kw.ArgumentError, match="device"):
        kw.array_equal(np.ones(3), kw.ones(3))
    with pytest.raises(kw.InvalidArgument):
        kw.isclose(kw.ones(3), kw.ones(4))
