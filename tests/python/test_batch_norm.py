"""kw.nn.batch_norm() and its gradient against NumPy's float64."""

import numpy as np
import pytest

import kernwright as kw
from kernwright.errors import ArgumentError, InvalidArgument


def reference(x, mean, variance, weight, bias, eps=1e-5):
    shape = (1, -1, *(1,) * (x.ndim - 2))
    y = (x - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + eps)
    return y * weight.reshape(shape) + bias.reshape(shape)


def statistics(x):
    over = tuple(axis for axis in range(x.ndim) if axis != 1)
    return x.mean(over), x.var(over), x.size // x.shape[1]


@pytest.mark.parametrize(
    ("shape", "dtype", "limit"),
    [((6, 3), "float32", 2e-6), ((4, 5, 7), "float64", 1e-13), ((2, 3, 4, 5), "bfloat16", 2e-2),
     ((3, 1, 9), "float16", 4e-3)],
)  # fmt: skip
def test_training_and_use(shape, dtype, limit):
    rng = np.random.default_rng(1)
    x = kw.asarray(rng.standard_normal(shape) * 2 + 5).astype(dtype)
    host, c = x.astype("float64").numpy(), shape[1]
    weight, bias = rng.standard_normal(c), rng.standard_normal(c)
    stats = kw.zeros(c), kw.ones(c)
    y = kw.nn.batch_norm(x, *stats, kw.asarray(weight), kw.asarray(bias), training=True)
    mean, variance, count = statistics(host)
    assert y.dtype == x.dtype
    scale = np.abs(weight).max() * 4
    assert np.abs(wide(y) - reference(host, mean, variance, weight, bias)).max() < limit * scale
    assert np.allclose(stats[0].numpy(), 0.1 * mean, rtol=1e-5)
    unbiased = variance * count / (count - 1)
    assert np.allclose(stats[1].numpy(), 0.9 + 0.1 * unbiased, rtol=1e-5)
    used = kw.nn.batch_norm(x, *stats, kw.asarray(weight), kw.asarray(bias))
    exact = reference(host, *(s.numpy().astype(np.float64) for s in stats), weight, bias)
    assert np.abs(wide(used) - exact).max() < limit * np.abs(exact).max()


def wide(x):
    return x.astype("float64").numpy()


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_gradients_are_differences(training, weighted):
    rng = np.random.default_rng(2)
    x, dy = rng.standard_normal((4, 3, 5)), rng.standard_normal((4, 3, 5))
    weight = rng.standard_normal(3) if weighted else np.ones(3)
    stats = rng.standard_normal(3), rng.random(3) + 0.5
    given = [kw.asarray(s) for s in stats]
    dx, dweight, dbias = kw.nn.batch_norm_backward(
        kw.asarray(dy), kw.asarray(x), *given, kw.asarray(weight) if weighted else None,
        training=training,
    )  # fmt: skip

    def total(x, weight, bias):
        mean, variance = statistics(x)[:2] if training else stats
        return (reference(x, mean, variance, weight, bias) * dy).sum()

    for got, values, call in (
        (dx, x, lambda v: total(v, weight, np.zeros(3))),
        (dweight, weight, lambda v: total(x, v, np.zeros(3))),
        (dbias, np.zeros(3), lambda v: total(x, weight, v)),
    ):
        numeric = np.zeros_like(values)
        for i in np.ndindex(*values.shape):
            step = np.zeros_like(values)
            step[i] = 1e-6
            numeric[i] = (call(values + step) - call(values - step)) / 2e-6
        assert np.allclose(got.numpy(), numeric, rtol=1e-5, atol=1e-7)


def test_views_and_running_statistics_of_narrow_types():
    x = kw.asarray(np.random.default_rng(3).standard_normal((4, 6, 8)).astype(np.float32))
    view = x.transpose(2, 1, 0)[::-1, ::2]
    same = kw.nn.batch_norm(view.copy(), training=True).numpy()
    assert np.allclose(kw.nn.batch_norm(view, training=True).numpy(), same, atol=1e-6)
    stats = kw.zeros(6, "float16"), kw.ones(6, "float16")
    kw.nn.batch_norm(x, *stats, training=True, momentum=1.0)
    assert np.allclose(stats[0].numpy(), x.numpy().mean((0, 2)), atol=1e-3)
    assert kw.nn.batch_norm(kw.zeros((0, 6)), *stats).shape == (0, 6)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: kw.nn.batch_norm(x), InvalidArgument, "running_mean and running_var"),
        (lambda x: kw.nn.batch_norm(x, kw.zeros(3)), InvalidArgument, "or neither"),
        (lambda x: kw.nn.batch_norm(x, kw.zeros(4), kw.ones(4)), InvalidArgument, "(3,) of floats"),
        (lambda x: kw.nn.batch_norm(x[:1], training=True), InvalidArgument, "more than one"),
        (lambda x: kw.nn.batch_norm(x, training=True, momentum=2), InvalidArgument, "momentum"),
        (lambda x: kw.nn.batch_norm(x, training=True, eps=-1), InvalidArgument, "eps"),
        (lambda x: kw.nn.batch_norm(x[0], training=True), InvalidArgument, "(N, C, ...)"),
        (lambda x: kw.nn.batch_norm(x.astype("int32"), training=True), InvalidArgument, "int32"),
        (lambda x: kw.nn.batch_norm(x.numpy(), training=True), ArgumentError, "asarray"),
        (lambda x: kw.nn.batch_norm_backward(x[:1], x), InvalidArgument, "shape of x"),
    ],
)
def test_wrong_calls(call, error, words):
    with pytest.raises(error) as caught:
        call(kw.ones((2, 3)))
    assert words in str(caught.value)
