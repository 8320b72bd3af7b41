"""What users of other libraries report about their gradients, tried here: writes through views,
streams, memory that is not there."""

import numpy as np
import pytest

import kernwright as kw

VIEWS = {
    "part": lambda y: y[1:], "row": lambda y: y[1], "turned": lambda y: y.T,
    "reshaped": lambda y: y.reshape(-1), "steps": lambda y: y[:, ::2],
    "reversed": lambda y: y[::-1],
    "one of several": lambda y: kw.split(y, 2, axis=1)[1],
    "unstacked": lambda y: kw.unstack(y)[1], "of a view": lambda y: y[1:].T[:2],
    "wider": lambda y: y[None],
}  # fmt: skip
WRITES = {
    "add": lambda v, x: v.__iadd__(x[0, 0]), "times": lambda v, x: v.__imul__(x[1, 1]),
    "assign": lambda v, x: v.__setitem__(..., x[0, 1] * 2), "constant": lambda v, x: v.fill(3.0),
    "part": lambda v, x: v.__setitem__(slice(0, 1), x[1, 0]),
    "out": lambda v, x: kw.add(v, x[0, 2], out=v),
}  # fmt: skip


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("view", VIEWS)
def test_a_write_and_a_view_are_right_or_refused(view, write):
    """Into the view or into what it is a view of; used are both, or one of them."""
    host = np.random.default_rng(0).uniform(0.5, 2, (2, 4))
    way = np.random.default_rng(1).uniform(-1, 1, host.shape)
    seen = []
    for into_view in (True, False):
        for used in ("base", "view", "both"):

            def f(x, into_view=into_view, used=used):
                y = x * 1
                part = VIEWS[view](y)
                WRITES[write](part if into_view else y, x)
                total = kw.zeros((), "float64")
                total = total if used == "view" else total + (y * y).sum()
                return total if used == "base" else total + (part * part * part).sum()

            ends = [f(kw.asarray(host + step * way)).item() for step in (1e-6, -1e-6)]
            try:
                gradient = kw.grad(f)(kw.asarray(host))
            except kw.InvalidArgument as error:
                assert "reads memory that" in str(error) or "has overwritten" in str(error)
                seen.append("refused")
                continue
            slope = (ends[0] - ends[1]) / 2e-6
            assert abs((gradient.numpy() * way).sum() - slope) <= 1e-5 * (1 + abs(slope))
            seen.append("right")
    assert "right" in seen


@pytest.mark.parametrize("product", [lambda x, w: x @ w, lambda x, w: kw.einsum("ij,jk->ik", x, w)])
def test_products_see_writes_through_views_of_their_operands(product):
    def f(x):
        y = x * 1
        z = product(y, y.T)
        y[0] = 0.0
        return z.sum()

    with pytest.raises(kw.InvalidArgument, match="has overwritten"):
        kw.grad(f)(kw.ones((2, 2), "float64"))


def test_writes_into_the_result_of_a_custom_gradient():
    """What backward() gets was made by forward(), so it may not change; new arrays may."""
    square = kw.custom_gradient(lambda x: ((y := x * x), y), lambda saved, g: g * saved)

    def changed(x):
        y = square(x)
        y += 1
        return y.sum()

    x = kw.asarray([1.0, 2.0], dtype="float64")
    with pytest.raises(kw.InvalidArgument, match=r"custom_gradient\(\) needs values that add"):
        kw.grad(changed)(x)
    double = kw.custom_gradient(lambda x: (x * 2, None), lambda saved, g: g * 2)

    def assigned(x):
        y = double(x) * 1
        y[0] = 5.0
        y += x
        return (y * 3).sum()

    assert assigned(x).item() == 3 * 6 + 3 * 6
    assert kw.grad(assigned)(x).numpy().tolist() == [3, 9]


def test_sums_in_place_that_are_read_on_the_host():
    def f(x):
        total = kw.zeros((2, 3))
        total += x
        assert total.tolist() == [[1, 2, 3]] * 2
        total += total
        return (total * total).sum()

    assert kw.grad(f)(kw.asarray([1.0, 2.0, 3.0])).numpy().tolist() == [16, 32, 48]


def test_a_gradient_taken_on_another_stream_than_the_function_ran_on():
    x, first, second = kw.asarray([0.5, 2.0]), kw.Stream(), kw.Stream()
    with first:
        _, back = kw.vjp(lambda x: kw.exp(x) * x, x)
    first.synchronize()
    expected = np.exp([0.5, 2.0]) * [1.5, 3.0]
    with second:
        found = back(kw.ones(2))[0]
    second.synchronize()
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)
    graph = kw.Graph()
    kw.synchronize()
    with graph.capture():
        found = back(kw.ones(2))[0]
    graph.launch()
    kw.synchronize()
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)


def arrays_in(nest):
    if isinstance(nest, kw.Array):
        return [nest]
    return [each for part in nest.values() for each in arrays_in(part)]


@pytest.mark.skipif(
    not kw.current_device().is_simulated,
    reason="a segment of a GPU's pool holds more than a step of these sizes needs",
)
def test_a_step_without_memory_leaves_all_as_it_was():
    net = kw.nn.Sequential(kw.nn.Linear(64, 64, seed=1), kw.nn.silu, kw.nn.Linear(64, 1, seed=2))
    optimizer = kw.optim.AdamW(net, lr=0.1)
    x = kw.ones((32, 64))

    def step():
        loss, gradients = kw.value_and_grad(lambda net: kw.nn.mse_loss(net(x), x[:, :1] * 2))(net)
        optimizer.step(gradients, max_norm=1.0)
        return loss.item()

    step()
    everything = [*(each for _, each in net.named_parameters()), optimizer.steps]
    everything += arrays_in(optimizer.states)
    before = [each.numpy() for each in everything]
    kw.memory.trim()
    failures = 0
    for spare in range(0, 400_000, 8_000):
        stats = kw.memory.stats()
        kw.memory.set_limit(stats["used"] + stats["padding"] + spare)
        try:
            step()
        except kw.OutOfMemory:
            failures += 1
            pairs = zip(before, everything, strict=True)
            assert all(np.array_equal(a, b.numpy()) for a, b in pairs), spare
        else:
            break
        finally:
            kw.memory.set_limit(None)
    assert failures > 3
    assert np.isfinite(step())
