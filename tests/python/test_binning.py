"""digitize, histogram2d, histogram_bin_edges: against NumPy."""

import numpy as np
import pytest
from numpy_pairs import compare, same, views

import kernwright as kw

RNG = np.random.default_rng(2)
X = np.round(RNG.normal(size=70), 1)
Y = RNG.random(70)
BINS = np.array([-1.0, -0.5, 0.0, 0.3, 2.0])


@pytest.mark.parametrize("right", [False, True])
def test_bins_of_elements(right):
    for bins in (BINS, BINS[::-1], BINS[:1], np.array([0.0, 0.0, 1.0])):
        same("digitize", X, bins, right)
        compare(kw.digitize(kw.asarray(X), bins.tolist(), right), np.digitize(X, bins, right))
    for view in views(X.reshape(7, 10)):
        compare(kw.digitize(view, BINS, right), np.digitize(X.reshape(7, 10), BINS, right))
    same("digitize", X[:0], BINS, right)
    same("digitize", np.array([np.nan, np.inf, -np.inf]), BINS, right)
    same("digitize", np.arange(9), np.array([2, 5]), right)


def test_counts_in_two_dimensions():
    same("histogram2d", X, Y, 4)
    same("histogram2d", X, Y, [3, 5], [[-1, 1], [0, 0.5]])
    same("histogram2d", X, Y, [BINS, 4])
    same("histogram2d", X, Y, BINS)
    same("histogram2d", X, Y, bins=5, density=True)
    same("histogram2d", X, Y, bins=5, weights=Y)
    holes = np.where(Y < 0.2, np.nan, X)
    same("histogram2d", holes, Y, [BINS, 3], [None, [0, 1]])
    same("histogram2d", X[:0], Y[:0], 2, [[0, 1], [0, 1]])


def test_edges():
    same("histogram_bin_edges", X, 4)
    same("histogram_bin_edges", X, 3, (0, 1))
    same("histogram_bin_edges", np.arange(5), bins=2)
    same("histogram_bin_edges", X, BINS)


def test_errors():
    x = kw.asarray(X)
    with pytest.raises(kw.InvalidArgument, match="rise"):
        kw.digitize(x, [0.0, 2.0, 1.0])
    for bins in ([0.0, 2.0, 1.0], [3.0, 1.0, 3.0], [1, 1, 0, 1]):
        with pytest.raises(ValueError):
            np.digitize(X, bins)
        with pytest.raises(kw.InvalidArgument, match="rise or fall"):
            kw.digitize(x, kw.asarray(bins))
    same("digitize", X, np.array([1.0, 1.0, 1.0]))
    same("digitize", X, np.array([1.0, 1.0, 0.0]))
    for bins in ([0.0, 1.0, np.nan], [np.nan, np.nan, 1.0, 0.0]):
        same("digitize", X, np.array(bins))
        compare(kw.digitize(x, bins), np.digitize(X, bins))
    with pytest.raises(kw.InvalidArgument, match="rise or fall"):
        kw.digitize(x, kw.asarray([0.0, np.nan, 2.0]))
    with pytest.raises(kw.InvalidArgument, match="one dimension"):
        kw.digitize(x, kw.ones((2, 2)))
    with pytest.raises(kw.InvalidArgument, match=r"\(n,\)"):
        kw.histogram2d(x, x[:3])
    with pytest.raises(kw.ArgumentError, match="order"):
        kw.digitize(kw.asarray([1j]), [0.0])
