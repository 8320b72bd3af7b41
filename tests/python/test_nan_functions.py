"""Functions that pass over NaN, with NumPy's arguments: against NumPy."""

import numpy as np
import pytest
from numpy_pairs import compare, same, views

import kernwright as kw

RNG = np.random.default_rng(3)
X = np.where(RNG.random((5, 7)) < 0.3, np.nan, RNG.normal(size=(5, 7)))


@pytest.mark.parametrize("name", ["nanargmax", "nanargmin", "nancumsum", "nancumprod"])
def test_axes_and_views(name):
    for view in views(X):
        compare(getattr(kw, name)(view, axis=1), getattr(np, name)(X, axis=1))
    for axis in (None, 0, -1):
        same(name, X, axis=axis)
    same(name, np.arange(6).reshape(2, 3), axis=1)
    same(name, np.array([np.nan, np.inf, -np.inf, 3.0]))


def test_places_keep_axes_and_say_where_nothing_is():
    same("nanargmax", X, axis=1, keepdims=True)
    rows = kw.asarray(np.array([[np.nan, np.nan], [1.0, np.nan]]))
    for name in ("nanargmin", "nanargmax"):
        with pytest.raises(ValueError, match="All-NaN"):
            getattr(kw, name)(rows, axis=1)
        with pytest.raises(ValueError, match="All-NaN"):
            getattr(kw, name)(rows[0])
    out = kw.empty(5, "int64")
    assert kw.nanargmax(kw.asarray(X), 1, out=out) is out
    compare(out, np.nanargmax(X, 1))


def test_running_sums_of_complex_numbers_and_nothing():
    z = np.array([1 + 1j, complex(np.nan, 1), 2j])
    same("nancumsum", z)
    same("nancumprod", z)
    same("nancumsum", X[:0], axis=1)
    same("nancumsum", X, axis=0, dtype=np.float32, rtol=1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["nanstd", "nanvar", "std", "var"])
def test_degrees_of_freedom(name):
    single = X.astype(np.float32)
    for options in ({"ddof": 1}, {"ddof": 0.5, "axis": 0}, {"axis": 1, "dtype": np.float64}):
        same(name, X, **options)
        same(name, single, rtol=1e-5, **options)
    with pytest.raises(kw.ArgumentError, match="one argument"):
        getattr(kw, name)(kw.asarray(X), ddof=1, correction=1)


def test_errors():
    with pytest.raises(kw.ArgumentError, match="order"):
        kw.nanargmax(kw.asarray([1j]))
    with pytest.raises(kw.InvalidArgument):
        kw.nanargmin(kw.zeros(0))
    with pytest.raises(kw.ArgumentError, match="device"):
        kw.nancumsum([1.0])


def test_a_capture_leaves_the_check_out():
    x, stream, graph = kw.asarray([1.0, 2.0]), kw.Stream(), kw.Graph()
    kw.nanargmax(x)
    kw.synchronize()
    with graph.capture(stream):
        place = kw.nanargmax(x)
    for values, want in (([5.0, np.nan], 0), ([np.nan, np.nan], -1)):
        x[...] = kw.asarray(values, dtype=x.dtype)
        kw.synchronize()
        graph.launch(stream)
        stream.synchronize()
        assert place.item() == want
