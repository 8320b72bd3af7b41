"""Cross-entropy and losses of pairs, with gradients: against NumPy in float64."""

import numpy as np
import pytest
from nn_arrays import EPSILON, TYPES, assert_close, values, views, wide
from scipy import special

import kernwright as kw

nn = kw.nn


def reference(logits, target, smoothing=0.0, z=0.0, ignore=-100):
    """Losses of rows, and gradients of each row's own loss."""
    x = wide(logits)
    s = special.logsumexp(x, axis=-1)
    rows = np.arange(len(x))
    safe = np.where(target == ignore, 0, target)
    loss = (1 - smoothing) * (s - x[rows, safe]) + z * s**2
    grad = np.exp(x - s[:, None]) * (1 + 2 * z * s[:, None])
    grad[rows, safe] -= 1 - smoothing
    if smoothing:
        loss += smoothing * (s - x.mean(axis=-1))
        grad -= smoothing / x.shape[-1]
    loss[target == ignore] = 0
    grad[target == ignore] = 0
    return loss, grad


def case(rows, classes, dtype="float32", ids="int64", seed=0):
    x = values((rows, classes), dtype, seed, 3)
    target = np.random.default_rng(seed).integers(0, classes, rows).astype(ids)
    return x, target


# Rows of a warp, of several, in registers, in registers and shared memory, and beyond both.
SIZES = [(5, 1), (4, 2), (7, 10), (3, 128), (3, 1000), (2, 4099), (2, 20011), (1, 32000)]


@pytest.mark.parametrize("rows, classes", SIZES)
def test_sizes_of_rows(rows, classes):
    for dtype, ids in (("float32", "int64"), ("bfloat16", "int32")):
        x, target = case(rows, classes, dtype, ids)
        loss, grad = reference(x, target)
        a, t = kw.asarray(x), kw.asarray(target)
        assert_close(nn.cross_entropy(a, t, reduction="none"), loss, factor=2)
        got, dx = nn.cross_entropy_grad(a, t, reduction="none")
        assert got.dtype == np.float32 and dx.dtype == x.dtype
        assert_close(got, loss, factor=2)
        assert_close(dx, grad, dtype, 4)


def streamed(rows, classes, dtype="bfloat16"):
    """Rows that blocks take one after the other: of more than 2048 whole packs of 16 bytes."""
    x, target = case(rows, classes, dtype)
    target[rows // 2] = -100
    return x, target, kw.asarray(x), kw.asarray(target)


@pytest.mark.parametrize("dtype, classes", [("bfloat16", 16_392), ("float16", 20_488)])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_streamed_rows(dtype, classes, smoothing):
    x, target, a, t = streamed(5, classes, dtype)
    loss, grad = reference(x, target, smoothing, 1e-3)
    options = {"label_smoothing": smoothing, "z_loss": 1e-3, "reduction": "none"}
    got, dx = nn.cross_entropy_grad(a, t, **options)
    assert_close(got, loss, factor=4)
    assert_close(dx, grad, dtype, 4)
    again, over = nn.cross_entropy_grad(a, t, inplace=True, **options)
    np.testing.assert_array_equal(again.numpy(), got.numpy())
    assert over.ptr == a.ptr
    np.testing.assert_array_equal(a.view("uint16").numpy(), dx.view("uint16").numpy())


def test_more_streamed_rows_than_blocks():
    blocks = 2 * kw.current_device().attributes.multiprocessor_count
    x, target, a, t = streamed(2 * blocks + 3, 8_196, "float32")
    target[[1, -1]] = 9_000, -1
    t = kw.asarray(target)
    loss, grad = reference(x, np.where((target < 0) | (target > 8_195), -100, target))
    got, dx = nn.cross_entropy_grad(a, t, reduction="none")
    outside = np.array([1, len(target) - 1])
    assert np.isnan(got.numpy()[outside]).all() and np.isnan(dx.numpy()[outside]).all()
    inside = np.delete(np.arange(len(target)), outside)
    assert_close(kw.asarray(got.numpy()[inside]), loss[inside], factor=4)
    assert_close(kw.asarray(dx.numpy()[inside]), grad[inside], factor=4)


def test_streamed_rows_lie_apart_and_askew():
    x, target, _, t = streamed(3, 16_400)
    loss, grad = reference(x, target)
    for first, width in ((0, 16_480), (8, 16_424), (3, 16_403), (1, 16_408)):
        wide_rows = kw.zeros((3, width), "bfloat16")
        window = wide_rows[:, first : first + 16_400]
        window[...] = kw.asarray(x)
        got, dx = nn.cross_entropy_grad(window, t, reduction="none")
        assert_close(got, loss, factor=4)
        assert_close(dx, grad, "bfloat16", 4)
        nn.cross_entropy_grad(window, t, reduction="sum", inplace=True)
        assert_close(window, grad, "bfloat16", 4)
        rest = wide_rows.astype("float32").numpy()
        assert not rest[:, :first].any() and not rest[:, first + 16_400 :].any()


def test_streamed_special_logits():
    inf, big = np.inf, 3e38
    x = np.zeros((5, 16_400), "f4")
    x[0, :3], x[1, :3], x[2, 9_000], x[3, 16_399] = (0, -inf, 1), (1e38, big, 0), np.nan, inf
    x[4] = -inf
    t = kw.asarray(np.array([2, 1, 0, 0, 0]))
    loss, dx = nn.cross_entropy_grad(kw.asarray(x).astype("bfloat16"), t, reduction="none")
    expected = np.log(np.exp(-1.0) * 16_398 + 1)
    np.testing.assert_allclose(loss.numpy()[:2], [expected, 0], rtol=1e-5)
    assert np.isnan(loss.numpy()[2:]).all()
    dx = dx.astype("float32").numpy()
    assert dx[0, 1] == 0 and not dx[1].any()


def test_a_row_that_no_block_can_hold():
    x, target = case(1, 70001)
    loss, grad = reference(x, target)
    got, dx = nn.cross_entropy_grad(kw.asarray(x), kw.asarray(target))
    assert_close(got, loss[0], factor=4)
    assert_close(dx, grad, factor=8)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_options(dtype):
    x, target = case(9, 37, dtype)
    target[[2, 5]] = 7
    a, t = kw.asarray(x), kw.asarray(target)
    options = {"label_smoothing": 0.1, "z_loss": 1e-3, "ignore_index": 7}
    loss, grad = reference(x, target, 0.1, 1e-3, 7)
    counted = np.count_nonzero(target != 7)
    real = "float64" if dtype == "float64" else "float32"
    for reduction, divisor in (("sum", 1), ("mean", counted)):
        expected = loss.sum() / divisor
        got = nn.cross_entropy(a, t, reduction=reduction, **options)
        assert got.shape == () and got.dtype == np.dtype(real)
        assert_close(got, expected, real, 4)
        got, dx = nn.cross_entropy_grad(a, t, reduction=reduction, **options)
        assert_close(got, expected, real, 4)
        assert_close(dx, grad / divisor, dtype, 4)
        above = kw.full((), 2.5, real)
        dx = nn.cross_entropy_backward(above, a, t, reduction=reduction, **options)
        assert_close(dx, 2.5 * grad / divisor, dtype, 4)
    above = values(9, real, 4)
    dx = nn.cross_entropy_backward(kw.asarray(above), a, t, reduction="none", **options)
    assert_close(dx, above[:, None] * grad, dtype, 4)
    own = a.copy()
    got, dx = nn.cross_entropy_grad(own, t, inplace=True, **options)
    assert dx.ptr == own.ptr
    assert_close(got, loss.sum() / counted, real, 4)
    assert_close(own, grad / counted, dtype, 4)


def test_gradient_is_the_slope_of_the_loss():
    x, target = case(3, 7, "float64")
    t = kw.asarray(target)
    options = {"label_smoothing": 0.2, "z_loss": 0.01}
    _, dx = nn.cross_entropy_grad(kw.asarray(x), t, **options)
    h = 1e-6
    for i, j in [(0, 0), (1, 3), (2, int(target[2]))]:
        step = np.zeros_like(x)
        step[i, j] = h
        up, down = (nn.cross_entropy(kw.asarray(x + s), t, **options).item() for s in (step, -step))
        assert abs((up - down) / (2 * h) - dx.numpy()[i, j]) < 1e-8


def weighted_reference(logits, target, w, smoothing, z, ignore):
    """As torch's CrossEntropyLoss(weight=...); the last number is what its mean divides by."""
    x, w = wide(logits), wide(w)
    s = special.logsumexp(x, axis=-1)
    rows, counted = np.arange(len(x)), target != ignore
    t = np.where(counted, target, 0)
    own, p = w[t], np.exp(x - s[:, None])
    loss = own * ((1 - smoothing) * (s - x[rows, t]) + z * s**2)
    loss += smoothing * ((s[:, None] - x) * w).mean(axis=-1)
    grad = p * (own * (1 - smoothing + 2 * z * s) + smoothing * w.mean())[:, None]
    grad -= smoothing * w / x.shape[-1]
    grad[rows, t] -= own * (1 - smoothing)
    return loss * counted, grad * counted[:, None], (own * counted).sum()


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("classes", [7, 1003, 26_001])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_weights_of_classes(dtype, classes, smoothing):
    x, target = case(4, classes, dtype, "int32")
    target[1] = -100
    w = np.random.default_rng(3).uniform(0, 2, classes).astype(np.float32)
    w[target[0]] = 0
    a, t, weight = kw.asarray(x), kw.asarray(target), kw.asarray(w)
    options = {"label_smoothing": smoothing, "z_loss": 0.01, "weight": weight}
    loss, grad, total = weighted_reference(x, target, w, smoothing, 0.01, -100)
    real = "float64" if dtype == "float64" else "float32"
    for reduction, divisor in (("none", 1), ("sum", 1), ("mean", total)):
        expected = loss if reduction == "none" else loss.sum() / divisor
        assert_close(nn.cross_entropy(a, t, reduction=reduction, **options), expected, real, 8)
        got, dx = nn.cross_entropy_grad(a, t, reduction=reduction, **options)
        assert got.dtype == real and dx.dtype == x.dtype
        assert_close(got, expected, real, 8)
        assert_close(dx, grad / divisor, dtype, 8)
    above = nn.cross_entropy_backward(kw.asarray(np.array(3.0, real)), a, t, **options)
    assert_close(above, 3 * grad / total, dtype, 8)


def test_weights_of_one_change_nothing_but_rounding():
    x, target = case(5, 300)
    a, t, ones = kw.asarray(x), kw.asarray(target), kw.ones(300, "float16")
    for options in ({}, {"label_smoothing": 0.3}):
        plain, weighted = (nn.cross_entropy_grad(a, t, weight=w, **options) for w in (None, ones))
        assert_close(weighted[0], plain[0].numpy(), factor=2)
        assert_close(weighted[1], plain[1].numpy(), factor=2)


def test_checked_targets_are_classes():
    x = kw.asarray(case(3, 5)[0])
    for target in ([0, 4, -100], [4, 0, 0]):
        t = kw.asarray(np.array(target))
        assert nn.cross_entropy(x, t, check=True).item() == nn.cross_entropy(x, t).item()
    for target, words in (([0, 5, 9], "target 5 (element 1"), ([0, 0, -1], "target -1 (element 2")):
        with pytest.raises(kw.InvalidArgument) as caught:
            nn.cross_entropy(x, kw.asarray(np.array(target)), check=True)
        assert words in str(caught.value) and "none of the 5 classes" in str(caught.value)


def test_weights_of_nothing():
    x, target = case(3, 5)
    a, t = kw.asarray(x), kw.asarray(target)
    loss, dx = nn.cross_entropy_grad(a, t, weight=kw.zeros(5), reduction="sum")
    assert loss.item() == 0 and not dx.numpy().any()
    assert np.isnan(nn.cross_entropy(a, t, weight=kw.zeros(5)).item())
    target[1] = 9
    rows = nn.cross_entropy(a, kw.asarray(target), weight=kw.ones(5), reduction="none").numpy()
    assert np.isnan(rows).tolist() == [False, True, False]
    empty = kw.zeros((0, 5)), kw.zeros(0, "int64")
    assert np.isnan(nn.cross_entropy(*empty, weight=kw.ones(5)).item())


@pytest.mark.parametrize("rows, classes", [(4, 10), (3, 4099), (3, 16_400)])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_constant_added_to_logits_costs_no_digits(rows, classes, smoothing):
    near, target = case(rows, classes)
    w = np.linspace(0.5, 2, classes, dtype=np.float32)
    far = near + np.float32(4096)  # the differences of these float32 are what the loss is of
    loss, grad, _ = weighted_reference(wide(far) - 4096, target, w, smoothing, 0, -100)
    options = {"label_smoothing": smoothing, "weight": kw.asarray(w), "reduction": "none"}
    a, t = kw.asarray(far), kw.asarray(target)
    for got in (nn.cross_entropy(a, t, **options), nn.cross_entropy_grad(a, t, **options)[0]):
        np.testing.assert_allclose(got.numpy(), loss, rtol=2e-6)
    dx = nn.cross_entropy_grad(a, t, **options)[1].numpy()
    assert np.linalg.norm(dx - grad) <= 2e-6 * np.linalg.norm(grad)


def test_views_of_logits():
    x, target = case(6, 35)
    loss, grad = reference(x, target)
    for view in views(x):
        got, dx = nn.cross_entropy_grad(view, kw.asarray(target), reduction="none")
        assert_close(got, loss, factor=2)
        assert_close(dx, grad, factor=2)
    padded = kw.zeros((6, 40))
    window = padded[:, 3:38]
    window[...] = kw.asarray(x)
    nn.cross_entropy_grad(window, kw.asarray(target), reduction="sum", inplace=True)
    assert_close(window, grad, factor=2)
    assert not padded.numpy()[:, [0, 1, 2, 38, 39]].any()
    batch = kw.asarray(x.reshape(2, 3, 35))
    got = nn.cross_entropy(batch, kw.asarray(target.reshape(2, 3)), reduction="none")
    assert_close(got, loss.reshape(2, 3), factor=2)
    with pytest.raises(kw.InvalidArgument, match="without gaps"):
        nn.cross_entropy_grad(kw.asarray(x.T.copy()).T, kw.asarray(target), inplace=True)


def test_special_logits():
    inf = np.inf
    x = np.array([[0, -inf, 1], [1e38, 3e38, 0], [np.nan, 0, 0], [inf, 0, 0], [-inf] * 3], "f4")
    t = kw.asarray(np.array([2, 1, 0, 0, 0]))
    loss, dx = nn.cross_entropy_grad(kw.asarray(x), t, reduction="none")
    np.testing.assert_allclose(loss.numpy()[:2], [np.log1p(np.exp(-1)), 0], rtol=1e-6)
    assert np.isnan(loss.numpy()[2:]).all()
    assert dx.numpy()[0, 1] == 0 and not dx.numpy()[1].any()
    outside = kw.asarray(np.array([3, -1, 0], np.int32))
    loss, dx = nn.cross_entropy_grad(kw.ones((3, 3)), outside, reduction="none")
    np.testing.assert_array_equal(np.isnan(loss.numpy()), [True, True, False])
    np.testing.assert_array_equal(np.isnan(dx.numpy()).all(axis=1), [True, True, False])


def test_nothing_to_count():
    none = kw.full((4,), -100, "int64")
    loss, dx = nn.cross_entropy_grad(kw.ones((4, 3)), none)
    assert np.isnan(loss.item()) and not dx.numpy().any()
    assert nn.cross_entropy(kw.ones((4, 3)), none, reduction="sum").item() == 0
    empty = kw.empty((0,), "int64")
    loss, dx = nn.cross_entropy_grad(kw.ones((0, 3)), empty, reduction="sum")
    assert loss.item() == 0 and dx.shape == (0, 3)
    assert nn.cross_entropy(kw.ones((0, 3)), empty, reduction="none").shape == (0,)


def bce(x, t, weight=1.0):
    return (1 - t) * x + (1 + (weight - 1) * t) * np.logaddexp(0, -x)


def huber(x, t, delta=1.0):
    d = abs(x - t)
    return np.where(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta))


PAIRS = {
    "mse_loss": (lambda x, t: (x - t) ** 2, {}),
    "l1_loss": (lambda x, t: abs(x - t), {}),
    "huber_loss": (huber, {"delta": 0.7}),
    "bce_with_logits": (bce, {"pos_weight": 2.5}),
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_losses_of_pairs(name, dtype):
    function, options = PAIRS[name]
    x, t = values((6, 35), dtype), abs(values((6, 35), dtype, 1)) % 1
    arguments = wide(x), wide(t), *options.values()
    loss, h = function(*arguments), 1e-5
    slope = function(wide(x) + h, *arguments[1:]) - function(wide(x) - h, *arguments[1:])
    slope /= 2 * h
    real = "float64" if dtype == "float64" else "float32"
    factor = 1e5 if dtype == "float64" else 20 if dtype == "float32" else 2
    a, b = kw.asarray(x), kw.asarray(t)
    forward, with_grad, backward = (getattr(nn, name + end) for end in ("", "_grad", "_backward"))
    assert_close(forward(a, b, reduction="none", **options), loss, dtype, 2)
    for reduction, divisor in (("mean", x.size), ("sum", 1)):
        assert_close(forward(a, b, reduction=reduction, **options), loss.sum() / divisor, real, 2)
        got, dx = with_grad(a, b, reduction=reduction, **options)
        assert_close(got, loss.sum() / divisor, real, 2)
        assert_close(dx, slope / divisor, dtype, factor)
        dx = backward(kw.full((), 3, real), a, b, reduction=reduction, **options)
        assert_close(dx, 3 * slope / divisor, dtype, factor)
    above = values((6, 35), dtype, 2)
    dx = backward(kw.asarray(above), a, b, reduction="none", **options)
    assert_close(dx, wide(above) * slope, dtype, factor)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_sure_logits_of_two_classes_keep_their_digits(dtype):
    x = np.array([-60, -30, -9, -1, 0, 1, 9, 30, 60]).astype(TYPES[dtype]).repeat(2)
    t = np.array([0, 1] * 9).astype(x.dtype)
    sign, weight = np.where(t == 1, -1, 1), np.where(t == 1, 2.5, 1)
    loss = weight * np.log1p(np.exp(sign * wide(x)))
    slope = weight * sign * special.expit(sign * wide(x))
    a, b, options = kw.asarray(x), kw.asarray(t), {"pos_weight": 2.5, "reduction": "none"}
    got = nn.bce_with_logits(a, b, **options), nn.bce_with_logits_grad(a, b, **options)[1]
    for out, expected in zip(got, (loss, slope), strict=True):
        np.testing.assert_allclose(wide(out.numpy()), expected, rtol=EPSILON[dtype])


def test_pairs_of_views_and_sizes():
    x, t = values((6, 35)), values((6, 35), seed=1)
    for a, b in zip(views(x), reversed(list(views(t))), strict=True):
        assert_close(nn.mse_loss(a, b), ((wide(x) - t) ** 2).mean(), factor=2)
        assert_close(nn.mse_loss_grad(a, b, reduction="sum")[1], 2 * (x - t), factor=2)
    large = values(700001)
    got = nn.mse_loss(kw.asarray(large), kw.zeros(700001))
    assert_close(got, (wide(large) ** 2).mean())
    assert got.item() == nn.mse_loss(kw.asarray(large), kw.zeros(700001)).item()
    assert np.isnan(nn.mse_loss(kw.ones(0), kw.ones(0)).item())
    assert nn.mse_loss(kw.ones(0), kw.ones(0), reduction="sum").item() == 0
    far = np.array([1e4, -1e4, np.inf, np.nan], np.float32)
    got = nn.bce_with_logits(kw.asarray(far), kw.ones(4), reduction="none").numpy()
    np.testing.assert_array_equal(got[:2], [0, 1e4])
    assert np.isnan(got[3])


def test_wrong_calls():
    x, t = kw.ones((2, 3)), kw.asarray(np.array([0, 1]))
    with pytest.raises(kw.ArgumentError, match="int32 or int64"):
        nn.cross_entropy(x, kw.ones(2))
    with pytest.raises(kw.InvalidArgument, match=r"Incompatible dimensions.*\(2, 3\).*\(3,\)"):
        nn.cross_entropy(x, kw.asarray(np.arange(3)))
    with pytest.raises(kw.ArgumentError, match="reduction"):
        nn.cross_entropy(x, t, reduction="median")
    with pytest.raises(kw.InvalidArgument, match="label_smoothing is 2"):
        nn.cross_entropy(x, t, label_smoothing=2.0)
    with pytest.raises(kw.InvalidArgument, match=r"weight for each class"):
        nn.cross_entropy(x, t, weight=kw.ones(2))
    with pytest.raises(kw.ArgumentError, match="weight"):
        nn.cross_entropy(x, t, weight=t)
    with pytest.raises(kw.InvalidArgument, match="gradient of the loss"):
        nn.cross_entropy_backward(kw.ones(2), x, t)
    with pytest.raises(kw.InvalidArgument, match="same shape"):
        nn.mse_loss(x, kw.ones((3, 2)))
    with pytest.raises(kw.ArgumentError, match="floating"):
        nn.mse_loss(t, t)
    for delta in (0.0, -1.0, np.nan):
        with pytest.raises(kw.InvalidArgument, match=r"huber_loss: delta is .*above 0"):
            nn.huber_loss(x, x, delta=delta)


def test_no_finding_in_any_kernel(sim):
    x, target = case(3, 530)
    target[1] = -100
    with kw.checks("memory", "init", "race", "sync") as report:
        a, t = kw.asarray(x), kw.asarray(target)
        nn.cross_entropy(a, t)
        nn.cross_entropy_grad(a, t, label_smoothing=0.1)
        nn.cross_entropy_grad(a, t, inplace=True)
        nn.cross_entropy_grad(a, t, label_smoothing=0.1, weight=kw.ones(530))
        for outside in (-1, 530, 2**31 - 1, -(2**31)):
            away = kw.asarray(np.array([0, outside, 529], np.int32))
            assert np.isnan(nn.cross_entropy(a, away, weight=kw.ones(530)).item())
            nn.cross_entropy_grad(a, away, weight=kw.ones(530))
        wide_row = kw.asarray(case(1, 26001)[0])
        nn.cross_entropy_grad(wide_row, t[:1])
        _, _, rows, ids = streamed(3, 16_392)
        nn.cross_entropy_grad(rows, ids)
        nn.cross_entropy_grad(rows, ids, inplace=True, weight=kw.ones(16_392), label_smoothing=0.1)
        nn.huber_loss_grad(kw.ones(700), kw.zeros(700))
        nn.mse_loss(kw.ones(7), kw.zeros(7), reduction="none")
    report.raise_if_any()


def test_replay_in_a_graph():
    x, target = case(4, 50)
    a, t = kw.asarray(x), kw.asarray(target)
    nn.cross_entropy_grad(a, t), nn.mse_loss(a, a)
    stream, graph = kw.Stream(), kw.Graph()
    with graph.capture(stream):
        loss, dx = nn.cross_entropy_grad(a, t)
    fresh, _ = case(4, 50, seed=9)
    a[...] = kw.asarray(fresh)
    kw.current_device().synchronize()
    graph.launch(stream)
    stream.synchronize()
    expected, grad = reference(fresh, target)
    assert_close(loss, expected.mean(), factor=2)
    assert_close(dx, grad / 4, factor=2)
