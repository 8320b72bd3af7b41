"""Poolings of kw.nn and their gradients against loops of the host."""

import itertools
import math

import numpy as np
import pytest

import kernwright as kw
from kernwright.errors import ArgumentError, InvalidArgument


def layout(n, k, s, p, d, ceil_mode):
    room = n + 2 * p - d * (k - 1) - 1
    count = (math.ceil(room / s) if ceil_mode else room // s) + 1
    return count - 1 if ceil_mode and (count - 1) * s >= n + p else count


def window(o, n, k, s, p, d):
    """All places of a window, those on the padding too."""
    return [o * s - p + j * d for j in range(k)]


def pooled(x, k, s, p, d, ceil_mode, kind, count_pad=True, divisor=None):
    """Values and places of one plane of any number of axes, and pairs (output, input, weight)."""
    out = tuple(map(layout, x.shape, k, s, p, d, [ceil_mode] * x.ndim))
    values, places, pairs = np.zeros(out), np.zeros(out, np.int64), []
    for o in np.ndindex(*out):
        axes = [window(*each) for each in zip(o, x.shape, k, s, p, d, strict=True)]
        inside = [
            at for at in itertools.product(*axes)
            if all(0 <= i < n for i, n in zip(at, x.shape, strict=True))
        ]  # fmt: skip
        if kind == "max":
            best = max(inside, key=lambda at: (np.isnan(x[at]), x[at] if x[at] == x[at] else 0))
            values[o], places[o] = x[best], np.ravel_multi_index(best, x.shape)
            pairs.append((o, best, 1.0))
        else:
            reach = [
                sum(i < n + pad for i in axis)
                for axis, n, pad in zip(axes, x.shape, p, strict=True)
            ]
            count = divisor or (math.prod(reach) if count_pad else len(inside))
            values[o] = sum(x[at] for at in inside) / count
            pairs += [(o, at, 1 / count) for at in inside]
    return values, places, pairs


def gradient(pairs, dy, shape):
    made = np.zeros(shape)
    for o, at, weight in pairs:
        made[at] += weight * dy[o]
    return made


CASES = [
    # axes, shape, kernel_size, stride, padding, dilation, ceil_mode
    (1, (2, 3, 11), 3, None, 0, 1, False),
    (1, (5, 10), 4, 3, 2, 1, True),
    (2, (2, 2, 7, 9), (3, 2), (2, 1), (1, 0), 1, False),
    (2, (3, 8, 6), 3, 2, 1, 1, True),
    (2, (1, 2, 9, 11), (2, 3), (2, 3), 0, (3, 2), False),
    (2, (2, 1, 5, 4), 1, 2, 0, 1, False),
    (3, (2, 5, 4, 6), (2, 3, 2), (1, 2, 2), (1, 1, 0), 1, False),
]


def triple(value, axes):
    return (value,) * axes if isinstance(value, int) else value


@pytest.mark.parametrize(("axes", "shape", "k", "s", "p", "d", "ceil_mode"), CASES)
def test_largest(axes, shape, k, s, p, d, ceil_mode):
    rng = np.random.default_rng(1)
    x = rng.integers(-9, 9, shape).astype(np.float32)  # with equal elements
    pool = getattr(kw.nn, f"max_pool{axes}d")
    values, places = pool(kw.asarray(x), k, s, p, d, ceil_mode=ceil_mode, return_indices=True)
    dy = rng.standard_normal(values.shape).astype(np.float32)
    dx = getattr(kw.nn, f"max_pool{axes}d_backward")(
        kw.asarray(dy), places, shape, k, s, p, d, ceil_mode=ceil_mode
    ).numpy()
    sizes = [triple(each, axes) for each in (k, k if s is None else s, p, d)]
    planes = shape[: len(shape) - axes]
    for i in np.ndindex(*planes):
        expected, at, pairs = pooled(x[i], *sizes, ceil_mode, "max")
        assert np.array_equal(values.numpy()[i], expected)
        assert np.array_equal(places.numpy()[i], at)
        assert np.allclose(dx[i], gradient(pairs, dy[i], x[i].shape), rtol=1e-5, atol=1e-6)
    assert np.array_equal(
        pool(kw.asarray(x), k, s, p, d, ceil_mode=ceil_mode).numpy(), values.numpy()
    )


@pytest.mark.parametrize("count_pad", [True, False])
@pytest.mark.parametrize(
    ("axes", "shape", "k", "s", "p", "d", "ceil_mode"), [case for case in CASES if case[5] == 1]
)
def test_averages(axes, shape, k, s, p, d, ceil_mode, count_pad):
    rng = np.random.default_rng(2)
    x = rng.standard_normal(shape).astype(np.float32)
    options = {"ceil_mode": ceil_mode, "count_include_pad": count_pad}
    if not count_pad and axes == 1:
        options["divisor_override"] = 5
    y = getattr(kw.nn, f"avg_pool{axes}d")(kw.asarray(x), k, s, p, **options)
    dy = rng.standard_normal(y.shape).astype(np.float32)
    dx = getattr(kw.nn, f"avg_pool{axes}d_backward")(kw.asarray(dy), shape, k, s, p, **options)
    sizes = [triple(each, axes) for each in (k, k if s is None else s, p, 1)]
    for i in np.ndindex(*shape[: len(shape) - axes]):
        expected, _, pairs = pooled(
            x[i].astype(np.float64), *sizes, ceil_mode, "average", count_pad,
            options.get("divisor_override"),
        )  # fmt: skip
        assert np.allclose(y.numpy()[i], expected, rtol=1e-5, atol=1e-6)
        assert np.allclose(dx.numpy()[i], gradient(pairs, dy[i], x[i].shape), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("axes", "shape", "size"),
    [(1, (3, 10), 4), (1, (2, 2, 3), 7), (2, (2, 7, 9), (3, 2)), (2, (1, 2, 4, 4), (None, 1)),
     (3, (2, 3, 5, 4), (2, 5, 3))],
)  # fmt: skip
def test_adaptive(axes, shape, size):
    rng = np.random.default_rng(3)
    x = rng.standard_normal(shape).astype(np.float32)
    space = shape[len(shape) - axes :]
    out = tuple(n if m is None else m for m, n in zip(triple(size, axes), space, strict=True))
    largest = getattr(kw.nn, f"adaptive_max_pool{axes}d")
    values, places = largest(kw.asarray(x), size, return_indices=True)
    means = getattr(kw.nn, f"adaptive_avg_pool{axes}d")(kw.asarray(x), size)
    dy = rng.standard_normal(values.shape).astype(np.float32)
    d_largest = getattr(kw.nn, f"adaptive_max_pool{axes}d_backward")(kw.asarray(dy), places, shape)
    d_means = getattr(kw.nn, f"adaptive_avg_pool{axes}d_backward")(kw.asarray(dy), shape)
    expected = [np.zeros(shape), np.zeros(shape)]
    for i in np.ndindex(*shape[: len(shape) - axes]):
        for o in np.ndindex(*out):
            cut = tuple(
                slice(a * n // m, -(-(a + 1) * n // m))
                for a, n, m in zip(o, space, out, strict=True)
            )
            part = x[i][cut]
            assert values.numpy()[i][o] == part.max()
            assert np.isclose(
                means.numpy()[i][o], part.mean(dtype=np.float64), rtol=1e-5, atol=1e-6
            )
            at = np.unravel_index(places.numpy()[i][o], space)
            assert x[i][at] == part.max()
            expected[0][i][at] += dy[i][o]
            expected[1][i][cut] += dy[i][o] / part.size
    assert np.allclose(d_largest.numpy(), expected[0], rtol=1e-5, atol=1e-6)
    assert np.allclose(d_means.numpy(), expected[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_dtypes_and_views(dtype):
    host = np.random.default_rng(4).standard_normal((3, 8, 12))
    x = kw.asarray(host).astype(dtype)
    for view in (x, x[:, ::-1, 1::2], x.transpose(2, 0, 1)):
        same = view.copy()
        assert np.array_equal(kw.nn.max_pool2d(view, 2).numpy(), kw.nn.max_pool2d(same, 2).numpy())
        got = kw.nn.avg_pool2d(view, 2).astype("float64").numpy()
        whole = same.astype("float64").numpy()
        c, h, w = whole.shape[0], whole.shape[1] // 2 * 2, whole.shape[2] // 2 * 2
        exact = whole[:, :h, :w].reshape(c, h // 2, 2, w // 2, 2).mean((2, 4))
        assert np.abs(got - exact).max() < {"float16": 2e-3, "bfloat16": 2e-2}.get(dtype, 1e-14)


def test_special_values():
    x = kw.asarray([[1.0, float("nan"), 3.0, float("-inf"), float("-inf"), float("-inf")]])
    values, places = kw.nn.max_pool1d(x, 3, return_indices=True)
    assert np.isnan(values.numpy()[0, 0]) and values.numpy()[0, 1] == -np.inf
    assert places.numpy().tolist() == [[1, 3]]
    assert kw.nn.max_pool2d(kw.zeros((0, 3, 4, 4)), 2).shape == (0, 3, 2, 2)
    assert kw.nn.avg_pool1d(kw.zeros((2, 0, 4)), 2).shape == (2, 0, 2)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: kw.nn.max_pool2d(x, 9), InvalidArgument, "does not fit 4 elements"),
        (lambda x: kw.nn.max_pool2d(x, 2, padding=2), InvalidArgument, "at most half"),
        (lambda x: kw.nn.max_pool2d(x, 3, padding=2), InvalidArgument, "at most half"),
        (lambda x: kw.nn.max_pool2d(x, 0), InvalidArgument, "kernel_size is at least 1"),
        (lambda x: kw.nn.max_pool2d(x, 2, stride=(1, 2, 3)), ArgumentError, "2 ints"),
        (lambda x: kw.nn.max_pool2d(x, 2.5), ArgumentError, "kernel_size is an int"),
        (lambda x: kw.nn.max_pool3d(x, 2), InvalidArgument, "at least 4 axes"),
        (lambda x: kw.nn.max_pool2d(x.astype("int32"), 2), InvalidArgument, "not int32"),
        (lambda x: kw.nn.max_pool2d(x.numpy(), 2), ArgumentError, "asarray"),
        (lambda x: kw.nn.avg_pool2d(x, 2, divisor_override=0), InvalidArgument, "above 0"),
        (lambda x: kw.nn.adaptive_avg_pool2d(x, (1, 2, 3)), ArgumentError, "output_size"),
        (lambda x: kw.nn.adaptive_avg_pool2d(x[:, :0], 1), InvalidArgument, "nothing to pool"),
        (lambda x: kw.nn.avg_pool2d_backward(x, (2, 4, 4), 2), InvalidArgument, "(2, 2, 2)"),
        (lambda x: kw.nn.max_pool2d_backward(x, x, (2, 8, 8), 2), InvalidArgument, "int64"),
    ],
)
def test_wrong_calls(call, error, words):
    with pytest.raises(error) as caught:
        call(kw.ones((2, 4, 4)))
    assert words in str(caught.value)


def test_like_torch():
    torch = pytest.importorskip("torch")
    F = torch.nn.functional
    x = np.random.default_rng(5).standard_normal((2, 3, 13, 17)).astype(np.float32)
    ours, theirs = kw.asarray(x), torch.from_numpy(x)
    for options in ({"kernel_size": 3}, {"kernel_size": (3, 2), "stride": 2, "padding": (1, 1)},
                    {"kernel_size": 3, "stride": 2, "ceil_mode": True}):  # fmt: skip
        values, places = kw.nn.max_pool2d(ours, **options, return_indices=True)
        wanted, at = F.max_pool2d(theirs, **options, return_indices=True)
        assert np.array_equal(values.numpy(), wanted.numpy())
        assert np.array_equal(places.numpy(), at.numpy())
        got = kw.nn.avg_pool2d(ours, **options).numpy()
        assert np.allclose(got, F.avg_pool2d(theirs, **options).numpy(), atol=1e-6)
    got = kw.nn.adaptive_avg_pool2d(ours, (5, 20)).numpy()
    assert np.allclose(got, F.adaptive_avg_pool2d(theirs, (5, 20)).numpy(), atol=1e-6)
