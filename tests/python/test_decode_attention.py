"""kw.nn.decode_attention and append_cache over contiguous caches and pages, against float64."""

import ml_dtypes
import numpy as np
import pytest
from attention_model import assert_attention, assert_logarithms, normal, reference

import kernwright as kw
from kernwright.errors import ArgumentError, InvalidArgument

decode = kw.nn.decode_attention
SMALL = {
    "int8": np.int8,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
}


def operands(batch, heads, kv_heads, queries, keys, dim, dtype, value_dim=None):
    return (
        normal(batch, heads, queries, dim, dtype=dtype, seed=1),
        normal(batch, kv_heads, keys, dim, dtype=dtype, seed=2),
        normal(batch, kv_heads, keys, value_dim or dim, dtype=dtype, seed=3),
    )


def on_device(arrays):
    return [kw.asarray(x) for x in arrays]


def pages_of(cache, page, spare=3, seed=0):
    """The cache cut into pages in random order with unused ones between, and its table."""
    batch, heads, keys, dim = cache.shape
    each = -(-keys // page)
    places = np.random.default_rng(seed).permutation(batch * each + spare)[: batch * each]
    unused = 127 if cache.dtype == np.int8 else np.nan
    pages = np.full((batch * each + spare, page, heads, dim), unused).astype(cache.dtype)
    padded = np.zeros((batch, each * page, heads, dim), cache.dtype)
    padded[:, :keys] = cache.swapaxes(1, 2)
    pages[places] = padded.reshape(batch * each, page, heads, dim)
    return pages, places.reshape(batch, each).astype(np.int32)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_lengths_and_splits(dtype):
    for keys in (1, 16, 63, 65, 200):
        host = operands(2, 4, 2, 1, keys, 64, dtype)
        wanted, logarithms = reference(*host, causal=True, bottom=True)
        for splits in (None, 1, 2, 7, 40):
            got, lse = decode(*on_device(host), splits=splits, return_lse=True)
            assert_attention(got, wanted, dtype)
            assert_logarithms(lse, logarithms)


@pytest.mark.parametrize(
    ("heads", "kv_heads", "queries"), [(1, 1, 1), (8, 1, 1), (6, 2, 3), (20, 1, 2), (4, 4, 8)]
)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_groups_and_several_queries(dtype, heads, kv_heads, queries):
    host = operands(2, heads, kv_heads, queries, 90, 64, dtype)
    lengths = np.array([90, 33], np.int32)
    wanted = reference(*host, causal=True, bottom=True, lengths=lengths)[0]
    for splits in (1, 3):
        got = decode(*on_device(host), kw.asarray(lengths), splits=splits)
        assert_attention(got, wanted, dtype)


@pytest.mark.parametrize(
    ("dtype", "dim", "value_dim"),
    [("bfloat16", 24, 24), ("bfloat16", 96, 96), ("bfloat16", 128, 128), ("bfloat16", 192, 128),
     ("bfloat16", 256, 256), ("float32", 100, 128), ("float32", 256, 256)],
)  # fmt: skip
def test_head_dimensions(dtype, dim, value_dim):
    host = operands(1, 4, 2, 1, 130, dim, dtype, value_dim)
    got = decode(*on_device(host), splits=2)
    assert_attention(got, reference(*host)[0], dtype)


@pytest.mark.parametrize("page", [1, 3, 16, 128])
def test_pages(page):
    lengths = np.array([130, 1, 77], np.int32)
    for dtype in ("float16", "float32"):
        host = operands(3, 4, 2, 1, 130, 64, dtype)
        wanted = reference(*host, causal=True, bottom=True, lengths=lengths)[0]
        (key, table), (value, _) = pages_of(host[1], page), pages_of(host[2], page)
        q, key, value, table, ends = on_device((host[0], key, value, table, lengths))
        for splits in (1, 3):
            got = decode(q, key, value, ends, page_table=table, splits=splits, check=True)
            assert_attention(got, wanted, dtype)
        whole = decode(q, *on_device(host[1:]), ends, splits=3)
        assert np.array_equal(got.numpy().view(np.uint8), whole.numpy().view(np.uint8))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_pages_that_are_none(dtype):
    host = operands(3, 2, 2, 1, 64, 64, dtype)
    wanted = reference(*host)[0]
    (key, table), (value, _) = pages_of(host[1], 8), pages_of(host[2], 8)
    table[0, 2], table[1, 1] = -1, len(key)
    q, key, value, wrong = on_device((host[0], key, value, table))
    for splits in (1, 2):
        got = decode(q, key, value, page_table=wrong, splits=splits)
        assert np.isnan(got.numpy()[:2]).all()
        assert_attention(got[2:], wanted[2:], dtype)
    ends = kw.asarray(np.array([16, 8, 64], np.int32))  # in front of the wrong ones
    short = reference(*host, lengths=[16, 8, 64])[0]
    for check in (False, True):
        got = decode(q, key, value, ends, page_table=wrong, check=check)
        assert_attention(got, short, dtype)
    with pytest.raises(InvalidArgument, match="2 entries"):
        decode(q, key, value, page_table=wrong, check=True)


@pytest.mark.parametrize(
    ("lengths", "window", "queries", "found"),
    [(None, None, 1, 3), ([64, 64], None, 1, 3), ([65, 10**6], None, 1, 3), ([16, 8], None, 1, 0),
     ([17, 9], None, 1, 2), ([0, -5], None, 1, 0), ([64, 64], 40, 1, 1), ([64, 64], 41, 1, 2),
     ([64, 64], 40, 2, 2), ([64, 64], 64, 1, 3)],
)  # fmt: skip
def test_pages_that_are_read_are_checked(lengths, window, queries, found):
    """Wrong are tokens 16 to 23 of the first sequence, 8 to 15 and 48 to 55 of the second."""
    host = operands(2, 2, 2, queries, 64, 64, "float16")
    (key, table), (value, _) = pages_of(host[1], 8), pages_of(host[2], 8)
    table[0, 2], table[1, 1], table[1, 6] = -1, len(key), -(2**31)
    q, key, value, table = on_device((host[0], key, value, table))
    ends = lengths and kw.asarray(np.array(lengths, np.int32))
    options = {"page_table": table, "window": window, "check": True}
    if found == 0:
        decode(q, key, value, ends, **options)
        return
    with pytest.raises(InvalidArgument, match=f"{found} entries"):
        decode(q, key, value, ends, **options)


@pytest.mark.parametrize("dim", [64, 128])
@pytest.mark.parametrize("dtype", ["bfloat16", *SMALL])
def test_nothing_in_front_of_a_window_counts(dtype, dim):
    """A page given up behind a sliding window is none, or has anything in it."""
    host = operands(1, 4, 1, 1, 520, dim, "bfloat16")
    caches = [x if dtype == "bfloat16" else (8 * x.astype("f4")).astype(SMALL[dtype])
              for x in host[1:]]  # fmt: skip
    back = [x.astype("f8") for x in caches]
    options = {"scale": 0.02}
    wanted = reference(host[0], *back, causal=True, bottom=True, left=63, **options)[0]
    (key, table), (value, _) = pages_of(caches[0], 40), pages_of(caches[1], 40)
    given_up = table[0, : (520 - 64) // 40].copy()
    key[given_up] = value[given_up] = 127 if dtype == "int8" else np.nan
    q, key, value = on_device((host[0], key, value))
    for none in (False, True):
        if none:
            table[0, : len(given_up)] = -1
        for splits in (1, 3):
            got = decode(q, key, value, page_table=kw.asarray(table), window=64, splits=splits,
                         **options)  # fmt: skip
            assert_attention(got, wanted, "bfloat16")


@pytest.mark.parametrize("small", SMALL)
def test_small_caches(small):
    host = operands(2, 4, 2, 1, 100, 64, "float16")
    scales = np.array([[0.03, 0.02], [0.05, 0.01]], np.float32)
    with np.errstate(all="ignore"):
        caches = [np.clip(x.astype(np.float32) / s.reshape(2, 1, 1), -127, 127).round()
                  if small == "int8" else x.astype(np.float32) / s.reshape(2, 1, 1)
                  for x, s in zip(host[1:], scales, strict=True)]  # fmt: skip
        caches = [x.astype(SMALL[small]) for x in caches]
    back = [x.astype(np.float64) * s.reshape(2, 1, 1) for x, s in zip(caches, scales, strict=True)]
    wanted, logarithms = reference(host[0], *back)
    for splits in (1, 2):
        got, lse = decode(*on_device((host[0], *caches)), key_scale=kw.asarray(scales[0]),
                          value_scale=kw.asarray(scales[1]), splits=splits,
                          return_lse=True)  # fmt: skip
        assert_attention(got, wanted, "float16")
        assert_logarithms(lse, logarithms)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_window_cap_sinks_and_alibi(dtype):
    host = operands(2, 4, 2, 2, 200, 64, dtype)
    lengths = np.array([200, 50], np.int32)
    slopes = np.random.default_rng(1).random(4).astype(np.float32)
    sinks = np.array([0.5, 3.0, -np.inf, -2.0], np.float32)
    for window, options in [(20, {}), (1000, {"sinks": sinks}), (70, {"soft_cap": 2.0}),
                            (None, {"alibi": slopes, "sinks": sinks})]:  # fmt: skip
        wanted, logarithms = reference(
            *host, causal=True, bottom=True, lengths=lengths,
            left=-1 if window is None else window - 1, **options,
        )  # fmt: skip
        given = {k: kw.asarray(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
        for splits in (1, 3):
            got, lse = decode(*on_device(host), kw.asarray(lengths), window=window,
                              splits=splits, return_lse=True, **given)  # fmt: skip
            assert_attention(got, wanted, dtype)
            np.testing.assert_allclose(lse.numpy(), logarithms, rtol=2e-4, atol=2e-4)


def test_layouts():
    host = operands(2, 2, 2, 1, 70, 64, "float16")
    wanted = reference(*host)[0]
    q = kw.asarray(host[0])
    turned = [kw.permute_dims(kw.asarray(x.swapaxes(1, 2).copy()), (0, 2, 1, 3)) for x in host[1:]]
    assert_attention(decode(q, *turned), wanted, "float16")
    shifted = [
        kw.asarray(np.concatenate([np.zeros(1, x.dtype), x.ravel()]))[1:].reshape(x.shape)
        for x in host[1:]
    ]
    assert_attention(decode(q, *shifted), wanted, "float16")


def test_lengths_out_of_range():
    host = operands(3, 2, 2, 1, 70, 64, "float16")
    ends = kw.asarray(np.array([0, -3, 2**31 - 1], np.int32))
    for splits in (1, 2):
        got, lse = decode(*on_device(host), ends, splits=splits, return_lse=True)
        assert (got.numpy()[:2] == 0).all() and (lse.numpy()[:2] == -np.inf).all()
        assert_attention(got[2:], reference(*host)[0][2:], "float16")


def test_without_elements():
    for batch, heads, queries in [(0, 2, 1), (2, 0, 1), (2, 2, 0)]:
        q, kv = kw.zeros((batch, heads, queries, 64)), kw.zeros((batch, heads, 9, 64))
        assert decode(q, kv, kv).shape == (batch, heads, queries, 64)
    empty = kw.zeros((2, 2, 0, 64), "float16")
    assert (decode(kw.ones((2, 2, 1, 64), "float16"), empty, empty).numpy() == 0).all()
    pages, table = kw.zeros((0, 16, 2, 64), "float16"), kw.zeros((2, 0), "int32")
    got = decode(kw.ones((2, 2, 1, 64), "float16"), pages, pages, page_table=table)
    assert (got.numpy() == 0).all()


@pytest.mark.parametrize("paged", [False, True])
@pytest.mark.parametrize("cache", ["float16", *SMALL])
def test_append(paged, cache):
    key, value = normal(2, 3, 4, 8, dtype="float16"), normal(2, 3, 4, 16, dtype="float16", seed=1)
    positions = np.array([5, 8], np.int32)  # the last two tokens of the second have no place
    scales = np.array([0.5, 0.01, 0.001], np.float32)
    caches = [np.zeros((2, 3, 10, d), SMALL.get(cache, np.float16)) for d in (8, 16)]
    expected = [x.copy() for x in caches]
    for host, to in zip((key, value), expected, strict=True):
        for b, t in np.ndindex(2, 4):
            if positions[b] + t >= 10:
                continue
            x = host[b, :, t].astype(np.float32)
            if cache in SMALL:
                x = x / scales[:, None]
                most = {"int8": 127, "float8_e4m3fn": 448, "float8_e5m2": 57344}[cache]
                x = np.clip(x.round() if cache == "int8" else x, -most, most)
            to[b, :, positions[b] + t] = x.astype(to.dtype)
    options = {} if cache == "float16" else {
        "key_scale": kw.asarray(scales), "value_scale": kw.asarray(scales)}  # fmt: skip
    if paged:
        (to_k, table), (to_v, _) = pages_of(caches[0], 5), pages_of(caches[1], 5)
        to_k, to_v = kw.asarray(to_k), kw.asarray(to_v)
        options["page_table"] = kw.asarray(table)
    else:
        to_k, to_v = on_device(caches)
    assert kw.nn.append_cache(*on_device((key, value)), to_k, to_v, kw.asarray(positions),
                              **options) is None  # fmt: skip
    for got, wanted in ((to_k, expected[0]), (to_v, expected[1])):
        host = got.numpy()
        if paged:
            host = host[table].reshape(2, 10, 3, -1).swapaxes(1, 2)
        assert np.array_equal(np.ascontiguousarray(host).view(np.uint8), wanted.view(np.uint8))


def test_a_model_that_writes_token_by_token():
    """Appending to pages and decoding equals attention over everything."""
    q, k, v = operands(2, 4, 2, 6, 6, 64, "float16")
    whole = kw.nn.attention(*on_device((q, k, v)), is_causal=True, enable_gqa=True).numpy()
    pages = [kw.zeros((6, 2, 2, 64), "float16") for _ in range(2)]
    table = kw.asarray(np.array([[4, 0, 2], [1, 5, 3]], np.int32))
    for t in range(6):
        here = slice(t, t + 1)
        places = kw.asarray(np.full(2, t, np.int32))
        kw.nn.append_cache(*on_device((k[:, :, here].copy(), v[:, :, here].copy())), *pages,
                           places, page_table=table)  # fmt: skip
        got = decode(kw.asarray(q[:, :, here].copy()), *pages, places + 1, page_table=table)
        np.testing.assert_allclose(
            got.numpy().astype("f8"), whole[:, :, here].astype("f8"), atol=2e-3
        )


def test_in_a_graph():
    host = operands(2, 4, 2, 1, 200, 64, "float16")
    q, k, v = on_device(host)
    ends, stream, graph = kw.asarray(np.array([9, 9], np.int32)), kw.Stream(), kw.Graph()
    kw.synchronize()
    with graph.capture(stream):
        got = decode(q, k, v, ends, splits=3)
    assert [node.name.split("<")[0] for node in graph.nodes] == ["decode_attention"]
    for lengths in ([200, 3], [64, 65]):
        ends[...] = np.array(lengths, np.int32)
        graph.launch(stream)
        stream.synchronize()
        assert_attention(got, reference(*host, lengths=lengths)[0], "float16")


def test_every_kernel_under_all_checks(sim):
    with kw.checks("memory", "init", "race", "sync") as report:
        for dtype in ("float16", "float32"):
            q, cache = kw.ones((2, 4, 1, 64), dtype), kw.ones((2, 2, 150, 64), dtype)
            for splits in (1, 2):
                decode(q, cache, cache, splits=splits)
        pages = kw.ones((4, 50, 2, 64), "float8_e4m3fn")
        table = kw.asarray(np.array([[0, 3], [2, 1]], np.int32))
        new = kw.ones((2, 2, 1, 64), "float16")
        kw.nn.append_cache(new, new, pages, pages, kw.zeros(2, "int32"), page_table=table)
        decode(kw.ones((2, 4, 1, 64), "float16"), pages, pages, page_table=table, splits=2)
        kw.synchronize()
    assert not report.findings, str(report)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda q, c: decode(q, c, c.astype("float16")), InvalidArgument, "float16"),
        (lambda q, c: decode(q, c.astype("int8"), c.astype("int8")), InvalidArgument, "16 bits"),
        (lambda q, c: decode(q, c[..., :4], c), InvalidArgument, "head_dim"),
        (lambda q, c: decode(q, c, c, kw.ones(3, "int32")), InvalidArgument, "lengths"),
        (lambda q, c: decode(q, c, c, page_table=kw.ones(2, "int32")), InvalidArgument, "pages"),
        (lambda q, c: decode(q, kw.ones((3, 5, 2, 8)), kw.ones((3, 5, 2, 8)),
                             page_table=kw.ones((2, 1))), InvalidArgument, "page_table"),
        (lambda q, c: decode(q, c, c, splits=10_000), InvalidArgument, "splits"),
        (lambda q, c: decode(q, c, c, window=0), ArgumentError, "window"),
        (lambda q, c: decode(q, c, c, key_scale=kw.ones(9)), InvalidArgument, "key_scale"),
        (lambda q, c: decode(q, np.ones(3), c), ArgumentError, "asarray"),
        (lambda q, c: kw.nn.append_cache(c, c, c, c, kw.ones(2)), InvalidArgument, "positions"),
        (lambda q, c: kw.nn.append_cache(c, c, c[:1], c, kw.ones(2, "int32")), InvalidArgument,
         "key_cache"),
        (lambda q, c: kw.nn.append_cache(c, c, c.astype("float16"), c, kw.ones(2, "int32")),
         InvalidArgument, "float16"),
    ],
)  # fmt: skip
def test_wrong_input(call, error, words):
    with pytest.raises(error, match=words):
        call(kw.ones((2, 4, 1, 8)), kw.ones((2, 2, 5, 8)))
