"""Gradients of the sinks of attention, against differences of NumPy's attention in float64."""

import numpy as np
import pytest
from attention_model import normal, weights_of

import kernwright as kw


def slopes(q, k, v, dy, sinks, step=1e-6, **options):
    """By the sink of each head, those of sum(dy * attention)."""
    groups = q.shape[1] // k.shape[1]
    q, dy = q.astype("f8"), dy.astype("f8")
    k, v = (np.repeat(x.astype("f8"), groups, axis=1) for x in (k, v))

    def loss(sinks):
        return (dy * (weights_of(q, k, sinks=sinks, **options)[0] @ v)).sum()

    wide = sinks.astype("f8")
    ways = np.eye(len(sinks)) * step
    return [(loss(wide + way) - loss(wide - way)) / (2 * step) for way in ways]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    "options",
    [{"is_causal": True}, {"soft_cap": 2.0, "scale": 0.3}, {"lengths": [9, 0]}, {"window": (3, 2)}],
)
def test_a_sink_has_the_gradient_of_its_share(dtype, options):
    q, k, v = (normal(2, heads, 9, 16, dtype=dtype, seed=i) for i, heads in enumerate((4, 2, 2)))
    dy = normal(2, 4, 9, 16, dtype=dtype, seed=3)
    sinks = np.array([0.5, 3.0, -1.0, -200.0], np.float32)
    model = dict(options)
    if "window" in model:
        model["left"], model["right"] = model.pop("window")
    if "is_causal" in model:
        model["causal"] = model.pop("is_causal")
    given = dict(options)
    if "lengths" in given:
        given["lengths"] = kw.asarray(np.asarray(given["lengths"], np.int32))
    device = [kw.asarray(x) for x in (q, k, v, sinks)]

    def loss(q, k, v, sinks):
        made = kw.nn.attention(q, k, v, enable_gqa=True, sinks=sinks, **given)
        return (made.astype("float32") * kw.asarray(dy.astype("f4"))).sum()

    found = kw.grad(loss, wrt=(0, 1, 2, 3))(*device)
    wanted = slopes(q, k, v, dy, sinks, **model)
    assert found[3].dtype == kw.float32
    limit = 1e-4 if dtype == "float32" else 3e-2
    np.testing.assert_allclose(found[3].numpy(), wanted, rtol=limit, atol=limit)
    alone = kw.grad(loss, wrt=3)(*device)
    assert (alone.numpy() == found[3].numpy()).all()
    others = kw.grad(loss, wrt=(0, 1, 2))(*device)
    for one, other in zip(others, found, strict=False):
        assert (one.numpy() == other.numpy()).all()


def test_rows_without_keys_and_sinks_of_no_share():
    """Neither makes a NaN."""
    q = kw.asarray(normal(1, 2, 3, 8))
    lengths = kw.asarray(np.zeros(1, np.int32))
    for sinks in ([0.0, -np.inf], [-np.inf, -np.inf]):
        attended = lambda s: kw.nn.attention(q, q, q, sinks=s, lengths=lengths).sum()  # noqa: E731
        assert (kw.grad(attended)(kw.asarray(np.array(sinks, "f4"))).numpy() == 0).all()


def test_packed_sequences():
    q, k, v, dy = (normal(12, 2, 16, seed=i) for i in range(4))
    starts = np.array([0, 5, 12], np.int32)
    sinks = np.array([0.3, -0.7], np.float32)
    at = kw.asarray(starts)

    def loss(sinks):
        made = kw.nn.attention(*map(kw.asarray, (q, k, v)), sinks=sinks, is_causal=True,
                               cu_seqlens_q=at, cu_seqlens_k=at)  # fmt: skip
        return (made * kw.asarray(dy)).sum()

    parts = [[x[a:b].swapaxes(0, 1)[None] for x in (q, k, v, dy)] for a, b in ((0, 5), (5, 12))]
    wanted = sum(np.array(slopes(*part, sinks, causal=True)) for part in parts)
    np.testing.assert_allclose(kw.grad(loss)(kw.asarray(sinks)).numpy(), wanted, rtol=1e-4)


def test_a_layer_learns_its_sinks():
    layer = kw.nn.MultiHeadAttention(16, 2, is_causal=True, sinks=True, seed=1)
    x = kw.asarray(normal(2, 5, 16))
    optimizer = kw.optim.SGD(layer, lr=0.1)
    gradient = kw.value_and_grad(lambda layer: (layer(x) ** 2).sum())
    losses = []
    for _ in range(4):
        loss, found = gradient(layer)
        optimizer.step(found)
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0]
    assert (layer.sinks.numpy() != 0).all() and found["sinks"].shape == (2,)
