"""Writes into values that a gradient needs, after the function has returned."""

import gc

import numpy as np
import pytest

import kernwright as kw
from kernwright import _core


def step(x):
    kw.optim.SGD({"x": x}, lr=1.0).step({"x": kw.ones(3)})


def functional_step(x):
    kw.optim.sgd([x], [kw.ones(3)], lr=1.0)


def average(x):
    kw.optim.EMA({"x": x}, 0.5).update()  # reads x alone


WRITERS = {
    "numpy": lambda x: x.__setitem__(..., np.ones(3, "f4")),
    "in place": lambda x: x.__iadd__(1),
    "view": lambda x: x[1:].fill(0),
    "out": lambda x: kw.exp(kw.ones(3), out=x),
    "optimiser": step,
    "function": functional_step,
    "clipping": lambda x: kw.optim.clip_grad_norm([x], 0.1),
    "normal": lambda x: kw.random.normal(3, out=x),
    "weibull": lambda x: kw.random.weibull(3.0, out=x),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_write_is_seen_when_an_earlier_function_is_dropped(name):
    for _ in range(2):  # the second vjp() is there before the first is dropped
        x = kw.asarray([1.0, 2.0, 3.0])
        back = kw.vjp(lambda x: x * x, x)[1]
    WRITERS[name](x)
    with pytest.raises(kw.InvalidArgument, match="has overwritten") as raised:
        back(kw.ones(3))
    assert "test_gradients_writes.py" in str(raised.value)


def test_a_scale_that_a_step_changes_is_a_write():
    weights, scale = kw.ones(3), kw.optim.LossScale(1024.0)
    back = kw.vjp(lambda x: x * scale.scale, weights)[1]
    optimizer = kw.optim.SGD({"x": weights}, lr=1.0)
    optimizer.step({"x": kw.full(3, np.inf)}, loss_scale=scale)
    assert scale.scale.item() == 512
    with pytest.raises(kw.InvalidArgument, match="has overwritten"):
        back(kw.ones(3))


def test_tokens_that_a_sum_counts_are_a_write():
    window = kw.optim.Accumulator(kw.zeros(2))
    back = kw.vjp(lambda x: x * window.tokens.astype("float32"), kw.ones(2))[1]
    x, counted = kw.ones(2), window.tokens
    direct = kw.vjp(lambda x: x * counted, x)[1]
    window.add(kw.ones(2), tokens=3)
    assert back(kw.ones(2))[0].numpy().tolist() == [0, 0]  # its copy stays
    with pytest.raises(kw.InvalidArgument, match="has overwritten"):
        direct(kw.ones(2))


def test_arrays_that_are_only_read_are_no_writes():
    x, grads = kw.asarray([1.0, 2.0, 3.0]), kw.ones(3)
    back = kw.vjp(lambda x: x * grads, x)[1]
    average(x)
    weights = kw.zeros(3)
    kw.optim.SGD({"x": weights}, lr=1.0).step({"x": grads})
    kw.optim.Accumulator({"x": weights}).add({"x": grads})
    assert back(kw.ones(3))[0].numpy().tolist() == [1, 1, 1]


def test_writes_that_matter_to_no_gradient_keep_no_memory():
    x, y = kw.ones(100), kw.ones(100)
    backs = [kw.vjp(lambda x: kw.exp(x) * y, x)[1], kw.vjp(lambda x: x + 1, x)[1]]
    used = kw.memory.stats()["used"]
    for _ in range(5):
        z = kw.zeros(100)
        z += 1
        z[0] = 3.0
        kw.random.normal(100, out=z)
    x.fill(2)  # neither needs it
    del z
    assert kw.memory.stats()["used"] == used
    found = [back(kw.ones(100))[0][0].item() for back in backs]
    np.testing.assert_allclose(found, [np.e, 1], 1e-5)
    y.fill(2)
    with pytest.raises(kw.InvalidArgument, match="gradient of multiply needs values that fill"):
        backs[0](kw.ones(100))
    assert backs[1](kw.ones(100))[0][0].item() == 1


def test_a_draw_into_an_array_of_the_function():
    def loss(x):
        y = x * 1
        squares = (y * y).sum()
        kw.random.uniform(3, out=y)
        return squares

    with pytest.raises(kw.InvalidArgument, match="a draw of random numbers"):
        kw.grad(loss)(kw.ones(3))

    def constant(x):
        y = x * 1
        kw.random.uniform(3, out=y)
        return y.sum()

    assert kw.grad(constant)(kw.ones(3)).numpy().tolist() == [0, 0, 0]


def test_steps_are_named_in_errors():
    def loss(x):
        kw.optim.SGD({"w": kw.zeros(3)}, lr=1.0).step({"w": x})
        return x.sum()

    with pytest.raises(kw.ArgumentError, match="a step of an optimiser has no gradient"):
        kw.grad(loss)(kw.ones(3))


def test_nothing_is_looked_at_when_all_are_dropped():
    gc.collect()  # errors of other tests keep frames, and these the functions of vjp()
    backs = [kw.vjp(lambda x: x * x, kw.ones(2))[1] for _ in range(3)]
    for _ in range(2):
        backs.pop()
        assert _core._is_recording()
    kw.grad(lambda x: (backs.clear(), (x * x).sum())[1])(kw.ones(2))  # dropped in a recording
    assert not _core._is_recording()
    kept = []

    def loss(x):
        kept.append(kw.vjp(lambda x: x * x, x * 1)[1])
        return x.sum()

    kw.grad(loss)(kw.ones(2))  # made in a recording
    assert _core._is_recording()
    kept.clear()
    assert not _core._is_recording()
