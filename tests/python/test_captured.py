"""Captured functions give the bits of eager ones, whatever comes between the calls."""

import numpy as np
import pytest

import kernwright as kw


def bits(array):
    return array.numpy().tobytes()


def network(seed):
    return kw.nn.Sequential(
        kw.nn.Linear(4, 16, seed=seed), kw.nn.Dropout(0.3, seed=2), kw.nn.silu,
        kw.nn.Linear(16, 1, seed=seed + 1),
    )  # fmt: skip


def training(net):
    """A whole step: forward, backward, clipping, the optimiser."""
    optimizer = kw.optim.AdamW(net, lr=kw.optim.cosine(1e-2, 100, warmup=5))
    gradient = kw.value_and_grad(lambda net, x, t: kw.nn.mse_loss(net(x), t))

    def step(x, target):
        loss, grads = gradient(net, x, target)
        optimizer.step(grads)
        return loss

    return step


def test_a_training_step_gives_the_bits_of_the_eager_one():
    one, other = network(1), network(1)
    eager, captured = training(one), kw.captured(training(other))
    rng = np.random.default_rng(0)
    for _ in range(100):
        x = kw.asarray(rng.normal(size=(8, 4)).astype(np.float32))
        target = kw.asarray(rng.normal(size=(8, 1)).astype(np.float32))
        assert bits(eager(x, target)) == bits(captured(x, target))
    for (_, a), (_, b) in zip(one.named_parameters(), other.named_parameters(), strict=True):
        assert bits(a) == bits(b)
    assert len(captured.graphs) == 1


def test_numbers_may_change():
    f = kw.captured(lambda x, a, n: x * a + n)
    for dtype in ("float32", "bfloat16", "float64"):
        x = kw.asarray([1.0, 2.0]).astype(dtype)
        for a, n in ((0.5, 1), (0.5, 1), (0.1, 2), (0.1, -3), (7.25, 100)):
            made, expected = f(x, a, n), x * a + n
            assert made.dtype == expected.dtype and bits(made) == bits(expected)
    assert len(f.graphs) == 3


def test_shapes_and_structures_have_graphs_of_their_own():
    f = kw.captured(lambda p, flag: p["a"] * 2 if flag else p["a"] + p["b"][0])
    for _ in range(4):
        for size in (1, 3):
            for flag in (True, False):
                p = {"a": kw.ones(size), "b": (kw.ones(size),)}
                assert f(p, flag).numpy().tolist() == [2.0] * size
    assert len(f.graphs) == 4
    many = kw.captured(lambda x: x + 1)
    for _ in range(3):
        for size in range(40):
            many(kw.ones(size))
    assert len(many.graphs) <= 32


def test_random_numbers_go_on():
    def draw(generator):
        return kw.random.normal(4), generator.integers(0, 100, 3), kw.random.uniform(2)

    def run(f):
        kw.random.seed(5)
        generator, found = kw.random.Generator(3), []
        for i in range(7):
            found.append([bits(each) for each in f(generator)])
            if i == 4:
                kw.random.uniform(9)  # somebody else draws in between
        return found, generator.offset, kw.random.default_generator().offset

    assert run(draw) == run(kw.captured(draw))


def test_arguments_that_the_function_writes_into():
    def move(state, by):
        state["x"] += by
        return state["x"].sum()

    f, x, other = kw.captured(move), kw.zeros(3), kw.ones(3)
    for i in range(6):
        assert f({"x": x}, kw.ones(3)).item() == 3 * (i + 1)
    f({"x": other}, kw.ones(3))
    assert x.numpy().tolist() == [6, 6, 6] and other.numpy().tolist() == [2, 2, 2]


def test_views_and_results_as_arguments():
    f = kw.captured(lambda x: x * 2)
    x = kw.arange(6, dtype="float32").reshape(2, 3)
    for _ in range(3):
        f(x.T)
    assert f(x.T).numpy().tolist() == (x.numpy().T * 2).tolist()
    y = kw.ones((3, 2))
    for _ in range(5):
        y = f(y)
    assert (y.numpy() == 32).all()


def test_a_module_with_other_parameters_is_another_call():
    layer = kw.nn.Linear(2, 2, bias=False, seed=1)
    f = kw.captured(lambda layer, x: layer(x))
    x = kw.ones((1, 2))
    for _ in range(4):
        f(layer, x)
    layer.weight[...] = 1.0
    assert f(layer, x).numpy().tolist() == [[2, 2]]
    layer.weight = kw.ones((2, 2)) * 3
    assert f(layer, x).numpy().tolist() == [[6, 6]]


def test_what_cannot_be_recorded_is_named():
    def branches(x):
        return x if float(x[0]) > 0 else -x

    f = kw.captured(branches)
    f(kw.ones(2)), f(kw.ones(2))
    with pytest.raises(kw.CaptureError, match="__float__") as refused:
        f(kw.ones(2))
    assert any(entry.name == "branches" for entry in refused.traceback)
    g = kw.captured(lambda x: x + kw.asarray(np.ones(2)))
    g(kw.ones(2)), g(kw.ones(2))
    with pytest.raises(kw.CaptureError, match="asarray"):
        g(kw.ones(2))
    with pytest.raises(kw.ArgumentError, match="function"):
        kw.captured(3)


def test_inside_of_gradients_it_runs_as_it_is():
    f = kw.captured(lambda x: (x * x).sum())
    for _ in range(4):
        f(kw.ones(2))
    assert kw.grad(f)(kw.asarray([3.0, 4.0])).numpy().tolist() == [6, 8]
