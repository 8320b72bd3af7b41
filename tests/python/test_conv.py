"""conv1d, conv2d, conv_transpose1d against loops over taps in NumPy."""

import re

import numpy as np
import pytest
from conv_model import DIRECT, PRODUCTS, UPSAMPLINGS, Conv, convolved
from hopper import run_at_9_0, simulated_elsewhere
from nn_arrays import assert_close, wide

import kernwright as kw
from kernwright.errors import ArgumentError, InvalidArgument

FORWARD = PRODUCTS | DIRECT
TYPES = ("float16", "bfloat16", "float64")


def forward(conv, x, weight, bias=None, **options):
    function = kw.nn.conv1d if conv.axes == 1 else kw.nn.conv2d
    return function(x, weight, bias, *conv.arguments(), **options)


def transposed(conv, x, weight, bias=None):
    stride, padding, dilation, groups = conv.arguments()
    return kw.nn.conv_transpose1d(x, weight, bias, stride, padding, conv.more, groups, dilation)


def rounded(values, dtype):
    """On the device in this dtype, and the same numbers in float64."""
    arrays = [kw.asarray(each).astype(dtype) for each in values]
    return arrays, [wide(each.numpy()) for each in arrays]


@pytest.mark.parametrize("name", FORWARD)
def test_convolutions(name):
    conv = FORWARD[name]
    arrays, numbers = rounded(conv.values(), "float32")
    assert_close(forward(conv, *arrays), conv.forward(*numbers), factor=5)
    assert_close(forward(conv, *arrays[:2]), conv.forward(*numbers[:2]), factor=5)


@pytest.mark.parametrize("name", UPSAMPLINGS)
def test_transposed_convolutions(name):
    conv = UPSAMPLINGS[name]
    arrays, numbers = rounded(conv.values(transposed=True), "float32")
    assert_close(transposed(conv, *arrays), conv.transposed(*numbers), factor=5)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    "name", ["odd", "dilation", "a product an image", "one tap", "planes", "depthwise"]
)
def test_types(name, dtype):
    conv = FORWARD[name]
    arrays, numbers = rounded(conv.values(), dtype)
    made = forward(conv, *arrays)
    assert made.dtype.name == dtype
    assert_close(made, conv.forward(*numbers), dtype, factor=3)


@pytest.mark.parametrize("dtype", TYPES)
def test_types_of_transposed_convolutions(dtype):
    for conv in (UPSAMPLINGS["odd"], UPSAMPLINGS["depthwise"]):
        arrays, numbers = rounded(conv.values(transposed=True), dtype)
        assert_close(transposed(conv, *arrays), conv.transposed(*numbers), dtype, factor=3)


@pytest.mark.parametrize("name", ["wgmma bfloat16", "wgmma float16"])
def test_overlapping_windows(name):
    """Lines of an operand overlap; more channels than a tile, more rows than one, too."""
    dtype = name.removeprefix("wgmma ")
    for conv in (Conv((2, 80, 50), 72, (3,), (2,), (1,), (3,)), Conv((2, 80, 270), 72, (3,), (2,))):
        arrays, numbers = rounded(conv.values(), dtype)
        assert_close(forward(conv, *arrays), conv.forward(*numbers), dtype, factor=3)


def test_tf32():
    for conv in (PRODUCTS["odd"], PRODUCTS["a product an image"]):
        arrays, numbers = rounded(conv.values(), "float32")
        made = wide(forward(conv, *arrays, precision="tf32").numpy())
        error = np.abs(made - conv.forward(*numbers)).max()
        assert error < 5e-3
        exact = wide(forward(conv, *arrays, precision="float32").numpy())
        assert np.abs(exact - conv.forward(*numbers)).max() < min(error, 1e-5)


@pytest.mark.parametrize("name", ["stride and dilation", "planes", "one tap", "few channels"])
def test_views(name):
    """Reversed axes, gaps, axes in another order, and elements that repeat."""
    conv = FORWARD[name]
    (x, weight, bias), _ = rounded(conv.values(), "float32")
    numbers = [wide(each.numpy()) for each in (x, weight, bias)]
    gaps = kw.asarray(np.repeat(x.numpy(), 2, -1))[..., ::2]
    behind = kw.permute_dims(kw.asarray(np.moveaxis(x.numpy(), 1, -1).copy()),
                             (0, x.ndim - 1, *range(1, x.ndim - 1)))  # fmt: skip
    turned = kw.asarray(weight.numpy()[::-1, ..., ::-1].copy())[::-1, ..., ::-1]
    for view in (gaps, behind):
        made = forward(conv, view, turned, kw.asarray(bias.numpy()[::-1].copy())[::-1])
        assert_close(made, conv.forward(*numbers), factor=5)
    row = kw.broadcast_to(x[:1, :1], x.shape)
    assert_close(forward(conv, row, weight), conv.forward(wide(row.numpy()), numbers[1]), factor=5)


def test_paddings():
    x, weight, _ = Conv((2, 16, 9, 11), 12, (3, 4)).values()
    arrays = kw.asarray(x), kw.asarray(weight)
    for padding, dilation, pairs in (
        ("valid", 1, ((0, 0), (0, 0))),
        ("same", 1, ((1, 1), (1, 2))),
        ("same", (2, 3), ((2, 2), (4, 5))),
        (2, 1, ((2, 2), (2, 2))),
        ((0, 3), 1, ((0, 0), (3, 3))),
        (((0, 3), (2, 1)), 1, ((0, 3), (2, 1))),
    ):
        spaced = (dilation, dilation) if isinstance(dilation, int) else dilation
        expected = convolved(x, weight, None, (1, 1), pairs, spaced, 1)
        made = kw.nn.conv2d(*arrays, padding=padding, dilation=dilation)
        assert_close(made, expected, "float64")
        if padding == "same":
            assert made.shape[2:] == x.shape[2:]
    line, taps = kw.asarray(x[:, :, 0]), kw.asarray(weight[:, :, 0])
    expected = convolved(x[:, :, :1], weight[:, :, :1], None, (1, 1), ((0, 0), (3, 1)), (1, 1), 1)
    for padding in ((3, 1), ((3, 1),)):
        assert_close(kw.nn.conv1d(line, taps, padding=padding), expected[:, :, 0], "float64")


def test_no_batch_and_empty_ones():
    for conv in (PRODUCTS["same length"], PRODUCTS["planes"], DIRECT["few channels"]):
        (x, weight, bias), _ = rounded(conv.values(), "float32")
        whole = forward(conv, x, weight, bias)
        assert (forward(conv, x[0], weight, bias) == whole[0]).all()
        empty = forward(conv, x[:0], weight, bias)
        assert empty.shape == (0, *whole.shape[1:]) and empty.dtype == x.dtype
    conv = UPSAMPLINGS["twice"]
    (x, weight, bias), _ = rounded(conv.values(transposed=True), "float32")
    assert (transposed(conv, x[0], weight, bias) == transposed(conv, x, weight, bias)[0]).all()
    assert transposed(conv, x[:0], weight, bias).shape == (0, 12, 22)
    nothing = kw.nn.conv1d(x[:, :, :0], kw.ones((5, 16, 2)), kw.ones(5), padding=1)
    assert nothing.shape == (2, 5, 1) and (nothing == 1).all()


def test_the_same_bits():
    conv = PRODUCTS["dilation"]
    arrays, _ = rounded(conv.values(), "float32")
    assert (forward(conv, *arrays) == forward(conv, *arrays)).all()


X, W = kw.ones((2, 4, 9)), kw.ones((6, 4, 3))


@pytest.mark.parametrize(
    "arguments, options, error, words",
    [
        ((kw.ones((2, 5, 9)), W), {}, InvalidArgument, "(2, 5, 9) (6, 4, 3)"),
        ((X, kw.ones((6, 4))), {}, InvalidArgument, "(6, 4)"),
        ((X, kw.ones((6, 4, 0))), {}, InvalidArgument, "(6, 4, 0)"),
        ((kw.ones(9), W), {}, InvalidArgument, "(9,)"),
        ((X, W, kw.ones(5)), {}, InvalidArgument, "bias (6,) (5,)"),
        ((X, kw.ones((6, 4, 10))), {}, InvalidArgument, "10 (2, 4, 9)"),
        ((X, W), {"groups": 4}, InvalidArgument, "groups=4 (2, 4, 9) (6, 4, 3)"),
        ((X, W), {"groups": 0}, InvalidArgument, "groups"),
        ((X, W), {"groups": 1.5}, ArgumentError, "groups 1.5"),
        ((X, W), {"stride": 0}, InvalidArgument, "stride 0"),
        ((X, W), {"stride": (1, 2)}, ArgumentError, "stride (1, 2)"),
        ((X, W), {"padding": -1}, InvalidArgument, "padding -1"),
        ((X, W), {"padding": "full"}, ArgumentError, "padding 'full'"),
        ((X, W), {"padding": "same", "stride": 2}, InvalidArgument, "same"),
        ((X, W), {"dilation": 2.0}, ArgumentError, "dilation 2.0"),
        ((X, W), {"stride": (1.0,)}, ArgumentError, "stride (1.0,)"),
        ((X, W), {"stride": True + 0.5}, ArgumentError, "stride 1.5"),
        ((X, W), {"padding": 2**31}, InvalidArgument, "padding"),
        ((X, W), {"precision": "half"}, ArgumentError, "half"),
        ((X, W.astype("float16")), {}, InvalidArgument, "float32 float16"),
        ((X.astype("int32"), W), {}, InvalidArgument, "int32"),
        ((np.ones((2, 4, 9), np.float32), W), {}, ArgumentError, "ndarray"),
    ],
)
def test_wrong_arguments(arguments, options, error, words):
    with pytest.raises(error) as refused:
        kw.nn.conv1d(*arguments, **options)
    assert all(word in str(refused.value) for word in re.findall(r"\([^)]*\)|\S+", words))


@pytest.mark.parametrize(
    "weight, options, words",
    [
        (W, {}, "(2, 4, 9)"),
        (kw.ones((4, 6, 3)), {"groups": 3}, "groups=3"),
        (kw.ones((4, 6, 3)), {"stride": 2, "output_padding": 2}, "output_padding"),
        (kw.ones((4, 6, 3)), {"padding": 9}, "elements"),
        (kw.ones((4, 6, 3)), {"stride": 2**29}, "elements"),
    ],
)
def test_wrong_transposed_convolutions(weight, options, words):
    with pytest.raises(InvalidArgument, match=re.escape(words)):
        kw.nn.conv_transpose1d(X, weight, **options)


@simulated_elsewhere
def test_on_a_device_of_9_0():
    run_at_9_0(__file__)
