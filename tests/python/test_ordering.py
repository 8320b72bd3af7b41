"""Partitions, orders of several keys, chosen elements: against NumPy."""

import numpy as np
import pytest
from numpy_pairs import compare, same, views

import kernwright as kw

RNG = np.random.default_rng(4)
X = np.array([[3.0, 1.0, 2.0, 2.0, 7.5], [1.0, 4.0, 2.0, 8.0, 5.0], [0.0, -1.0, np.inf, 3.0, 3.0]])


def test_partitions():
    for view in views(X):
        found = kw.partition(view, 2).numpy()
        np.testing.assert_array_equal(found[:, 2], np.partition(X, 2)[:, 2])
        assert (found[:, :2].max(1) <= found[:, 2]).all()
        order = kw.argpartition(view, [1, -1], axis=0).numpy()
        ordered = np.take_along_axis(X, order, 0)
        np.testing.assert_array_equal(ordered[1], np.partition(X, 1, axis=0)[1])
    assert kw.partition(kw.asarray(X), 3, axis=None).shape == (15,)
    for kth in (5, -6, [0, 7]):
        with pytest.raises(kw.InvalidArgument, match="kth"):
            kw.partition(kw.asarray(X), kth)


def test_orders_of_several_keys():
    a, b = RNG.integers(0, 3, (2, 40))
    c = RNG.integers(0, 2, 40)
    same("lexsort", (a, b, c))
    same("lexsort", [a.astype(float), b])
    same("lexsort", np.stack([a, b, c]))
    same("lexsort", (a.reshape(5, 8), b.reshape(5, 8)), axis=0)
    same("lexsort", (a,))
    same("lexsort", (a[:0], b[:0]))
    with pytest.raises(kw.InvalidArgument, match="shapes"):
        kw.lexsort([kw.ones(3), kw.ones(4)])
    with pytest.raises(kw.InvalidArgument, match="at least one"):
        kw.lexsort([])


def test_choices_of_conditions():
    x = X[0]
    same("select", [x > 2, x > 1], [x, -x])
    same("select", [x > 2, x > 1], [x, np.arange(5)], default=9.5)
    same("select", [X > 2, x > 1], [x, 3], 1)
    same("select", [x > 2], [x * 1j], 2)
    same("select", [x > i for i in range(9)], [x + i for i in range(9)], -1)
    same("select", [x[:0] > 1], [x[:0]])
    with pytest.raises(kw.InvalidArgument, match="as many"):
        kw.select([kw.ones(2, "bool")], [])
    with pytest.raises(kw.ArgumentError, match="bools"):
        kw.select([kw.ones(2)], [kw.ones(2)])


def test_pieces():
    functions = [np.negative, lambda v: v * 2, 5]
    device = [kw.negative, lambda v: v * 2, 5]
    x = kw.asarray(X)
    want = np.piecewise(X, [X < 1, X > 3], functions)
    compare(kw.piecewise(x, [x < 1, x > 3], device), want)
    compare(kw.piecewise(x, x > 3, [7]), np.piecewise(X, [X > 3], [7]))
    whole = np.arange(5)
    found = kw.piecewise(kw.asarray(whole), [kw.asarray(whole > 2)], [lambda v, by: v * by], 1.5)
    compare(found, np.piecewise(whole, [whole > 2], [lambda v, by: v * by], 1.5))
    with pytest.raises(kw.InvalidArgument, match="functions"):
        kw.piecewise(x, [x < 1], [1, 2, 3])


def test_elements_of_conditions():
    same("compress", np.array([True, False, True]), X)
    same("compress", np.array([1, 0, 2]), X, axis=0)
    same("compress", np.array([False, True]), X, axis=-1)
    same("extract", X > 2, X)
    same("extract", X > 99, X)
    with pytest.raises(kw.InvalidArgument, match="condition"):
        kw.compress(kw.ones(6), kw.asarray(X), axis=1)


def test_choices_by_number():
    index = np.array([0, 1, 0, 1, 2])
    choices = [X[0], X[1], np.array(5.0)]
    same("choose", index, choices)
    same("choose", index % 3, X)
    same("choose", np.array([-1, 7, 0, 1, 2]), choices, mode="clip")
    same("choose", np.array([-1, 7, 0, 1, 2]), choices, mode="wrap")
    with pytest.raises(IndexError):
        kw.choose(kw.asarray([9]), [kw.ones(1)], mode="raise")
    with pytest.raises(kw.ArgumentError, match="integers"):
        kw.choose(kw.ones(2), [kw.ones(2)])
