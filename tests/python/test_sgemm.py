"""Products of float32 and float64 by fused multiply-adds, against NumPy in float64."""

import math

import ml_dtypes
import numpy as np
import pytest

import kernwright as kw
from kernwright import _core

TOLERANCE = {"float32": 5e-7, "float64": 1e-15, "float16": 1e-3, "bfloat16": 8e-3}
TILES = [(dtype, tile) for dtype, size in (("float32", 4), ("float64", 8))
         for tile in _core._fma_tiles(size)]  # fmt: skip
SMALL = {"float32": (32, 64, 4, 4, 16, 4), "float64": (32, 64, 4, 4, 16, 4)}


def random(*shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def wide(x):
    return np.asarray(x, np.float64)


def close(result, expected, dtype="float32"):
    """As a whole, and element by element."""
    values = wide(result.numpy())
    assert result.dtype == getattr(ml_dtypes, dtype, dtype)
    assert values.shape == expected.shape
    assert np.linalg.norm(values - expected) <= TOLERANCE[dtype] * np.linalg.norm(expected)
    largest = np.abs(expected).max(initial=0)
    assert np.abs(values - expected).max(initial=0) <= 6 * TOLERANCE[dtype] * largest


@pytest.mark.parametrize(("dtype", "tile"), TILES, ids=[f"{d}-{t}" for d, t in TILES])
def test_tiles(dtype, tile):
    a, b = random(tile[0] + 3, 45, dtype=dtype), random(45, tile[1] + 4, dtype=dtype, seed=1)
    expected = wide(a) @ wide(b)
    with kw.checks("memory", "init", "race", "sync") as report:
        whole = _core._gemm(kw.asarray(a), kw.asarray(b), fma_tile=tile, splits=1)
    report.raise_if_any()
    close(whole, expected, dtype)
    close(_core._gemm(kw.asarray(a), kw.asarray(b), fma_tile=tile, splits=3), expected, dtype)


@pytest.mark.parametrize("ways", ["rows", "columns"])
@pytest.mark.parametrize(("dtype", "tile"), TILES, ids=[f"{d}-{t}" for d, t in TILES])
def test_whole_tiles(dtype, tile, ways):
    a, b = random(tile[0], 2 * 32, dtype=dtype), random(2 * 32, tile[1], dtype=dtype, seed=1)
    left, right = kw.asarray(a), kw.asarray(b)
    if ways == "columns":
        left, right = kw.asarray(a.T.copy()).T, kw.asarray(b.T.copy()).T
    expected = wide(a) @ wide(b)
    with kw.checks("memory", "init", "race", "sync") as report:
        close(_core._gemm(left, right, fma_tile=tile, splits=1), expected, dtype)
    report.raise_if_any()
    close(_core._gemm(left, right, fma_tile=tile, splits=2), expected, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_extent_is_cut_off(dtype):
    """Edges of rows, columns or steps alone: the other two are of whole tiles."""
    tile = SMALL[dtype]
    sizes = tile[0] * 2, tile[1] * 2, tile[4] * 4
    for axis in range(3):
        for less in (1, 4):  # rows that begin where packs may, and elsewhere
            m, n, k = (extent - less * (axis == at) for at, extent in enumerate(sizes))
            a, b = random(m, k, dtype=dtype), random(k, n, dtype=dtype, seed=1)
            with kw.checks("memory", "init", "race", "sync") as report:
                result = _core._gemm(kw.asarray(a), kw.asarray(b), fma_tile=tile, splits=1)
            report.raise_if_any()
            close(result, wide(a) @ wide(b), dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_slices(dtype):
    tile = (64, 64, 8, 4, 32, 2)
    for k in (32, 45, 64, 131):
        a, b = random(70, k, dtype=dtype), random(k, 66, dtype=dtype, seed=1)
        with kw.checks("memory", "init", "race", "sync") as report:
            result = _core._gemm(kw.asarray(a), kw.asarray(b), fma_tile=tile, splits=1)
        report.raise_if_any()
        close(result, wide(a) @ wide(b), dtype)
    # The steps of a slice are summed on their own.
    a = np.zeros((64, 64), dtype)
    a[:, 0], a[:, 16], a[:, 17] = 1, 2.0**70, -(2.0**70)
    ones = np.ones((64, 64), dtype)
    result = _core._gemm(kw.asarray(a), kw.asarray(ones), fma_tile=tile, splits=1)
    assert (result.numpy() == 1).all()


def operands(shape, seed, dtype):
    """The same matrix in layouts that are copied in different ways."""
    m, n = shape
    host = random(m, n, dtype=dtype, seed=seed)
    apart = random(2 * m, 3 * n, dtype=dtype)
    apart[::2, ::3] = host
    beside = random(m, n + 1, dtype=dtype)
    beside[:, 1:] = host
    return host, {
        "rows": kw.asarray(host),
        "columns": kw.asarray(np.ascontiguousarray(host.T)).T,
        "apart": kw.asarray(apart)[::2, ::3],
        "beside": kw.asarray(beside)[:, 1:],
        "turned beside": kw.asarray(np.asfortranarray(beside).T.copy()).T[:, 1:],
        "backwards": kw.asarray(np.ascontiguousarray(host[::-1, ::-1]))[::-1, ::-1],
        "read backwards": kw.asarray(np.ascontiguousarray(host[::-1]))[::-1],
    }


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_any_strides(dtype):
    x, lefts = operands((35, 20), 1, dtype)
    y, rights = operands((20, 36), 2, dtype)
    expected = wide(x) @ wide(y)
    names = list(lefts)
    for i, left in enumerate(names):
        with kw.checks("memory", "race") as report:
            for right in (names[(i + 3) % len(names)], names[(i + 4) % len(names)]):
                close(kw.matmul(lefts[left], rights[right]), expected, dtype)
        report.raise_if_any()


@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(1, 1, 1), (2, 3, 5), (31, 65, 8), (33, 63, 17), (64, 64, 64), (129, 130, 131), (17, 4, 515)],
)
def test_sizes(m, n, k):
    for dtype in ("float32", "float64"):
        a, b = random(m, k, dtype=dtype), random(k, n, dtype=dtype, seed=1)
        close(kw.matmul(kw.asarray(a), kw.asarray(b)), wide(a) @ wide(b), dtype)


def test_empty():
    assert kw.matmul(kw.zeros((0, 3)), kw.zeros((3, 4))).shape == (0, 4)
    assert kw.matmul(kw.zeros((3, 0)), kw.zeros((0, 4))).numpy().tolist() == [[0] * 4] * 3
    assert kw.matmul(kw.zeros((2, 0, 5, 4)), kw.zeros((4, 3))).shape == (2, 0, 5, 3)
    assert kw.matmul(kw.zeros((0, 3), dtype="float64"), kw.zeros((3, 0), dtype="float64")).size == 0


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((3, 20, 36), (36, 24)),
        ((20, 36), (3, 36, 24)),
        ((2, 1, 20, 36), (3, 36, 24)),
        ((2, 3, 1, 4, 1, 5, 9, 8), (2, 1, 3, 1, 2, 5, 8, 12)),
        ((5, 1, 36), (36, 400)),
    ],
)
def test_batches(left, right):
    a, b = random(*left), random(*right, seed=1)
    expected = wide(a) @ wide(b)
    close(kw.matmul(kw.asarray(a), kw.asarray(b)), expected)
    turned = kw.asarray(np.ascontiguousarray(a.swapaxes(-1, -2))).mT
    close(_core._gemm(turned, kw.asarray(b), splits=2), expected)


def test_rows_of_a_batch_that_is_no_whole():
    a = random(4, 6, 5, 36)
    view = kw.asarray(a)[:, ::2]
    b = random(36, 24, seed=1)
    close(kw.matmul(view, kw.asarray(b)), wide(a[:, ::2]) @ wide(b))


def test_more_dimensions_than_can_be_walked():
    x = kw.asarray(random(2, 3, 2, 3, 2, 3, 2, 2, 2)[:, ::2, :, ::2, :, ::2, :])
    with pytest.raises(kw.InvalidArgument, match="more than 6 dimensions in front"):
        kw.matmul(x, kw.asarray(random(1, 2, 1, 2, 1, 2, 1, 2, 2)))


def test_special_values_stay_in_their_rows():
    a, b = random(40, 37), random(37, 70, seed=1)
    a[3, 5], a[7, 36], a[11], b[:, 9] = np.nan, np.inf, 0, np.float32(1e-42)
    with np.errstate(invalid="ignore"):
        expected = wide(a) @ wide(b)
    result = kw.matmul(kw.asarray(a), kw.asarray(b)).numpy()
    np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(result), np.isinf(expected))
    assert (result[11] == 0).all() and result[3:4, 0:9].size == 9
    plain = np.delete(np.arange(40), [3, 7])
    np.testing.assert_allclose(result[plain], expected[plain], rtol=1e-4, atol=1e-5)
    assert np.abs(result[plain][:, 9]).max() < 1e-38


def test_a_product_is_rounded_once():
    # In tf32, or with a product that is rounded before it is added, nothing would be left.
    x = np.float32(1 + 2**-12)
    a = np.zeros((40, 32), np.float32)
    b = np.zeros((32, 64), np.float32)
    a[:, 0], b[0], a[:, 1], b[1] = -1, x * x, x, x
    result = kw.matmul(kw.asarray(a), kw.asarray(b)).numpy()
    assert (result == np.float32(float(x) * float(x) - float(x * x))).all() and result[0, 0] != 0
    ones = kw.matmul(kw.ones((33, 1000)), kw.ones((1000, 65))).numpy()
    assert (ones == 1000).all()


def test_same_bits_in_each_run():
    a, b = kw.asarray(random(50, 700)), kw.asarray(random(700, 66, seed=1))
    first = [_core._gemm(a, b, splits=s).numpy() for s in (1, 4)]
    for s, bits in zip((1, 4), first, strict=True):
        np.testing.assert_array_equal(_core._gemm(a, b, splits=s).numpy(), bits)
    assert not np.array_equal(*first)


@pytest.mark.parametrize("columns", [68, 67])
@pytest.mark.parametrize("out", ["float32", "float16", "bfloat16"])
def test_what_follows(out, columns):
    a, b = random(40, 36), random(36, columns, seed=1)
    bias = random(columns, seed=2)
    c = random(40, columns, seed=3).astype(getattr(ml_dtypes, out, out))
    expected = np.maximum(0.5 * (wide(a) @ wide(b)) + bias - 2 * wide(c), 0)
    more = {"bias": kw.asarray(bias), "alpha": 0.5, "beta": -2, "activation": "relu", "dtype": out}
    for splits in (1, 2):
        given = {**more, "c": kw.asarray(c), "splits": splits, "fma_tile": SMALL["float32"]}
        close(_core._gemm(kw.asarray(a), kw.asarray(b), **given), expected, out)
    beside = kw.asarray(np.concatenate([c[:1, :1], c.reshape(1, -1)], 1).reshape(-1))[1:]
    view = beside.reshape(40, columns)  # begins in the middle of a pack
    close(_core._gemm(kw.asarray(a), kw.asarray(b), **more, c=view), expected, out)


@pytest.mark.parametrize("first", [0, 1])  # with 1, c begins in the middle of a pack
def test_whole_tiles_and_another_matrix(first):
    tile = SMALL["float32"]
    a, b = random(2 * tile[0], 64), random(64, 2 * tile[1], seed=1)
    c = random(2 * tile[0], 2 * tile[1], seed=2)
    beside = kw.asarray(np.concatenate([c.reshape(-1)[:first], c.reshape(-1)]))
    given = {"c": beside[first:].reshape(*c.shape), "alpha": 0.5, "beta": -2}
    with kw.checks("memory", "init", "race", "sync") as report:
        got = _core._gemm(kw.asarray(a), kw.asarray(b), **given, fma_tile=tile, splits=1)
    report.raise_if_any()
    close(got, 0.5 * (wide(a) @ wide(b)) - 2 * wide(c), "float32")


def test_a_gate_and_a_long_activation():
    a, b = random(40, 36), random(36, 80, seed=1) * np.float32(0.2)
    x = wide(a) @ wide(b)
    gated = _core._gemm(kw.asarray(a), kw.asarray(b), gate="silu")
    close(gated, x[:, :40] / (1 + np.exp(-x[:, :40])) * x[:, 40:])
    mish = _core._gemm(kw.asarray(a), kw.asarray(b), activation="mish")
    close(mish, x * np.tanh(np.logaddexp(0, x)))


def test_layers():
    x, w, bias = random(3, 40, 36), random(68, 36, seed=1), random(68, seed=2)
    expected = np.maximum(wide(x) @ wide(w).T + bias, 0)
    result = kw.nn.linear(*map(kw.asarray, (x, w, bias)), activation="relu")
    close(result, expected)
    residual = random(3, 40, 68, seed=3)
    result = kw.nn.linear(*map(kw.asarray, (x, w)), residual=kw.asarray(residual))
    close(result, wide(x) @ wide(w).T + residual)


def test_in_a_graph():
    a, b = kw.asarray(random(70, 300)), kw.asarray(random(300, 80, seed=1))
    expected = kw.matmul(a, b).numpy()
    graph, stream = kw.Graph(), kw.Stream()
    stream.synchronize()
    with graph.capture(stream):
        result = kw.matmul(a, b)
    graph.launch(stream)
    graph.launch(stream)
    stream.synchronize()
    np.testing.assert_array_equal(result.numpy(), expected)


def test_refusals():
    a, b = kw.ones((4, 8)), kw.ones((8, 4))
    with pytest.raises(kw.ArgumentError, match=r"128x128 by 16x8.*not 100x64"):
        _core._gemm(a, b, fma_tile=(100, 64, 8, 4, 8, 4))
    with pytest.raises(kw.ArgumentError, match="2 to 4 stages"):
        _core._gemm(a, b, fma_tile=(64, 64, 8, 4, 8, 5))
    with pytest.raises(kw.ArgumentError, match="8, 16 or 32 steps"):
        _core._gemm(a, b, fma_tile=(64, 64, 8, 4, 24, 3))
    with pytest.raises(kw.ArgumentError, match="128x128 by 16x8"):
        _core._gemm(a, b, fma_tile=(256, 128, 16, 8, 8, 4))
    with pytest.raises(kw.InvalidArgument, match="Incompatible dimensions"):
        _core._gemm(a, a)
    double = kw.ones((4, 4), dtype="float64")
    with pytest.raises(kw.ArgumentError, match="nothing follows a product of float64"):
        _core._gemm(double, double, alpha=2)
    with pytest.raises(kw.ArgumentError, match="of float64 is float64, not float32"):
        _core._gemm(double, double, dtype="float32")
    with pytest.raises(kw.InvalidArgument, match="same device and type"):
        _core._gemm(double, kw.ones((4, 4)))
    assert math.isclose(_core._gemm(double, double).numpy()[0, 0], 4)
