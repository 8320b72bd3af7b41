"""What users of other libraries report about their training: memory that is kept, restored states,
captured steps on several streams, scales of losses, gradients that differ from run to run."""

import gc
import weakref

import numpy as np
import pytest

import kernwright as kw

RNG = np.random.default_rng(0)


def gradient(net, x, f=lambda y: y):
    return kw.grad(lambda net: f(net(x)).sum())(net)


def fails(net, x):
    def f(y):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        gradient(net, x, f)


# The first keeps its own result, the second takes a gradient within its backward().
KEEPS = kw.custom_gradient(lambda x: ((y := kw.exp(x)), y), lambda y, g: g * y)
NESTS = kw.custom_gradient(
    lambda x: (kw.sin(x).sum(), x), lambda x, g: g * kw.grad(lambda x: kw.sin(x).sum())(x)
)
STEPS = {
    "plain": gradient, "fails": fails, "own result": lambda net, x: gradient(net, x, KEEPS),
    "gradient in backward": lambda net, x: gradient(net, x, NESTS),
    "checkpoint": lambda net, x: gradient(net, x, lambda y: kw.checkpoint(kw.cos)(y)),
    "vjp": lambda net, x: kw.vjp(lambda net: net(x).sum(), net),
    "optimiser": lambda net, x: kw.optim.AdamW(net).step(gradient(net, x)),
    "captured": lambda net, x: [each(net, x) for each in 4 * [kw.captured(gradient)]],
}  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
def test_a_module_goes_with_its_last_name(step):
    """Neither a tape nor a graph keeps it, nor needs the garbage collector."""
    gc.collect()
    gc.disable()
    try:
        net, x = kw.nn.Linear(3, 3, seed=1), kw.ones((2, 3))
        known = [weakref.ref(each) for each in (net, net.weight, x)]
        STEPS[step](net, x)
        del net, x
        assert [each() for each in known] == [None] * 3
    finally:
        gc.enable()


def test_a_state_loaded_under_a_graph_is_that_of_its_launches():
    """Back to the third step: replays, and an optimiser without a graph, repeat all bits."""
    given = kw.zeros(3)

    def made():
        weights = kw.ones(3, "bfloat16")
        rate = kw.optim.cosine(0.1, 20, warmup=2)
        return weights, kw.optim.AdamW(weights, lr=rate, master_weights=True)

    def bits(weights, step, numbers):
        seen = []
        for i in numbers:
            given[...] = np.array([np.sin(i), np.cos(i), i], np.float32)
            step()
            seen.append(weights.numpy().tobytes())
        return seen

    weights, optimizer = made()
    graph = kw.Graph()
    kw.synchronize()
    with graph.capture():
        optimizer.step(given)
    bits(weights, graph.launch, range(3))
    saved = {
        name: [x.copy() for x in value] if isinstance(value, list) else value.copy()
        for name, value in optimizer.state_dict().items()
    }
    third = weights.copy()
    expected = bits(weights, graph.launch, range(3, 7))
    optimizer.load_state_dict(saved)
    weights[...] = third
    assert bits(weights, graph.launch, range(3, 7)) == expected
    others, other = made()
    other.load_state_dict(saved)
    others[...] = third
    assert bits(others, lambda: other.step(given), range(3, 7)) == expected


CALLS = {
    "launch": lambda x: x * x, "copy": lambda x: x.copy(), "fill": lambda x: kw.zeros(2),
    "gradient": kw.grad(lambda x: (x * x).sum()),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_work_that_a_graph_would_lose_is_refused(call):
    """A stream that does not wait for the captured one runs its work once, at the capture."""
    side = kw.Stream()

    def f(x):
        with side:
            y = CALLS[call](x)
        side.synchronize()
        return y * 2

    captured = kw.captured(f)
    for value in (1.0, 2.0):
        captured(kw.full(2, value))
    with pytest.raises(kw.CaptureError, match=r"outside of the capture .*test_training_reports"):
        captured(kw.full(2, 3.0))
    assert captured.graphs == []
    with side:  # refused no longer
        assert (kw.ones(2) * 3).numpy().tolist() == [3, 3]


def test_gradients_of_two_streams_are_in_the_graph():
    side = kw.Stream()

    def f(x):
        y, here = kw.exp(x), kw.current_stream()
        side.wait(here)
        with side:
            z = kw.sin(y)
        here.wait(side)
        return (z * x).sum()

    step = kw.captured(kw.grad(f))
    for _ in range(4):
        host = RNG.uniform(-1, 1, 3)
        y = np.exp(host)
        expected = np.sin(y) + host * np.cos(y) * y
        np.testing.assert_allclose(step(kw.asarray(host)).numpy(), expected, rtol=1e-12)
    assert len(step.graphs) == 1


def test_optimisers_share_a_scale_one_after_the_other():
    """A gradient is divided by the scale that its own loss was multiplied with: read it behind the
    step before."""
    scale = kw.optim.LossScale(4.0, interval=1)
    weights = [kw.zeros(1), kw.zeros(1)]
    optimizers = [kw.optim.SGD(each, lr=1.0) for each in weights]
    for overflow in (False, True, False):
        for each, optimizer in zip(weights, optimizers, strict=True):
            loss = lambda w, by=scale.scale: (w * by).sum()  # noqa: E731
            grad = kw.grad(loss)(each) * (np.inf if overflow else 1.0)
            optimizer.step(grad, loss_scale=scale)
    assert [each.item() for each in weights] == [-2, -2]
    assert scale.scale.item() == 16


@pytest.mark.parametrize(
    "gather",
    [kw.nn.embedding, lambda ids, x: kw.take(x, ids, axis=0), lambda ids, x: x[ids]],
    ids=["embedding", "take", "index"],
)
def test_sums_over_rows_that_repeat_have_the_same_bits(gather):
    """Terms of seven orders of magnitude: another order of the sum would show."""
    ids = kw.asarray(RNG.integers(0, 5, 400))
    terms = RNG.normal(size=(400, 3)) * 10.0 ** RNG.integers(-3, 4, (400, 1))
    given = kw.asarray(terms.astype(np.float32))
    seen = set()
    for _ in range(4):
        _, back = kw.vjp(lambda x: gather(ids, x), kw.ones((5, 3)))
        seen.add(back(given)[0].numpy().tobytes())
    assert len(seen) == 1
