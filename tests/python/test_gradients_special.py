"""Gradients of Bessel's I0, modf() and frexp()."""

import numpy as np
import pytest

import kernwright as kw

# I1 at -2, -0.5, 0, 0.5, 3, 30, from torch.special.i1 in float64.
POINTS = [-2.0, -0.5, 0.0, 0.5, 3.0, 30.0]
I1 = [
    -1.5906368546373295,
    -0.25789430539089636,
    0.0,
    0.25789430539089636,
    3.9533702174026093,
    768532038938.9569,
]


def f8(*values):
    return kw.asarray(values, dtype="float64")


def slope(x):
    return kw.grad(lambda x: kw.i0(x).sum())(x)


def test_the_slope_of_i0_is_i1():
    np.testing.assert_allclose(slope(f8(*POINTS)).numpy(), I1, rtol=1e-12)
    assert kw.gradcheck(slope, f8(*POINTS[:5]))
    assert kw.gradcheck(lambda x: kw.grad(lambda x: slope(x).sum())(x), f8(-0.5, 3.0))
    assert slope(kw.zeros(0)).shape == (0,)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_the_slope_of_i0_in_few_bits(dtype):
    x = kw.asarray(POINTS[:5]).astype(dtype)
    found = slope(x)
    assert found.dtype == x.dtype
    rtol = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 1e-6}[dtype]
    np.testing.assert_allclose(found.astype("float32").numpy(), I1[:5], rtol=rtol)


def test_parts_of_floating_numbers():
    x = f8(-2.5, 0.25, 3.7)
    assert kw.gradcheck(lambda x: kw.modf(x)[0] * x, x)
    assert kw.gradcheck(lambda x: kw.modf(x)[1] * x, x)
    assert kw.gradcheck(lambda x: kw.frexp(x)[0] * x, x + 0.01)
    assert kw.gradcheck(lambda x: kw.frexp(x)[1] * x, x + 0.01)
    edges = kw.asarray([0.0, np.inf, -3.0])
    assert kw.grad(lambda x: kw.frexp(x)[0].sum())(edges).numpy().tolist() == [1, 1, 0.25]
    assert kw.grad(lambda x: kw.modf(x)[0].sum())(edges).numpy().tolist() == [1, 1, 1]
    twice = lambda x: kw.grad(lambda x: (kw.modf(x)[0] ** 3).sum())(x)  # noqa: E731
    assert kw.gradcheck(twice, x)
