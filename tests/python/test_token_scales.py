"""Caches of 8 bits with a scale for each token and head: how they are written, what attention
makes of them, against NumPy."""

import ml_dtypes
import numpy as np
import pytest

import kernwright as kw
from kernwright.errors import InvalidArgument

STORED = {
    "int8": (np.int8, 127.0), "float8_e4m3fn": (ml_dtypes.float8_e4m3fn, 448.0),
    "float8_e5m2": (ml_dtypes.float8_e5m2, 57344.0),
}  # fmt: skip


def normal(*shape, dtype="bfloat16", seed=0, scale=1.0):
    values = np.random.default_rng(seed).standard_normal(shape) * scale
    return values.astype(getattr(ml_dtypes, dtype, dtype))


def quantised(x, kind="int8"):
    """Codes and scales of heads, the last axis, as float32 computes them."""
    stored, most = STORED[kind]
    wide = np.asarray(x, np.float32)
    scales = np.abs(wide).max(-1) / np.float32(most)
    with np.errstate(invalid="ignore"):  # heads with NaN or infinities have no codes
        steps = wide / np.where(scales == 0, 1, scales)[..., None]
        steps = np.rint(steps) if kind == "int8" else steps
        return np.clip(steps, -most, most).astype(stored), scales.astype(np.float32)


def numbers(codes, scales):
    return codes.astype(np.float64) * scales.astype(np.float64)[..., None]


def pages_of(count, size, heads, dim, kind="int8"):
    """Codes of both, and their scales, which nobody wrote."""
    caches = [kw.zeros((count, size, heads, dim), kind) for _ in range(2)]
    return caches, [kw.full((count, size, heads), 7.0) for _ in range(2)]


@pytest.mark.parametrize("kind", STORED)
@pytest.mark.parametrize(("dtype", "dim"), [("bfloat16", 64), ("float16", 24), ("float32", 7)])
def test_append_writes_codes_and_scales(kind, dtype, dim):
    q, k, v = (normal(5, heads, dim, dtype=dtype, seed=heads) for heads in (6, 2, 3))
    v = normal(5, 2, dim, dtype=dtype, seed=9, scale=1e-3)
    k[1, 0] = 0
    k[2, 1, 3], v[3] = np.nan, np.inf
    (keys, values), scales = pages_of(4, 4, 2, dim, kind)
    table = kw.asarray(np.array([[3, 1], [0, 9]], np.int32))
    rows = kw.asarray(np.array([0, 0, 1, 1, -1], np.int32))
    places = np.array([2, 5, 1, 6, 0], np.int32)  # the fourth has no page, the last no row
    made = kw.nn.append_qkv(
        tuple(map(kw.asarray, (q, k, v))), keys, values, kw.asarray(places), page_table=table,
        token_rows=rows, key_scale=scales[0], value_scale=scales[1],
    )  # fmt: skip
    assert made.numpy().tobytes() == q.tobytes()
    for x, cache, found in ((k, keys, scales[0]), (v, values, scales[1])):
        codes, expected = quantised(x, kind)
        wanted, untouched = np.zeros(cache.shape, codes.dtype), np.full(found.shape, 7, np.float32)
        for token, at in ((0, (3, 2)), (1, (1, 1)), (2, (0, 1))):
            wanted[at], untouched[at] = codes[token], expected[token]
        assert np.array_equal(found.numpy(), untouched, equal_nan=True)
        there = np.isfinite(untouched)
        assert cache.numpy()[there].tobytes() == wanted[there].tobytes()
    assert np.isnan(scales[0].numpy()[0, 1, 1])


def test_append_after_norms_and_turns():
    """What is kept is what a cache of the tokens' dtype would keep, in steps of its scale."""
    q, k, v = (normal(6, heads, 32, seed=heads) for heads in (4, 2, 3))
    arrays = (kw.asarray(q), kw.asarray(k), kw.asarray(v[:, :2]))
    cos, sin = kw.nn.rope_tables(16, 32)
    options = {
        "q_weight": kw.asarray(normal(32, seed=5)), "k_weight": kw.asarray(normal(32, seed=6)),
        "page_table": kw.asarray(np.array([[2, 0]], np.int32)),
        "token_rows": kw.zeros(6, "int32"),
    }  # fmt: skip
    positions = kw.arange(6, dtype="int32")
    (keys, values), scales = pages_of(3, 4, 2, 32)
    plain = [kw.zeros((3, 4, 2, 32), "bfloat16") for _ in range(2)]
    first = kw.nn.append_qkv(arrays, *plain, positions, cos, sin, **options)
    again = kw.nn.append_qkv(
        arrays, keys, values, positions, cos, sin, key_scale=scales[0], value_scale=scales[1],
        **options,
    )  # fmt: skip
    assert first.numpy().tobytes() == again.numpy().tobytes()
    for whole, cache, found in zip(plain, (keys, values), scales, strict=True):
        codes, expected = quantised(whole.numpy()[[2, 0]].reshape(8, 2, 32)[:6])
        assert np.array_equal(cache.numpy()[[2, 0]].reshape(8, 2, 32)[:6], codes)
        assert np.array_equal(found.numpy()[[2, 0]].reshape(8, 2)[:6], expected)


def test_append_cache_of_places_that_follow_each_other():
    key, value = normal(2, 3, 5, 48), normal(2, 3, 5, 40, seed=1)
    keys, values = kw.zeros((2, 3, 16, 48), "int8"), kw.zeros((2, 3, 16, 40), "int8")
    scales = [kw.zeros((2, 3, 16)) for _ in range(2)]
    positions = kw.asarray(np.array([3, 14], np.int32))  # the second has place for two
    kw.nn.append_cache(
        kw.asarray(key), kw.asarray(value), keys, values, positions, key_scale=scales[0],
        value_scale=scales[1],
    )  # fmt: skip
    for x, cache, found in ((key, keys, scales[0]), (value, values, scales[1])):
        codes, expected = quantised(x)
        assert np.array_equal(cache.numpy()[0, :, 3:8], codes[0])
        assert np.array_equal(cache.numpy()[1, :, 14:], codes[1, :, :2])
        assert np.array_equal(found.numpy()[0, :, 3:8], expected[0])
        assert (found.numpy()[:, :, :3] == 0).all() and (found.numpy()[0, :, 8:] == 0).all()


def attended(q, k, v, scale, window=None, cap=0.0, sinks=None):
    """One sequence, the queries being its last tokens: (queries, heads, dim), in float64."""
    queries, heads, _ = q.shape
    group = heads // k.shape[1]
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    scores = np.einsum("qhe,khe->hqk", q.astype(np.float64), k) * scale
    scores = cap * np.tanh(scores / cap) if cap else scores
    distance = np.arange(len(k) - queries, len(k))[:, None] - np.arange(len(k))
    scores[:, (distance < 0) | (distance >= (window or 10**9))] = -np.inf
    more = np.full((heads, queries, 1), -np.inf) if sinks is None else np.broadcast_to(
        np.asarray(sinks, np.float64)[:, None, None], (heads, queries, 1))  # fmt: skip
    most = np.maximum(scores.max(-1, keepdims=True), more)
    weights = np.exp(scores - most)
    total = weights.sum(-1, keepdims=True) + np.exp(more - most)
    return np.einsum("hqk,khe->qhe", weights / total, v)


class Sequences:
    """Quantised caches in pages of random order; the scales of tokens differ by powers of ten."""

    def __init__(self, sizes, heads, kv_heads, dim, page=16, dtype="bfloat16", kind="int8",
                 size=1.0):  # fmt: skip
        each = -(-max(length for length, _ in sizes) // page)
        places = np.random.default_rng(3).permutation(len(sizes) * each)
        self.table = places.reshape(len(sizes), each).astype(np.int32)
        self.lengths = np.array([length for length, _ in sizes], np.int32)
        self.starts = np.cumsum([0] + [new for _, new in sizes]).astype(np.int32)
        self.q = normal(self.starts[-1], heads, dim, dtype=dtype)
        self.sides = []
        for side in range(2):
            codes = np.zeros((len(places), page, kv_heads, dim), STORED[kind][0])
            scales, whole = np.zeros(codes.shape[:3], np.float32), []
            for i, length in enumerate(self.lengths):
                tens = 10.0 ** -(np.arange(length) % 3)[:, None, None]
                x = normal(length, kv_heads, dim, dtype="float32", seed=7 * i + side) * tens * size
                made = quantised(x, kind)
                at = self.table[i, np.arange(length) // page], np.arange(length) % page
                codes[at], scales[at] = made
                whole.append(numbers(*made))
            self.sides.append((codes, scales, whole))

    def call(self, **options):
        caches = [kw.asarray(codes) for codes, _, _ in self.sides]
        scales = [kw.asarray(scales) for _, scales, _ in self.sides]
        arrays = [kw.asarray(each) for each in (self.table, self.lengths, self.starts)]
        return kw.nn.paged_attention(
            kw.asarray(self.q), *caches, *arrays, key_scale=scales[0], value_scale=scales[1],
            **options,
        )  # fmt: skip

    def wanted(self, **options):
        made = np.zeros(self.q.shape)
        for i in range(len(self.lengths)):
            rows = slice(self.starts[i], self.starts[i + 1])
            made[rows] = attended(self.q[rows], *(side[2][i] for side in self.sides), **options)
        return made


def close(result, expected, tolerance=1.5e-2):
    off = result.numpy().astype(np.float64) - expected
    assert np.linalg.norm(off) <= tolerance * np.linalg.norm(expected)


MIXED = [(70, 40), (33, 33), (100, 1), (17, 3), (1, 1)]


@pytest.mark.parametrize("kind", ["int8", "float8_e4m3fn"])
@pytest.mark.parametrize(("dtype", "dim"), [("bfloat16", 64), ("float16", 96), ("bfloat16", 40)])
def test_chunks_and_single_tokens_in_pages(kind, dtype, dim):
    sequences = Sequences(MIXED, 4, 2, dim, dtype=dtype, kind=kind)
    close(sequences.call(), sequences.wanted(scale=dim**-0.5))


@pytest.mark.parametrize("size", [1e-3, 1e3])
def test_small_and_large_values(size):
    sequences = Sequences(MIXED, 4, 2, 64, dtype="float16" if size < 1 else "bfloat16", size=size)
    sequences.sides[0] = Sequences(MIXED, 4, 2, 64).sides[0]  # keys as usual
    close(sequences.call(scale=0.1), sequences.wanted(scale=0.1))


def test_windows_caps_and_sinks():
    sequences = Sequences(MIXED, 4, 2, 64, page=8)
    sequences.table[0, 0] = -1  # in front of the window of all its queries
    sinks = np.linspace(-1, 1, 4).astype(np.float32)
    made = sequences.call(window=20, soft_cap=5.0, sinks=kw.asarray(sinks))
    close(made, sequences.wanted(scale=0.125, window=20, cap=5.0, sinks=sinks))


@pytest.mark.parametrize("splits", [None, 1, 3])
def test_decode_over_pages_and_over_places(splits):
    lengths = [130, 64, 1]
    sequences = Sequences([(each, 1) for each in lengths], 8, 2, 64)
    q = kw.asarray(sequences.q[:, :, None])
    more = {} if splits is None else {"splits": splits}
    (keys, key_scales, _), (values, value_scales, _) = sequences.sides
    arrays = [kw.asarray(each) for each in (keys, values, sequences.lengths)]
    scales = {"key_scale": kw.asarray(key_scales), "value_scale": kw.asarray(value_scales)}
    made = kw.nn.decode_attention(
        q, *arrays, page_table=kw.asarray(sequences.table), **scales, **more
    )
    close(made[:, :, 0], sequences.wanted(scale=0.125))
    flat = [x[sequences.table].reshape(3, -1, *x.shape[2:]).swapaxes(1, 2).copy()
            for x in (keys, values, key_scales, value_scales)]  # fmt: skip
    scales = {"key_scale": kw.asarray(flat[2]), "value_scale": kw.asarray(flat[3])}
    made = kw.nn.decode_attention(q, *map(kw.asarray, flat[:2]), arrays[2], **scales, **more)
    close(made[:, :, 0], sequences.wanted(scale=0.125))
    whole = kw.nn.decode_attention(
        q[:1], *(kw.asarray(x[:1, :, :130].copy()) for x in flat[:2]),
        **{name: kw.asarray(x[:1, :, :130].copy()) for name, x in
           zip(("key_scale", "value_scale"), flat[2:], strict=True)}, **more,
    )  # fmt: skip
    close(whole[:, :, 0], sequences.wanted(scale=0.125)[:1])


def test_under_all_checks():
    if not kw.current_device().is_simulated:
        pytest.skip("only the simulated device looks")
    sequences = Sequences(MIXED, 4, 2, 64)
    (keys, values), scales = pages_of(4, 8, 2, 64)
    tokens = tuple(kw.asarray(normal(9, heads, 64, seed=heads)) for heads in (4, 2, 2))
    with kw.checks("memory", "init", "race", "sync") as report:
        sequences.call(window=30)
        kw.nn.append_qkv(
            tokens, keys, values, kw.arange(9, dtype="int32"), token_rows=kw.zeros(9, "int32"),
            page_table=kw.asarray(np.array([[1, 7]], np.int32)), key_scale=scales[0],
            value_scale=scales[1],
        )  # fmt: skip
    assert report.findings == []


def test_what_it_does_not_take():
    sequences = Sequences([(20, 20)], 4, 2, 64)
    (keys, key_scales, _), (values, value_scales, _) = sequences.sides
    arrays = [kw.asarray(each) for each in (sequences.table, sequences.lengths, sequences.starts)]
    q, k, v = (kw.asarray(each) for each in (sequences.q, keys, values))
    scales = [kw.asarray(each) for each in (key_scales, value_scales)]
    paged = kw.nn.paged_attention
    with pytest.raises(InvalidArgument, match=r"value_scale is None.*together"):
        paged(q, k, v, *arrays, key_scale=scales[0])
    with pytest.raises(InvalidArgument, match=r"value_scale is a .*its last axis"):
        paged(q, k, v, *arrays, key_scale=scales[0], value_scale=scales[1][:, :, :1])
    wide = [x.astype("bfloat16") for x in (k, v)]
    with pytest.raises(InvalidArgument, match="beside caches of 8-bit elements"):
        paged(q, *wide, *arrays, key_scale=scales[0], value_scale=scales[1])
    with pytest.raises(InvalidArgument, match="contiguous float32"):
        kw.nn.append_cache(
            q[None, :2], q[None, :2], kw.zeros((1, 2, 8, 64), "int8"),
            kw.zeros((1, 2, 8, 64), "int8"), kw.zeros(1, "int32"), key_scale=kw.zeros((1, 2, 9)),
            value_scale=kw.zeros((1, 2, 8)),
        )  # fmt: skip
