"""kw.nn.attention against float64, as torch's scaled_dot_product_attention defines it."""

import ast
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from attention_model import TYPES, assert_attention, assert_logarithms, normal, reference

import kernwright as kw
from kernwright.errors import ArgumentError, InvalidArgument

attention = kw.nn.attention


def operands(batch, heads, kv_heads, queries, keys, dim, dtype, value_dim=None, seed=0):
    return (
        normal(batch, heads, queries, dim, dtype=dtype, seed=seed),
        normal(batch, kv_heads, keys, dim, dtype=dtype, seed=seed + 1),
        normal(batch, kv_heads, keys, value_dim or dim, dtype=dtype, seed=seed + 2),
    )


def on_device(arrays):
    return [kw.asarray(x) for x in arrays]


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("causal", [False, True])
def test_lengths(dtype, causal):
    """Around the tiles of 16, 32, 64 and 128, and fewer queries than keys and the other way."""
    for queries, keys in [(1, 1), (2, 100), (17, 33), (64, 64), (65, 63), (129, 130), (40, 129)]:
        host = operands(1, 2, 2, queries, keys, 64, dtype)
        got, lse = attention(*on_device(host), is_causal=causal, return_lse=True)
        wanted, logarithms = reference(*host, causal=causal)
        assert_attention(got, wanted, dtype)
        assert_logarithms(lse, logarithms)


@pytest.mark.parametrize(
    ("dtype", "dim", "value_dim"),
    [("bfloat16", 8, 8), ("bfloat16", 72, 72), ("bfloat16", 128, 128), ("bfloat16", 192, 128),
     ("float16", 256, 256), ("float32", 5, 3), ("float32", 128, 64), ("float32", 200, 256)],
)  # fmt: skip
def test_head_dimensions(dtype, dim, value_dim):
    host = operands(1, 2, 1, 70, 90, dim, dtype, value_dim)
    got = attention(*on_device(host), is_causal=True, enable_gqa=True)
    assert_attention(got, reference(*host, causal=True)[0], dtype)


def test_ranks():
    host = operands(6, 2, 2, 5, 7, 64, "float32")
    wanted = reference(*host)[0]
    for lead in ((6, 2), (2, 3, 2), (12,)):
        got = attention(*(kw.asarray(x.reshape(*lead, *x.shape[2:])) for x in host))
        assert got.shape == (*lead, 5, 64)
        assert_attention(got.reshape(wanted.shape), wanted, "float32")
    flat = [x[0, 0] for x in host]
    got, lse = attention(*on_device(flat), return_lse=True)
    assert got.shape == (5, 64) and lse.shape == (5,)
    assert_attention(got.reshape((1, 1, 5, 64)), wanted[:1, :1], "float32")


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_masks(dtype):
    host = operands(2, 2, 2, 20, 70, 64, dtype)
    device = on_device(host)
    random = np.random.default_rng(7)
    for shape in [(20, 70), (2, 1, 1, 70), (2, 2, 20, 70), (1, 2, 20, 1)]:
        mask = random.random(shape) < 0.6
        mask[..., :1, :] = True
        assert_attention(attention(*device, kw.asarray(mask)), reference(*host, mask)[0], dtype)
        for of in {dtype, "float32"}:
            added = random.standard_normal(shape).astype(of)
            added[..., -1:] = -np.inf if shape[-1] > 1 else 0
            got = attention(*device, kw.asarray(added))
            assert_attention(got, reference(*host, added)[0], dtype)
    turned = kw.asarray(np.ascontiguousarray(mask.reshape(2, 20).T)).T.reshape((2, 20, 1))
    assert_attention(attention(*device, turned), reference(*host, mask)[0], dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_rows_that_see_nothing_are_zero(dtype):
    host = operands(1, 1, 1, 20, 20, 64, dtype)
    mask = np.ones((20, 20), bool)
    mask[3] = False
    for given in (mask, np.where(mask, 0, -np.inf).astype(np.float32)):
        got, lse = attention(*on_device(host), kw.asarray(given), return_lse=True)
        assert (got.numpy()[0, 0, 3] == 0).all() and lse.numpy()[0, 0, 3] == -np.inf
        assert_attention(got, reference(*host, mask)[0], dtype)
    got = attention(*on_device(host), window=(-1, -1), lengths=kw.zeros(1, "int32"))
    assert (got.numpy() == 0).all()


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_windows(dtype):
    host = operands(1, 1, 1, 150, 140, 64, dtype)
    for left, right in [(0, 0), (30, 0), (3, 90), (-1, 5), (70, -1)]:
        got = attention(*on_device(host), window=(left, right))
        assert_attention(got, reference(*host, left=left, right=right)[0], dtype)
    got = attention(*on_device(host), window=9)
    assert_attention(got, reference(*host, left=8, right=0)[0], dtype)
    got = attention(*on_device(host), window=(2, 5), is_causal=True)
    assert_attention(got, reference(*host, left=2, right=0)[0], dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_caps_biases_and_sinks(dtype):
    host = operands(2, 4, 2, 20, 70, 64, dtype)
    slopes = np.random.default_rng(1).random((2, 4)).astype(np.float32)
    sinks = np.array([0.5, 3.0, -np.inf, -2.0], np.float32)
    for options in ({"soft_cap": 1.5}, {"alibi": slopes}, {"alibi": slopes[0]}, {"sinks": sinks},
                    {"soft_cap": 5.0, "alibi": slopes, "sinks": sinks, "scale": 0.3}):  # fmt: skip
        given = {k: kw.asarray(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
        got, lse = attention(*on_device(host), enable_gqa=True, return_lse=True, **given)
        wanted, logarithms = reference(*host, **options)
        assert_attention(got, wanted, dtype)
        np.testing.assert_allclose(lse.numpy(), logarithms, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_lengths_of_batches(dtype):
    host = operands(3, 2, 2, 80, 90, 64, dtype)
    queries, keys = np.array([80, 3, 0], np.int32), np.array([5, 90, 20], np.int32)
    got = attention(*on_device(host), query_lengths=kw.asarray(queries), lengths=kw.asarray(keys),
                    is_causal=True)  # fmt: skip
    wanted = reference(*host, causal=True, lengths=keys, query_lengths=queries)[0]
    assert_attention(got, wanted, dtype)
    wild = kw.asarray(np.array([-5, 2**31 - 1, 90], np.int32))
    got = attention(*on_device(host), lengths=wild)
    assert_attention(got, reference(*host, lengths=[0, 90, 90])[0], dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_packed_sequences(dtype):
    q, k, v = (x[0].swapaxes(0, 1).copy() for x in operands(1, 4, 2, 200, 150, 64, dtype))
    q_starts, k_starts = np.array([0, 1, 1, 130, 200]), np.array([0, 40, 60, 61, 150])
    got, lse = attention(
        *on_device((q, k, v)),
        is_causal=True,
        enable_gqa=True,
        cu_seqlens_q=kw.asarray(q_starts.astype(np.int32)),
        cu_seqlens_k=kw.asarray(k_starts.astype(np.int32)),
        max_seqlen_q=129,
        return_lse=True,
    )
    wanted, logarithms = np.zeros(got.shape), np.zeros((4, 200))
    for b in range(4):
        rows, keys = slice(*q_starts[b : b + 2]), slice(*k_starts[b : b + 2])
        parts = [x[of].swapaxes(0, 1)[None] for x, of in ((q, rows), (k, keys), (v, keys))]
        out, rest = reference(*parts, causal=True)
        wanted[rows], logarithms[:, rows] = out[0].swapaxes(0, 1), rest[0]
    assert_attention(got, wanted, dtype)
    assert_logarithms(lse, logarithms)


def test_views():
    """Other orders of axes, reversed, repeated, with gaps, misaligned."""
    host = operands(2, 2, 2, 70, 70, 64, "float16")
    wanted = reference(*host)[0]
    tokens_first = [kw.asarray(x.swapaxes(1, 2).copy()) for x in host]
    got = attention(*(kw.permute_dims(x, (0, 2, 1, 3)) for x in tokens_first))
    assert_attention(got, wanted, "float16")
    backwards = [kw.asarray(x[:, :, ::-1].copy())[:, :, ::-1] for x in host]
    assert_attention(attention(*backwards), wanted, "float16")
    columns = [kw.asarray(x.swapaxes(2, 3).copy()).mT for x in host]
    assert_attention(attention(*columns), wanted, "float16")
    gaps = [kw.asarray(np.concatenate([x, x], -1))[..., :64] for x in host]
    assert_attention(attention(*gaps), wanted, "float16")
    shifted = [
        kw.asarray(np.concatenate([np.zeros(1, x.dtype), x.ravel()]))[1:].reshape(x.shape)
        for x in host
    ]
    assert_attention(attention(*shifted), wanted, "float16")
    one = [kw.broadcast_to(kw.asarray(x[:1, :1]), x.shape) for x in host]
    repeated = reference(*(np.broadcast_to(x[:1, :1], x.shape) for x in host))[0]
    assert_attention(attention(*one), repeated, "float16")


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_dropout(dtype):
    """With the identity as values, the result shows the kept weights."""
    host = operands(2, 2, 2, 70, 64, 64, dtype)
    q, k, v = on_device(host)
    identity = kw.broadcast_to(kw.eye(64, dtype=dtype), (2, 2, 64, 64))
    weights = attention(q, k, identity, dropout_p=0.3, seed=5, offset=2).numpy()
    keep = (weights != 0) / 0.7
    assert abs((weights != 0).mean() - 0.7) < 0.02
    got = attention(q, k, v, dropout_p=0.3, seed=5, offset=2)
    assert_attention(got, reference(*host, keep=keep)[0], dtype)
    same = attention(q, k, v, dropout_p=0.3, seed=5, offset=2)
    assert np.array_equal(got.numpy().view(np.uint8), same.numpy().view(np.uint8))
    other = attention(q, k, identity, dropout_p=0.3, seed=5, offset=3).numpy()
    assert 0.5 < ((other != 0) == (weights != 0)).mean() < 0.66
    if dtype == "float32":  # all dtypes drop the same weights
        half = on_device([x.astype(np.float16) for x in (host[0], host[1])])
        eye = kw.broadcast_to(kw.eye(64, dtype="float16"), (2, 2, 64, 64))
        dropped = attention(*half, eye, dropout_p=0.3, seed=5, offset=2).numpy()
        assert ((dropped != 0) == (weights != 0)).mean() > 0.999
    # As in torch, a chance of 1 drops all weights; the sum of the scores is of all.
    none, lse = attention(q, k, v, dropout_p=1.0, seed=5, return_lse=True)
    assert (none.numpy() == 0).all()
    np.testing.assert_allclose(lse.numpy(), reference(*host)[1], atol=0.02)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_special_values(dtype):
    q, k, v = operands(1, 1, 1, 20, 30, 64, dtype)
    q[0, 0, 3], q[0, 0, 4, 0], q[0, 0, 5] = np.nan, np.inf, -0.0
    q[0, 0, 6] = 6e-8
    got = attention(*on_device((q, k, v))).numpy().astype(np.float64)
    assert np.isnan(got[0, 0, 3:5]).all()
    rest = np.r_[0:3, 5:20]
    wanted = reference(q[:, :, rest], k, v)[0]
    np.testing.assert_allclose(got[:, :, rest], wanted, rtol=6e-3, atol=6e-3)
    large = attention(*on_device((normal(1, 1, 20, 64, dtype=dtype) * 100, k, v)))
    assert np.isfinite(large.numpy().astype(np.float64)).all()
    v[0, 0, 7] = np.nan
    assert np.isnan(attention(*on_device((k, k, v)), is_causal=True).numpy()[0, 0, 7:]).all()


FLOAT8 = {"float8_e4m3fn": ml_dtypes.float8_e4m3fn, "float8_e5m2": ml_dtypes.float8_e5m2}


def in_float8(arrays, dtype="float8_e4m3fn"):
    return [x.astype(np.float32).astype(FLOAT8[dtype]) for x in arrays]


@pytest.mark.parametrize("dtype", FLOAT8)
def test_float8_operands_stand_for_bytes_times_scales(dtype):
    host = in_float8(operands(2, 4, 2, 33, 70, 64, "float32"), dtype)
    rng = np.random.default_rng(1)
    per_batch, per_head = rng.uniform(0.1, 2, (2, 4)), rng.uniform(0.1, 2, 2)
    per_batch, per_head = per_batch.astype(np.float32), per_head.astype(np.float32)
    exact = [x.astype(np.float64) for x in host]
    exact[0] *= per_batch[:, :, None, None]
    exact[1] *= per_head[:, None, None]
    exact[2] *= 0.75
    got = attention(
        *on_device(host), is_causal=True, enable_gqa=True, value_scale=0.75,
        query_scale=kw.asarray(per_batch), key_scale=kw.asarray(per_head),
    )  # fmt: skip
    assert got.dtype == kw.bfloat16
    assert_attention(got, reference(*exact, causal=True)[0], "bfloat16")


def test_float8_operands_without_scales_and_beside_others():
    host = in_float8(operands(1, 2, 2, 9, 17, 64, "float32"))
    exact = [x.astype(np.float64) for x in host]
    got = attention(*on_device([x[0] for x in host]))
    assert got.shape == (2, 9, 64)
    assert_attention(got.reshape((1, 2, 9, 64)), reference(*exact)[0], "bfloat16")
    wide = host[0].astype(np.float32)
    got = attention(kw.asarray(wide), *on_device(host[1:]), key_scale=kw.asarray(np.float32(2)))
    assert got.dtype == kw.float32
    wanted = reference(exact[0], exact[1] * 2, exact[2])[0]
    assert_attention(got, wanted, "float32")
    starts = kw.asarray(np.array([0, 4, 9], np.int32))
    rows = [kw.asarray(np.ascontiguousarray(x[0].swapaxes(0, 1))) for x in (*host[:1], *host[:1])]
    scales = kw.asarray(np.array([0.5, 2], np.float32))
    got = attention(
        rows[0], rows[1], rows[1], cu_seqlens_q=starts, cu_seqlens_k=starts, key_scale=scales
    )
    for first, last in ((0, 4), (4, 9)):
        part = exact[0][:, :, first:last]
        wanted = reference(part, part * np.array([0.5, 2])[:, None, None], part)[0]
        seen = got[first:last].transpose((1, 0, 2)).reshape(wanted.shape)
        assert_attention(seen, wanted, "bfloat16")


def test_without_elements():
    for batch, heads, queries, keys, dim in [(0, 2, 3, 4, 64), (2, 0, 3, 4, 64), (2, 2, 0, 4, 64)]:
        q, kv = kw.zeros((batch, heads, queries, dim)), kw.zeros((batch, heads, keys, dim))
        assert attention(q, kv, kv).shape == (batch, heads, queries, dim)
    for dtype in TYPES:
        empty = kw.zeros((2, 2, 0, 64), dtype)
        got, lse = attention(kw.ones((2, 2, 20, 64), dtype), empty, empty, return_lse=True)
        assert (got.numpy() == 0).all() and (lse.numpy() == -np.inf).all()
    values = normal(1, 1, 7, 64)
    got = attention(kw.ones((1, 1, 3, 0)), kw.ones((1, 1, 7, 0)), kw.asarray(values))
    assert_attention(got, np.broadcast_to(values.mean(2, keepdims=True), got.shape), "float32")


def test_in_a_graph():
    host = operands(1, 2, 2, 30, 40, 64, "float16")
    device, stream, graph = on_device(host), kw.Stream(), kw.Graph()
    kw.synchronize()
    with graph.capture(stream):
        got = attention(*device, is_causal=True)
    device[0][...] = 2 * host[0]
    graph.launch(stream)
    stream.synchronize()
    assert_attention(got, reference(2 * host[0], *host[1:], causal=True)[0], "float16")


def test_every_kernel_under_all_checks(sim):
    with kw.checks("memory", "init", "race", "sync") as report:
        for dtype in ("float16", "float32"):
            for queries in (70, 1):
                q, kv = kw.ones((1, 2, queries, 64), dtype), kw.ones((1, 1, 150, 64), dtype)
                attention(q, kv, kv, is_causal=queries > 1, enable_gqa=True)
        q, kv = kw.ones((1, 1, 20, 64), "float16"), kw.ones((1, 1, 70, 64), "float16")
        attention(q, kv, kv, kw.ones((20, 70), "bool"), 0.5, seed=1, soft_cap=3.0)
        kw.synchronize()
    assert not report.findings, str(report)


def ones(*shape, dtype="float32"):
    return kw.ones(shape, dtype)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: attention(x, x, x.astype("float16")), InvalidArgument, "float16"),
        (lambda x: attention(x.astype("float64"), x, x), InvalidArgument, "float64"),
        (lambda x: attention(x, x, x, key_scale=2.0), InvalidArgument, "key_scale.*float32"),
        (lambda x: attention(x, x, x.astype("float8_e5m2"), value_scale=kw.ones(3)),
         InvalidArgument, "value_scale has shape"),
        (lambda x: attention(x.astype("float8_e4m3fn"), x, x, query_scale=kw.ones((), "float16")),
         ArgumentError, "float32 array, not float16"),
        (lambda x: attention(x, x, x, kw.ones((3, 3), "bool"), is_causal=True), InvalidArgument,
         "exclude"),
        (lambda x: attention(x, x, x, kw.ones((5, 4), "bool")), InvalidArgument, "broadcast"),
        (lambda x: attention(x, x, x, kw.ones((4, 4), "int32")), InvalidArgument, "int32"),
        (lambda x: attention(x, x[..., :4], x), InvalidArgument, "head_dim"),
        (lambda x: attention(x, x[:1], x[:1]), InvalidArgument, "batch"),
        (lambda x: attention(x, x[:, :1], x[:, :1]), InvalidArgument, "enable_gqa"),
        (lambda x: attention(x, ones(2, 3, 4, 8), ones(2, 3, 4, 8), enable_gqa=True),
         InvalidArgument, "multiple"),
        (lambda x: attention(x, x, x, dropout_p=0.1), ArgumentError, "seed"),
        (lambda x: attention(x, x, x, dropout_p=1.5, seed=1), InvalidArgument, "dropout_p"),
        (lambda x: attention(x, x, x, window="wide"), ArgumentError, "window"),
        (lambda x: attention(x, x, x, soft_cap=-1.0), InvalidArgument, "soft_cap"),
        (lambda x: attention(x, x, x, sinks=kw.ones(3)), InvalidArgument, "sinks"),
        (lambda x: attention(x, x, x, lengths=kw.ones(2, "int64")), InvalidArgument, "lengths"),
        (lambda x: attention(np.ones((2, 2, 4, 8), np.float32), x, x), ArgumentError, "asarray"),
        (lambda x: attention(ones(1, 1, 2, 300), ones(1, 1, 2, 300), ones(1, 1, 2, 300)),
         InvalidArgument, "256"),
        (lambda x: attention(x, x, x, cu_seqlens_q=kw.ones(3, "int32")), InvalidArgument, "packed"),
    ],
)  # fmt: skip
def test_wrong_input(call, error, words):
    with pytest.raises(error, match=words):
        call(ones(2, 2, 4, 8))


def test_options_are_those_of_the_stub():
    stub = ast.parse((Path(kw.__file__).parent / "_core_attention.pyi").read_text())
    named = next(each for each in stub.body if getattr(each, "name", "") == "_AttentionOptions")
    fields = [each for each in named.body if isinstance(each, ast.AnnAssign)]
    options = kw._core._AttentionOptions()
    assert tuple(each.target.id for each in fields) == options._fields
    assert tuple(ast.literal_eval(each.value) for each in fields) == tuple(options)


def test_options_are_made_by_names_in_any_order():
    made = kw._core._AttentionOptions(max_queries=3, scale=0.5, attn_mask="mask")
    assert type(made) is kw._core._AttentionOptions
    assert (made.attn_mask, made.scale, made.max_queries) == ("mask", 0.5, 3)
    others = made._replace(attn_mask=None, scale=None, max_queries=0)
    assert others == kw._core._AttentionOptions() and made.max_queries == 3
    assert kw._core._AttentionOptions("mask", scale=0.5, max_queries=3) == made
    for given, named in [((), {"masks": 1}), (("mask",), {"attn_mask": 1})]:
        with pytest.raises(TypeError, match=f"has no further field '{next(iter(named))}'"):
            kw._core._AttentionOptions(*given, **named)
    named = {"".join(["sca", "le"]): 0.5}  # another object than the name in the table
    assert kw._core._AttentionOptions(**named).scale == 0.5
    with pytest.raises(TypeError, match="got 22 values, and has 21 fields"):
        kw._core._AttentionOptions(*[None] * 22)


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({"scale": "a"}, kw.ArgumentError, "scale is a number, got str 'a'"),
        ({"max_seqlen_q": 1.5}, kw.ArgumentError, "max_seqlen_q is an int, got float 1.5"),
        ({"return_lse": "x"}, kw.ArgumentError, "return_lse is a bool, got str 'x'"),
        ({"dropout_p": 0.1, "seed": -1}, kw.ArgumentRangeError, "seed of -1 is out of range"),
    ],
)
def test_options_of_wrong_kinds_are_named(given, kind, words):
    x = kw.ones((1, 1, 1, 8))
    with pytest.raises(kind, match=rf"^kw\.nn\.attention\(\): {words}"):
        kw.nn.attention(x, x, x, **given)
