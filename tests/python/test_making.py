"""Copies, sequences of equal ratios, matrices, diagonals: against NumPy."""

import numpy as np
import pytest
from numpy_pairs import compare, same, views

import kernwright as kw

X = np.arange(24.0).reshape(2, 3, 4)


def test_sequences():
    for args in ((0, 2, 5), (1, -1, 3), (0, 1, 1), (0, 1, 0)):
        same("logspace", *args, dtype=np.float64)
        same("logspace", *args, endpoint=False, base=2, dtype=np.float64)
    for args in ((1, 8, 4), (1000, 1, 7), (-2, -32, 5), (3, 3, 2), (1, 2, 1), (1, 2, 0)):
        same("geomspace", *args, dtype=np.float64)
        same("geomspace", *args, endpoint=False, dtype=np.float64)
    same("geomspace", 1j, 8j, 4, rtol=1e-6, typed=False)
    same("geomspace", 1, -8, 4, dtype=np.complex128)
    for ends in ((1, 1000, 4), (1, 256, 9), (1000, 1, 4), (2, 162, 5)):
        same("geomspace", *ends, dtype=np.int64)
    for ends in ((0, 6, 7), (0, 2, 5), (3, 0, 4)):
        same("logspace", *ends, dtype=np.int32)
    for dtype in ("float32", "int64"):  # ends on the device: no whole number falls below itself
        one, ends = kw.asarray(np.array(1, dtype)), [([1000, -1000], [1, -1]), ([256], [1])]
        assert kw.geomspace(one, 1000, 4, dtype="int64").tolist() == [1, 10, 100, 1000]
        assert kw.geomspace(1000 * one, 1, 4, dtype="int32").tolist() == [1000, 100, 10, 1]
        assert kw.geomspace(one, 256, 9, dtype="uint16").tolist() == [2**k for k in range(9)]
        for start, stop in ends:
            start, stop = (kw.asarray(np.array(end, dtype)) for end in (start, stop))
            made = kw.geomspace(start, stop, 7, dtype="int64").numpy()
            assert (made[0] == start.numpy()).all() and (made[-1] == stop.numpy()).all()
        assert kw.logspace(0 * one, 5, 6, dtype="int64").tolist() == [10**k for k in range(6)]
    for name in ("logspace", "geomspace"):
        same(name, np.array([0.5, 1]), 2.0, 3)
        ends = np.array([0.5, 1], np.float32), np.array([[3], [2]], np.float32)
        same(name, *ends, 3, rtol=1e-6, typed=False)
        assert getattr(kw, name)(*map(kw.asarray, ends)).dtype == np.float32
        same(name, np.array([1, 2]), 2, 3)
    for stop in (3, 7, 11, 1000, 1e9, 1e-3, 0.3):
        for start in (1, 3, 0.7):
            assert kw.geomspace(start, stop, 5, dtype="float64")[-1].item() == stop
    assert kw.logspace(0, 2, 3).dtype == kw.geomspace(1, 2).dtype == np.float32
    with pytest.raises(kw.InvalidArgument, match="0"):
        kw.geomspace(0, 2)


def test_matrices():
    for args in ((3,), (3, 4, 1), (2, 5, -1), (0,)):
        same("tri", *args, dtype=np.float64)
    same("identity", 3, dtype=np.int32)
    x = np.array([1.5, 2.0, -3.0])
    for columns in (None, 0, 1, 5):
        same("vander", x, columns)
        same("vander", np.arange(3), columns, increasing=True)
    same("vander", x[:0])
    with pytest.raises(kw.InvalidArgument, match="vector"):
        kw.vander(kw.ones((2, 2)))


def test_diagonals():
    for k in (0, 1, -2):
        same("diagflat", X[0], k)
        same("diagonal", X, k)
        same("diagonal", X, k, 2, 1)
        same("trace", X, k, 0, 2)
    same("trace", X.astype(np.int8), dtype=np.int16)
    out = kw.empty(4, "float64")
    assert kw.trace(kw.asarray(X), out=out) is out
    with pytest.raises(kw.InvalidArgument, match="two axes"):
        kw.diagonal(kw.ones(3))
    with pytest.raises(kw.InvalidArgument):
        kw.trace(kw.ones((2, 2)), 0, 1, 1)


def test_copies():
    for view in views(X[0]):
        made = kw.copy(view)
        compare(made, X[0])
        assert made.ptr != view.ptr and made.is_contiguous
        assert kw.ascontiguousarray(view).is_contiguous
        compare(kw.ascontiguousarray(view, "float32"), X[0].astype(np.float32))
    x = kw.asarray(X)
    assert kw.ascontiguousarray(x) is x
    assert kw.array(x).ptr != x.ptr and kw.array(x, copy=None) is x
    same("array", X, ndmin=5)
    compare(kw.array([1, 2], ndmin=2), np.array([[1, 2]]))
    compare(kw.copy([1, 2]), np.array([1, 2]))
    same("ascontiguousarray", np.array(3.0))
