"""Conv1d, Conv2d and ConvTranspose1d: torch's arguments, weights, first numbers and text."""

import numpy as np
import pytest
from conv_model import Conv, convolved
from nn_arrays import assert_close, wide

import kernwright as kw
from kernwright.errors import ArgumentError, InvalidArgument


def test_layers_are_the_functions_with_their_weights():
    lines, planes = Conv((2, 16, 11), 12, (3,), (2,), (1,), (2,), 2), Conv((2, 3, 7, 6), 8, (3, 2))
    up = Conv((2, 16, 7), 12, (4,), (3,), (1,), (1,), 2, (2,))
    for conv, layer, forward in (
        (lines, kw.nn.Conv1d(16, 12, 3, 2, 1, 2, 2), lines.forward),
        (planes, kw.nn.Conv2d(3, 8, (3, 2), bias=False), planes.forward),
        (up, kw.nn.ConvTranspose1d(16, 12, 4, 3, 1, 2, 2, True, 1), up.transposed),
    ):
        x = kw.asarray(conv.values()[0].astype(np.float32))
        bias = None if layer.bias is None else wide(layer.bias.numpy())
        assert layer.weight.shape == conv.weight_shape(forward == conv.transposed)
        assert_close(layer(x), forward(wide(x.numpy()), wide(layer.weight.numpy()), bias), factor=9)
        assert (layer(x[0]) == layer(x)[0]).all()


@pytest.mark.parametrize(
    "mode, name", [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")]
)
def test_padding_modes(mode, name):
    layer = kw.nn.Conv2d(3, 4, (3, 4), padding="same", padding_mode=mode, bias=False)
    x = np.random.default_rng(1).normal(size=(2, 3, 6, 7)).astype(np.float32)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 2)), name)
    weight = wide(layer.weight.numpy())
    expected = convolved(padded, weight, None, (1, 1), ((0, 0), (0, 0)), (1, 1), 1)
    assert_close(layer(kw.asarray(x)), expected, factor=5)


def test_first_numbers():
    for layer, inputs in (
        (kw.nn.Conv1d(6, 40, 5, groups=2, seed=1), 3 * 5),
        (kw.nn.Conv2d(3, 40, (5, 2), seed=1), 3 * 10),
        (kw.nn.ConvTranspose1d(60, 8, 5, seed=1), 8 * 5),
    ):
        bound = 1 / np.sqrt(inputs)
        weight = layer.weight.numpy()
        assert np.abs(weight).max() <= bound and np.abs(weight).max() > 0.9 * bound
        assert abs(weight.std() - bound / np.sqrt(3)) < 0.06 * bound
        assert np.abs(layer.bias.numpy()).max() <= bound
    one, other = (kw.nn.Conv1d(6, 4, 3, seed=7) for _ in range(2))
    assert (one.weight == other.weight).all() and (one.bias == other.bias).all()


def test_text():
    for layer, text in (
        (kw.nn.Conv1d(16, 32, 3, stride=2), "Conv1d(16, 32, kernel_size=(3,), stride=(2,))"),
        (
            kw.nn.Conv2d(4, 8, (3, 5), padding=(1, 2), dilation=2, groups=4, bias=False,
                         padding_mode="reflect"),
            "Conv2d(4, 8, kernel_size=(3, 5), stride=(1, 1), padding=(1, 2), dilation=(2, 2), "
            "groups=4, bias=False, padding_mode=reflect)",
        ),
        (
            kw.nn.Conv1d(4, 8, 3, padding="same"),
            "Conv1d(4, 8, kernel_size=(3,), stride=(1,), padding=same)",
        ),
        (
            kw.nn.ConvTranspose1d(4, 8, 3, 2, 1, 1, dilation=2),
            "ConvTranspose1d(4, 8, kernel_size=(3,), stride=(2,), padding=(1,), "
            "dilation=(2,), output_padding=(1,))",
        ),
    ):  # fmt: skip
        assert repr(layer).split("  #")[0] == text


@pytest.mark.parametrize(
    "name, arguments, options, shape",
    [
        ("Conv1d", (16, 12, 3, 2, 1, 2, 2), {}, (2, 16, 31)),
        ("Conv1d", (16, 16, 5), {"padding": "same", "groups": 16}, (16, 9)),
        ("Conv2d", (3, 8, (3, 2), 1, (1, 2)), {"padding_mode": "circular"}, (2, 3, 9, 7)),
        ("Conv2d", (16, 8, 3), {"dilation": (2, 1), "bias": False}, (1, 16, 9, 7)),
        ("ConvTranspose1d", (16, 12, 4, 3, 1, 2, 2), {}, (2, 16, 9)),
        ("ConvTranspose1d", (16, 12, 3), {"dilation": 2}, (2, 16, 9)),
    ],
)
def test_torch_has_the_same_layers(name, arguments, options, shape):
    torch = pytest.importorskip("torch")
    theirs = getattr(torch.nn, name)(*arguments, **options, dtype=torch.float64)
    ours = getattr(kw.nn, name)(*arguments, **options, dtype="float64")
    assert repr(ours).split("  #")[0] == repr(theirs)
    ours.load({key: kw.asarray(each.numpy()) for key, each in theirs.state_dict().items()})
    x = np.random.default_rng(2).normal(size=shape)
    expected = theirs(torch.from_numpy(x)).detach().numpy()
    assert_close(ours(kw.asarray(x)), expected, "float64")


def test_a_network_of_convolutions_is_saved(tmp_path):
    def make(seed):
        return kw.nn.Sequential(kw.nn.Conv1d(2, 8, 3, seed=seed), kw.nn.relu,
                                kw.nn.ConvTranspose1d(8, 2, 3, seed=seed))  # fmt: skip

    net, other = make(1), make(2)
    names = [name for name, _ in net.named_parameters()]
    assert names == ["0.weight", "0.bias", "2.weight", "2.bias"]
    net.save(tmp_path / "net.safetensors")
    other.load(tmp_path / "net.safetensors")
    x = kw.ones((1, 2, 9))
    assert (net(x) == other(x)).all() and (net.copy()(x) == net(x)).all()
    half = net.astype("bfloat16")
    assert half(x.astype("bfloat16")).dtype.name == "bfloat16"


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda: kw.nn.Conv1d(0, 4, 3), InvalidArgument, "in_channels"),
        (lambda: kw.nn.Conv1d(4, 4.0, 3), ArgumentError, "out_channels"),
        (lambda: kw.nn.Conv1d(4, 6, 3, groups=4), InvalidArgument, "groups=4"),
        (lambda: kw.nn.Conv1d(4, 6, "3"), ArgumentError, "kernel_size"),
        (lambda: kw.nn.Conv2d(4, 6, (3, 3, 3)), ArgumentError, "kernel_size"),
        (lambda: kw.nn.Conv2d(4, 6, 3, stride=0), InvalidArgument, "stride"),
        (lambda: kw.nn.Conv2d(4, 6, 3, padding="around"), ArgumentError, "padding"),
        (lambda: kw.nn.Conv1d(4, 6, 3, 2, "same"), InvalidArgument, "same"),
        (lambda: kw.nn.Conv1d(4, 6, 3, bias=kw.ones(6)), ArgumentError, "bias"),
        (lambda: kw.nn.Conv1d(4, 6, 3, padding_mode="mirror"), ArgumentError, "padding_mode"),
        (lambda: kw.nn.ConvTranspose1d(4, 6, 3, 2, output_padding=2), InvalidArgument,
         "output_padding"),
        (lambda: kw.nn.ConvTranspose1d(4, 6, 3, padding="same"), ArgumentError, "padding"),
        (lambda: kw.nn.Conv1d(4, 6, 3)(kw.ones((1, 5, 9))), InvalidArgument, "(1, 5, 9)"),
        (lambda: kw.nn.Conv2d(4, 6, 3)(kw.ones((4, 9))), InvalidArgument, "(4, 9)"),
    ],
)  # fmt: skip
def test_wrong_arguments(make, error, words):
    with pytest.raises(error) as refused:
        make()
    assert words in str(refused.value)
