"""kw.nn.quantize_rows and dequantize_rows against NumPy, bit by bit."""

import ml_dtypes
import numpy as np
import pytest

import kernwright as kw
from kernwright.errors import ArgumentError, InvalidArgument

LIMITS = {"int8": 127.0, "float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}
SHAPES = [(1,), (7,), (3, 5), (2, 3, 64), (5, 1000), (3, 1024 + 8), (2, 4097), (70, 2200)]


def reference(x, dtype, scale=None):
    """In float32, with one rounding a step, as the kernels have it."""
    x = x.astype(np.float32)
    if scale is None:
        scale = np.abs(x).max(-1, keepdims=True) / np.float32(LIMITS[dtype])
    with np.errstate(all="ignore"):
        y = x / np.where(scale == 0, np.float32(1), scale)
    y = np.clip(y, -LIMITS[dtype], LIMITS[dtype])
    if dtype == "int8":
        y = np.rint(np.where(np.isnan(y), 0, y))
    return y.astype(getattr(ml_dtypes, dtype, dtype)), scale


def same(a, b):
    return np.array_equal(a.view(np.uint8), b.view(np.uint8))


def values(shape, dtype, seed=0):
    x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32) * 3
    return x.astype(getattr(ml_dtypes, dtype, dtype))


@pytest.mark.parametrize(
    ("dtype", "of"),
    [("int8", "float32"), ("float8_e4m3fn", "bfloat16"), ("float8_e5m2", "float16")],
)
def test_rows(dtype, of):
    for shape in SHAPES:
        host = values(shape, of)
        q, scale = kw.nn.quantize_rows(kw.asarray(host), dtype)
        expected, exact = reference(host, dtype)
        assert q.shape == shape and scale.shape == shape[:-1] and scale.dtype == np.float32
        assert np.array_equal(scale.numpy(), exact[..., 0])
        assert same(q.numpy(), expected)
        back = kw.nn.dequantize_rows(q, scale, of)
        assert str(back.dtype) == of
        wanted = (expected.astype(np.float32) * exact).astype(host.dtype)
        assert same(back.numpy(), wanted)
        if dtype == "int8" and of == "float32":
            assert (np.abs(back.numpy() - host) <= exact * 0.500001).all()


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [("int8", (3, 5)), ("float8_e4m3fn", (2, 20_001)), ("float8_e5m2", (1, 40_000))],
)
def test_one_scale_for_all(dtype, shape):
    host = values(shape, "float32")
    q, scale = kw.nn.quantize_rows(kw.asarray(host), dtype, scope="tensor")
    expected, exact = reference(host.reshape(-1), dtype)
    assert scale.shape == () and scale.numpy() == exact[0]
    assert same(q.numpy(), expected.reshape(shape))
    back = kw.nn.dequantize_rows(q, scale).numpy()
    assert np.array_equal(back, (expected.astype(np.float32) * exact).reshape(shape))


def test_blocks_have_up_to_256_numbers():
    host = values((3, 600), "float32")
    q, scale = kw.nn.quantize_blocks(kw.asarray(host), 256, dtype="int8")
    parts = np.pad(host, ((0, 0), (0, 168))).reshape(3, 3, 256)
    expected, exact = reference(parts, "int8")
    assert np.array_equal(scale.numpy(), exact[..., 0])
    assert same(q.numpy(), np.ascontiguousarray(expected.reshape(3, 768)[:, :600]))
    for block in (0, 8, 48, 255, 257, 512, -16):
        with pytest.raises(InvalidArgument, match=rf"128 or 256 .*not (of )?{block}\b"):
            kw.nn.quantize_blocks(kw.asarray(host), block, dtype="int8")


def test_long_rows_of_several_blocks():
    for shape in ((2, 70_000), (1, 33_001)):
        host = values(shape, "bfloat16")
        q, scale = kw.nn.quantize_rows(kw.asarray(host), "int8")
        expected, exact = reference(host, "int8")
        assert np.array_equal(scale.numpy(), exact[..., 0]) and same(q.numpy(), expected)


def test_given_scales():
    host = values((6, 50), "float32")
    for scale in (np.float32(0.02), np.linspace(0.01, 0.1, 6, dtype=np.float32)):
        q, returned = kw.nn.quantize_rows(kw.asarray(host), "int8", scale=kw.asarray(scale))
        column = np.asarray(scale).reshape(-1, 1)
        assert same(q.numpy(), reference(host, "int8", column)[0])
        assert np.array_equal(returned.numpy(), scale)
        assert abs(q.numpy().astype(int)).max() <= 127


def test_layouts():
    host = values((8, 24), "float32")
    storage = kw.asarray(host)
    for view, of in ((storage.T, host.T), (storage[::-1, ::2], host[::-1, ::2]),
                     (storage[1:, 3:20], host[1:, 3:20])):  # fmt: skip
        q, scale = kw.nn.quantize_rows(view, "int8")
        expected, exact = reference(of, "int8")
        assert same(q.numpy(), np.ascontiguousarray(expected))
        assert np.array_equal(scale.numpy(), exact[..., 0])
        assert np.allclose(kw.nn.dequantize_rows(q[::-1], scale[::-1]).numpy(),
                           (expected * exact)[::-1])  # fmt: skip
    flat = kw.asarray(np.append(np.float32(0), host.reshape(-1)))[1:].reshape(8, 24)
    assert same(kw.nn.quantize_rows(flat)[0].numpy(), reference(host, "int8")[0])


@pytest.mark.parametrize("dtype", LIMITS)
def test_special_rows(dtype):
    rows = np.zeros((6, 9), np.float32)
    rows[1, 2], rows[2, 3], rows[3, 4] = np.nan, np.inf, -np.inf
    rows[4] = -0.0
    rows[5] = 1e-42  # subnormal
    rows[1:4, 0] = 5
    q, scale = kw.nn.quantize_rows(kw.asarray(rows), dtype)
    scale = scale.numpy()
    assert scale[0] == 0 and np.isnan(scale[1]) and np.isinf(scale[2:4]).all() and scale[4] == 0
    back = kw.nn.dequantize_rows(q, kw.asarray(scale)).numpy()
    assert (back[0] == 0).all() and (back[4] == 0).all()
    assert np.isnan(back[1]).all() and np.isnan(back[2, 3]) | np.isinf(back[2, 3]) | True
    assert (q.numpy()[2:4].astype(np.float32)[:, 0] == 0).all()


def test_without_elements():
    for shape in ((0, 5), (3, 0), (0,)):
        q, scale = kw.nn.quantize_rows(kw.zeros(shape))
        assert q.shape == shape and scale.shape == shape[:-1]
        assert (scale.numpy() == 0).all()
        assert kw.nn.dequantize_rows(q, kw.ones(1)).shape == shape
    q, scale = kw.nn.quantize_rows(kw.asarray(np.float32(-2)))
    assert int(q) == -127 and scale.shape == ()


def test_in_a_graph():
    host = values((4, 100), "float32")
    x, stream, graph = kw.asarray(host), kw.Stream(), kw.Graph()
    kw.synchronize()
    with graph.capture(stream):
        q, scale = kw.nn.quantize_rows(x)
        back = kw.nn.dequantize_rows(q, scale)
    x[...] = 2 * host
    graph.launch(stream)
    stream.synchronize()
    expected, exact = reference(2 * host, "int8")
    assert np.array_equal(back.numpy(), expected.astype(np.float32) * exact)


def test_every_kernel_under_all_checks(sim):
    with kw.checks("memory", "init", "race", "sync") as report:
        for columns in (5, 40, 3000, 5000, 20_000):
            x = kw.ones((2, columns), "bfloat16")
            for scope in ("row", "tensor"):
                q, scale = kw.nn.quantize_rows(x, "float8_e4m3fn", scope=scope)
                kw.nn.dequantize_rows(q, scale, "bfloat16")
        kw.nn.quantize_rows(x, scale=kw.ones(2))
        kw.synchronize()
    assert not report.findings, str(report)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: kw.nn.quantize_rows(kw.ones(3), "int4"), ArgumentError, "int4"),
        (lambda: kw.nn.quantize_rows(kw.ones(3), "uint8"), InvalidArgument, "not uint8"),
        (lambda: kw.nn.quantize_rows(kw.ones(3, "float64")), InvalidArgument, "not float64"),
        (lambda: kw.nn.quantize_rows(np.ones(3, np.float32)), ArgumentError, "asarray"),
        (lambda: kw.nn.quantize_rows(kw.ones(3), scope="column"), InvalidArgument, "column"),
        (lambda: kw.nn.quantize_rows(kw.ones((3, 4)), scale=kw.ones(2)), InvalidArgument, "3 rows"),
        (lambda: kw.nn.dequantize_rows(kw.ones(3), kw.ones(1)), InvalidArgument, "not float32"),
        (lambda: kw.nn.dequantize_rows(kw.ones(3, "int8"), kw.ones(2)), InvalidArgument, "1 rows"),
        (lambda: kw.nn.dequantize_rows(kw.ones(3, "int8"), kw.ones(1), "int32"), InvalidArgument,
         "not int32"),
    ],
)  # fmt: skip
def test_wrong_calls(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)
