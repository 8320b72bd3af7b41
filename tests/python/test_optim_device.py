"""Words of a step on the device: schedules, loss scale, clipping, accumulation; graphs of them."""

import gc
import math

import ml_dtypes
import numpy as np
import pytest

import kernwright as kw
from kernwright.errors import ArgumentError, InvalidArgument

SCHEDULES = [
    kw.optim.constant(0.5),
    kw.optim.constant(0.5, warmup=4),
    kw.optim.linear(0.5, 9, warmup=2, floor=0.125),
    kw.optim.cosine(0.5, 9, warmup=3, floor=0.0625),
    kw.optim.cosine(0.5, 1),
    kw.optim.wsd(0.5, 10, decay=4, warmup=2),
    kw.optim.wsd(0.5, 10, decay=4, shape="linear", floor=0.25),
    kw.optim.wsd(0.5, 10, decay=4, shape="cosine"),
]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_the_device_follows_a_schedule(schedule):
    weights = kw.zeros(1, "float64")
    optimizer = kw.optim.SGD(weights, lr=schedule)
    expected = 0.0
    for step in range(1, 13):
        optimizer.step(kw.ones(1))
        assert abs(optimizer.rate.item() - schedule(step)) < 1e-15
        expected -= schedule(step)
        assert abs(weights.item() - expected) < 1e-14, step


def test_what_schedules_are():
    warm = kw.optim.cosine(1.0, 10, warmup=4, floor=0.1)
    assert [warm(step) for step in (1, 2, 3, 4)] == [0.25, 0.5, 0.75, 1.0]
    assert warm(10) == warm(11) == 0.1
    assert abs(warm(7) - (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi / 2)))) < 1e-15
    stay = kw.optim.wsd(1.0, 20, decay=4, warmup=2)
    assert [stay(step) for step in (1, 2, 16, 17, 20)] == [0.5, 1.0, 1.0, 0.5, 0.0]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: kw.optim.cosine(1.0, 10, warmup=10), InvalidArgument, "warmup=10 and total=10"),
        (lambda: kw.optim.linear(1.0, 5, warmup=9), InvalidArgument, "warmup=9 and total=5"),
        (lambda: kw.optim.linear(1.0, 0), InvalidArgument, "shorter than total"),
        (lambda: kw.optim.wsd(1.0, 10, decay=0), InvalidArgument, "warmup=0, decay=0 and total=10"),
        (lambda: kw.optim.wsd(1.0, 9, decay=20), InvalidArgument, "warmup=0, decay=20 and total=9"),
        (lambda: kw.optim.wsd(1.0, 10, decay=9, warmup=2), InvalidArgument, "warmup=2, decay=9"),
        (lambda: kw.optim.cosine(0.1, 10, floor=1.0), InvalidArgument, "floor=1.0 and peak=0.1"),
        (lambda: kw.optim.Schedule(1.0, 0.0, 10, 5, 3, "cosine"), InvalidArgument, "hold=5 and"),
        (lambda: kw.optim.Schedule(1.0, 0.0, 1, 3, 3, "root"), InvalidArgument, "hold < total"),
        (lambda: kw.optim.Schedule(1.0, 0.0, 1, 1, 3, "cos"), InvalidArgument, "got 'cos'"),
        (lambda: kw.optim.Schedule(-1.0, 0.0, 1, 1, 3, "cosine"), InvalidArgument, "peak is not"),
        (lambda: kw.optim.wsd(1.0, 10, decay=2, shape="x"), InvalidArgument, "shape is"),
        (lambda: kw.optim.cosine(1.0, 10)(-1), InvalidArgument, "counted from 1, got -1"),
        (lambda: kw.optim.constant(-1.0), InvalidArgument, "peak is not negative"),
        (lambda: kw.optim.constant(1.0, warmup=-1), InvalidArgument, "warmup is not negative"),
        (lambda: kw.optim.cosine(1.0, 1.5), ArgumentError, "total is a number of steps"),
        (lambda: kw.optim.cosine(1.0, 5, floor=math.nan), InvalidArgument, "floor is not negative"),
    ],
)
def test_wrong_schedules(make, error, words):
    with pytest.raises(error, match=words):
        make()


def training(seed):
    """Two float16 arrays with masters, an optimiser in groups, a loss scale, and one whole step."""
    rng = np.random.default_rng(seed)
    params = {
        "w": kw.asarray(rng.standard_normal((5, 3)).astype(np.float16)),
        "norm": kw.asarray(np.ones(3, np.float16)),
    }
    optimizer = kw.optim.AdamW(
        params, lr=kw.optim.cosine(0.1, 30, warmup=5), weight_decay=0.1, master_weights=True,
        groups=[{"match": "norm", "weight_decay": 0.0, "lr": 0.05}],
    )  # fmt: skip
    scale = kw.optim.LossScale(2.0**10, interval=3)
    window, average = kw.optim.Accumulator(params), kw.optim.EMA(params, 0.9)
    x = kw.zeros((2, 4, 5), "float16")
    tokens = kw.zeros((2, 1), "int64")

    def step():
        for i in range(2):
            out = (x[i] @ params["w"]) * params["norm"]
            dout = out * (scale.scale / 12).astype("float16")
            grads = {
                "w": x[i].T @ (dout * params["norm"]),
                "norm": kw.sum(dout * out, axis=0) / params["norm"],
            }
            window.add(grads, tokens=tokens[i])
        norm = optimizer.step(window, max_norm=1.0, loss_scale=scale)
        average.update()
        return norm

    def feed(number):
        feeder = np.random.default_rng(100 + number)
        big = 1e4 if number % 7 == 4 else 1.0  # an overflow of float16 now and then
        x[...] = kw.asarray((feeder.standard_normal((2, 4, 5)) * big).astype(np.float16))
        tokens[...] = kw.asarray(feeder.integers(0, 5, (2, 1)))
        kw.synchronize()

    arrays = [*params.values(), *optimizer.masters.values(), optimizer.steps, scale.scale,
              scale.good, *average.values.values(), window.tokens]  # fmt: skip
    for state in ("exp_avg", "exp_avg_sq"):
        arrays += optimizer.states[state].values()
    return step, feed, lambda: [each.numpy().tobytes() for each in arrays], scale


def test_twenty_replays_of_a_whole_step_equal_twenty_steps():
    """Accumulation, clipping, loss scale, schedule, masters, average: bit for bit."""
    eager, feed_eager, eager_bits, eager_scale = training(1)
    captured, feed, bits, _ = training(1)
    stream, graph = kw.Stream(), kw.Graph()
    kw.synchronize()
    with graph.capture(stream):
        norm = captured()
    scales = set()
    for number in range(20):
        feed_eager(number)
        expected = eager()
        feed(number)
        graph.launch(stream)
        stream.synchronize()
        assert expected.numpy().tobytes() == norm.numpy().tobytes(), number
        assert bits() == eager_bits(), number
        scales.add(eager_scale.scale.item())
    assert len(scales) > 3  # it shrank and grew


def test_a_graph_uses_what_is_set_later():
    weights = kw.zeros(1)
    optimizer = kw.optim.SGD(weights, lr=1.0)
    grad = kw.ones(1)
    stream, graph = kw.Stream(), kw.Graph()
    kw.synchronize()
    with graph.capture(stream):
        optimizer.step(grad)
    for lr, expected in ((1.0, -1.0), (0.5, -1.5), (0.0, -1.5)):
        optimizer.lr = lr
        kw.synchronize()
        graph.launch(stream)
        stream.synchronize()
        assert weights.item() == expected


def test_a_graph_follows_schedules_that_are_set_later():
    """A number in place of a schedule, a schedule in place of a number, one group alone."""
    weights = {"a": kw.zeros(1), "b": kw.zeros(1)}
    grads = {"a": kw.ones(1), "b": kw.ones(1)}
    schedule = kw.optim.linear(1.0, 8)
    optimizer = kw.optim.SGD(weights, lr=schedule, groups=[{"match": "b", "lr": 0.25}])
    groups = {name: group for group in optimizer.groups for name in group.names}
    stream, graph = kw.Stream(), kw.Graph()
    kw.synchronize()
    with graph.capture(stream):
        optimizer.step(grads)
    other, last = kw.optim.wsd(0.5, 9, decay=4, warmup=3), kw.optim.cosine(0.75, 9, floor=0.25)
    changes = [
        (lambda: None, schedule, 0.25),
        (lambda: setattr(optimizer, "lr", 0.125), 0.125, 0.25),
        (lambda: groups["b"].set(lr=other), 0.125, other),
        (lambda: setattr(optimizer, "lr", last), last, other),
        (lambda: groups["b"].set(lr=0.0), last, 0.0),
        (lambda: None, last, 0.0),
    ]
    totals = dict.fromkeys(weights, 0.0)
    for step, (change, *rates) in enumerate(changes, 1):
        change()
        kw.synchronize()
        graph.launch(stream)
        stream.synchronize()
        for name, rate in zip(weights, rates, strict=True):
            rate = rate if isinstance(rate, float) else rate(step)
            assert groups[name].rate.item() == pytest.approx(rate, rel=1e-14)
            totals[name] -= rate
            assert weights[name].item() == pytest.approx(totals[name], rel=1e-6)


def test_many_groups():
    """More groups than one launch moves on: those with a schedule count first."""
    weights = {f"w{i}": kw.zeros(1) for i in range(130)}
    groups = [{"match": f"^w{i}$", "lr": 0.5 if i < 120 else kw.optim.constant(0.25)}
              for i in range(130)]  # fmt: skip
    optimizer = kw.optim.SGD(weights, lr=1.0, groups=groups)
    optimizer.step({name: kw.ones(1) for name in weights})
    assert {name: x.item() for name, x in weights.items()} == {
        f"w{i}": -0.5 if i < 120 else -0.25 for i in range(130)
    }


def test_every_hyperparameter_is_used_where_it_is_set():
    """All of them far from their defaults, then all others by a graph's second launch."""
    host, grad = np.array([1.0, -2.0]), np.array([0.5, 0.25])
    weights, given = kw.asarray(host), kw.asarray(grad)
    optimizer = kw.optim.AdamW(weights, lr=0.5, betas=(0.25, 0.75), eps=0.5, weight_decay=0.125)
    stream, graph = kw.Stream(), kw.Graph()
    kw.synchronize()
    with graph.capture(stream):
        optimizer.step(given)
    m, v = np.zeros(2), np.zeros(2)
    for step, (lr, (b1, b2), eps, decay) in enumerate(
        [(0.5, (0.25, 0.75), 0.5, 0.125), (0.25, (0.5, 0.875), 0.25, 0.5)], 1
    ):
        optimizer.lr, optimizer.betas, optimizer.eps = lr, (b1, b2), eps
        optimizer.weight_decay = decay
        kw.synchronize()
        graph.launch(stream)
        stream.synchronize()
        m, v = m + (grad - m) * (1 - b1), b2 * v + (1 - b2) * grad**2
        root = np.sqrt(v / (1 - b2**step)) + eps
        host = host * (1 - lr * decay) - lr / (1 - b1**step) * m / root
        np.testing.assert_allclose(weights.numpy(), host, rtol=1e-13)


def test_a_graph_outlives_its_optimiser():
    weights = kw.zeros(3)
    optimizer = kw.optim.AdamW(weights, lr=kw.optim.constant(0.5), weight_decay=0.0)
    grad = kw.ones(3)
    stream, graph = kw.Stream(), kw.Graph()
    kw.synchronize()
    with graph.capture(stream):
        optimizer.step(grad)
    del optimizer
    gc.collect()
    filler = [kw.full(64, math.nan) for _ in range(20)]  # takes freed memory
    for _ in range(3):
        graph.launch(stream)
    stream.synchronize()
    np.testing.assert_allclose(weights.numpy(), -1.5, rtol=1e-5)
    del filler


def test_nothing_comes_to_the_host():
    step, _, _, _ = training(2)
    step()
    before = kw.memory.transfers()
    step()
    assert kw.memory.transfers() == before


def test_a_loss_scale_skips_grows_and_backs_off():
    weights = kw.full(2, 1.0, "float16")
    scale = kw.optim.LossScale(8.0, interval=2)
    optimizer = kw.optim.AdamW(weights, lr=0.5, weight_decay=0.5)
    history = []
    for overflow in (False, False, True, False, True, True, False, False, False):
        before = [weights.numpy().copy(), *[x[0].numpy() for x in optimizer.states.values()]]
        used = scale.scale.item()
        grad = kw.full(2, math.inf if overflow else used, "float16")
        norm = optimizer.step(grad, loss_scale=scale)
        after = [weights.numpy(), *[x[0].numpy() for x in optimizer.states.values()]]
        same = [np.array_equal(a, b) for a, b in zip(before, after, strict=True)]
        assert all(same) if overflow else not any(same)
        # The gradient was divided by the scale of its backward pass, not by the next one.
        assert math.isinf(norm.item()) if overflow else abs(norm.item() - 2**0.5) < 1e-6
        history.append((scale.scale.item(), optimizer.steps.item()))
    assert history == [
        *((8.0, 1), (16.0, 2), (8.0, 2), (8.0, 3), (4.0, 3), (2.0, 3)),
        *((2.0, 4), (4.0, 5), (4.0, 6)),
    ]
    other = kw.optim.LossScale()
    other.load_state_dict(scale.state_dict())
    assert other.scale.item() == 4 and other.good.item() == 1


def test_a_loss_scale_stays_a_number():
    """Neither infinite after long growth, nor 0 after many overflows."""
    weights = kw.zeros(1)
    optimizer = kw.optim.SGD(weights, lr=1.0)
    high, low = kw.optim.LossScale(2.0**127, interval=1), kw.optim.LossScale(2.0**-99, backoff=0.25)
    optimizer.step(kw.ones(1), loss_scale=high)
    assert high.scale.item() == 2.0**127 and high.good.item() == 0
    for _ in range(2):
        optimizer.step(kw.full(1, math.nan), loss_scale=low)
    assert low.scale.item() == 2.0**-100
    assert optimizer.steps.item() == 1


def test_an_empty_window_leaves_the_loss_scale():
    weights = kw.zeros(2)
    window, scale = kw.optim.Accumulator(weights), kw.optim.LossScale(8.0, interval=2)
    optimizer = kw.optim.SGD(weights, lr=1.0)
    window.add(kw.ones(2))
    optimizer.step(window, loss_scale=scale)
    optimizer.step(window, loss_scale=scale)
    assert (scale.scale.item(), scale.good.item(), optimizer.steps.item()) == (8.0, 1, 1)


def test_all_factors_of_the_gradients_together():
    """Sums over tokens, times the loss scale; the norm is that of their mean."""
    weights = kw.zeros(2)
    window, scale = kw.optim.Accumulator(weights), kw.optim.LossScale(8.0)
    window.add(kw.asarray([8 * 3.0, 8 * 4.0]), tokens=3)
    window.add(kw.zeros(2), tokens=1)
    norm = kw.optim.SGD(weights, lr=1.0).step(
        window, loss_scale=scale, max_norm=1.5, grad_scale=kw.full(1, 2.0)
    )
    assert norm.item() == 2 * 5 * 0.75
    np.testing.assert_allclose(weights.numpy(), [-0.9, -1.2], rtol=1e-6)


def test_a_skipped_step_leaves_the_gradients_alone():
    grad = kw.asarray(np.array([math.inf, 3.0], np.float32))
    optimizer = kw.optim.SGD(kw.ones(2), lr=0.5)
    optimizer.step(grad, loss_scale=kw.optim.LossScale(4.0), max_norm=1.0)
    assert grad.numpy().tolist() == [math.inf, 3.0]
    assert optimizer.steps.item() == 0


@pytest.mark.parametrize("limit", [0.5, 100.0])
def test_clipping_within_a_step(limit):
    hosts = {"a": np.full(3, 2.0, np.float32), "b": np.full((2, 2), -1.0, np.float32)}
    params = {name: kw.zeros_like(kw.asarray(x)) for name, x in hosts.items()}
    grads = {name: kw.asarray(x) for name, x in hosts.items()}
    norm = kw.optim.SGD(params, lr=1.0).step(grads, max_norm=limit)
    assert norm.shape == () and norm.item() == 4.0
    for name, host in hosts.items():
        np.testing.assert_allclose(params[name].numpy(), -host * min(1, limit / 4), rtol=1e-6)


def test_accumulation_is_a_mean_over_tokens():
    """Not a mean of means, and not of the last whole window only."""
    rng = np.random.default_rng(4)
    params = {"w": kw.zeros((3, 2)), "b": kw.zeros(2, "bfloat16")}
    window = kw.optim.Accumulator(params)
    optimizer = kw.optim.SGD(params, lr=1.0)
    total = {"w": np.zeros((3, 2)), "b": np.zeros(2)}
    for batches in ((5, 2, 3), (2,)):
        sums = {"w": np.zeros((3, 2)), "b": np.zeros(2)}
        for number, tokens in enumerate(batches):
            host = {
                "w": rng.standard_normal((3, 2)).astype(np.float32),
                "b": rng.standard_normal(2).astype(ml_dtypes.bfloat16),
            }
            grads = {name: kw.asarray(x) for name, x in host.items()}
            if number == 1:  # of a sum
                sums_of = {name: g * tokens for name, g in grads.items()}
                window.add(sums_of, kw.asarray(np.array([tokens])), reduction="sum")
            else:
                window.add(grads, kw.asarray(np.array([tokens])) if number else tokens)
            for name in sums:
                sums[name] += tokens * host[name].astype(np.float64)
        mean = window.mean()
        for name in sums:
            mean_of_tokens = sums[name] / sum(batches)
            np.testing.assert_allclose(mean[name].numpy(), mean_of_tokens, rtol=1e-5, atol=1e-6)
            total[name] -= mean_of_tokens
        optimizer.step(window)
        assert window.tokens.item() == 0
    np.testing.assert_allclose(params["w"].numpy(), total["w"], rtol=1e-5, atol=1e-6)
    assert window.sums["b"].dtype.name == "float32"


def test_sums_of_narrow_gradients_are_float32():
    """300 times 1 in bfloat16 stays at 256."""
    params = kw.zeros(1, "bfloat16")
    window = kw.optim.Accumulator(params)
    for _ in range(300):
        window.add(kw.ones(1, "bfloat16"))
    assert window.sums["0"].item() == 300 == window.tokens.item()


def test_windows_without_tokens():
    params = kw.ones(2)
    window = kw.optim.Accumulator(params)
    optimizer = kw.optim.AdamW(params, lr=0.5, weight_decay=0.5)
    nans = kw.full(2, math.nan)
    window.add(nans, tokens=0)
    window.add(nans, tokens=kw.zeros(1, "int64"))
    optimizer.step(window)
    assert params.numpy().tolist() == [1.0, 1.0] and optimizer.steps.item() == 0
    window.add(kw.ones(2), tokens=2)
    window.add(nans, tokens=kw.zeros(1, "int64"))
    optimizer.step(window)
    assert np.isfinite(params.numpy()).all() and optimizer.steps.item() == 1
    window.add(nans)  # the sums of the window before are forgotten, NaN too
    window.reset()
    window.add(kw.ones(2))
    assert window.mean()[0].numpy().tolist() == [1.0, 1.0]


def test_a_window_is_saved_and_refused_by_name():
    params = {"w": kw.zeros(2)}
    window, other = kw.optim.Accumulator(params), kw.optim.Accumulator(params)
    window.add({"w": kw.full(2, 3.0)}, tokens=2)
    other.load_state_dict(window.state_dict())
    assert other.mean()["w"].numpy().tolist() == [3.0, 3.0]
    for call, words in (
        (lambda: window.add({"v": kw.ones(2)}), "missing: w; unexpected: v"),
        (lambda: window.add({"w": kw.ones(2)}, -1), "tokens are not negative, got -1"),
        (lambda: window.add({"w": kw.ones(2)}, kw.ones(2, "int64")), "tokens is one int64"),
        (lambda: window.add({"w": kw.ones(2)}, reduction="max"), "reduction is"),
        (lambda: kw.optim.AdamW({"v": kw.ones(2)}).step(window), "missing: v; unexpected: w"),
    ):
        with pytest.raises(InvalidArgument, match=words):
            call()
    with pytest.raises(ArgumentError, match="tokens are an int or one int64, got float32"):
        window.add({"w": kw.ones(2)}, kw.ones(1))
    assert window.tokens.item() == 2


@pytest.mark.skipif(
    not kw.current_device().is_simulated,
    reason="a segment of a GPU's pool holds more than a step of these sizes needs",
)
@pytest.mark.parametrize("kind", ["AdamW", "Muon"])
def test_without_memory_nothing_changes(kind):
    """The norm of the gradients, copies of strided ones, the batches of Muon."""
    params = {"w": kw.ones((64, 64)), "v": kw.ones((64, 64)), "b": kw.ones(64)}
    optimizer = getattr(kw.optim, kind)(params, lr=0.5)
    scale = kw.optim.LossScale(4.0)
    grads = {"w": kw.ones((64, 128))[:, ::2], "v": kw.ones((64, 64)), "b": kw.ones(64)}
    optimizer.step(grads, loss_scale=scale, max_norm=1.0)
    everything = [*params.values(), scale.scale, scale.good, optimizer.steps]
    everything += [x for state in optimizer.states.values() for x in state.values()]
    before = [each.numpy() for each in everything]
    kw.memory.trim()
    failures = 0
    for spare in range(0, 200_000, 8_000):
        stats = kw.memory.stats()
        limit = stats["used"] + stats["padding"] + spare
        kw.memory.set_limit(limit)
        try:
            optimizer.step(grads, loss_scale=scale, max_norm=1.0)
        except kw.OutOfMemory:
            failures += 1
            after = [each.numpy() for each in everything]
            assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True)), spare
        else:
            break
        finally:
            kw.memory.set_limit(None)
    assert failures > 0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: kw.optim.LossScale(0.0), "init is above 0"),
        (lambda: kw.optim.LossScale(growth=0.5), "growth at least 1"),
        (lambda: kw.optim.LossScale(backoff=0.0), "backoff"),
        (lambda: kw.optim.LossScale(interval=0), "interval is 1 at least"),
        (lambda: kw.optim.AdamW(kw.ones(1)).step(kw.ones(1), max_norm=-1.0), "max_norm is not"),
    ],
)
def test_wrong_settings(make, words):
    with pytest.raises(InvalidArgument, match=words):
        make()


def test_sums_of_double_gradients_are_double():
    window = kw.optim.Accumulator(kw.zeros(1, "float64"))
    for value in (1.0, 2.0**-40):
        window.add(kw.full(1, value, "float64"), reduction="sum")
    assert window.sums["0"].item() == 1.0 + 2.0**-40


def test_every_kernel_under_all_checks(sim):
    with kw.checks("memory", "init", "race", "sync") as report:
        step, feed, _, _ = training(3)
        feed(0)
        step()
        kw.optim.Muon({"w": kw.ones((3, 2)), "b": kw.ones(2)}, dtype="float32").step(
            {"w": kw.ones((3, 2)), "b": kw.ones(2)}, loss_scale=kw.optim.LossScale()
        )
        kw.synchronize()
    assert not report.findings, str(report)
