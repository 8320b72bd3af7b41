"""kw.nn.linear_cross_entropy beside float64 on the host, and beside the two functions it joins."""

import numpy as np
import pytest

import kernwright as kw


def drawn(shape, classes, dtype="float32", seed=0):
    rng = np.random.default_rng(seed)
    x, weight = rng.normal(size=shape), rng.normal(size=(classes, shape[-1]))
    target = rng.integers(0, classes, shape[:-1])
    return [kw.asarray(x).astype(dtype), kw.asarray(weight).astype(dtype), kw.asarray(target)]


def on_the_host(x, weight, target, smoothing=0.0, z_loss=0.0, ignored=-100, mean=True):
    """The loss, and the gradients of x and weight, in float64."""
    x, weight = (each.astype("float64").numpy() for each in (x, weight))
    rows, classes = x.reshape(-1, x.shape[-1]), target.numpy().reshape(-1)
    logits = rows @ weight.T
    top = logits.max(-1, keepdims=True)
    sums = top + np.log(np.exp(logits - top).sum(-1, keepdims=True))
    counts = (classes != ignored)[:, None]
    wanted = np.full(logits.shape, smoothing / logits.shape[1])
    wanted[np.arange(len(rows)), np.where(counts[:, 0], classes, 0)] += 1 - smoothing
    losses = sums - (wanted * logits).sum(-1, keepdims=True) + z_loss * sums**2
    grads = np.exp(logits - sums) * (1 + 2 * z_loss * sums) - wanted
    divisor = counts.sum() if mean else 1
    grads = np.where(counts, grads, 0) / divisor
    loss = np.where(counts, losses, 0).sum() / divisor
    return loss, (grads @ weight).reshape(x.shape), grads.T @ rows


def close(got, wanted, tolerance=1e-5):
    got = got.astype("float64").numpy()
    assert got.shape == np.shape(wanted)
    assert np.linalg.norm(got - wanted) <= tolerance * max(np.linalg.norm(wanted), 1e-30)


@pytest.mark.parametrize("chunk", [None, 1, 4, 15, 100])
def test_values_and_gradients_are_those_of_float64(chunk):
    x, weight, target = drawn((3, 5, 8), 11)
    target[1, 2] = 7
    target[2, 4] = -1
    options = {"label_smoothing": 0.1, "z_loss": 0.01, "ignore_index": -1}
    for reduction in ("mean", "sum"):

        def loss_of(x, weight, reduction=reduction):
            return kw.nn.linear_cross_entropy(
                x, weight, target, chunk=chunk, reduction=reduction, **options
            )

        expected = on_the_host(x, weight, target, 0.1, 0.01, -1, reduction == "mean")
        value, found = kw.value_and_grad(loss_of, wrt=(0, 1))(x, weight)
        for got, wanted in zip((value, *found), expected, strict=True):
            close(got, wanted)
        assert loss_of(x, weight).numpy().tobytes() == value.numpy().tobytes()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_dtypes(dtype):
    x, weight, target = drawn((37, 16), 40, dtype)
    value, found = kw.value_and_grad(
        lambda x, weight: 3 * kw.nn.linear_cross_entropy(x, weight, target, chunk=16), wrt=(0, 1)
    )(x, weight)
    expected = on_the_host(x, weight, target)
    tolerance = {"float16": 2e-3, "bfloat16": 2e-2, "float64": 1e-12}[dtype]
    for got, wanted in zip((value, *found), expected, strict=True):
        close(got, 3 * wanted, tolerance)
    assert [each.dtype for each in found] == [x.dtype, weight.dtype]


def test_views_and_a_frozen_weight():
    x, weight, target = drawn((6, 9, 8), 11)
    some, reversed_weight = x[::-2, 1:], weight[::-1]
    expected = on_the_host(some, reversed_weight, target[::-2, 1:])

    def loss_of(x):
        return kw.nn.linear_cross_entropy(x[::-2, 1:], reversed_weight, target[::-2, 1:])

    value, found = kw.value_and_grad(loss_of)(x)
    close(value, expected[0])
    close(found[::-2, 1:], expected[1])
    assert bool((found[:, 0] == 0).all()) and bool((found[::2] == 0).all())


def test_no_rows_are_as_in_cross_entropy():
    x, weight, target = kw.zeros((0, 8)), kw.ones((11, 8)), kw.zeros(0, "int64")
    assert np.isnan(kw.nn.linear_cross_entropy(x, weight, target).item())
    value, found = kw.value_and_grad(
        lambda x, w: kw.nn.linear_cross_entropy(x, w, target, reduction="sum"), wrt=(0, 1)
    )(x, weight)
    assert value.item() == 0 and found[0].shape == (0, 8) and not found[1].numpy().any()


def test_a_recorded_step_keeps_one_chunk_of_logits():
    x, weight, target = drawn((512, 16), 4096)
    gradient = kw.value_and_grad(
        lambda x, w: kw.nn.linear_cross_entropy(x, w, target, chunk=64), wrt=(0, 1)
    )
    with kw.memory.use(kw.memory.PoolResource()):
        gradient(x, weight)
        peak = kw.memory.stats()["used_peak"]
    assert peak < 4 * 4096 * (64 + 16 * 6) + 2**20 < 512 * 4096 * 4


def test_what_is_wrong_is_named():
    x, weight, target = drawn((6, 8), 11)
    call = kw.nn.linear_cross_entropy
    with pytest.raises(kw.InvalidArgument, match=r"\(6, 8\) and \(11, 7\)"):
        call(x, weight[:, 1:], target)
    with pytest.raises(kw.InvalidArgument, match=r"shape \(6,\) of x's rows, not \(5,\)"):
        call(x, weight, target[1:])
    with pytest.raises(kw.ArgumentError, match='"mean" or "sum"'):
        call(x, weight, target, reduction="none")
    for chunk in (0, -1, True, 2.0):
        with pytest.raises(kw.ArgumentError, match="chunk"):
            call(x, weight, target, chunk=chunk)
    with pytest.raises(kw.ArgumentError, match="has no gradient"):
        kw.grad(lambda x: kw.sum(kw.grad(lambda x: call(x, weight, target))(x) ** 2))(x)
