"""Reductions with NumPy's arguments where= and initial=: against NumPy."""

import numpy as np
import pytest
from numpy_pairs import compare, same, views

import kernwright as kw

RNG = np.random.default_rng(21)
X = RNG.normal(size=(3, 4, 5))
MASK = RNG.integers(0, 2, X.shape).astype(bool)
MASK[0, 0] = False
HOLES = np.where(RNG.integers(0, 4, X.shape) == 0, np.nan, X)
AXES = ({}, {"axis": -1}, {"axis": (0, 2), "keepdims": True}, {"axis": 1})


@pytest.mark.parametrize("name", ["sum", "prod", "any", "all"])
def test_sums_products_and_answers(name):
    for options in AXES:
        same(name, X > 0, where=MASK, **options)
        same(name, X, where=MASK[1, :1], **options)
    if name in ("sum", "prod"):
        same(name, X, initial=2.5, where=MASK)
        same(name, X.astype(np.float32), axis=0, initial=3, rtol=1e-5)
        same(name, np.arange(-3, 3), initial=7)
        same(name, np.arange(-3, 3, dtype=np.int8), dtype=np.int8, initial=7)
        same(name, X[:0], axis=0, initial=4.0)
        same(name, X + 1j, axis=1, initial=2j, where=MASK)
        same(f"nan{name}", HOLES, axis=1, initial=2.0, where=MASK)


@pytest.mark.parametrize("name", ["max", "min", "nanmax", "nanmin"])
def test_largest_and_smallest(name):
    for values in (X, X.astype(np.float32), np.arange(60).reshape(X.shape)):
        for options in AXES:
            same(name, values, initial=1, where=MASK, **options)
            same(name, values, initial=-1, **options)
    same(name, np.zeros((0, 3)), axis=0, initial=5.0)
    same(name, HOLES, axis=1, initial=0.5, where=MASK)
    with pytest.raises(kw.InvalidArgument, match="initial"):
        getattr(kw, name)(kw.asarray(X), where=kw.asarray(MASK))
    with pytest.raises(kw.InvalidArgument):
        getattr(kw, name)(kw.zeros((0, 3)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["mean", "var", "std", "nanmean", "nanvar", "nanstd"])
def test_means_and_variances(name):
    for options in AXES:
        for values in (X, HOLES, np.arange(60).reshape(X.shape), X + 1j * X[::-1]):
            same(name, values, where=MASK, **options)
    same(name, X.astype(np.float32), axis=1, where=MASK, rtol=1e-5)
    same(name, X.astype(np.float32), axis=1, where=MASK, dtype=np.float64, rtol=1e-6)
    half = X.astype(np.float16)
    wide = getattr(np, name)(half.astype(float), axis=2, where=MASK)
    compare(getattr(kw, name)(kw.asarray(half), axis=2, where=kw.asarray(MASK)),
            wide.astype(np.float16), rtol=1e-3)  # fmt: skip
    many = kw.full(300, 500, "float16")  # whose sum float16 does not hold
    many[0] = 0
    assert float(getattr(kw, name)(many, where=many > 0)) == (500 if "mean" in name else 0)
    if "mean" not in name:
        same(name, X, axis=0, ddof=1, where=MASK)
        same(name, X, 0, np.float64, None, 1, True)


def test_views_places_and_outputs():
    for view, mask in zip(views(X[0]), views(MASK[1]), strict=True):
        compare(kw.sum(view, 0, where=mask), X[0].sum(0, where=MASK[1]))
        compare(kw.var(view, 1, where=mask), X[0].var(1, where=MASK[1]))
    out = kw.zeros((3, 5), "float64")
    assert kw.sum(kw.asarray(X), 1, None, out, where=kw.asarray(MASK)) is out
    compare(out, X.sum(1, where=MASK))
    same("sum", X, 1, np.float64, None, True, 3.0)
    same("max", X, 1, None, True, 3.0)
    same("argmax", X, 1, None)
    with pytest.raises(kw.InvalidArgument, match="out of shape"):
        kw.sum(kw.asarray(X), where=kw.asarray(MASK), out=out)
    with pytest.raises(kw.Error):
        kw.sum(kw.asarray(X), where=kw.ones((7,), "bool"))


def test_methods_of_arrays():
    x = kw.asarray(X.astype(np.float32))
    for name in ("var", "std"):
        wide = getattr(X.astype(np.float32), name)(0, np.float64, None, 1, True)
        compare(getattr(x, name)(0, "float64", None, 1, True), wide, rtol=1e-12)
        with pytest.raises(kw.ArgumentError, match="one argument"):
            getattr(x, name)(ddof=1, correction=1)
        with pytest.raises(kw.InvalidArgument, match="floating"):
            getattr(kw, name)(x, dtype="int32")
