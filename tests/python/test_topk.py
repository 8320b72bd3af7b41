"""topk beside a stable sort of NumPy's."""

import numpy as np
import pytest
from sort_values import REAL, order, same_bits, values

import kernwright as kw


def check(x, k, array=None, axis=-1, largest=True):
    array = kw.asarray(x) if array is None else array
    result = kw.topk(array, k, axis, largest)
    wanted = np.take(order(x, axis, largest), range(k), axis)
    assert result.indices.dtype == np.int64
    np.testing.assert_array_equal(result.indices.numpy(), wanted)
    assert same_bits(result.values.numpy(), np.take_along_axis(x, wanted, axis))


@pytest.mark.parametrize("dtype", REAL)
def test_every_dtype(dtype):
    for largest in (True, False):
        check(values(kw, (4, 300), dtype), 7, largest=largest)
        check(values(kw, (2, 5000), dtype), 50, largest=largest)


@pytest.mark.parametrize(
    ("rows", "n", "k"),
    [
        (1, 1, 1), (3, 1024, 1024), (2, 1025, 1), (2, 1025, 1024), (1, 4096, 50), (1, 4097, 50),
        (2, 4100, 300), (1, 20_000, 1000), (1, 9000, 1025), (1, 5000, 5000), (1, 70_001, 64),
    ],
)  # fmt: skip
def test_sizes(rows, n, k):
    check(values(kw, (rows, n), "float32"), k)


def test_a_vocabulary():
    x = np.random.default_rng(0).standard_normal((1, 128_256)).astype(np.float32)
    check(x, 50)


def test_ties_give_the_lowest_indices():
    for n in (1000, 5000, 40_000):
        result = kw.topk(kw.ones(n), 9)
        assert result.indices.numpy().tolist() == list(range(9))
    x = np.zeros(30_000, np.int8)
    x[[7, 20_000, 29_999]] = 1
    check(x, 6)
    check(x, 6, largest=False)
    check(np.tile(np.arange(5, dtype=np.uint8), 3000), 700)


def long_rows():
    """Rows of which a bound from the first elements keeps none, all, or a few of the later ones."""
    rng = np.random.default_rng(3)
    n = 20_000
    rising = np.arange(n, dtype=np.float32)
    negative = -np.abs(rng.standard_normal(n).astype(np.float32)) - 1
    zeros, nans = negative.copy(), negative.copy()
    zeros[rng.permutation(n)[:40]] = np.resize(np.float32([0.0, -0.0]), 40)
    nans[rng.permutation(n)[:40]] = np.resize(np.float32([np.nan, -np.nan]), 40)
    least = np.full(n, -(2.0**-149), np.float32)  # next to zero
    least[rng.permutation(n)[:40]] = -0.0
    masked = np.where(rng.random(n) < 0.0005, negative, -np.inf).astype(np.float32)
    near = (100 + 1e-3 * rng.standard_normal(n)).astype(np.float32)
    steps = np.repeat(np.arange(8, dtype=np.float32), n // 8)
    ones = np.ones_like(near)
    return np.stack([rising, rising[::-1], zeros, nans, least, masked, near, steps, ones])


@pytest.mark.parametrize("largest", [True, False])
def test_rows_of_many_kinds(largest):
    x = long_rows()
    for k in (20, 50, 128, 129):
        check(x, k, largest=largest)
    for k in (1, 30, 128):  # a block for each row
        check(np.tile(x, (15, 1))[:, :9000], k, largest=largest)


@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
def test_zeros_and_nan_of_other_sizes(dtype):
    x = long_rows()[2:4].astype(np.dtype(getattr(kw, dtype)))
    if dtype == "float64":  # a NaN that only its lowest bit tells from -infinity
        x[1][np.isnan(x[1])] = np.uint64([0xFFF0000000000001]).view("f8")
    for largest in (True, False):
        check(x, 30, largest=largest)
        check(np.tile(x, (50, 1))[:, :9000], 30, largest=largest)


def test_nan_is_the_largest():
    x = np.float32([1, np.nan, 3, -np.nan, np.inf])
    assert kw.topk(kw.asarray(x), 3).indices.numpy().tolist() == [1, 3, 4]
    assert kw.topk(kw.asarray(x), 5, largest=False).indices.numpy().tolist() == [0, 2, 4, 1, 3]
    check(np.where(np.arange(6000) % 3 == 0, np.nan, 1).astype(np.float64), 900)


@pytest.mark.parametrize("axis", [0, 1, 2, -3])
def test_axes(axis):
    check(values(kw, (6, 5, 7), "float32"), 3, axis=axis)


def test_views():
    x = values(kw, (7, 9003), "float32")
    array = kw.asarray(x)
    for index in [np.s_[::-2, ::-1], np.s_[2, 1:], np.s_[:3, ::5]]:
        check(x[index], 5, array[index])
    check(x.T, 2, array.T)
    check(x[:, :1100].T, 60, array[:, :1100].T, axis=0)


def test_everything_flat():
    x = values(kw, (4, 6), "float32")
    result = kw.topk(kw.asarray(x), 4, axis=None)
    np.testing.assert_array_equal(result.indices.numpy(), order(x.ravel(), -1, True)[:4])


def test_many_short_rows():
    check(values(kw, (2000, 64), "float32"), 8)
    check(values(kw, (600, 9), "bfloat16"), 2)


def test_nothing():
    assert kw.topk(kw.ones((3, 4)), 0).values.shape == (3, 0)
    assert kw.topk(kw.ones((0, 4)), 2).indices.shape == (0, 2)
    assert kw.topk(kw.ones((3, 0)), 0).indices.shape == (3, 0)


def test_wrong_arguments():
    x = kw.ones((2, 10))
    for k in (11, -1):
        with pytest.raises(ValueError, match="10"):
            kw.topk(x, k)
    with pytest.raises(ValueError):
        kw.topk(x, 1, axis=2)
    with pytest.raises(ValueError):
        kw.topk(kw.ones(()), 1)
    with pytest.raises(TypeError, match="k is an int"):
        kw.topk(x, 2.5)
    with pytest.raises(TypeError, match="complex"):
        kw.topk(kw.ones(3, "complex64"), 1)
    with pytest.raises(TypeError, match="asarray"):
        kw.topk(np.ones(3), 1)


def test_one_launch_for_a_vocabulary(sim):
    x = kw.empty((1, 128_256))
    graph = kw.Graph()
    with graph.capture():
        kw.topk(x, 50)
    assert graph.node_count <= 5  # a kernel, its counter's zero, and the memory beside them


def test_a_graph_selects_anew_at_each_launch():
    x = kw.empty((2, 5000))
    graph = kw.Graph()
    with graph.capture():
        result = kw.topk(x, 20)
    for seed in (1, 2):
        host = values(kw, (2, 5000), "float32", seed)
        x[...] = host
        graph.launch()
        np.testing.assert_array_equal(result.indices.numpy(), order(host, -1, True)[:, :20])


def test_the_kernels_under_all_checks(sim):
    with kw.checks("memory", "init", "race", "sync") as report:
        check(values(kw, (1, 5000), "float32"), 50)
        check(values(kw, (1, 1100), "float64"), 5)
        check(values(kw, (1, 4500), "int8"), 30)
        check(values(kw, (2, 9001), "float32"), 50)
        check(np.arange(6000, dtype=np.float32)[None], 128)
        check(values(kw, (1, 4500), "float32"), 300)
        sim.synchronize()
    report.raise_if_any()
