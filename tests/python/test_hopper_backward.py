"""Gradients of nn.attention by their kernel for Hopper, against NumPy in float64.

Where the simulated device is an older one, all of this file runs once more in a process of its own,
whose device is one of 9.0.
"""

import contextlib

import numpy as np
import pytest
from attention_model import NORM, gradients, normal
from hopper import hopper_alone, run_at_9_0, simulated_elsewhere

import kernwright as kw
from kernwright import _core
from kernwright.errors import ArgumentError

nn = kw.nn


@simulated_elsewhere
def test_on_a_simulated_device_of_9_0():
    run_at_9_0(__file__)


@pytest.fixture
def forced():
    """Calls of 16 bits take the kernel, or the test fails; `forced(...)` gives another plan."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(_core._AttentionBackwardPlan("hopper"))
        yield lambda *plan: stack.enter_context(_core._AttentionBackwardPlan(*plan))


def operands(batch, heads, kv_heads, queries, keys, dim, dtype="float16", value_dim=None):
    """query, key, value and the gradient of the result."""
    value_dim = value_dim or dim
    return [
        normal(batch, heads, queries, dim, dtype=dtype, seed=1),
        normal(batch, kv_heads, keys, dim, dtype=dtype, seed=2),
        normal(batch, kv_heads, keys, value_dim, dtype=dtype, seed=3),
        normal(batch, heads, queries, value_dim, dtype=dtype, seed=4),
    ]


def on_device(arrays):
    return [kw.asarray(x) for x in arrays]


def run(device, **options):
    """The logarithms are those of whatever kernel attention() takes."""
    q, k, v, dy = device
    options["enable_gqa"] = True
    y, lse = nn.attention(q, k, v, return_lse=True, **options)
    return nn.attention_backward(dy, q, k, v, y, lse, **options)


def assert_gradients(got, wanted, dtype="float16"):
    for name, ours, exact in zip(("dq", "dk", "dv"), got, wanted, strict=True):
        ours = np.asarray(ours.numpy()).astype(np.float64)
        assert ours.shape == exact.shape, name
        bound = 2 * NORM[dtype]
        assert np.linalg.norm(ours - exact) <= bound * np.linalg.norm(exact) + 1e-4, name
        np.testing.assert_allclose(ours, exact, rtol=8 * bound, atol=16 * bound, err_msg=name)


def compare(host, dtype="float16", device=None, **options):
    """The options are the model's, under the calls' names."""
    given = {
        {"causal": "is_causal"}.get(name, name): value
        for name, value in options.items()
        if name not in ("left", "right")
    }
    given = {k: kw.asarray(v) if isinstance(v, np.ndarray) else v for k, v in given.items()}
    if "left" in options:
        given["window"] = (options["left"], options["right"])
    got = run(device or on_device(host), **given)
    assert_gradients(got, gradients(*host, **options), dtype)
    return got


@hopper_alone
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dim", [64, 128, 192, 256])
def test_lengths(forced, dim, causal):
    lengths = ((1, 1), (63, 65), (64, 128), (129, 127), (40, 300), (300, 40), (257, 257))
    for queries, keys in lengths:
        compare(operands(1, 2, 1, queries, keys, dim), causal=causal)


@hopper_alone
@pytest.mark.parametrize("heads", [1, 2, 3, 100])
def test_heads_at_a_time(forced, heads):
    forced("hopper", heads)
    for dim in (64, 128, 256):
        compare(operands(2, 6, 3, 210, 390, dim), causal=True)


@hopper_alone
@pytest.mark.parametrize(
    ("dtype", "dim", "value_dim"),
    [("float16", 8, 8), ("bfloat16", 72, 72), ("bfloat16", 96, 128), ("float16", 128, 40),
     ("bfloat16", 136, 200), ("float16", 192, 128), ("bfloat16", 64, 256)],
)  # fmt: skip
def test_head_dimensions(forced, dtype, dim, value_dim):
    compare(operands(2, 2, 1, 150, 140, dim, dtype, value_dim), dtype, causal=True)


@hopper_alone
def test_windows(forced):
    host = operands(1, 2, 1, 390, 330, 64)
    for left, right in ((0, 0), (30, 0), (3, 90), (-1, 5), (70, -1), (200, 0), (350, 140)):
        compare(host, left=left, right=right)
    for dim in (128, 256):
        compare(operands(1, 1, 1, 300, 280, dim), left=130, right=20)
        compare(operands(1, 1, 1, 300, 280, dim), left=3, right=0)


@hopper_alone
def test_caps_sinks_and_scales(forced):
    host = operands(2, 4, 2, 140, 150, 64)
    sinks = np.array([0.5, 3.0, -np.inf, -2.0], np.float32)
    compare(host, soft_cap=1.5)
    compare(host, sinks=sinks)
    compare(host, scale=0.3, causal=True)
    compare(host, soft_cap=5.0, sinks=sinks, left=40, right=0)
    compare(operands(1, 2, 1, 140, 150, 256), soft_cap=1.5, sinks=sinks[:2], causal=True)


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
                          (added, {"scale": 0.3, "alibi": slopes}),
                          (hidden, {"left": 60, "right": 10}),
                          (added.T.copy().T, {"sinks": slopes[1]})):  # fmt: skip
        given = {k: kw.asarray(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
        if "left" in given:
            given["window"] = (given.pop("left"), given.pop("right"))
        if mask is not None:
            given["attn_mask"] = kw.asarray(mask)
            mask = np.broadcast_to(mask if mask.ndim > 2 else mask[None], (2, 4, 140, 201))
        assert_gradients(run(on_device(host), **given), gradients(*host, mask=mask, **options))


@hopper_alone
@pytest.mark.parametrize("dim", [64, 256])
def test_lengths_of_batches(forced, dim):
    """Values behind the lengths take no part, even NaN."""
    q, k, v, dy = operands(4, 2, 2, 150, 190, dim)
    queries, keys = np.array([150, 3, 0, 100], np.int32), np.array([5, 190, 20, 130], np.int32)
    host = [x.copy() for x in (q, k, v, dy)]
    for batch, (rows, length) in enumerate(zip(queries, keys, strict=True)):
        q[batch, :, rows:], dy[batch, :, rows:] = np.nan, np.inf
        k[batch, :, length:], v[batch, :, length:] = np.nan, np.inf
    for causal in (False, True):
        given = {"is_causal": causal, "lengths": kw.asarray(keys)}
        given["query_lengths"] = kw.asarray(queries)
        wanted = gradients(*host, causal=causal, lengths=keys, query_lengths=queries)
        assert_gradients(run(on_device((q, k, v, dy)), **given), wanted)


def packed_gradients(host, q_starts, k_starts, causal):
    wanted = [np.zeros(x.shape) for x in host[:3]]
    for b in range(len(q_starts) - 1):
        rows, keys = slice(*q_starts[b : b + 2]), slice(*k_starts[b : b + 2])
        parts = [x[of].swapaxes(0, 1)[None]
                 for x, of in zip(host, (rows, keys, keys, rows), strict=True)]  # fmt: skip
        for to, of, made in zip(wanted, (rows, keys, keys), gradients(*parts, causal=causal),
                                strict=True):  # fmt: skip
            to[of] = made[0].swapaxes(0, 1)
    return wanted


@hopper_alone
@pytest.mark.parametrize("dim", [64, 128, 256])
def test_packed_sequences(forced, dim):
    """Rows of neighbours are not written to, nor do their values come in."""
    host = [x[0].swapaxes(0, 1).copy() for x in operands(1, 4, 2, 400, 450, dim)]
    q_starts, k_starts = np.array([0, 1, 1, 260, 400]), np.array([0, 40, 60, 231, 450])
    wanted = packed_gradients(host, q_starts, k_starts, True)
    options = {"cu_seqlens_q": kw.asarray(q_starts.astype(np.int32)), "is_causal": True,
               "cu_seqlens_k": kw.asarray(k_starts.astype(np.int32))}  # fmt: skip
    assert_gradients(run(on_device(host), **options), wanted)
    for array, at in zip(host, (260, 231, 231, 260), strict=True):  # the last sequence's first
        array[at] = np.nan
    got = run(on_device(host), **options)
    assert_gradients([x[:at] for x, at in zip(got, (260, 231, 231), strict=True)],
                     [x[:at] for x, at in zip(wanted, (260, 231, 231), strict=True)])  # fmt: skip


@hopper_alone
def test_many_packed_sequences(forced):
    """More than a block has threads; starts that fall are taken without harm."""
    host = [x[0].swapaxes(0, 1).copy() for x in operands(1, 1, 1, 500, 500, 64)]
    starts = np.minimum(np.arange(501), 450) // 2 * 2
    starts[-1] = 500
    of = kw.asarray(starts.astype(np.int32))
    got = run(on_device(host), cu_seqlens_q=of, cu_seqlens_k=of)
    assert_gradients(got, packed_gradients(host, np.unique(starts), np.unique(starts), False))
    wild = kw.asarray(np.array([0, 300, 20, 999, -5, 500], np.int32))
    run(on_device(host), cu_seqlens_q=wild, cu_seqlens_k=wild)
    five = kw.asarray(starts[::100].astype("i4"))
    run(on_device(host), cu_seqlens_q=wild, cu_seqlens_k=five)
    assert (run(on_device(host), cu_seqlens_q=five, cu_seqlens_k=wild)[0].numpy() == 0).all()


@hopper_alone
def test_views(forced):
    """Tokens before heads, gaps, and repeated arrays."""
    host = operands(2, 2, 2, 140, 140, 64)
    first = [kw.asarray(x.swapaxes(1, 2).copy()) for x in host]
    compare(host, device=[kw.permute_dims(x, (0, 2, 1, 3)) for x in first])
    compare(host, device=[kw.asarray(np.concatenate([x, x], -1))[..., :64] for x in host])
    one = [kw.broadcast_to(kw.asarray(x[:1, :1]), x.shape) for x in host]
    compare([np.broadcast_to(x[:1, :1], x.shape) for x in host], device=one)


@hopper_alone
@pytest.mark.parametrize("dim", [64, 256])
def test_special_values(forced, dim):
    """NaN stays with the queries of its key."""
    host = operands(1, 1, 1, 140, 200, dim)
    host[0][0, 0, 139] = -0.0
    device = on_device(host)
    y, lse = nn.attention(*device[:3], is_causal=True, return_lse=True)
    value = host[2].copy()
    value[0, 0, 150] = np.nan  # of a key hidden from all queries
    device[2] = kw.asarray(value)
    got = nn.attention_backward(device[3], *device[:3], y, lse, is_causal=True)
    assert_gradients(got, gradients(*host, causal=True))
    assert np.isnan(run(device)[0].numpy()).all()
    large = run(on_device([host[0] * np.float16(100), *host[1:]]))
    assert all(np.isfinite(x.numpy().astype(np.float64)).all() for x in large)
    alone = run(on_device((host[0], *(x[:, :, :30] for x in host[1:3]), host[3])), window=(5, 0))
    assert (alone[0].numpy()[0, 0, 35:] == 0).all()


@hopper_alone
def test_what_the_other_kernel_does():
    """The choice is automatic; a forced kernel raises the reason."""
    host = operands(1, 2, 2, 70, 90, 64)
    device = on_device(host)
    odd = [kw.asarray(np.concatenate([np.zeros(1, x.dtype), x.ravel()]))[1:].reshape(x.shape)
           for x in host]  # fmt: skip
    assert_gradients(run(odd), gradients(*host))
    y, lse = nn.attention(*device[:3], return_lse=True)
    wide, wide_lse = kw.ones((1, 2, 70, 136), "float16"), kw.ones((1, 2, 70))
    with _core._AttentionBackwardPlan("hopper"):
        for arrays, options, reason in [
            (device, {"attn_mask": kw.ones((70, 90), "bool"), "soft_cap": 2.0}, "mask"),
            (device, {"dropout_p": 0.5, "seed": 1}, "dropout"),
            ([*device[:3], odd[3]], {}, "16 bytes"),
            ([wide] * 4, {"alibi": kw.ones(2)}, "above 128 elements"),
        ]:
            of = (wide, wide_lse) if arrays[0] is wide else (y, lse)
            with pytest.raises(ArgumentError, match=reason):
                nn.attention_backward(arrays[3], *arrays[:3], *of, **options)
    with pytest.raises(ArgumentError, match="1 at least"):
        _core._AttentionBackwardPlan("hopper", 0)
    with pytest.raises(ArgumentError, match="auto, mma or hopper"):
        _core._AttentionBackwardPlan("best")
    one = run(device)
    with _core._AttentionBackwardPlan("mma"):
        other = run(device)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a.numpy().astype("f4"), b.numpy().astype("f4"), atol=4e-3)


@hopper_alone
@pytest.mark.parametrize("dim", [64, 256])
def test_the_same_bits(forced, dim):
    """Whatever order blocks come in."""
    host = operands(2, 4, 2, 260, 700, dim)
    found = []
    for heads in (1, 1, 100):
        forced("hopper", heads)
        found.append([x.numpy().view(np.uint16) for x in run(on_device(host), is_causal=True)])
    for others in found[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(found[0], others, strict=True))


@hopper_alone
def test_in_a_graph(forced):
    host = operands(1, 2, 2, 130, 140, 64)
    device, stream, graph = on_device(host), kw.Stream(), kw.Graph()
    kw.synchronize()
    with graph.capture(stream):
        got = run(device, is_causal=True)
    device[0][...] = 2 * host[0]
    for _ in range(2):
        graph.launch(stream)
    stream.synchronize()
    assert_gradients(got, gradients(2 * host[0], *host[1:], causal=True))


@hopper_alone
@pytest.mark.parametrize("dim", [64, 128, 256])
def test_under_all_checks(sim, forced, dim):
    if kw.current_device().compute_capability != (9, 0):
        pytest.skip("the simulated device is an older one")
    with kw.checks("memory", "init", "race", "sync") as report:
        q, kv = kw.ones((1, 2, 140, dim), "float16"), kw.ones((1, 1, 300, dim), "float16")
        run([q, kv, kv, q], is_causal=True)
        if dim <= 128:
            run([q, kv, kv, q], attn_mask=kw.ones((140, 300), "bool"), alibi=kw.ones(2))
        run([q, kv, kv, q], lengths=kw.asarray(np.array([200], np.int32)), soft_cap=2.0,
            query_lengths=kw.asarray(np.array([70], np.int32)))  # fmt: skip
        q, kv = kw.ones((200, 2, dim), "float16"), kw.ones((300, 1, dim), "float16")
        run([q, kv, kv, q], cu_seqlens_q=kw.asarray(np.array([0, 20, 200], np.int32)),
            cu_seqlens_k=kw.asarray(np.array([0, 80, 300], np.int32)))  # fmt: skip
        kw.synchronize()
    assert not report.findings, str(report)
