"""Products of groups of rows, against NumPy in float64.

As in test_gemm.py, a device of 9.0 does them another way: where the simulated device is an older
one, all of this file runs once more on one of 9.0, in a process of its own.
"""

import itertools

import ml_dtypes
import numpy as np
import pytest
import scipy.special
from hopper import HOPPER, run_at_9_0, simulated_elsewhere

import kernwright as kw
from kernwright import _core

TOLERANCE = {"bfloat16": 4e-3, "float16": 5e-4, "float32": 1e-6}
# Rows, columns, stages, warpgroups, whether they take turns, blocks of a cluster.
ONE = {"tile": (64, 64, 3, 1, False, 1)} if HOPPER else {"mma_tile": (64, 64, 3)}
TILES = [
    (64, 64, 2, 1, False, 4),
    (128, 64, 3, 2, False, 2),
    (64, 128, 3, 2, True, 2),
    (256, 128, 3, 2, False, 1),
    (128, 256, 4, 2, False, 2),
    (128, 160, 3, 2, False, 1),
    (128, 224, 3, 2, False, 2),
    (128, 192, 4, 2, True, 1),
]
MMA_TILES = [(64, 64, 2), (128, 64, 3), (128, 128, 3), (128, 256, 3)]
CHOICES = [{"tile": tile} for tile in TILES] if HOPPER else []
CHOICES += [{"mma_tile": tile} for tile in (MMA_TILES[:1] if HOPPER else MMA_TILES)]
SIZES = [3, 0, 130, 0, 64, 6, 0]


def random(*shape, dtype="bfloat16", seed=0, scale=1.0):
    values = np.random.default_rng(seed).standard_normal(shape) * scale
    return values.astype(getattr(ml_dtypes, dtype, dtype))


def wide(x):
    return np.asarray(x, np.float64)


def product(x, w, sizes, bias=None):
    """In float64; NaN where no group has a row."""
    out = np.full((x.shape[0], w.shape[1]), np.nan)
    begin = 0
    for group, size in enumerate(sizes):
        rows = slice(begin, begin + size)
        out[rows] = wide(x[rows]) @ wide(w[group]).T
        if bias is not None:
            out[rows] += wide(bias[group])
        begin += size
    return out


def close(result, expected, dtype="bfloat16"):
    """As a whole and element by element, where something is expected."""
    values = wide(result.numpy())
    assert result.dtype == getattr(ml_dtypes, dtype, dtype)
    assert values.shape == expected.shape
    there = ~np.isnan(expected)
    off, expected = values[there] - expected[there], expected[there]
    assert np.linalg.norm(off) <= TOLERANCE[dtype] * np.linalg.norm(expected)
    largest = np.abs(expected).max(initial=0)
    assert np.abs(off).max(initial=0) <= 4 * TOLERANCE[dtype] * largest


def ends_of(sizes):
    return kw.asarray(np.cumsum(sizes).astype(np.int32))


def silu(x):
    return x * scipy.special.expit(x)


@simulated_elsewhere
def test_on_a_simulated_device_of_9_0():
    run_at_9_0(__file__)


@pytest.mark.parametrize("choice", CHOICES)
def test_tiles(choice):
    sizes = [70, 0, 131, 1, 10]
    x, w, bias = random(212, 136), random(5, 264, 136, seed=1), random(5, 264, seed=2)
    arrays = [kw.asarray(each) for each in (x, w, ends_of(sizes).numpy())]
    result = _core._grouped_product(*arrays, "ends", kw.asarray(bias), **choice)
    close(result, product(x, w, sizes, bias))


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_what_tells_the_groups(dtype, turned):
    x, w = random(203, 72, dtype=dtype), random(7, 40, 72, dtype=dtype, seed=1)
    weights = kw.asarray(np.ascontiguousarray(w.swapaxes(1, 2))).mT if turned else kw.asarray(w)
    ends = np.cumsum(SIZES)
    offsets = np.concatenate([[0], ends])
    expected = product(x, w, SIZES)
    rows = kw.asarray(x)
    first = kw.nn.grouped_linear(rows, weights, kw.asarray(offsets.astype(np.int32)))
    close(first, expected, dtype)
    for more in (
        {"offsets": kw.asarray(ends.astype(np.int32))},
        {"offsets": kw.asarray(offsets)},
        {"counts": kw.asarray(np.array(SIZES, np.int32))},
        {"counts": kw.asarray(np.array(SIZES))},
    ):
        same = kw.nn.grouped_linear(rows, weights, **more).numpy()
        assert same.tobytes() == first.numpy().tobytes()


def test_many_groups():
    sizes = np.random.default_rng(5).integers(0, 3, 101)
    sizes[[3, 31, 32, 64]] = [70, 0, 9, 0]
    total = int(sizes.sum())
    x, w = random(total, 24), random(101, 16, 24, seed=1)
    close(kw.nn.grouped_linear(kw.asarray(x), kw.asarray(w), ends_of(sizes)), product(x, w, sizes))


@pytest.mark.parametrize(
    ("rows", "n", "k", "sizes"),
    [
        (1, 1, 1, [1]),
        (1, 8, 8, [0, 0, 1]),
        (130, 65, 63, [129, 1]),
        (5, 7, 257, [5, 0]),
        (64, 9, 0, [60, 4]),
        (9, 8, 8, [0, 0, 0]),
    ],
)
def test_sizes(rows, n, k, sizes):
    x, w = random(rows, k), random(len(sizes), n, k, seed=1)
    bias = random(len(sizes), n, seed=2)
    arrays = [kw.asarray(x), kw.asarray(w), ends_of(sizes), kw.asarray(bias)]
    close(kw.nn.grouped_linear(*arrays), product(x, w, sizes, bias))


@pytest.mark.parametrize("shape", [(0, 8, 8), (8, 0, 8), (0, 0, 0)])
def test_nothing(shape):
    rows, n, k = shape
    x, w = kw.zeros((rows, k), "bfloat16"), kw.zeros((3, n, k), "bfloat16")
    assert kw.nn.grouped_linear(x, w, ends_of([rows, 0, 0])).shape == (rows, n)
    apart = kw.zeros((3, rows, k), "bfloat16")
    assert kw.nn.grouped_linear(apart, w, counts=ends_of([0, 0, 0])).shape == (3, rows, n)


@pytest.mark.parametrize("layout", ["plain", "padded", "turned"])
def test_groups_that_lie_apart(layout):
    x, w, counts = random(4, 70, 72), random(4, 48, 72, seed=1), [70, 0, 5, 64]
    rows = kw.asarray(x)
    if layout == "padded":
        rows = kw.asarray(np.pad(x, ((0, 0), (0, 9), (0, 8))))[:, :70, :72]
    elif layout == "turned":
        rows = kw.asarray(np.ascontiguousarray(x.swapaxes(0, 1))).transpose(1, 0, 2)
    result = kw.nn.grouped_linear(
        rows, kw.asarray(w), counts=kw.asarray(np.array(counts, np.int32))
    )
    expected = np.full((4, 70, 48), np.nan)
    for group, count in enumerate(counts):
        expected[group, :count] = wide(x[group, :count]) @ wide(w[group]).T
    close(result, expected)


@pytest.mark.parametrize("turned", [False, True])
def test_gates(turned):
    x, w = random(203, 72), random(7, 208, 72, seed=1, scale=0.2)
    bias = random(7, 208, seed=2)
    weights = kw.asarray(np.ascontiguousarray(w.swapaxes(1, 2))).mT if turned else kw.asarray(w)
    y = product(x, w, SIZES, bias)
    result = kw.nn.grouped_linear(
        kw.asarray(x), weights, ends_of(SIZES), kw.asarray(bias), gate="silu"
    )
    close(result, silu(y[:, :104]) * y[:, 104:])
    y = product(x, w[:, :102], SIZES)
    result = kw.nn.grouped_linear(kw.asarray(x), weights[:, :102], ends_of(SIZES), gate="relu")
    close(result, np.maximum(y[:, :51], 0) * y[:, 51:])


def test_activations():
    x, w = random(203, 72), random(7, 40, 72, seed=1, scale=0.2)
    arrays = [kw.asarray(x), kw.asarray(w), ends_of(SIZES)]
    y = product(x, w, SIZES)
    close(kw.nn.grouped_linear(*arrays, activation="silu"), silu(y))
    close(kw.nn.grouped_linear(*arrays, activation="gelu"), y * scipy.special.ndtr(y))


@pytest.mark.parametrize(
    "view", [lambda x: x[1:], lambda x: x[:, 1:], lambda x: x[::-1], lambda x: x[::2, ::3]]
)
def test_views(view):
    x, w = random(100, 90), random(3, 20, 90, seed=1)
    rows, depth = view(x).shape
    sizes = [rows // 2, 0, rows - rows // 2]
    left, right = kw.asarray(x), kw.asarray(w)[:, ::2, :depth]
    close(
        kw.nn.grouped_linear(view(left), right, ends_of(sizes)),
        product(view(x), w[:, ::2, :depth], sizes),
    )


def test_weights_that_are_the_same_for_all():
    x, w = random(20, 24), random(1, 16, 24, seed=1)
    weights = kw.broadcast_to(kw.asarray(w), (3, 16, 24))
    expected = product(x, np.repeat(w, 3, 0), [9, 1, 10])
    close(kw.nn.grouped_linear(kw.asarray(x), weights, ends_of([9, 1, 10])), expected)


def test_rows_of_others_stay_as_they_are():
    """Numbers that make no sense leave the rows of no group unwritten, and stay within memory."""
    x, w = random(200, 72), random(4, 104, 72, seed=1)
    arrays = [kw.asarray(x), kw.asarray(w)]
    ends = [50, -7, 2**31 - 1, 120]
    close(
        _core._grouped_product(*arrays, kw.asarray(np.array(ends, np.int32)), "ends", **ONE),
        product(x, w, [50, 0, 150, 0]),
    )
    offsets = [20, 10, 60, 60, 90]
    result = _core._grouped_product(
        *arrays, kw.asarray(np.array(offsets, np.int32)), "offsets", **ONE
    )
    expected = np.full((200, 104), np.nan)
    expected[20:60] = wide(x[20:60]) @ wide(w[1]).T
    expected[60:90] = wide(x[60:90]) @ wide(w[3]).T
    close(result, expected)
    counts = [2**31 - 1, 2**31 - 1, -5, 100]
    close(
        _core._grouped_product(*arrays, kw.asarray(np.array(counts, np.int32)), "counts", **ONE),
        product(x, w, [200, 0, 0, 0]),
    )


def test_blocks_with_many_tiles():
    """More tiles than the device has multiprocessors, which blocks deal out among them."""
    sizes = [70, 0, 3]
    x, w = random(73, 16), random(3, 64 * 70, 16, seed=1)
    arrays = [kw.asarray(each) for each in (x, w, ends_of(sizes).numpy())]
    kinds = [ONE, {"tile": (64, 64, 3, 1, False, 2)}] if HOPPER else [ONE]
    for choice in kinds:
        first, again = (_core._grouped_product(*arrays, "ends", **choice) for _ in range(2))
        close(first, product(x, w, sizes))
        assert first.numpy().tobytes() == again.numpy().tobytes()


def test_special_values_stay_in_their_groups():
    x, w = random(70, 64), random(3, 40, 64, seed=1)
    x[30], w[1] = np.nan, np.inf
    x[31, 0], w[2, 5, 0] = -0.0, np.nan
    result = wide(kw.nn.grouped_linear(kw.asarray(x), kw.asarray(w), ends_of([30, 2, 38])).numpy())
    assert np.isfinite(result[:30]).all()
    assert np.isnan(result[30]).all()
    assert np.isnan(result[32:, 5]).all()
    assert np.isfinite(np.delete(result[32:], 5, axis=1)).all()


def test_gradients():
    x, w, grad = random(203, 72), random(7, 40, 72, seed=1), random(203, 40, seed=2)
    arrays = [kw.asarray(each) for each in (grad, x, w)]
    of_x, of_weights = kw.nn.grouped_linear_backward(*arrays, ends_of(SIZES))
    close(of_x, product(grad, w.swapaxes(1, 2), SIZES))
    edges = np.concatenate([[0], np.cumsum(SIZES)])
    expected = np.stack([wide(grad[a:b]).T @ wide(x[a:b]) for a, b in itertools.pairwise(edges)])
    close(of_weights, expected)
    assert (of_weights.numpy()[[1, 3, 6]] == 0).all()
    counts = kw.asarray(np.array(SIZES, np.int32))
    exact = _core._grouped_gradient(arrays[0], arrays[1], counts, "counts", "float32")
    close(exact, expected, "float32")
    nothing = kw.nn.grouped_linear_backward(
        arrays[0][:0], arrays[1][:0], arrays[2], ends_of([0] * 7)
    )[1]
    assert (nothing.numpy() == 0).all()


def gradient(grad, x, sizes):
    edges = np.concatenate([[0], np.cumsum(sizes)])
    return np.stack([wide(grad[a:b]).T @ wide(x[a:b]) for a, b in itertools.pairwise(edges)])


@pytest.mark.parametrize("tile", TILES if HOPPER else [None], ids=str)
def test_tiles_of_gradients(tile):
    x, grad = random(203, 136), random(203, 72, seed=1)
    numbers = ends_of(SIZES)
    arrays = kw.asarray(grad), kw.asarray(x)
    for dtype in ("bfloat16", "float32"):
        got = _core._grouped_gradient(*arrays, numbers, "ends", dtype, tile=tile)
        close(got, gradient(grad, x, SIZES), dtype)
    halves = [kw.asarray(each.astype(np.float16)) for each in (grad[:, :51], x[:, :33])]
    got = _core._grouped_gradient(*halves, numbers, "ends", tile=tile)  # no whole units of 16 bytes
    close(got, gradient(*(each.numpy() for each in halves), SIZES), "float16")
    if HOPPER:
        other = _core._grouped_gradient(*arrays, numbers, "ends", "float32", by_mma=True)
        close(other, gradient(grad, x, SIZES), "float32")


def test_special_values_stay_in_their_gradients():
    x, grad = random(100, 40), random(100, 24, seed=1)
    x[30:33], grad[33:36] = np.nan, np.inf  # the group in the middle
    sizes = [30, 6, 64]
    arrays = kw.asarray(grad), kw.asarray(x)
    got = wide(_core._grouped_gradient(*arrays, ends_of(sizes), "ends").numpy())
    assert np.isfinite(got[[0, 2]]).all() and np.isnan(got[1]).all()
    offsets = kw.asarray(np.array([2, 30, 30, 36], np.int64))
    got = _core._grouped_gradient(*arrays, offsets, "offsets", "float32")
    values = got.numpy()
    assert np.isfinite(values[0]).all() and (values[1] == 0).all() and np.isnan(values[2]).all()
    close(got[:1], (wide(grad[2:30]).T @ wide(x[2:30]))[None], "float32")


def test_in_a_graph():
    x, w = kw.asarray(random(90, 72)), kw.asarray(random(3, 40, 72, seed=1))
    ends = ends_of([40, 0, 50])
    kw.nn.grouped_linear(x, w, ends, gate="silu")
    graph = kw.Graph()
    with graph.capture():
        result = kw.nn.grouped_linear(x, w, ends, gate="silu")
    ends[...] = ends_of([3, 80, 7])
    graph.launch()
    kw.synchronize()
    y = product(x.numpy(), w.numpy(), [3, 80, 7])
    close(result, silu(y[:, :20]) * y[:, 20:])


def test_under_all_checks():
    if not kw.current_device().is_simulated:
        pytest.skip("only the simulated device looks")
    x, w, bias = random(203, 72), random(7, 104, 72, seed=1), kw.asarray(random(7, 104, seed=2))
    rows, weights, grad = kw.asarray(x), kw.asarray(w), kw.asarray(random(203, 104, seed=3))
    turned = kw.asarray(np.ascontiguousarray(w.swapaxes(1, 2))).mT
    ends, few = ends_of(SIZES), kw.asarray(np.array([70, 0, 5], np.int32))
    nonsense = kw.asarray(np.array([5, -3, 2**31 - 1, 7, 9, 3, 8], np.int32))
    apart = kw.empty((3, 70, 72), "bfloat16")
    apart[0], apart[2, :5] = rows[:70], rows[:5]
    choices = [{"tile": tile} for tile in TILES[:3]] if HOPPER else [{"mma_tile": MMA_TILES[1]}]
    with kw.checks("memory", "init", "race", "sync") as report:
        for choice in choices:
            _core._grouped_product(rows, weights, ends, "ends", bias, activation="silu", **choice)
        _core._grouped_product(rows, turned, ends, "ends", **ONE)
        many = kw.asarray(random(2, 64 * 70, 72, seed=4))  # more tiles than blocks
        _core._grouped_product(rows[:70], many, ends_of([69, 70]), "ends", **ONE)
        _core._grouped_product(rows, weights[:, :51], ends, "ends", **ONE)
        _core._grouped_product(rows, weights, ends, "ends", bias, gate="silu")
        _core._grouped_product(apart, weights[:3], few, "counts", **ONE)
        kw.nn.grouped_linear(apart, weights[:3], counts=few, gate="silu")
        for kind in ("ends", "counts"):
            _core._grouped_product(rows, weights, nonsense, kind, **ONE)
            _core._grouped_gradient(grad, rows, nonsense, kind)
        for tile in TILES[:3] if HOPPER else [None]:
            _core._grouped_gradient(grad, rows, ends, "ends", tile=tile)
        _core._grouped_gradient(grad, rows, ends, "ends", "float32")
    assert report.findings == []


def test_the_rule():
    choice = _core._grouped_choice
    assert choice(32768, 4096, 14336, 8).startswith(("128x256", "256x128"))
    assert choice(96, 2816, 2048, 64).startswith("64x")
    assert "cluster" not in choice(96, 2816, 2048, 64)
    assert "splits" not in choice(2, 256, 16384, 8)
    assert choice(2, 256, 16384, 8, gated=True).startswith(("64x128", "64x256"))
    # Many rows of a group and few steps.
    assert choice(98304, 2816, 2048, 64) == "128x192, 4 stages, 2 groups in turn"
    assert choice(98304, 2816, 8192, 64).startswith("128x256")
    assert "192" not in choice(98304, 2816, 2048, 64, gated=True)


def test_errors():
    x, w, ends = kw.zeros((8, 16), "float16"), kw.zeros((2, 4, 16), "float16"), ends_of([3, 5])
    linear = kw.nn.grouped_linear
    with pytest.raises(kw.InvalidArgument, match="last extents"):
        linear(x[:, :8], w, ends)
    with pytest.raises(kw.InvalidArgument, match=r"\(groups, n, k\)"):
        linear(x, w[0], ends)
    with pytest.raises(kw.InvalidArgument, match="one type"):
        linear(x, w.astype("bfloat16"), ends)
    with pytest.raises(kw.ArgumentError, match=r"float16, bfloat16 or float32, not .*float64"):
        linear(x.astype("float64"), w.astype("float64"), ends)
    with pytest.raises(kw.InvalidArgument, match=r"2 groups want 3 numbers.*\(4,\)"):
        linear(x, w, kw.zeros(4, "int32"))
    with pytest.raises(kw.InvalidArgument, match="2 groups want 2 numbers"):
        linear(x, w, counts=kw.zeros(3, "int32"))
    with pytest.raises(kw.ArgumentError, match="int32 or int64"):
        linear(x, w, ends.astype("float32"))
    with pytest.raises(kw.ArgumentError, match="either offsets or counts"):
        linear(x, w)
    with pytest.raises(kw.ArgumentError, match="either offsets or counts"):
        linear(x, w, ends, counts=ends)
    with pytest.raises(kw.InvalidArgument, match="bias is"):
        linear(x, w, ends, kw.zeros((2, 5), "float16"))
    with pytest.raises(kw.ArgumentError, match="activation"):
        linear(x, w, ends, activation="mish")
    with pytest.raises(kw.InvalidArgument, match="gate"):
        linear(x, w, ends, activation="relu", gate="relu")
    with pytest.raises(kw.InvalidArgument, match="even"):
        linear(x, w[:, :3], ends, gate="relu")
    with pytest.raises(kw.InvalidArgument, match="told by counts"):
        linear(kw.zeros((2, 8, 16), "float16"), w, ends)
    with pytest.raises(kw.InvalidArgument, match="first is not that"):
        linear(kw.zeros((3, 8, 16), "float16"), w, counts=ends)
    with pytest.raises(kw.InvalidArgument, match="no group"):
        linear(x, w[:0], ends[:0])
    with pytest.raises(kw.InvalidArgument, match="at most 2048"):
        linear(x, kw.zeros((2049, 4, 16), "float16"), kw.zeros(2049, "int32"))
    with pytest.raises(kw.ArgumentError):
        linear(np.zeros((8, 16), np.float16), w, ends)
    with pytest.raises(kw.InvalidArgument, match="rows in the same groups"):
        kw.nn.grouped_linear_backward(x[:, :4], x[:3], w, ends)
