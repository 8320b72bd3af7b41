"""Products whose blocks add accumulators of parts of the inner dimension, against NumPy in float64.

Devices below 9.0 have no clusters: there this file runs once more on a simulated device of 9.0.
"""

import ml_dtypes
import numpy as np
import pytest
from hopper import hopper_alone, run_at_9_0, simulated_elsewhere
from test_gemm import ACTIVATIONS, close, in_layout, random, wide
from test_scaled_matmul import BLOCKS, blocks, turned

import kernwright as kw
from kernwright import _core

# Rows, columns, stages, warpgroups, whether they take turns, blocks with split-K.
TILES = [
    (64, 64, 3, 1, False, 2, True),
    (64, 64, 3, 1, False, 4, True),
    (64, 96, 3, 1, False, 8, True),  # more blocks than warps: some end no accumulators
    (128, 64, 3, 2, False, 3, True),
    (128, 128, 3, 2, False, 4, True),
    (256, 128, 2, 2, False, 2, True),
]
ONE = TILES[1]
# The last one is of a table.
OF_BLOCKS = [*_core._gemm_tiles(True, True, split_k=True), (128, 192, 3, 2, False, 2, True)]


@simulated_elsewhere
def test_on_a_simulated_device_of_9_0():
    run_at_9_0(__file__)


@hopper_alone
@pytest.mark.parametrize("tile", TILES)
def test_tiles(tile):
    """Several tiles, the last ones cut off, and a last part that is shorter than the others."""
    number = TILES.index(tile)
    a, b = random(tile[0] + 40, 1100), random(1100, tile[1] + 48, seed=1)
    result = _core._gemm(in_layout(a, number % 4 >= 2), in_layout(b, number % 2 == 0), tile=tile)
    close(result, wide(a) @ wide(b))


@hopper_alone
@pytest.mark.parametrize("inner", [8, 64, 72, 136, 256, 320])
def test_fewer_steps_than_blocks(inner):
    """Of 64 elements each: parts without any are left out."""
    a, b = random(72, inner), random(inner, 80, seed=1)
    for tile in TILES[:3]:
        close(_core._gemm(kw.asarray(a), kw.asarray(b), tile=tile), wide(a) @ wide(b))


@hopper_alone
@pytest.mark.parametrize("columns", [80, 75])
@pytest.mark.parametrize("out", ["bfloat16", "float32"])
def test_what_follows(columns, out):
    """Rows of whole units and others; it happens once, to the whole accumulators."""
    a, b = random(70, 600) * np.float32(0.1), random(600, columns, seed=1)
    a = a.astype(b.dtype)
    bias, c = random(columns, dtype="float32", seed=2), random(70, columns, dtype=out, seed=3)
    expected = ACTIVATIONS["gelu"](0.5 * (wide(a) @ wide(b)) + bias - 2 * wide(c))
    got = _core._gemm(
        kw.asarray(a), kw.asarray(b), tile=ONE, bias=kw.asarray(bias), c=kw.asarray(c), alpha=0.5,
        beta=-2, activation="gelu", dtype=out,
    )  # fmt: skip
    close(got, expected, "bfloat16" if out == "bfloat16" else "float32")


@hopper_alone
def test_gates_and_batches():
    a, b = random(100, 520), random(520, 2 * 136, seed=1)
    gate, value = np.split(wide(a) @ wide(b), 2, axis=1)
    got = _core._gemm(kw.asarray(a), in_layout(b, True), gate="silu", tile=TILES[4])
    close(got, ACTIVATIONS["silu"](gate) * value)
    batches = [np.stack([x, -x, x]) for x in (a, b[:, :136])]
    got = _core._gemm(*(kw.asarray(x) for x in batches), tile=ONE)
    close(got, wide(batches[0]) @ wide(batches[1]))


@hopper_alone
def test_integers_are_exact():
    left, right = (
        np.random.default_rng(seed).integers(-128, 128, (72, 1000)).astype(np.int8)
        for seed in range(2)
    )
    got = _core._gemm(kw.asarray(left), kw.asarray(right).T, tile=ONE)
    np.testing.assert_array_equal(got.numpy(), left.astype(int) @ right.astype(int).T)


@hopper_alone
@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("tile", [ONE, TILES[3], TILES[4]])
def test_float8(tile, fast):
    """With accumulators that are promoted after each stage, too."""
    a, b = (random(n, 1200, seed=n).astype(ml_dtypes.float8_e4m3fn) for n in (100, 152))
    got = _core._gemm(kw.asarray(a), kw.asarray(b).T, dtype="bfloat16", fast_accum=fast, tile=tile)
    close(got, wide(a) @ wide(b).T)


@hopper_alone
def test_the_order_of_additions_does_not_change():
    a, b = kw.asarray(random(64, 4096)), kw.asarray(random(4096, 64, seed=1))
    once = _core._gemm(a, b, tile=TILES[2], dtype="float32").numpy()
    for _ in range(3):
        again = _core._gemm(a, b, tile=TILES[2], dtype="float32").numpy()
        np.testing.assert_array_equal(again, once)


@hopper_alone
def test_a_plan_of_a_table_splits_k():
    a, b = random(64, 1024), random(1024, 72, seed=1)
    x, y = kw.asarray(a), in_layout(b, True)
    plan = ["gemm", *(int(n) for n in ONE[:6]), 1, 1]
    with kw.checks() as report:
        got = _core._with_product(plan, lambda: _core._gemm(x, y))
    close(got, wide(a) @ wide(b))
    assert report.findings == []


@hopper_alone
@pytest.mark.parametrize("tile", OF_BLOCKS)
def test_scales_of_blocks(tile):
    """Parts of the inner dimension have scales of their own; the last part is shorter."""
    a, b, of_a, of_b, expected = blocks(tile[0] + 6, 200, 900)
    x, y, scales = kw.asarray(a), turned(b), (kw.asarray(of_a), kw.asarray(of_b))
    bias = random(200, dtype="float32", seed=5)
    with kw.checks("memory", "init", "race", "sync") as report:
        got = _core._gemm(x, y, bias=kw.asarray(bias), block_scales=scales, tile=tile)
    off = np.linalg.norm(wide(got.numpy()) - expected - bias)
    assert off < (1e-5 + BLOCKS) * np.linalg.norm(expected)
    assert report.findings == []


@hopper_alone
def test_under_all_checks():
    if not kw.current_device().is_simulated:
        pytest.skip("only the simulated device looks")
    a, b = kw.asarray(random(100, 600)), kw.asarray(random(600, 136, seed=1))
    with kw.checks("memory", "init", "race", "sync") as report:
        for tile in TILES:
            _core._gemm(a, b, tile=tile)
            _core._gemm(a[:65], b[:, :129].mT.copy().mT, tile=tile)
    assert report.findings == []


@pytest.mark.parametrize(
    ("tile", "words"),
    [
        ((64, 64, 3, 1, False, 9, True), "adds the accumulators of 2 to 8 blocks"),
        ((64, 64, 3, 2, True, 2, True), "adds the accumulators of 2 to 8 blocks"),
        ((128, 128, 6, 2, False, 4, True), "fits 232448 bytes"),
        ((64, 64, 3, 1, False), "6 or 7 numbers, not 5"),
    ],
)
def test_bad_tiles(tile, words):
    with pytest.raises(kw.ArgumentError, match=words):
        _core._gemm(kw.zeros((64, 64), "bfloat16"), kw.zeros((64, 64), "bfloat16"), tile=tile)
