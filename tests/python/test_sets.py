"""Sets of elements: against NumPy."""

import numpy as np
import pytest
from numpy_pairs import compare, same, views

import kernwright as kw

RNG = np.random.default_rng(6)
A, B = RNG.integers(0, 9, (2, 20))
HOLES = np.array([2.0, np.nan, 1.0, np.nan, 2.0, np.inf, np.nan])


@pytest.mark.parametrize("name", ["union1d", "intersect1d", "setdiff1d", "setxor1d"])
def test_sets(name):
    same(name, A, B)
    same(name, A.reshape(4, 5), B.astype(float))
    same(name, A, A)
    same(name, A, B[:0])
    same(name, A[:0], B)
    same(name, A[:0], A[:0])
    same(name, A[:1], A[:1])
    same(name, HOLES, HOLES[::-1][:3])
    for view in views(A.reshape(4, 5)):
        compare(getattr(kw, name)(view, kw.asarray(B)), getattr(np, name)(A, B))
    if name != "union1d":
        alone, other = np.array([5, 1, 3]), np.array([3, 2, 5])
        same(name, alone, other, assume_unique=True)


def test_places_of_common_elements():
    same("intersect1d", A, B, return_indices=True)
    same("intersect1d", A, np.array([77]), return_indices=True)
    same("intersect1d", A[:0], A[:0], return_indices=True)
    found = np.array([5, 1, 3]), np.array([3, 2, 5])
    same("intersect1d", *found, assume_unique=True, return_indices=True)


ASKED = {"return_index": True, "return_inverse": True, "return_counts": True}


def test_unique_with_one_nan():
    same("unique", HOLES, equal_nan=True)
    same("unique", HOLES.reshape(7, 1), equal_nan=True, **ASKED)
    same("unique", HOLES[2:3], equal_nan=True, **ASKED)
    same("unique", A, equal_nan=True, **ASKED)
    signs = np.array([2.0, -np.nan, 1.0, np.nan, -np.nan])
    for x in (signs, signs[::-1].copy(), np.roll(signs, 2)):
        same("unique", x, equal_nan=True, **ASKED)
    z = np.array([1j, complex(np.nan, 1), complex(np.nan, 1), 1j])
    assert kw.unique(kw.asarray(z), equal_nan=True).shape == (2,)
    for options in ({}, {"equal_nan": False}, ASKED):
        same("unique", HOLES, **options)


def test_unique_parts_along_an_axis():
    rows = RNG.integers(0, 2, (9, 3))
    for axis in (0, 1, -1):
        same("unique", rows, axis=axis, **ASKED)
    same("unique", rows.astype(np.float32), axis=0)
    same("unique", RNG.integers(0, 2, (4, 2, 3)), axis=1, **ASKED)
    same("unique", A, axis=0, **ASKED)
    same("unique", rows[:, :1].astype(bool), axis=0, **ASKED)
    assert kw.unique(kw.zeros((0, 3)), axis=0).shape == (0, 3)
    for view in views(rows):
        compare(kw.unique(view, axis=0), np.unique(rows, axis=0))
    holes = np.array([[np.nan, 1], [np.nan, 1], [0, np.nan]])
    assert kw.unique(kw.asarray(holes), axis=0).shape == (2, 2)
    assert kw.unique(kw.asarray(holes), axis=0, equal_nan=False).shape == (3, 2)


def test_errors():
    with pytest.raises(kw.AxisError):
        kw.unique(kw.ones((2, 2)), axis=2)
    with pytest.raises(kw.ArgumentError, match="device"):
        kw.union1d(np.ones(2), kw.ones(2))
