"""Losses of probabilities and of weighted classes, similarities and samples of categories."""

import numpy as np
import pytest
from scipy import special, stats

import kernwright as kw
from kernwright.errors import ArgumentError, InvalidArgument

REDUCTIONS = ["none", "mean", "sum"]


def reduced(each, reduction, divisor=None):
    if reduction == "none":
        return each
    return each.sum() / (divisor or each.size) if reduction == "mean" else each.sum()


def numeric_gradient(call, x, upstream):
    made = np.zeros_like(x)
    for i in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[i] = 1e-6
        made[i] = ((call(x + step) - call(x - step)) * upstream).sum() / 2e-6
    return made


def upstream_of(value):
    return np.random.default_rng(9).standard_normal(np.shape(value))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [False, True])
def test_nll_loss(reduction, weighted):
    rng = np.random.default_rng(1)
    x, t = special.log_softmax(rng.standard_normal((2, 5, 4)), -1), rng.integers(0, 4, (2, 5))
    t[0, 1] = t[1, 4] = -100
    w = rng.random(4) + 0.1 if weighted else np.ones(4)

    def loss(x):
        safe = np.where(t == -100, 0, t)
        factor = np.where(t == -100, 0, w[safe])
        each = -factor * np.take_along_axis(x, safe[..., None], -1)[..., 0]
        return reduced(each, reduction, factor.sum())

    options = {"reduction": reduction, "weight": kw.asarray(w) if weighted else None}
    got = kw.nn.nll_loss(kw.asarray(x), kw.asarray(t), **options)
    assert np.allclose(got.numpy(), loss(x), rtol=1e-12)
    up = upstream_of(loss(x))
    dx = kw.nn.nll_loss_backward(kw.asarray(up), kw.asarray(x), kw.asarray(t), **options)
    assert np.allclose(dx.numpy(), numeric_gradient(loss, x, up), rtol=1e-6, atol=1e-8)


def test_nll_loss_is_cross_entropy_of_logarithms():
    rng = np.random.default_rng(2)
    logits = kw.asarray(rng.standard_normal((7, 9)).astype(np.float32))
    t = kw.asarray(rng.integers(0, 9, 7).astype(np.int32))
    got = kw.nn.nll_loss(kw.nn.log_softmax(logits), t).item()
    assert abs(got - kw.nn.cross_entropy(logits, t).item()) < 1e-6
    outside = kw.nn.nll_loss(
        logits, kw.asarray([0, 9, 1, -1, 2, -100, 3]), reduction="none"
    ).numpy()
    assert (
        np.isnan(outside[[1, 3]]).all() and outside[5] == 0 and np.isfinite(outside[[0, 2]]).all()
    )


def test_a_target_outside_spoils_its_own_gradient_alone():
    x = kw.asarray(np.zeros((3, 4), np.float32))
    dx = kw.nn.nll_loss_backward(kw.ones(()), x, kw.asarray([1, 4, 2]), weight=kw.ones(4)).numpy()
    assert np.isnan(dx[1]).any() and dx[0].tolist() == [0, -0.5, 0, 0]
    assert dx[2].tolist() == [0, 0, -0.5, 0]


def test_a_target_without_a_chance_adds_nothing():
    """Also where the logarithm beside it is that of 0."""
    x = kw.asarray(np.array([[0.0, -np.inf]]))
    each = kw.nn.kl_div(x, kw.asarray(np.array([[1.0, 0.0]])), reduction="none")
    assert each.numpy().tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("reduction", [*REDUCTIONS, "batchmean"])
@pytest.mark.parametrize("log_target", [False, True])
def test_kl_div(reduction, log_target):
    rng = np.random.default_rng(3)
    x = special.log_softmax(rng.standard_normal((3, 6)), -1)
    p = special.softmax(rng.standard_normal((3, 6)), -1)
    p[0, 2] = 0 if not log_target else p[0, 2]
    t = np.log(p) if log_target else p

    def loss(x):
        each = special.xlogy(p, p) - p * x
        return each.sum() / 3 if reduction == "batchmean" else reduced(each, reduction)

    options = {"reduction": reduction, "log_target": log_target}
    got = kw.nn.kl_div(kw.asarray(x), kw.asarray(t), **options)
    assert np.allclose(got.numpy(), loss(x), rtol=1e-10)
    up = upstream_of(loss(x))
    dx = kw.nn.kl_div_backward(kw.asarray(up), kw.asarray(x), kw.asarray(t), **options)
    assert np.allclose(dx.numpy(), numeric_gradient(loss, x, up), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("beta", [0.0, 0.5, 2.0])
def test_smooth_l1_loss(reduction, beta):
    rng = np.random.default_rng(4)
    x, t = rng.standard_normal((2, 30)).astype(np.float32) * 2
    d = np.abs(x.astype(np.float64) - t)
    each = np.where(d < beta, 0.5 * d * d / max(beta, 1e-30), d - 0.5 * beta)
    slope = np.where(d < beta, (x - t) / max(beta, 1e-30), np.sign(x - t))
    scale = 1 / 30 if reduction == "mean" else 1.0
    options = {"reduction": reduction, "beta": beta}
    ours = kw.asarray(x), kw.asarray(t)
    assert np.allclose(
        kw.nn.smooth_l1_loss(*ours, **options).numpy(), reduced(each, reduction), rtol=1e-5
    )
    loss, dx = kw.nn.smooth_l1_loss_grad(*ours, **options)
    assert np.allclose(loss.numpy(), reduced(each, reduction), rtol=1e-5)
    assert np.allclose(dx.numpy(), slope * scale, rtol=1e-5, atol=1e-7)
    up = kw.full(loss.shape, 2.0)
    got = kw.nn.smooth_l1_loss_backward(up, *ours, **options).numpy()
    assert np.allclose(got, 2 * slope * scale, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_weights_of_positive_classes(reduction):
    rng = np.random.default_rng(5)
    x, t, w = rng.standard_normal((4, 3)) * 8, rng.random((4, 3)), np.array([0.5, 1.0, 7.0])

    def loss(x):
        soft = np.logaddexp(0, -x)
        return reduced((1 - t) * x + (1 + (w - 1) * t) * soft, reduction)

    ours = kw.asarray(x), kw.asarray(t)
    options = {"pos_weight": kw.asarray(w), "reduction": reduction}
    assert np.allclose(kw.nn.bce_with_logits(*ours, **options).numpy(), loss(x), rtol=1e-10)
    value, dx = kw.nn.bce_with_logits_grad(*ours, **options)
    one = np.ones(np.shape(loss(x)))
    assert np.allclose(value.numpy(), loss(x), rtol=1e-10)
    assert np.allclose(dx.numpy(), numeric_gradient(loss, x, one), rtol=1e-5, atol=1e-8)
    up = upstream_of(loss(x))
    got = kw.nn.bce_with_logits_backward(kw.asarray(up), *ours, **options).numpy()
    assert np.allclose(got, numeric_gradient(loss, x, up), rtol=1e-5, atol=1e-8)
    sure, certain = (np.array([v], np.float32) for v in ([200, -200, 90], [1, 0, 1]))
    small = kw.nn.bce_with_logits(
        kw.asarray(sure), kw.asarray(certain), pos_weight=kw.asarray(w.astype(np.float32)),
        reduction="none",
    )  # fmt: skip
    assert 0 <= small.numpy()[0, 2] < 1e-37 and np.isfinite(small.numpy()).all()
    equal = {**options, "pos_weight": kw.full(3, 2.5, dtype="float64")}
    plain = kw.nn.bce_with_logits(*ours, pos_weight=2.5, reduction=reduction).numpy()
    assert np.allclose(kw.nn.bce_with_logits(*ours, **equal).numpy(), plain, rtol=1e-12)


def test_cosine_similarity():
    rng = np.random.default_rng(6)
    a, b = rng.standard_normal((4, 5, 6)), rng.standard_normal((4, 1, 6))
    for axis in (1, -1, 0):
        x, y = np.broadcast_arrays(a, b)
        lengths = [np.maximum(np.linalg.norm(v, axis=axis), 1e-8) for v in (x, y)]
        exact = (x * y).sum(axis) / (lengths[0] * lengths[1])
        got = kw.nn.cosine_similarity(kw.asarray(a), kw.asarray(b), axis).numpy()
        assert np.allclose(got, exact, rtol=1e-12)
    zero = kw.nn.cosine_similarity(kw.zeros((2, 3)), kw.ones((2, 3)))
    assert zero.numpy().tolist() == [0, 0]


def test_one_hot():
    ids = kw.asarray([[2, 0], [7, -1]])
    assert kw.nn.one_hot(ids, 3).numpy().tolist() == [
        [[0, 0, 1], [1, 0, 0]], [[0, 0, 0], [0, 0, 0]]
    ]  # fmt: skip
    assert kw.nn.one_hot(ids[0]).shape == (2, 3)
    assert kw.nn.one_hot(ids, 8, dtype="float16").dtype == np.float16
    assert kw.nn.one_hot(ids[:0], 4).shape == (0, 2, 4)


def test_gumbel_softmax():
    p = np.array([0.2, 0.5, 0.3])
    logits = kw.broadcast_to(kw.asarray(np.log(p).astype(np.float32)), (6000, 3))
    hard = kw.nn.gumbel_softmax(logits, hard=True, seed=3).numpy()
    assert ((hard == 0) | (hard == 1)).all() and (hard.sum(-1) == 1).all()
    assert stats.chisquare(hard.sum(0), p * 6000).pvalue > 1e-3
    soft = kw.nn.gumbel_softmax(logits, tau=0.5, seed=3).numpy()
    assert np.allclose(soft.sum(-1), 1, atol=1e-5)
    assert np.array_equal(soft.argmax(-1), hard.argmax(-1))
    turned = kw.nn.gumbel_softmax(logits[:4].T, hard=True, axis=0, seed=3)
    assert turned.shape == (3, 4) and (turned.numpy().sum(0) == 1).all()


X = np.zeros((2, 3), np.float32)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x, t: kw.nn.nll_loss(x, t[:1]), InvalidArgument, "without its classes"),
        (lambda x, t: kw.nn.nll_loss(x, t.astype("float32")), InvalidArgument, "integers"),
        (lambda x, t: kw.nn.nll_loss(x, t, weight=kw.ones(2)), InvalidArgument, "(3,) of floats"),
        (lambda x, t: kw.nn.nll_loss_backward(kw.ones(2), x, t), InvalidArgument, "of the loss"),
        (lambda x, t: kw.nn.kl_div(x, x[:1]), InvalidArgument, "one shape"),
        (lambda x, t: kw.nn.kl_div(x, x, reduction="all"), ArgumentError, "batchmean"),
        (lambda x, t: kw.nn.smooth_l1_loss(x, x, beta=-1), InvalidArgument, "beta is not negative"),
        (lambda x, t: kw.nn.bce_with_logits(x, x, pos_weight=kw.ones(2)), InvalidArgument,
         "does not broadcast"),
        (lambda x, t: kw.nn.cosine_similarity(x, x.astype("float16")), InvalidArgument,
         "one dtype"),
        (lambda x, t: kw.nn.one_hot(x), InvalidArgument, "integers"),
        (lambda x, t: kw.nn.one_hot(t[:0]), InvalidArgument, "pass num_classes"),
        (lambda x, t: kw.nn.one_hot(t, 0), InvalidArgument, "above 0"),
        (lambda x, t: kw.nn.gumbel_softmax(x, tau=0), InvalidArgument, "tau is above 0"),
        (lambda x, t: kw.nn.gumbel_softmax(t), InvalidArgument, "logits are floating-point"),
    ],
)  # fmt: skip
def test_wrong_calls(call, error, words):
    with pytest.raises(error) as caught:
        call(kw.asarray(X), kw.asarray([0, 1]))
    assert words in str(caught.value)
