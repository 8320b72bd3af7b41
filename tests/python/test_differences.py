"""gradient, trapezoid, ediff1d, diff, unwrap, interp: against NumPy."""

import numpy as np
import pytest
from numpy_pairs import compare, same, views

import kernwright as kw

RNG = np.random.default_rng(10)
X = RNG.normal(size=(5, 6))
PLACES = np.array([0.0, 0.5, 0.7, 2.0, 3.5, 4.0])


def test_gradients():
    for edge_order in (1, 2):
        same("gradient", X, edge_order=edge_order)
        same("gradient", X[0], 0.5, edge_order=edge_order)
        same("gradient", X[0], PLACES, edge_order=edge_order)
        same("gradient", X, 2.0, PLACES, edge_order=edge_order)
        same("gradient", X, PLACES, axis=-1, edge_order=edge_order)
        same("gradient", X[:3, :3], axis=(1, 0), edge_order=edge_order)
    same("gradient", np.arange(5) ** 2)
    same("gradient", X[0, :2])
    same("gradient", X[0] + 1j)
    compare(kw.gradient(kw.asarray(X), [0, 1, 2, 4, 8.0], axis=0),
            np.gradient(X, [0, 1, 2, 4, 8.0], axis=0))  # fmt: skip
    for view in views(X):
        compare(kw.gradient(view, axis=1), np.gradient(X, axis=1))
    for wrong in ({"edge_order": 3}, {"axis": (0, 0)}, {"edge_order": 2, "axis": 1}):
        with pytest.raises(kw.InvalidArgument):
            kw.gradient(kw.ones((3, 2)), **wrong)
    with pytest.raises(kw.InvalidArgument, match="places"):
        kw.gradient(kw.asarray(X[0]), kw.ones(3))
    with pytest.raises(kw.InvalidArgument, match="distances"):
        kw.gradient(kw.asarray(X), 1.0, 2.0, 3.0)


def test_integrals():
    same("trapezoid", X)
    same("trapezoid", X, dx=0.5, axis=0)
    same("trapezoid", X, PLACES)
    same("trapezoid", X, PLACES[:5], axis=0)
    same("trapezoid", X, X**2, axis=0)
    same("trapezoid", np.arange(5))
    same("trapezoid", X[0, :1])
    for view in views(X):
        compare(kw.trapezoid(view), np.trapezoid(X))


def test_differences():
    same("ediff1d", X)
    same("ediff1d", X[0], to_end=np.array([9.0]), to_begin=np.array([7.0, 8]))
    compare(kw.ediff1d(kw.arange(4), 9, [7, 8]), np.ediff1d(np.arange(4), 9, [7, 8]))
    same("ediff1d", X[0, :1])
    same("diff", X, 2, 0)
    same("diff", X, 1, -1, np.zeros((5, 1)), np.ones((5, 2)))
    same("diff", X, prepend=0.5, append=2)
    same("diff", np.arange(4), 1, 0, 7)


def test_unwrapped_angles():
    angles = np.cumsum(RNG.uniform(-4, 4, (4, 9)), 1)
    same("unwrap", angles)
    same("unwrap", angles, axis=0)
    same("unwrap", angles, 5.0)
    same("unwrap", angles, period=4.0)
    same("unwrap", np.array([0, 3, 6, 1, 4, 7, 2]), period=7)
    same("unwrap", np.array([0, 3, 6, 1, 4, 0, 2, 5]), period=6)
    same("unwrap", np.array([0.0, np.pi, 0.0, -np.pi, 2 * np.pi]))
    same("unwrap", angles[0, :1])
    same("unwrap", np.array([0, 4, 9]))
    for view in views(angles):
        compare(kw.unwrap(view), np.unwrap(angles))


def test_interpolation():
    values = np.array([1.0, 3.0, -2.0, np.inf, 5.0, 4.0])
    x = np.array([[-1.0, 0.0, 0.5], [0.6, 2.5, 4.0], [4.1, np.nan, 3.7], [2.0, 0.7, np.inf]])
    same("interp", x, PLACES, values)
    same("interp", x, PLACES, values, left=-7.0, right=9)
    same("interp", x[:3, 0], PLACES[:1], values[:1])
    same("interp", np.arange(4), np.arange(3) * 2, np.arange(3))
    same("interp", x[:2], PLACES, values[:6] * 0 + 1j * PLACES)
    finite = np.array([1.0, 3, -2, 0, 5, 4])
    turns = np.array([-3.0, 0.1, 11.5, 5.0, 4.4])
    same("interp", turns, np.array([3.0, 0.5, -1, 8, 2, 4.5]), finite, period=5)
    same("interp", x[:0], PLACES, values)
    for view in views(x):
        compare(kw.interp(view, kw.asarray(PLACES), kw.asarray(values)),
                np.interp(x, PLACES, values))  # fmt: skip
    doubled = np.array([0.0, 1.0, 1.0, 2.0])
    same("interp", np.array([0.5, 1.0, 1.5]), doubled, np.array([0.0, 1.0, 5.0, 6.0]))
    single = kw.interp(kw.asarray([0.25]), kw.asarray([0.0, 1.0]), kw.asarray([0.0, 4.0]))
    assert single.dtype == np.float32 and single.item() == 1
    for xp, fp in ((kw.ones(0), kw.ones(0)), (kw.ones(2), kw.ones(3))):
        with pytest.raises(kw.InvalidArgument, match="xp"):
            kw.interp(kw.ones(2), xp, fp)
    with pytest.raises(kw.InvalidArgument, match="period"):
        kw.interp(kw.ones(2), kw.ones(2), kw.ones(2), period=0)
