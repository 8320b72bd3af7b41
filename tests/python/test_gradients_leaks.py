"""10,000 steps with the garbage collector off keep memory flat: the device's, Python's, the
process's."""

import contextlib
import gc
import pathlib
import sys

import kernwright as kw

STEPS = 10_000
PAGE = 4096


def resident():
    """Bytes of the process in memory."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * PAGE


def measured():
    return kw.memory.stats()["used"], sys.getallocatedblocks(), resident()


def test_ten_thousand_steps_keep_memory_flat():
    x = kw.asarray([0.5, 2.0])
    step = kw.value_and_grad(lambda x: (x * x).sum())
    for _ in range(300):
        loss, grad = step(x)
    gc.collect()
    gc.disable()
    try:
        used, blocks, size = measured()
        for _ in range(STEPS):
            loss, grad = step(x)
        size_with_garbage = resident()
        garbage = gc.collect()  # it also empties Python's lists of free tuples
        after = measured()
    finally:
        gc.enable()
    assert after[0] == used, "bytes of the device"
    assert after[1] - blocks < 1000, "objects of Python: less than one in ten steps"
    assert size_with_garbage - size < 8 << 20, "the process: less than 840 bytes a step"
    assert garbage < 50
    assert loss.item() == 4.25 and grad.numpy().tolist() == [1, 4]


def test_functions_of_every_kind_leave_nothing():
    """Second derivatives, checkpoints, writes, errors, captured steps: fewer steps of each."""
    w, x = kw.ones(2), kw.asarray([0.5, 2.0])
    net, row = kw.nn.Linear(2, 1, bias=False, seed=1), kw.ones((1, 2))
    square = kw.custom_gradient(lambda x: (x * x, x), lambda x, g: 2 * g * x)
    captured = kw.captured(kw.grad(lambda x: (kw.exp(x) * w).sum()))

    def written(x):
        y = x * 1
        y[0] = x[1]
        y += x
        return (y * w).sum()

    def fails(x):
        raise RuntimeError("no")

    def one_of_each():
        kw.grad(lambda x: kw.grad(lambda x: kw.sin(x).sum())(x).sum())(x)
        kw.grad(lambda x: kw.checkpoint(lambda x: kw.cos(x) * x)(x).sum())(x)
        kw.grad(written)(x)
        kw.vjp(lambda x: {"a": x * w, "b": [x]}, x)[1]({"a": x, "b": None})
        kw.grad(lambda net, x: square(net(x)).sum(), wrt=(0, 1))(net, row)
        captured(x)
        with contextlib.suppress(RuntimeError):
            kw.grad(fails)(x)

    for _ in range(100):
        one_of_each()
    gc.collect()
    gc.disable()
    try:
        used, blocks, size = measured()
        for _ in range(300):
            one_of_each()
        size_with_garbage = resident()
        garbage = gc.collect()  # it also empties Python's lists of free tuples
        after = measured()
    finally:
        gc.enable()
    assert after[0] == used and after[1] - blocks < 200
    assert size_with_garbage - size < 8 << 20 and garbage < 50
