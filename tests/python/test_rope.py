"""Rotary embedding, its tables, ALiBi, PoPE, iRoPE, fused q, k, v: against formulas in float64."""

import math

import numpy as np
import pytest
from nn_arrays import assert_close, values, views, wide

import kernwright as kw

nn = kw.nn


def plain(dim, base=10000.0):
    return 1.0 / base ** (np.arange(0, dim, 2) / dim)


def yarn(dim, base, factor, original, fast=32.0, slow=1.0):
    """As transformers' _compute_yarn_parameters, in float64."""

    def pair(rotations):
        return dim * math.log(original / (rotations * 2 * math.pi)) / (2 * math.log(base))

    low, high = max(math.floor(pair(fast)), 0), min(math.ceil(pair(slow)), dim - 1)
    ramp = np.clip((np.arange(dim // 2) - low) / (high - low if high != low else 0.001), 0, 1)
    return plain(dim, base) / factor * ramp + plain(dim, base) * (1 - ramp)


def llama3(dim, base, factor, original, low, high):
    """As transformers' _compute_llama3_parameters, in float64."""
    f = plain(dim, base)
    length = 2 * math.pi / f
    smooth = (original / length - low) / (high - low)
    mixed = (1 - smooth) * f / factor + smooth * f
    slow = np.where(length > original / low, f / factor, f)
    middle = (length <= original / low) & (length >= original / high)
    return np.where(middle, mixed, slow)


RULES = {
    "default": ({}, plain(64)),
    "linear": ({"rope_type": "linear", "factor": 4.0}, plain(64) / 4),
    "ntk": ({"type": "ntk", "factor": 4.0}, plain(64, 10000 * 4 ** (64 / 62))),
    "dynamic": (
        {"rope_type": "dynamic", "factor": 2.0, "original_max_position_embeddings": 64},
        plain(64, 10000 * (2.0 * 256 / 64 - 1) ** (64 / 62)),
    ),
    "yarn": (
        {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 4096},
        yarn(64, 10000.0, 8.0, 4096),
    ),
    "llama3": (
        {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
            "rope_theta": 500000.0,
        },
        llama3(64, 500000.0, 8.0, 8192, 1.0, 4.0),
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_frequencies_and_tables(name):
    scaling, expected = RULES[name]
    got = nn.rope_frequencies(64, scaling=scaling, seq_len=256)
    np.testing.assert_allclose(got.numpy(), expected, rtol=2e-7)
    cos, sin = nn.rope_tables(17, 64, scaling=scaling, offset=239)
    angles = (239 + np.arange(17))[:, None] * expected
    factor = 0.1 * math.log(8.0) + 1 if name == "yarn" else 1.0
    assert nn.rope_attention_factor(scaling) == pytest.approx(factor)
    np.testing.assert_allclose(cos.numpy(), factor * np.cos(angles), atol=1e-7)
    np.testing.assert_allclose(sin.numpy(), factor * np.sin(angles), atol=1e-7)


def test_rules_of_tables():
    far, _ = nn.rope_tables(1, 128, offset=1_000_000)
    np.testing.assert_allclose(far.numpy()[0], np.cos(1e6 * plain(128)), atol=1e-7)
    short = {"rope_type": "dynamic", "factor": 2.0, "original_max_position_embeddings": 64}
    got = nn.rope_frequencies(64, scaling=short, seq_len=10)
    np.testing.assert_allclose(got.numpy(), plain(64), rtol=2e-7)
    deep = {"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 4096}
    assert nn.rope_attention_factor({**deep, "attention_factor": 1.5}) == 1.5
    scaled = nn.rope_attention_factor({**deep, "mscale": 0.707, "mscale_all_dim": 1.0})
    assert scaled == pytest.approx((0.0707 * math.log(40) + 1) / (0.1 * math.log(40) + 1))
    assert nn.rope_tables(0, 8)[0].shape == (0, 4)
    for wrong, error, message in (
        ({"rope_type": "longest", "factor": 2.0}, kw.ArgumentError, "no scaling.*llama3"),
        ({"rope_type": "linear"}, kw.ArgumentError, "needs a factor"),
        ({"factors": 2.0}, kw.ArgumentError, "no 'factors'"),
        ({"rope_type": "yarn", "factor": 2.0}, kw.InvalidArgument, "original_max_position"),
        ({"rope_type": "linear", "factor": 0.0}, kw.InvalidArgument, "above 0"),
    ):
        with pytest.raises(error, match=message):
            nn.rope_frequencies(8, scaling=wrong)
    with pytest.raises(kw.InvalidArgument, match="dimension is 7"):
        nn.rope_frequencies(7)


def turn(x, cos, sin, positions, interleaved, direction=1):
    """x: (batch, tokens, heads, dim); positions: (batch, tokens)."""
    out, half = wide(x).copy(), cos.shape[1]
    c, s = (wide(t)[positions][:, :, None, :] for t in (cos, sin))
    first = np.s_[..., 0 : 2 * half : 2] if interleaved else np.s_[..., :half]
    second = np.s_[..., 1 : 2 * half : 2] if interleaved else np.s_[..., half : 2 * half]
    a, b = wide(x)[first], wide(x)[second]
    out[first], out[second] = a * c - direction * b * s, b * c + direction * a * s
    return out


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("interleaved", [False, True])
def test_both_layouts(dtype, interleaved):
    cos, sin = nn.rope_tables(40, 16)
    tables = cos.numpy(), sin.numpy()
    for dim, rotary in ((16, 16), (25, 16), (40, 16), (6, 6)):
        if rotary != 16:
            cos, sin = nn.rope_tables(40, rotary)
            tables = cos.numpy(), sin.numpy()
        q, k = values((2, 5, 6, dim), dtype), values((2, 5, 3, dim), dtype, 1)
        ids = np.array([[0, 39, 7, 7, 1], [2, 3, 4, 5, 6]], np.int32)
        a, b, p = kw.asarray(q), kw.asarray(k), kw.asarray(ids)
        call = {"positions": p, "interleaved": interleaved}
        got_q, got_k = nn.rope(a, b, cos, sin, **call)
        assert_close(got_q, turn(q, *tables, ids, interleaved), dtype)
        assert_close(got_k, turn(k, *tables, ids, interleaved), dtype)
        dq, dk = nn.rope_backward(a, b, cos, sin, **call)
        assert_close(dq, turn(q, *tables, ids, interleaved, -1), dtype)
        assert_close(dk, turn(k, *tables, ids, interleaved, -1), dtype)
        back = nn.rope_backward(got_q, got_k, cos, sin, **call)
        assert_close(back[0], q, dtype, 1e7 if dtype == "float64" else 4)  # tables of float32
        swapped = a.transpose(0, 2, 1, 3).copy(), b.transpose(0, 2, 1, 3).copy()
        hq, _ = nn.rope(*swapped, cos, sin, heads_first=True, **call)
        np.testing.assert_array_equal(wide(hq.numpy()), wide(got_q.numpy()).transpose(0, 2, 1, 3))
        nn.rope(a, b, cos, sin, inplace=True, **call)
        np.testing.assert_array_equal(wide(a.numpy()), wide(got_q.numpy()))
        np.testing.assert_array_equal(wide(b.numpy()), wide(got_k.numpy()))


@pytest.mark.parametrize("interleaved", [False, True])
def test_offsets_ids_and_views(interleaved):
    cos, sin = nn.rope_tables(32, 8)
    x = values((6, 35))[:, :32].reshape(6, 4, 8)
    positions = 9 + np.arange(6)[None]
    expected = turn(x[None], cos.numpy(), sin.numpy(), positions, interleaved)[0]
    for view in views(x.reshape(6, 32)):
        got = nn.rope(view.reshape(6, 4, 8), None, cos, sin, offset=9, interleaved=interleaved)
        assert_close(got, expected)
    wide_rows = kw.zeros((6, 4, 11))
    window = wide_rows[..., 2:10]
    window[...] = kw.asarray(x)
    nn.rope(window, None, cos, sin, offset=9, interleaved=interleaved, inplace=True)
    assert_close(window, expected)
    assert not wide_rows.numpy()[..., [0, 1, 10]].any()
    ids = kw.asarray(np.arange(6))
    got = nn.rope(kw.asarray(x), None, cos, sin, positions=ids, offset=9, interleaved=interleaved)
    assert_close(got, expected)


def test_against_the_formula_of_transformers():
    """rotate_half and tables of both halves, as modeling_llama.py writes them."""
    q = values((1, 4, 12, 64))
    cos, sin = nn.rope_tables(12, 64, base=500000.0)
    angles = np.arange(12)[:, None] * plain(64, 500000.0)
    c, s = (np.concatenate([f(angles)] * 2, axis=-1) for f in (np.cos, np.sin))
    half = np.concatenate([-q[..., 32:], q[..., :32]], axis=-1)
    got = nn.rope(kw.asarray(q), None, cos, sin, heads_first=True)
    np.testing.assert_allclose(got.numpy(), q * c + half * s, rtol=1e-5, atol=1e-6)


def test_positions_outside_and_nothing_to_do():
    cos, sin = nn.rope_tables(4, 4)
    x = kw.ones((3, 2, 5))
    ids = kw.asarray(np.array([3, 4, -1]))
    got = nn.rope(x, None, cos, sin, positions=ids).numpy()
    assert np.isnan(got[1:, :, :4]).all() and not np.isnan(got[0]).any()
    assert (got[..., 4] == 1).all()
    with pytest.raises(kw.InvalidArgument, match="positions 2 to 4 are outside"):
        nn.rope(x, None, cos, sin, offset=2)
    with pytest.raises(kw.InvalidArgument, match="positions -1 to 1"):
        nn.rope(x, None, cos, sin, offset=-1)
    assert nn.rope(kw.ones((0, 2, 4)), None, cos, sin).shape == (0, 2, 4)
    assert nn.rope(kw.ones((1, 0, 4)), None, cos, sin).shape == (1, 0, 4)
    empty = nn.rope_tables(4, 0)
    np.testing.assert_array_equal(nn.rope(x, None, *empty).numpy(), x.numpy())


def test_wrong_calls():
    cos, sin = nn.rope_tables(8, 4)
    q = kw.ones((2, 3, 4, 4))
    for arguments, message in (
        ((kw.ones((3, 4)), None), "q is a .* head_dim"),
        ((q, kw.ones((2, 4, 4, 4))), "heads alone"),
        ((q, kw.ones((2, 3, 4, 4), "float64")), "heads alone"),
        ((kw.ones((2, 3, 4, 2)), None), "tables have shape"),
    ):
        with pytest.raises(kw.InvalidArgument, match=message):
            nn.rope(*arguments, cos, sin)
    with pytest.raises(kw.InvalidArgument, match=r"must have shape \(3,\) or \(2, 3\)"):
        nn.rope(q, None, cos, sin, positions=kw.zeros((3, 2), "int64"))
    with pytest.raises(kw.ArgumentError, match=r"positions is .* int32 or int64"):
        nn.rope(q, None, cos, sin, positions=kw.zeros((2, 3)))
    with pytest.raises(kw.ArgumentError, match="floating"):
        nn.rope(kw.zeros((2, 3, 4, 4), "int32"), None, cos, sin)
    with pytest.raises(kw.InvalidArgument, match="in place"):
        nn.rope(kw.ones((4, 3, 2)).T, None, *nn.rope_tables(8, 2), inplace=True)


@pytest.mark.parametrize("heads", [1, 2, 8, 6, 12, 71])
def test_alibi(heads):
    power = 2 ** int(math.log2(heads))
    slopes = [2.0 ** (-8 * (h + 1) / power) for h in range(power)]
    slopes += [2.0 ** (-8 * (h + 1) / (2 * power)) for h in range(0, 2 * power, 2)]
    slopes = np.array(slopes[:heads])
    np.testing.assert_allclose(nn.alibi_slopes(heads).numpy(), slopes, rtol=1e-7)
    distance = abs(np.arange(3)[:, None] + 2 - np.arange(5))
    for dtype in ("float32", "bfloat16"):
        got = nn.alibi_bias(heads, 3, 5, dtype=dtype)
        assert_close(got, -slopes[:, None, None] * distance, dtype)


def test_alibi_of_nothing():
    assert nn.alibi_slopes(0).shape == (0,)
    assert nn.alibi_bias(2, 0).shape == (2, 0, 0)
    with pytest.raises(kw.ArgumentError, match="floating"):
        nn.alibi_bias(2, 3, dtype="int32")


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_pope(dtype):
    x, dim = values((2, 5, 3, 6), dtype), 6
    cos, sin = nn.rope_tables(20, 2 * dim)
    shifts = values((3, 6), seed=2)
    angles = (4 + np.arange(5))[:, None, None] * 10000.0 ** (-np.arange(6) / 6)
    for turned in (None, shifts, shifts[0]):
        a = angles + (0 if turned is None else turned)
        size = np.logaddexp(0, wide(x))
        expected = np.concatenate([size * np.cos(a), size * np.sin(a)], axis=-1)
        call = {"offset": 4, "shifts": None if turned is None else kw.asarray(turned)}
        factor = 1e7 if dtype == "float64" else 4  # tables and shifts of float32
        assert_close(nn.pope(kw.asarray(x), cos, sin, **call), expected, dtype, factor)
        grad = values((2, 5, 3, 12), dtype, 3)
        slope = wide(grad)[..., :6] * np.cos(a) + wide(grad)[..., 6:] * np.sin(a)
        slope /= 1 + np.exp(-wide(x))
        got = nn.pope_backward(kw.asarray(grad), kw.asarray(x), cos, sin, **call)
        assert_close(got, slope, dtype, factor)
    with pytest.raises(kw.InvalidArgument, match="head_dim"):
        nn.pope(kw.asarray(x), *nn.rope_tables(20, dim))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_gradient_of_the_shifts_of_pope(dtype):
    for shape, heads_first in (((2, 150, 3, 6), False), ((2, 3, 70, 6), True), ((5, 4, 90), False)):
        x, grad = values(shape, dtype), values((*shape[:-1], 2 * shape[-1]), dtype, 3)
        dim, tokens = shape[-1], shape[2] if heads_first else shape[-3]
        heads = shape[1] if heads_first else shape[-2]
        cos, sin = nn.rope_tables(200, 2 * dim)
        order = (0, 2, 1, 3) if heads_first else tuple(range(len(shape)))
        flat, above = wide(x).transpose(order), wide(grad).transpose(order)
        angles = (4 + np.arange(tokens))[:, None, None] * 10000.0 ** (-np.arange(dim) / dim)
        for shifts in (values((heads, dim), seed=2), values((dim,), seed=2)):
            a = angles + shifts
            slope = above[..., dim:] * np.cos(a) - above[..., :dim] * np.sin(a)
            slope = (slope * np.logaddexp(0, flat)).reshape(-1, heads, dim).sum(axis=0)
            expected = slope if shifts.ndim == 2 else slope.sum(axis=0)
            got = nn.pope_shifts_backward(
                kw.asarray(grad), kw.asarray(x), cos, sin, shifts=kw.asarray(shifts), offset=4,
                heads_first=heads_first,
            )  # fmt: skip
            assert got.shape == shifts.shape and got.dtype == np.float32
            assert_close(got, expected, "float32", 40)


def test_shifts_of_pope_by_finite_differences():
    x, shifts = values((4, 2, 3), "float64"), values((2, 3), seed=2)
    cos, sin = nn.rope_tables(4, 6)
    grad = values((4, 2, 6), "float64", 5)
    ids = kw.asarray(np.array([3, 0, 2, 2]))

    def loss(moved):
        y = nn.pope(kw.asarray(x), cos, sin, shifts=kw.asarray(moved), positions=ids)
        return (y.numpy() * grad).sum()

    got = nn.pope_shifts_backward(
        kw.asarray(grad), kw.asarray(x), cos, sin, shifts=kw.asarray(shifts), positions=ids
    ).numpy()
    for at in np.ndindex(2, 3):
        step = np.zeros((2, 3), np.float32)
        step[at] = 2.0**-9
        up, down = shifts + step, shifts - step
        slope = (loss(up) - loss(down)) / (float(up[at]) - float(down[at]))
        assert abs(slope - got[at]) < 2e-4
    none = nn.pope_shifts_backward(
        kw.zeros((0, 2, 6)), kw.zeros((0, 2, 3)), cos, sin, shifts=kw.asarray(shifts)
    )
    assert none.shape == (2, 3) and not none.numpy().any()
    with pytest.raises(kw.InvalidArgument, match="shifts"):
        nn.pope_shifts_backward(kw.asarray(grad), kw.asarray(x), cos, sin, shifts=kw.ones(4))


def test_longrope():
    short, long = 1 + np.arange(8) / 8, 2.0 + np.arange(8)
    scaling = {
        "rope_type": "longrope", "short_factor": short.tolist(), "long_factor": long.tolist(),
        "original_max_position_embeddings": 4096, "max_position_embeddings": 131072,
    }  # fmt: skip
    plain = 10000.0 ** (-np.arange(8) / 8)
    for seq_len, factors in ((None, short), (4096, short), (4097, long)):
        got = nn.rope_frequencies(16, scaling=scaling, seq_len=seq_len)
        np.testing.assert_allclose(got.numpy(), plain / factors, rtol=2e-7)
    attention = math.sqrt(1 + math.log(32) / math.log(4096))
    assert nn.rope_attention_factor(scaling) == pytest.approx(attention, rel=1e-15)
    for change, expected in (
        ({"factor": 4.0}, math.sqrt(1 + math.log(4) / math.log(4096))),
        ({"factor": 0.5}, 1.0),
        ({"attention_factor": 1.25}, 1.25),
    ):
        assert nn.rope_attention_factor({**scaling, **change}) == pytest.approx(expected)
    for offset, factors in ((0, short), (4090, long)):
        cos, sin = nn.rope_tables(20, 16, offset=offset, scaling=scaling)
        angles = (offset + np.arange(20))[:, None] * (plain / factors)
        np.testing.assert_allclose(cos.numpy(), np.cos(angles) * attention, atol=2e-7)
        np.testing.assert_allclose(sin.numpy(), np.sin(angles) * attention, atol=2e-7)


@pytest.mark.parametrize(
    "change, error, words",
    [
        ({"short_factor": [1.0] * 7}, kw.InvalidArgument, "8 factors"),
        ({"short_factor": None}, kw.ArgumentError, "short_factor"),
        ({"short_factor": ["a"]}, kw.ArgumentError, "short_factor"),
        ({"short_factor": [1.0] * 7 + [0.0]}, kw.ArgumentError, "above 0"),
        ({"factor": None, "original_max_position_embeddings": 0}, kw.Error, "original"),
        ({"max_position_embeddings": None}, kw.ArgumentError, "max_position_embeddings"),
    ],
)
def test_wrong_longrope(change, error, words):
    scaling = {
        "rope_type": "longrope", "short_factor": [1.0] * 8, "long_factor": [2.0] * 8,
        "original_max_position_embeddings": 64, "max_position_embeddings": 128, **change,
    }  # fmt: skip
    with pytest.raises(error, match=words):
        nn.rope_frequencies(16, scaling=scaling)


def test_scores_of_pope_are_polar():
    q, k = values((1, 4, 1, 8)), values((1, 4, 1, 8), seed=1)
    cos, sin = nn.rope_tables(4, 16)
    a, b = (wide(nn.pope(kw.asarray(v), cos, sin).numpy())[0, :, 0] for v in (q, k))
    angles = (np.arange(4)[:, None] - np.arange(4))[..., None] * 10000.0 ** (-np.arange(8) / 8)
    sizes = np.logaddexp(0, wide(q))[0, :, None, 0] * np.logaddexp(0, wide(k))[0, None, :, 0]
    np.testing.assert_allclose(a @ b.T, (sizes * np.cos(angles)).sum(axis=-1), rtol=1e-5)


def test_attention_temperature():
    for dtype in ("float32", "bfloat16"):
        q = values((2, 6, 3, 8), dtype)
        ids = np.array([[0, 8190, 8191, 16383, 100000, 5]] * 2)
        scale = np.log(np.floor((ids + 1) / 8192) + 1) * 0.1 + 1
        expected = wide(q) * scale[:, :, None, None]
        got = nn.attention_temperature(kw.asarray(q), positions=kw.asarray(ids))
        assert_close(got, expected, dtype)
    q = values((3, 6, 7))
    scale = np.log(np.floor((2 + np.arange(6) + 1) / 4) + 1) * 0.5 + 1
    got = nn.attention_temperature(
        kw.asarray(q), offset=2, floor_scale=4, attn_scale=0.5, heads_first=True
    )
    assert_close(got, q * scale[:, None])
    with pytest.raises(kw.InvalidArgument, match="floor_scale"):
        nn.attention_temperature(kw.asarray(q), floor_scale=0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("dim", [8, 5])
def test_split_qkv(dtype, dim):
    rows = values((2, 3, 8 * dim), dtype)
    a = kw.asarray(rows)
    expected = np.split(rows.reshape(2, 3, 8, dim), [4, 6], axis=2)
    for got, wanted in zip(nn.split_qkv(a, 4, 2), expected, strict=True):
        np.testing.assert_array_equal(wide(got.numpy()), wide(wanted))
    parts = nn.split_qkv(a, 4, 2, heads_first=True)
    for got, wanted in zip(parts, expected, strict=True):
        np.testing.assert_array_equal(wide(got.numpy()), wide(wanted).transpose(0, 2, 1, 3))
    merged = nn.merge_qkv(*parts, heads_first=True)
    np.testing.assert_array_equal(wide(merged.numpy()), wide(rows))
    flat = nn.split_qkv(a[0][:, : 6 * dim], 2)
    np.testing.assert_array_equal(wide(flat[2].numpy()), wide(rows)[0].reshape(3, 8, dim)[:, 4:6])
    np.testing.assert_array_equal(wide(nn.merge_qkv(*flat).numpy()), wide(rows)[0, :, : 6 * dim])


def test_split_of_wrong_shapes():
    assert nn.split_qkv(kw.ones((0, 12)), 2)[1].shape == (0, 2, 2)
    with pytest.raises(kw.InvalidArgument, match="2 heads and 2 kv_heads"):
        nn.split_qkv(kw.ones((3, 13)), 2)
    with pytest.raises(kw.InvalidArgument, match="heads alone"):
        nn.merge_qkv(kw.ones((3, 2, 4)), kw.ones((3, 2, 5)), kw.ones((3, 2, 5)))


def test_no_finding_in_any_kernel(sim):
    with kw.checks("memory", "init", "race", "sync") as report:
        cos, sin = nn.rope_tables(9, 8)
        nn.rope_frequencies(8)
        q, k, v = nn.split_qkv(kw.ones((2, 5, 100)), 6, 2)
        nn.rope(q, k, cos, sin)
        nn.rope(q, k, cos, sin, interleaved=True, inplace=True)
        nn.merge_qkv(q, k, v)
        nn.attention_temperature(q, floor_scale=2)
        wide_cos, wide_sin = nn.rope_tables(9, 20)
        twice = nn.pope(q, wide_cos, wide_sin)
        nn.pope_backward(twice, q, wide_cos, wide_sin)
        nn.pope_shifts_backward(twice, q, wide_cos, wide_sin, shifts=kw.zeros(10))
        nn.alibi_slopes(6)
        nn.alibi_bias(6, 4)
    report.raise_if_any()


def test_replay_in_a_graph():
    cos, sin = nn.rope_tables(9, 8)
    q, ids = kw.asarray(values((5, 2, 8))), kw.asarray(np.arange(5))
    nn.rope(q, None, cos, sin, positions=ids)
    stream, graph = kw.Stream(), kw.Graph()
    with graph.capture(stream):
        got = nn.rope(q, None, cos, sin, positions=ids)
    fresh = np.array([8, 0, 3, 3, 1])
    ids[...] = kw.asarray(fresh)
    kw.current_device().synchronize()
    graph.launch(stream)
    stream.synchronize()
    assert_close(got, turn(q.numpy()[None], cos.numpy(), sin.numpy(), fresh[None], False)[0])
