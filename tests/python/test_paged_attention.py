"""kw.nn.paged_attention: chunks of new tokens over pages, against float64."""

import contextlib

import ml_dtypes
import numpy as np
import pytest
from attention_model import assert_attention, assert_logarithms, normal, reference
from hopper import hopper_alone, run_at_9_0, simulated_elsewhere

import kernwright as kw
from kernwright import _core
from kernwright.errors import ArgumentError, InvalidArgument

paged = kw.nn.paged_attention
SMALL = {
    "int8": np.int8,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
}
# (tokens, new ones) of each sequence: whole prompts, chunks, single tokens, empty ones.
MIXED = [(33, 33), (70, 9), (0, 0), (81, 1), (1, 1), (40, 0), (16, 16)]


@simulated_elsewhere
def test_on_a_simulated_device_of_9_0():
    run_at_9_0(__file__)


class Chunks:
    """Sequences with pages in random order. All that no token sees is NaN, or no page."""

    def __init__(self, sizes, heads, kv_heads, dim, page, dtype, cache=None, value_dim=None,
                 padding=0, window=None):  # fmt: skip
        self.lengths, self.news = (list(each) for each in zip(*sizes, strict=True))
        self.window, self.dtype = window, dtype
        tokens = sum(self.news)
        self.q = normal(tokens + padding, heads, dim, dtype=dtype, seed=1)
        each = max(-(-max(self.lengths) // page), 1)
        count = len(sizes) * each + 3
        places = np.random.default_rng(2).permutation(count)[: len(sizes) * each]
        self.table = np.where(np.arange(places.size) % 2, -1, count + 7).astype(np.int32)
        self.table = self.table.reshape(len(sizes), each)
        unused = 127 if cache == "int8" else np.nan
        stored = SMALL.get(cache) or self.q.dtype
        self.caches, self.sequences = [], []
        for side, extent in enumerate((dim, value_dim or dim)):
            pages = np.full((count, page, kv_heads, extent), unused).astype(stored)
            whole = []
            for i, (length, new) in enumerate(sizes):
                shape = (length, kv_heads, extent)
                x = normal(*shape, dtype="float32", seed=10 * i + side) * (40 if cache else 1)
                x = (np.rint(np.clip(x, -127, 127)) if cache == "int8" else x).astype(stored)
                first = max(0, length - new - window + 1) // page * page if window else 0
                for t in range(first, length):
                    at = places[i * each + t // page]
                    self.table[i, t // page] = at
                    pages[at, t % page] = x[t]
                whole.append(x.swapaxes(0, 1)[None])
            self.caches.append(pages)
            self.sequences.append(whole)
        self.scales = [np.linspace(0.5, 1.5, kv_heads).astype(np.float32) / 40] * 2

    def starts(self):
        return np.concatenate([[0], np.cumsum(self.news)]).astype(np.int32)

    def operands(self):
        arrays = (self.q, *self.caches, self.table, np.int32(self.lengths), self.starts())
        return [kw.asarray(x) for x in arrays]

    def wanted(self, scaled=False, **options):
        """The result, rows behind the sequences being 0, and the logarithms (heads, tokens)."""
        if self.window:
            options["left"] = self.window - 1
        factors = [s[:, None, None].astype(np.float64) if scaled else 1.0 for s in self.scales]
        extent = self.caches[1].shape[-1]
        out = np.zeros((*self.q.shape[:2], extent))
        logarithms = np.full((self.q.shape[1], len(self.q)), -np.inf)
        starts = self.starts()
        for i, new in enumerate(self.news):
            if not new:
                continue
            q = self.q[starts[i] : starts[i] + new].swapaxes(0, 1)[None]
            k, v = (each[i].astype(np.float64) * factor
                    for each, factor in zip(self.sequences, factors, strict=True))  # fmt: skip
            made, lse = reference(q, k, v, causal=True, bottom=True, **options)
            out[starts[i] : starts[i] + new] = made[0].swapaxes(0, 1)
            logarithms[:, starts[i] : starts[i] + new] = lse[0]
        return out, logarithms


@pytest.fixture
def forced():
    """`forced(...)` gives calls of 16 bits a plan: they take it, or the test fails."""
    with contextlib.ExitStack() as stack:
        yield lambda *plan: stack.enter_context(_core._AttentionPlan(*plan))


@pytest.mark.parametrize(
    ("dtype", "heads", "kv_heads", "dim", "page"),
    [("float32", 2, 2, 32, 1), ("float32", 8, 2, 64, 16), ("bfloat16", 8, 1, 64, 16),
     ("bfloat16", 4, 1, 128, 64), ("bfloat16", 4, 4, 80, 7), ("float16", 2, 1, 256, 5),
     ("float16", 4, 2, 64, 1)],
)  # fmt: skip
def test_mixed_lengths(dtype, heads, kv_heads, dim, page):
    chunks = Chunks(MIXED, heads, kv_heads, dim, page, dtype, padding=5)
    wanted, logarithms = chunks.wanted()
    got, lse = paged(*chunks.operands(), return_lse=True)
    assert_attention(got, wanted, dtype)
    assert_logarithms(lse, logarithms)
    assert np.array_equal(got.numpy()[-5:], np.zeros((5, heads, dim), chunks.q.dtype))
    bounded = paged(*chunks.operands(), max_queries=max(chunks.news))
    assert np.array_equal(bounded.numpy(), got.numpy())


@hopper_alone
@pytest.mark.parametrize(
    ("dtype", "heads", "kv_heads", "dim", "page", "tile"),
    [("bfloat16", 4, 1, 128, 16, None), ("float16", 2, 2, 64, 48, None),
     ("bfloat16", 2, 1, 128, 256, (176, 2, 2)), ("float16", 2, 1, 256, 32, None),
     ("float16", 2, 1, 64, 64, (64, 2, 1))],
)  # fmt: skip
def test_tiles_of_pages(forced, dtype, heads, kv_heads, dim, page, tile):
    forced("hopper", tile)
    for window in (None, 17, 130):
        sizes = [*MIXED, (300, 150), (259, 66)]
        chunks = Chunks(sizes, heads, kv_heads, dim, page, dtype, padding=130, window=window)
        wanted, logarithms = chunks.wanted()
        got, lse = paged(*chunks.operands(), window=window, return_lse=True)
        assert_attention(got, wanted, dtype)
        assert_logarithms(lse, logarithms)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("kv_heads", [1, 2])
def test_few_new_tokens_of_long_contexts(dtype, kv_heads):
    sizes = [(200, 2), (131, 1), (0, 0), (4, 2), (90, 0)]
    chunks = Chunks(sizes, 4, kv_heads, 64, 16, dtype, padding=7)
    wanted, logarithms = chunks.wanted()
    got, lse = paged(*chunks.operands(), max_queries=2, return_lse=True)
    assert_attention(got, wanted, dtype)
    assert_logarithms(lse, logarithms)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("window", [1, 15, 16, 17, 63, 64, 65])
def test_windows_at_the_edges_of_pages_and_tiles(dtype, window):
    chunks = Chunks([(64, 64), (130, 66), (65, 1), (97, 33)], 2, 1, 64, 16, dtype, window=window)
    got = paged(*chunks.operands(), window=window)
    assert_attention(got, chunks.wanted()[0], dtype)
    got = paged(*chunks.operands()[:5], kw.asarray(chunks.starts()), window=window, max_queries=66)
    assert_attention(got, chunks.wanted()[0], dtype)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_caps_sinks_and_scales_of_scores(dtype):
    chunks = Chunks(MIXED, 4, 2, 64, 16, dtype, padding=3)
    sinks = np.array([0.5, -1, 2, -np.inf], np.float32)
    given = {"soft_cap": 3.0, "scale": 0.3}
    got, lse = paged(*chunks.operands(), sinks=kw.asarray(sinks), return_lse=True, **given)
    wanted, logarithms = chunks.wanted(sinks=sinks, **given)
    assert_attention(got, wanted, dtype)
    real = sum(chunks.news)
    assert_logarithms(lse[:, :real], logarithms[:, :real])


@pytest.mark.parametrize(
    ("dtype", "cache", "dim", "page"),
    [("bfloat16", "int8", 64, 16), ("float16", "float8_e4m3fn", 128, 16),
     ("bfloat16", "float8_e5m2", 72, 3)],
)  # fmt: skip
def test_caches_of_eight_bits(dtype, cache, dim, page):
    chunks = Chunks(MIXED, 4, 2, dim, page, dtype, cache=cache)
    scales = dict(zip(("key_scale", "value_scale"), map(kw.asarray, chunks.scales), strict=True))
    got = paged(*chunks.operands(), **scales)
    assert_attention(got, chunks.wanted(scaled=True)[0], dtype)


def test_values_of_another_extent_and_views():
    chunks = Chunks([(40, 20), (12, 12)], 4, 2, 64, 16, "float16", value_dim=48)
    q, keys, *rest = chunks.operands()
    wide = kw.asarray(np.repeat(chunks.q, 2, 0))[::2]
    swapped = kw.permute_dims(
        kw.asarray(np.ascontiguousarray(chunks.caches[0].swapaxes(1, 2))), (0, 2, 1, 3)
    )
    got = paged(wide, swapped, *rest)
    assert_attention(got, chunks.wanted()[0], "float16")
    assert np.array_equal(got.numpy(), paged(q, keys, *rest).numpy())


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("most", [None, 2])
def test_invalid_pages_reach_their_own_sequence_alone(dtype, most):
    chunks = Chunks([(40, 2), (40, 2), (40, 2)], 2, 1, 64, 16, dtype)
    operands = chunks.operands()
    for number in (-1, len(chunks.caches[0]), 2**31 - 1):
        table = chunks.table.copy()
        table[1, 1] = number
        operands[3] = kw.asarray(table)
        got = paged(*operands, max_queries=most).numpy().astype(np.float64)
        assert np.isnan(got[2:4]).all()
        wanted = chunks.wanted()[0]
        np.testing.assert_allclose(got[[0, 1, 4, 5]], wanted[[0, 1, 4, 5]], atol=5e-3)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_recorded_call_takes_other_lengths(dtype):
    """One graph: the arrays of lengths, starts and pages change between its replays."""
    sizes = [MIXED, [(17, 17), (5, 5), (60, 30), (81, 8), (0, 0), (0, 0), (0, 0)], [(0, 0)] * 7]
    steps = [Chunks(each, 4, 2, 64, 16, dtype, padding=62 - sum(n for _, n in each))
             for each in sizes]  # fmt: skip
    pages = max(each.table.shape[1] for each in steps)
    for each in steps:
        fill = ((0, 0), (0, pages - each.table.shape[1]))
        each.table = np.pad(each.table, fill, constant_values=-1)
        spare = len(steps[0].caches[0]) - len(each.caches[0])
        each.caches = [np.pad(x, ((0, spare), *[(0, 0)] * 3)) for x in each.caches]
    operands = steps[0].operands()
    stream, graph = kw.Stream(), kw.Graph()
    kw.synchronize()
    with graph.capture(stream):
        out = paged(*operands)
    for each in steps:
        for to, now in zip(operands, each.operands(), strict=True):
            to[...] = now
        kw.synchronize()
        graph.launch(stream)
        stream.synchronize()
        assert_attention(out, each.wanted()[0], dtype)


def test_every_kernel_under_all_checks(sim):
    with kw.checks("memory", "init", "race", "sync") as report:
        for dtype, cache in (("float16", None), ("float32", None), ("float16", "int8")):
            chunks = Chunks(MIXED, 2, 1, 64, 16, dtype, cache=cache, padding=3)
            paged(*chunks.operands())
        paged(*Chunks([(70, 2), (0, 0)], 2, 1, 64, 16, "float16", padding=3).operands())
    assert not report.findings


def test_no_sequences_and_no_tokens():
    pages = kw.zeros((2, 16, 1, 64), "float16")
    table, lengths = kw.zeros((0, 3), "int32"), kw.zeros(0, "int32")
    starts = kw.zeros(1, "int32")
    for dtype in ("float16", "float32"):
        q, caches = kw.ones((3, 2, 64), dtype), pages.astype(dtype)
        got = paged(q, caches, caches, table, lengths, starts)
        assert np.array_equal(got.numpy(), np.zeros((3, 2, 64)))
        assert paged(q[:0], caches, caches, table, lengths, starts).shape == (0, 2, 64)


def test_wrong_arguments_are_named():
    chunks = Chunks([(20, 5), (9, 9)], 4, 2, 64, 16, "float16")
    operands = chunks.operands()

    def call(at, value, **options):
        return paged(*operands[:at], value, *operands[at + 1 :], **options)

    with pytest.raises(InvalidArgument, match=r"\(tokens, heads, head_dim\)"):
        call(0, operands[0][None])
    with pytest.raises(InvalidArgument, match=r"\(pages, page_size, kv_heads, head_dim\)"):
        call(1, operands[1][0])
    with pytest.raises(InvalidArgument, match=r"lengths is a .*int32 of shape \(2,\)"):
        call(4, kw.zeros(3, "int32"))
    with pytest.raises(InvalidArgument, match="page_table"):
        call(3, operands[3].astype("int64"))
    with pytest.raises(InvalidArgument, match="starts"):
        call(5, kw.zeros((3, 1), "int32"))
    with pytest.raises(ArgumentError, match="lengths"):
        call(4, None)
    for name in ("window", "max_queries"):
        with pytest.raises(ArgumentError, match=name):
            call(0, operands[0], **{name: 0})
