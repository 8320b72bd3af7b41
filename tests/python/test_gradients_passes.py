"""Passes over memory that recorded layers leave out: heads that are views of the rows of a layer,
and biases of layers with an activation. The gradients are those of operations one by one."""

import functools

import numpy as np
import pytest

import kernwright as kw
from kernwright._grad import recording


def normal(*shape, dtype="bfloat16", seed=0):
    return kw.asarray(np.random.default_rng(seed).normal(size=shape).astype("f4")).astype(dtype)


def kernels(call):
    call()
    with kw.profile() as seen:
        call()
    return [each.name for each in seen.activities]


def attended(qkv, heads, kv_heads, change):
    q, k, v = kw.nn.split_qkv(qkv, heads, kv_heads, heads_first=True)
    q, k, v = change(q, k, v)
    return kw.nn.attention(q, k, v, is_causal=True, enable_gqa=heads != kv_heads)


def apart(q, k, v):
    """Arrays of their own, with the same elements."""
    return q * 1, k * 1, v * 1


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize(
    ("heads", "kv_heads", "dim"), [(2, 2, 16), (4, 2, 8), (3, 1, 12), (1, 1, 5)]
)
def test_heads_in_rows_have_the_bits_of_merged_ones(dtype, heads, kv_heads, dim):
    qkv = normal(2, 7, (heads + 2 * kv_heads) * dim, dtype=dtype)
    weight = normal(2, heads, 7, dim, dtype=dtype, seed=1)
    found = []
    for change in (lambda *parts: parts, apart):
        _, back = kw.vjp(lambda x, c=change: attended(x, heads, kv_heads, c), qkv)
        (gradient,) = back(weight)
        assert gradient.shape == qkv.shape and gradient.is_contiguous
        found.append(gradient.numpy().tobytes())
    assert found[0] == found[1]


def test_the_next_layer_reads_the_heads_where_they_lie():
    """The result has the heads of a token side by side; its bits are those of other memory."""
    qkv, weight = normal(2, 32, 96), normal(32, 32, seed=1)

    def layer(qkv, change=lambda y: y):
        y = change(attended(qkv, 2, 2, lambda *parts: parts))
        return kw.nn.linear(kw.permute_dims(y, (0, 2, 1, 3)).reshape(2, 32, 32), weight)

    made, back = kw.vjp(layer, qkv)
    other, slow = kw.vjp(lambda qkv: layer(qkv, lambda y: y.copy()), qkv)
    g = normal(2, 32, 32, seed=2)
    assert (made.numpy() == other.numpy()).all()
    assert (back(g)[0].numpy() == slow(g)[0].numpy()).all()
    names = kernels(lambda: kw.vjp(layer, qkv)[1](g))
    assert not any("copy" in name for name in names), names
    assert (made.numpy() == layer(qkv).numpy()).all()


@pytest.mark.parametrize("kv_heads", [4, 2])
def test_the_heads_of_a_module_lie_side_by_side(kv_heads):
    layer = kw.nn.MultiHeadAttention(64, 4, kv_heads, is_causal=True, seed=1, dtype="bfloat16")
    x, g = normal(2, 24, 64), normal(2, 24, 64, seed=1)

    def steps(layer, x):
        parts = [kw.swapaxes(each, 1, 2) for each in layer.project(x, x)]
        y = kw.nn.attention(*parts, is_causal=True, enable_gqa=kv_heads != 4)
        return layer.o_proj(kw.swapaxes(y, 1, 2).reshape(2, 24, 64))

    assert (layer(x).numpy() == steps(layer, x).numpy()).all()
    assert not any("copy" in name for name in kernels(lambda: layer(x)))
    found = [kw.vjp(call, layer, x)[1](g) for call in (lambda layer, x: layer(x), steps)]
    for name, _ in layer.named_parameters():
        one, other = (each[0][name.split(".")[0]]["weight"].numpy() for each in found)
        assert (one == other).all()
    assert (found[0][1].numpy() == found[1][1].numpy()).all()


def test_no_pass_merges_the_heads():
    qkv, weight = normal(1, 64, 3 * 64), normal(1, 1, 64, 64, seed=1)
    _, back = kw.vjp(lambda x: attended(x, 1, 1, lambda *parts: parts), qkv)
    names = kernels(lambda: back(weight))
    kernels_of_gradients = ("attention_gradient", "hopper_backward")
    assert any(kernel in name for name in names for kernel in kernels_of_gradients), names
    assert not any("split_heads" in name or "copy" in name for name in names), names


@pytest.mark.parametrize(
    "change",
    [
        lambda q, k, v: (q, k, k), lambda q, k, v: (k, q, v), lambda q, k, v: (q * 2, k, v),
        lambda q, k, v: (q, k, kw.nn.silu(v)), lambda q, k, v: (q, kw.stop_gradient(k), v),
    ],
)  # fmt: skip
def test_other_operands_than_the_three_parts(change):
    qkv = normal(1, 5, 3 * 2 * 8, dtype="float32")

    def separate(x):
        parts = (part * 1 for part in kw.nn.split_qkv(x, 2, heads_first=True))
        return kw.nn.attention(*change(*parts), is_causal=True)

    weight = normal(1, 2, 5, 8, dtype="float32", seed=1)
    found = kw.vjp(lambda x: attended(x, 2, 2, change), qkv)[1](weight)[0]
    expected = kw.vjp(separate, qkv)[1](weight)[0]
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


def test_parts_with_more_uses():
    qkv = normal(1, 5, 3 * 2 * 8, dtype="float32")

    def loss(x, make):
        q, k, v = make(*kw.nn.split_qkv(x, 2, heads_first=True))
        y = kw.nn.attention(q, k, v) + kw.nn.attention(q, k, v, is_causal=True)
        return (y * q).sum() + (x * x).sum() + k.sum()

    found = kw.grad(lambda x: loss(x, lambda *parts: parts))(qkv)
    expected = kw.grad(lambda x: loss(x, apart))(qkv)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)


def test_recordings_that_know_the_parts_otherwise():
    """An inner function takes the gradient of one part, or of the rows behind the parts."""
    qkv = normal(1, 5, 3 * 2 * 8, dtype="float32")
    parts = kw.nn.split_qkv(qkv, 2, heads_first=True)
    ones = kw.ones_like(parts[0])
    attention = functools.partial(kw.nn.attention, is_causal=True)
    expected = kw.grad(lambda q: attention(q, *parts[1:]).sum())(parts[0]).numpy()
    whole = kw.grad(lambda x: attended(x, 2, 2, apart).sum())(qkv).numpy()
    inner = []

    def outer(x):
        q, k, v = kw.nn.split_qkv(x, 2, heads_first=True)
        y, of_part = kw.vjp(lambda q: attention(q, k, v), q)
        z, of_rows = kw.vjp(lambda x: attention(q, k, v) + x.sum(), x)
        inner.extend((of_part, of_rows))
        return y.sum() + z.sum()

    found = kw.grad(outer)(qkv).numpy()
    np.testing.assert_allclose(found, 2 * whole + ones.size, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(inner[0](ones)[0].numpy(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(inner[1](ones)[0].numpy(), np.full(qkv.shape, ones.size), rtol=1e-6)


def test_rows_that_were_written_behind_their_parts():
    def f(x):
        y = x * 1
        parts = kw.nn.split_qkv(y, 1, heads_first=True)
        y[..., 0] = 0.0
        return kw.nn.attention(*parts).sum()

    with pytest.raises(kw.InvalidArgument, match=r"attention\(\).*reads memory that"):
        kw.grad(f)(normal(1, 5, 24, dtype="float32"))


@pytest.mark.parametrize("activation", ["gelu_tanh", "gelu", "silu", "relu", "relu2", "sigmoid"])
def test_a_layer_with_an_activation(activation):
    x, w, b = (normal(*shape, dtype="float64", seed=i) for i, shape in enumerate(
        ((3, 4), (5, 4), (5,))))  # fmt: skip
    layer = lambda x, w, b: kw.nn.linear(x, w, b, activation=activation)  # noqa: E731
    assert kw.gradcheck(layer, x, w, b)
    assert kw.gradcheck(lambda x: layer(x, w, b), x)
    assert kw.gradcheck(lambda b: layer(x, w, b), b)
    steps = lambda *args: layer(*args) + args[0].sum()  # noqa: E731
    assert kw.gradcheck(steps, x, w, b)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_the_layer_in_few_bits(dtype):
    operands = [normal(64, 32, dtype=dtype), normal(48, 32, dtype=dtype, seed=1),
                normal(48, dtype=dtype, seed=2)]  # fmt: skip
    weight = normal(64, 48, dtype=dtype, seed=3)
    call = lambda x, w, b: kw.nn.linear(x, w, b, activation="gelu_tanh")  # noqa: E731
    made, back = kw.vjp(call, *operands)
    wide = [each.astype("float64") for each in operands]
    expected, exact = kw.vjp(call, *wide)
    limit = {"bfloat16": 1e-2, "float16": 2e-3, "float32": 1e-6}[dtype]
    pairs = [(made, expected), *zip(back(weight), exact(weight.astype("float64")), strict=True)]
    for one, other in pairs:
        one, other = one.astype("float64").numpy(), other.numpy()
        assert np.linalg.norm(one - other) <= limit * np.linalg.norm(other)


def test_the_bias_has_no_pass_of_its_own():
    operands = [normal(64, 32), normal(48, 32, seed=1), normal(48, seed=2)]
    _, back = kw.vjp(lambda x, w, b: kw.nn.linear(x, w, b, activation="gelu_tanh"), *operands)
    names = kernels(lambda: back(normal(64, 48, seed=3)))
    assert not any(name.startswith("reduce_") for name in names), names


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("chunk", [None, 16])
def test_the_mean_of_a_last_layer(dtype, chunk):
    """Its factor goes into the logits' gradient; one of the loss comes behind."""
    x, w = normal(40, 32, dtype=dtype), normal(64, 32, dtype=dtype, seed=1)
    ids = kw.asarray(np.random.default_rng(2).integers(0, 64, 40).astype(np.int32))

    def loss(x, w, factor):
        made = kw.nn.linear_cross_entropy(x, w, ids, chunk=chunk)
        return made if factor == 1 else made * factor

    exact = kw.grad(loss, wrt=(0, 1))(x.astype("float64"), w.astype("float64"), 1)
    limit = {"bfloat16": 1e-2, "float16": 2e-3, "float32": 1e-6}[dtype]
    for factor in (1, 3.0):
        found = kw.grad(loss, wrt=(0, 1))(x, w, factor)
        for one, other, like in zip(found, exact, (x, w), strict=True):
            assert one.dtype == like.dtype
            one, other = one.astype("float64").numpy(), other.numpy() * factor
            assert np.linalg.norm(one - other) <= limit * np.linalg.norm(other)


def test_one_chunk_of_a_last_layer_is_neither_copied_nor_cast():
    x, w = normal(40, 32), normal(64, 32, seed=1)
    ids = kw.asarray(np.arange(40, dtype=np.int32))
    names = kernels(
        lambda: kw.grad(lambda x, w: kw.nn.linear_cross_entropy(x, w, ids), (0, 1))(x, w)
    )
    assert not any("BFloat16" in name for name in names if name.startswith(("cast", "flat", "on ")))


class Residual(kw.nn.Module):
    """Layers as GPT-2's: each adds its result to what the norm in front of it read."""

    def __init__(self, norm, dim=32, depth=3):
        self.norms = [norm(dim) for _ in range(depth + 1)]
        self.layers = [kw.nn.Linear(dim, dim, seed=i) for i in range(depth)]

    def __call__(self, x):
        for norm, layer in zip(self.norms, self.layers, strict=False):
            x = layer(norm(x), residual=x)
        return self.norms[-1](x)


@pytest.mark.parametrize("norm", [kw.nn.LayerNorm, kw.nn.RMSNorm])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_the_residual_joins_in_the_kernel_of_the_norm(norm, dtype):
    """Neither sum nor bias has a pass of its own, and the gradients are those of float64."""
    model = Residual(norm).astype(dtype)
    x, weight = normal(64, 32, dtype=dtype, seed=1), normal(64, 32, dtype=dtype, seed=2)
    model(x)

    def loss(model, x):
        return (model(x) * weight.astype(x.dtype)).sum()

    found, of_x = kw.grad(loss, wrt=(0, 1))(model, x)
    exact, exact_x = kw.grad(loss, wrt=(0, 1))(model.copy().astype("float64"), x.astype("float64"))
    limit = {"bfloat16": 2e-2, "float32": 2e-6}[dtype]
    pairs = [(of_x, exact_x)]
    for (name, _), part in zip(model.named_parameters(), range(99), strict=False):
        keys = name.split(".")
        one, other = found, exact
        for key in keys:
            one, other = one[key], other[key]
        pairs.append((one, other))
        assert one.dtype.name == dtype and part >= 0
    for one, other in pairs:
        one, other = one.astype("float64").numpy(), other.numpy()
        assert np.linalg.norm(one - other) <= limit * np.linalg.norm(other)
    names = kernels(lambda: kw.vjp(model, x)[1](weight))
    assert sum(name.startswith("norm_backward") for name in names) == 4
    assert not any(name.startswith("reduce_") or "Add" in name for name in names), names


def test_what_no_kernel_can_join():
    """Many norms of one array are summed in float32; second derivatives take each step."""
    x, weight = normal(8, 32), kw.ones(32, "bfloat16")

    def many(x, count):
        total = kw.nn.rms_norm(x, weight)
        for _ in range(count - 1):
            total = total + kw.nn.rms_norm(x, weight)
        return (total.astype("float32") * kw.asarray(np.arange(32, dtype="f4"))).sum()

    exact = kw.grad(lambda x: many(x, 1))(x.astype("float64")).numpy() * 20
    found = kw.grad(lambda x: many(x, 20))(x).astype("float64").numpy()
    assert np.linalg.norm(found - exact) <= 8e-3 * np.linalg.norm(exact)
    wide = x.astype("float64")
    refused = lambda x: (kw.nn.rms_norm(x, weight.astype("float64")) * x).sum()  # noqa: E731
    with pytest.raises(kw.Error, match="the gradient of a norm has no gradient"):
        kw.grad(lambda x: kw.grad(refused)(x).sum())(wide)


def test_a_residual_that_the_norm_adds():
    x, r, weight = (normal(16, 32, dtype="float64", seed=i) for i in range(3))

    def loss(x, r):
        made, total = kw.nn.rms_norm(x, weight[0], residual=r)
        return (made * weight).sum() + (total * total * total).sum()

    assert kw.gradcheck(loss, x, r)
    names = kernels(lambda: kw.grad(lambda x, r: loss(x, r))(x, r))
    assert sum(name.startswith("norm_backward") for name in names) == 1


def test_a_mean_of_one_chunk_is_a_kernel_of_the_loss():
    x, w = normal(40, 32), normal(64, 32, seed=1)
    ids = kw.asarray(np.arange(40, dtype=np.int32))
    loss = lambda x, w: kw.nn.linear_cross_entropy(x, w, ids)  # noqa: E731
    names = kernels(lambda: kw.value_and_grad(loss, (0, 1))(x, w))
    assert not any(name.startswith(("reduce_", "cast", "flat<Divide")) for name in names), names
    assert loss(x, w).item() == kw.value_and_grad(loss, (0, 1))(x, w)[0].item()


def test_column_sums_are_those_of_one_gradient():
    gradient, other, sums = kw.ones((2, 3)), kw.ones((2, 3)), kw.ones(3)
    recording.keep_column_sums(gradient, sums)
    assert recording.take_column_sums(other) is None
    assert recording.take_column_sums(gradient) is sums
    assert recording.take_column_sums(gradient) is None  # taken once
    recording.keep_column_sums(gradient, None)
    assert recording.take_column_sums(gradient) is None
