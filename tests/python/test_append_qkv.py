"""kw.nn.append_qkv: split, norm, rope and append in one launch, against the functions one by one
and against float64."""

import ml_dtypes
import numpy as np
import pytest
from attention_model import NORM, TYPES, normal

import kernwright as kw
from kernwright.errors import ArgumentError, InvalidArgument

nn = kw.nn
SMALL = {
    "int8": np.int8,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
}
BATCH, TOKENS, HEADS, KV_HEADS, PLACES = 2, 3, 4, 2, 12
POSITIONS = np.array([4, 10], np.int32)  # the last token of the second has no place


def caches_of(dim, cache, page, value_dim=None):
    """Two caches and the options for places; unused places hold ones."""
    shapes = [(BATCH, KV_HEADS, PLACES, d) for d in (dim, value_dim or dim)]
    options = {}
    if page:
        each = -(-PLACES // page)
        table = np.random.default_rng(0).permutation(2 * each + 1)[: 2 * each].reshape(2, each)
        options["page_table"] = kw.asarray(table.astype(np.int32))
        shapes = [(2 * each + 1, page, KV_HEADS, shape[-1]) for shape in shapes]
    if cache in SMALL:
        scales = np.array([[0.05, 0.02], [0.1, 0.03]], np.float32)
        options["key_scale"], options["value_scale"] = (kw.asarray(s) for s in scales)
    return [kw.ones(shape, cache) for shape in shapes], options


def one_by_one(qkv, caches, cos, sin, weights, eps, interleaved, positions, **options):
    """The steps of append_qkv() by the functions for each."""
    q, k, v = nn.split_qkv(qkv, HEADS, KV_HEADS) if isinstance(qkv, kw.Array) else qkv
    q, k = (x if w is None else nn.rms_norm(x, w, eps)
            for x, w in zip((q, k), weights, strict=True))  # fmt: skip
    places = kw.asarray(POSITIONS)
    if cos is not None:
        steps = kw.asarray(POSITIONS[:, None] + np.arange(TOKENS, dtype=np.int32))
        q, k = nn.rope(q, k, cos, sin, positions=steps if positions is None else positions,
                       interleaved=interleaved)  # fmt: skip
    q, k, v = (kw.permute_dims(x, (0, 2, 1, 3)) for x in (q, k, v))
    nn.append_cache(k, v, *caches, places, **options)
    return q


def same(got, wanted, dtype="exact"):
    got, wanted = (x.numpy().astype(np.float64) for x in (got, wanted))
    if dtype == "exact":
        assert np.array_equal(got, wanted, equal_nan=True)
    else:  # sums of squares may be added up in another order
        bits = ml_dtypes.finfo(TYPES[dtype]).eps
        np.testing.assert_allclose(got, wanted, rtol=2 * bits, atol=2 * bits)


@pytest.mark.parametrize(
    ("dtype", "dim", "rotary", "cache", "page", "interleaved"),
    [("bfloat16", 128, 128, "bfloat16", 0, False), ("bfloat16", 128, 128, "bfloat16", 0, True),
     ("float16", 64, 32, "float16", 5, True), ("float32", 256, 256, "float32", 1, False),
     ("bfloat16", 64, 64, "int8", 4, True), ("float16", 96, 24, "float8_e4m3fn", 16, False),
     ("bfloat16", 80, 80, "float8_e5m2", 0, True), ("float32", 6, 2, "int8", 3, False),
     ("float32", 6, 2, "int8", 3, True), ("float16", 7, 6, "float16", 0, False)],
)  # fmt: skip
def test_equal_to_the_functions_one_by_one(dtype, dim, rotary, cache, page, interleaved):
    width = (HEADS + 2 * KV_HEADS) * dim
    qkv = kw.asarray(normal(BATCH, TOKENS, width, dtype=dtype))
    cos, sin = nn.rope_tables(20, rotary, scaling={"rope_type": "linear", "factor": 2.0})
    weight = kw.asarray(normal(dim, dtype=dtype, seed=1))
    wide = kw.asarray(normal(dim, seed=2))
    rope_positions = kw.asarray(
        np.random.default_rng(3).integers(0, 20, (BATCH, TOKENS)).astype(np.int32)
    )
    for weights, tables, where in [
        ((None, None), (cos, sin), None),
        ((weight, wide), (cos, sin), rope_positions),
        ((None, weight), (None, None), None),
    ]:
        ours, options = caches_of(dim, cache, page)
        theirs, _ = caches_of(dim, cache, page)
        got = nn.append_qkv(qkv, *ours, kw.asarray(POSITIONS), *tables, q_weight=weights[0],
                            k_weight=weights[1], eps=1e-5, interleaved=interleaved,
                            rope_positions=where, **options)  # fmt: skip
        wanted = one_by_one(qkv, theirs, *tables, weights, 1e-5, interleaved, where, **options)
        assert got.shape == (BATCH, HEADS, TOKENS, dim) and got.dtype == wanted.dtype
        normed = weights != (None, None)
        same(got, wanted, dtype if normed else "exact")
        same(ours[1], theirs[1])
        if not normed or cache in TYPES:
            same(ours[0], theirs[0], dtype if normed else "exact")
        else:  # one step of the small format at most, where a norm was rounded the other way
            a, b = (x[0].numpy().view(np.uint8).astype(int) for x in (ours, theirs))
            off = np.abs((a - b + 128) % 256 - 128)
            assert off.max() <= 1 and (off > 0).mean() < 0.01


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_against_float64(dtype):
    dim = 64
    qkv = normal(BATCH, TOKENS, (HEADS + 2 * KV_HEADS) * dim, dtype=dtype)
    weights = [normal(dim, dtype=dtype, seed=i) for i in (1, 2)]
    caches, _ = caches_of(dim, dtype, 0)
    tables = nn.rope_tables(20, dim)
    got = nn.append_qkv(kw.asarray(qkv), *caches, kw.asarray(POSITIONS), *tables,
                        q_weight=kw.asarray(weights[0]),
                        k_weight=kw.asarray(weights[1]))  # fmt: skip
    heads = qkv.astype(np.float64).reshape(BATCH, TOKENS, -1, dim).swapaxes(1, 2)
    q, k, v = heads[:, :HEADS], heads[:, HEADS : HEADS + KV_HEADS], heads[:, HEADS + KV_HEADS :]
    angle = (POSITIONS[:, None] + np.arange(TOKENS))[..., None] / 1e4 ** (
        np.arange(0, dim, 2) / dim
    )
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]

    def made(x, weight):
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * weight.astype(np.float64)
        a, b = x[..., : dim // 2], x[..., dim // 2 :]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    expected = [np.ones((BATCH, KV_HEADS, PLACES, dim)) for _ in range(2)]
    for to, x in zip(expected, (made(k, weights[1]), v), strict=True):
        for b, t in np.ndindex(BATCH, TOKENS):
            if POSITIONS[b] + t < PLACES:
                to[b, :, POSITIONS[b] + t] = x[b, :, t]
    for mine, true in zip((got, *caches), (made(q, weights[0]), *expected), strict=True):
        off = np.linalg.norm(mine.numpy().astype(np.float64) - true)
        assert off <= NORM[dtype] * np.linalg.norm(true)


def test_three_arrays_of_any_strides():
    host = [normal(BATCH, heads, TOKENS, dim, seed=i, dtype="float16")
            for i, (heads, dim) in enumerate([(HEADS, 32), (KV_HEADS, 32),
                                              (KV_HEADS, 48)])]  # fmt: skip
    plain = [kw.asarray(np.ascontiguousarray(x.swapaxes(1, 2))) for x in host]
    tables = nn.rope_tables(20, 32)
    ours, _ = caches_of(32, "float16", 0, 48)
    wanted = nn.append_qkv(tuple(plain), *ours, kw.asarray(POSITIONS), *tables)
    theirs, _ = caches_of(32, "float16", 0, 48)
    same(wanted, one_by_one(plain, theirs, *tables, (None, None), 1e-6, False, None))
    for turn in (
        lambda x: kw.permute_dims(kw.asarray(x), (0, 2, 1, 3)),  # heads first in memory
        lambda x: kw.asarray(np.concatenate([np.zeros(1, x.dtype), x.swapaxes(1, 2).ravel()]))[
            1:].reshape((BATCH, TOKENS, x.shape[1], x.shape[3])),  # not where packs begin
        lambda x: kw.asarray(np.ascontiguousarray(x.swapaxes(1, 2)[:, ::-1]))[:, ::-1],
        lambda x: kw.asarray(np.repeat(x.swapaxes(1, 2), 2, -1))[..., ::2],
    ):  # fmt: skip
        caches, _ = caches_of(32, "float16", 0, 48)
        same(
            nn.append_qkv([turn(x) for x in host], *caches, kw.asarray(POSITIONS), *tables), wanted
        )
        for mine, true in zip(caches, ours, strict=True):
            same(mine, true)


def test_places_and_pages_that_are_none():
    qkv = kw.asarray(normal(BATCH, 1, (HEADS + 2 * KV_HEADS) * 16, dtype="float16"))
    tables = nn.rope_tables(8, 16)
    for positions in ([-1, PLACES], [2**31 - 1, -(2**31)]):
        caches, _ = caches_of(16, "float16", 0)
        at = kw.asarray(np.array(positions, np.int32))
        got = nn.append_qkv(qkv, *caches, at, *tables).numpy()
        assert np.isnan(got).all()  # outside of the tables too
        assert all((cache.numpy() == 1).all() for cache in caches)
        with pytest.raises(InvalidArgument, match="2 of 2 tokens"):
            nn.append_qkv(qkv, *caches, at, *tables, check=True)
    caches, options = caches_of(16, "float16", 4)
    options["page_table"] = kw.asarray(np.array([[-1, 0, 1], [2, 7, 3]], np.int32))
    for at, wrong in (([3, 1], 1), ([3, 5], 2), ([4, 8], 0)):
        places = kw.asarray(np.array(at, np.int32))
        before = [x.numpy() for x in caches]
        if wrong:
            with pytest.raises(InvalidArgument, match=f"{wrong} of 2 tokens.*page"):
                nn.append_qkv(qkv, *caches, places, check=True, **options)
            kv = kw.ones((BATCH, KV_HEADS, 1, 16), "float16")
            with pytest.raises(InvalidArgument, match=f"append_cache: {wrong} of 2"):
                nn.append_cache(kv, kv, *caches, places, check=True, **options)
            assert all(np.array_equal(x.numpy(), y) for x, y in zip(caches, before, strict=True))
        nn.append_qkv(qkv, *caches, places, check=wrong == 0, **options)
        changed = [(x.numpy() != y).any((2, 3)).sum() for x, y in zip(caches, before, strict=True)]
        assert changed == [2 - wrong] * 2


def test_special_values_stay_in_their_heads():
    x = np.ones((1, 2, 4 * 8), np.float32)
    x[0, 0, 3], x[0, 1, 9], x[0, 1, 17] = np.nan, np.inf, -0.0
    caches = [kw.zeros((1, 1, 4, 8)) for _ in range(2)]
    got = nn.append_qkv(kw.asarray(x), *caches, kw.zeros(1, "int32"), q_weight=kw.ones(8)).numpy()
    assert np.isnan(got[0, 0, 0]).all() and np.isfinite(got[0, 0, 1]).all()
    assert np.isnan(got[0, 1, 1]).any() and np.isfinite(got[0, 1, 0]).all()
    assert caches[0].numpy()[0, 0, 0].tolist() == [1.0] * 8


def test_without_elements():
    for shape, heads in [((0, 2, 64), 4), ((2, 0, 64), 4), ((2, 3, 32), 0)]:
        caches = [kw.zeros((shape[0], 2, 5, 8)) for _ in range(2)]
        got = nn.append_qkv(kw.ones(shape), *caches, kw.zeros(shape[0], "int32"), check=True)
        assert got.shape == (shape[0], heads, shape[1], 8)
    nowhere = kw.zeros((2, 2, 0, 8))
    got = nn.append_qkv(kw.ones((2, 1, 64)), nowhere, nowhere, kw.zeros(2, "int32"))
    assert (got.numpy() == 1).all()


def test_in_a_graph():
    qkv = kw.asarray(normal(BATCH, 1, (HEADS + 2 * KV_HEADS) * 64, dtype="bfloat16"))
    tables, weight = nn.rope_tables(20, 64), kw.asarray(normal(64))
    places, stream, graph = kw.zeros(BATCH, "int32"), kw.Stream(), kw.Graph()
    caches, options = caches_of(64, "bfloat16", 4)
    kw.synchronize()
    with graph.capture(stream):
        q = nn.append_qkv(qkv, *caches, places, *tables, q_weight=weight, **options)
        got = nn.decode_attention(q, *caches, places + 1, **options)
    for at in ([0, 3], [7, 11]):
        places[...] = np.array(at, np.int32)
        graph.launch(stream)
        stream.synchronize()
        wanted = nn.append_qkv(qkv, *caches, places, *tables, q_weight=weight, **options)
        same(q, wanted)
        same(got, nn.decode_attention(wanted, *caches, places + 1, **options))


def test_every_kernel_under_all_checks(sim):
    with kw.checks("memory", "init", "race", "sync") as report:
        for dtype, cache, page in [("bfloat16", "bfloat16", 0), ("float16", "int8", 5),
                                   ("float32", "float8_e4m3fn", 3)]:  # fmt: skip
            for dim, interleaved in ((64, False), (64, True), (7, False), (6, True)):
                caches, options = caches_of(dim, cache, page)
                qkv = kw.ones((BATCH, TOKENS, (HEADS + 2 * KV_HEADS) * dim), dtype)
                tables = nn.rope_tables(20, dim // 2 * 2)
                nn.append_qkv(qkv, *caches, kw.asarray(POSITIONS), *tables, interleaved=interleaved,
                              q_weight=kw.ones(dim), **options)  # fmt: skip
        kw.synchronize()
    assert not report.findings, str(report)


def appended(qkv=None, cache=None, positions=None, *tables, **options):
    cache = kw.ones((2, 2, 5, 8)) if cache is None else cache
    qkv = kw.ones((2, 1, 64)) if qkv is None else qkv
    at = kw.zeros(2, "int32") if positions is None else positions
    return nn.append_qkv(qkv, cache, cache, at, *tables, **options)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: appended(np.ones((2, 1, 64))), ArgumentError, "asarray"),
        (lambda: appended(kw.ones((2, 1, 63))), InvalidArgument, r"\(heads \+ 2 kv_heads\)"),
        (lambda: appended(kw.ones((2, 64))), InvalidArgument, r"\(2, 64\)"),
        (lambda: appended(kw.ones((2, 1, 64), "float64")), InvalidArgument, "float64"),
        (lambda: appended(None, kw.ones((2, 5, 8))), InvalidArgument, "four axes"),
        (lambda: appended(None, kw.ones((2, 2, 5, 8), "float16")), InvalidArgument, "float16"),
        (lambda: appended(None, kw.ones((2, 1, 5, 512))), InvalidArgument, "packed"),
        (lambda: appended((kw.ones((2, 1, 4, 512)), *2 * [kw.ones((2, 1, 2, 512))]),
                          kw.ones((2, 2, 5, 512))), InvalidArgument, "at most 256"),
        (lambda: appended(None, None, kw.zeros(3, "int32")), InvalidArgument, "positions"),
        (lambda: appended(None, None, kw.zeros(2)), InvalidArgument, "positions"),
        (lambda: appended(None, None, None, kw.ones((9, 4))), InvalidArgument, "together"),
        (lambda: appended(None, None, None, *2 * [kw.ones((9, 5))]), InvalidArgument, "cos"),
        (lambda: appended(None, None, None, kw.ones((9, 4)), kw.ones((9, 3))), InvalidArgument,
         "sin"),
        (lambda: appended(q_weight=kw.ones(9)), InvalidArgument, "q_weight"),
        (lambda: appended(k_weight=kw.ones(8, "float16")), InvalidArgument, "k_weight"),
        (lambda: appended(rope_positions=kw.zeros(2, "int32")), InvalidArgument, "rope_positions"),
        (lambda: appended(None, kw.ones((2, 5, 2, 8)), page_table=kw.zeros((3, 2), "int32")),
         InvalidArgument, "page_table"),
        (lambda: appended(key_scale=kw.ones(3)), InvalidArgument, "key_scale"),
        (lambda: appended((kw.ones((2, 1, 4, 8)),)), ArgumentError, "three arrays"),
        (lambda: appended((kw.ones((2, 1, 4, 8)), kw.ones((2, 1, 2, 8)), None)), InvalidArgument,
         "q, k and v"),
        (lambda: appended((kw.ones((2, 1, 4, 8)), *2 * [kw.ones((2, 2, 2, 8))])), InvalidArgument,
         "q, k and v"),
        (lambda: appended(kw.ones((2, 1, 64)).astype("int8")), InvalidArgument, "int8"),
    ],
)  # fmt: skip
def test_wrong_input(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize(
    ("dtype", "cache", "page"),
    [("bfloat16", "bfloat16", 4), ("float16", "int8", 3), ("float32", "float32", 0)],
)
@pytest.mark.parametrize("form", ["rows", "views", "one token each"])
def test_packed_tokens_of_many_sequences(dtype, cache, page, form):
    """As append_qkv() of each token alone; tokens without a row or a place write nothing."""
    dim, rows = 64, np.array([1, 1, 0, -1, 1, 0, 2, -7], np.int32)
    positions = np.array([3, 4, 0, 2, 5, 12, 0, 1], np.int32)
    count = len(rows)
    qkv = kw.asarray(normal(count, (HEADS + 2 * KV_HEADS) * dim, dtype=dtype))
    tables = nn.rope_tables(20, dim)
    ours, options = caches_of(dim, cache, page)
    theirs, _ = caches_of(dim, cache, page)
    tokens = qkv if form == "rows" else qkv[:, None]
    if form == "views":
        heads = qkv.reshape(count, -1, dim)
        tokens = (heads[:, :HEADS], heads[:, HEADS:-KV_HEADS], heads[:, -KV_HEADS:])
    rope_positions = kw.asarray(positions + 2)
    rope_positions = rope_positions[:, None] if form == "one token each" else rope_positions
    got = nn.append_qkv(tokens, *ours, kw.asarray(positions), *tables,
                        rope_positions=rope_positions, token_rows=kw.asarray(rows),
                        **options)  # fmt: skip
    axes = (1, dim) if form == "one token each" else (dim,)
    assert got.shape == (count, HEADS, *axes)
    for i, row in enumerate(rows):
        exists = 0 <= row < BATCH
        at, each = (row if exists else 0), dict(options)
        if page:
            each["page_table"] = options["page_table"][at : at + 1]
        place = positions[i : i + 1] if exists else np.array([-1], np.int32)
        into = theirs if page else [x[at : at + 1] for x in theirs]
        turns = kw.asarray(positions[i : i + 1, None] + 2)
        wanted = nn.append_qkv(qkv[i : i + 1, None], *into, kw.asarray(place), *tables,
                               rope_positions=turns, **each)  # fmt: skip
        same(got[i].reshape(HEADS, dim), wanted[0, :, 0])
    for mine, other in zip(ours, theirs, strict=True):
        same(mine, other)


@pytest.mark.parametrize("page", [0, 4])
def test_packed_keys_and_values_alone(page):
    rows, positions = np.array([1, 0, -1, 1], np.int32), np.array([0, 11, 3, 7], np.int32)
    key, value = (normal(4, KV_HEADS, 64, dtype="float16", seed=i) for i in (0, 1))
    ours, options = caches_of(64, "float16", page)
    theirs, _ = caches_of(64, "float16", page)
    nn.append_cache(kw.asarray(key), kw.asarray(value), *ours, kw.asarray(positions),
                    token_rows=kw.asarray(rows), check=True, **options)  # fmt: skip
    for into, x in zip(theirs, (key, value), strict=True):
        host = into.numpy().copy()
        for i in (0, 1, 3):
            if page:
                number = options["page_table"].numpy()[rows[i], positions[i] // page]
                host[number, positions[i] % page] = x[i]
            else:
                host[rows[i], :, positions[i]] = x[i]
        assert np.array_equal(ours[0 if x is key else 1].numpy(), host)
    for wrong_rows, wrong_places in (([2, 0, 0, 0], positions), (rows, [0, 12, 0, 0]),
                                     ([-2, 0, 0, 0], positions)):  # fmt: skip
        with pytest.raises(InvalidArgument, match="1 of 4 tokens have no place"):
            nn.append_cache(kw.asarray(key), kw.asarray(value), *ours,
                            kw.asarray(wrong_places, "int32"),
                            token_rows=kw.asarray(wrong_rows, "int32"), check=True,
                            **options)  # fmt: skip


def test_wrong_packed_tokens_are_named():
    caches, options = caches_of(64, "float16", 4)
    qkv, places = kw.ones((3, (HEADS + 2 * KV_HEADS) * 64), "float16"), kw.zeros(3, "int32")

    def call(tokens=qkv, rows=places, at=places):
        return nn.append_qkv(tokens, *caches, at, token_rows=rows, **options)

    with pytest.raises(InvalidArgument, match=r"token_rows is a .*int32 of shape \(3,\)"):
        call(rows=kw.zeros(2, "int32"))
    with pytest.raises(InvalidArgument, match=r"token_rows is a .*int32"):
        call(rows=kw.zeros(3, "int64"))
    with pytest.raises(InvalidArgument, match=r"positions is a"):
        call(at=kw.zeros(2, "int32"))
    with pytest.raises(InvalidArgument, match="tokens are packed"):
        call(tokens=kw.ones((3, 2, qkv.shape[1]), "float16"))
