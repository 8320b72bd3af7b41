"""kw.optim.Muon against its formulas in NumPy's float64."""

import ml_dtypes
import numpy as np
import pytest

import kernwright as kw
from kernwright.errors import ArgumentError, InvalidArgument


def newton_schulz(g, steps=5):
    """KellerJordan/Muon, muon.py, in float64."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g.astype(np.float64)
    x = x.T if x.shape[0] > x.shape[1] else x
    x = x / (np.linalg.norm(x) + 1e-7)
    for _ in range(steps):
        s = x @ x.T
        x = a * x + (b * s + c * s @ s) @ x
    return x.T if g.shape[0] > g.shape[1] else x


@pytest.mark.parametrize("shape", [(4, 4), (3, 7), (7, 3), (1, 5), (5, 1)])
def test_newton_schulz_of_a_batch(shape):
    rng = np.random.default_rng(1)
    host = rng.standard_normal((2, *shape)).astype(np.float32)
    got = kw.optim.newton_schulz(kw.asarray(host), dtype="float32")
    for i in range(2):
        np.testing.assert_allclose(got[i].numpy(), newton_schulz(host[i]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(24, 16), (16, 40)])
def test_half_precision_ends_near_an_orthogonal_matrix(shape):
    host = np.random.default_rng(2).standard_normal(shape).astype(np.float32)
    got = kw.optim.newton_schulz(kw.asarray(host)).numpy()
    assert got.dtype == ml_dtypes.bfloat16
    exact = newton_schulz(host)
    assert np.linalg.norm(got.astype(np.float64) - exact) < 0.03 * np.linalg.norm(exact)
    singular = np.linalg.svd(got.astype(np.float64), compute_uv=False)
    assert singular.min() > 0.5 and singular.max() < 1.3


def test_zeros_stay_zeros():
    assert (kw.optim.newton_schulz(kw.zeros((3, 4)), dtype="float32").numpy() == 0).all()
    assert kw.optim.newton_schulz(kw.zeros((0, 3, 4)), dtype="float32").shape == (0, 3, 4)


@pytest.mark.parametrize("nesterov", [True, False])
def test_three_steps(nesterov):
    """Matrices of two shapes by Muon, vectors and the embedding by AdamW."""
    rng = np.random.default_rng(3)
    shapes = {"embed": (5, 4), "a": (4, 6), "b": (6, 4), "c": (4, 6), "bias": (6,)}
    hosts = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    params = {name: kw.asarray(x) for name, x in hosts.items()}
    params["c"] = kw.asarray(hosts["c"].astype(np.float32))
    exact = dict(hosts)
    optimizer = kw.optim.Muon(
        params, lr=0.1, momentum=0.9, weight_decay=0.2, nesterov=nesterov, dtype="float32",
        adamw={"lr": 0.05, "weight_decay": 0.1},
        groups=[{"match": "embed", "rule": "adamw"}, {"match": "^c", "lr": 0.3}],
    )  # fmt: skip
    rest = kw.optim.AdamW(
        {name: kw.asarray(hosts[name]) for name in ("embed", "bias")}, lr=0.05,
        betas=(0.9, 0.95), eps=1e-10, weight_decay=0.1,
    )  # fmt: skip
    momenta = dict.fromkeys("abc", 0.0)
    for _ in range(3):
        grads = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
        given = {name: kw.asarray(g) for name, g in grads.items()}
        optimizer.step(given)
        rest.step({name: given[name] for name in ("embed", "bias")})
        for name in "abc":
            g, lr = grads[name], 0.3 if name == "c" else 0.1
            momenta[name] = 0.9 * momenta[name] + 0.1 * g
            u = newton_schulz(g + 0.9 * (momenta[name] - g) if nesterov else momenta[name])
            rows, columns = shapes[name]
            gain = max(1, rows / columns) ** 0.5
            exact[name] = exact[name] * (1 - lr * 0.2) - lr * gain * u
    for name in "abc":
        tolerance = 1e-4 if name == "c" else 1e-9
        np.testing.assert_allclose(params[name].numpy(), exact[name], rtol=tolerance,
                                   atol=tolerance)  # fmt: skip
        np.testing.assert_allclose(optimizer.state_dict()["momentum_buffer"][name].numpy(),
                                   momenta[name], rtol=1e-5, atol=1e-6)  # fmt: skip
    for name, expected in zip(("embed", "bias"), rest.params, strict=True):
        assert np.array_equal(params[name].numpy(), expected.numpy())
    assert set(optimizer.state_dict()["exp_avg"]) == {"embed", "bias"}


def test_maximize():
    rng = np.random.default_rng(8)
    host, grad = rng.standard_normal((2, 3, 3))
    params = {"w": kw.asarray(host)}
    optimizer = kw.optim.Muon(params, lr=0.1, momentum=0.5, maximize=True)
    for _ in range(2):
        optimizer.step({"w": kw.asarray(grad)})
    np.testing.assert_allclose(params["w"].numpy(), host + 0.2 * newton_schulz(grad), rtol=1e-6)
    momentum = optimizer.states["momentum_buffer"]["w"].numpy()
    np.testing.assert_allclose(momentum, -0.75 * grad, rtol=1e-12)


def test_masters_and_loss_scale():
    host = np.random.default_rng(4).standard_normal((8, 8)).astype(np.float16)
    params = {"w": kw.asarray(host), "b": kw.ones(8, "float16")}
    optimizer = kw.optim.Muon(params, lr=0.1, momentum=0.0, master_weights=True, dtype="float32")
    scale = kw.optim.LossScale(256.0)
    grad = np.random.default_rng(5).standard_normal((8, 8)).astype(np.float32)
    bad = {"w": kw.full((8, 8), np.inf, "float16"), "b": kw.zeros(8)}
    optimizer.step(bad, loss_scale=scale)
    assert np.array_equal(params["w"].numpy(), host) and optimizer.steps.item() == 0
    assert not optimizer.states["momentum_buffer"]["w"].numpy().any()
    optimizer.step({"w": kw.asarray(grad * 128), "b": kw.zeros(8)}, loss_scale=scale)
    expected = host.astype(np.float64) - 0.1 * newton_schulz(grad)
    np.testing.assert_allclose(optimizer.masters["w"].numpy(), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(optimizer.states["momentum_buffer"]["w"].numpy(), grad, rtol=1e-6)


def test_replays_equal_steps():
    def made():
        rng = np.random.default_rng(6)
        params = {"w": kw.asarray(rng.standard_normal((8, 16)).astype(ml_dtypes.bfloat16)),
                  "v": kw.asarray(rng.standard_normal((8, 16)).astype(ml_dtypes.bfloat16)),
                  "b": kw.zeros(16)}  # fmt: skip
        schedule = kw.optim.linear(0.02, 30, warmup=3)
        return params, kw.optim.Muon(params, lr=schedule, stochastic_rounding=False)

    grads = {"w": kw.ones((8, 16), "bfloat16"), "v": kw.ones((16, 8), "bfloat16").T,
             "b": kw.ones(16)}  # fmt: skip
    params, optimizer = made()
    others, captured = made()
    stream, graph = kw.Stream(), kw.Graph()
    kw.synchronize()
    with graph.capture(stream):
        captured.step(grads, max_norm=3.0)
    for number in range(1, 21):
        grads["w"].fill(0.1 * number)
        kw.synchronize()
        optimizer.step(grads, max_norm=3.0)
        graph.launch(stream)
        stream.synchronize()
    for name in params:
        assert params[name].numpy().tobytes() == others[name].numpy().tobytes(), name
    assert captured.steps.item() == 20


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda p: kw.optim.Muon(p, momentum=1.0), InvalidArgument, "momentum lies between"),
        (lambda p: kw.optim.Muon(p, ns_steps=-1), ArgumentError, "steps of Newton-Schulz"),
        (lambda p: kw.optim.Muon(p, dtype="int32"), InvalidArgument, "the products are of"),
        (lambda p: kw.optim.Muon(p, adamw={"beta": 1}), ArgumentError, "did you mean 'betas'"),
        (lambda p: kw.optim.Muon(p, groups=[{"match": "b", "rule": "muon"}]), InvalidArgument,
         r"matrices, got a parameter of shape \(2,\)"),
        (lambda p: kw.optim.Muon(p, groups=[{"match": "b", "rule": "x"}]), InvalidArgument,
         'a rule is "muon" or "adamw"'),
        (lambda p: kw.optim.Muon(p, groups=[{"match": "w", "eps": 1.0}]), ArgumentError,
         "stepped by muon, has no 'eps'"),
        (lambda p: kw.optim.newton_schulz(p["b"]), InvalidArgument, "takes matrices"),
        (lambda p: kw.optim.newton_schulz(p["w"].astype("complex64")), InvalidArgument, "real"),
    ],
)  # fmt: skip
def test_wrong_calls(make, error, words):
    with pytest.raises(error, match=words):
        make({"w": kw.ones((2, 2)), "b": kw.ones(2)})
