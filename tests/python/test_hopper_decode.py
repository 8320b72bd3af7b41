"""nn.decode_attention with clusters of blocks, and over caches of 8 bits, against float64.

Where the simulated device is an older one, this file and the tests of decoding run once more in a
process of its own, whose device is one of 9.0.
"""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from attention_model import assert_attention, assert_logarithms, normal, reference
from hopper import hopper_alone, run_at_9_0, simulated_elsewhere
from test_decode_attention import SMALL, on_device, operands, pages_of

import kernwright as kw

decode = kw.nn.decode_attention


@simulated_elsewhere
def test_on_a_simulated_device_of_9_0():
    run_at_9_0(__file__, Path(__file__).with_name("test_decode_attention.py"))


def small_caches(host, small):
    """Keys and values in a format of 8 bits, their scales, and what they stand for."""
    scales = np.linspace(0.02, 0.05, 2 * host[1].shape[1], dtype=np.float32).reshape(2, -1)
    steps = [x.astype("f4") / s.reshape(-1, 1, 1) for x, s in zip(host[1:], scales, strict=True)]
    if small == "int8":
        steps = [np.clip(x.round(), -127, 127) for x in steps]
    caches = [x.astype(SMALL[small]) for x in steps]
    back = [x.astype("f8") * s.reshape(-1, 1, 1) for x, s in zip(caches, scales, strict=True)]
    return caches, scales, back


@hopper_alone
@pytest.mark.parametrize("cache", ["bfloat16", *SMALL])
@pytest.mark.parametrize(("heads", "kv_heads", "queries"), [(1, 1, 1), (8, 2, 1), (6, 2, 3)])
def test_clusters_under_all_checks(sim, cache, heads, kv_heads, queries):
    host = operands(3, heads, kv_heads, queries, 200, 64, "bfloat16")
    lengths = np.array([0, 1, 179], np.int32)
    caches, options, back = host[1:], {}, host[1:]
    if cache in SMALL:
        caches, scales, back = small_caches(host, cache)
        options = {"key_scale": kw.asarray(scales[0]), "value_scale": kw.asarray(scales[1])}
    wanted, logarithms = reference(host[0], *back, causal=True, bottom=True, lengths=lengths)
    (key, table), (value, _) = pages_of(caches[0], 5), pages_of(caches[1], 5)
    whole, paged = on_device(caches), on_device((key, value))
    q, ends, table = kw.asarray(host[0]), kw.asarray(lengths), kw.asarray(table)
    with kw.checks("memory", "init", "race", "sync") as report:
        for splits in (2, 3, 8):
            got = [
                decode(q, *whole, ends, splits=splits, return_lse=True, **options),
                decode(
                    q, *paged, ends, page_table=table, splits=splits, return_lse=True, **options
                ),
            ]
            for out, lse in got:
                assert_attention(out, wanted, "bfloat16")
                assert_logarithms(lse, logarithms)
            assert np.array_equal(*(out.numpy().view(np.uint16) for out, _ in got))
    assert not report.findings, str(report)


@hopper_alone
@pytest.mark.parametrize("cache", ["bfloat16", *SMALL])
@pytest.mark.parametrize("dim", [64, 100, 128])
def test_whole_caches_under_all_checks(sim, cache, dim):
    """Without lengths and pages tokens are copied another way, the last ones one by one."""
    host = operands(2, 4, 2, 1, 203, dim, "bfloat16")
    caches, options, back = host[1:], {}, host[1:]
    if cache in SMALL:
        caches, scales, back = small_caches(host, cache)
        options = {"key_scale": kw.asarray(scales[0]), "value_scale": kw.asarray(scales[1])}
    wanted, logarithms = reference(host[0], *back, causal=True, bottom=True)
    q, whole = kw.asarray(host[0]), on_device(caches)
    with kw.checks("memory", "init", "race", "sync") as report:
        for splits in (1, 3, 9):
            out, lse = decode(q, *whole, splits=splits, return_lse=True, **options)
            assert_attention(out, wanted, "bfloat16")
            assert_logarithms(lse, logarithms)
    assert not report.findings, str(report)


@hopper_alone
@pytest.mark.parametrize(("dim", "value_dim"), [(96, 96), (128, 128), (192, 128), (256, 256)])
def test_head_dimensions_with_clusters(dim, value_dim):
    host = operands(1, 4, 2, 1, 300, dim, "float16", value_dim)
    for small in (None, *SMALL):
        caches, scales, back = small_caches(host, small) if small else (host[1:], None, host[1:])
        options = {}
        if small:
            options = {"key_scale": kw.asarray(scales[0]), "value_scale": kw.asarray(scales[1])}
        for splits in (1, 4):
            got = decode(*on_device((host[0], *caches)), splits=splits, **options)
            assert_attention(got, reference(host[0], *back)[0], "float16")


@pytest.mark.parametrize("small", SMALL)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_code_of_a_cache(dtype, small):
    """One key: the result is its value, the logarithm its score."""
    codes = np.arange(256, dtype=np.uint8).view(SMALL[small])
    numbers = codes.astype(np.float64)
    value = kw.asarray(codes.reshape(1, 1, 1, 256))
    zeros = kw.asarray(np.zeros((1, 1, 1, 64), SMALL[small]))
    q = kw.zeros((1, 1, 1, 64), dtype)
    got = decode(q, zeros, value).numpy().astype(np.float64).ravel()
    np.testing.assert_array_equal(got, numbers)  # NaN equals NaN
    # A code a batch, each in another column.
    column = np.arange(256) % 64
    key = np.zeros((256, 1, 1, 64), SMALL[small])
    key[np.arange(256), 0, 0, column] = codes
    query = np.broadcast_to(1 + np.arange(64) / 64, (256, 1, 1, 64)).astype("f4")
    rows = kw.asarray(np.ascontiguousarray(query)).astype(dtype)
    ones = kw.asarray(np.ones((256, 1, 1, 64)).astype(SMALL[small]))
    _, lse = decode(rows, kw.asarray(key), ones, scale=1.0, return_lse=True)
    exact = rows.numpy().astype("f8")[0, 0, 0, column] * numbers
    finite = np.isfinite(exact)
    np.testing.assert_allclose(lse.numpy().ravel()[finite], exact[finite], rtol=1e-6)


@pytest.mark.parametrize("size", [1e-30, 1e-6, 1.0, 1e6, 1e30])
def test_queries_out_of_the_range_of_float16(size):
    """bfloat16 queries are multiplied as float16 over caches of 8 bits."""
    host = operands(1, 4, 2, 1, 70, 64, "bfloat16")
    query = (host[0].astype("f4") * np.float32(size)).astype(ml_dtypes.bfloat16)
    caches, scales, back = small_caches(host, "float8_e4m3fn")
    got = decode(
        *on_device((query, *caches)),
        key_scale=kw.asarray(scales[0]),
        value_scale=kw.asarray(scales[1]),
        scale=0.125 / size,
    )
    wanted = reference(query, *back, scale=0.125 / float(size))[0]
    assert_attention(got, wanted, "bfloat16")


@pytest.mark.parametrize("largest", [300, 1e12, 1e30])
def test_heads_of_very_different_queries(largest):
    host = operands(1, 4, 1, 1, 70, 64, "bfloat16")
    query = (host[0].astype("f4") * np.float32([1, 1e-4, largest, 10]).reshape(4, 1, 1)).astype(
        ml_dtypes.bfloat16
    )
    caches, scales, back = small_caches(host, "int8")
    got = decode(
        *on_device((query, *caches)),
        key_scale=kw.asarray(scales[0]),
        value_scale=kw.asarray(scales[1]),
    )
    wanted = reference(query, *back)[0]
    for head in range(4):
        assert_attention(got[:, head : head + 1], wanted[:, head : head + 1], "bfloat16")


@hopper_alone
def test_same_bits_each_time():
    host = [normal(2, 4, 1, 64, dtype="float16", seed=1)]
    host += [normal(2, 2, 500, 64, dtype="float16", seed=s) for s in (2, 3)]
    arrays = on_device(host)
    first = decode(*arrays, splits=5).numpy()
    assert all(np.array_equal(decode(*arrays, splits=5).numpy(), first) for _ in range(3))


@hopper_alone
@pytest.mark.parametrize(
    ("batch", "keys", "splits", "cluster"),
    [(1, 1024, None, True), (1, 65536, None, False), (1, 1024, 8, True), (1, 1024, 9, False),
     (8, 1024, 8, False), (1, 1024, 1, False)],
)  # fmt: skip
def test_which_splits_are_blocks_of_a_cluster(batch, keys, splits, cluster):
    if kw.current_device().attributes["multiprocessor_count"] != 132:
        pytest.skip("the numbers are those of 132 multiprocessors")
    q, cache = kw.ones((batch, 32, 1, 128), "float16"), kw.ones((batch, 8, keys, 128), "float16")
    stream, graph = kw.Stream(), kw.Graph()
    kw.synchronize()
    with graph.capture(stream):
        decode(q, cache, cache, splits=splits)
    (node,) = graph.nodes
    assert node.name.endswith(f"{str(cluster).lower()}>")
    if splits is None:
        assert node.grid[0] == (8 if cluster else 16)


@hopper_alone
@pytest.mark.parametrize(
    ("batch", "heads", "keys", "dim", "splits"),
    [(64, 4, 2048, 64, 3), (24, 1, 2048, 128, 4), (32, 4, 3000, 80, 2), (4, 16, 2048, 96, 4),
     (64, 1, 1024, 256, 2), (16, 8, 1024, 128, 1)],
)  # fmt: skip
def test_splits_fill_whole_waves_of_the_blocks_that_run_at_once(batch, heads, keys, dim, splits):
    if kw.current_device().attributes["multiprocessor_count"] != 132:
        pytest.skip("the numbers are those of 132 multiprocessors")
    q = kw.empty((batch, 4 * heads, 1, dim), "bfloat16")
    cache = kw.empty((batch, heads, keys, dim), "bfloat16")
    stream, graph = kw.Stream(), kw.Graph()
    kw.synchronize()
    with graph.capture(stream):
        decode(q, cache, cache)
    assert graph.nodes[0].grid == (splits, heads, batch)


@hopper_alone
@pytest.mark.parametrize(("splits", "stages"), [(1, 3), (4, 2), (9, 1)])
def test_a_block_has_memory_for_the_stages_that_its_share_fills(splits, stages):
    """Eight warps with tiles of 16 keys and values each, behind 16 queries; in front of the parts
    that a cluster sends, if there is one."""
    q, cache = kw.ones((1, 8, 1, 128), "float16"), kw.ones((1, 2, 1024, 128), "float16")
    stream, graph = kw.Stream(), kw.Graph()
    kw.synchronize()
    with graph.capture(stream):
        decode(q, cache, cache, splits=splits)
    (node,) = graph.nodes
    parts = 16 * (4 * 64 + splits) if 1 < splits <= 8 else 0
    assert node.shared_bytes == 2 * 128 * (16 + stages * 8 * 16 * 2) + parts
