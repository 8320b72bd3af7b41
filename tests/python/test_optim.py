"""kw.optim against the formulas in NumPy's float64."""

import math

import ml_dtypes
import numpy as np
import pytest

import kernwright as kw
from kernwright.errors import ArgumentError, InvalidArgument, NameNotFound

SHAPES = [(7,), (33, 5), (), (0,), (8192 + 9,), (4, 4)]
NAMES = {"exp_avg": "m", "exp_avg_sq": "v", "max_exp_avg_sq": "u", "momentum_buffer": "m"}
TOLERANCE = {"float64": 1e-12, "float32": 2e-6, "float16": 2e-3, "bfloat16": 1e-2}


def adam(p, g, s, t, lr, wd, decoupled, amsgrad=False, b=(0.9, 0.999), eps=1e-8):
    m, v = s.get("m", 0 * p), s.get("v", 0 * p)
    if decoupled:
        p = p * (1 - lr * wd)
    else:
        g = g + wd * p
    m, v = b[0] * m + (1 - b[0]) * g, b[1] * v + (1 - b[1]) * g * g
    s.update(m=m, v=v)
    if amsgrad:
        v = s["u"] = np.maximum(s.get("u", 0 * p), v)
    return p - lr / (1 - b[0] ** t) * m / (np.sqrt(v / (1 - b[1] ** t)) + eps)


def sgd(p, g, s, t, lr, wd, momentum, dampening, nesterov):
    g = g + wd * p
    if momentum == 0:
        return p - lr * g
    m = g if t == 1 else momentum * s["m"] + (1 - dampening) * g
    s["m"] = m
    return p - lr * (g + momentum * m if nesterov else m)


def lion(p, g, s, t, lr, wd, b=(0.9, 0.99)):
    m = s.get("m", 0 * p)
    p = p * (1 - lr * wd) - lr * np.sign(b[0] * m + (1 - b[0]) * g)
    s["m"] = b[1] * m + (1 - b[1]) * g
    return p


RULES = {
    "AdamW": (lambda *a: adam(*a, 0.01, 0.1, True), {"lr": 0.01, "weight_decay": 0.1}),
    "Adam": (lambda *a: adam(*a, 0.01, 0.1, False), {"lr": 0.01, "weight_decay": 0.1}),
    "amsgrad": (
        lambda *a: adam(*a, 0.01, 0.1, True, True),
        {"lr": 0.01, "weight_decay": 0.1, "amsgrad": True},
    ),
    "Lion": (lambda *a: lion(*a, 0.01, 0.1), {"lr": 0.01, "weight_decay": 0.1}),
    "SGD": (lambda *a: sgd(*a, 0.1, 0.1, 0, 0, False), {"lr": 0.1, "weight_decay": 0.1}),
    "momentum": (
        lambda *a: sgd(*a, 0.1, 0.1, 0.9, 0.2, False),
        {"lr": 0.1, "weight_decay": 0.1, "momentum": 0.9, "dampening": 0.2},
    ),
    "nesterov": (
        lambda *a: sgd(*a, 0.1, 0.0, 0.9, 0, True),
        {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    ),
}


def make(rule, params, **options):
    kind = {"momentum": "SGD", "nesterov": "SGD", "amsgrad": "AdamW"}.get(rule, rule)
    return getattr(kw.optim, kind)(params, **RULES[rule][1], **options)


def tensors(dtype, seed=0, shapes=SHAPES):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(np.float32).astype(dtype) for shape in shapes]


def as_dtype(dtype):
    return np.dtype(getattr(ml_dtypes, dtype, dtype))


def error(got, expected):
    got, expected = np.asarray(got, np.float64), np.asarray(expected, np.float64)
    return np.linalg.norm(got - expected) / max(np.linalg.norm(expected), 1e-30)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("dtype", "grad_dtype"), [("float32", "float32"), ("float64", "float32"),
                                                   ("float32", "bfloat16")])  # fmt: skip
def test_three_steps(rule, dtype, grad_dtype):
    hosts = tensors(as_dtype(dtype))
    params = [kw.asarray(x) for x in hosts]
    optimizer = make(rule, params)
    exact = [x.astype(np.float64) for x in hosts]
    states = [{} for _ in hosts]
    for t in (1, 2, 3):
        grads = tensors(as_dtype(grad_dtype), seed=t)
        optimizer.step([kw.asarray(g) for g in grads])
        exact = [
            RULES[rule][0](p, g.astype(np.float64), s, t)
            for p, g, s in zip(exact, grads, states, strict=True)
        ]
    assert optimizer.steps.numpy().tolist() == [3]
    for got, expected in zip(params, exact, strict=True):
        assert got.size == 0 or error(got.numpy(), expected) < TOLERANCE[dtype]


@pytest.mark.parametrize("rule", RULES)
def test_the_first_step_from_zero_is_right_to_the_last_bits(rule):
    """Rounding a beta before 1 - beta would be off by 1e-5 in the step and its moments."""
    grad = tensors(np.float32, seed=5, shapes=[(999,)])[0]
    state, param = {}, kw.zeros(grad.size)
    optimizer = make(rule, [param])
    optimizer.step([kw.asarray(grad)])
    zero = np.zeros(grad.size)
    exact = RULES[rule][0](zero, grad.astype(np.float64), state, 1)
    np.testing.assert_allclose(param.numpy(), exact, rtol=5e-7)
    got = {name: x for name, x in optimizer.state_dict().items() if name in NAMES}
    assert len(got) == len(state)
    for name, buffers in got.items():
        np.testing.assert_allclose(buffers[0].numpy(), state[NAMES[name]], rtol=5e-7)


@pytest.mark.parametrize("rule", ["AdamW", "Adam"])
def test_steps_of_gradients_from_far_below_epsilon_to_far_above(rule):
    """Where |g| is not far above epsilon, a step is shorter than the rate."""
    rng = np.random.default_rng(3)
    host = rng.standard_normal(20_000).astype(np.float32)
    sizes = 10 ** rng.uniform(-12, 2, host.size)
    param = kw.asarray(host)
    optimizer = make(rule, [param])
    exact, state = host.astype(np.float64), {}
    for t in range(1, 6):
        grad = (rng.standard_normal(host.size) * sizes).astype(np.float32)
        optimizer.step([kw.asarray(grad)])
        exact = RULES[rule][0](exact, grad.astype(np.float64), state, t)
    moved = np.abs(exact - host)
    assert moved.min() < 1e-3 < moved.max()
    assert np.abs(param.numpy() - exact).max() < 2e-5


@pytest.mark.parametrize(
    ("rule", "dtype"), [("AdamW", "bfloat16"), ("SGD", "float16"), ("nesterov", "bfloat16")]
)
def test_master_weights(rule, dtype):
    hosts = tensors(as_dtype(dtype))
    params = [kw.asarray(x) for x in hosts]
    optimizer = make(rule, params, master_weights=True)
    exact = [x.astype(np.float64) for x in hosts]
    states = [{} for _ in hosts]
    for t in (1, 2):
        grads = tensors(as_dtype(dtype), seed=t)
        optimizer.step([kw.asarray(g) for g in grads])
        exact = [
            RULES[rule][0](p, g.astype(np.float64), s, t)
            for p, g, s in zip(exact, grads, states, strict=True)
        ]
    for got, master, expected in zip(params, optimizer.masters, exact, strict=True):
        assert master.size == 0 or error(master.numpy(), expected) < 2e-6
        assert np.array_equal(got.numpy(), master.numpy().astype(as_dtype(dtype)))


def test_narrow_parameters_without_masters():
    host = tensors(as_dtype("bfloat16"))[1]
    p, g = kw.asarray(host), kw.asarray(host)
    make("AdamW", p).step(g)
    expected = RULES["AdamW"][0](*[host.astype(np.float64)] * 2, {}, 1)
    assert np.array_equal(p.numpy(), expected.astype(np.float32).astype(host.dtype))


def test_stochastic_rounding_is_right_on_average():
    ones = np.ones(20_000, as_dtype("bfloat16"))
    step = 2.0**-11  # an eighth of what bfloat16 can tell below 1 is 2**-8
    results = {}
    for seed in (1, 1, 2):
        p, g = kw.asarray(ones), kw.asarray(np.full(ones.size, step, np.float32))
        kw.optim.sgd(p, g, lr=1.0, stochastic_rounding=True, seed=seed)
        x = p.numpy().astype(np.float64)
        assert set(x.tolist()) == {1.0, 1 - 2.0**-8}
        assert abs((1 - x).mean() / step - 1) < 0.1
        assert seed not in results or np.array_equal(results[seed], x)
        results[seed] = x
    assert not np.array_equal(results[1], results[2])
    shifted = kw.ones(ones.size + 1, "bfloat16")[1:]
    kw.optim.sgd(shifted, g, lr=1.0, stochastic_rounding=True, seed=2)
    assert np.array_equal(shifted.numpy().astype(np.float64), results[2])
    wild = kw.asarray(np.array([np.inf, -np.inf, np.nan], np.float32)).astype("bfloat16")
    kw.optim.sgd(wild, kw.zeros(3), stochastic_rounding=True)
    assert str(wild.numpy().astype(np.float32).tolist()) == "[inf, -inf, nan]"


def test_many_tensors_of_mixed_dtypes():
    """More than one launch takes, misaligned and strided ones between them."""
    rng = np.random.default_rng(3)
    dtypes = ["float32", "bfloat16", "float64"]
    params, grads, exact = [], [], []
    for i in range(110):
        dtype = as_dtype(dtypes[i % 3])
        host = rng.standard_normal(i % 40).astype(np.float32).astype(dtype)
        storage = kw.zeros(host.size + 1, dtype)
        place = storage[i % 2 : i % 2 + host.size]
        place[...] = host
        g = rng.standard_normal(2 * host.size).astype(np.float32)
        params.append(place)
        grads.append(kw.asarray(g)[::-2])
        exact.append(host.astype(np.float64) - 0.5 * g[::-2].astype(np.float64))
    kw.optim.sgd(params, grads, lr=0.5)
    for i, (got, expected) in enumerate(zip(params, exact, strict=True)):
        tolerance = TOLERANCE[dtypes[i % 3]]
        np.testing.assert_allclose(wide(got), expected, rtol=tolerance, atol=tolerance)


def wide(x):
    return x.numpy().astype(np.float64)


def test_values_on_the_device():
    host, g = np.ones(9, np.float32), np.full(9, 2.0, np.float32)
    p, lr = kw.asarray(host), kw.asarray(np.array([0.25], np.float32))
    scale = kw.asarray(np.array(0.5, np.float32))
    kw.optim.sgd(p, kw.asarray(g), lr=lr, grad_scale=scale)
    assert (p.numpy() == 0.75).all()
    kw.optim.sgd(p, kw.asarray(g), lr=lr, grad_scale=scale, maximize=True)
    assert (p.numpy() == 1.0).all()
    step = kw.asarray(np.array([5]))
    results = []
    for given in (5, step):
        p, m, v = kw.asarray(host), kw.zeros(9), kw.zeros(9)
        kw.optim.adamw(p, kw.asarray(g), m, v, step=given)
        results.append(p.numpy())
    assert np.array_equal(*results)


def test_a_captured_step_counts():
    rng = np.random.default_rng(0)
    hosts = [rng.standard_normal(100).astype(np.float32), np.ones(3, np.float32)]
    grads = [kw.asarray(h) for h in hosts]
    eager = [kw.asarray(h) for h in hosts]
    params = [kw.asarray(h) for h in hosts]
    one, two = kw.optim.AdamW(eager, lr=0.1), kw.optim.AdamW(params, lr=0.1)
    stream, graph = kw.Stream(), kw.Graph()
    kw.synchronize()
    with graph.capture(stream):
        kw.optim.clip_grad_norm(grads, 1e9)
        two.step(grads, grad_scale=kw.optim.clip_scale(grads, 1e9)[1])
    for _ in range(4):
        one.step(grads)
        graph.launch(stream)
    stream.synchronize()
    assert two.steps.numpy().tolist() == [4]
    for a, b in zip(eager, params, strict=True):
        assert np.array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
def test_norm_and_clipping(dtype):
    hosts = tensors(as_dtype(dtype))
    flat = np.concatenate([h.astype(np.float64).reshape(-1) for h in hosts])
    for kind, exact in (
        (2, np.linalg.norm(flat)),
        (math.inf, np.abs(flat).max()),
        (1, np.abs(flat).sum()),
        (2.5, (np.abs(flat) ** 2.5).sum() ** 0.4),
    ):
        grads = [kw.asarray(h) for h in hosts]
        assert error(kw.optim.grad_norm(grads, kind).numpy(), exact) < 1e-6
        norm, scale = kw.optim.clip_scale(grads, 0.5, kind)
        assert norm.shape == () and error(scale.numpy(), 0.5 / (exact + 1e-6)) < 1e-6
        assert error(kw.optim.clip_grad_norm(grads, 0.5, kind).numpy(), exact) < 1e-6
        for got, host in zip(grads, hosts, strict=True):
            expected = host.astype(np.float64) * 0.5 / (exact + 1e-6)
            assert got.size == 0 or error(wide(got), expected) < max(TOLERANCE[dtype], 1e-7)
        before = [g.numpy() for g in grads]
        kw.optim.clip_grad_norm(grads, 10.0, kind)
        assert all(np.array_equal(g.numpy(), b) for g, b in zip(grads, before, strict=True))


def test_norms_of_special_values():
    x = np.ones(10, np.float32)
    assert float(kw.optim.grad_norm(kw.zeros((0,)))) == 0
    for value in (np.inf, np.nan):
        x[3] = value
        for kind in (2, math.inf):
            assert str(float(kw.optim.grad_norm(kw.asarray(x), kind))) == str(value)
    g = kw.asarray(x)
    kw.optim.clip_grad_norm(g, 1.0)
    assert np.isnan(g.numpy()).all()


def test_states_can_be_saved():
    p = kw.ones(5)
    optimizer = kw.optim.AdamW(p)
    optimizer.step(kw.ones(5))
    saved = {
        name: [kw.asarray(x.numpy()) for x in (v if isinstance(v, list) else [v])]
        for name, v in optimizer.state_dict().items()
    }
    other = kw.optim.AdamW(kw.asarray(p.numpy()))
    other.load_state_dict(saved)
    optimizer.step(kw.ones(5))
    other.step(kw.ones(5))
    assert np.array_equal(other.params[0].numpy(), p.numpy())
    with pytest.raises(NameNotFound, match="exp_avg"):
        other.load_state_dict({"steps": saved["steps"]})
    with pytest.raises(InvalidArgument, match=r"missing: exp_avg\[0\], exp_avg_sq\[0\]"):
        kw.optim.AdamW(kw.ones(3)).load_state_dict(
            {"exp_avg": [], "exp_avg_sq": [], "steps": kw.zeros(1, "int64")}
        )


def test_saved_states_must_have_the_shapes():
    optimizer = kw.optim.AdamW([kw.ones(5), kw.ones((2, 3))])
    saved = dict(optimizer.state_dict())
    for shape in ((3, 2), (6,), (1, 3), ()):  # some of them would broadcast
        wrong = {**saved, "exp_avg": [kw.ones(5), kw.ones(shape)]}
        with pytest.raises(InvalidArgument, match=r"exp_avg\[1\] has shape"):
            optimizer.load_state_dict(wrong)
    assert not any(state.numpy().any() for state in optimizer.states["exp_avg"])


def test_defaults_are_torchs():
    """Gradients so small that eps shows, and so different that betas do."""
    grads = [np.array([1e-8, 3.0], np.float64), np.array([-2e-8, 0.5], np.float64)]
    rules = {
        "AdamW": lambda p, g, s, t: adam(p, g, s, t, 1e-3, 1e-2, True),
        "Adam": lambda p, g, s, t: adam(p, g, s, t, 1e-3, 0.0, False),
        "Lion": lambda p, g, s, t: lion(p, g, s, t, 1e-4, 0.0),
        "SGD": lambda p, g, s, t: p - 1e-3 * g,
    }
    for name, rule in rules.items():
        function = getattr(kw.optim, name.lower())
        by_class, expected, states = kw.ones(2, "float64"), np.ones(2), {}
        by_function = kw.ones(2, "float64")
        optimizer = getattr(kw.optim, name)(by_class)
        kept = [kw.zeros(2, "float64") for _ in optimizer.states]
        for t, grad in enumerate(grads, 1):
            expected = rule(expected, grad, states, t)
            optimizer.step(kw.asarray(grad))
            function(by_function, kw.asarray(grad), *kept, step=t)
        assert np.abs(by_class.numpy() - expected).max() < 1e-15, name
        assert np.array_equal(by_function.numpy(), by_class.numpy()), name
        if kept:
            first = kept[0].numpy()
            assert np.allclose(first, states["m"], rtol=1e-12, atol=0), name


def test_equal_tensors_are_rounded_by_numbers_of_their_own():
    """Also when a gradient of another type stands between them, which another launch takes."""
    params = [kw.ones(4000, "bfloat16") for _ in range(3)]
    grads = [kw.ones(4000), kw.ones(4000, "bfloat16"), kw.ones(4000)]
    kw.optim.sgd(params, grads, lr=1e-3, stochastic_rounding=True, seed=3)
    bits = [p.numpy().view(np.uint16) for p in params]
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert 0.05 < (bits[a] != bits[b]).mean() < 0.6


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda p: kw.optim.AdamW(p, lr=-1.0), "lr is not negative, got -1.0"),
        (lambda p: kw.optim.Adam(p, lr=math.nan), "lr is not negative"),
        (lambda p: kw.optim.SGD(p, lr=kw.ones(2)), "lr is a number or an array of one float32"),
        (lambda p: kw.optim.Lion(p, lr=kw.ones(1, "float64")), "an array of one float32"),
        (lambda p: kw.optim.Adam(kw.ones(3, "int32")), r"params\[0\] is float16, .* not int32"),
        (lambda p: kw.optim.AdamW([p, p]), r"params\[0\] and params\[1\] are one array"),
        (lambda p: kw.optim.AdamW(p, betas=(1.0, 0.9)), "betas lie between 0 and 1"),
        (lambda p: kw.optim.Lion(p, betas=(0.9, -0.1)), "betas lie between 0 and 1"),
        (lambda p: kw.optim.Adam(p, eps=-1e-8), "eps is not negative"),
        (lambda p: kw.optim.Lion(p, weight_decay=-0.1), "weight_decay is not negative"),
        (lambda p: kw.optim.SGD(p, momentum=-1.0), "momentum is not negative"),
        (lambda p: kw.optim.SGD(p, nesterov=True), "nesterov needs a momentum"),
        (lambda p: kw.optim.SGD(p, momentum=0.9, dampening=0.1, nesterov=True), "no dampening"),
    ],
)
def test_senseless_settings_are_refused_at_once(make, words):
    with pytest.raises(InvalidArgument, match=words):
        make(kw.ones(2))


def test_every_kernel_under_all_checks(sim):
    with kw.checks("memory", "init", "race", "sync") as report:
        p = [kw.ones(n, "bfloat16") for n in (5, 4099)]
        make("AdamW", p, master_weights=True).step([kw.ones(n) for n in (5, 4099)])
        make("Lion", p, stochastic_rounding=True).step([kw.ones(n) for n in (5, 4099)])
        make("nesterov", kw.ones(9)).step(kw.ones(9))
        grads = [kw.ones(9000), kw.ones(3, "float16")]
        kw.optim.clip_grad_norm(grads, 1.0)
        kw.optim.clip_grad_norm(grads, 0.5, math.inf)
        kw.synchronize()
    assert not report.findings, str(report)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: kw.optim.sgd(kw.ones(3), kw.ones(4)), InvalidArgument, "(4,)"),
        (lambda: kw.optim.sgd([kw.ones(3)], []), InvalidArgument, "0 tensors"),
        (lambda: kw.optim.sgd(kw.ones(3, "int32"), kw.ones(3)), InvalidArgument, "not int32"),
        (lambda: kw.optim.sgd(kw.ones(6)[::2], kw.ones(3)), InvalidArgument, "contiguous"),
        (lambda: kw.optim.sgd(kw.ones(3), np.ones(3)), ArgumentError, "grads[0]"),
        (lambda: kw.optim.sgd(kw.ones(3), kw.ones(3), momentum=0.9), InvalidArgument, "states"),
        (lambda: kw.optim.sgd(kw.ones(3), kw.ones(3), nesterov=True), InvalidArgument, "nesterov"),
        (lambda: kw.optim.sgd(kw.ones(3), kw.ones(3), stochastic_rounding=True), InvalidArgument,
         "bfloat16"),
        (lambda: kw.optim.sgd(kw.ones(3), kw.ones(3), lr=-1.0), InvalidArgument, "lr"),
        (lambda: kw.optim.sgd(kw.ones(3), kw.ones(3), lr=math.inf), InvalidArgument, "lr is fini"),
        (lambda: kw.optim.sgd(kw.ones(3), kw.ones(3), lr=kw.ones(2)), InvalidArgument, "lr"),
        (lambda: kw.optim.adamw(*[kw.ones(3) for _ in range(4)], step=0), InvalidArgument,
         "from 1"),
        (lambda: kw.optim.adamw(*[kw.ones(3) for _ in range(4)], step=1, betas=(1.0, 0.5)),
         InvalidArgument, "betas"),
        (lambda: kw.optim.adamw(*[kw.ones(3) for _ in range(4)], step=1, betas=(0.5,)),
         ArgumentError, "betas are two numbers, got (0.5,)"),
        (lambda: kw.optim.adam(*[kw.ones(3) for _ in range(4)], step=1, eps=-1e-8),
         InvalidArgument, "eps is not negative"),
        (lambda: kw.optim.sgd(kw.ones(3), kw.ones(3), weight_decay=math.nan), InvalidArgument,
         "weight_decay is not negative, got nan"),
        (lambda: kw.optim.adamw(*[kw.ones(3) for _ in range(3)], kw.ones(3, "float64"), step=1),
         InvalidArgument, "one dtype"),
        (lambda: kw.optim.grad_norm(kw.ones(3), 0), InvalidArgument, "norm_type is above 0"),
        (lambda: kw.optim.grad_norm(kw.ones(3), -1), InvalidArgument, "norm_type"),
        (lambda: kw.optim.grad_norm([]), InvalidArgument, "no gradients"),
        (lambda: kw.optim.clip_grad_norm(kw.ones(3), -1.0), InvalidArgument, "max_norm"),
        (lambda: kw.optim.AdamW([]), InvalidArgument, "one parameter"),
        (lambda: kw.optim.AdamW(np.ones(3)), ArgumentError, "params[0]"),
    ],
)  # fmt: skip
def test_wrong_calls(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)


def test_a_refused_step_changes_nothing():
    p = [kw.ones(3), kw.ones(4)]
    optimizer = kw.optim.AdamW(p)
    with pytest.raises(InvalidArgument, match=r"grads\[1\]"):
        optimizer.step([kw.ones(3), kw.ones(5)])
    assert optimizer.steps.numpy().tolist() == [0]
    assert (p[0].numpy() == 1).all()
