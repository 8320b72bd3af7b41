"""nn.attention by its kernel for Hopper, against NumPy in float64.

Where the simulated device is an older one, all of this file and the tests of attention run once
more in a process of its own, whose device is one of 9.0.
"""

import contextlib
import re
from typing import NamedTuple

import numpy as np
import pytest
from attention_model import assert_attention, assert_logarithms, normal, reference
from hopper import hopper_alone, run_at_9_0, simulated_elsewhere

import kernwright as kw
from kernwright import _core
from kernwright.errors import ArgumentError

attention = kw.nn.attention
TILES = _core._attention_tiles()


@simulated_elsewhere
def test_on_a_simulated_device_of_9_0():
    run_at_9_0(__file__)


@pytest.fixture
def forced():
    """Calls of 16 bits take the kernel, or the test fails; `forced(...)` gives another plan."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(_core._AttentionPlan("hopper"))
        yield lambda *plan: stack.enter_context(_core._AttentionPlan(*plan))


def operands(batch, heads, kv_heads, queries, keys, dim, dtype="float16", value_dim=None):
    return (
        normal(batch, heads, queries, dim, dtype=dtype, seed=1),
        normal(batch, kv_heads, keys, dim, dtype=dtype, seed=2),
        normal(batch, kv_heads, keys, value_dim or dim, dtype=dtype, seed=3),
    )


def on_device(arrays):
    return [kw.asarray(x) for x in arrays]


def compare(host, dtype="float16", device=None, **options):
    """The options are the model's, under the call's names."""
    names = {"causal": "is_causal", "mask": "attn_mask"}
    left, right = options.get("left", -1), options.get("right", -1)
    given = {
        names.get(name, name): kw.asarray(value) if isinstance(value, np.ndarray) else value
        for name, value in options.items()
        if name not in ("left", "right")
    }
    if (left, right) != (-1, -1):
        given["window"] = (left, right)
    device = device or on_device(host)
    got, lse = attention(*device, enable_gqa=True, return_lse=True, **given)
    wanted, logarithms = reference(*host, **options)
    assert_attention(got, wanted, dtype)
    assert_logarithms(lse, logarithms)
    return got


class Tile(NamedTuple):
    """The numbers in the name of an instance of hopper_attention.cu."""

    dim: int
    value_dim: int
    keys: int
    stages: int
    value_stages: int
    groups: int
    places: int
    uses: int


def launched(profiled):
    """The only launch of the kernel for Hopper, and its tile."""
    (launch,) = [a for a in profiled.activities if a.name.startswith("hopper_attention<")]
    return launch, Tile(*map(int, re.search(r"Tile<([^>]*)>", launch.name)[1].split(",")))


@hopper_alone
@pytest.mark.parametrize("causal", [False, True])
def test_lengths(forced, causal):
    for length in (1, 63, 64, 65, 127, 128, 129, 200, 300):
        compare(operands(1, 2, 1, length, length, 64), causal=causal)
    for queries, keys in ((1, 200), (40, 129), (129, 40), (300, 65), (70, 177)):
        compare(operands(1, 1, 1, queries, keys, 64), causal=causal)


@hopper_alone
@pytest.mark.parametrize("tile", TILES)
def test_tiles(forced, tile):
    forced("hopper", tile)
    compare(operands(1, 2, 1, 210, 330, 64))
    compare(operands(1, 1, 1, 210, 210, 64), causal=True)


@hopper_alone
@pytest.mark.parametrize(
    ("dtype", "dim", "value_dim", "tile"),
    [("float16", 8, 8, None), ("float16", 72, 72, None), ("float16", 96, 96, None),
     ("float16", 64, 128, None), ("bfloat16", 128, 128, (176, 2, 2)),
     ("float16", 128, 40, (128, 2, 2)), ("bfloat16", 192, 128, (128, 2, 2)),
     ("float16", 192, 192, (96, 2, 2)), ("bfloat16", 256, 256, (80, 2, 2))],
)  # fmt: skip
def test_head_dimensions(forced, dtype, dim, value_dim, tile):
    forced("hopper", tile)
    compare(operands(1, 2, 1, 200, 210, dim, dtype, value_dim), dtype, causal=True)


@hopper_alone
def test_more_parts_than_multiprocessors(forced):
    """Blocks are persistent, and their rounds go both ways."""
    forced("hopper", (64, 2, 2))
    compare(operands(2, 70, 7, 70, 40, 64), causal=True)


@hopper_alone
def test_more_stages_of_values_than_of_keys(forced):
    """There is room for them where parts have three tiles of keys and no window."""
    forced("hopper", (128, 2, 2))
    with kw.profile() as profiled:
        compare(operands(2, 70, 7, 40, 300, 128))
    _, tile = launched(profiled)
    assert (tile.stages, tile.value_stages) == (2, 3)


@hopper_alone
def test_rounds_of_whole_heads(forced):
    """With many parts a block has first and last rows of causal heads in turn.

    Two rounds of the blocks have whole heads, and there are eight rounds or more.
    """
    forced("hopper", (64, 2, 1))
    batch, heads, length = 4, 140, 70
    with kw.profile() as profiled:
        compare(operands(batch, heads, 4, length, length, 64), causal=True)
    launch, tile = launched(profiled)
    blocks, parts = launch.grid[0], -(-length // (64 * tile.groups))
    assert parts == 2 and 2 * blocks % parts == 0
    assert batch * heads * parts >= 8 * blocks


@hopper_alone
def test_sections_of_heads(forced):
    """Keys that most queries do not see make heads too large for one section."""
    forced("hopper", (64, 2, 1))
    q, k, v = operands(1, 72, 3, 130, 130, 64)
    long = [kw.zeros((1, 3, 80000, 64), "float16") for _ in "kv"]
    long[0][:, :, :130], long[1][:, :, :130] = kw.asarray(k), kw.asarray(v)
    compare((q, k, v), device=[kw.asarray(q), *long], causal=True)


@hopper_alone
@pytest.mark.parametrize("tile", [(64, 2, 1), (128, 2, 2), (64, 2, 3)])
def test_splits_of_the_keys(forced, tile):
    """Some of them see no keys, or not all queries' keys."""
    for splits in (2, 3, 7):
        forced("hopper", tile, splits)
        compare(operands(1, 2, 1, 130, 520, 64))
        compare(operands(2, 2, 2, 200, 300, 64), causal=True)
        compare(operands(1, 1, 1, 70, 500, 72), left=100, right=20)
    sinks, lengths = kw.asarray(np.array([0.5, -np.inf], np.float32)), np.array([390, 70], np.int32)
    host = operands(2, 2, 1, 100, 400, 64)
    got = attention(*on_device(host), enable_gqa=True, sinks=sinks, lengths=kw.asarray(lengths))
    wanted = reference(*host, sinks=sinks.numpy(), lengths=lengths)[0]
    assert_attention(got, wanted, "float16")
    found = {got.numpy().tobytes() for _ in range(3)}
    assert len(found) == 1


@hopper_alone
def test_few_rows_share_their_keys():
    """Blocks are split where multiprocessors would have nothing to do, packed sequences never."""
    host = operands(1, 2, 1, 100, 3000, 64)
    device = on_device(host)
    one = attention(*device, enable_gqa=True)
    assert_attention(one, reference(*host)[0], "float16")
    with _core._AttentionPlan("hopper", (128, 2, 1), 1):
        whole = attention(*device, enable_gqa=True).numpy()
    assert (one.numpy() != whole).any()  # other sums, rounded in other places
    starts = [kw.asarray(np.array([0, n], np.int32)) for n in (100, 3000)]
    tokens = [kw.asarray(x[0].swapaxes(0, 1).copy()) for x in host]
    packed = attention(*tokens, enable_gqa=True, cu_seqlens_q=starts[0], cu_seqlens_k=starts[1])
    assert_attention(packed, reference(*host)[0][0].swapaxes(0, 1), "float16")


@hopper_alone
@pytest.mark.parametrize("tile", [(64, 2, 1), (160, 2, 2), (64, 2, 3)])
def test_parts_follow_each_other(forced, tile):
    """A block's parts have many tiles of keys, one or none."""
    forced("hopper", tile)
    host = operands(2, 80, 8, 150, 130, 64)
    device = on_device(host)
    for left, right in ((-1, -1), (-1, 0), (-1, 5), (20, 0)):
        window, options = (left, right), {"left": left, "right": right}
        got = attention(*device, enable_gqa=True, window=window)
        assert_attention(got, reference(*host, **options)[0], "float16")
    lengths = np.array([130, 0], np.int32)
    got = attention(*device, enable_gqa=True, lengths=kw.asarray(lengths))
    assert_attention(got, reference(*host, lengths=lengths)[0], "float16")
    got = attention(*device, enable_gqa=True, window=(-1, -1), query_lengths=kw.asarray(lengths))
    assert_attention(got, reference(*host, query_lengths=lengths)[0], "float16")
    keys = [kw.asarray(x[:, :, :20].copy()) for x in host[1:]]
    got = attention(device[0], *keys, enable_gqa=True, window=(30, 0))  # the last rows see nothing
    wanted = reference(host[0], *(x[:, :, :20] for x in host[1:]), left=30, right=0)[0]
    assert_attention(got, wanted, "float16")


@hopper_alone
def test_parts_with_two_places_of_queries(forced):
    """Larger heads and tiles leave no room for a third; parts have one tile of keys or two."""
    forced("hopper", (160, 2, 2))
    host = operands(2, 80, 2, 70, 170, 128)
    device = on_device(host)
    for right in (-1, 0):
        got = attention(*device, enable_gqa=True, window=(-1, right))
        assert_attention(got, reference(*host, right=right)[0], "float16")


@hopper_alone
def test_code_is_for_what_a_call_has(forced):
    """The numbers are those of `Uses`; the results of such calls have tests of their own."""
    sinks, lengths = np.zeros(2, np.float32), np.array([150], np.int32)
    added = np.random.default_rng(5).standard_normal((40, 200)).astype(np.float32)
    seen = added > -1
    for options, splits, uses in (
        ({"causal": True}, 1, 0), ({"lengths": lengths}, 1, 2), ({"left": 30, "right": 0}, 1, 4),
        ({"sinks": sinks}, 1, 8), ({}, 2, 1), ({"left": 30, "right": 0, "sinks": sinks}, 1, 12),
        ({"soft_cap": 2.0}, 1, 0), ({"alibi": sinks + 0.5}, 1, 32), ({"mask": seen}, 1, 128),
        ({"mask": added.astype(np.float16)}, 1, 256), ({"mask": added}, 1, 384),
        ({"mask": seen, "soft_cap": 2.0, "alibi": sinks + 0.5}, 1, 176),
    ):  # fmt: skip
        forced("hopper", (64, 2, 1), splits)
        with kw.profile() as profiled:
            compare(operands(1, 2, 1, 40, 200, 64), **options)
        assert launched(profiled)[1].uses == uses, options


@hopper_alone
def test_windows(forced):
    host = operands(1, 2, 1, 300, 280, 64)
    for left, right in ((0, 0), (30, 0), (3, 90), (-1, 5), (70, -1), (200, 0)):
        compare(host, left=left, right=right)


@hopper_alone
def test_caps_sinks_and_scales(forced):
    host = operands(2, 4, 2, 140, 150, 64)
    sinks = np.array([0.5, 3.0, -np.inf, -2.0], np.float32)
    for options in ({"soft_cap": 1.5}, {"sinks": sinks}, {"scale": 0.3, "causal": True},
                    {"soft_cap": 5.0, "sinks": sinks, "left": 40, "right": 0}):  # fmt: skip
        given = {k: kw.asarray(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
        if "left" in given:
            given["window"] = (given.pop("left"), given.pop("right"))
        given["is_causal"] = given.pop("causal", False)
        got, lse = attention(*on_device(host), enable_gqa=True, return_lse=True, **given)
        wanted, logarithms = reference(*host, **options)
        assert_attention(got, wanted, "float16")
        np.testing.assert_allclose(lse.numpy(), logarithms, rtol=2e-4, atol=2e-4)


@hopper_alone
@pytest.mark.parametrize("dim", [64, 128])
def test_masks_and_alibi(forced, dim):
    random = np.random.default_rng(5)
    host = operands(2, 4, 2, 140, 201, dim)
    slopes = random.random((2, 4)).astype("f4")
    seen = random.random((2, 1, 140, 201)) < 0.7
    seen[:, :, 4] = False  # a query without any key
    added = random.standard_normal((140, 201)).astype(np.float16)
    hidden = np.where(random.random((4, 1, 201)) < 0.5, -np.inf, 0.5).astype(np.float32)
    lengths = np.array([201, 77], np.int32)
    for mask, options in ((None, {"alibi": slopes[0]}), (seen, {"lengths": lengths}),
                          (added, {"soft_cap": 2.0, "scale": 0.3, "alibi": slopes}),
                          (hidden, {"left": 60, "right": 10}), (seen[1], {}),
                          (added.T.copy().T, {"sinks": slopes[1]})):  # fmt: skip
        given = {k: kw.asarray(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
        if "left" in given:
            given["window"] = (given.pop("left"), given.pop("right"))
        if mask is not None:
            given["attn_mask"] = kw.asarray(mask)
            mask = np.broadcast_to(mask if mask.ndim > 2 else mask[None], (2, 4, 140, 201))
        got, lse = attention(*on_device(host), enable_gqa=True, return_lse=True, **given)
        wanted, logarithms = reference(*host, mask=mask, **options)
        assert_attention(got, wanted, "float16")
        np.testing.assert_allclose(lse.numpy(), logarithms, rtol=2e-4, atol=2e-4)


@hopper_alone
def test_lengths_of_batches(forced):
    """Values behind the lengths take no part, even NaN."""
    q, k, v = operands(4, 2, 2, 150, 190, 64)
    queries, keys = np.array([150, 3, 0, 100], np.int32), np.array([5, 190, 20, 130], np.int32)
    host = (q, k.copy(), v.copy())
    for batch, length in enumerate(keys):
        k[batch, :, length:] = np.nan
        v[batch, :, length:] = np.inf
    for causal in (False, True):
        got = attention(*on_device((q, k, v)), query_lengths=kw.asarray(queries),
                        lengths=kw.asarray(keys), is_causal=causal)  # fmt: skip
        wanted = reference(*host, causal=causal, lengths=keys, query_lengths=queries)[0]
        assert_attention(got, wanted, "float16")
    wild = kw.asarray(np.array([-5, 2**31 - 1, 190, 64], np.int32))
    got = attention(*on_device(host), lengths=wild)
    assert_attention(got, reference(*host, lengths=[0, 190, 190, 64])[0], "float16")


@hopper_alone
@pytest.mark.parametrize("most", [None, 129])
def test_packed_sequences(forced, most):
    """Rows of neighbours are not written to, nor do their values come in."""
    q, k, v = (x[0].swapaxes(0, 1).copy() for x in operands(1, 4, 2, 200, 250, 64))
    q_starts, k_starts = np.array([0, 1, 1, 130, 200]), np.array([0, 40, 60, 161, 250])
    wanted, logarithms = np.zeros(q.shape), np.zeros((4, 200))
    for b in range(4):
        rows, keys = slice(*q_starts[b : b + 2]), slice(*k_starts[b : b + 2])
        parts = [x[of].swapaxes(0, 1)[None] for x, of in ((q, rows), (k, keys), (v, keys))]
        out, rest = reference(*parts, causal=True)
        wanted[rows], logarithms[:, rows] = out[0].swapaxes(0, 1), rest[0]
    for poison in (None, np.nan):
        if poison is not None:  # the first value of the last sequence
            v[161] = poison
        got, lse = attention(
            *on_device((q, k, v)),
            is_causal=True,
            enable_gqa=True,
            cu_seqlens_q=kw.asarray(q_starts.astype(np.int32)),
            cu_seqlens_k=kw.asarray(k_starts.astype(np.int32)),
            max_seqlen_q=most,
            return_lse=True,
        )
        rows = 200 if poison is None else 130
        assert_attention(got[:rows], wanted[:rows], "float16")
        assert np.isnan(got[rows:].numpy()).all()
        assert_logarithms(lse, logarithms)


@hopper_alone
def test_views(forced):
    """Tokens before heads, gaps, and repeated arrays."""
    host = operands(2, 2, 2, 140, 140, 64)
    first = [kw.asarray(x.swapaxes(1, 2).copy()) for x in host]
    compare(host, device=[kw.permute_dims(x, (0, 2, 1, 3)) for x in first])
    gaps = [kw.asarray(np.concatenate([x, x], -1))[..., :64] for x in host]
    compare(host, device=gaps)
    one = [kw.broadcast_to(kw.asarray(x[:1, :1]), x.shape) for x in host]
    compare([np.broadcast_to(x[:1, :1], x.shape) for x in host], device=one)
    every_other = [kw.asarray(np.repeat(x, 2, 2))[:, :, ::2] for x in host]
    compare(host, device=every_other)


@hopper_alone
def test_special_values(forced):
    q, k, v = operands(1, 1, 1, 140, 200, 64)
    q[0, 0, 3], q[0, 0, 4, 0], q[0, 0, 5] = np.nan, np.inf, -0.0
    q[0, 0, 6] = 6e-8
    got = attention(*on_device((q, k, v))).numpy().astype(np.float64)
    assert np.isnan(got[0, 0, 3:5]).all()
    rest = np.r_[0:3, 5:140]
    wanted = reference(q[:, :, rest], k, v)[0]
    np.testing.assert_allclose(got[:, :, rest], wanted, rtol=6e-3, atol=6e-3)
    large = attention(*on_device((normal(1, 1, 140, 64, dtype="float16") * 100, k, v)))
    assert np.isfinite(large.numpy().astype(np.float64)).all()
    nothing, lse = attention(*on_device((k, k[:, :, :30], v[:, :, :30])), window=(5, 0),
                             return_lse=True)  # fmt: skip
    assert (nothing.numpy()[0, 0, 35:] == 0).all()
    assert (lse.numpy()[0, 0, 35:] == -np.inf).all()
    v[0, 0, 29] = np.nan  # of a key hidden from these queries
    for splits in (1, 2):
        forced("hopper", (64, 2, 1), splits)
        few = attention(*on_device((k, k[:, :, :30], v[:, :, :30])), window=(5, 0)).numpy()
        assert np.isnan(few[0, 0, 29:35]).all() and (few[0, 0, 35:] == 0).all()


@hopper_alone
@pytest.mark.parametrize("options", [{}, {"causal": True}, {"alibi": np.array([0.5, 0], "f4")}])
def test_scores_that_grow(forced, options):
    """From tile to tile, by less and by more than sums stay relative to an older peak."""
    forced("hopper", (64, 2, 2))
    q, k, v = operands(1, 2, 2, 320, 320, 64)
    q[..., 0], k[..., 0] = 8, 0
    for step in (0.5, 4, 7, 20):  # the last keys come first
        k[..., 0] = -step * (np.arange(320) // 64)
        compare((q, k, v), **options)
        k[..., 0] *= -1
        compare((q, k, v), **options)


@hopper_alone
def test_what_the_other_kernel_does():
    """The choice is automatic; a forced kernel raises the reason."""
    host = operands(1, 2, 2, 70, 90, 64)
    device = on_device(host)
    odd = [kw.asarray(np.concatenate([np.zeros(1, x.dtype), x.ravel()]))[1:].reshape(x.shape)
           for x in host]  # fmt: skip
    backwards = [kw.asarray(x[:, :, ::-1].copy())[:, :, ::-1] for x in host]
    assert_attention(attention(*odd), reference(*host)[0], "float16")
    large = on_device(operands(1, 2, 2, 70, 90, 136))
    with _core._AttentionPlan("hopper"):
        for arrays, options, reason in [
            (device, {"dropout_p": 0.5, "seed": 1}, "dropout"),
            (large, {"alibi": kw.ones(2)}, "ALiBi"),
            (device, {"scale": -1.0}, "scale"),
            (odd, {}, "16 bytes"),
            (backwards, {}, "above 0"),
        ]:
            with pytest.raises(ArgumentError, match=reason):
                attention(*arrays, **options)
    with pytest.raises(ArgumentError, match="none of those"):
        _core._AttentionPlan("hopper", (72, 2, 2))
    with pytest.raises(ArgumentError, match="auto, mma or hopper"):
        _core._AttentionPlan("best")
    one = attention(*device)
    with _core._AttentionPlan("mma"):
        other = attention(*device)
    np.testing.assert_allclose(*(x.numpy().astype("f4") for x in (one, other)), atol=2e-3)


@hopper_alone
def test_gradients_by_its_logarithms(forced):
    host = operands(1, 2, 1, 140, 140, 64)
    device = on_device(host)
    grad = kw.asarray(normal(1, 2, 140, 64, dtype="float16", seed=9))
    found = {}
    for kernel in ("hopper", "mma"):
        forced(kernel)
        out, lse = attention(*device, is_causal=True, enable_gqa=True, return_lse=True)
        made = _core._attention_backward(
            grad, *device, out, lse, _core._AttentionOptions(right=0), False
        )
        found[kernel] = [x.numpy().astype(np.float64) for x in made]
    for one, other in zip(found["hopper"], found["mma"], strict=True):
        assert np.linalg.norm(one - other) <= 2e-3 * np.linalg.norm(other)


@hopper_alone
def test_in_a_graph(forced):
    host = operands(1, 2, 2, 130, 140, 64)
    device, stream, graph = on_device(host), kw.Stream(), kw.Graph()
    kw.synchronize()
    with graph.capture(stream):
        got = attention(*device, is_causal=True)
    device[0][...] = 2 * host[0]
    graph.launch(stream)
    stream.synchronize()
    assert_attention(got, reference(2 * host[0], *host[1:], causal=True)[0], "float16")


@hopper_alone
@pytest.mark.parametrize("tile", [(64, 2, 1), (64, 2, 2), (64, 2, 3)])
def test_under_all_checks(sim, forced, tile):
    if kw.current_device().compute_capability != (9, 0):
        pytest.skip("the simulated device is an older one")
    forced("hopper", tile)
    with kw.checks("memory", "init", "race", "sync") as report:
        q, kv = kw.ones((1, 2, 140, 64), "float16"), kw.ones((1, 1, 150, 64), "float16")
        attention(q, kv, kv, is_causal=True, enable_gqa=True)
        attention(q, kv, kv, kw.ones((140, 150), "bool"), alibi=kw.ones(2), enable_gqa=True)
        lengths = kw.asarray(np.array([100], np.int32))
        attention(q, kv, kv, lengths=lengths, enable_gqa=True, soft_cap=2.0)
        attention(kw.ones((70, 2, 64), "float16"), *[kw.ones((150, 1, 64), "float16")] * 2,
                  enable_gqa=True, cu_seqlens_q=kw.asarray(np.array([0, 20, 70], np.int32)),
                  cu_seqlens_k=kw.asarray(np.array([0, 80, 150], np.int32)))  # fmt: skip
        q, kv = kw.ones((2, 80, 8, 64), "bfloat16"), kw.ones((2, 80, 8, 64), "bfloat16")
        attention(q, kv, kv)  # more parts than blocks
        q, kv = kw.ones((2, 80, 140, 64), "bfloat16"), kw.ones((2, 8, 70, 64), "bfloat16")
        attention(q, kv, kv, window=(40, 0), enable_gqa=True)
        forced("hopper", tile, 3)
        q, kv = kw.ones((1, 2, 140, 64), "float16"), kw.ones((1, 1, 250, 64), "float16")
        attention(q, kv, kv, is_causal=True, enable_gqa=True, return_lse=True)
        kw.synchronize()
    assert not report.findings, str(report)
