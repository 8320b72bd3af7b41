"""Gradients of convolutions. A convolution is linear in x and in its weights, so that a gradient is
right if <dy, f(v)> = <gradient, v> for numbers v of any kind, with f as NumPy has it."""

import numpy as np
import pytest
from conv_model import DIRECT, PRODUCTS, UPSAMPLINGS, Conv
from hopper import run_at_9_0, simulated_elsewhere
from nn_arrays import EPSILON, assert_close, wide

import kernwright as kw
from kernwright.errors import ArgumentError, InvalidArgument

FORWARD = PRODUCTS | DIRECT
MANY_WEIGHTS = Conv((2, 96, 13), 96, (3,), padding=(1,), groups=96)


def backward(conv, dy, x, weight, transposed=False, **options):
    stride, padding, dilation, groups = conv.arguments()
    if transposed:
        return kw.nn.conv_transpose1d_backward(
            dy, x, weight, stride, padding, conv.more, groups, dilation, **options
        )
    function = kw.nn.conv1d_backward if conv.axes == 1 else kw.nn.conv2d_backward
    return function(dy, x, weight, stride, padding, dilation, groups, **options)


def arrays_of(conv, dtype, transposed=False):
    """dy, x and weight on the device, and the same numbers in float64."""
    x, weight, _ = conv.values(transposed=transposed)
    forward = conv.transposed if transposed else conv.forward
    dy = np.random.default_rng(7).normal(size=forward(x, weight).shape)
    arrays = [kw.asarray(each).astype(dtype) for each in (dy, x, weight)]
    return arrays, [wide(each.numpy()) for each in arrays]


def assert_gradients(conv, dtype, transposed=False):
    arrays, (dy, x, weight) = arrays_of(conv, dtype, transposed)
    forward = conv.transposed if transposed else conv.forward
    made = backward(conv, *arrays, transposed)
    for each, like in zip(made, (x, weight, np.empty(conv.outputs)), strict=True):
        assert each.shape == like.shape and each.dtype.name == dtype
    dx, dweight, _ = map(wide, (each.numpy() for each in made))
    rng = np.random.default_rng(5)
    for gradient, function, shape in (
        (dx, lambda v: forward(v, weight), x.shape),
        (dweight, lambda v: forward(x, v), weight.shape),
    ):
        for _ in range(3):
            v = rng.normal(size=shape)
            size = np.linalg.norm(gradient) * np.linalg.norm(v)
            assert abs((dy * function(v)).sum() - (gradient * v).sum()) <= EPSILON[dtype] * size
    over = (0, *range(2, dy.ndim))
    assert_close(made[2], dy.sum(over), dtype, factor=4)
    assert backward(conv, *arrays, transposed, bias=False)[2] is None


@pytest.mark.parametrize("name", FORWARD)
def test_gradients(name):
    assert_gradients(FORWARD[name], "float32")


@pytest.mark.parametrize("name", UPSAMPLINGS)
def test_gradients_of_transposed_convolutions(name):
    assert_gradients(UPSAMPLINGS[name], "float32", True)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_types(dtype):
    for conv in (PRODUCTS["odd"], PRODUCTS["planes"], DIRECT["depthwise"], MANY_WEIGHTS):
        assert_gradients(conv, dtype)
    assert_gradients(UPSAMPLINGS["odd"], dtype, True)


@pytest.mark.parametrize("name", ["dilation", "planes"])
def test_finite_differences(name):
    """Of the function itself, in float64."""
    conv = FORWARD[name]
    (dy, x, weight), (_, wide_x, wide_weight) = arrays_of(conv, "float64")
    function = kw.nn.conv1d if conv.axes == 1 else kw.nn.conv2d
    dx, dweight, _ = backward(conv, dy, x, weight)

    def loss(x, weight):
        y = function(kw.asarray(x), kw.asarray(weight), None, *conv.arguments())
        return float(kw.sum(dy * y))

    rng = np.random.default_rng(3)
    for gradient, values, of in (
        (dx, wide_x, lambda v: loss(v, wide_weight)),
        (dweight, wide_weight, lambda v: loss(wide_x, v)),
    ):
        for _ in range(4):
            at = tuple(rng.integers(n) for n in values.shape)
            step = np.zeros(values.shape)
            step[at] = 1e-3
            slope = (of(values + step) - of(values - step)) / 2e-3
            assert abs(slope - float(gradient[at])) < 1e-8 * (1 + abs(slope))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_wgmma_gradients(dtype):
    assert_gradients(Conv((2, 80, 50), 72, (3,), (2,), (1,), (3,)), dtype)


def test_views_and_no_batch():
    conv = PRODUCTS["stride and dilation"]
    (dy, x, weight), _ = arrays_of(conv, "float64")
    expected = backward(conv, dy, x, weight)
    gaps = [
        kw.asarray(np.repeat(each.numpy()[..., ::-1], 2, -1))[..., ::-2] for each in (dy, x, weight)
    ]
    made = backward(conv, *gaps)
    assert (made[0] == expected[0]).all() and (made[1] == expected[1]).all()
    assert_close(made[2], expected[2].numpy(), "float64")
    first = backward(conv, dy[:1], x[:1], weight)
    alone = backward(conv, dy[0], x[0], weight)
    assert alone[0].shape == x.shape[1:]
    assert all((a == b).all() for a, b in zip(alone, first, strict=True))


@pytest.mark.parametrize("name", ["same length", "one tap", "depthwise"])
def test_no_images(name):
    conv = FORWARD[name]
    (dy, x, weight), _ = arrays_of(conv, "float32")
    dx, dweight, dbias = backward(conv, dy[:0], x[:0], weight)
    assert dx.shape == x[:0].shape and dweight.shape == weight.shape
    assert (dweight == 0).all() and (dbias == 0).all()


def test_the_same_bits():
    for conv in (PRODUCTS["dilation"], MANY_WEIGHTS):
        arrays, _ = arrays_of(conv, "float32")
        first, second = backward(conv, *arrays), backward(conv, *arrays)
        assert all((a == b).all() for a, b in zip(first, second, strict=True))


def test_wrong_gradients():
    x, weight = kw.ones((2, 4, 9)), kw.ones((6, 4, 3))
    with pytest.raises(InvalidArgument, match=r"\(2, 6, 7\).*\(2, 6, 8\)"):
        kw.nn.conv1d_backward(kw.ones((2, 6, 8)), x, weight)
    with pytest.raises(InvalidArgument, match=r"\(6, 7\).*\(1, 6, 7\)"):
        kw.nn.conv1d_backward(kw.ones((1, 6, 7)), x[0], weight)
    with pytest.raises(InvalidArgument, match="dy has the dtype of x, float32, got float16"):
        kw.nn.conv1d_backward(kw.ones((2, 6, 7), "float16"), x, weight)
    with pytest.raises(ArgumentError, match="dy"):
        kw.nn.conv2d_backward(None, x[None], weight[None])
    with pytest.raises(InvalidArgument, match=r"\(2, 3, 11\)"):
        kw.nn.conv_transpose1d_backward(x, x, kw.ones((4, 3, 3)))


@simulated_elsewhere
def test_on_a_device_of_9_0():
    run_at_9_0(__file__)
