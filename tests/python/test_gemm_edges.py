"""Products of 16-bit floats a little larger than whole tiles, against NumPy in float64.

Tiles of an edge with few rows or columns leave out products, and come behind all others. Devices
below 9.0 do products another way: there this file runs once more on a simulated device of 9.0.
"""

import numpy as np
import pytest
from hopper import hopper_alone, run_at_9_0, simulated_elsewhere
from test_gemm import ACTIVATIONS, close, in_layout, random, wide

import kernwright as kw
from kernwright import _core

# Rows, columns, stages, warpgroups, whether they take turns, blocks of a cluster.
TILES = [
    (128, 128, 3, 2, False, 1),
    (128, 128, 3, 2, False, 2),
    (256, 128, 3, 2, False, 1),
    (128, 128, 3, 2, True, 2),
    (128, 256, 3, 2, False, 2),
    (64, 64, 3, 1, False, 1),
    (192, 128, 3, 3, False, 2),
    (192, 64, 3, 3, False, 1),
    (192, 176, 3, 3, False, 1),
    (128, 64, 3, 2, False, 2),
    (256, 128, 3, 2, False, 2),
    (128, 64, 3, 2, False, 4),
    (64, 96, 3, 1, False, 2),
    (128, 176, 3, 2, False, 2),
    (128, 192, 3, 2, True, 1),
]
EDGES = [1, 8, 9, 64, 65, 127]


def of_cluster(tile):
    """Rows and columns: the tiles of a cluster lie beside each other if they are high."""
    rows, columns, _, _, _, blocks = tile
    return (rows, columns * blocks) if rows > columns else (rows * blocks, columns)


@simulated_elsewhere
def test_on_a_simulated_device_of_9_0():
    run_at_9_0(__file__)


@hopper_alone
@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("tile", TILES)
def test_edges(tile, edge):
    """Of rows, of columns and of both, behind no whole tile, one or two."""
    number = TILES.index(tile)
    height, width = of_cluster(tile)
    for rows, columns in [(0, 1), (1, 2), (2, 0)]:
        m, n = rows * height + edge, columns * width + EDGES[-1 - EDGES.index(edge)]
        a, b = random(m, 136, seed=rows), random(136, n, seed=3 + columns)
        x, y = in_layout(a, number % 3 == 1), in_layout(b, number % 2 == 0)
        close(_core._gemm(x, y, tile=tile, splits=1), wide(a) @ wide(b))
        whole = kw.asarray(a[: rows * height or m])
        close(_core._gemm(whole, y, tile=tile, splits=1), wide(a[: len(whole)]) @ wide(b))


@hopper_alone
@pytest.mark.parametrize("tile", TILES[:4])
def test_more_tiles_than_multiprocessors(tile):
    """Blocks have whole tiles first, and tiles of the edges behind them."""
    wanted = kw.current_device().attributes["multiprocessor_count"]
    height, width = of_cluster(tile)
    down = 1
    while down * down * tile[5] < wanted:
        down += 1
    m, n = down * height + 3, down * width + 8
    a, b = random(m, 72, dtype="float16"), random(72, n, dtype="float16", seed=1)
    got = _core._gemm(kw.asarray(a), in_layout(b, True), tile=tile, splits=1)
    close(got, wide(a) @ wide(b), "float16")


@hopper_alone
@pytest.mark.parametrize(("activation", "edge"), [("silu", 1), ("relu", 8), ("mish", 9)])
def test_what_follows(activation, edge):
    m, n = 256 + edge, 128 + edge
    a, b = random(m, 72) * np.float32(0.2), random(72, n, seed=1)
    a = a.astype(b.dtype)
    bias, c = random(n, dtype="float32", seed=2), random(m, n, seed=3)
    expected = ACTIVATIONS[activation](0.5 * (wide(a) @ wide(b)) + bias - 2 * wide(c))
    more = {"bias": kw.asarray(bias), "c": kw.asarray(c), "alpha": 0.5, "beta": -2}
    for splits in (1, 2):
        got = _core._gemm(kw.asarray(a), kw.asarray(b), activation=activation, tile=TILES[1],
                          splits=splits, **more)  # fmt: skip
        close(got, expected)


@hopper_alone
def test_gates_batches_and_other_types():
    a, b = random(264, 136), random(136, 2 * 136, seed=1)
    gate, value = np.split(wide(a) @ wide(b), 2, axis=1)
    got = _core._gemm(kw.asarray(a), in_layout(b, True), gate="silu", tile=TILES[1])
    close(got, ACTIVATIONS["silu"](gate) * value)
    batches = [np.stack([x, -x]) for x in (a, b[:, :136])]
    got = _core._gemm(*(kw.asarray(x) for x in batches), tile=TILES[1], splits=1)
    close(got, wide(batches[0]) @ wide(batches[1]))
    whole = [np.rint(wide(x) * 8).clip(-99, 99).astype(np.int8) for x in (a, b[:, :136].T)]
    got = _core._gemm(kw.asarray(whole[0]), kw.asarray(whole[1]).T, tile=TILES[1])
    np.testing.assert_array_equal(got.numpy(), whole[0].astype(int) @ whole[1].astype(int).T)


@hopper_alone
def test_under_all_checks():
    if not kw.current_device().is_simulated:
        pytest.skip("only the simulated device looks")
    a, b = kw.asarray(random(264, 136)), kw.asarray(random(136, 136, seed=1))
    with kw.checks("memory", "init", "race", "sync") as report:
        for tile in TILES:
            _core._gemm(a, b, tile=tile, splits=1)
            _core._gemm(a[:257], b[:, :129].mT.copy().mT, tile=tile, splits=1)
    assert report.findings == []
