"""kw.nn.attention_backward against the formula in float64 and finite differences."""

import numpy as np
import pytest
from attention_model import NORM, gradients, normal, reference

import kernwright as kw
from kernwright.errors import InvalidArgument

nn = kw.nn


def operands(batch, heads, kv_heads, queries, keys, dim, dtype, value_dim=None):
    """query, key, value and the gradient of the result."""
    value_dim = value_dim or dim
    return [
        normal(batch, heads, queries, dim, dtype=dtype, seed=1),
        normal(batch, kv_heads, keys, dim, dtype=dtype, seed=2),
        normal(batch, kv_heads, keys, value_dim, dtype=dtype, seed=3),
        normal(batch, heads, queries, value_dim, dtype=dtype, seed=4),
    ]


def run(host, **options):
    q, k, v, dy = (kw.asarray(x) for x in host)
    groups = q.shape[1] != k.shape[1]
    y, lse = nn.attention(q, k, v, enable_gqa=groups, return_lse=True, **options)
    return nn.attention_backward(dy, q, k, v, y, lse, enable_gqa=groups, **options)


def assert_gradients(got, wanted, dtype):
    for name, ours, exact in zip(("dq", "dk", "dv"), got, wanted, strict=True):
        ours = np.asarray(ours.numpy()).astype(np.float64)
        assert ours.shape == exact.shape, name
        bound = 2 * NORM[dtype]
        assert np.linalg.norm(ours - exact) <= bound * np.linalg.norm(exact) + 1e-30, name
        np.testing.assert_allclose(ours, exact, rtol=8 * bound, atol=16 * bound, err_msg=name)


def test_the_formula_against_finite_differences():
    q, k, v, dy = (x.astype(np.float64) for x in operands(1, 2, 1, 3, 4, 5, "float32"))
    options = {"soft_cap": 2.0, "causal": True, "alibi": [0.3, 0.1]}
    made = gradients(q, k, v, dy, **options)
    for which, exact in enumerate(made):
        for at in np.ndindex(exact.shape):
            both = []
            for step in (1e-6, -1e-6):
                moved = [q.copy(), k.copy(), v.copy()]
                moved[which][at] += step
                both.append((reference(*moved, **options)[0] * dy).sum())
            assert abs((both[0] - both[1]) / 2e-6 - exact[at]) < 1e-7


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_lengths(dtype):
    for queries, keys, causal in [(1, 2, False), (17, 33, True), (65, 63, False), (130, 70, True)]:
        host = operands(1, 4, 2, queries, keys, 64, dtype)
        got = run(host, is_causal=causal)
        assert_gradients(got, gradients(*host, causal=causal), dtype)


@pytest.mark.parametrize(
    ("dtype", "dim", "value_dim"),
    [("bfloat16", 128, 128), ("bfloat16", 40, 72), ("float16", 256, 256), ("float32", 7, 100),
     ("float32", 256, 256)],
)  # fmt: skip
def test_head_dimensions(dtype, dim, value_dim):
    host = operands(1, 2, 1, 50, 70, dim, dtype, value_dim)
    assert_gradients(run(host), gradients(*host), dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_what_else_scores_depend_on(dtype):
    host = operands(2, 4, 2, 30, 70, 64, dtype)
    random = np.random.default_rng(5)
    mask = random.random((2, 1, 30, 70)) < 0.7
    mask[:, :, 4] = False
    slopes, sinks = random.random((2, 4)).astype("f4"), random.standard_normal(4).astype("f4")
    added = random.standard_normal((30, 70)).astype(dtype)
    lengths, queries = np.array([70, 33], np.int32), np.array([30, 7], np.int32)
    for options in ({"attn_mask": mask}, {"attn_mask": added, "soft_cap": 2.0, "scale": 0.3},
                    {"alibi": slopes, "sinks": sinks}, {"window": (9, 5)}, {"lengths": lengths},
                    {"query_lengths": queries, "lengths": lengths}):  # fmt: skip
        given = {k: kw.asarray(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
        model = dict(options)
        if "window" in model:
            model["left"], model["right"] = model.pop("window")
        if "attn_mask" in model:
            model["mask"] = model.pop("attn_mask")
        assert_gradients(run(host, **given), gradients(*host, **model), dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_dropout(dtype):
    host = operands(1, 2, 1, 40, 64, 64, dtype)
    options = {"dropout_p": 0.4, "seed": 3}
    q, k = kw.asarray(host[0]), kw.asarray(host[1])
    identity = kw.broadcast_to(kw.eye(64, dtype=dtype), (1, 1, 64, 64))
    weights = nn.attention(q, k, identity, enable_gqa=True, **options).numpy()
    keep = (weights != 0) / 0.6
    assert_gradients(run(host, **options), gradients(*host, keep=keep), dtype)
    assert all((each.numpy() == 0).all() for each in run(host, dropout_p=1.0, seed=3))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_packed_sequences(dtype):
    q, k, v, dy = (x[0].swapaxes(0, 1).copy() for x in operands(1, 4, 2, 150, 120, 64, dtype))
    q_starts, k_starts = np.array([0, 5, 5, 150]), np.array([0, 40, 41, 120])
    options = {
        "is_causal": True,
        "enable_gqa": True,
        "cu_seqlens_q": kw.asarray(q_starts.astype(np.int32)),
        "cu_seqlens_k": kw.asarray(k_starts.astype(np.int32)),
    }
    device = [kw.asarray(x) for x in (q, k, v)]
    y, lse = nn.attention(*device, return_lse=True, **options)
    got = nn.attention_backward(kw.asarray(dy), *device, y, lse, **options)
    wanted = [np.zeros(x.shape) for x in (q, k, v)]
    for b in range(3):
        rows, keys = slice(*q_starts[b : b + 2]), slice(*k_starts[b : b + 2])
        parts = [x[of].swapaxes(0, 1)[None] for x, of in ((q, rows), (k, keys), (v, keys),
                                                          (dy, rows))]  # fmt: skip
        for to, of, made in zip(wanted, (rows, keys, keys), gradients(*parts, causal=True),
                                strict=True):  # fmt: skip
            to[of] = made[0].swapaxes(0, 1)
    assert_gradients(got, wanted, dtype)


def test_layouts_and_ranks():
    host = operands(1, 2, 2, 20, 30, 64, "float16")
    wanted = gradients(*host)
    turned = [kw.permute_dims(kw.asarray(x.swapaxes(1, 2).copy()), (0, 2, 1, 3)) for x in host]
    y, lse = nn.attention(*turned[:3], return_lse=True)
    assert_gradients(nn.attention_backward(turned[3], *turned[:3], y, lse), wanted, "float16")
    shifted = [
        kw.asarray(np.concatenate([np.zeros(1, x.dtype), x.ravel()]))[1:].reshape(x.shape)
        for x in host
    ]
    assert_gradients(nn.attention_backward(shifted[3], *shifted[:3], y, lse), wanted, "float16")
    for lead in ((2,), (1, 1, 2)):
        q, k, v, dy = (kw.asarray(x.reshape(*lead, *x.shape[2:])) for x in host)
        y, lse = nn.attention(q, k, v, return_lse=True)
        got = nn.attention_backward(dy, q, k, v, y, lse)
        assert [x.shape for x in got] == [q.shape, k.shape, v.shape]
        assert_gradients([x.reshape((1, 2, *x.shape[-2:])) for x in got], wanted, "float16")


def test_without_elements_and_the_same_bits():
    for batch, heads, queries, keys in [(0, 2, 3, 4), (2, 0, 3, 4), (2, 2, 0, 4), (2, 2, 3, 0)]:
        host = operands(batch, heads, heads, queries, keys, 64, "float16")
        for ours, of in zip(run(host), host, strict=False):
            assert ours.shape == of.shape and (ours.numpy() == 0).all()
    host = operands(2, 4, 2, 70, 70, 64, "float16")
    first, second = run(host, is_causal=True), run(host, is_causal=True)
    for a, b in zip(first, second, strict=True):
        assert np.array_equal(a.numpy().view(np.uint16), b.numpy().view(np.uint16))


def test_in_a_graph():
    host = operands(1, 2, 2, 20, 30, 64, "float16")
    q, k, v, dy = (kw.asarray(x) for x in host)
    stream, graph = kw.Stream(), kw.Graph()
    kw.synchronize()
    with graph.capture(stream):
        y, lse = nn.attention(q, k, v, return_lse=True)
        got = nn.attention_backward(dy, q, k, v, y, lse)
    q[...] = 2 * host[0]
    graph.launch(stream)
    stream.synchronize()
    assert_gradients(got, gradients(2 * host[0], *host[1:]), "float16")


def test_every_kernel_under_all_checks(sim):
    with kw.checks("memory", "init", "race", "sync") as report:
        for dtype in ("float16", "float32"):
            q, kv = kw.ones((1, 2, 70, 64), dtype), kw.ones((1, 1, 70, 64), dtype)
            y, lse = nn.attention(q, kv, kv, is_causal=True, enable_gqa=True, return_lse=True)
            nn.attention_backward(y, q, kv, kv, y, lse, is_causal=True, enable_gqa=True)
        kw.synchronize()
    assert not report.findings, str(report)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"grad": kw.ones((1, 2, 4, 9))}, "grad"),
        ({"out": kw.ones((1, 2, 4, 8), "float16")}, "out"),
        ({"lse": kw.ones((1, 2, 5))}, "lse"),
        ({"key": kw.ones((1, 1, 4, 8)), "value": kw.ones((1, 1, 4, 8))}, "enable_gqa"),
    ],
)
def test_wrong_input(change, words):
    x = kw.ones((1, 2, 4, 8))
    given = {"grad": x, "query": x, "key": x, "value": x, "out": x, "lse": kw.ones((1, 2, 4))}
    with pytest.raises(InvalidArgument, match=words):
        nn.attention_backward(**given | change)
