"""kw.nn.LSTM, GRU and their cells: torch's names and layouts, modes, files, gradients."""

import math

import numpy as np
import pytest
from recurrent_model import network

import kernwright as kw

nn = kw.nn
BOTH = pytest.mark.parametrize("name", ["LSTM", "GRU"])


def wide(array):
    return array.astype("float64").numpy()


def drawn(*shape, seed=0):
    return kw.asarray(np.random.default_rng(seed).normal(size=shape).astype("f"))


@BOTH
def test_names_and_shapes_are_torchs(name):
    net = getattr(nn, name)(5, 6, 2, bidirectional=True, seed=1)
    gates = 4 if name == "LSTM" else 3
    expected = {}
    for layer, inputs in ((0, 5), (1, 12)):
        for way in ("", "_reverse"):
            end = f"_l{layer}{way}"
            expected |= {f"weight_ih{end}": (gates * 6, inputs), f"weight_hh{end}": (gates * 6, 6)}
            expected |= {f"bias_ih{end}": (gates * 6,), f"bias_hh{end}": (gates * 6,)}
    found = {key: array.shape for key, array in net.named_parameters()}
    assert list(found.items()) == list(expected.items())
    values = np.concatenate([wide(array).ravel() for _, array in net.named_parameters()])
    assert np.abs(values).max() <= 1 / math.sqrt(6) and values.std() > 0.5 / math.sqrt(6)
    assert len(np.unique(values)) > 0.99 * values.size
    assert repr(net).startswith(f"{name}(5, 6, num_layers=2, bidirectional=True)")


@BOTH
@pytest.mark.parametrize("options", [{}, {"bias": False}, {"batch_first": True, "num_layers": 2}])
def test_results(name, options):
    net = getattr(nn, name)(3, 4, bidirectional=True, seed=2, **options)
    x = drawn(5, 2, 3)
    h_0, c_0 = drawn(len(net._ends), 2, 4, seed=1), drawn(len(net._ends), 2, 4, seed=2)
    weights = [wide(each) for each in net.weights()]
    each = 4 if net.bias else 2
    cell = name.lower()
    expected = network(cell, wide(x), wide(h_0), wide(c_0), weights, 2, each)
    given = kw.permute_dims(x, (1, 0, 2)) if net.batch_first else x
    output, last = net(given, h_0 if name == "GRU" else (h_0, c_0))
    output = wide(output).transpose(1, 0, 2) if net.batch_first else wide(output)
    np.testing.assert_allclose(output, expected[0], atol=3e-6)
    states = (last,) if name == "GRU" else last
    for one, other in zip(states, expected[1:], strict=False):
        np.testing.assert_allclose(wide(one), other, atol=3e-6)


@pytest.mark.parametrize("name", ["LSTMCell", "GRUCell"])
def test_cells_are_one_step_of_a_layer(name):
    step = getattr(nn, name)(3, 4, seed=2)
    whole = getattr(nn, name[:-4])(3, 4)
    whole.load({f"{key}_l0": array for key, array in step.named_parameters()})
    x, h, c = drawn(5, 2, 3), drawn(2, 4, seed=1), drawn(2, 4, seed=2)
    state = h if name == "GRUCell" else (h, c)
    first = state[None] if name == "GRUCell" else (h[None], c[None])
    output, _ = whole(x, first)
    for t in range(5):
        state = step(x[t], state)
        now = state if name == "GRUCell" else state[0]
        np.testing.assert_allclose(wide(now), wide(output[t]), atol=1e-6)
    assert repr(getattr(nn, name)(3, 4, bias=False)).startswith(f"{name}(3, 4, bias=False)")
    assert getattr(nn, name)(3, 4, bias=False)(x[0]) is not None


@BOTH
def test_dropout_is_between_layers_while_training(name):
    x = drawn(4, 2, 3)
    net = getattr(nn, name)(3, 6, 3, dropout=0.5, seed=7)
    one, two = wide(net(x)[0]), wide(net(x)[0])
    assert np.abs(one - two).max() > 1e-3
    again = getattr(nn, name)(3, 6, 3, dropout=0.5, seed=7)
    np.testing.assert_array_equal(wide(again(x)[0]), one)
    plain = getattr(nn, name)(3, 6, 3, seed=7)
    np.testing.assert_array_equal(wide(net.eval()(x)[0]), wide(plain(x)[0]))
    alone = getattr(nn, name)(3, 6, dropout=0.5, seed=7)
    np.testing.assert_array_equal(wide(alone(x)[0]), wide(alone.eval()(x)[0]))


@BOTH
def test_each_launch_of_a_graph_has_the_next_masks(name):
    x = drawn(4, 2, 3)
    net = getattr(nn, name)(3, 6, 2, dropout=0.5, seed=9)
    eager = net.copy()
    np.testing.assert_array_equal(wide(net(x)[0]), wide(eager(x)[0]))
    stream, graph = kw.Stream(), kw.Graph()
    kw.synchronize()
    with graph.capture(stream):
        output = net(x)[0]
    for _ in range(2):
        graph.launch(stream)
        stream.synchronize()
        np.testing.assert_array_equal(wide(output), wide(eager(x)[0]))


@BOTH
def test_files_types_and_copies(name, tmp_path):
    net, other = getattr(nn, name)(3, 4, seed=1), getattr(nn, name)(3, 4, seed=2)
    x = drawn(5, 2, 3)
    net.save(tmp_path / "net.safetensors")
    other.load(tmp_path / "net.safetensors")
    expected = wide(net(x)[0])
    np.testing.assert_array_equal(wide(other(x)[0]), expected)
    np.testing.assert_array_equal(wide(net.copy()(x)[0]), expected)
    narrow = net.astype("bfloat16")(x.astype("bfloat16"))[0]
    assert narrow.dtype.name == "bfloat16"
    np.testing.assert_allclose(wide(narrow), expected, atol=3e-2)


@BOTH
def test_the_gradient_takes_a_layers_weights(name):
    net, x = getattr(nn, name)(3, 4, 2, seed=1), drawn(5, 2, 3)
    function = getattr(nn, f"{name.lower()}_backward")
    made = function(kw.ones((5, 2, 4)), x, None, net.weights(), num_layers=2)
    assert [g.shape for g in made.weights] == [w.shape for _, w in net.named_parameters()]
    before = float(wide(net(x)[0]).sum())
    for array, gradient in zip(net.weights(), made.weights, strict=True):
        array[...] = array - 1e-3 * gradient
    norm = sum((wide(g) ** 2).sum() for g in made.weights)
    np.testing.assert_allclose(before - float(wide(net(x)[0]).sum()), 1e-3 * norm, rtol=0.05)


@BOTH
def test_senseless_settings(name):
    make = getattr(nn, name)
    with pytest.raises(kw.InvalidArgument, match="no projections: proj_size is 0, got 3"):
        make(3, 4, proj_size=3)
    with pytest.raises(kw.InvalidArgument, match=r"num_layers is from 1 to .*, got 0"):
        make(3, 4, 0)
    with pytest.raises(kw.InvalidArgument, match=r"dropout is a chance from 0 to 1, got 1\.5"):
        make(3, 4, dropout=1.5)
    for each in (make, getattr(nn, f"{name}Cell")):
        for wrong in (0, -1):
            with pytest.raises(kw.InvalidArgument, match="hidden_size is from 1 to"):
                each(3, wrong)
            with pytest.raises(kw.InvalidArgument, match="input_size is from 1 to"):
                each(wrong, 3)
        for wrong in (2.0, True, None):
            with pytest.raises(kw.ArgumentError, match="hidden_size is an int"):
                each(3, wrong)
        with pytest.raises(kw.ArgumentError, match="bias is True or False"):
            each(3, 4, bias=kw.ones(4))
        for dtype in ("int32", "float8_e4m3fn"):
            with pytest.raises(kw.Error, match=dtype):
                each(3, 4, dtype=dtype)


@BOTH
def test_recorded_gradients_are_those_of_the_functions(name):
    net, x = getattr(nn, name)(3, 4, 2, dropout=0.5, seed=1), drawn(5, 2, 3)
    backward = getattr(nn, f"{name.lower()}_backward")
    masks = {"dropout": 0.5, "seed": net._masks.seed}  # the first masks: counter 0
    value, made = kw.value_and_grad(lambda net: net(x)[0].sum())(net)
    plain = backward(kw.ones((5, 2, 4)), x, None, net.weights(), num_layers=2, **masks)
    for (key, _), expected in zip(net.named_parameters(), plain.weights, strict=True):
        np.testing.assert_allclose(wide(made[key]), wide(expected), atol=1e-6, err_msg=key)
    net.eval()
    assert abs(value.item() - wide(net(x)[0]).sum()) > 1e-3
    of_x = kw.grad(lambda x: net(x)[0].sum())(x)
    plain = backward(kw.ones((5, 2, 4)), x, None, net.weights(), num_layers=2)
    np.testing.assert_allclose(wide(of_x), wide(plain.x), atol=1e-6)
