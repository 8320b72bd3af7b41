"""Arrays turned, flattened, split: against NumPy."""

import numpy as np
import pytest
from numpy_pairs import compare, same, views

import kernwright as kw

X = np.arange(24.0).reshape(2, 3, 4)
M = X[0]


def test_turned():
    for k in range(-2, 6):
        same("rot90", M, k)
    same("rot90", X, 3, (2, 0))
    for name in ("fliplr", "flipud", "transpose", "ravel"):
        same(name, M)
        same(name, X)
        for view in views(M):
            compare(getattr(kw, name)(view), getattr(np, name)(M))
    same("transpose", X, (1, 2, 0))
    same("ravel", X, "F")
    for axis in (-1, 0, 1, 2):
        for start in (-2, 0, 1, 3):
            same("rollaxis", X, axis, start)


def test_split():
    for sections in (1, 3, 5, [1, 2], [0, 9, 1], np.array([2])):
        same("array_split", M, sections, 1)
    same("array_split", X, 4, axis=-1)
    same("hsplit", M, 2)
    same("hsplit", M[0], [1, 3])
    same("vsplit", M, 3)
    same("dsplit", X, 2)
    same("vsplit", X, np.array([1]))


def test_errors():
    with pytest.raises(kw.AxisError):
        kw.fliplr(kw.ones(3))
    with pytest.raises(kw.AxisError):
        kw.rollaxis(kw.ones((2, 3)), 0, 4)
    with pytest.raises(kw.InvalidArgument):
        kw.rot90(kw.ones((2, 3)), axes=(0, 0))
    with pytest.raises(kw.InvalidArgument, match="order"):
        kw.ravel(kw.ones(3), "K")
    with pytest.raises(kw.InvalidArgument, match="parts"):
        kw.hsplit(kw.ones((2, 3)), 2)
    with pytest.raises(kw.InvalidArgument):
        kw.array_split(kw.ones(3), 0)
    with pytest.raises(kw.AxisError):
        kw.dsplit(kw.ones((2, 3)), 1)
