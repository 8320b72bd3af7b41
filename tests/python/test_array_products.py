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


@pytest.mark.filterwarnings("ignore:Arrays of 2-dim")
def test_cross_products_in_a_plane():
    flat, wide = RNG.normal(size=(4, 2)), RNG.normal(size=(5, 4, 3))
    for first, second in ((flat, wide), (wide, flat), (flat, flat[::-1].copy()), (flat[0], flat)):
        same("cross", first, second)
        same("cross", np.moveaxis(first, -1, 0).copy(), second, axisa=0)
    same("cross", flat, wide, axisc=0)
    same("cross", flat.T, flat.T, axis=0)
    same("cross", np.array([[1, 2]]), np.array([[3, 4, 5]]))
    same("cross", np.array([1, 2]), np.array([3.5, 4]))
    same("cross", np.array([1.0, np.inf]), np.array([np.nan, 2.0, 3.0]))
    same("cross", np.array([1.0, 2.0, np.nan]), np.array([np.inf, 4.0]))


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
