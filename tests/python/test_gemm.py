"""Products of 16-bit floats with an epilogue, against NumPy in float64.

Devices below 9.0 do them another way: where the simulated device is one, all of this file runs once
more in a process of its own, whose device is one of 9.0.
"""

import ml_dtypes
import numpy as np
import pytest
import scipy.special
from hopper import run_at_9_0, simulated_elsewhere

import kernwright as kw
from kernwright import _core

TOLERANCE = {"bfloat16": 4e-3, "float16": 5e-4, "float32": 2e-6}
# Rows, columns, stages, warpgroups, whether they take turns, blocks of a cluster.
ONE = (64, 64, 3, 1, False, 1)
TILES = [
    ONE,
    (64, 64, 2, 1, False, 4),
    (128, 64, 3, 2, False, 2),
    (64, 64, 3, 2, True, 1),
    (64, 128, 3, 2, True, 2),
    (128, 128, 4, 2, True, 1),
    (256, 128, 3, 2, False, 1),
    (128, 192, 4, 2, False, 2),
    (128, 256, 4, 2, False, 2),
    (128, 160, 3, 2, False, 1),
    (128, 160, 3, 2, True, 2),
    (256, 160, 3, 2, False, 1),
    (64, 224, 3, 2, True, 4),
    (128, 224, 4, 2, False, 2),
    (192, 192, 4, 3, False, 2),
    (192, 128, 4, 3, False, 1),
]
HALF_BOXES = (  # of the result's copies
    (128, 160, 3, 2, False, 1),
    (128, 224, 3, 2, False, 2),
    (192, 160, 3, 3, False, 1),
)
ACTIVATIONS = {
    None: lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x * scipy.special.expit(x),
    "gelu": lambda x: x * scipy.special.ndtr(x),
    "mish": lambda x: x * np.tanh(np.logaddexp(0, x)),
    "gelu_tanh": lambda x: x / (1 + np.exp(-1.5957691216057308 * (x + 0.044715 * x**3))),
}


def random(*shape, dtype="bfloat16", seed=0):
    values = np.random.default_rng(seed).standard_normal(shape)
    return values.astype(getattr(ml_dtypes, dtype, dtype))


def wide(x):
    return np.asarray(x, np.float64)


def close(result, expected, dtype="bfloat16"):
    """As a whole, and element by element."""
    values = wide(result.numpy())
    assert result.dtype == getattr(ml_dtypes, dtype, dtype)
    assert values.shape == expected.shape
    norm = np.linalg.norm(expected)
    assert np.linalg.norm(values - expected) <= TOLERANCE[dtype] * norm
    largest = np.abs(expected).max(initial=0)
    assert np.abs(values - expected).max(initial=0) <= 4 * TOLERANCE[dtype] * largest


def in_layout(x, turned):
    """On the device: row-major or column-major."""
    return kw.asarray(np.ascontiguousarray(x.swapaxes(-1, -2))).mT if turned else kw.asarray(x)


@simulated_elsewhere
def test_on_a_simulated_device_of_9_0():
    run_at_9_0(__file__)


@pytest.mark.parametrize("tile", TILES)
def test_tiles(tile):
    number = TILES.index(tile)
    a, b = random(300, 264), random(264, 328, seed=1)
    result = _core._gemm(
        in_layout(a, number % 4 >= 2), in_layout(b, number % 2 == 0), tile=tile, splits=1
    )
    close(result, wide(a) @ wide(b))


@pytest.mark.parametrize(
    ("dtype", "turned", "out"),
    [
        ("bfloat16", (False, False), "bfloat16"),
        ("bfloat16", (False, True), "float32"),
        ("bfloat16", (True, False), "float16"),
        ("bfloat16", (True, True), "bfloat16"),
        ("float16", (False, True), "float16"),
        ("float16", (True, False), "float32"),
    ],
)
def test_layouts(dtype, turned, out):
    a, b = random(70, 200, dtype=dtype), random(200, 136, dtype=dtype, seed=1)
    left, right = in_layout(a, turned[0]), in_layout(b, turned[1])
    expected = wide(a) @ wide(b)
    close(_core._gemm(left, right, dtype=out, tile=ONE), expected, out)


@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(1, 8, 8), (1, 1, 1), (63, 65, 64), (65, 63, 1), (129, 130, 131), (64, 7, 257)],
)
def test_sizes(m, n, k):
    a, b = random(m, k), random(k, n, seed=1)
    close(_core._gemm(kw.asarray(a), kw.asarray(b), tile=ONE), wide(a) @ wide(b))


def what_follows(activation, columns, dtype, out):
    """Operands, arguments, and the result in float64."""
    a = (random(130, 72, dtype="float32", seed=4) * 0.2).astype(getattr(ml_dtypes, dtype, dtype))
    b = random(72, columns, dtype=dtype, seed=1)
    bias, c = random(columns, dtype="float32", seed=2), random(130, columns, dtype=out, seed=3)
    expected = ACTIVATIONS[activation](0.5 * (wide(a) @ wide(b)) + bias - 2 * wide(c))
    more = {"bias": kw.asarray(bias), "c": kw.asarray(c), "alpha": 0.5, "beta": -2}
    more |= {"activation": activation, "dtype": out, "tile": ONE}
    return [kw.asarray(a), kw.asarray(b)], more, expected


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_what_follows(activation):
    arrays, more, expected = what_follows(activation, 136, "bfloat16", "bfloat16")
    close(_core._gemm(*arrays, **more), expected)


@pytest.mark.parametrize("out", ["float16", "float32"])
def test_what_follows_with_rows_of_odd_length(out):
    arrays, more, expected = what_follows("relu", 101, "float16", out)
    close(_core._gemm(*arrays, **more), expected, out)
    close(_core._gemm(*arrays, **more, splits=2), expected, out)


@pytest.mark.parametrize("columns", [4, 31, 36, 132, 258, 260])
def test_results_of_four_bytes(columns):
    """Rows of whole units of 16 bytes go out as boxes, others element by element."""
    a, b = random(130, 96, dtype="float32"), random(columns, 96, dtype="float32", seed=1)
    c, bias = random(130, columns, dtype="float32", seed=2), random(columns, dtype="float32")
    whole_a, whole_b = ((x * 40).astype(np.int8) for x in (a, b))
    exact = whole_a.astype(np.int64) @ whole_b.astype(np.int64).T
    expected = np.maximum(wide(a) @ wide(b).T + bias + wide(c), 0)
    more = {"bias": kw.asarray(bias), "c": kw.asarray(c), "activation": "relu"}
    for tile in (ONE, TILES[4], TILES[5], TILES[7], TILES[-2], *HALF_BOXES):
        whole = _core._gemm(kw.asarray(whole_a), kw.asarray(whole_b).T, tile=tile)
        np.testing.assert_array_equal(whole.numpy(), exact)
        for splits in (1, 2):
            got = _core._gemm(kw.asarray(a), kw.asarray(b).T, precision="tf32", tile=tile,
                              splits=splits, **more)  # fmt: skip
            error = np.linalg.norm(got.numpy() - expected)
            assert error <= 1.5e-3 * np.linalg.norm(expected), (tile, splits)


@pytest.mark.parametrize(
    ("tile", "gate", "out", "turned"),
    [
        ((64, 128, 3, 1, False, 1), "silu", "bfloat16", False),
        ((128, 128, 3, 2, False, 2), "relu", "bfloat16", True),
        ((64, 256, 3, 2, True, 2), "silu", "float32", False),
        ((64, 128, 3, 2, True, 1), "mish", "bfloat16", True),
        ((192, 128, 4, 3, False, 1), "silu", "bfloat16", True),
        (None, "gelu", "bfloat16", True),
    ],
)
def test_gates(tile, gate, out, turned):
    a, b = random(130, 200, seed=4), (random(200, 2 * 104, seed=1) * 0.1).astype(ml_dtypes.bfloat16)
    bias = random(2 * 104, dtype="float32", seed=2)
    x = wide(a) @ wide(b)
    arrays = [kw.asarray(a), in_layout(b, turned)]
    y = x + bias
    expected = ACTIVATIONS[gate](y[:, :104]) * y[:, 104:]
    more = {"gate": gate, "dtype": out, "tile": tile}
    close(_core._gemm(*arrays, bias=kw.asarray(bias), **more), expected, out)
    if gate == "silu":
        expected = ACTIVATIONS[gate](x[:, :51]) * x[:, 51:102]
        narrow = [arrays[0], arrays[1][:, :102]]
        close(_core._gemm(*narrow, **more), expected, out)


def test_one_thing_that_follows_at_a_time():
    a, b, bias, c = random(70, 64), random(64, 72, seed=1), random(72, seed=2), random(70, 72)
    x, y = kw.asarray(a), kw.asarray(b)
    product = wide(a) @ wide(b)
    close(_core._gemm(x, y, bias=kw.asarray(bias), tile=ONE), product + wide(bias))
    close(_core._gemm(x, y, c=kw.asarray(c), tile=ONE), product + wide(c))
    close(_core._gemm(x, y, alpha=-3, tile=ONE), -3 * product)
    transposed = kw.asarray(np.ascontiguousarray(c.T)).T
    close(_core._gemm(x, y, c=transposed.astype("float32"), tile=ONE), product + wide(c))
    odd = kw.asarray(random(3 + 70 * 72))[3:].reshape(70, 72)
    close(_core._gemm(x, y, c=odd, tile=ONE, splits=1), product + wide(odd.numpy()))


@pytest.mark.parametrize("splits", [2, 3, 5])
def test_splits(splits):
    a, b = random(100, 600), random(600, 72, seed=1)
    arrays = [kw.asarray(x) for x in (a, b)]
    first = _core._gemm(*arrays, splits=splits, tile=ONE)
    close(first, wide(a) @ wide(b))
    again = _core._gemm(*arrays, splits=splits, tile=ONE)
    assert first.numpy().tobytes() == again.numpy().tobytes()
    batched = [kw.asarray(np.stack([x, -x, x])) for x in (a, b)]
    close(_core._gemm(*batched, splits=splits, tile=ONE), np.stack([wide(a) @ wide(b)] * 3))


@pytest.mark.parametrize("columns", [264, 320, 330])
@pytest.mark.parametrize("tile", HALF_BOXES)
def test_the_half_of_a_box(tile, columns):
    """The last one of a tile's columns begins inside the box before."""
    a, b, c = random(150, 136), random(136, columns, seed=1), random(150, columns, seed=2)
    bias = random(columns, dtype="float32", seed=3)
    x, y, product = kw.asarray(a), in_layout(b, True), wide(a) @ wide(b)
    more = {"bias": kw.asarray(bias), "tile": tile}
    expected = ACTIVATIONS["silu"](product + bias + wide(c))
    close(_core._gemm(x, y, c=kw.asarray(c), activation="silu", **more), expected)
    close(_core._gemm(x, kw.asarray(b), splits=2, **more), product + bias)
    close(_core._gemm(x, y, dtype="float32", **more), product + bias, "float32")
    with pytest.raises(kw.ArgumentError, match="128 or 256 columns"):
        _core._gemm(x, y, gate="silu", tile=tile)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((3, 70, 64), (3, 64, 72)),
        ((3, 70, 64), (64, 72)),
        ((70, 64), (3, 64, 72)),
        ((2, 3, 20, 64), (2, 3, 64, 72)),
        ((2, 1, 20, 64), (1, 3, 64, 72)),
        ((2, 1, 2, 20, 64), (1, 3, 1, 64, 8)),
        ((5, 1, 64), (64, 8)),
    ],
)
def test_batches(left, right):
    a, b = random(*left), random(*right, seed=1)
    close(_core._gemm(kw.asarray(a), kw.asarray(b), tile=ONE), wide(a) @ wide(b))


def test_heads_that_lie_between_tokens():
    q, k = random(2, 70, 3, 64), random(2, 40, 3, 64, seed=1)
    left, right = kw.asarray(q).transpose(0, 2, 1, 3), kw.asarray(k).transpose(0, 2, 3, 1)
    expected = wide(q).transpose(0, 2, 1, 3) @ wide(k).transpose(0, 2, 3, 1)
    close(_core._gemm(left, right, tile=ONE, dtype="float32"), expected, "float32")


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[1:],
        lambda x: x[:, 1:],
        lambda x: x[:, 8:],
        lambda x: x[::-1],
        lambda x: x[:, ::-1],
        lambda x: x[::2, ::3],
        lambda x: x.T[1:, 3:].T,
    ],
)
def test_views(view):
    a, b = random(100, 90), random(100, 90, seed=1)
    left, right = view(a), view(b).T
    on_device = [view(kw.asarray(a)), view(kw.asarray(b)).T]
    close(_core._gemm(*on_device, tile=ONE), wide(left) @ wide(right))


def test_rows_that_repeat():
    a, b = random(1, 64), random(64, 40, seed=1)
    repeated = kw.broadcast_to(kw.asarray(a), (70, 64))
    close(_core._gemm(repeated, kw.asarray(b), tile=ONE), wide(np.repeat(a, 70, 0)) @ wide(b))


@pytest.mark.parametrize("shape", [(0, 8, 8), (8, 0, 8), (0, 0, 0)])
def test_nothing(shape):
    m, n, k = shape
    assert _core._gemm(kw.zeros((m, k), "float16"), kw.zeros((k, n), "float16")).shape == (m, n)


def test_without_an_inner_dimension_what_follows_is_left():
    bias = random(5, seed=2)
    result = _core._gemm(
        kw.zeros((3, 0), "bfloat16"), kw.zeros((0, 5), "bfloat16"), bias=kw.asarray(bias)
    )
    close(result, np.broadcast_to(wide(bias), (3, 5)))


def test_special_values_stay_in_their_rows():
    a, b = random(70, 100), random(100, 72, seed=1)
    a[3, 99], a[5, 0], a[6, 1] = np.inf, np.nan, -0.0
    result = wide(_core._gemm(kw.asarray(a), kw.asarray(b), tile=ONE).numpy())
    assert np.isinf(result[3]).all()
    assert np.isnan(result[5]).all()
    rest = np.delete(np.arange(70), [3, 5])
    assert np.isfinite(result[rest]).all()
    tiny = np.full((64, 64), 2.0**-24, np.float16)
    doubled = _core._gemm(kw.asarray(tiny), kw.asarray(np.eye(64, dtype=np.float16) * 2))
    assert (doubled.numpy() == np.float16(2.0**-23)).all()


def test_matmul_takes_this_way():
    a, b = random(128, 128), random(128, 136, seed=1)
    x, y = kw.asarray(a), kw.asarray(b)
    close(x @ y, wide(a) @ wide(b))
    if kw.current_device().compute_capability >= (8, 0):
        assert (x @ y).numpy().tobytes() == _core._gemm(x, y).numpy().tobytes()
    close(kw.matmul(x, y[:, 0]), wide(a) @ wide(b[:, 0]))


def test_in_a_graph():
    a, b = kw.asarray(random(70, 264)), kw.asarray(random(264, 72, seed=1))
    _core._gemm(a, b, tile=ONE, splits=2, activation="relu")
    graph = kw.Graph()
    with graph.capture():
        result = _core._gemm(a, b, tile=ONE, splits=2, activation="relu")
    other = random(70, 264, seed=5)
    a[...] = kw.asarray(other)
    graph.launch()
    kw.synchronize()
    close(result, np.maximum(wide(other) @ wide(b.numpy()), 0))


@pytest.mark.parametrize("seed", ["1", "2"])
def test_under_all_checks(seed):
    if not kw.current_device().is_simulated:
        pytest.skip("only the simulated device looks")
    a, b = random(200, 200, seed=int(seed)), random(200, 136, seed=1)
    bias, c = kw.asarray(random(136)), kw.asarray(random(200, 136))
    odd = kw.asarray(random(200, 101, seed=1))
    x, nn, nt = kw.asarray(a), kw.asarray(b), in_layout(b, True)
    with kw.checks("memory", "init", "race", "sync") as report:
        for tile in (*TILES[:6], *TILES[-2:], *HALF_BOXES):
            _core._gemm(x, nn if seed == "1" else nt, tile=tile, splits=1)
        _core._gemm(in_layout(a, True), nt, tile=ONE, bias=bias, c=c, activation="silu")
        _core._gemm(x, odd, tile=ONE, c=odd)
        _core._gemm(x, nt[:, :133], tile=HALF_BOXES[0], bias=bias[:133])
        _core._gemm(x, nt, tile=TILES[2], dtype="float32", c=c.astype("float32"))
        _core._gemm(x, nt, tile=(64, 128, 3, 2, True, 2), gate="silu")
        _core._gemm(x, nt, tile=TILES[2], splits=2, bias=bias, c=c, activation="relu")
    assert report.findings == []


def test_products_of_products():
    """Each may begin while the one in front of it ends, and waits for it."""
    x = random(136, 264)
    result, expected = kw.asarray(x), wide(x)
    for seed in range(6):
        weights = random(264, 264, seed=seed) * np.float32(0.06)
        weights = weights.astype(x.dtype)
        tile = ONE if seed % 2 else (64, 64, 3, 1, False, 3, True)
        splits = 1 + seed % 3
        result = _core._gemm(result, in_layout(weights, seed % 2 == 0), tile=tile, splits=splits)
        expected = expected @ wide(weights)
    values = wide(result.numpy())
    assert np.linalg.norm(values - expected) <= 4 * TOLERANCE["bfloat16"] * np.linalg.norm(expected)


def test_the_rule():
    assert _core._gemm_choice(8192, 8192, 8192).startswith(("128x256", "256x128"))
    # Measured on an H100: the tiles within 7 % of the best one. Tiles of 192 rows and of 128x64
    # were measured on an H200.
    for shape, tiles in {
        (512, 28672, 4096): ("128x128", "128x192"),
        (512, 4096, 14336): ("128x128, 6 stages, 2 groups",),
        (512, 3072, 3072): ("64x192",),
        (128, 28672, 4096): ("128x128", "128x256", "64x256"),
        (256, 4096, 4096): ("64x128", "128x64"),
        (1024, 4096, 4096): ("128x256", "256x128", "128x128"),
        (1536, 1536, 1536): ("128x160", "128x176", "128x192", "64x192", "192x128"),
        (3072, 3072, 3072): ("128x192", "192x192"),
        (1032, 4096, 4096): ("192x192, 4 stages, 3 groups",),
        (4000, 4000, 4000): ("192x160, 4 stages, 3 groups",),
        (8192, 8192, 1024): ("128x256", "128x192", "256x128", "128x128"),
        (4097, 4097, 4097): ("192x176, 4 stages, 3 groups",),
        (5120, 5120, 5120): ("128x224, 4 stages, 2 groups, clusters of 2",),
        (2050, 2050, 2050): ("192x176, 4 stages, 3 groups",),
        (6152, 6152, 6144): ("128x256",),
        (4096, 7168, 2048): ("128x160",),
    }.items():
        assert _core._gemm_choice(*shape).startswith(tiles), shape
    assert "clusters" not in _core._gemm_choice(3200, 3200, 3200)
    assert "clusters" not in _core._gemm_choice(512, 4096, 4096)
    # Half a part of a turned b is loaded for nothing.
    assert "128x160" not in _core._gemm_choice(4096, 7168, 2048, b_turned=False)
    # Lines of 6000 bytes begin inside of lines of L2: a cluster shares its loads.
    for turned in (True, False):
        assert "clusters of 2" in _core._gemm_choice(3000, 3000, 3000, b_turned=turned)
    assert _core._gemm_choice(4104, 4104, 4104, b_turned=False).startswith("192x192")
    assert "splits" in _core._gemm_choice(64, 256, 16384)
    # Tiles of 64x64 bring b twice through L2: that takes longer than one way from fast memory.
    assert "splits" not in _core._gemm_choice(128, 4096, 14336)
    # Measured on an H200.
    for columns, inner, blocks in ((4096, 14336, 2), (4096, 4096, 2), (2048, 2048, 3)):
        choice = _core._gemm_choice(128, columns, inner, bandwidth=4814)
        assert choice == f"128x64, 7 stages, 2 groups, split-K over {blocks} blocks"
    for columns, inner in ((6144, 4096), (5120, 5120)):
        assert "64x96" in _core._gemm_choice(128, columns, inner, bandwidth=4814)
    assert "gather" not in _core._gemm_choice(256, 6144, 4096, bandwidth=4814)
    assert "2 blocks" in _core._gemm_choice(64, 4096, 7168, in_bytes=4, bandwidth=4814)
    assert "splits" not in _core._gemm_choice(128, 7168, 16384, in_bytes=4, bandwidth=4814)
    assert "splits" not in _core._gemm_choice(64, 3072, 3072, bandwidth=4814)
    assert "splits" not in _core._gemm_choice(4096, 4096, 4096)
    assert "splits" not in _core._gemm_choice(128, 128, 64)


def test_errors():
    x, y = kw.zeros((8, 16), "float16"), kw.zeros((16, 8), "float16")
    with pytest.raises(kw.InvalidArgument, match=r"Incompatible dimensions.*\(8, 16\).*\(8, 16\)"):
        _core._gemm(x, x)
    with pytest.raises(kw.InvalidArgument, match="same device and type"):
        _core._gemm(x, y.astype("bfloat16"))
    with pytest.raises(kw.ArgumentError, match="float16 or bfloat16"):
        _core._gemm(x.astype("int32"), y.astype("int32"))
    with pytest.raises(kw.ArgumentError, match="not int32"):
        _core._gemm(x, y, dtype="int32")
    with pytest.raises(kw.InvalidArgument, match=r"bias is .*\(7,\)"):
        _core._gemm(x, y, bias=kw.zeros(7, "float16"))
    with pytest.raises(kw.InvalidArgument, match="c is "):
        _core._gemm(x, y, c=kw.zeros(8, "float16"))
    with pytest.raises(kw.ArgumentError, match=r"bias is .*int32"):
        _core._gemm(x, y, bias=kw.zeros(8, "int32"))
    for tile, rule in [
        ((96, 64, 3, 1, False, 1), "multiple of 64"),
        ((128, 80, 3, 2, False, 1), "64, 96, 128, 160, 176, 192, 224 or 256 columns"),
        ((256, 256, 3, 2, False, 1), "192 accumulators"),
        ((192, 224, 3, 3, False, 1), "96 accumulators"),
        ((256, 64, 3, 4, False, 1), "1 to 3 groups"),
        ((128, 256, 9, 2, False, 1), "shared memory"),
        ((64, 64, 3, 1, True, 1), "take turns"),
        ((64, 64, 3, 1, False, 3), "clusters of 1, 2 or 4"),
    ]:
        with pytest.raises(kw.ArgumentError, match=rule):
            _core._gemm(x, y, tile=tile)
    with pytest.raises(kw.InvalidArgument, match="odd"):
        _core._gemm(x, y[:, :7], gate="silu")
    with pytest.raises(kw.ArgumentError, match="neither c"):
        _core._gemm(x, y, gate="silu", c=y)
    with pytest.raises(kw.ArgumentError, match="128 or 256 columns"):
        _core._gemm(x, kw.zeros((16, 32), "float16"), gate="silu", tile=ONE)
    with pytest.raises(kw.ArgumentError, match="splits"):
        _core._gemm(x, y, splits=-1)
    with pytest.raises(kw.ArgumentError):
        _core._gemm(x, y, activation="nothing")
    with pytest.raises(kw.ArgumentError):
        _core._gemm(np.zeros((8, 16), np.float16), y)
