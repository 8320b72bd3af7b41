"""Positions of triangles, diagonals, grids: against NumPy."""

import numpy as np
import pytest
from numpy_pairs import compare, same, views

import kernwright as kw


@pytest.mark.parametrize("name", ["tril_indices", "triu_indices"])
def test_triangles(name):
    for n, k, m in ((4, 0, None), (3, 1, 5), (5, -2, 3), (4, 9, 2), (3, -9, 4), (1, 0, 1)):
        same(name, n, k, m)
    same(name, 0)
    x = np.zeros((3, 5))
    same(f"{name}_from", x, k=-1)
    with pytest.raises(kw.InvalidArgument, match="negative"):
        getattr(kw, name)(-1)
    with pytest.raises(kw.InvalidArgument, match="matrix"):
        getattr(kw, f"{name}_from")(kw.ones(3))


def test_diagonals_and_grids():
    same("diag_indices", 3)
    same("diag_indices", 2, 3)
    same("diag_indices_from", np.zeros((3, 3)))
    same("indices", (2, 3))
    same("indices", (2, 3), sparse=True)
    same("indices", (2, 0), dtype=np.int32)
    same("indices", (4,), dtype=np.float32)
    with pytest.raises(kw.InvalidArgument, match="extent"):
        kw.diag_indices_from(kw.ones((2, 3)))


def test_one_dimension_and_several():
    flat = np.array([[5, 7, 0], [23, 11, 4]])
    for order in ("C", "F"):
        same("unravel_index", flat, (2, 3, 4), order)
        same("unravel_index", flat.astype(np.uint8), (24,), order)
        parts = np.unravel_index(flat, (2, 3, 4), order)
        same("ravel_multi_index", parts, (2, 3, 4), order=order)
    for view in views(np.arange(12).reshape(3, 4)):
        compare(kw.unravel_index(view, (4, 3)), np.unravel_index(view.numpy(), (4, 3)))
    assert [int(part) for part in kw.unravel_index(5, (3, 4))] == [1, 1]
    compare(kw.unravel_index([5, 7], (3, 4)), np.unravel_index([5, 7], (3, 4)))
    far = (np.array([-1, 5]), np.array([9, 2]))
    same("ravel_multi_index", far, (3, 4), mode="clip")
    same("ravel_multi_index", far, (3, 4), mode=("wrap", "clip"))
    same("ravel_multi_index", (np.array([[1], [2]]), np.array([0, 3])), (3, 4))
    for wrong in ((kw.asarray([3]), kw.asarray([0])), (kw.asarray([0]), kw.asarray([-1]))):
        with pytest.raises(kw.InvalidArgument, match="bounds"):
            kw.ravel_multi_index(wrong, (3, 4))
    with pytest.raises(kw.InvalidArgument, match="bounds"):
        kw.unravel_index([12], (3, 4))
    for wrong in ([12], [-1], np.array([[3], [99]])):
        index = kw.asarray(wrong)
        assert kw.unravel_index(index, (3, 4))[0].shape == index.shape  # not looked at
        with pytest.raises(kw.InvalidArgument, match="bounds"):
            kw.unravel_index(index, (3, 4), mode="raise")
    small = kw.asarray(np.array([0, 255], np.uint8))
    compare(kw.unravel_index(small, (3, 400), mode="raise"), ([0, 0], [0, 255]))
    with pytest.raises(kw.InvalidArgument, match="bounds"):
        kw.unravel_index(small, (3, 4), mode="raise")
    with pytest.raises(kw.InvalidArgument, match="mode"):
        kw.unravel_index(small, (3, 4), mode="wrap")
    with pytest.raises(kw.ArgumentError, match="integers"):
        kw.unravel_index(kw.ones(2), (3, 4))
    with pytest.raises(kw.InvalidArgument, match="order"):
        kw.unravel_index(kw.asarray([1]), (3, 4), "A")


def test_grids_of_vectors():
    x = np.arange(20).reshape(4, 5)
    rows, columns = np.array([2, 0]), np.array([4, 1, 1])
    same("ix_", rows, columns)
    same("ix_", np.array([True, False, True, False]), columns)
    device = kw.asarray(x)
    compare(device[kw.ix_(kw.asarray(rows), kw.asarray(columns))], x[np.ix_(rows, columns)])
    with pytest.raises(kw.InvalidArgument, match="one dimension"):
        kw.ix_(kw.asarray(x))


def test_positions_that_wrap():
    x, far = np.arange(10.0).reshape(2, 5), np.array([[-6, 7, 2], [99, -1, 5]])
    same("take", x, far, axis=1, mode="wrap")
    same("take", x, far.astype(np.int8), mode="wrap")
    found = kw.take_along_axis(kw.asarray(x), kw.asarray(far), 1, mode="wrap")
    compare(found, np.take_along_axis(x, far % 5, 1))
    target = kw.asarray(x)
    kw.put(target, kw.asarray([12]), -1.0, mode="wrap")
    assert float(target[0, 2]) == -1
