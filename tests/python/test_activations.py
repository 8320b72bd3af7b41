"""Activations, gated units, bias and activation, dropout: against NumPy in float64."""

import numpy as np
import pytest
from nn_arrays import TYPES, assert_close, values, views, wide
from scipy import special

import kernwright as kw

nn = kw.nn


def sigmoid(x):
    return special.expit(x)


def softplus(x):
    return np.logaddexp(0, x)


FUNCTIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "relu2": lambda x: np.maximum(x, 0) ** 2,
    "relu6": lambda x: np.clip(x, 0, 6),
    "hardtanh": lambda x: np.clip(x, -1, 1),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "celu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "selu": lambda x: (
        1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0)))
    ),
    "sigmoid": sigmoid,
    "log_sigmoid": lambda x: -softplus(-x),
    "tanh": np.tanh,
    "silu": lambda x: x * sigmoid(x),
    "gelu": lambda x: x * special.ndtr(x),
    "quick_gelu": lambda x: x * sigmoid(1.702 * x),
    "softplus": lambda x: np.where(x > 20, x, softplus(x)),
    "softsign": lambda x: x / (1 + abs(x)),
    "mish": lambda x: x * np.tanh(softplus(x)),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hardsigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
}


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def slope_of(function, x):
    """The derivative by differences of the fourth order; h is best for float64."""
    h = 1e-3
    return (8 * (function(x + h) - function(x - h)) - function(x + 2 * h) + function(x - 2 * h)) / (
        12 * h
    )


def smooth_values(n, dtype, seed=0):
    """Values away from the kinks at 0, 1, 3 and 6, where slopes jump."""
    x = np.random.default_rng(seed).uniform(-7, 7, n)
    near = np.abs(np.abs(x)[:, None] - np.array([0, 1, 3, 6])).min(axis=1) < 0.1
    return (x + 0.25 * near).astype(TYPES[dtype])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients(name):
    function = FUNCTIONS[name]
    # Rounding to bfloat16 is the same code for every function: each third one meets it.
    rounded = ("bfloat16",) if list(FUNCTIONS).index(name) % 3 == 0 else ()
    for dtype in ("float32", "float64", *rounded):
        x, dy = smooth_values(515, dtype), values(515, dtype, 1)
        on_device = kw.asarray(x)
        assert_close(getattr(nn, name)(on_device), function(wide(x)), dtype)
        got = getattr(nn, name + "_backward")(kw.asarray(dy), on_device)
        assert got.dtype == on_device.dtype
        assert_close(
            got, wide(dy) * slope_of(function, wide(x)), dtype, 100 if dtype == "float64" else 3
        )


def test_the_tanh_form_of_gelu():
    x = smooth_values(300, "float64")
    assert_close(nn.gelu(kw.asarray(x), "tanh"), gelu_tanh(x), "float64")
    got = nn.gelu_backward(kw.ones(300, "float64"), kw.asarray(x), "tanh")
    assert_close(got, slope_of(gelu_tanh, x), "float64", 100)
    with pytest.raises(kw.ArgumentError, match="approximate"):
        nn.gelu(kw.asarray(x), "erf")


def test_numbers_of_activations():
    x = smooth_values(200, "float64")
    a = kw.asarray(x)
    assert_close(nn.hardtanh(a, -2.5, 0.75), np.clip(x, -2.5, 0.75), "float64")
    assert_close(nn.leaky_relu(a, 0.3), np.where(x > 0, x, 0.3 * x), "float64")
    assert_close(nn.elu(a, 2.0), np.where(x > 0, x, 2 * np.expm1(x)), "float64")
    assert_close(nn.celu(a, 2.0), np.where(x > 0, x, 2 * np.expm1(x / 2)), "float64")
    slope = np.where(x > 0, 1, np.exp(x / 2))
    assert_close(nn.celu_backward(kw.ones(200, "float64"), a, 2.0), slope, "float64")
    assert_close(nn.softplus(a, 2.0, 1e9), np.log1p(np.exp(2 * x)) / 2, "float64")


def test_bounds_of_hardtanh():
    x, nan = kw.asarray([-2.0, 0.5, 3.0]), float("nan")
    assert nn.hardtanh(x, 1, 1).tolist() == [1, 1, 1]
    assert nn.hardtanh(x, -np.inf, np.inf).tolist() == x.tolist()
    for low, high in ((1.5, 1), (nan, 1), (0, nan), (np.inf, -np.inf)):
        for call in (lambda *a: nn.hardtanh(x, *a), lambda *a: nn.hardtanh_backward(x, x, *a)):
            with pytest.raises(kw.InvalidArgument, match=f"low={low} and high={high}"):
                call(low, high)
    with pytest.raises(kw.ArgumentError, match="low is 'a'"):
        nn.hardtanh(x, "a", 1)


@pytest.mark.parametrize("dtype", [*TYPES, "float8_e4m3fn", "float8_e5m2"])
def test_element_types_and_views(dtype):
    x = values((6, 35), "float32", scale=2)
    if dtype not in TYPES:
        eighth = kw.asarray(x).astype(dtype)
        expected = kw.asarray(nn.silu(eighth.astype("float32"))).astype(dtype)
        np.testing.assert_array_equal(
            nn.silu(eighth).view("uint8").numpy(), expected.view("uint8").numpy()
        )
        return
    x = x.astype(TYPES[dtype])
    for view in views(x):
        assert_close(nn.silu(view), FUNCTIONS["silu"](wide(x)), dtype)
        got = nn.relu2_backward(view, view)
        assert_close(got, 2 * wide(x) * np.maximum(wide(x), 0), dtype)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2), (1023,), (1024,), (1025,), (300001,)])
def test_sizes(shape):
    x = values(shape)
    assert_close(nn.relu(kw.asarray(x)), np.maximum(x, 0))
    assert_close(nn.relu_backward(kw.asarray(x), kw.asarray(x)), np.maximum(x, 0))


def test_many_blocks_have_four_packs_a_thread():
    x = values(1024 * 1024 + 300 * 1024 + 5, "float32")
    assert_close(nn.relu(kw.asarray(x)), np.maximum(x, 0))


def test_broadcast_views():
    row = values((1, 40))
    view = kw.asarray(row)._broadcast((5, 40))
    assert_close(nn.silu(view), np.broadcast_to(FUNCTIONS["silu"](wide(row)), (5, 40)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values(name):
    x = np.array([np.nan, np.inf, -0.0, 1e-40, 3e38, 88.0, -88.0], np.float32)
    got = getattr(nn, name)(kw.asarray(x)).numpy()
    assert np.isnan(got[0])
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[name](x.astype(np.float64)).astype(np.float32)
    if name == "softsign":
        expected[1] = np.nan  # inf / inf
    if name == "hardswish":
        expected[1] = np.inf
    np.testing.assert_allclose(got[1:], expected[1:], rtol=1e-5, atol=1e-30)


def test_gradients_far_out_are_finite():
    x = np.array([1e30, -1e30, 1e4, -1e4, 0.0], np.float32)
    for name in ("silu", "quick_gelu", "tanh", "mish", "softplus", "sigmoid", "log_sigmoid"):
        got = getattr(nn, name + "_backward")(kw.ones(5), kw.asarray(x)).numpy()
        assert np.isfinite(got).all(), name
    got = nn.gelu_backward(kw.ones(5), kw.asarray(x), "tanh").numpy()
    np.testing.assert_array_equal(got, [1, 0, 1, 0, 0.5])


GATES = {
    "swiglu": FUNCTIONS["silu"],
    "geglu": gelu_tanh,
    "reglu": FUNCTIONS["relu"],
    "glu": sigmoid,
}


@pytest.mark.parametrize("name", GATES)
def test_gated_units(name):
    function = GATES[name]
    for dtype, cols in (("float64", 20), ("float32", 33), ("bfloat16", 64)):
        gate, up, dy = (values((7, cols), dtype, seed) for seed in range(3))
        expected = function(wide(gate)) * wide(up)
        dgate = wide(dy) * wide(up) * slope_of(function, wide(gate))
        dup = wide(dy) * function(wide(gate))
        g, u, d = kw.asarray(gate), kw.asarray(up), kw.asarray(dy)
        forward, backward = getattr(nn, name), getattr(nn, name + "_backward")
        assert_close(forward(g, u), expected, dtype)
        factor = 1e3 if name == "reglu" else 100
        got = backward(d, g, u)
        assert_close(got[0], dgate, dtype, factor if dtype == "float64" else 4)
        assert_close(got[1], dup, dtype)
        fused = kw.asarray(np.concatenate([gate, up], axis=1))
        assert_close(forward(fused), expected, dtype)
        both = backward(d, fused).numpy()
        np.testing.assert_array_equal(wide(both[:, :cols]), wide(got[0].numpy()))
        np.testing.assert_array_equal(wide(both[:, cols:]), wide(got[1].numpy()))


def test_gated_units_of_views_and_sizes():
    gate, up = values((6, 35)), values((6, 35), seed=1)
    expected = gate * sigmoid(wide(gate)) * up
    for g, u in zip(views(gate), reversed(list(views(up))), strict=True):
        assert_close(nn.swiglu(g, u), expected)
        assert_close(nn.swiglu_backward(u, g, u)[1], gate * sigmoid(wide(gate)) * up)
    for shape in [(0, 4), (3, 0), (1, 2), (2, 3, 8)]:
        assert nn.swiglu(kw.ones(shape)).shape == (*shape[:-1], shape[-1] // 2)
    large = values((300, 4096), seed=2)
    assert_close(nn.reglu(kw.asarray(large)), np.maximum(large[:, :2048], 0) * large[:, 2048:])


def test_bias_and_activation():
    for dtype, shape in (("float64", (9, 20)), ("float32", (2, 70, 33)), ("bfloat16", (200, 256))):
        x, dy, bias = values(shape, dtype), values(shape, dtype, 1), values(shape[-1], dtype, 2)
        at = wide(x) + wide(bias)
        a, d, b = kw.asarray(x), kw.asarray(dy), kw.asarray(bias)
        assert_close(nn.bias_gelu(a, b), FUNCTIONS["gelu"](at), dtype)
        assert_close(nn.bias_gelu(a, b, "tanh"), gelu_tanh(at), dtype)
        dx, dbias = nn.bias_gelu_backward(d, a, b)
        expected = wide(dy) * slope_of(FUNCTIONS["gelu"], at)
        assert_close(dx, expected, dtype, 100 if dtype == "float64" else 4)
        total = expected.reshape(-1, shape[-1]).sum(axis=0)
        assert_close(dbias, total, dtype, 1000 if dtype == "float64" else 20)
        again = nn.bias_gelu_backward(d, a, b)[1]
        np.testing.assert_array_equal(wide(dbias.numpy()), wide(again.numpy()))
        if dtype == "bfloat16":  # few instructions, as without a bias
            dx, _ = nn.bias_gelu_backward(d, a, kw.zeros(shape[-1], dtype), "tanh")
            apart = nn.gelu_backward(d, a, "tanh")
            np.testing.assert_array_equal(wide(dx.numpy()), wide(apart.numpy()))
    x, bias = values((6, 35)), values(35, seed=1)
    for view in views(x):
        got = nn.bias_activation(view, kw.asarray(bias), "silu")
        assert_close(got, FUNCTIONS["silu"](wide(x) + bias))
    dx, dbias = nn.bias_activation_backward(kw.ones((0, 3)), kw.ones((0, 3)), kw.ones(3), "relu")
    assert dx.shape == (0, 3) and not dbias.numpy().any()


def philox_mask(n, p, seed, offset):
    """The words of Philox4x32-10 by the published algorithm, in Python's integers."""
    words = []
    for block in range(-(-n // 4)):
        c = [block & 0xFFFFFFFF, block >> 32, offset & 0xFFFFFFFF, offset >> 32]
        k = [seed & 0xFFFFFFFF, seed >> 32]
        for _ in range(10):
            a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
            k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
        words += c
    return np.array(words[:n]) >= round(p * 2**32)


@pytest.mark.parametrize("dtype", TYPES)
def test_dropout_is_a_function_of_place_and_seed(dtype):
    x = values(1027, dtype)
    mask = philox_mask(1027, 0.3, 77 + (5 << 40), 9 + (1 << 35))
    call = {"p": 0.3, "seed": 77 + (5 << 40), "offset": 9 + (1 << 35)}
    assert_close(nn.dropout(kw.asarray(x), **call), wide(x) * mask / 0.7, dtype)
    shifted = kw.asarray(np.concatenate([x[:1], x]))[1:]
    assert_close(nn.dropout(shifted, **call), wide(x) * mask / 0.7, dtype)
    ones = kw.ones(1027, dtype)
    assert_close(nn.dropout_backward(ones, **call), mask / 0.7, dtype)


def test_dropout_by_chance():
    x = kw.ones(200000)
    for p in (0.1, 0.5, 0.9):
        kept = np.count_nonzero(nn.dropout(x, p, seed=1).numpy())
        assert abs(kept - 200000 * (1 - p)) < 5 * np.sqrt(200000 * p * (1 - p))
    np.testing.assert_array_equal(nn.dropout(x, 0.0, seed=1).numpy(), 1)
    nans = kw.full(9, np.nan)
    np.testing.assert_array_equal(nn.dropout(nans, 1.0, seed=1).numpy(), 0)
    assert nn.dropout(kw.ones((0, 3)), seed=0).shape == (0, 3)
    with pytest.raises(kw.InvalidArgument, match=r"p is 1\.5"):
        nn.dropout(x, 1.5, seed=0)
    with pytest.raises(kw.ArgumentError):
        nn.dropout(x, 0.5)


def test_wrong_calls():
    x = kw.ones((2, 4))
    with pytest.raises(kw.ArgumentError, match=r"int64.*floating"):
        nn.relu(kw.asarray(np.arange(3)))
    with pytest.raises(kw.ArgumentError, match="asarray"):
        nn.relu(np.ones(3, np.float32))
    with pytest.raises(kw.InvalidArgument, match=r"Incompatible dimensions.*\(2, 4\).*\(4, 2\)"):
        nn.relu_backward(x, kw.ones((4, 2)))
    with pytest.raises(kw.InvalidArgument, match=r"float32.*float64"):
        nn.swiglu(x, kw.ones((2, 4), "float64"))
    with pytest.raises(kw.InvalidArgument, match="even number"):
        nn.swiglu(kw.ones((2, 3)))
    with pytest.raises(kw.InvalidArgument, match="bias must"):
        nn.bias_gelu(x, kw.ones(2))
    with pytest.raises(kw.ArgumentError, match=r'"nothing" is no activation.*gelu_tanh'):
        nn.bias_activation(x, kw.ones(4), "nothing")


def test_no_finding_in_any_kernel(sim):
    with kw.checks("memory", "init", "race", "sync") as report:
        x, dy, bias = kw.asarray(values((5, 38))), kw.ones((5, 38)), kw.ones(38)
        nn.silu(x[:, 1:])
        nn.silu_backward(dy, x)
        nn.geglu(x)
        nn.geglu_backward(kw.ones((5, 19)), x)
        nn.bias_gelu(x, bias)
        nn.bias_gelu_backward(dy, x, bias)
        nn.dropout(x, 0.5, seed=3)
    report.raise_if_any()


def test_replay_in_a_graph():
    x, bias = kw.asarray(values((4, 8))), kw.asarray(values(8, seed=1))
    warm = nn.swiglu(nn.bias_gelu(x, bias)), nn.bias_gelu_backward(x, x, bias)
    del warm
    stream = kw.Stream()
    graph = kw.Graph()
    with graph.capture(stream):
        got = nn.swiglu(nn.bias_gelu(x, bias))
        dbias = nn.bias_gelu_backward(x, x, bias)[1]
    fresh = values((4, 8), seed=5)
    x[...] = kw.asarray(fresh)
    kw.current_device().synchronize()
    graph.launch(stream)
    stream.synchronize()
    at = wide(fresh) + wide(bias.numpy())
    h = FUNCTIONS["gelu"](at)
    assert_close(got, FUNCTIONS["silu"](h[:, :4]) * h[:, 4:])
    assert_close(dbias, (fresh * slope_of(FUNCTIONS["gelu"], at)).sum(axis=0), factor=4)
