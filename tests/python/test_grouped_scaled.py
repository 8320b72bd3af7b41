"""Products of groups of rows of float8 with scales, against NumPy in float64.

As in test_grouped.py, a device of 9.0 does them another way: where the simulated device is an older
one, all of this file runs once more on one of 9.0, in a process of its own.
"""

import ml_dtypes
import numpy as np
import pytest
import scipy.special
from hopper import HOPPER, hopper_alone, run_at_9_0, simulated_elsewhere

import kernwright as kw
from kernwright import _core

E4M3, E5M2 = "float8_e4m3fn", "float8_e5m2"
TOLERANCE = {"bfloat16": 3e-3, "float16": 4e-4, "float32": 1e-6}
# Tensor cores keep about 14 bits of sums of float8, the simulated device all of them.
FLOAT8 = 0.0 if kw.current_device().is_simulated else 2e-3
# Operands become bfloat16 after their blocks' scales where there is no kernel of float8.
BLOCKS = FLOAT8 if HOPPER else 4e-3
# Rows, columns, stages, warpgroups, whether they take turns, blocks of a cluster.
TILES = [
    (64, 64, 3, 1, False, 1),
    (64, 64, 2, 1, False, 4),
    (64, 128, 3, 2, True, 2),
    (128, 128, 3, 2, False, 2),
    (128, 192, 3, 2, False, 1),
    (128, 256, 3, 2, False, 2),
]
# Those of gemm.cu, most of them not for sums that are promoted.
FAST_TILES = [
    (64, 96, 3, 1, False, 2),
    (128, 160, 3, 2, True, 1),
    (128, 224, 3, 2, False, 2),
    (256, 128, 3, 2, False, 1),
]
SIZES = [3, 0, 130, 0, 64, 6, 0]


def wide(x):
    return np.asarray(x, np.float64)


def random(*shape, dtype=E4M3, seed=0):
    values = np.random.default_rng(seed).standard_normal(shape)
    return values.astype(getattr(ml_dtypes, dtype, dtype))


def some_scales(*shape, seed=0):
    return np.random.default_rng(seed).uniform(0.5, 2, shape).astype(np.float32) * 0.1


def spread(scales, *extents):
    """Each scale 128 times along the last axes, as many as there are extents."""
    for axis, extent in zip(range(-len(extents), 0), extents, strict=True):
        scales = np.repeat(scales, 128, axis).take(range(extent), axis)
    return wide(scales)


class Case:
    """Operands with scales of blocks, or of rows and columns, and what they stand for."""

    def __init__(self, sizes, n, k, lines=False, types=(E4M3, E4M3)):
        rows, groups, deep = sum(sizes), len(sizes), -(-k // 128)
        self.x, self.w = random(rows, k, dtype=types[0]), random(groups, n, k, dtype=types[1])
        self.sizes, self.ends = sizes, np.cumsum(sizes).astype(np.int32)
        if lines:
            self.of_x, self.of_w = some_scales(rows), some_scales(groups, n, seed=1)
            self.real_x = wide(self.x) * self.of_x[:, None]
            self.real_w = wide(self.w) * self.of_w[:, :, None]
        else:
            self.of_x = some_scales(rows, deep)
            self.of_w = some_scales(groups, -(-n // 128), deep, seed=1)
            self.real_x = wide(self.x) * spread(self.of_x, k)
            self.real_w = wide(self.w) * spread(self.of_w, n, k)

    def expected(self, bias=0.0):
        """In float64, group by group; NaN where no group has a row."""
        out = np.full((self.x.shape[0], self.w.shape[1]), np.nan)
        for group, (end, size) in enumerate(zip(self.ends, self.sizes, strict=True)):
            rows = slice(end - size, end)
            of_group = bias if np.ndim(bias) == 0 else wide(bias[group])
            out[rows] = self.real_x[rows] @ self.real_w[group].T + of_group
        return out

    def arrays(self):
        return kw.asarray(self.x), kw.asarray(self.w), kw.asarray(self.ends)

    def scales(self):
        return {"scale_a": kw.asarray(self.of_x), "scale_b": kw.asarray(self.of_w)}

    def linear(self, *more, **options):
        return kw.nn.grouped_linear(*self.arrays(), *more, **self.scales(), **options)


def close(result, expected, dtype="bfloat16", more=BLOCKS):
    """As a whole and element by element, where something is expected."""
    values, tolerance = wide(result.numpy()), TOLERANCE[dtype] + more
    assert result.dtype == getattr(ml_dtypes, dtype, dtype)
    assert values.shape == expected.shape
    there = ~np.isnan(expected)
    off, expected = values[there] - expected[there], expected[there]
    assert np.linalg.norm(off) <= tolerance * np.linalg.norm(expected)
    largest = np.abs(expected).max(initial=0)
    assert np.abs(off).max(initial=0) <= 4 * tolerance * largest


def silu(x):
    return x * scipy.special.expit(x)


@simulated_elsewhere
def test_on_a_simulated_device_of_9_0():
    run_at_9_0(__file__)


@hopper_alone
@pytest.mark.parametrize("tile", TILES)
def test_tiles(tile):
    case = Case([70, 0, 131, 1, 10], 264, 400)
    out = "float32" if TILES.index(tile) % 2 == 0 else "bfloat16"
    options = {**case.scales(), "dtype": out, "tile": tile}
    close(_core._grouped_product(*case.arrays(), "ends", **options), case.expected(), out)
    if tile[1] % 128 == 0:
        case = Case([70, 0, 131, 1, 10], 512, 300)
        result = _core._grouped_product(
            *case.arrays(), "ends", gate="silu", tile=tile, **case.scales()
        )
        y = case.expected()
        close(result, silu(y[:, :256]) * y[:, 256:])


@hopper_alone
@pytest.mark.parametrize("tile", FAST_TILES)
def test_tiles_of_fast_accumulation(tile):
    case = Case([70, 0, 131, 1, 10], 264, 400, lines=True)
    for out in ("float32", "bfloat16"):
        options = {**case.scales(), "dtype": out, "tile": tile, "fast_accum": True}
        close(_core._grouped_product(*case.arrays(), "ends", **options), case.expected(), out)


@pytest.mark.parametrize("types", [(E4M3, E4M3), (E4M3, E5M2)])
def test_fast_accumulation(types):
    case = Case(SIZES, 200, 300, True, types)
    bias = random(len(SIZES), 200, dtype="float32", seed=2)
    y = case.expected(bias)
    fast = {"use_fast_accum": True, "dtype": "float32"}
    close(case.linear(kw.asarray(bias), **fast), y, "float32", FLOAT8)
    gated = silu(y[:, :100]) * y[:, 100:]
    close(case.linear(kw.asarray(bias), gate="silu", **fast), gated, "float32", FLOAT8)


def test_accumulation_of_blocks_is_never_fast():
    case = Case(SIZES, 200, 300)
    exact = case.linear().numpy().tobytes()
    assert case.linear(use_fast_accum=True).numpy().tobytes() == exact


@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.parametrize("out", ["bfloat16", "float16", "float32"])
def test_types(out, lines):
    types = {"bfloat16": (E4M3, E5M2), "float16": (E5M2, E5M2), "float32": (E4M3, E4M3)}[out]
    case = Case(SIZES, 200, 300, lines, types)
    close(case.linear(dtype=out), case.expected(), out, FLOAT8 if lines else BLOCKS)


@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.parametrize(
    ("n", "k", "sizes"),
    [
        (1, 1, [1]),
        (8, 16, [0, 0, 1]),
        (65, 63, [129, 1]),
        (7, 257, [5, 0]),
        (9, 0, [60, 4]),
        (130, 128, [0, 0, 0]),
        (136, 256, [1, 2, 3, 1, 0, 5, 1, 1]),
    ],
)
def test_sizes(n, k, sizes, lines):
    case = Case(sizes, n, k, lines)
    close(case.linear(), case.expected())


def test_many_groups():
    sizes = np.random.default_rng(5).integers(0, 3, 64)
    sizes[[3, 31, 32]] = [70, 0, 9]
    case = Case(sizes.tolist(), 24, 160)
    close(case.linear(), case.expected())


def test_what_tells_the_groups():
    case = Case(SIZES, 40, 144)
    x, weights, ends = case.arrays()
    first = kw.nn.grouped_linear(x, weights, ends, **case.scales()).numpy().tobytes()
    offsets = kw.asarray(np.concatenate([[0], case.ends]))
    counts = kw.asarray(np.array(SIZES, np.int32))
    for told in ({"offsets": offsets}, {"counts": counts}):
        same = kw.nn.grouped_linear(x, weights, **told, **case.scales())
        assert same.numpy().tobytes() == first


@pytest.mark.parametrize("lines", [False, True])
def test_groups_that_lie_apart(lines):
    counts, n, k = [70, 0, 5, 64], 136, 272
    case = Case([70] * 4, n, k, lines)
    x, weights, _ = case.arrays()
    scale_a = case.of_x.reshape(4, 70, *case.of_x.shape[1:])
    result = kw.nn.grouped_linear(
        x.reshape(4, 70, k),
        weights,
        counts=kw.asarray(np.array(counts, np.int32)),
        scale_a=kw.asarray(scale_a),
        scale_b=kw.asarray(case.of_w),
    )
    expected = case.expected().reshape(4, 70, n)
    for group, count in enumerate(counts):
        expected[group, count:] = np.nan
    close(result, expected)


def test_scales_of_lines_have_many_shapes():
    case = Case([3, 5], 24, 160, lines=True)
    case.of_x[:], case.of_w[:] = 0.5, np.array([[2.0], [4.0]])
    x, weights, ends = case.arrays()
    first = case.linear().numpy().tobytes()
    of_x = [np.full(shape, 0.5, np.float32) for shape in ((), (1,), (8,), (8, 1))]
    of_w = np.array([2.0, 4.0], np.float32)
    of_w = [of_w, of_w.reshape(2, 1, 1), case.of_w, case.of_w.reshape(2, 24, 1)]
    for scale_a, scale_b in zip(of_x, of_w, strict=True):
        scales = {"scale_a": kw.asarray(scale_a), "scale_b": kw.asarray(scale_b)}
        same = kw.nn.grouped_linear(x, weights, ends, **scales)
        assert same.numpy().tobytes() == first


def test_views():
    """Operands and scales in other layouts are copied, or read where they lie."""
    case = Case([9, 0, 31], 40, 272)
    x = kw.asarray(np.pad(case.x, ((0, 0), (0, 5))))[:, :272]
    weights = kw.asarray(np.ascontiguousarray(case.w.swapaxes(1, 2))).mT
    scale_a = kw.asarray(np.ascontiguousarray(case.of_x.T)).T
    scale_b = kw.asarray(np.ascontiguousarray(case.of_w.swapaxes(1, 2))).mT
    ends = kw.asarray(case.ends)
    result = kw.nn.grouped_linear(x, weights, ends, scale_a=scale_a, scale_b=scale_b)
    close(result, case.expected())


@pytest.mark.parametrize("n", [256, 200])
@pytest.mark.parametrize("lines", [False, True])
def test_what_follows(n, lines):
    case = Case(SIZES, n, 160, lines)
    for dtype in ("bfloat16", "float32"):
        bias = random(len(SIZES), n, dtype=dtype, seed=2)
        y = case.expected(bias)
        close(case.linear(kw.asarray(bias)), y)
        close(case.linear(kw.asarray(bias), activation="silu", dtype="float16"), silu(y), "float16")
        half = n // 2
        gated = silu(y[:, :half]) * y[:, half:]
        close(case.linear(kw.asarray(bias), gate="silu", dtype="float32"), gated, "float32")


def test_what_quantisation_made():
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((20, 256)), rng.standard_normal((3, 256, 256))
    q, scale_a = kw.nn.quantize_blocks(kw.asarray(x.astype(np.float32)))
    codes, tiles = kw.nn.quant.quantize(kw.asarray(w, "float32"), "fp8_block")
    ends = kw.asarray(np.array([7, 7, 20], np.int32))
    result = kw.nn.grouped_linear(q, codes, ends, scale_a=scale_a, scale_b=tiles)
    expected = np.concatenate([x[:7] @ w[0].T, x[7:] @ w[2].T])
    close(result, expected, more=0.04)


def test_nonsense_stays_within_the_rows():
    case = Case([200], 104, 144)
    x, _, _ = case.arrays()
    weights = kw.asarray(np.repeat(case.w, 4, 0))
    scales = {"scale_a": kw.asarray(case.of_x), "scale_b": kw.asarray(np.repeat(case.of_w, 4, 0))}
    ends = kw.asarray(np.array([50, -7, 2**31 - 1, 120], np.int32))
    close(kw.nn.grouped_linear(x, weights, ends, **scales), case.expected())


@pytest.mark.skipif(not kw.current_device().is_simulated, reason="only the simulated device looks")
def test_under_all_checks():
    case, lines = Case([70, 0, 67, 1], 256, 270), Case([70, 0, 67, 1], 136, 150, lines=True)
    counts = kw.asarray(np.array([3, 0, 70, 1], np.int32))
    # Rows of no group, and their scales, are never written.
    apart, of_apart = kw.empty((4, 70, 270), E4M3), kw.empty((4, 70, 3))
    apart[0, :3], of_apart[0, :3] = kw.asarray(case.x[:3]), kw.asarray(case.of_x[:3])
    apart[2], of_apart[2] = kw.asarray(case.x[:70]), kw.asarray(case.of_x[:70])
    apart[3, :1], of_apart[3, :1] = kw.asarray(case.x[:1]), kw.asarray(case.of_x[:1])
    arrays = [each.arrays() for each in (case, lines)]
    tiles = [{"tile": tile} for tile in TILES[2:]] if HOPPER else [{}]
    with kw.checks("memory", "init", "race", "sync") as report:
        for tile in tiles:
            _core._grouped_product(*arrays[0], "ends", **case.scales(), **tile)
            _core._grouped_product(*arrays[1], "ends", **lines.scales(), **tile)
        for tile in FAST_TILES if HOPPER else [None]:
            fast = {**lines.scales(), "tile": tile, "fast_accum": True}
            _core._grouped_product(*arrays[1], "ends", **fast)
        _core._grouped_product(*arrays[0], "ends", **case.scales(), gate="silu")
        _core._grouped_product(*arrays[0], "ends", **case.scales(), dtype="float32")
        _core._grouped_product(*arrays[1], "ends", **lines.scales(), gate="silu")
        _core._grouped_product(*arrays[0][:2], counts, "counts", **case.scales())
        scales = {"scale_a": of_apart, "scale_b": case.scales()["scale_b"]}
        kw.nn.grouped_linear(apart, arrays[0][1], counts=counts, **scales)
    assert report.findings == []


def test_the_rule():
    def choice(*shape, **more):
        return _core._grouped_choice(*shape, of_blocks=True, **more)

    assert choice(32768, 4096, 7168, 4).startswith("128x256, 4 stages")
    assert choice(96, 2816, 2048, 64).startswith("64x")
    assert choice(1024, 4096, 7168, 2).startswith("128x192")
    assert choice(1024, 4096, 7168, 2, capacity=512).startswith("128x256")
    assert "splits" not in choice(2, 256, 16384, 8)
    assert choice(2, 256, 16384, 8, gated=True).split(",")[0] in ("64x128", "128x128", "128x256")


def test_errors():
    case = Case([3, 5], 200, 256)
    x, w, ends = case.arrays()
    of_x, of_w = case.scales().values()

    def call(x=x, w=w, of_x=of_x, of_w=of_w, **more):
        return kw.nn.grouped_linear(x, w, ends, scale_a=of_x, scale_b=of_w, **more)

    with pytest.raises(kw.InvalidArgument, match=r"scale_a is \(8, 3\).*\(8, 256\).*rounded up"):
        call(of_x=kw.ones((8, 3)))
    with pytest.raises(kw.InvalidArgument, match=r"scale_b \(2, 1, 2\).*\(2, 200, 256\)"):
        call(of_w=of_w[:, :1])
    with pytest.raises(kw.InvalidArgument, match="rounded up"):
        call(of_x=kw.ones(8))
    with pytest.raises(kw.InvalidArgument, match="rounded up"):
        call(of_w=kw.ones((2, 200)))
    with pytest.raises(kw.ArgumentError, match=r"scale_a is float32, not .*bfloat16"):
        call(of_x=of_x.astype("bfloat16"))
    with pytest.raises(kw.ArgumentError, match=r"scale_b is float32, not .*float64"):
        call(of_w=of_w.astype("float64"))
    with pytest.raises(kw.ArgumentError, match="scale_a and scale_b are given together"):
        call(of_x=None)
    with pytest.raises(kw.ArgumentError, match=r"those of float8.*bfloat16"):
        call(x=x.astype("bfloat16"))
    with pytest.raises(kw.ArgumentError, match=r"those of float8.*weights are .*int8"):
        call(w=kw.zeros((2, 200, 256), "int8"))
    with pytest.raises(
        kw.ArgumentError, match=r"x of grouped rows is float16, bfloat16 or float32.*scale_a"
    ):
        kw.nn.grouped_linear(x, w, ends)
    with pytest.raises(kw.ArgumentError, match="float16, bfloat16 or float32, not int8"):
        call(dtype="int8")
    with pytest.raises(kw.ArgumentError, match="has their type, not float32"):
        half = x.astype("float16"), w.astype("float16")
        kw.nn.grouped_linear(*half, ends, dtype="float32")
    with pytest.raises(kw.InvalidArgument, match="bias is"):
        kw.nn.grouped_linear(x, w, ends, kw.ones((2, 201)), scale_a=of_x, scale_b=of_w)
    with pytest.raises(kw.ArgumentError, match="bias is float16, bfloat16 or float32, not float64"):
        bias = kw.ones((2, 200), "float64")
        kw.nn.grouped_linear(x, w, ends, bias, scale_a=of_x, scale_b=of_w)
    with pytest.raises(kw.InvalidArgument, match="last extents"):
        call(x=x[:, :128])
    with pytest.raises(kw.ArgumentError, match="64 or 128 rows"):
        scales = {"scale_a": of_x, "scale_b": of_w}
        _core._grouped_product(x, w, ends, "ends", tile=(256, 128, 3, 2, False, 1), **scales)
