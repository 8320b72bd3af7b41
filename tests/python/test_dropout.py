"""Masks from a counter on the device, and Dropout as a layer; test_activations.py has the rest."""

import pickle

import numpy as np
import pytest

import kernwright as kw

nn = kw.nn


def word(value):
    return kw.full(1, value, "uint64")


def test_a_counter_is_added_to_the_offset_and_stays():
    x, counter = kw.ones(1001), word(5)
    expected = nn.dropout(x, 0.4, seed=9, offset=12).numpy()
    made = nn.dropout(x, 0.4, seed=9, offset=7, counter=counter)
    np.testing.assert_array_equal(made.numpy(), expected)
    back = nn.dropout_backward(x, 0.4, seed=9, offset=7, counter=counter)
    np.testing.assert_array_equal(back.numpy(), expected)
    assert counter.item() == 5


@pytest.mark.parametrize(
    "counter", [kw.zeros(2, "uint64"), kw.zeros(1, "float32"), kw.zeros(0, "uint64")]
)
def test_what_is_no_counter(counter):
    with pytest.raises(kw.InvalidArgument, match="counter is one uint64"):
        nn.dropout(kw.ones(3), seed=1, counter=counter)
    with pytest.raises(kw.InvalidArgument, match="counter is one uint64"):
        nn.dropout(kw.ones(3), 0.0, seed=1, counter=counter)


def test_a_host_number_is_no_counter():
    with pytest.raises(kw.ArgumentError, match="counter"):
        nn.dropout(kw.ones(3), seed=1, counter=3)


@pytest.mark.parametrize("p", [0.2, 0.5])
def test_the_mean_stays_and_the_variance_is_that_of_the_mask(p):
    x = nn.Dropout(p, seed=11)(kw.ones(200_000)).numpy().astype(np.float64)
    assert np.unique(x).tolist() == [0, np.float32(1 / (1 - p))]
    spread = p / (1 - p)
    assert abs(x.mean() - 1) < 5 * np.sqrt(spread / x.size)
    assert abs(x.var() - spread) < 0.02 * spread + 0.002


def test_masks_of_a_layer_differ_and_come_again_with_its_seed():
    x = kw.ones(4000)
    layer, same = nn.Dropout(seed=4), nn.Dropout(seed=4)
    one, two = layer(x).numpy(), layer(x).numpy()
    np.testing.assert_array_equal(one, same(x).numpy())
    np.testing.assert_array_equal(two, same(x).numpy())
    both = np.mean((one > 0) & (two > 0))
    assert abs(both - 0.25) < 0.04


def test_layers_without_a_seed_have_masks_of_their_own():
    x = kw.ones(4000)
    kw.random.seed(2)
    one, two = nn.Dropout()(x).numpy(), nn.Dropout()(x).numpy()
    assert (one != two).any()
    kw.random.seed(2)
    np.testing.assert_array_equal(nn.Dropout()(x).numpy(), one)


def test_eval_and_the_ends():
    x = kw.asarray(np.array([np.nan, -1.0, np.inf, 3.0], np.float32))
    layer = nn.Dropout(0.7, seed=1)
    assert layer.eval()(x) is x
    assert layer.train()(x) is not x
    assert nn.Dropout(0)(x) is x
    np.testing.assert_array_equal(nn.Dropout(1.0)(x).numpy(), 0)
    assert nn.Dropout(0.5)(kw.ones((0, 4))).shape == (0, 4)
    assert repr(layer) == "Dropout(p=0.7)  # 0 parameters"


@pytest.mark.parametrize("p", [-0.1, 1.5, float("nan"), "half", None, True])
def test_no_chance(p):
    kind = kw.InvalidArgument if type(p) is float else kw.ArgumentError
    with pytest.raises(kind, match=r"p is a (chance from 0 to 1|finite number|number), got"):
        nn.Dropout(p)


def test_a_copy_goes_on_where_the_layer_is():
    x = kw.ones(300)
    layer = nn.Sequential(nn.Dropout(seed=8))
    layer(x)
    copies = [layer.copy(), pickle.loads(pickle.dumps(layer))]
    after = layer(x).numpy()
    for each in copies:
        np.testing.assert_array_equal(each(x).numpy(), after)


def test_each_launch_of_a_graph_has_the_next_mask():
    x = kw.ones(3000)
    layer, eager = nn.Dropout(0.5, seed=21), nn.Dropout(0.5, seed=21)
    np.testing.assert_array_equal(layer(x).numpy(), eager(x).numpy())
    stream, graph = kw.Stream(), kw.Graph()
    kw.synchronize()
    with graph.capture(stream):
        y = layer(x)
    seen = []
    for _ in range(3):
        graph.launch(stream)
        stream.synchronize()
        seen.append(y.numpy())
        np.testing.assert_array_equal(seen[-1], eager(x).numpy())
    assert (seen[0] != seen[1]).any() and (seen[1] != seen[2]).any()


def test_the_gradient_in_a_graph_has_the_mask_of_its_launch():
    x, counter = kw.ones(3000), word(0)
    nn.dropout_backward(nn.dropout(x, seed=3, counter=counter), seed=3, counter=counter)
    stream, graph = kw.Stream(), kw.Graph()
    counter += 0
    kw.synchronize()
    with graph.capture(stream):
        y = nn.dropout(x, seed=3, counter=counter)
        dx = nn.dropout_backward(x, seed=3, counter=counter)
        counter += 1
    seen = []
    for _ in range(2):
        graph.launch(stream)
        stream.synchronize()
        seen.append(y.numpy())
        np.testing.assert_array_equal(dx.numpy(), seen[-1])
    assert (seen[0] != seen[1]).any()
