"""Products by mma.sync: tiles, layouts and types against NumPy, integers exactly.

float8 begins at 8.9: where the simulated device is an older one, its tests run once more in a
process of their own, whose device is one of 9.0.
"""

import ml_dtypes
import numpy as np
import pytest
from hopper import run_at_9_0, simulated_elsewhere

import kernwright as kw
from kernwright import _core

CAPABILITY = kw.current_device().compute_capability
HALVES = {"bfloat16": 4e-3, "float16": 5e-4}
TF32 = 5e-4
SMALL = (64, 64, 3)
TILES = [SMALL, (64, 64, 2), (128, 64, 4), (128, 128, 3), (128, 256, 4)]
EDGES = [(1, 1, 1), (65, 7, 31), (63, 130, 33), (8, 200, 129), (130, 66, 64)]

pytestmark = pytest.mark.skipif(CAPABILITY < (8, 0), reason="mma.sync as here begins at 8.0")


def random(*shape, dtype="bfloat16", seed=0):
    values = np.random.default_rng(seed).standard_normal(shape)
    return values.astype(getattr(ml_dtypes, dtype, dtype))


def integers(*shape, seed=0):
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


def wide(x):
    return np.asarray(x, np.float64)


def close(result, expected, tolerance):
    values = wide(result.numpy())
    assert values.shape == expected.shape
    assert np.linalg.norm(values - expected) <= tolerance * np.linalg.norm(expected)
    largest = np.abs(expected).max(initial=0)
    assert np.abs(values - expected).max(initial=0) <= 4 * tolerance * largest


def in_layout(x, turned):
    return kw.asarray(np.ascontiguousarray(x.swapaxes(-1, -2))).mT if turned else kw.asarray(x)


def product(a, b, **options):
    return _core._gemm(a, b, kernel="mma", **options)


@pytest.mark.parametrize(
    ("tile", "layout"),
    [
        *((SMALL, layout) for layout in ((0, 0), (0, 1), (1, 0), (1, 1))),
        *((TILES[i], (i % 2, i // 2 % 2)) for i in range(1, 5)),
        *((TILES[i], (0, 1)) for i in (2, 4)),
        (TILES[4], (1, 0)),
    ],
)
def test_tiles_and_layouts(tile, layout):
    a, b = random(136, 104), random(104, 264, seed=1)
    operands = [in_layout(x, turned) for x, turned in zip((a, b), layout, strict=True)]
    close(product(*operands, mma_tile=tile, splits=1), wide(a) @ wide(b), HALVES["bfloat16"])


@pytest.mark.parametrize("shape", EDGES)
@pytest.mark.parametrize("dtype", HALVES)
def test_ragged_edges(shape, dtype):
    m, n, k = shape
    a, b = random(m, k, dtype=dtype), random(k, n, dtype=dtype, seed=1)
    for turned in (False, True):
        result = product(in_layout(a, turned), in_layout(b, not turned))
        assert result.dtype == a.dtype
        close(result, wide(a) @ wide(b), HALVES[dtype])


def test_views():
    a, b = random(80, 103), random(103, 90, seed=1)
    x, y = kw.asarray(a), kw.asarray(b)
    for i in (slice(1, None), slice(None, None, -1), slice(3, 90, 2)):
        close(product(x[:, i], y[i]), wide(a[:, i]) @ wide(b[i]), HALVES["bfloat16"])
    close(product(x[1::2], y[:, 1:]), wide(a[1::2]) @ wide(b[:, 1:]), HALVES["bfloat16"])
    repeated = kw.broadcast_to(x[:1], (70, 103))
    close(product(repeated, y), wide(np.repeat(a[:1], 70, 0)) @ wide(b), HALVES["bfloat16"])


@pytest.mark.parametrize("batches", [((3,), (3,)), ((2, 3), (3,)), ((3,), ()), ((2, 1), (1, 3))])
def test_batches(batches):
    a = random(*batches[0], 20, 40)
    b = random(*batches[1], 40, 24, seed=1)
    close(product(kw.asarray(a), kw.asarray(b)), wide(a) @ wide(b), HALVES["bfloat16"])
    c = integers(*batches[0], 20, 40)
    d = integers(*batches[1], 40, 24, seed=1)
    exact = c.astype(np.int64) @ d.astype(np.int64)
    assert (product(kw.asarray(c), kw.asarray(d)).numpy() == exact).all()


@pytest.mark.parametrize("out", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("splits", [1, 3])
def test_what_follows(out, splits):
    a, b = random(70, 300), random(300, 65, seed=1)
    bias, c = random(65, dtype="float32", seed=2), random(70, 65, dtype=out, seed=3)
    result = product(
        kw.asarray(a), kw.asarray(b), bias=kw.asarray(bias), c=kw.asarray(c), alpha=0.5, beta=2,
        activation="relu", dtype=out, splits=splits,
    )  # fmt: skip
    assert result.dtype == getattr(ml_dtypes, out, out)
    expected = np.maximum(0.5 * (wide(a) @ wide(b)) + wide(bias) + 2 * wide(c), 0)
    close(result, expected, HALVES.get(out, 2e-6))


def test_a_long_inner_dimension_is_split_by_the_rule():
    a, b = random(40, 2100), random(2100, 36, seed=1)
    bias = random(36, seed=2)
    result = product(kw.asarray(a), kw.asarray(b), bias=kw.asarray(bias), activation="relu")
    expected = np.maximum(wide(a) @ wide(b) + wide(bias), 0)
    close(result, expected, HALVES["bfloat16"])


def test_an_activation_of_many_instructions_and_a_gate():
    a, b = random(70, 96), random(96, 64, seed=1)
    total = wide(a) @ wide(b)
    mish = total * np.tanh(np.logaddexp(0, total))
    close(product(kw.asarray(a), kw.asarray(b), activation="mish"), mish, HALVES["bfloat16"])
    gated = total[:, :32] / (1 + np.exp(-total[:, :32])) * total[:, 32:]
    close(product(kw.asarray(a), kw.asarray(b), gate="silu"), gated, HALVES["bfloat16"])


@pytest.mark.parametrize("shape", EDGES)
def test_tf32(shape):
    m, n, k = shape
    a, b = random(m, k, dtype="float32"), random(k, n, dtype="float32", seed=1)
    for turned in (False, True):
        x, y = in_layout(a, turned), in_layout(b, turned)
        result = product(x, y, precision="tf32")
        assert result.dtype == np.float32
        close(result, wide(a) @ wide(b), TF32)
        close(kw.matmul(x, y), wide(a) @ wide(b), 2e-6)


def test_tf32_of_one_call():
    """Products that may be rounded are; those with few rows, and of the default, are not."""
    exact = 2e-6
    a, b = random(2, 70, 160, dtype="float32"), random(160, 130, dtype="float32", seed=1)
    x, y, bias = kw.asarray(a), kw.asarray(b), random(130, dtype="float32", seed=2)
    wanted = wide(a) @ wide(b)
    close(kw.matmul(x, y, precision="float32"), wanted, exact)
    for few in (kw.matmul(x[0, :3], y, precision="tf32"), kw.matmul(x[0, 0], y, precision="tf32")):
        close(few, wanted[0, :3] if few.ndim == 2 else wanted[0, 0], exact)
    positive = np.maximum(wanted + bias, 0) + wanted
    residual = kw.asarray(wanted.astype(np.float32))
    layer = {"activation": "relu", "residual": residual}
    rounded = [
        (lambda p: kw.matmul(x, y, precision=p), wanted),
        (lambda p: kw.nn.linear(x, y.T, kw.asarray(bias), precision=p, **layer), positive),
        (lambda p: kw.nn.linear(x, y.T, gate="relu", precision=p),
         np.maximum(wanted[..., :65], 0) * wanted[..., 65:]),
    ]  # fmt: skip
    for run, expected in rounded:
        close(run(None), expected, exact)
        close(run("tf32"), expected, 2e-3)
        error = np.linalg.norm(wide(run("tf32").numpy()) - expected) / np.linalg.norm(expected)
        assert error > 10 * exact
    for shape in ((0, 8), (8, 0)):
        got = kw.matmul(kw.ones(shape), kw.ones((shape[1], 5)), precision="tf32")
        assert got.shape == (shape[0], 5) and (got.numpy() == 0).all()


def test_other_precisions_are_refused():
    x, half = kw.ones((20, 32)), kw.ones((20, 32), "float16")
    packed = kw.nn.quant.pack(kw.nn.quant.quantize(x, "q8_0"), "q8_0")
    for call, match in [
        (lambda: kw.matmul(x, x.T, precision="fp32"), "float32, tf32 or None, not fp32"),
        (lambda: kw.nn.linear(x, x, precision="high"), "float32, tf32 or None, not high"),
        (lambda: kw.matmul(half, half.T, precision="tf32"), "tf32 is a precision of float32"),
        (lambda: kw.nn.linear(half, half, precision="tf32"), "tf32 is a precision of float32"),
        (lambda: kw.nn.linear(x, packed, precision="tf32"), "leave precision out"),
    ]:
        with pytest.raises((kw.ArgumentError, kw.InvalidArgument), match=match):
            call()


def test_tf32_rounds_to_nearest():
    ones = kw.ones((16, 8), "float32")
    near = kw.full((8, 8), 1 + 2**-11 + 2**-13, "float32")
    assert (product(ones, near, precision="tf32").numpy() == 8 * (1 + 2**-10)).all()


def test_tf32_with_what_follows_in_parts():
    a, b = random(40, 900, dtype="float32"), random(900, 36, dtype="float32", seed=1)
    bias = random(36, dtype="float32", seed=2)
    for splits in (1, 4):
        result = product(
            kw.asarray(a), kw.asarray(b), precision="tf32", bias=kw.asarray(bias), splits=splits
        )
        close(result, wide(a) @ wide(b) + bias, TF32)


@pytest.mark.parametrize("shape", EDGES)
def test_int8_is_exact(shape):
    m, n, k = shape
    a, b = integers(m, k), integers(k, n, seed=1)
    exact = a.astype(np.int64) @ b.astype(np.int64)
    for turned in (False, True):
        x, y = in_layout(a, turned), in_layout(b, turned)
        result = product(x, y)
        assert result.dtype == np.int32
        assert (result.numpy() == exact).all()
        assert (product(x, y, dtype="int8").numpy() == exact.astype(np.int8)).all()


@pytest.mark.parametrize("tile", [TILES[1], TILES[3], TILES[4]])
def test_tiles_of_int8(tile):
    a, b = integers(140, 200), integers(200, 260, seed=1)
    result = _core._gemm(kw.asarray(a), in_layout(b, True), mma_tile=tile)
    assert (result.numpy() == a.astype(np.int64) @ b.astype(np.int64)).all()


def test_extreme_int8():
    a = np.full((16, 4096), -128, np.int8)
    result = _core._gemm(kw.asarray(a), kw.asarray(a).T).numpy()
    assert (result == 4096 * 16384).all()


def test_matmul_of_int8_wraps_around():
    a, b = integers(128, 128), integers(128, 136, seed=1)
    result = kw.asarray(a) @ kw.asarray(b)
    assert result.dtype == np.int8
    assert (result.numpy() == a @ b).all()


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("shape", EDGES)
def test_float8(dtype, shape):
    m, n, k = shape
    a, b = random(m, k, dtype=dtype), random(k, n, dtype=dtype, seed=1)
    result = product(kw.asarray(a), kw.asarray(b))
    assert result.dtype == np.float32
    close(result, wide(a) @ wide(b), 2e-6)
    close(product(kw.asarray(a), kw.asarray(b), dtype="float16"), wide(a) @ wide(b), 5e-4)


@simulated_elsewhere
def test_float8_on_a_simulated_device_of_9_0():
    run_at_9_0(__file__)


def test_special_values_stay_in_their_rows():
    a, b = random(70, 100), random(100, 72, seed=1)
    a[3, 99], a[5, 0], a[6, 1] = np.inf, np.nan, -0.0
    result = wide(product(kw.asarray(a), kw.asarray(b)).numpy())
    assert np.isinf(result[3]).all()
    assert np.isnan(result[5]).all()
    assert np.isfinite(np.delete(result, [3, 5], 0)).all()


def test_the_same_each_time_and_in_a_graph():
    a, b = kw.asarray(random(70, 1000)), kw.asarray(random(1000, 72, seed=1))
    once = product(a, b, splits=3).numpy().tobytes()
    assert product(a, b, splits=3).numpy().tobytes() == once
    graph = kw.Graph()
    with graph.capture():
        result = product(a, b, splits=3)
    other = random(70, 1000, seed=5)
    a[...] = kw.asarray(other)
    graph.launch()
    kw.synchronize()
    close(result, wide(other) @ wide(b.numpy()), HALVES["bfloat16"])


def test_the_plain_kernel_on_request():
    a, b = random(20, 40), random(40, 24, seed=1)
    result = _core._gemm(kw.asarray(a), kw.asarray(b), kernel="plain")
    close(result, wide(a) @ wide(b), HALVES["bfloat16"])
    c, d = integers(20, 40), integers(40, 24, seed=1)
    whole = _core._gemm(kw.asarray(c), kw.asarray(d), kernel="plain").numpy()
    assert whole.dtype == np.int32
    assert (whole == c.astype(np.int64) @ d.astype(np.int64)).all()


def test_nothing():
    assert product(kw.zeros((0, 8), "int8"), kw.zeros((8, 4), "int8")).shape == (0, 4)
    empty = product(kw.zeros((3, 0), "int8"), kw.zeros((0, 4), "int8"))
    assert (empty.numpy() == np.zeros((3, 4), np.int32)).all()
    a, b = kw.zeros((3, 0), "float32"), kw.zeros((0, 4), "float32")
    assert (_core._gemm(a, b, precision="tf32").numpy() == 0).all()


@pytest.mark.skipif(not kw.current_device().is_simulated, reason="only the simulated device looks")
def test_under_all_checks():
    a, b = random(140, 101), random(101, 131, seed=1)
    bias, c = kw.asarray(random(131)), kw.asarray(random(140, 131))
    x, y = kw.asarray(a), kw.asarray(b)
    singles = x.astype("float32"), y.astype("float32")
    bytes_a, bytes_b = kw.asarray(integers(70, 101)), kw.asarray(integers(101, 67))
    with kw.checks("memory", "init", "race", "sync") as report:
        for tile in (SMALL, TILES[2]):
            product(x, y, mma_tile=tile, splits=1, bias=bias, c=c)
            product(in_layout(a, True), in_layout(b, True), mma_tile=tile, splits=1)
        product(x, in_layout(b, True), mma_tile=TILES[4], splits=1)
        product(x, y, mma_tile=SMALL, splits=2, activation="relu")
        product(*singles, precision="tf32")
        product(bytes_a, bytes_b)
        _core._gemm(bytes_a, bytes_b, dtype="int8", mma_tile=TILES[3])
    assert report.findings == []


def test_errors():
    x, y = kw.zeros((8, 16), "int8"), kw.zeros((16, 8), "int8")
    for options in (
        {"alpha": 2.0},
        {"bias": kw.zeros(8, "float32")},
        {"c": kw.zeros((8, 8), "float32")},
        {"activation": "relu"},
        {"gate": "silu"},
    ):
        with pytest.raises(kw.ArgumentError, match="nothing follows"):
            _core._gemm(x, y, **options)
    with pytest.raises(kw.ArgumentError, match="int32 or int8, not float32"):
        _core._gemm(x, y, dtype="float32")
    with pytest.raises(kw.ArgumentError, match="tf32 is a precision of float32"):
        _core._gemm(x, y, precision="tf32")
    with pytest.raises(kw.ArgumentError, match="tf32 or None, not bf16x3"):
        _core._gemm(x, y, precision="bf16x3")
    with pytest.raises(kw.ArgumentError, match="auto, mma or plain"):
        _core._gemm(x, y, kernel="fast")
    for tile in ((64, 128, 3), (128, 128, 1), (128, 128, 5)):
        with pytest.raises(kw.ArgumentError, match="2 to 4 stages"):
            _core._gemm(x, y, mma_tile=tile)
    with pytest.raises(kw.ArgumentError, match="matmul"):
        _core._gemm(kw.zeros((8, 8), "int32"), kw.zeros((8, 8), "int32"))
