"""Settings of layers that make no sense are refused when the layer is made."""

import functools

import numpy as np
import pytest

import kernwright as kw

NAN, INF = float("nan"), float("inf")
NO_SIZE = (-1, 2.5, "four", None, True, NAN, 2**70)
NO_COUNT = (0, *NO_SIZE)
NO_FLAG = (0, 1, "yes", None, [True])
NO_EPS = (0, 0.0, -1e-5, NAN, INF, "small", None, True, [1e-5])
NO_NUMBER = (NAN, INF, "large", True, [1.0])
NO_NAME = ("swish2", None, 3, ["silu"], b"silu")
NO_SEED = (-1, 1.5, "seed")
NO_FLOAT = ("int32", "complex64", "bool", "float8_e4m3fn", "nothing")

LINEAR = {"dtype": NO_FLOAT, "seed": NO_SEED, "device": ("tpu", -1)}
LAYERS = {
    "Linear": (
        {"in_features": 4, "out_features": 3},
        {"in_features": NO_SIZE, "out_features": NO_SIZE, "bias": NO_FLAG, **LINEAR},
    ),
    "Embedding": (
        {"num_embeddings": 4, "embedding_dim": 3},
        {"num_embeddings": NO_SIZE, "embedding_dim": NO_SIZE, **LINEAR},
    ),
    "MLP": (
        {"dim": 4, "hidden_dim": 8},
        {"dim": NO_SIZE, "hidden_dim": NO_SIZE, "activation": NO_NAME, "bias": NO_FLAG, **LINEAR},
    ),
    "GatedMLP": (
        {"dim": 4, "hidden_dim": 8},
        {"dim": NO_SIZE, "hidden_dim": NO_SIZE, "activation": NO_NAME, "bias": NO_FLAG, **LINEAR},
    ),
    "RMSNorm": (
        {"normalized_shape": 4},
        {"normalized_shape": (*NO_SIZE, (), (4, -1), (4, 2.0)), "eps": NO_EPS,
         "elementwise_affine": NO_FLAG, "dtype": NO_FLOAT},
    ),
    "LayerNorm": (
        {"normalized_shape": (2, 3)},
        {"normalized_shape": (*NO_SIZE, (), (4, -1), (4, 2.0)), "eps": NO_EPS, "bias": NO_FLAG,
         "elementwise_affine": NO_FLAG, "dtype": NO_FLOAT},
    ),
    "GroupNorm": (
        {"num_groups": 2, "num_channels": 4},
        {"num_groups": (*NO_COUNT, 3), "num_channels": (*NO_COUNT, 3), "eps": NO_EPS,
         "affine": NO_FLAG, "dtype": NO_FLOAT},
    ),
    "Rope": (
        {"dim": 8},
        {"dim": (*NO_COUNT, 3, 65538), "base": NO_EPS, "interleaved": NO_FLAG,
         "max_positions": NO_COUNT,
         "scaling": ("yarn", {"rope_type": "none"}, {"rope_type": "linear"}, {"speed": 2},
                     {"rope_type": "linear", "factor": -1.0})},
    ),
    "MultiHeadAttention": (
        {"dim": 16, "num_heads": 2},
        {"dim": (*NO_COUNT, 15), "num_heads": (*NO_COUNT, 3),
         "num_kv_heads": (0, -1, 2.5, "one", True, 4), "head_dim": (0, -1, 2.5, "four", True),
         "bias": NO_FLAG, "rope": (8, "rope", [8], kw.nn.Rope(10)), "qk_norm": NO_FLAG,
         "is_causal": NO_FLAG, "window": (0, -3, 2.5, "all", True, (1, 2, 3), (1, None)),
         "soft_cap": (*NO_NUMBER, -1.0), "scale": NO_NUMBER, "sinks": NO_FLAG,
         "norm_eps": NO_EPS, **LINEAR},
    ),
    "Experts": (
        {"dim": 16, "hidden_dim": 8, "num_experts": 4, "num_experts_per_token": 2},
        {"dim": NO_COUNT, "hidden_dim": NO_COUNT, "num_experts": (*NO_COUNT, 1, 2048),
         "num_experts_per_token": (*NO_COUNT, 5), "activation": (*NO_NAME, "tanh"),
         "dtype": NO_FLOAT, "seed": NO_SEED, "scores": ("relu", None, 3),
         "renormalize": NO_FLAG, "groups": (*NO_COUNT, 3), "groups_kept": (*NO_COUNT, 2),
         "scale": NO_NUMBER, "bias": (3, [1, 2, 3, 4]), "capacity": (4,)},
    ),
    "Dropout": ({}, {"p": (-0.1, 1.5, NAN, "half", None, True), "seed": NO_SEED}),
    "Conv1d": (
        {"in_channels": 4, "out_channels": 4, "kernel_size": 3},
        {"in_channels": NO_COUNT, "out_channels": NO_COUNT, "kernel_size": NO_COUNT,
         "stride": NO_COUNT, "padding": (-1, 2.5, "all", True), "dilation": NO_COUNT,
         "groups": (*NO_COUNT, 3), "bias": NO_FLAG, "padding_mode": ("ones", None), **LINEAR},
    ),
    "Conv2d": (
        {"in_channels": 4, "out_channels": 4, "kernel_size": 3},
        {"kernel_size": (*NO_COUNT, (3, 0)), "stride": NO_COUNT, "groups": (*NO_COUNT, 3)},
    ),
    "ConvTranspose1d": (
        {"in_channels": 4, "out_channels": 4, "kernel_size": 3},
        {"kernel_size": NO_COUNT, "output_padding": (-1, 2, "all", True), "bias": NO_FLAG},
    ),
    **dict.fromkeys(
        ("LSTM", "GRU"),
        ({"input_size": 4, "hidden_size": 3},
         {"input_size": NO_COUNT, "hidden_size": NO_COUNT, "num_layers": NO_COUNT, "bias": NO_FLAG,
          "batch_first": NO_FLAG, "dropout": (-0.1, 1.5, NAN, "half", None, True),
          "bidirectional": NO_FLAG, **LINEAR}),
    ),
    **dict.fromkeys(
        ("LSTMCell", "GRUCell"),
        ({"input_size": 4, "hidden_size": 3},
         {"input_size": NO_COUNT, "hidden_size": NO_COUNT, "bias": NO_FLAG, **LINEAR}),
    ),
}  # fmt: skip
CASES = [(name, option) for name, (_, wrong) in LAYERS.items() for option in wrong]


@pytest.mark.parametrize(("name", "option"), CASES)
def test_wrong_settings_are_refused_at_once(name, option):
    given, wrong = LAYERS[name]
    layer = getattr(kw.nn, name)
    for value in wrong[option]:
        with pytest.raises(kw.Error) as caught:
            layer(**{**given, option: value})
            pytest.fail(f"{name}({option}={value!r}) is made")
        assert isinstance(caught.value, (ValueError, TypeError, OverflowError, kw.DeviceNotFound))


def test_every_layer_is_among_them():
    layers = {
        name
        for name in kw.nn.__all__
        if isinstance(layer := getattr(kw.nn, name), type) and issubclass(layer, kw.nn.Module)
    }
    assert layers - {"Module", "Sequential"} == set(LAYERS)


@pytest.mark.parametrize("name", LAYERS)
def test_the_settings_beside_them_are_right(name):
    assert repr(getattr(kw.nn, name)(**LAYERS[name][0])).startswith(name)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: kw.nn.RMSNorm(4, eps=0), "eps is above 0, got 0"),
        (lambda: kw.nn.LayerNorm(4, eps=NAN), "eps is a finite number, got nan"),
        (lambda: kw.nn.Linear(-3, 4), "in_features is from 0 to 2147483647, got -3"),
        (lambda: kw.nn.Experts(16, 8, 4, 2, activation="swish"), "activation is 'swish'"),
        (lambda: kw.nn.Experts(16, 8, 4, 2, scores="max"), "'softmax' or 'sigmoid', not 'max'"),
        (lambda: kw.nn.Experts(16, 8, 4, 5), "num_experts_per_token is from 1 to 4, got 5"),
        (lambda: kw.nn.MultiHeadAttention(8, 2, dtype="float64"), "float32, got float64"),
        (lambda: kw.nn.Rope(7), "dim of Rope is even, got 7"),
        (lambda: kw.nn.MultiHeadAttention(16, 2, rope=kw.nn.Rope(16)), "16 elements turns heads"),
        (lambda: kw.nn.GroupNorm(3, 4), "num_groups divides num_channels, got 3 and 4"),
    ],
)
def test_errors_name_the_setting_and_its_value(make, said):
    with pytest.raises(kw.Error, match=said):
        make()


def test_numbers_of_numpy_are_numbers():
    layer = kw.nn.LayerNorm(np.int64(4), eps=np.float32(0.5))
    x = np.array([[1.0, 2.0, 3.0, 6.0]], np.float32)
    wanted = (x - x.mean()) / np.sqrt(x.var() + 0.5)
    np.testing.assert_allclose(layer(kw.asarray(x)).numpy(), wanted, rtol=1e-5)
    assert kw.nn.Linear(np.int32(2), 3).weight.shape == (3, 2)


def test_a_layer_without_features_is_no_mistake():
    """As in torch: the sum over nothing is the bias alone."""
    layer = kw.nn.Linear(0, 3)
    np.testing.assert_array_equal(layer(kw.zeros((2, 0))).numpy(), [layer.bias.numpy()] * 2)


def test_a_sequence_shows_its_functions():
    net = kw.nn.Sequential(
        kw.nn.Linear(2, 3), kw.nn.silu, functools.partial(kw.nn.softmax, axis=-1), lambda x: x
    )
    lines = repr(net).splitlines()
    assert lines[0] == "Sequential(" and lines[-1] == ")  # 9 parameters"
    assert lines[1] == "  (0): Linear(in_features=2, out_features=3, bias=True)"
    assert lines[2] == "  (1): silu"
    assert lines[3].startswith("  (2): functools.partial(") and "axis=-1" in lines[3]
    assert lines[4] == "  (3): <lambda>"
    assert repr(kw.nn.Sequential(kw.nn.relu)) == "Sequential(\n  (0): relu\n)  # 0 parameters"
    assert repr(kw.nn.Sequential()) == "Sequential()  # 0 parameters"
