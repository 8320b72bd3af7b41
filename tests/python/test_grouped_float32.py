"""Products of groups of float32 rows, against NumPy in float64."""

import itertools

import numpy as np
import pytest
from test_grouped import SIZES, ends_of, gradient, product, silu, wide

import kernwright as kw
from kernwright import _core

# Rows, columns, those of a thread, steps and stages.
TILES = [
    (128, 128, 8, 8, 8, 4), (128, 128, 16, 8, 8, 3),
    (64, 128, 8, 8, 8, 4), (64, 128, 8, 8, 32, 2),
    (128, 64, 8, 8, 32, 2), (64, 64, 8, 4, 8, 4), (32, 64, 4, 4, 16, 4),
]  # fmt: skip


def random(*shape, seed=0, scale=1.0):
    values = np.random.default_rng(seed).standard_normal(shape) * scale
    return values.astype(np.float32)


def close(result, expected):
    """Where something is expected; float32 keeps about seven digits."""
    values, there = wide(result.numpy()), ~np.isnan(expected)
    assert result.dtype == np.float32 and values.shape == expected.shape
    off, expected = values[there] - expected[there], expected[there]
    assert np.linalg.norm(off) <= 1e-6 * np.linalg.norm(expected)
    assert np.abs(off).max(initial=0) <= 4e-6 * np.abs(expected).max(initial=0)


@pytest.mark.parametrize("tile", TILES, ids=str)
def test_tiles(tile):
    sizes = [70, 0, 131, 1, 10]
    x, w, bias = random(212, 37), random(5, 264, 37, seed=1), random(5, 264, seed=2)
    arrays = [kw.asarray(x), kw.asarray(w), ends_of(sizes)]
    result = _core._grouped_product(*arrays, "ends", kw.asarray(bias), fma_tile=tile)
    close(result, product(x, w, sizes, bias))


@pytest.mark.parametrize("turned_x", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_layouts_and_what_tells_the_groups(turned, turned_x):
    x, w = random(203, 72), random(7, 40, 72, seed=1)
    weights = kw.asarray(np.ascontiguousarray(w.swapaxes(1, 2))).mT if turned else kw.asarray(w)
    rows = kw.asarray(np.ascontiguousarray(x.T)).T if turned_x else kw.asarray(x)
    ends = np.cumsum(SIZES)
    first = kw.nn.grouped_linear(rows, weights, ends_of(SIZES))
    close(first, product(x, w, SIZES))
    for more in (
        {"offsets": kw.asarray(np.concatenate([[0], ends]))},
        {"counts": kw.asarray(np.array(SIZES, np.int32))},
    ):
        same = kw.nn.grouped_linear(rows, weights, **more).numpy()
        assert same.tobytes() == first.numpy().tobytes()


@pytest.mark.parametrize(
    ("rows", "n", "k", "sizes"),
    [(1, 1, 1, [1]), (130, 65, 63, [129, 1]), (5, 7, 257, [5, 0]), (64, 9, 0, [60, 4]),
     (9, 8, 8, [0, 0, 0])],
)  # fmt: skip
def test_sizes(rows, n, k, sizes):
    x, w = random(rows, k), random(len(sizes), n, k, seed=1)
    bias = random(len(sizes), n, seed=2)
    arrays = [kw.asarray(x), kw.asarray(w), ends_of(sizes), kw.asarray(bias)]
    close(kw.nn.grouped_linear(*arrays), product(x, w, sizes, bias))
    assert kw.nn.grouped_linear(arrays[0][:0], arrays[1], ends_of([0] * len(sizes))).shape == (0, n)


def test_groups_that_lie_apart():
    x, w, counts = random(4, 70, 72), random(4, 48, 72, seed=1), [70, 0, 5, 64]
    rows = kw.asarray(np.ascontiguousarray(x.swapaxes(0, 1))).transpose(1, 0, 2)
    numbers = kw.asarray(np.array(counts, np.int32))
    result = kw.nn.grouped_linear(rows, kw.asarray(w), counts=numbers)
    expected = np.full((4, 70, 48), np.nan)
    for group, count in enumerate(counts):
        expected[group, :count] = wide(x[group, :count]) @ wide(w[group]).T
    close(result, expected)


def test_gates_and_activations():
    x, w = random(203, 72), random(7, 104, 72, seed=1, scale=0.2)
    bias = random(7, 104, seed=2)
    arrays = [kw.asarray(x), kw.asarray(w), ends_of(SIZES), kw.asarray(bias)]
    y = product(x, w, SIZES, bias)
    close(kw.nn.grouped_linear(*arrays, gate="silu"), silu(y[:, :52]) * y[:, 52:])
    close(kw.nn.grouped_linear(*arrays, activation="relu"), np.maximum(y, 0))


def test_rows_of_others_stay_as_they_are():
    x, w = random(200, 72), random(4, 104, 72, seed=1)
    x[150:] = np.nan  # nobody's
    ends = kw.asarray(np.array([50, -7, 150, 120], np.int32))
    result = kw.nn.grouped_linear(kw.asarray(x), kw.asarray(w), ends)
    close(result[:150], product(x[:150], w, [50, 0, 100, 0]))


def test_gradients():
    x, w, grad = random(203, 72), random(7, 40, 72, seed=1), random(203, 40, seed=2)
    arrays = [kw.asarray(each) for each in (grad, x, w)]
    grad_x, grad_weights = kw.nn.grouped_linear_backward(*arrays, ends_of(SIZES))
    close(grad_x, product(grad, w.swapaxes(1, 2), SIZES))
    close(grad_weights, gradient(grad, x, SIZES))
    assert (grad_weights.numpy()[[1, 3, 6]] == 0).all()


def test_special_values_stay_in_their_gradients():
    x, grad = random(100, 40), random(100, 24, seed=1)
    x[30:33], grad[33:36] = np.nan, np.inf  # the group in the middle
    made = _core._grouped_gradient(kw.asarray(grad), kw.asarray(x), ends_of([30, 6, 64]), "ends")
    got = made.numpy()
    assert np.isfinite(got[[0, 2]]).all() and np.isnan(got[1]).all()


def test_under_all_checks():
    if not kw.current_device().is_simulated:
        pytest.skip("only the simulated device looks")
    x, w, bias = random(203, 72), random(7, 104, 72, seed=1), kw.asarray(random(7, 104, seed=2))
    rows, weights, grad = kw.asarray(x), kw.asarray(w), kw.asarray(random(203, 104, seed=3))
    turned = kw.asarray(np.ascontiguousarray(w.swapaxes(1, 2))).mT
    nonsense = kw.asarray(np.array([5, -3, 2**31 - 1, 7, 9, 3, 8], np.int32))
    with kw.checks("memory", "init", "race", "sync") as report:
        kw.nn.grouped_linear(rows, weights, ends_of(SIZES), bias, activation="silu")
        kw.nn.grouped_linear(rows, turned, ends_of(SIZES), bias, gate="silu")
        for kind, numbers in itertools.product(("ends", "counts"), (nonsense, ends_of(SIZES))):
            _core._grouped_product(rows, weights, numbers, kind)
            _core._grouped_gradient(grad, rows, numbers, kind)
    assert report.findings == []


def test_in_a_graph():
    x, w = kw.asarray(random(90, 72)), kw.asarray(random(3, 40, 72, seed=1))
    ends = ends_of([40, 0, 50])
    kw.nn.grouped_linear(x, w, ends)
    graph = kw.Graph()
    with graph.capture():
        result = kw.nn.grouped_linear(x, w, ends)
    ends[...] = ends_of([3, 80, 7])
    graph.launch()
    kw.synchronize()
    close(result, product(x.numpy(), w.numpy(), [3, 80, 7]))


def test_what_it_does_not_take():
    x, w, ends = kw.zeros((8, 16)), kw.zeros((2, 4, 16)), ends_of([3, 5])
    with pytest.raises(kw.InvalidArgument, match="both have one type"):
        kw.nn.grouped_linear(x, w.astype("bfloat16"), ends)
    with pytest.raises(kw.ArgumentError, match="this tile is none of a product of groups"):
        _core._grouped_product(x, w, ends, "ends", mma_tile=(64, 64, 2))
    with pytest.raises(kw.ArgumentError, match="a tile of a product of 4 bytes"):
        _core._grouped_product(x, w, ends, "ends", fma_tile=(64, 96, 8, 8, 8, 4))
    with pytest.raises(kw.ArgumentError, match="gradient of float32 weights is float32"):
        _core._grouped_gradient(x, x, ends, "ends", "bfloat16")
