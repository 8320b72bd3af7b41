"""dot, inner, outer, kron, vdot, cross, matmul(out=): against NumPy."""

import numpy as np
import pytest
from numpy_pairs import compare, same, views

import kernwright as kw

RNG = np.random.default_rng(8)
A, B = RNG.normal(size=(3, 4)), RNG.normal(size=(4, 5))
CUBE = RNG.normal(size=(2, 5, 4))


def test_dot():
    for x, y in ((A, B), (A[0], A[1]), (A, B[:, 0]), (A[0], B), (CUBE, B), (CUBE, B[:, 0])):
        same("dot", x, y)
    same("dot", A, RNG.normal(size=(2, 4, 3)))
    same("dot", A, np.array(2.0))
    same("dot", A, 3)
    same("dot", np.arange(6).reshape(2, 3), np.arange(3.0))
    same("dot", A[:, :0], B[:0])
    out = kw.empty((3, 5), "float64")
    assert kw.dot(kw.asarray(A), kw.asarray(B), out=out) is out
    compare(out, A @ B)
    for view in views(A):
        compare(kw.dot(view, kw.asarray(B)), A @ B)
    with pytest.raises(kw.InvalidArgument, match="Incompatible"):
        kw.dot(kw.asarray(A), kw.asarray(A))


def test_vectors():
    z = A + 1j * A[::-1]
    same("vdot", z, A)
    same("vdot", np.arange(4), np.arange(4).reshape(2, 2))
    same("inner", A, A[:2])
    same("inner", CUBE, A)
    same("inner", A, np.array(2.0))
    same("outer", A, B[0])
    same("outer", A[:0], B)
    same("kron", A, B)
    same("kron", A[0], B)
    same("kron", CUBE, A)
    same("kron", np.array(3.0), A)
    with pytest.raises(kw.InvalidArgument):
        kw.inner(kw.asarray(A), kw.asarray(B))


def test_cross_products():
    x, y = RNG.normal(size=(2, 4, 3))
    same("cross", x, y)
    same("cross", x, y[0])
    same("cross", x.T, y, axisa=0)
    same("cross", x, y, axisc=0)
    same("cross", x.T, y.T, axis=0)
    for shapes in (((4,), (4, 3)), ((4, 3), (1,)), ((2, 1), (2, 2))):
        arrays = [np.ones(shape) for shape in shapes]
        with pytest.raises(ValueError):
            np.cross(*arrays)
        with pytest.raises(kw.InvalidArgument, match="3 elements"):
            kw.cross(*map(kw.asarray, arrays))


def plane_cross(x, y):
    """The cross product of vectors along the last axis, at least one of them of 2 elements: NumPy
    has it up to version 2.4."""
    (x0, x1, *x2), (y0, y1, *y2) = np.moveaxis(x, -1, 0), np.moveaxis(y, -1, 0)
    last = x0 * y1 - x1 * y0
    if not x2 and not y2:
        return last
    first, second = (x1 * y2[0], -x0 * y2[0]) if y2 else (-x2[0] * y1, x2[0] * y0)
    return np.stack(np.broadcast_arrays(first, second, last), -1)


def test_cross_products_in_a_plane():
    flat, wide = RNG.normal(size=(4, 2)), RNG.normal(size=(5, 4, 3))
    pairs = [(flat, wide), (wide, flat), (flat, flat[::-1].copy()), (flat[0], flat)]
    pairs += [(np.array([[1, 2]]), np.array([[3, 4, 5]])), (np.array([1, 2]), np.array([3.5, 4]))]
    pairs += [(np.array([1.0, np.inf]), np.array([np.nan, 2.0, 3.0]))]
    pairs += [(np.array([1.0, 2.0, np.nan]), np.array([np.inf, 4.0]))]
    for x, y in pairs:
        expected = plane_cross(x, y)
        compare(kw.cross(kw.asarray(x), kw.asarray(y)), expected)
        turned = np.moveaxis(x, -1, 0).copy()
        compare(kw.cross(kw.asarray(turned), kw.asarray(y), axisa=0), expected)
    both = kw.asarray(flat), kw.asarray(wide)
    compare(kw.cross(*both, axisc=0), np.moveaxis(plane_cross(flat, wide), -1, 0))
    compare(kw.cross(kw.asarray(flat.T), kw.asarray(flat.T), axis=0), plane_cross(flat, flat))


def test_products_into_an_array():
    out = kw.zeros((5, 3), "float64").T
    assert kw.matmul(kw.asarray(A), kw.asarray(B), out=out) is out
    compare(out, A @ B)
    single = kw.empty((3, 5), "float32")
    compare(kw.matmul(kw.asarray(A), kw.asarray(B), out=single), np.float32(A @ B), rtol=1e-6)
    vector = kw.empty(3, "float64")
    compare(kw.matmul(kw.asarray(A), kw.asarray(A[0]), out=vector), A @ A[0])
    with pytest.raises(kw.InvalidArgument, match="out of shape"):
        kw.matmul(kw.asarray(A), kw.asarray(B), out=vector)
    with pytest.raises(kw.ArgumentError):
        kw.matmul(kw.asarray(A), kw.asarray(B), out=kw.empty((3, 5), "int32"))
