"""frexp, modf, nan_to_num, round with digits, ldexp: against NumPy."""

import ml_dtypes
import numpy as np
import pytest
from numpy_pairs import compare, same, views

import kernwright as kw

SPECIAL = [0.0, -0.0, 1.0, -2.5, 3e-310, 1e300, np.inf, -np.inf, np.nan, 0.1, -7.0]
X = np.array(SPECIAL)


@pytest.mark.parametrize("name", ["frexp", "modf", "nan_to_num"])
@np.errstate(invalid="ignore")
def test_special_values_and_views(name):
    rows = np.resize(X, (5, 11))
    for view in views(rows):
        compare(getattr(kw, name)(view), getattr(np, name)(rows))
    for values in (X[:0], X[:1], np.array(2.5), np.arange(-3, 4)):
        same(name, values)
    same(name, X[1:5].astype(np.float32))


def test_parts_of_short_floats():
    x = np.array([1.5, -96.0, 0.007]).astype(ml_dtypes.bfloat16)
    mantissa, exponent = kw.frexp(kw.asarray(x))
    assert mantissa.dtype == x.dtype
    assert (mantissa.numpy().astype(float) * 2.0 ** exponent.numpy() == x.astype(float)).all()
    assert kw.modf(kw.asarray(x))[1].numpy().astype(float).tolist() == [1, -96, 0]
    limit = float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)
    assert float(kw.nan_to_num(kw.asarray([np.inf], "bfloat16"))[0]) == limit


@pytest.mark.parametrize("name", ["frexp", "modf"])
def test_parts_go_into_arrays(name):
    rows = np.resize(np.array([2.5, -0.75, 8.0]), (2, 3))
    expected = getattr(np, name)(rows)
    base = [kw.zeros((4, 3), dtype) for dtype in ("float64", expected[1].dtype)]
    out = tuple(each[::-2] for each in base)
    found = getattr(kw, name)(kw.asarray(rows), out=out)
    assert all(made is given for made, given in zip(found, out, strict=True))
    compare(found, expected)
    first, second = getattr(kw, name)(kw.asarray(rows), out=(None, out[1]))
    assert second is out[1] and first is not out[0]
    compare(first, expected[0])
    for wrong in (out[0], (out[0],), [out[0], out[1]]):
        with pytest.raises(kw.ArgumentError, match="tuple of two arrays"):
            getattr(kw, name)(kw.asarray(rows), out=wrong)
    with pytest.raises(kw.InvalidArgument, match="out of shape"):
        getattr(kw, name)(kw.asarray(rows[0]), out=out)


def test_gradients_pass_through_outputs():
    def loss(x):
        out = kw.empty(3, "float64"), None
        fraction, whole = kw.modf(x, out=out)
        return (fraction**2).sum() + 0 * whole.sum()

    x = np.array([1.25, -3.5, 0.75])
    compare(kw.grad(loss)(kw.asarray(x)), 2 * np.modf(x)[0])


def test_numbers_for_nan_in_place_and_of_complex_numbers():
    same("nan_to_num", X, nan=5.0, posinf=1.0, neginf=-1.0)
    z = np.array([1 + 2j, complex(np.nan, 1), complex(2, -np.inf)])
    same("nan_to_num", z)
    x = kw.asarray(X)
    assert kw.nan_to_num(x, copy=False) is x
    compare(x, np.nan_to_num(X))


def test_digits():
    x = np.array([2.345, -0.55, 1234.5, np.nan, np.inf])
    for digits in (1, 2, -2):
        same("round", x, digits)
    same("round", np.array([15, 25, -26]), -1)
    same("round", np.array([15, 25]), 2)
    same("round", x[:3] + 1j * x[1:4], 1)
    out = kw.empty(5, "float64")
    assert kw.round(kw.asarray(x), 1, out=out) is out
    compare(out, np.round(x, 1))


def test_scaling_by_powers():
    exponents = np.array([3, -2, 0, 100, -700, 2000, 5, 1, 0, 60, -3])
    same("ldexp", X, exponents)
    same("ldexp", np.arange(3), np.array([1, 2, -1], np.int8))
    same("ldexp", X.astype(np.float32), 2)
    far = kw.ldexp(kw.ones(2), kw.asarray(np.array([2**40, -(2**40)])))
    assert far.numpy().tolist() == [np.inf, 0]
    with pytest.raises(kw.ArgumentError, match="second operand"):
        kw.ldexp(kw.ones(3), kw.ones(3))


def test_special_values_of_elementwise_functions():
    for name in ("fmax", "fmin", "heaviside"):
        same(name, X[:, None], X[None, :])
    for name in ("i0", "rint", "isneginf", "isposinf", "angle", "fix"):
        with np.errstate(all="ignore"):
            same(name, X[2:4] if name == "i0" else X)
    lowest = np.array([-128, -128, 0, 6], np.int8)
    same("gcd", lowest, np.array([12, 0, 0, 4], np.int8))
    same("lcm", np.array([-4, 0, 21]), np.array([6, 3, 6]))
    compare(kw.angle(kw.asarray([1j, -1]), deg=True), np.float32([90, 180]), rtol=1e-6)


def test_errors():
    for name in ("frexp", "modf"):
        with pytest.raises(kw.ArgumentError, match="real"):
            getattr(kw, name)(kw.asarray([1j]))
        with pytest.raises(kw.ArgumentError, match="device"):
            getattr(kw, name)(X)
    with pytest.raises(kw.ArgumentError, match="integers"):
        kw.gcd(kw.ones(3), 2)
