"""Stacks, blocks, elements put in and left out: against NumPy."""

import numpy as np
import pytest
from numpy_pairs import compare, same, views

import kernwright as kw

X = np.arange(12.0).reshape(3, 4)
V = np.array([3.0, 1.0, 2.0])


@pytest.mark.parametrize("name", ["hstack", "vstack", "dstack", "column_stack"])
def test_stacks(name):
    same(name, [V, V * 2])
    same(name, [X, X * 2, np.arange(12).reshape(3, 4)])
    same(name, [V, V.astype(np.int64)])
    same(name, (V[:0], V[:0]))
    same(name, np.stack([X, X]))
    if name in ("hstack", "vstack"):
        same(name, [V, V], dtype=np.float32)
    if name == "column_stack":
        same(name, [V, X, X[:, :0]])
    with pytest.raises(kw.InvalidArgument):
        getattr(kw, name)([])
    for view in views(X):
        compare(getattr(kw, name)([view, view]), getattr(np, name)([X, X]))


def test_dimensions_at_least():
    for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        for x in (np.array(3), V, X, X.reshape(1, 3, 4, 1)):
            same(name, x)
        same(name, V, X)


def test_blocks():
    eye, zeros = np.eye(2), np.zeros((2, 1))
    same("block", [[eye, zeros], [np.ones((1, 3))]])
    same("block", [V, V])
    same("block", [[V], [V]])
    same("block", [[[eye]], [[eye * 2]]])
    same("block", [np.array(1.0), np.array(2.0)])
    same("block", X)
    same("block", [X, X[:, :1]])  # more axes than lists: beside each other along the last axis
    same("block", [[np.ones((2, 1, 3)), np.zeros((2, 1, 1))], [np.ones((2, 2, 4))]])
    for numbers in (3, [1, 2], [[1, 2], [3, 4]], [True, False], [[[1]], [[2]]], [2**40, 1]):
        same("block", numbers)
    same("block", [[np.eye(2), np.zeros((2, 1))], [np.ones((1, 2)), 7]])
    same("block", [V, 1.5, np.float64(2), np.array([4])])
    narrow = kw.asarray(V, dtype="float16")  # numbers are weak beside arrays
    assert kw.block([narrow, 1.5, 2]).dtype == np.float16
    assert kw.block([1, 2.5]).dtype == kw.asarray([1, 2.5]).dtype
    compare(kw.block([narrow, V]), np.concatenate([V, V]))
    for wrong in ((1, 2), [(1, 2)], ["a"]):
        with pytest.raises(kw.ArgumentError):
            kw.block(wrong)
    for wrong in ([[1, 2], 3], [1, [2]]):
        with pytest.raises(ValueError):
            np.block(wrong)
        with pytest.raises(kw.InvalidArgument):
            kw.block(wrong)
    for wrong in ([], [[kw.ones(2)], kw.ones(2)], [[]]):
        with pytest.raises(kw.InvalidArgument):
            kw.block(wrong)


def test_behind():
    same("append", X, V)
    same("append", X, X, axis=1)
    x = kw.asarray(np.arange(3))
    compare(kw.append(x, 1.5), np.append(np.arange(3), 1.5))
    compare(kw.append(kw.asarray(V), [0.1, 7]), np.append(V, [0.1, 7]))
    compare(kw.append(kw.asarray(np.float32(V)), [0.1]), np.append(np.float32(V), np.float32(0.1)))
    compare(kw.append(x, []), np.arange(3))
    with pytest.raises(kw.InvalidArgument):
        kw.append(kw.asarray(X), kw.ones(3), axis=0)


def test_left_out():
    for obj in (1, -1, slice(None, None, 2), slice(3, 0, -1), [0, 2, 2], [], [True, False] * 2):
        same("delete", X, obj, axis=1)
    for obj in (0, np.array([5, -1]), np.array([True] * 3 + [False] * 9)):
        same("delete", X, obj)
    for view in views(X):
        compare(kw.delete(view, [0, -1], 0), np.delete(X, [0, -1], 0))
    for wrong in (4, -5, [9]):
        with pytest.raises(IndexError):
            kw.delete(kw.asarray(X), wrong, axis=1)
    with pytest.raises(kw.InvalidArgument, match="mask"):
        kw.delete(kw.asarray(X), kw.ones(3, "bool"), axis=1)


def test_put_in():
    for obj in (1, -1, 4, [1], [0, 2, 2], slice(0, 3), [], np.array([True, False, False, True])):
        same("insert", X, obj, 9.0, axis=1)
    same("insert", X, 1, V, axis=1)
    same("insert", X, [1], V[:, None], axis=1)
    same("insert", X, 0, X[:1] * 2, axis=0)
    same("insert", X, [1, 3], np.array([7.0, 8.0]))
    same("insert", V, 1, np.array([7.0, 8.0]))
    same("insert", V, [1], np.array([7.0, 8.0]))
    same("insert", np.arange(3), 1, 2)
    with pytest.raises(kw.ArgumentError, match="int64"):
        kw.insert(kw.arange(3), 1, 2.7)
    compare(kw.insert(kw.asarray(V), kw.asarray([0, 3]), 5), np.insert(V, [0, 3], 5))
    for view in views(X):
        compare(kw.insert(view, [0, 2], 5, 0), np.insert(X, [0, 2], 5, 0))
    with pytest.raises(IndexError):
        kw.insert(kw.asarray(V), 4, 1.0)
    with pytest.raises(kw.InvalidArgument):
        kw.insert(kw.asarray(X), 1, kw.ones(5), axis=1)


def test_laid_out_anew():
    for shape in ((2, 4), 3, (5, 5), (0, 3), (2, 2, 2), ()):
        same("resize", X, shape)
    same("resize", V[:0], (2, 2))
    with pytest.raises(kw.InvalidArgument, match="negative"):
        kw.resize(kw.asarray(V), -1)


def test_without_zeros_at_the_ends():
    v = np.array([0, 0, 1, 0, 2, 0])
    for trim in ("fb", "f", "b"):
        same("trim_zeros", v, trim)
        same("trim_zeros", v * 0, trim)
        same("trim_zeros", v[:0], trim)
    wide = np.zeros((4, 5))
    wide[1:3, 2] = 1
    same("trim_zeros", wide)
    same("trim_zeros", wide, axis=1)
    with pytest.raises(kw.InvalidArgument, match="trim"):
        kw.trim_zeros(kw.asarray(v), "x")


def test_axes_by_position():
    same("concatenate", [X, X], 1)
    same("stack", [X, X], 1)
    same("split", X, 2, 1)
    same("flip", X, 1)
    same("roll", X, 2, 1)
    same("tensordot", X, X, ([0], [0]))
    same("tril", X, 1)
    same("triu", X, -1)
    same("diag", X, 1)
    same("eye", 3, 4, 1, np.int32)
