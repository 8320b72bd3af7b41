"""The layers of kw.nn against NumPy in float64."""

import math

import numpy as np
import pytest

import kernwright as kw

RNG = np.random.default_rng(5)


def drawn(*shape):
    return RNG.standard_normal(shape)


def close(made, expected, tolerance=1e-5):
    np.testing.assert_allclose(made.astype("float64").numpy(), expected, tolerance, tolerance)


def wide(array):
    return array.astype("float64").numpy()


def silu(x):
    return x / (1 + np.exp(-x))


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


@pytest.mark.parametrize("bias", [True, False])
def test_linear(bias):
    layer, x = kw.nn.Linear(6, 5, bias, seed=1), drawn(3, 2, 6)
    expected = x @ wide(layer.weight).T + (wide(layer.bias) if bias else 0)
    close(layer(kw.asarray(x.astype("f"))), expected)
    assert np.abs(wide(layer.weight)).max() <= 1 / math.sqrt(6)
    np.testing.assert_array_equal(wide(layer.weight), wide(kw.nn.Linear(6, 5, bias, seed=1).weight))


def test_layers_draw_from_the_generator_without_a_seed():
    kw.random.seed(3)
    one, other = kw.nn.Linear(4, 4), kw.nn.Linear(4, 4)
    assert not (one.weight == other.weight).all()
    kw.random.seed(3)
    assert (kw.nn.Linear(4, 4).weight == one.weight).all()


@pytest.mark.parametrize("format", ["int8", "float8_e4m3fn", "q8_0", "q4_k"])
def test_linear_of_few_bits(format):
    layer = kw.nn.Linear(256, 64, seed=1).astype("bfloat16")
    x = kw.asarray(drawn(3, 256).astype("f")).astype("bfloat16")
    exact = layer(x).astype("float32").numpy()
    assert layer.quantize(format) is layer
    error = np.linalg.norm(layer(x).astype("float32").numpy() - exact) / np.linalg.norm(exact)
    assert error < (0.1 if format == "q4_k" else 0.05)
    assert f"format={format}" in repr(layer)
    assert [name for name, _ in layer.named_parameters()] == ["bias"]
    with pytest.raises(kw.InvalidArgument, match="quantised already"):
        layer.quantize(format)
    copied = layer.copy()
    assert (copied(x) == layer(x)).all()


def test_a_module_with_quantised_weights_is_not_saved_without_them(tmp_path):
    net = kw.nn.Sequential(kw.nn.Linear(32, 8))
    net[0].quantize("int8")
    with pytest.raises(kw.InvalidArgument, match=r"0\.weight is quantised: save\(\)"):
        net.save(tmp_path / "net.safetensors")
    assert not (tmp_path / "net.safetensors").exists()
    with pytest.raises(kw.InvalidArgument, match=r"load\(\)"):
        net.load({"0.bias": kw.zeros(8)}, strict=False)


def test_seeds_of_layers():
    assert kw.nn.Linear(2, 3, seed=2**64 - 1).weight.shape == (3, 2)
    with pytest.raises(kw.ArgumentError, match="seed is an int, got str"):
        kw.nn.MLP(2, 3, seed="x")


def test_layers_of_no_tokens():
    attention = kw.nn.MultiHeadAttention(8, 2, rope=kw.nn.Rope(4), qk_norm=True)
    experts = kw.nn.Experts(8, 16, 4, 2)
    for shape in ((1, 0, 8), (0, 3, 8)):
        assert attention(kw.ones(shape)).shape == shape
        assert experts(kw.ones(shape, "bfloat16")).shape == shape


def test_embedding():
    layer, ids = kw.nn.Embedding(7, 4, seed=1), np.array([[0, 6], [3, 3]])
    close(layer(kw.asarray(ids)), wide(layer.weight)[ids])
    x = drawn(3, 4)
    close(layer.as_linear(kw.asarray(x.astype("f"))), x @ wide(layer.weight).T)


def test_rms_norm():
    layer, x = kw.nn.RMSNorm(6, 1e-5), drawn(3, 6)
    layer.weight[...] = kw.asarray(np.arange(6, dtype="f"))
    expected = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * np.arange(6)
    close(layer(kw.asarray(x.astype("f"))), expected)


@pytest.mark.parametrize("shape", [6, (2, 3)])
@pytest.mark.parametrize("bias", [True, False])
def test_layer_norm(shape, bias):
    layer, x = kw.nn.LayerNorm(shape, bias=bias), drawn(4, 5, 2, 3)
    if shape == 6:
        x = x.reshape(4, 5, 6)
    layer.weight[...] = kw.asarray(drawn(6).astype("f").reshape(layer.weight.shape))
    axes = tuple(range(x.ndim - layer.weight.ndim, x.ndim))
    scaled = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)
    close(layer(kw.asarray(x.astype("f"))), scaled * wide(layer.weight))
    assert (layer.bias is not None) == bias


def test_norms_refuse_other_axes():
    for layer in (kw.nn.RMSNorm(6), kw.nn.LayerNorm((2, 3))):
        with pytest.raises(kw.InvalidArgument, match="takes such last axes"):
            layer(kw.ones((4, 5)))
    with pytest.raises(kw.InvalidArgument, match="num_groups divides"):
        kw.nn.GroupNorm(2, 5)


def test_group_norm():
    layer, x = kw.nn.GroupNorm(2, 4), drawn(3, 4, 5)
    groups = x.reshape(3, 2, 10)
    mean, variance = groups.mean(-1, keepdims=True), groups.var(-1, keepdims=True)
    expected = ((groups - mean) / np.sqrt(variance + 1e-5)).reshape(x.shape)
    close(layer(kw.asarray(x.astype("f"))), expected)


def test_networks_of_two_products():
    x = drawn(3, 4)
    on_device = kw.asarray(x.astype("f"))
    mlp = kw.nn.MLP(4, 9, seed=1)
    hidden = gelu(x @ wide(mlp.up_proj.weight).T + wide(mlp.up_proj.bias))
    close(mlp(on_device), hidden @ wide(mlp.down_proj.weight).T + wide(mlp.down_proj.bias))
    gated = kw.nn.GatedMLP(4, 9, seed=1)
    gate, up, down = (wide(getattr(gated, f"{n}_proj").weight).T for n in ("gate", "up", "down"))
    close(gated(on_device), (silu(x @ gate) * (x @ up)) @ down)
    with pytest.raises(kw.ArgumentError, match="activation is one of"):
        kw.nn.MLP(4, 9, "swish")


def rotated(x, base=10000.0, first=0):
    """Rotary positions of x (batch, tokens, heads, dim), pairs half a head apart."""
    half = x.shape[-1] // 2
    angles = np.outer(np.arange(first, first + x.shape[1]), base ** (-np.arange(half) / half))
    cos, sin = np.cos(angles)[:, None, :], np.sin(angles)[:, None, :]
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def test_rope_refuses_arrays_without_heads():
    with pytest.raises(
        kw.InvalidArgument, match=r"\(\.\.\., tokens, heads, head_dim\), got \(8,\)"
    ):
        kw.nn.Rope(8)(kw.ones(8))


def test_rope_grows_its_tables():
    rope, x = kw.nn.Rope(8, max_positions=4), drawn(2, 7, 3, 8)
    close(rope(kw.asarray(x.astype("f"))), rotated(x))
    close(rope(kw.asarray(x.astype("f")), offset=50), rotated(x, first=50), 1e-4)
    assert list(rope.named_parameters()) == []


@pytest.mark.parametrize("kv_heads", [4, 2])
@pytest.mark.parametrize("causal", [True, False])
def test_multi_head_attention(kv_heads, causal):
    layer = kw.nn.MultiHeadAttention(
        32, 4, kv_heads, rope=kw.nn.Rope(8), qk_norm=True, is_causal=causal, bias=True, seed=1
    )
    x = drawn(2, 5, 32)

    def projected(name, heads):
        part = getattr(layer, f"{name}_proj")
        return (x @ wide(part.weight).T + wide(part.bias)).reshape(2, 5, heads, 8)

    q, k, v = projected("q", 4), projected("k", kv_heads), projected("v", kv_heads)
    q, k = (y / np.sqrt((y * y).mean(-1, keepdims=True) + 1e-6) for y in (q, k))
    q, k = rotated(q), rotated(k)
    k, v = (np.repeat(y, 4 // kv_heads, axis=2) for y in (k, v))
    scores = np.einsum("bihd,bjhd->bhij", q, k) / math.sqrt(8)
    if causal:
        scores = np.where(np.tril(np.ones((5, 5), bool)), scores, -np.inf)
    y = np.einsum("bhij,bjhd->bihd", softmax(scores), v).reshape(2, 5, 32)
    expected = y @ wide(layer.o_proj.weight).T + wide(layer.o_proj.bias)
    close(layer(kw.asarray(x.astype("f"))), expected, 1e-4)


def test_attention_to_a_context_with_a_mask_and_sinks():
    layer = kw.nn.MultiHeadAttention(16, 2, sinks=True, seed=1)
    layer.sinks[...] = kw.asarray(np.array([0.5, -1.0], "f"))
    x, context = drawn(1, 3, 16), drawn(1, 6, 16)
    mask = RNG.integers(0, 2, (3, 6)).astype(bool)
    q = (x @ wide(layer.q_proj.weight).T).reshape(3, 2, 8)
    k, v = ((context @ wide(p.weight).T).reshape(6, 2, 8) for p in (layer.k_proj, layer.v_proj))
    scores = np.where(mask, np.einsum("ihd,jhd->hij", q, k) / math.sqrt(8), -np.inf)
    sinks = np.broadcast_to(np.array([0.5, -1.0])[:, None, None], (2, 3, 1))
    weights = softmax(np.concatenate([scores, sinks], -1))[..., :6]
    y = np.einsum("hij,jhd->ihd", weights, v).reshape(1, 3, 16)
    made = layer(
        kw.asarray(x.astype("f")), kw.asarray(mask), context=kw.asarray(context.astype("f"))
    )
    close(made, y @ wide(layer.o_proj.weight).T, 1e-4)
    assert "sinks" in dict(layer.named_parameters())


def test_heads_that_do_not_fit_are_refused():
    with pytest.raises(kw.InvalidArgument, match="num_kv_heads divides num_heads, got 4 and 3"):
        kw.nn.MultiHeadAttention(32, 4, 3)
    with pytest.raises(kw.InvalidArgument, match="num_heads divides dim"):
        kw.nn.MultiHeadAttention(30, 4)


def test_experts():
    layer = kw.nn.Experts(16, 24, 4, 2, seed=1)
    x = drawn(2, 5, 16)
    made = layer(kw.asarray(x.astype("f")).astype("bfloat16"))
    rows = kw.asarray(x.astype("f")).astype("bfloat16").astype("float64").numpy().reshape(10, 16)
    logits = rows @ wide(layer.gate.weight).T
    gate_up, down = wide(layer.gate_up_proj), wide(layer.down_proj)
    expected = np.zeros_like(rows)
    for row, scores, out in zip(rows, softmax(logits), expected, strict=True):
        chosen = np.argsort(-scores)[:2]
        for expert in chosen:
            hidden = gate_up[expert] @ row
            hidden = silu(hidden[:24]) * hidden[24:]
            out += scores[expert] / scores[chosen].sum() * (down[expert] @ hidden)
    close(made, expected.reshape(2, 5, 16), 3e-2)
    with pytest.raises(kw.InvalidArgument, match="num_experts_per_token is from 1 to 4, got 5"):
        kw.nn.Experts(16, 24, 4, 5)


@pytest.mark.parametrize("scores", ["softmax", "sigmoid"])
def test_gradients_of_experts(scores):
    """Against differences in float64, with the experts that were chosen."""
    layer = kw.nn.Experts(16, 24, 4, 2, seed=1, dtype="float32", scores=scores)
    x, dy, names = drawn(9, 16), drawn(9, 16), ("gate.weight", "gate_up_proj", "down_proj")
    arrays = dict(layer.named_parameters())
    host = [x.astype("f").astype("f8"), *(wide(arrays[name]) for name in names)]
    chance = softmax if scores == "softmax" else lambda z: 1 / (1 + np.exp(-z))
    chosen = np.argsort(-chance(host[0] @ host[1].T))[:, :2]

    def loss(x, gate, up, down):
        weights = np.take_along_axis(chance(x @ gate.T), chosen, -1)
        weights /= weights.sum(-1, keepdims=True)
        hidden = np.einsum("tkhd,td->tkh", up[chosen], x)
        hidden = silu(hidden[..., :24]) * hidden[..., 24:]
        return np.einsum("tk,tkdh,tkh,td->", weights, down[chosen], hidden, dy)

    made = kw.grad(
        lambda layer, x: (layer(x) * kw.asarray(dy.astype("f"))).sum(), wrt=(0, 1)
    )(layer, kw.asarray(x.astype("f")))  # fmt: skip
    made = [made[1], made[0]["gate"]["weight"], *(made[0][name] for name in names[1:])]
    for i, gradient in enumerate(made):
        way = drawn(*gradient.shape)
        ends = [loss(*host[:i], host[i] + e * way, *host[i + 1 :]) for e in (1e-6, -1e-6)]
        slope = (ends[0] - ends[1]) / 2e-6
        size = np.linalg.norm(wide(gradient)) * np.linalg.norm(way)
        assert abs((wide(gradient) * way).sum() - slope) <= 1e-5 * size


def test_sequential():
    net = kw.nn.Sequential(kw.nn.Linear(4, 3, seed=1), kw.nn.relu, kw.nn.Linear(3, 2, seed=2))
    x = kw.asarray(drawn(5, 4).astype("f"))
    assert (net(x) == net[2](kw.nn.relu(net[0](x)))).all()
    assert len(net) == 3 and net[1] is kw.nn.relu and net[-1] is list(net)[2]
    with pytest.raises(kw.ArgumentError, match="layer 1 is a module or a function, got 5"):
        kw.nn.Sequential(kw.nn.relu, 5)
    with pytest.raises(IndexError):
        net[3]
