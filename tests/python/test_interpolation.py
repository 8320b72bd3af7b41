"""kw.nn.interpolate() against dense matrices of weights; channels into space."""

import math

import numpy as np
import pytest

import kernwright as kw
from kernwright.errors import ArgumentError, InvalidArgument


def weights(n, m, mode, align, factor=None):
    """The matrix (m, n) of an axis, by torch's rules."""
    scale = 1 / factor if factor else n / m
    if align:
        scale = (n - 1) / (m - 1) if m > 1 else 0.0
    made = np.zeros((m, n))
    for o in range(m):
        if mode.startswith("nearest"):
            at = np.float32(o + 0.5 * (mode != "nearest")) * np.float32(scale)
            made[o, min(int(np.floor(at)), n - 1)] = 1
            continue
        at = o * scale if align else (o + 0.5) * scale - 0.5
        if mode == "cubic":
            a, first = -0.75, math.floor(at) - 1
            for k in range(4):
                d = abs(at - (first + k))
                near = ((a + 2) * d - (a + 3)) * d * d + 1
                far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
                made[o, min(max(first + k, 0), n - 1)] += near if d <= 1 else far
        else:
            at = max(at, 0.0)
            first = min(math.floor(at), n - 1)
            t = at - math.floor(at)
            made[o, first] += 1 - t
            made[o, min(first + 1, n - 1)] += t
    return made


def dense(x, extents, mode, align, factors=None):
    kind = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    matrices = []
    for i, (n, m) in enumerate(zip(x.shape[2:], extents, strict=True)):
        matrices.append(weights(n, m, kind, align, factors and factors[i]))
        x = np.moveaxis(np.tensordot(x, matrices[-1], (2 + i, 1)), -1, 2 + i)
    return x, matrices


CASES = [
    # mode, shape, extents, align_corners
    ("nearest", (2, 3, 7), (11,), None),
    ("nearest", (1, 2, 5, 8), (7, 3), None),
    ("nearest-exact", (1, 2, 5, 8), (12, 3), None),
    ("nearest", (1, 1, 2, 3, 4), (3, 5, 2), None),
    ("linear", (2, 3, 7), (15,), False),
    ("linear", (2, 3, 7), (3,), True),
    ("bilinear", (1, 2, 6, 5), (9, 13), False),
    ("bilinear", (2, 1, 6, 5), (11, 1), True),
    ("trilinear", (1, 2, 3, 4, 2), (5, 3, 4), False),
    ("bicubic", (1, 2, 6, 5), (13, 4), False),
    ("bicubic", (1, 1, 4, 7), (8, 9), True),
    ("bicubic", (1, 1, 1, 2), (3, 3), False),
]


@pytest.mark.parametrize(("mode", "shape", "extents", "align"), CASES)
def test_sizes(mode, shape, extents, align):
    rng = np.random.default_rng(1)
    x = rng.standard_normal(shape).astype(np.float32)
    y = kw.nn.interpolate(kw.asarray(x), extents, mode=mode, align_corners=align)
    expected, matrices = dense(x.astype(np.float64), extents, mode, align)
    assert y.shape == expected.shape and y.dtype == np.float32
    assert np.allclose(y.numpy(), expected, rtol=1e-5, atol=2e-6)
    dy = rng.standard_normal(y.shape).astype(np.float32)
    dx = kw.nn.interpolate_backward(kw.asarray(dy), shape, extents, mode=mode, align_corners=align)
    back = dy.astype(np.float64)
    for i, matrix in enumerate(matrices):
        back = np.moveaxis(np.tensordot(back, matrix, (2 + i, 0)), -1, 2 + i)
    assert np.allclose(dx.numpy(), back, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_factors(mode):
    x = np.random.default_rng(2).standard_normal((1, 2, 5, 9))
    factors = (1.7, 0.65)  # 8.5 and 5.85 elements: less, not nearest
    extents = [math.floor(n * f) for n, f in zip(x.shape[2:], factors, strict=True)]
    y = kw.nn.interpolate(kw.asarray(x), scale_factor=factors, mode=mode)
    assert y.dtype == np.float64
    assert np.allclose(y.numpy(), dense(x, extents, mode, None, factors)[0], atol=1e-12)
    again = kw.nn.interpolate(kw.asarray(x), scale_factor=factors, mode=mode,
                              recompute_scale_factor=True)  # fmt: skip
    assert np.allclose(again.numpy(), dense(x, extents, mode, None)[0], atol=1e-12)


def test_area_is_an_adaptive_average():
    x = kw.asarray(np.random.default_rng(3).standard_normal((2, 2, 7, 9)).astype(np.float32))
    got = kw.nn.interpolate(x, (3, 4), mode="area").numpy()
    assert np.array_equal(got, kw.nn.adaptive_avg_pool2d(x, (3, 4)).numpy())
    dx = kw.nn.interpolate_backward(x[:, :, :3, :4], x.shape, (3, 4), mode="area").numpy()
    assert np.array_equal(dx, kw.nn.adaptive_avg_pool2d_backward(x[:, :, :3, :4], x.shape).numpy())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_types_and_views(dtype):
    host = np.random.default_rng(4).standard_normal((2, 3, 6, 10))
    x = kw.asarray(host).astype(dtype)
    for view in (x, x[:, ::-1, :, ::2], x.transpose(0, 3, 2, 1)):
        got = kw.nn.interpolate(view, (9, 4), mode="bilinear").astype("float64").numpy()
        exact = dense(view.astype("float64").numpy(), (9, 4), "bilinear", False)[0]
        assert np.abs(got - exact).max() < {"float16": 2e-3, "bfloat16": 1.6e-2}[dtype]
    assert kw.nn.interpolate(x[:0], 5).shape == (0, 3, 5, 5)


def test_pixel_shuffle():
    for r in (1, 2, 3):
        x = np.random.default_rng(5).integers(0, 99, (2, 3 * r * r, 2, 5)).astype(np.int32)
        expected = np.zeros((2, 3, 2 * r, 5 * r), np.int32)
        for i in range(r):
            for j in range(r):
                expected[:, :, i::r, j::r] = x[:, i * r + j :: r * r]
        y = kw.nn.pixel_shuffle(kw.asarray(x), r)
        assert np.array_equal(y.numpy(), expected)
        assert np.array_equal(kw.nn.pixel_unshuffle(y, r).numpy(), x)
    odd = kw.asarray(np.arange(48).reshape(4, 3, 4))[:, ::-1]
    assert np.array_equal(
        kw.nn.pixel_shuffle(odd, 2).numpy(), kw.nn.pixel_shuffle(odd.copy(), 2).numpy()
    )


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: kw.nn.interpolate(x), InvalidArgument, "either size or scale_factor"),
        (lambda x: kw.nn.interpolate(x, 3, 2.0), InvalidArgument, "either size or scale_factor"),
        (lambda x: kw.nn.interpolate(x, 3, mode="cubic"), InvalidArgument, "bicubic"),
        (lambda x: kw.nn.interpolate(x, 3, mode="linear"), InvalidArgument, "arrays of 3 axes"),
        (lambda x: kw.nn.interpolate(x, 3, align_corners=True), InvalidArgument, "align_corners"),
        (lambda x: kw.nn.interpolate(x, (3, 3, 3)), InvalidArgument, "axes of space"),
        (lambda x: kw.nn.interpolate(x, 0), InvalidArgument, "gives no array"),
        (lambda x: kw.nn.interpolate(x, scale_factor=0.01), InvalidArgument, "gives no array"),
        (lambda x: kw.nn.interpolate(x, "a"), ArgumentError, "size is a number"),
        (lambda x: kw.nn.interpolate(x.astype("int8"), 3), InvalidArgument, "not int8"),
        (lambda x: kw.nn.interpolate(x[:, :, :0], 3), InvalidArgument, "nothing to interpolate"),
        (lambda x: kw.nn.interpolate_backward(x, x.shape, 7), InvalidArgument, "(1, 4, 7, 7)"),
        (lambda x: kw.nn.pixel_shuffle(x, 3), InvalidArgument, "multiple of 3 * 3"),
        (lambda x: kw.nn.pixel_unshuffle(x, 4), InvalidArgument, "multiples of 4"),
        (lambda x: kw.nn.pixel_shuffle(x, 0), InvalidArgument, "above 0"),
    ],
)
def test_wrong_calls(call, error, words):
    with pytest.raises(error) as caught:
        call(kw.ones((1, 4, 6, 6)))
    assert words in str(caught.value)


@pytest.mark.parametrize(("mode", "shape", "extents", "align"), CASES)
def test_like_torch(mode, shape, extents, align):
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(6).standard_normal(shape).astype(np.float32)
    options = {"mode": mode, "align_corners": align}
    got = kw.nn.interpolate(kw.asarray(x), extents, **options).numpy()
    wanted = torch.nn.functional.interpolate(torch.from_numpy(x), extents, **options).numpy()
    assert np.allclose(got, wanted, rtol=1e-4, atol=1e-5)
