"""Products of 8-bit numbers times scales, and of tf32 and int8 by wgmma, against NumPy in float64.

Devices below 9.0 do them another way: where the simulated device is one, all of this file runs once
more in a process of its own, whose device is one of 9.0.
"""

import ml_dtypes
import numpy as np
import pytest
from hopper import HOPPER, run_at_9_0, simulated_elsewhere

import kernwright as kw
from kernwright import _core

CAPABILITY = kw.current_device().compute_capability
E4M3, E5M2 = "float8_e4m3fn", "float8_e5m2"
LIMITS = {"int8": 127.0, E4M3: 448.0, E5M2: 57344.0}
TOLERANCE = {"bfloat16": 3e-3, "float16": 4e-4, "float32": 1e-6}
# Tensor cores keep about 14 bits of sums of float8, the simulated device all of them.
FLOAT8 = 0.0 if kw.current_device().is_simulated else 2e-3
# Operands become bfloat16 after their blocks' scales where there are no products of float8.
BLOCKS = FLOAT8 if CAPABILITY >= (8, 9) else 4e-3
MIXED = FLOAT8 if HOPPER else 4e-3
# Rows, columns, stages, warpgroups, whether they take turns, blocks of a cluster.
ONE = (64, 64, 3, 1, False, 1)
TILES = [
    ONE,
    (64, 64, 2, 1, False, 4),
    (64, 128, 3, 2, True, 2),
    (128, 128, 3, 2, False, 2),
    (128, 192, 3, 2, False, 1),
    (256, 128, 3, 2, False, 2),
    (128, 256, 3, 2, False, 2),
]
ENDS = [
    (128, 160, 3, 2, True, 1),
    (128, 176, 3, 2, False, 2),
    (128, 192, 3, 2, True, 1),
    (256, 128, 3, 2, False, 1),
    (128, 64, 3, 2, False, 2, True),
]
PAIRS = [(E4M3, E4M3), (E5M2, E4M3), (E4M3, E5M2), (E5M2, E5M2), ("int8", "int8")]
EDGES = [(1, 1, 1), (65, 7, 31), (63, 130, 33), (8, 200, 129), (130, 66, 256)]


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def random(*shape, dtype="float32", seed=0):
    values = np.random.default_rng(seed).standard_normal(shape)
    if dtype == "int8":
        return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)
    return values.astype(dtype_of(dtype))


def some_scales(*shape, seed=0):
    return (np.random.default_rng(seed).uniform(0.5, 2, shape) * 1e-2).astype(np.float32)


def wide(x):
    return np.asarray(x, np.float64)


def close(result, expected, more=0.0):
    values, tolerance = wide(result.numpy()), TOLERANCE[str(result.dtype)] + more
    assert values.shape == expected.shape
    assert np.linalg.norm(values - expected) <= tolerance * np.linalg.norm(expected)
    largest = np.abs(expected).max(initial=0)
    assert np.abs(values - expected).max(initial=0) <= 4 * tolerance * largest


def turned(x):
    """On the device, with columns whose elements follow each other."""
    return kw.asarray(np.ascontiguousarray(x.T)).T


def spread(scales, shape, tile):
    """A number for each element of `shape`."""
    for axis, size in enumerate(tile):
        scales = np.repeat(scales, size, axis)
    return wide(scales[: shape[0], : shape[1]])


def blocks(m, n, k, left=E4M3, right=E4M3, seed=0):
    """Operands and scales on the host, and their product in float64."""
    a, b = random(m, k, dtype=left, seed=seed), random(k, n, dtype=right, seed=seed + 1)
    down, across = -(-k // 128), -(-n // 128)
    of_a, of_b = some_scales(m, down, seed=2), some_scales(down, across, seed=3)
    expected = (wide(a) * spread(of_a, (m, k), (1, 128))) @ (
        wide(b) * spread(of_b, (k, n), (128, 128))
    )
    return a, b, of_a, of_b, expected


@simulated_elsewhere
def test_on_a_simulated_device_of_9_0():
    run_at_9_0(__file__)


@pytest.mark.parametrize(
    ("left", "right", "out", "fast"),
    [(*pair, out, fast) for pair, out, fast in zip(
        PAIRS, ["float32", "bfloat16", "float32", "float16", "bfloat16"],
        [False, True, False, True, False], strict=True)],
)  # fmt: skip
def test_scales_of_tensors_rows_and_columns(left, right, out, fast):
    m, n, k = 70, 66, 136
    a, b = random(m, k, dtype=left), random(k, n, dtype=right, seed=1)
    rows, columns = some_scales(m), some_scales(n, seed=1)
    x, y, bias = kw.asarray(a), turned(b), random(n, seed=2)
    expected = wide(a) @ wide(b)
    one, two = kw.asarray(np.float32(0.25)), kw.asarray(np.array([[0.5]], np.float32))
    by_rows = kw.asarray(rows[:, None]), kw.asarray(columns[None])
    more = {"dtype": out, "use_fast_accum": fast}
    slack = 0.0 if left == "int8" else FLOAT8
    close(kw.nn.scaled_matmul(x, y, one, two, **more), expected / 8, slack)
    both = expected * wide(rows)[:, None] * columns
    close(kw.nn.scaled_matmul(x, y, *by_rows, **more), both, slack)
    if left == right:
        result = kw.nn.scaled_matmul(x, y, kw.asarray(rows), one, bias=kw.asarray(bias), **more)
        close(result, expected * wide(rows)[:, None] / 4 + bias, slack)


@pytest.mark.parametrize("shape", EDGES)
def test_ragged_edges(shape):
    m, n, k = shape
    for dtype in (E4M3, "int8"):
        a, b = random(m, k, dtype=dtype), random(k, n, dtype=dtype, seed=1)
        rows, columns = some_scales(m), some_scales(n, seed=1)
        scales = kw.asarray(rows), kw.asarray(columns)
        expected = wide(a) @ wide(b) * wide(rows)[:, None] * columns
        for y in (kw.asarray(b), turned(b)):
            result = kw.nn.scaled_matmul(kw.asarray(a), y, *scales, dtype="float32")
            close(result, expected, 0.0 if dtype == "int8" else FLOAT8)
    a, b, of_a, of_b, expected = blocks(m, n, k)
    result = kw.nn.scaled_matmul(
        kw.asarray(a), turned(b), kw.asarray(of_a), kw.asarray(of_b), dtype="float32"
    )
    close(result, expected, BLOCKS)


@pytest.mark.parametrize(("left", "right"), PAIRS[:4])
def test_scales_of_blocks(left, right):
    a, b, of_a, of_b, expected = blocks(70, 200, 300, left, right)
    bias = random(200, dtype="bfloat16", seed=5)
    x, y, scales = kw.asarray(a), turned(b), (kw.asarray(of_a), kw.asarray(of_b))
    out = ["bfloat16", "float16", "float32", "bfloat16"][PAIRS.index((left, right))]
    result = kw.nn.scaled_matmul(x, y, *scales, bias=kw.asarray(bias), dtype=out)
    assert result.dtype == dtype_of(out)
    close(result, expected + wide(bias), BLOCKS if left == right else MIXED)


@pytest.mark.parametrize("tile", TILES)
def test_tiles(tile):
    a, b, of_a, of_b, expected = blocks(300, 264, 400)
    x, y, scales = kw.asarray(a), turned(b), (kw.asarray(of_a), kw.asarray(of_b))
    out = "float32" if TILES.index(tile) % 2 == 0 else "bfloat16"
    result = _core._gemm(x, y, block_scales=scales, tile=tile, splits=1, dtype=out)
    close(result, expected, BLOCKS)
    if out == "float32":
        close(_core._gemm(x, y, block_scales=scales, tile=tile, splits=2), expected, BLOCKS)
    close(_core._gemm(x, y, tile=tile, splits=1, dtype=out), wide(a) @ wide(b), FLOAT8)


@pytest.mark.skipif(not HOPPER, reason="the tiles are for devices of 9.0")
@pytest.mark.parametrize(
    ("shape", "tile"),
    [((64, 64, 4300), ONE), ((70, 400, 4700), TILES[4]), ((192, 3904, 300), ONE)],
)
def test_scales_of_blocks_of_many_steps_and_tiles(shape, tile):
    """Lanes ask for 32 steps' scales of b at once, and for those of a block's next tile."""
    a, b, of_a, of_b, expected = blocks(*shape)
    more = {"block_scales": (kw.asarray(of_a), kw.asarray(of_b)), "tile": tile, "alpha": 0.75}
    with kw.checks() as report:
        result = _core._gemm(kw.asarray(a), turned(b), splits=1, dtype="bfloat16", **more)
        close(result, 0.75 * expected, BLOCKS)
    assert not report.findings


@pytest.mark.skipif(not HOPPER, reason="the tiles are for devices of 9.0")
@pytest.mark.parametrize("tile", ENDS)
def test_ends_of_fast_accumulation(tile):
    """Boxes of the result that are whole and others, scales of lines and of all."""
    m, n, k = 130, 392, 400
    a, b = random(m, k, dtype=E4M3), random(k, n, dtype=E4M3, seed=1)
    rows, columns = some_scales(m), some_scales(n, seed=1)
    expected = wide(a) @ wide(b)
    by_lines = kw.asarray(rows), kw.asarray(columns)
    one = kw.asarray(rows[:1]), kw.asarray(columns[:1])
    x, y = kw.asarray(a), turned(b)
    for out, splits in (("bfloat16", 1), ("float32", 1), ("bfloat16", 2)):
        more = {"tile": tile, "splits": splits, "dtype": out, "fast_accum": True}
        scaled = _core._gemm(x, y, line_scales=by_lines, **more)
        close(scaled, expected * wide(rows)[:, None] * columns, FLOAT8)
        scaled = _core._gemm(x, y, line_scales=one, **more)
        close(scaled, expected * wide(rows[0]) * columns[0], FLOAT8)


@pytest.mark.parametrize("shape", [(40, 66, 31), (70, 200, 300), (130, 66, 900)])
def test_blocks_by_mma(shape):
    a, b, of_a, of_b, expected = blocks(*shape)
    x, y, scales = kw.asarray(a), turned(b), (kw.asarray(of_a), kw.asarray(of_b))
    for splits in (1, 3):
        result = _core._gemm(x, y, block_scales=scales, kernel="mma", splits=splits)
        close(result, expected, BLOCKS)


def test_what_quantisation_made():
    x, w = random(2, 35, 300), random(200, 300, seed=1)
    expected = wide(x) @ wide(w).T
    q, scale = kw.nn.quantize_blocks(kw.asarray(x))
    weights, tiles = kw.nn.quant.quantize(kw.asarray(w), "fp8_block")
    close(kw.nn.scaled_matmul(q, weights.T, scale, tiles.T), expected, 0.04)
    for dtype, error in ((E4M3, 0.04), ("int8", 0.015)):
        q, scale = kw.nn.quantize_rows(kw.asarray(x), dtype)
        weights, columns = kw.nn.quantize_rows(kw.asarray(w), dtype)
        close(kw.nn.scaled_matmul(q, weights.T, scale, columns), expected, error)


def test_views():
    a, b, of_a, of_b, expected = blocks(60, 150, 280)
    x = kw.zeros((121, 300), E4M3)
    x[1::2, 3:283] = kw.asarray(a)
    s = kw.zeros((60, 7))
    s[:, 6:0:-2] = kw.asarray(of_a)
    t = kw.zeros((6, 3))
    t[::2, 1:] = kw.asarray(of_b)
    view = x[1::2, 3:283], kw.asarray(b), s[:, 6:0:-2], t[::2, 1:]
    close(kw.nn.scaled_matmul(*view, dtype="float32"), expected, BLOCKS)
    rows, columns = kw.broadcast_to(kw.asarray(some_scales(1)), (60,)), kw.asarray(some_scales(150))
    result = kw.nn.scaled_matmul(view[0], view[1], rows[::-1], columns[::-1], dtype="float32")
    close(result, wide(a) @ wide(b) * wide(some_scales(1)) * some_scales(150)[::-1], FLOAT8)


def test_long_sums_are_added_in_float32():
    a = np.full((64, 4096), 1, dtype_of(E4M3))
    ones = kw.asarray(np.float32(1))
    result = kw.nn.scaled_matmul(kw.asarray(a), kw.asarray(a).T, ones, ones, dtype="float32")
    assert (result.numpy() == 4096).all()


@pytest.mark.parametrize("shape", [(0, 8, 8), (8, 0, 8), (8, 4, 0), (0, 0, 0)])
def test_nothing(shape):
    m, n, k = shape
    a, b, of_a, of_b, expected = blocks(m, n, k)
    bias = random(n, seed=2)
    arrays = [kw.asarray(x) for x in (a, b, of_a, of_b)]
    close(kw.nn.scaled_matmul(*arrays, bias=kw.asarray(bias)), expected + bias)
    lines = kw.asarray(some_scales(m)), kw.asarray(some_scales(n))
    assert kw.nn.scaled_matmul(*arrays[:2], *lines).shape == (m, n)


def test_special_values_stay_in_their_rows():
    a, b, of_a, of_b, _ = blocks(70, 72, 200)
    a[3, 150] = np.nan
    of_a[5, 0], of_a[6, 1] = np.inf, np.nan
    arrays = [kw.asarray(a), turned(b), kw.asarray(of_a), kw.asarray(of_b)]
    result = wide(kw.nn.scaled_matmul(*arrays).numpy())
    assert not np.isfinite(result[[3, 5, 6]]).any()
    assert np.isfinite(np.delete(result, [3, 5, 6], 0)).all()


def test_the_same_each_time_and_in_a_graph():
    a, b, of_a, of_b, _ = blocks(70, 72, 1500)
    arrays = [kw.asarray(a), turned(b), kw.asarray(of_a), kw.asarray(of_b)]
    x, doubled = kw.asarray(random(70, 1500)), kw.asarray(of_b * 2)
    kw.nn.quantize_blocks(x)
    once = kw.nn.scaled_matmul(*arrays).numpy().tobytes()
    assert kw.nn.scaled_matmul(*arrays).numpy().tobytes() == once
    graph = kw.Graph()
    with graph.capture():
        q, scale = kw.nn.quantize_blocks(x)
        result = kw.nn.scaled_matmul(q, arrays[1], scale, arrays[3])
    arrays[3][...] = doubled
    graph.launch()
    kw.synchronize()
    q, scale = kw.nn.quantize_blocks(x)
    exact = kw.nn.scaled_matmul(q, arrays[1], scale, doubled)
    assert result.numpy().tobytes() == exact.numpy().tobytes()


def test_tf32_of_wgmma_drops_bits():
    """Towards zero, as the instruction reads operands; other devices round to nearest."""
    a, b = random(70, 100), random(100, 72, seed=1)
    x, y = kw.asarray(a), turned(b)
    result = _core._gemm(x, y, precision="tf32", bias=kw.asarray(b[0]))
    if HOPPER:
        cut = [(z.view(np.uint32) & 0xFFFFE000).view(np.float32) for z in (a, b)]
        close(result, wide(cut[0]) @ wide(cut[1]) + b[0], 2e-6)
    expected = wide(a) @ wide(b) + b[0]
    error = np.linalg.norm(wide(result.numpy()) - expected) / np.linalg.norm(expected)
    assert error < (1e-3 if HOPPER else 4e-4)
    for splits in (1, 2):
        wider = _core._gemm(x, kw.asarray(b), precision="tf32", splits=splits, dtype="bfloat16")
        close(wider, wide(a) @ wide(b), 1e-3)


@pytest.mark.parametrize("shape", EDGES)
def test_int8_is_exact(shape):
    m, n, k = shape
    a, b = random(m, k, dtype="int8"), random(k, n, dtype="int8", seed=1)
    exact = a.astype(np.int64) @ b.astype(np.int64)
    for out in (np.int32, np.int8):
        assert (_core._gemm(kw.asarray(a), turned(b), dtype=out).numpy() == exact.astype(out)).all()
    batch = _core._gemm(kw.asarray(np.stack([a, a])), kw.asarray(np.stack([b, -b])))
    negated = a.astype(np.int64) @ (-b).astype(np.int64)
    assert (batch.numpy() == np.stack([exact, negated])).all()


def test_gates_and_batches_of_float8():
    a, b = random(3, 40, 200, dtype=E4M3), random(3, 200, 160, dtype=E4M3, seed=1)
    x, y = kw.asarray(a), kw.asarray(b)
    product = wide(a) @ wide(b) / 16
    close(_core._gemm(x, y, alpha=1 / 16), product, FLOAT8)
    expected = product[0, :, :80] / (1 + np.exp(-product[0, :, :80])) * product[0, :, 80:]
    for tile in (None, (128, 256, 3, 2, False, 1)) if HOPPER else (None,):
        result = _core._gemm(x[0], y[0], gate="silu", alpha=1 / 16, tile=tile)
        close(result, expected, FLOAT8 + 1e-6)


@pytest.mark.parametrize("kind", ["sums", "fast", "mixed", "lines", "int8", "blocks", "float32"])
def test_expressions_follow_scaled_sums(kind):
    m, n, k = 66, 72, 192
    left, right = {
        "mixed": (E5M2, E4M3),
        "int8": ("int8", "int8"),
        "float32": ("float32",) * 2,
    }.get(kind, (E4M3, E4M3))
    a, b, of_a, of_b, expected = blocks(m, n, k, left, right)
    rows, columns, more = some_scales(m), some_scales(n, seed=1), {}
    if kind == "blocks":
        more = {"block_scales": (turned(of_a), kw.asarray(of_b))}
    else:
        expected = wide(a) @ wide(b)
        if kind in ("lines", "int8", "float32"):
            expected *= wide(rows)[:, None] * wide(columns)
            more = {"line_scales": (kw.asarray(rows), kw.asarray(columns))}
    c, bias = random(m, n, seed=4), random(n, seed=5)
    for ending in ("relu(x) + bias - alpha * c", "x"):
        full = ending != "x"
        result = _core._gemm(
            kw.asarray(a),
            turned(b),
            bias=kw.asarray(bias) if full else None,
            c=kw.asarray(c) if full else None,
            alpha=0.25,
            dtype="float32",
            expression=ending,
            fast_accum=kind == "fast",
            **more,
        )
        wanted = np.maximum(expected, 0) + wide(bias) - 0.25 * wide(c) if full else expected
        close(result, wanted, MIXED if kind == "mixed" else BLOCKS if kind == "blocks" else FLOAT8)


@pytest.mark.parametrize(
    ("shape", "block"),
    [((7,), 128), ((3, 128), 128), ((70, 260), 128), ((2, 5, 384), 256), ((9, 50), 16),
     ((4, 96), 32), ((33, 64), 64)],
)  # fmt: skip
@pytest.mark.parametrize(("of", "dtype"), [("bfloat16", E4M3), ("float32", "int8"),
                                           ("float16", E5M2)])  # fmt: skip
def test_quantize_blocks(shape, block, of, dtype):
    x = random(*shape, dtype=of) * dtype_of(of).type(3)
    x.reshape(-1)[:1] = 0
    q, scale = kw.nn.quantize_blocks(kw.asarray(x), block, dtype=dtype)
    places = -(-shape[-1] // block)
    wider = np.zeros((*shape[:-1], places * block), np.float32)
    wider[..., : shape[-1]] = x
    parts = wider.reshape(*shape[:-1], places, block)
    exact = np.abs(parts).max(-1) / np.float32(LIMITS[dtype])
    assert q.shape == shape and str(q.dtype) == dtype and scale.shape == exact.shape
    assert np.array_equal(scale.numpy(), exact)
    y = parts / np.where(exact == 0, np.float32(1), exact)[..., None]
    y = np.clip(y, -LIMITS[dtype], LIMITS[dtype]).reshape(wider.shape)[..., : shape[-1]]
    y = (np.rint(y) if dtype == "int8" else y).astype(dtype_of(dtype))
    assert np.array_equal(q.numpy().view(np.uint8), y.view(np.uint8))


def test_quantize_blocks_of_views_and_special_values():
    x = random(20, 300)
    x[3, 5], x[4, 200] = np.nan, np.inf
    q, scale = kw.nn.quantize_blocks(kw.asarray(x)[1::2, 1:])
    again, other = kw.nn.quantize_blocks(kw.asarray(np.ascontiguousarray(x[1::2, 1:])))
    assert q.numpy().tobytes() == again.numpy().tobytes()
    assert scale.numpy().tobytes() == other.numpy().tobytes()
    of_all = kw.nn.quantize_blocks(kw.asarray(x))[1].numpy()
    assert np.isnan(of_all[3, 0]) and np.isinf(of_all[4, 1])
    assert np.isfinite(np.delete(of_all, [3, 4], 0)).all()
    assert kw.nn.quantize_blocks(kw.zeros((0, 130)))[1].shape == (0, 2)
    assert (kw.nn.quantize_blocks(kw.zeros((2, 130)))[1].numpy() == 0).all()


@pytest.mark.skipif(not kw.current_device().is_simulated, reason="only the simulated device looks")
def test_under_all_checks():
    a, b, of_a, of_b, _ = blocks(140, 136, 270)
    x, y, scales = kw.asarray(a), turned(b), (kw.asarray(of_a), kw.asarray(of_b))
    whole, bias = kw.asarray(random(70, 100, dtype="int8")), kw.asarray(random(136, seed=1))
    single = kw.asarray(random(70, 100))
    with kw.checks("memory", "init", "race", "sync") as report:
        for tile in (*TILES[1:3], TILES[4], TILES[6]):
            _core._gemm(x, y, block_scales=scales, tile=tile, splits=1)
        _core._gemm(x, y, tile=TILES[1], splits=2)
        for tile in ENDS if HOPPER else []:
            for scales_of in ((kw.ones(140), kw.ones(136)), (kw.ones(1), kw.ones(1))):
                _core._gemm(x, y, line_scales=scales_of, fast_accum=True, tile=tile, splits=1)
        _core._gemm(x, y, fast_accum=True, dtype="bfloat16")
        _core._gemm(whole, whole.T), _core._gemm(whole, whole.T, dtype="int8")
        _core._gemm(single, single.T, precision="tf32")
        _core._gemm(x, y, block_scales=scales, kernel="mma", dtype="bfloat16")
        q, scale = kw.nn.quantize_blocks(kw.asarray(random(70, 270)))
        kw.nn.scaled_matmul(q, y, scale, scales[1], bias=bias)
        kw.nn.scaled_matmul(x, y, kw.ones(140), kw.ones(136), bias=bias, dtype="float32")
        kw.nn.scaled_matmul(whole, whole.T, kw.ones(()), kw.ones(70))
    assert report.findings == []


def test_the_rule():
    def choice(*shape, block_scales=False):
        return _core._gemm_choice(*shape, in_bytes=1, promotes=True, block_scales=block_scales)

    assert choice(8192, 8192, 8192).startswith("256x128, 4 stages")
    assert choice(8192, 8192, 8192, block_scales=True).startswith("256x128, 3 stages")
    assert choice(2048, 7168, 2048, block_scales=True).startswith("128x128, 5 stages")
    # Measured on an H200.
    fast = {
        (4096, 2112, 7168): "128x176",
        (4096, 32768, 512): "128x192, 4 stages, 2 groups in turn",
    }
    for shape, tile in fast.items():
        assert _core._gemm_choice(*shape, in_bytes=1, bandwidth=4814).startswith(tile)
    with_blocks = {
        (64, 2112, 7168): "64x64, 8 stages, 1 groups, split-K over 3 blocks",
        (64, 4096, 7168): "64x64, 8 stages, 1 groups, split-K over 2 blocks",
        (64, 7168, 2048): "64x64, 8 stages, 1 groups",
        (128, 4096, 7168): "128x64, 6 stages, 2 groups, split-K over 2 blocks",
        (128, 7168, 16384): "128x128, 5 stages, 2 groups, split-K over 2 blocks",
        (128, 10240, 8192): "128x192, 4 stages, 2 groups, 2 splits",
        (512, 3072, 8192): "128x128, 5 stages, 2 groups, clusters of 2",
    }
    for shape, taken in with_blocks.items():
        more = {"in_bytes": 1, "promotes": True, "block_scales": True, "bandwidth": 4814}
        assert _core._gemm_choice(*shape, **more) == taken
    assert "gather" not in choice(2048, 2112, 7168)
    assert "splits" in choice(64, 256, 32768)
    assert "splits" not in choice(4096, 4096, 4096)
    shapes = [(64, 4096, 4096), (4096, 4096, 4096), (128, 24576, 1536)]
    empty = kw.zeros((0, 8), E4M3), kw.zeros((8, 8), E4M3)
    of_blocks = kw.ones((0, 1)), kw.ones((1, 1))
    for scales in (None, of_blocks):
        by_blocks = scales is not None
        all_tiles = _core._gemm_tiles(True, by_blocks)
        for tile in all_tiles:
            assert _core._gemm(*empty, block_scales=scales, tile=tile).shape == (0, 8)
        tiles = {f"{rows}x{columns}" for rows, columns, *_ in all_tiles}
        for shape in shapes:
            assert choice(*shape, block_scales=by_blocks).split(",")[0] in tiles


def test_errors():
    x, y = kw.zeros((8, 256), E4M3), kw.zeros((256, 16), E4M3)
    one, two = kw.ones(()), kw.ones((8, 2))
    call = kw.nn.scaled_matmul
    with pytest.raises(kw.InvalidArgument, match=r"Incompatible dim.*\(8, 256\).*\(16, 256\)"):
        call(x, y.T, one, one)
    with pytest.raises(kw.InvalidArgument, match=r"scale_a is \(7,\) and scale_b \(\)"):
        call(x, y, kw.ones(7), one)
    with pytest.raises(kw.InvalidArgument, match="rounded up"):
        call(x, y, two, kw.ones((1, 2)))
    with pytest.raises(kw.InvalidArgument, match="rounded up"):
        call(x, y, two, one)
    with pytest.raises(kw.ArgumentError, match="float8_e4m3fn and float8_e5m2, or two of int8"):
        call(x.astype("bfloat16"), y, one, one)
    with pytest.raises(kw.ArgumentError, match="int8"):
        call(x, kw.zeros((256, 16), "int8"), one, one)
    with pytest.raises(kw.ArgumentError, match="scales are float32"):
        call(x, y, one.astype("bfloat16"), one)
    with pytest.raises(kw.ArgumentError, match="float16, bfloat16, float32, float8"):
        call(x, y, one, one, dtype="int32")
    with pytest.raises(kw.InvalidArgument, match="bias is"):
        call(x, y, one, one, bias=kw.ones(8))
    with pytest.raises(kw.ArgumentError, match="scales of blocks are of float8"):
        whole = kw.zeros((8, 256), "int8"), kw.zeros((256, 16), "int8")
        call(*whole, two, kw.ones((2, 1)))
    with pytest.raises(kw.ArgumentError, match="scale_a"):
        call(x, y, 1.0, one)
    with pytest.raises(kw.ArgumentError, match="those of a stage included"):
        _core._gemm(x, y, tile=(256, 192, 2, 2, False, 1))
    with pytest.raises(kw.ArgumentError, match="fits 232448 bytes"):  # no room for scales of a
        _core._gemm(x, y, block_scales=(two, kw.ones((2, 1))), tile=(256, 128, 4, 2, False, 1))
    with pytest.raises(kw.ArgumentError, match="without a gate"):
        _core._gemm(x, y, line_scales=(kw.ones(8), kw.ones(16)), gate="silu")
    for block in (0, 100, 512, -128):
        with pytest.raises(kw.InvalidArgument, match="blocks are of 16"):
            kw.nn.quantize_blocks(kw.ones((2, 256)), block)
    with pytest.raises(kw.InvalidArgument, match="int8, float8"):
        kw.nn.quantize_blocks(kw.ones((2, 256)), dtype="float16")
    with pytest.raises(kw.InvalidArgument, match="float16, bfloat16 or float32"):
        kw.nn.quantize_blocks(x)
