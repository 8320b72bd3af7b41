"""Products whose lines are no whole units of 16 bytes, against NumPy in float64, and copies of such
lines.

Devices below 9.0 do the products another way: where the simulated device is one, all of this file
runs once more in a process of its own, whose device is one of 9.0.
"""

from contextlib import nullcontext

import ml_dtypes
import numpy as np
import pytest
from hopper import run_at_9_0, simulated_elsewhere

import kernwright as kw
from kernwright import _core

SIMULATED = kw.current_device().is_simulated
TOLERANCE = {"bfloat16": 4e-3, "float16": 5e-4, "float32": 2e-6}
# Rows, columns, stages, warpgroups, whether they take turns, blocks of a cluster.
ONE = (64, 64, 3, 1, False, 1)
PAIR = (64, 128, 3, 2, True, 2)
WIDE = (128, 256, 4, 2, False, 2)


def random(*shape, dtype="bfloat16", seed=0):
    values = np.random.default_rng(seed).standard_normal(shape)
    return values.astype(getattr(ml_dtypes, dtype, dtype))


def wide(x):
    return np.asarray(x, np.float64)


def on_device(x, turned=False, ahead=0):
    """Row-major, or with columns whose elements follow each other; behind `ahead` elements."""
    lines = np.ascontiguousarray(x.T) if turned else x
    flat = np.concatenate([np.zeros(ahead, x.dtype), lines.ravel()])
    array = kw.asarray(flat)[ahead:].reshape(lines.shape)
    return array.T if turned else array


def close(result, expected, dtype="bfloat16"):
    values = wide(result.numpy())
    assert values.shape == expected.shape
    assert np.linalg.norm(values - expected) <= TOLERANCE[dtype] * np.linalg.norm(expected)
    largest = np.abs(expected).max(initial=0)
    assert np.abs(values - expected).max(initial=0) <= 4 * TOLERANCE[dtype] * largest


@simulated_elsewhere
def test_on_a_simulated_device_of_9_0():
    run_at_9_0(__file__)


@pytest.mark.parametrize("inner", [129, 130, 132, 134, 136])
def test_few_tiles(inner):
    for columns in (65, 66, 68, 72):
        a, b = random(70, inner), random(inner, columns, seed=1)
        for turned in (False, True):
            result = _core._gemm(on_device(a), on_device(b, turned), tile=ONE, splits=1)
            close(result, wide(a) @ wide(b))


@pytest.mark.parametrize(
    ("shape", "tile", "turned", "ahead"),
    [
        ((770, 705, 331), ONE, (False, True), 0),
        ((705, 770, 130), ONE, (False, False), 0),
        ((769, 704, 520), ONE, (False, True), 1),
        ((771, 706, 1031), PAIR, (True, False), 3),
        ((771, 1412, 68), PAIR, (True, True), 0),
        ((1030, 2051, 131), WIDE, (False, True), 0),
    ],
)
def test_many_tiles(shape, tile, turned, ahead):
    m, n, k = shape
    a, b = random(m, k), random(k, n, seed=1)
    left, right = on_device(a, turned[0], ahead), on_device(b, turned[1], ahead)
    first = _core._gemm(left, right, tile=tile, splits=1)
    close(first, wide(a) @ wide(b))
    again = _core._gemm(left, right, tile=tile, splits=1)
    assert first.numpy().tobytes() == again.numpy().tobytes()


@pytest.mark.parametrize(
    ("dtype", "out"), [("float16", "float16"), ("float16", "float32"), ("bfloat16", "float32")]
)
def test_types(dtype, out):
    a, b = random(769, 133, dtype=dtype), random(133, 707, dtype=dtype, seed=1)
    result = _core._gemm(on_device(a), on_device(b, True), tile=ONE, splits=1, dtype=out)
    close(result, wide(a) @ wide(b), out)


def test_other_types():
    numbers = np.random.default_rng(0).integers(-9, 10, (769, 133)).astype(np.int8)
    weights = np.random.default_rng(1).integers(-9, 10, (133, 707)).astype(np.int8)
    result = _core._gemm(on_device(numbers), on_device(weights, True), tile=ONE)
    np.testing.assert_array_equal(result.numpy(), numbers.astype(int) @ weights.astype(int))
    a, b = (np.floor(random(*s, dtype="float32") * 8) for s in ((769, 67), (67, 707)))
    result = _core._gemm(on_device(a), on_device(b, True), tile=ONE, precision="tf32", splits=1)
    close(result, wide(a) @ wide(b), "float32")
    a, b = random(769, 133, dtype="float8_e4m3fn"), random(133, 707, dtype="float8_e4m3fn")
    for fast in (False, True):
        result = _core._gemm(on_device(a), on_device(b, True), fast_accum=fast)
        close(result, wide(a) @ wide(b), "float16")  # a GPU's sums of float8 have about 14 bits


def test_what_follows_in_rows_of_odd_length():
    a, b, bias = random(769, 133), random(133, 707, seed=1), random(707, seed=2)
    c = random(769, 707, seed=3)
    result = _core._gemm(
        on_device(a), on_device(b, True), tile=ONE, splits=1, bias=kw.asarray(bias),
        c=kw.asarray(c), alpha=0.5, activation="relu",
    )  # fmt: skip
    close(result, np.maximum(0.5 * (wide(a) @ wide(b)) + wide(bias) + wide(c), 0))


def test_more_than_two_dimensions():
    a, b = random(7, 110, 133), random(133, 707, seed=1)
    result = _core._gemm(kw.asarray(a), on_device(b, True), tile=ONE, splits=1)
    close(result, wide(a) @ wide(b))
    a, b = random(3, 70, 133), random(3, 133, 67, seed=1)
    close(_core._gemm(kw.asarray(a), kw.asarray(b), tile=ONE), wide(a) @ wide(b))


@pytest.mark.parametrize("columns", [1, 63, 64, 65, 129])
def test_the_last_tile_is_narrow(columns):
    """In tiles of 256 columns and 128 rows of which few lie inside."""
    a, b = random(257, 136), random(136, 256 + columns, seed=1)
    for tile in (WIDE, (128, 192, 4, 2, False, 1), (128, 128, 4, 2, True, 1)):
        for turned in (False, True):
            result = _core._gemm(on_device(a), on_device(b, turned), tile=tile, splits=1)
            close(result, wide(a) @ wide(b))


def test_linear_and_matmul():
    x, weights = random(1100, 1031), random(1201, 1031, seed=1)
    a, b = kw.asarray(x), kw.asarray(weights)
    expected = wide(x) @ wide(weights).T
    close(a @ b.T, expected)
    close(kw.nn.linear(a, b), expected)
    close(kw.matmul(a, on_device(np.ascontiguousarray(weights.T))), expected)


def test_in_a_graph():
    a, b = random(769, 133), random(133, 707, seed=1)
    left, right = on_device(a), on_device(b, True)
    _core._gemm(left, right, tile=ONE, splits=1)
    graph = kw.Graph()
    with graph.capture():
        result = _core._gemm(left, right, tile=ONE, splits=1)
    for seed in (5, 6):
        other = random(769, 133, seed=seed)
        left[...] = kw.asarray(other)
        graph.launch()
        kw.synchronize()
        close(result, wide(other) @ wide(b))


@pytest.mark.skipif(not SIMULATED, reason="only the simulated device looks")
def test_under_all_checks():
    cases = [
        ((770, 705, 331), ONE, (False, True), 0),
        ((705, 770, 131), PAIR, (True, False), 1),
        ((1030, 2051, 131), WIDE, (False, True), 3),
        ((100, 101, 131), ONE, (False, False), 0),
    ]
    for (m, n, k), tile, turned, ahead in cases:
        a, b = random(m, k), random(k, n, seed=1)
        left, right = on_device(a, turned[0], ahead), on_device(b, turned[1], ahead)
        with kw.checks("memory", "init", "race", "sync") as report:
            _core._gemm(left, right, tile=tile, splits=1)
        assert report.findings == []


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("columns", [255, 257, 1000, 1003, 2051])
def test_copies_of_lines(dtype, columns):
    source = np.random.default_rng(0).integers(0, 256, (40, columns + 9)).astype(dtype)
    on_both = kw.asarray(source)
    for first, last in ((0, columns), (1, columns), (3, columns + 8), (8, columns + 9)):
        expected = source[1::3, first:last]
        view = on_both[1::3, first:last]
        with kw.checks() if SIMULATED else nullcontext() as report:
            copy = view.copy()
        assert report is None or report.findings == []
        np.testing.assert_array_equal(copy.numpy(), expected)
        target = np.zeros((13, columns + 11), dtype)
        copied = kw.asarray(target)
        copied[:, 2 : 2 + last - first] = view
        target[:, 2 : 2 + last - first] = expected
        np.testing.assert_array_equal(copied.numpy(), target)
    backwards = on_both[::-1, 1:columns]
    np.testing.assert_array_equal(backwards.copy().numpy(), source[::-1, 1:columns])
