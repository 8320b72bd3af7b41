"""Norms against NumPy in float64: forward, with residual and quantised, backward."""

import ml_dtypes
import numpy as np
import pytest

import kernwright as kw
from kernwright import nn

DTYPES = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 2e-6, "float64": 1e-14}
LENGTHS = (1, 3, 8, 31, 127, 1000, 1024, 1025, 4100)


def random(shape, dtype="float32", seed=0, mean=0.5):
    values = np.random.default_rng(seed).normal(size=shape) + mean
    return values.astype(getattr(ml_dtypes, dtype, dtype))


def wide(x):
    return np.asarray(x, np.float64)


def normal(kind, x, eps):
    """x_hat and what dx is divided by, over the last axis."""
    x = wide(x)
    if kind == "layer":
        x = x - x.mean(-1, keepdims=True)
    if kind == "l2":
        divisor = np.maximum(np.sqrt((x * x).sum(-1, keepdims=True)), eps)
    else:
        divisor = np.sqrt((x * x).mean(-1, keepdims=True) + eps)
    return x / divisor, divisor


def gradients(kind, dy, x, weight=None, eps=1e-5):
    """dx, dweight, dbias by the formulas."""
    hat, divisor = normal(kind, x, eps)
    dy = wide(dy)
    g = dy if weight is None else dy * wide(weight)
    slope = (g * hat).sum(-1, keepdims=True) if kind == "l2" else (g * hat).mean(-1, keepdims=True)
    mean = g.mean(-1, keepdims=True) if kind == "layer" else 0
    rows = tuple(range(dy.ndim - 1))
    return (g - mean - hat * slope) / divisor, (dy * hat).sum(rows), dy.sum(rows)


def close(result, expected, tolerance):
    """Element by element against the largest, and as a whole."""
    values, expected = wide(result.numpy()), wide(expected)
    assert values.shape == expected.shape
    if expected.size:
        assert np.abs(values - expected).max() <= 4 * tolerance * max(np.abs(expected).max(), 1e-30)
    norm = np.linalg.norm(expected)
    assert np.linalg.norm(values - expected) <= tolerance * max(norm, 1e-30)


@pytest.mark.parametrize("n", LENGTHS)
def test_rows(n):
    x, weight, bias = random((5, n)), random(n, seed=1), random(n, seed=2)
    arrays = [kw.asarray(v) for v in (x, weight, bias)]
    close(nn.rms_norm(*arrays[:2]), normal("rms", x, 1e-6)[0] * weight, 2e-6)
    close(nn.layer_norm(*arrays), normal("layer", x, 1e-5)[0] * weight + bias, 4e-6)
    close(nn.l2_norm(arrays[0]), normal("l2", x, 1e-12)[0], 2e-6)


def test_the_smallest_norm_of_l2_norm():
    """Rows below eps, 1e-12 where it is left out, are divided by it."""
    rows = np.array([[3e-13, 4e-13], [3e-12, 4e-12]], np.float32)
    x, dy = kw.asarray(rows), kw.ones((2, 2))
    np.testing.assert_allclose(nn.l2_norm(x).numpy(), [[0.3, 0.4], [0.6, 0.8]], rtol=1e-5)
    np.testing.assert_allclose(nn.l2_norm(x, eps=1e-11).numpy(), rows / 1e-11, rtol=1e-5)
    below, above = nn.l2_norm_backward(dy, x).numpy()
    np.testing.assert_allclose(below, [1e12, 1e12], rtol=1e-5)
    np.testing.assert_allclose(
        above, gradients("l2", np.ones((1, 2)), rows[1:], eps=1e-12)[0][0], rtol=1e-4
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [96, 1536])
def test_dtypes(dtype, n):
    x, weight, bias = random((3, n), dtype), random(n, dtype, 1), random(n, dtype, 2)
    arrays = [kw.asarray(v) for v in (x, weight, bias)]
    y = nn.layer_norm(*arrays)
    assert y.dtype == x.dtype
    close(y, normal("layer", x, 1e-5)[0] * wide(weight) + wide(bias), DTYPES[dtype])
    mixed = kw.asarray(random(n, "float32", 3))
    close(nn.rms_norm(arrays[0], mixed), normal("rms", x, 1e-6)[0] * mixed.numpy(), DTYPES[dtype])


@pytest.mark.parametrize(
    ("shape", "dtype"), [((2, 20000), "float32"), ((1, 70001), "float32"), ((3, 40000), "bfloat16")]
)
def test_long_rows(shape, dtype):
    x, weight, bias = random(shape, dtype), random(shape[1]), random(shape[1], seed=1)
    arrays = [kw.asarray(v) for v in (x, weight, bias)]
    close(nn.rms_norm(*arrays[:2]), normal("rms", x, 1e-6)[0] * weight, DTYPES[dtype])
    close(nn.layer_norm(*arrays), normal("layer", x, 1e-5)[0] * weight + bias, DTYPES[dtype])
    residual = random(shape, dtype, 4)
    y, total = nn.rms_norm(*arrays[:2], residual=kw.asarray(residual))
    summed = (x.astype(np.float32) + residual.astype(np.float32)).astype(x.dtype)
    np.testing.assert_array_equal(total.numpy(), summed)
    close(y, normal("rms", summed, 1e-6)[0] * weight, DTYPES[dtype])


def test_a_mean_far_from_zero():
    """The variance is that of what is left when the mean is gone."""
    for n in (500, 3000, 20000):
        x = random((2, n), mean=3000.0)
        close(nn.layer_norm(kw.asarray(x)), normal("layer", x, 1e-5)[0], 1e-3)


def test_more_axes_than_one():
    x, weight, bias = random((3, 4, 6, 5)), random((6, 5), seed=1), random((6, 5), seed=2)
    y = nn.layer_norm(*(kw.asarray(v) for v in (x, weight, bias)))
    flat = normal("layer", x.reshape(12, 30), 1e-5)[0].reshape(x.shape)
    close(y, flat * weight + bias, 4e-6)
    y = nn.layer_norm(kw.asarray(x), bias=kw.asarray(bias[0]))
    close(y, normal("layer", x, 1e-5)[0] + bias[0], 4e-6)


def test_views():
    x, weight = random((6, 40, 33)), random(66, seed=1)
    base, scales = kw.asarray(x), kw.asarray(weight)
    for view, same in (
        (base[:, ::2], x[:, ::2]),
        (base[::-1], x[::-1]),
        (base[:, :, ::-1], x[:, :, ::-1]),
        (base.transpose(1, 0, 2), x.transpose(1, 0, 2)),
    ):
        y = nn.rms_norm(view, scales[::2], residual=view)[0]
        close(y, normal("rms", same * 2, 1e-6)[0] * weight[::2], 2e-6)
    close(nn.l2_norm(base, 0), normal("l2", x.T, 1e-12)[0].T, 2e-6)
    close(
        nn.l2_norm(base, 1), normal("l2", x.transpose(0, 2, 1), 1e-12)[0].transpose(0, 2, 1), 2e-6
    )
    flat, part = random((3, 65)), random(65, seed=3)
    close(
        nn.rms_norm(kw.asarray(flat)[:, 1:], kw.asarray(part)[1:]),
        normal("rms", flat[:, 1:], 1e-6)[0] * part[1:],
        2e-6,
    )


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 5)])
def test_nothing(shape):
    x, weight = kw.zeros(shape), kw.ones(shape[-1])
    assert nn.layer_norm(x, weight, weight).shape == shape
    assert [part.shape for part in nn.layer_norm_backward(x, x, weight)] == [
        shape,
        *[shape[-1:]] * 2,
    ]
    assert not nn.rms_norm_backward(x, x, weight)[1].numpy().any()
    assert nn.group_norm(kw.zeros((0, 4, 3)), 2).shape == (0, 4, 3)


def test_special_values():
    x = np.ones((5, 40), np.float32)
    x[0] = 0
    x[1, 3] = np.nan
    x[2, 3] = np.inf
    x[3] = 1e-30
    x[4] = -0.0
    array = kw.asarray(x)
    with np.errstate(all="ignore"):
        for kind, y in (("rms", nn.rms_norm(array)), ("layer", nn.layer_norm(array)),
                        ("l2", nn.l2_norm(array))):  # fmt: skip
            expected = normal(kind, x, {"rms": 1e-6, "layer": 1e-5, "l2": 1e-12}[kind])[0]
            rows = [0, 1, 3, 4] if kind != "l2" else [0, 1, 4]
            np.testing.assert_allclose(y.numpy()[rows], expected[rows], rtol=1e-5, atol=1e-20)
            assert np.isnan(y.numpy()[2, 3])
    assert np.isnan(nn.rms_norm(array, eps=0.0).numpy()[0]).all()


@pytest.mark.parametrize("dtype", ["int8", "float8_e4m3fn"])
@pytest.mark.parametrize(("n", "given"), [(65, "float32"), (1600, "bfloat16"), (320, "float64")])
def test_quantised(dtype, n, given):
    x, weight, bias = random((4, n), given), random(n, given, 1), random(n, given, 2)
    x[1] = 0
    arrays = [kw.asarray(v) for v in (x, weight, bias)]
    q, scales = nn.layer_norm(*arrays, quantize=dtype)
    assert q.dtype == getattr(ml_dtypes, dtype, dtype) and scales.dtype == np.float32
    expected = normal("layer", x, 1e-5)[0] * wide(weight) + wide(bias)
    largest = 127 if dtype == "int8" else 448
    np.testing.assert_allclose(scales.numpy(), np.abs(expected).max(-1) / largest, rtol=1e-5)
    step = 0.501 * scales.numpy() if dtype == "int8" else 0.0
    back = wide(q.numpy()) * scales.numpy()[:, None]
    near = np.abs(back - expected)
    assert (near <= (step[:, None] if dtype == "int8" else np.abs(expected) / 15.9 + 1e-3)).all()
    assert (np.abs(wide(q.numpy())).max(-1) == largest).all()
    q, scales, total = nn.rms_norm(arrays[0], quantize=dtype, residual=arrays[0])
    assert not q.numpy()[1].astype(float).any() and scales.numpy()[1] == 0
    np.testing.assert_array_equal(total.numpy(), x + x)


@pytest.mark.parametrize("dtype, largest", [("int8", 127), ("float8_e4m3fn", 448)])
def test_quantised_rows_with_subnormal_scales_are_finite(dtype, largest):
    x = kw.asarray(np.outer(np.float32([1e-45, 7e-43, 1.3e-42]), np.ones(8, np.float32)))
    q, scales = nn.rms_norm(x, quantize=dtype, eps=1.0)
    assert ((scales.numpy() == 0) | (wide(q.numpy()).max(-1) <= largest)).all()
    assert np.isfinite(wide(q.numpy())).all()


# ---- groups


def grouped(x, groups, eps=1e-5):
    shape = (x.shape[0], groups, -1)
    return normal("layer", wide(x).reshape(shape), eps)[0].reshape(x.shape)


def by_channel(values, x):
    return wide(values).reshape(1, -1, *[1] * (x.ndim - 2))


GROUPS = [((2, 6, 5, 7), 3), ((3, 8, 16), 2), ((2, 12), 4), ((1, 4, 90, 100), 2), ((2, 6, 36), 6)]


@pytest.mark.parametrize(("shape", "groups"), GROUPS)
def test_groups(shape, groups):
    x, weight, bias = random(shape), random(shape[1], seed=1), random(shape[1], seed=2)
    arrays = [kw.asarray(v) for v in (x, weight, bias)]
    expected = grouped(x, groups) * by_channel(weight, x) + by_channel(bias, x)
    close(nn.group_norm(arrays[0], groups, *arrays[1:]), expected, 4e-6)
    view = kw.asarray(np.moveaxis(x, 0, -1).copy()).transpose(x.ndim - 1, *range(x.ndim - 1))
    close(nn.group_norm(view, groups, *arrays[1:]), expected, 4e-6)
    if x.ndim > 2:
        y = nn.instance_norm(*arrays)
        expected = grouped(x, shape[1]) * by_channel(weight, x) + by_channel(bias, x)
        close(y, expected, 4e-6)


@pytest.mark.parametrize(("shape", "groups"), GROUPS)
def test_gradients_of_groups(shape, groups):
    x, dy, weight = random(shape), random(shape, seed=5), random(shape[1], seed=1)
    dx, dweight, dbias = nn.group_norm_backward(
        kw.asarray(dy), kw.asarray(x), groups, kw.asarray(weight)
    )
    g, hat = wide(dy) * by_channel(weight, x), grouped(x, groups)
    rows = (shape[0], groups, -1)
    close(dx, gradients("layer", g.reshape(rows), x.reshape(rows))[0].reshape(shape), 5e-6)
    axes = (0, *range(2, x.ndim))
    close(dweight, (wide(dy) * hat).sum(axes), 1e-5)
    close(dbias, wide(dy).sum(axes), 1e-5)
    dx, dweight, dbias = nn.instance_norm_backward(kw.asarray(dy), kw.asarray(x), bias=False)
    rows = (shape[0], shape[1], -1)
    if x.ndim > 2:
        close(dx, gradients("layer", dy.reshape(rows), x.reshape(rows))[0].reshape(shape), 5e-6)
    assert dweight is None and dbias is None


# ---- gradients


SHAPES = [
    *(((37, 3), "float32"), ((70, 64), "float32"), ((300, 40), "bfloat16"), ((9, 1001), "float32")),
    *(((3, 2, 1500), "bfloat16"), ((5, 2048), "float16"), ((4, 600), "float64")),
    *(((3, 10000), "float32"), ((2, 17000), "float32")),
]


@pytest.mark.parametrize(("shape", "dtype"), SHAPES)
def test_gradients(shape, dtype):
    x, dy, weight = random(shape, dtype), random(shape, dtype, 3), random(shape[-1], dtype, 1)
    arrays = [kw.asarray(v) for v in (dy, x, weight)]
    tolerance = max(DTYPES[dtype], 1e-13) * (4 if dtype == "float32" else 1)
    dx, dweight, dbias = nn.layer_norm_backward(*arrays)
    assert dx.dtype == dweight.dtype == dbias.dtype == x.dtype
    for result, expected in zip(
        (dx, dweight, dbias), gradients("layer", dy, x, weight), strict=True
    ):
        close(result, expected, tolerance)
    dx, dweight = nn.rms_norm_backward(*arrays)
    for result, expected in zip((dx, dweight), gradients("rms", dy, x, weight, 1e-6), strict=False):
        close(result, expected, tolerance)
    dx, nothing = nn.rms_norm_backward(*arrays[:2])
    assert nothing is None
    close(dx, gradients("rms", dy, x, eps=1e-6)[0], tolerance)


@pytest.mark.parametrize("kind", ["layer", "rms"])
@pytest.mark.parametrize(
    ("shape", "dtype", "launches"),
    [((2, 1024), "bfloat16", 1), ((4, 849), "float32", 1), ((9, 776), "float16", 2)],
)
def test_gradients_of_few_rows(shape, dtype, launches, kind):
    """A block of several rows writes the gradients of weights itself if it is the only one."""
    x, dy, weight = random(shape, dtype), random(shape, dtype, 3), random(shape[-1], seed=1)
    arrays = [kw.asarray(v) for v in (dy, x, weight)]
    backward = nn.layer_norm_backward if kind == "layer" else nn.rms_norm_backward
    backward(*arrays)
    graph = kw.Graph()
    with graph.capture(kw.Stream()) as stream:
        results = backward(*arrays)
    assert sum(1 for node in graph.nodes if node.name) == launches
    graph.launch(stream)
    stream.synchronize()
    eps = 1e-5 if kind == "layer" else 1e-6
    for result, expected in zip(results, gradients(kind, dy, x, weight, eps), strict=False):
        close(result, expected, DTYPES[str(result.dtype)] * (4 if dtype == "float32" else 1))


STAGED = [
    *(((150, 520), "float32"), ((9, 16384), "float32"), ((20, 8192), "bfloat16")),
    *(((300, 4096), "bfloat16"), ((140, 5120), "float16"), ((20, 5128), "bfloat16")),
]


@pytest.mark.parametrize(("shape", "dtype"), [*STAGED, ((11, 16384), "float16")])
def test_gradients_of_rows_that_follow_each_other_in_a_block(sim, shape, dtype):
    # More rows than blocks run at once: each block takes several, and copies the next one ahead.
    x, dy, weight = random(shape, dtype), random(shape, dtype, 3), random(shape[-1], dtype, 1)
    arrays = [kw.asarray(v) for v in (dy, x, weight)]
    tolerance = DTYPES[dtype] * (4 if dtype == "float32" else 1)
    with kw.checks("memory", "init", "race", "sync") as report:
        layers = nn.layer_norm_backward(*arrays)
        others = nn.rms_norm_backward(*arrays)
        kw.synchronize()
    assert not report.findings
    for result, expected in zip(layers, gradients("layer", dy, x, weight), strict=True):
        close(result, expected, tolerance)
    for result, expected in zip(others, gradients("rms", dy, x, weight, 1e-6), strict=False):
        close(result, expected, tolerance)


def test_gradients_of_l2():
    x, dy = random((5, 200)), random((5, 200), seed=1)
    x[2] = 0
    dx = nn.l2_norm_backward(kw.asarray(dy), kw.asarray(x), eps=1e-3)
    expected = gradients("l2", dy, x, eps=1e-3)[0]
    close(dx, expected, 4e-6)
    np.testing.assert_allclose(dx.numpy()[2], dy[2] * 1e3, rtol=1e-6)
    dx = nn.l2_norm_backward(kw.asarray(dy.T), kw.asarray(x.T), 0, eps=1e-3)
    close(dx, expected.T, 4e-6)


def test_gradients_against_differences():
    x, dy, weight = (random(s, "float64", i) for i, s in enumerate([(2, 5), (2, 5), 5]))
    step = 1e-6
    for kind, eps in (("rms", 1e-2), ("layer", 1e-2), ("l2", 1e-12)):
        numeric = np.zeros_like(x)
        scale = 1 if kind == "l2" else weight
        for i in np.ndindex(x.shape):
            off = np.zeros_like(x)
            off[i] = step
            change = normal(kind, x + off, eps)[0] - normal(kind, x - off, eps)[0]
            numeric[i] = (change * scale * dy).sum() / (2 * step)
        arrays = [kw.asarray(v) for v in (dy, x, weight)]
        if kind == "l2":
            dx = nn.l2_norm_backward(*arrays[:2])
        else:
            function = nn.rms_norm_backward if kind == "rms" else nn.layer_norm_backward
            dx = function(*arrays, eps=eps)[0]
        np.testing.assert_allclose(dx.numpy(), numeric, rtol=1e-6, atol=1e-8)


def test_gradients_of_weights_of_more_axes():
    x, dy, weight = random((7, 3, 4)), random((7, 3, 4), seed=1), random((3, 4), seed=2)
    dx, dweight, dbias = nn.layer_norm_backward(*(kw.asarray(v) for v in (dy, x, weight)))
    flat = gradients("layer", dy.reshape(7, 12), x.reshape(7, 12), weight.ravel())
    for result, expected in zip((dx, dweight, dbias), flat, strict=True):
        close(result, expected.reshape(result.shape), 8e-6)


def test_the_same_result_each_time():
    dy, x, weight = (
        kw.asarray(random(s, seed=i)) for i, s in enumerate([(300, 50), (300, 50), 50])
    )
    first = nn.layer_norm_backward(dy, x, weight)
    for a, b in zip(first, nn.layer_norm_backward(dy, x, weight), strict=True):
        assert (a.numpy() == b.numpy()).all()


# ---- what is refused, checks, graphs


def test_what_is_refused():
    x = kw.zeros((3, 4))
    with pytest.raises(kw.InvalidArgument, match=r"Incompatible dimensions.*\(4,\).*\(5,\)"):
        nn.rms_norm(x, kw.ones(5))
    with pytest.raises(kw.InvalidArgument, match="int32"):
        nn.rms_norm(kw.zeros((3, 4), "int32"))
    with pytest.raises(kw.InvalidArgument, match="one dtype"):
        nn.layer_norm(x, kw.ones(4), kw.ones(4, "float16"))
    with pytest.raises(kw.InvalidArgument, match="residual"):
        nn.layer_norm(x, residual=kw.ones((4, 3)))
    with pytest.raises(kw.InvalidArgument, match="int16"):
        nn.rms_norm(x, quantize="int16")
    with pytest.raises(kw.InvalidArgument, match="quantised in one pass"):
        nn.rms_norm(kw.zeros((1, 40000)), quantize="int8")
    with pytest.raises(kw.InvalidArgument, match="3 groups of the 4 channels"):
        nn.group_norm(x, 3)
    with pytest.raises(kw.InvalidArgument, match="must be at least 1, got 0"):
        nn.group_norm(x, 0)
    with pytest.raises(kw.InvalidArgument, match="channels"):
        nn.instance_norm(kw.zeros(4))
    with pytest.raises(kw.InvalidArgument, match="Incompatible dimensions"):
        nn.layer_norm_backward(kw.zeros((4, 3)), x)
    with pytest.raises(kw.InvalidArgument, match="axis"):
        nn.l2_norm(x, 2)
    with pytest.raises(kw.InvalidArgument, match="one axis or more"):
        nn.rms_norm(kw.zeros(()))
    with pytest.raises(kw.ArgumentError, match="asarray"):
        nn.rms_norm(np.zeros((3, 4), np.float32))


def test_under_all_checks(sim):
    with kw.checks("memory", "init", "race", "sync") as report:
        for n in (40, 1300, 8200, 16400):
            x, weight = kw.asarray(random((2 if n < 8000 else 1, n))), kw.asarray(random(n))
            nn.layer_norm(x, weight, weight, residual=x)
            nn.rms_norm(x, weight)
            nn.layer_norm_backward(x, x, weight)
            nn.l2_norm_backward(x, nn.l2_norm(x))
        nn.rms_norm(kw.asarray(random((3, 1300))), quantize="int8")
        for shape in ((2, 6, 30), (1, 2, 8200)):
            x, weight = kw.asarray(random(shape)), kw.asarray(random(shape[1]))
            nn.group_norm(x, 2, weight, weight)
            nn.group_norm_backward(x, x, 1, weight)
        kw.synchronize()
    assert not report.findings


def test_in_a_graph():
    x, weight = kw.asarray(random((6, 300))), kw.asarray(random(300))
    nn.layer_norm_backward(nn.layer_norm(x, weight, weight), x, weight)
    stream, graph = kw.Stream(), kw.Graph()
    with graph.capture(stream):
        y = nn.layer_norm(x, weight, weight)
        dx, dweight, dbias = nn.layer_norm_backward(y, x, weight)
    for seed in (4, 5):
        new = random((6, 300), seed=seed)
        x[...] = new
        kw.synchronize()
        graph.launch(stream)
        stream.synchronize()
        close(y, normal("layer", new, 1e-5)[0] * weight.numpy() + weight.numpy(), 4e-6)
        expected = gradients("layer", y.numpy(), new, weight.numpy())
        for result, right in zip((dx, dweight, dbias), expected, strict=True):
            close(result, right, 1e-5)
