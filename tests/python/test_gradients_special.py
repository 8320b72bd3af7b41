"""Gradients of Bessel's I0, modf() and frexp()."""

import numpy as np
import pytest

import kernwright as kw
from kernwright._grad.fused import _made

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


LARGER = {
    "maximum": (kw.maximum, np.greater),
    "minimum": (kw.minimum, np.less),
    "fmax": (kw.fmax, np.greater),
    "fmin": (kw.fmin, np.less),
}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", sorted(LARGER))
def test_the_operand_that_lost_gets_nothing_of_an_infinite_gradient(name, dtype):
    function, takes = LARGER[name]
    a = np.array([1, 2, 3, -1, 0.5, 7], dtype)
    b = np.array([2, 1, 3, -1, -0.5, 7], dtype)
    g = np.array([np.inf, 4, 2, np.inf, np.nan, -3], dtype)
    _, back = kw.vjp(function, kw.asarray(a), kw.asarray(b))
    share = {}
    for key, one, other in (("a", a, b), ("b", b, a)):
        share[key] = np.where(one == other, g / 2, np.where(takes(one, other), g, 0))
    for found, key in zip(back(kw.asarray(g)), share, strict=True):
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.numpy(), share[key])


def test_fused_gradients_of_16_bits_have_no_float64():
    def rise(a, b):
        return kw.maximum(a * 1.25 + 0.5, b) + kw.minimum(a, b * b)

    fused = kw.fuse(rise)
    x = kw.asarray(np.linspace(-2, 2, 33, dtype=np.float32)).astype("bfloat16")
    z = kw.flip(x) * 0.5
    y, back = kw.vjp(fused, x, z)
    back(kw.ones_like(y))
    (gradient,) = _made[fused].values()
    assert "double" not in gradient.source(kw.ones_like(y), x, z)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.astype("int32") * 2.0, lambda x: kw.sum(x, dtype="int64").astype("float32"),
        lambda x: x.astype("bool") * 1.0, lambda x: kw.concat([x.astype("int8"), kw.arange(2)]),
        lambda x: kw.full((2, 3), x, "int32"), kw.fuse(lambda x: x.astype("int32") * 2.0),
    ],
)  # fmt: skip
def test_no_gradient_goes_through_whole_numbers(f):
    def loss(x):
        return (f(x).astype("float32")).sum() + (x.astype("int32") * x).sum()

    x = kw.asarray([1.5, -2.5, 3.5])
    assert kw.grad(loss)(x).numpy().tolist() == [1, -2, 3]


def test_sizes_and_signs_of_complex_numbers_have_two_derivatives():
    x = kw.asarray([0.3, -0.7, 1.2], "float64")

    def turned(x):
        return x + 1j * x * x

    for f in (
        lambda x: kw.abs(turned(x)), lambda x: kw.abs(turned(x)) ** 2,
        lambda x: kw.real(kw.sign(turned(x))), lambda x: kw.imag(kw.sign(turned(x))),
    ):  # fmt: skip
        assert kw.gradcheck(f, x)
        assert kw.gradcheck(kw.grad(lambda x, f=f: f(x).sum()), x)
    at_zero = kw.grad(lambda z: kw.real(kw.sign(z)).sum())(kw.zeros(2, "complex64"))
    assert at_zero.numpy().tolist() == [0, 0]
    assert kw.grad(lambda x: kw.sign(x).sum())(x).numpy().tolist() == [0, 0, 0]


@pytest.mark.parametrize("reduce", [kw.sum, kw.mean])
def test_second_derivatives_of_fused_functions_that_reduce(reduce):
    x, w = kw.asarray(np.linspace(0.1, 1.0, 6).reshape(2, 3)), kw.asarray([0.5, 1.0, 2.0])

    def f(x, w):
        return reduce(kw.sin(x) * w, axis=-1)

    def second(f):
        def slope(x, w):
            return (kw.grad(lambda x, w: (f(x, w) ** 2).sum(), wrt=(0, 1))(x, w)[0] ** 2).sum()

        return kw.grad(slope, wrt=(0, 1))(x, w)

    for made, expected in zip(second(kw.fuse(f)), second(f), strict=True):
        np.testing.assert_allclose(made.numpy(), expected.numpy(), rtol=1e-12)


def test_sums_of_weights_in_bins():
    x, weights = kw.asarray([2, 0, 2, 1]), f8(0.5, -1.0, 2.0, 3.0)
    assert kw.gradcheck(lambda w: kw.bincount(x, weights=w, minlength=5), weights)
    values = f8(0.1, 1.0, 0.5, 7.0, np.nan, 0.5, -0.1)  # an upper edge, an inner one, outside
    weights, pull = f8(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0), f8(10.0, 20.0)
    edges = kw.asarray([0, 0.5, 1])
    summed = kw.grad(lambda w: kw.sum(kw.histogram(values, edges, weights=w)[0] * pull))
    assert summed(weights).numpy().tolist() == [10, 20, 20, 0, 0, 20, 0]
    density = lambda w: kw.histogram(values, edges, weights=w, density=True)[0]  # noqa: E731
    assert kw.gradcheck(density, weights)
    np.testing.assert_allclose(kw.vjp(density, weights)[0].numpy(), density(weights).numpy())
