"""Averages, covariances, order statistics: against NumPy in float64."""

import ml_dtypes
import numpy as np
import pytest
from numpy_pairs import compare, same, to_host, views

import kernwright as kw

RNG = np.random.default_rng(5)
X = RNG.normal(size=(5, 7))
HOLES = np.where(RNG.random((5, 7)) < 0.3, np.nan, X)
HOLES[2] = np.nan
SHARES = [0.0, 0.1, 0.37, 0.5, 0.9, 1.0]
METHODS = [
    *("linear", "lower", "higher", "nearest", "midpoint", "inverted_cdf", "hazen", "weibull"),
    *("averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf"),
    *("median_unbiased", "normal_unbiased"),
]


@pytest.mark.parametrize("name", ["median", "nanmedian", "ptp"])
@np.errstate(all="ignore")
@pytest.mark.filterwarnings("ignore")
def test_over_axes_and_views(name):
    for view in views(X):
        compare(getattr(kw, name)(view, axis=1), getattr(np, name)(X, axis=1))
    cube = RNG.normal(size=(3, 4, 5))
    for axis in (None, -1, 0, (0, 2), (2, 1)):
        same(name, cube, axis=axis)
        same(name, cube, axis=axis, keepdims=True)
    same(name, HOLES, axis=1)
    same(name, np.array([3, 1, 2, 7]), axis=0)
    same(name, X[:1, 0])


def test_medians_of_nothing_and_of_infinities():
    for name in ("median", "nanmedian"):
        assert np.isnan(getattr(kw, name)(kw.zeros(0)).item())
        assert np.isnan(to_host(getattr(kw, name)(kw.zeros((3, 0)), axis=1))).all()
    same("median", np.array([1.0, np.inf]))
    half = X[0].astype(ml_dtypes.bfloat16)
    assert kw.median(kw.asarray(half)).dtype == half.dtype
    assert float(kw.median(kw.asarray(half))) == np.median(half.astype(float))


@pytest.mark.parametrize("method", METHODS)
def test_methods_of_quantiles(method):
    values = np.array([5.0, -1.0, 2.0, 2.0, 9.0, 4.0])
    for count in (1, 2, 5, 6):
        shares = [*SHARES, 1 / count, 0.5 / count, 1.5 / count if count > 1 else 1.0]
        same("quantile", values[:count], shares, method=method)
    if method != "nearest":
        same("nanquantile", np.append(values, np.nan), SHARES, method=method)


@np.errstate(all="ignore")
@pytest.mark.filterwarnings("ignore")
def test_shapes_of_quantiles():
    cube = RNG.normal(size=(3, 4, 5))
    for axis in (None, 1, (0, -1)):
        for q in (0.25, [0.1, 0.7], np.array([[0.2, 0.3], [0.4, 1.0]])):
            same("quantile", cube, q, axis=axis)
            same("nanquantile", HOLES, q, axis=None if axis is None else 1)
            same("percentile", cube, np.multiply(q, 100).tolist(), axis=axis, keepdims=True)
    same("nanpercentile", HOLES, [10, 50, 90], axis=1)
    same("quantile", HOLES, 0.5, axis=1)
    same("percentile", np.arange(10), 30)
    assert kw.quantile(kw.zeros((0, 2)), [0.5, 0.1], axis=1).shape == (2, 0)
    assert np.isnan(kw.nanquantile(kw.zeros((0, 2)), [0.5, 0.1], axis=0).numpy()).all()
    for name, share in (("quantile", 0.5), ("percentile", [5, 50])):
        for shape, axis in (((0,), None), ((0, 2), 0), ((2, 0), -1)):
            with pytest.raises(IndexError):
                getattr(np, name)(np.zeros(shape), share, axis=axis)
            with pytest.raises(IndexError, match="no element"):
                getattr(kw, name)(kw.zeros(shape), share, axis=axis)
    out = kw.empty(3, "float64")
    assert kw.quantile(kw.asarray(cube), 0.5, axis=(1, 2), out=out) is out
    compare(out, np.quantile(cube, 0.5, axis=(1, 2)))


def test_shares_on_the_device():
    found = kw.quantile(kw.asarray(X[0]), kw.asarray(np.array([0.5, 2.0, np.nan]))).numpy()
    assert found[0] == np.median(X[0]) and np.isnan(found[1:]).all()
    single = kw.percentile(kw.asarray(np.float32(X)), [10, 50], axis=0)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single.numpy(), np.percentile(X, [10, 50], axis=0), rtol=1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["quantile", "percentile", "nanquantile", "nanpercentile"])
def test_weights_of_quantiles(name):
    rng = np.random.default_rng(5)
    x, weights = rng.normal(size=(2, 3, 7)), rng.integers(0, 3, (2, 3, 7)) * 0.5
    weights[..., 3] = 1
    holes = np.where(rng.integers(0, 4, x.shape) == 0, np.nan, x)
    q = np.array([0, 0.1, 0.5, 0.77, 1]) * (100 if "percentile" in name else 1)
    for values in (x, x.astype(np.float32), holes, rng.integers(0, 9, x.shape)):
        for axis in (None, -1, (0, 2)):
            same(name, values, q, axis, method="inverted_cdf", weights=weights, typed=False)
    call, a, line = getattr(kw, name), kw.asarray(x), np.arange(7.0)
    every = np.broadcast_to(line, x.shape)  # NumPy's nanquantile() fails with a vector
    want = getattr(np, name)(x, q, 2, None, False, "inverted_cdf", True, weights=every)
    found = call(a, q, 2, None, False, "inverted_cdf", True, weights=kw.asarray(line))
    compare(found, want)
    for options, match in (
        ({"weights": a}, "inverted_cdf"),
        ({"weights": a[0], "method": "inverted_cdf"}, "one for each element"),
        ({"weights": kw.ones(3), "method": "inverted_cdf", "axis": 2}, "3 weights along axis 2"),
    ):
        with pytest.raises(kw.InvalidArgument, match=match):
            call(a, 0.5, **options)


def test_averages():
    weights = RNG.random((5, 7))
    same("average", X)
    same("average", X, axis=-1, weights=weights)
    same("average", X, axis=1, weights=weights[0], returned=True)
    same("average", X, weights=weights, returned=True)
    same("average", np.arange(6), weights=np.arange(6))
    same("average", X, axis=0, returned=True)
    cube = RNG.normal(size=(2, 3, 4))
    same("average", cube, axis=(2, 0), weights=RNG.random((4, 2)))
    for view in views(X):
        compare(kw.average(view, axis=0), np.average(X, axis=0))


@pytest.mark.parametrize("weights", [[0.0, 0.0, 0.0], [1.0, -1.0, 0.0], [0, 0, 0]])
def test_averages_refuse_weights_that_sum_to_zero(weights):
    rows, given = np.ones((2, 3)), np.array(weights)
    for options in ({}, {"axis": 1}, {"axis": -1, "returned": True}):
        x, w = (rows, given) if options else (rows[0], given)
        with pytest.raises(ZeroDivisionError):
            np.average(x, weights=w, **options)
        with pytest.raises(kw.DivisionByZero, match="sum to zero"):
            kw.average(kw.asarray(x), weights=kw.asarray(w), **options)
    mixed = np.array([[0.0, 0.0], [1.0, 1.0]])
    with pytest.raises(ZeroDivisionError):
        kw.average(kw.asarray(mixed), axis=1, weights=kw.asarray(mixed))
    same("average", mixed, axis=0, weights=mixed + 1)


@np.errstate(all="ignore")
@pytest.mark.filterwarnings("ignore")
def test_covariances():
    y = RNG.normal(size=(2, 7))
    for name in ("cov", "corrcoef"):
        same(name, X)
        same(name, X, y)
        same(name, X, rowvar=False)
        same(name, X[0], X[1])
        same(name, X[0])
        same(name, X[:2] + 1j * y)
        same(name, np.arange(6).reshape(2, 3) ** 2)
    counts, weights = np.array([1, 2, 1, 1, 3, 0, 2]), RNG.random(7)
    same("cov", X, bias=True)
    same("cov", X, ddof=3)
    same("cov", X, fweights=counts)
    same("cov", X, aweights=weights)
    same("cov", X, fweights=counts, aweights=weights, ddof=2)
    assert kw.cov(kw.asarray(np.float32(X))).dtype == np.float32


def test_errors():
    x = kw.asarray(X)
    for name in ("median", "quantile", "nanpercentile"):
        with pytest.raises(kw.ArgumentError, match="order"):
            getattr(kw, name)(kw.asarray([1j]), *([0.5] * (name != "median")))
    with pytest.raises(kw.InvalidArgument, match="between 0 and 1"):
        kw.quantile(x, 1.5)
    with pytest.raises(kw.InvalidArgument, match="between 0 and 100"):
        kw.percentile(x, [50, -1])
    with pytest.raises(kw.InvalidArgument, match="median_unbiased"):
        kw.quantile(x, 0.5, method="cubic")
    with pytest.raises(kw.AxisError):
        kw.median(x, axis=2)
    with pytest.raises(kw.InvalidArgument, match="weights"):
        kw.average(x, axis=1, weights=kw.ones(3))
    with pytest.raises(kw.InvalidArgument, match="observations"):
        kw.cov(x, aweights=kw.ones(3))
    with pytest.raises(kw.ArgumentError, match="integers"):
        kw.cov(x, fweights=kw.ones(7))
    with pytest.raises(kw.InvalidArgument, match="axes"):
        kw.cov(kw.ones((2, 2, 2)))
