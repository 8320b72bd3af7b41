"""nn.attention by products of float8, against NumPy in float64.

Where the simulated device is an older one, this file runs once more in a process of its own, whose
device is one of 9.0.
"""

import ml_dtypes
import numpy as np
import pytest
from attention_model import assert_attention, assert_logarithms, normal, reference
from hopper import hopper_alone, run_at_9_0, simulated_elsewhere

import kernwright as kw
from kernwright import _core
from kernwright.errors import ArgumentError

attention = kw.nn.attention
E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2


@simulated_elsewhere
def test_on_a_simulated_device_of_9_0():
    run_at_9_0(__file__)


@pytest.fixture
def forced():
    """Calls take the kernel, or the test fails."""
    with _core._AttentionPlan("hopper"):
        yield


def operands(batch, heads, kv_heads, queries, keys, dim, types=(E4M3, E4M3, E4M3), value_dim=None):
    shapes = (
        (batch, heads, queries, dim),
        (batch, kv_heads, keys, dim),
        (batch, kv_heads, keys, value_dim or dim),
    )
    pairs = zip(shapes, types, strict=True)
    return [normal(*shape, seed=i).astype(of) for i, (shape, of) in enumerate(pairs)]


def given_to_matrix_units():
    return not kw.current_device().is_simulated


def compare(host, device=None, wanted=None, **options):
    """The options are the model's; arrays among them go to the device."""
    given = {k: kw.asarray(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
    given["is_causal"] = given.pop("causal", False)
    if "left" in given:
        given["window"] = (given.pop("left"), given.pop("right", -1))
    scales = {name: given.pop(name) for name in list(given) if name.endswith("_scale")}
    options = {k: v for k, v in options.items() if not k.endswith("_scale")}
    device = device or [kw.asarray(x) for x in host]
    got, lse = attention(*device, enable_gqa=True, return_lse=True, **given, **scales)
    assert got.dtype == kw.bfloat16
    if wanted is None:
        wanted = [np.asarray(x).astype(np.float64) for x in host]
    result, logarithms = reference(*wanted, **options)
    assert_attention(got, result, "float8")
    if given_to_matrix_units():
        # They add products of float8 with 14 bits: scores have errors of up to 2e-3 of their size.
        np.testing.assert_allclose(lse.numpy(), logarithms, rtol=2e-3, atol=1e-3)
    else:
        assert_logarithms(lse, logarithms)
    return got


@hopper_alone
@pytest.mark.parametrize("causal", [False, True])
def test_lengths(forced, causal):
    for queries, keys in ((1, 64), (64, 64), (65, 127), (130, 128), (200, 129), (129, 300)):
        compare(operands(1, 2, 1, queries, keys, 64), causal=causal)
    compare(operands(2, 2, 2, 129, 40, 128), causal=causal)


@hopper_alone
@pytest.mark.parametrize(
    ("dim", "value_dim"), [(16, 16), (96, 96), (128, 128), (64, 128), (192, 128), (256, 256)]
)
def test_head_dimensions(forced, dim, value_dim):
    compare(operands(1, 2, 1, 130, 200, dim, value_dim=value_dim), causal=True)


@hopper_alone
@pytest.mark.parametrize("dim", [64, 128])
def test_long_rows(forced, dim):
    """Other tiles of keys than short rows have; the last one is not whole."""
    compare(operands(1, 1, 1, 130, 2100, dim))


@hopper_alone
@pytest.mark.parametrize(("dim", "keys"), [(128, 2500), (128, 4500), (256, 4300)])
def test_accumulators_that_are_kept_in_memory(forced, dim, keys):
    """More keys than the matrix units sum; scores grow from the last keys, which come first, on.
    Calls with query_lengths are not split along the keys."""
    host = operands(1, 2, 1, 140, keys, dim)
    ends = {"query_lengths": np.array([139], np.int32)}
    compare(host, **ends)
    rising = np.linspace(6, 1, keys)[:, None].astype(np.float32)
    host[0] = np.abs(host[0].astype(np.float32)).astype(E4M3)
    host[1] = (np.abs(host[1].astype(np.float32)) * rising).astype(E4M3)
    compare(host, scale=0.02, **ends)
    compare(host, scale=0.02, left=keys, right=100, **ends)
    compare(host, scale=0.02, soft_cap=20.0, **ends)


@hopper_alone
def test_fast_accumulation(forced):
    """The matrix units sum all keys; few keys keep nothing in any case."""
    ends = kw.asarray(np.array([100], np.int32))
    for keys, keeps in ((300, "false"), (4500, "true")):
        host = operands(1, 1, 1, 100, keys, 128)
        device = [kw.asarray(x) for x in host]
        wanted = reference(*(x.astype(np.float64) for x in host))[0]
        for fast in (True, False):
            with kw.profile() as profiled:
                got = attention(*device, query_lengths=ends, use_fast_accum=fast)
                assert_attention(got, wanted, "float8")
            names = [a.name for a in profiled.activities if a.name.startswith("float8_attention<")]
            assert len(names) == 1
            assert f", {'false' if fast else keeps}>, ByteTile<" in names[0]


@hopper_alone
def test_all_types_of_operands(forced):
    for q in (E4M3, E5M2):
        for k in (E4M3, E5M2):
            for v in (E4M3, E5M2):
                compare(operands(1, 1, 1, 70, 90, 64, (q, k, v)))


@hopper_alone
def test_scales(forced):
    """A scale below 0 turns the order of scores."""
    host = operands(2, 4, 2, 70, 90, 64)
    rng = np.random.default_rng(1)
    q_scale = rng.uniform(0.2, 2, (2, 4)).astype(np.float32)
    k_scale = np.array([0.5, -1.5], np.float32)
    exact = [x.astype(np.float64) for x in host]
    exact[0] *= q_scale[:, :, None, None]
    exact[1] *= k_scale[:, None, None]
    exact[2] *= -3.0
    factors = {"query_scale": q_scale, "key_scale": k_scale}
    for options in ({"causal": True}, {"soft_cap": 2.0}):
        compare(host, wanted=exact, value_scale=-3.0, **factors, **options)
    exact[2] *= np.float64(0.5) / -3.0
    all_same = {"value_scale": np.array(0.5, np.float32), **factors}
    compare(host, wanted=exact, **all_same)
    none = attention(*(kw.asarray(x) for x in host), enable_gqa=True, query_scale=np.float32(0))
    mean = np.repeat(host[2].astype(np.float64).mean(2, keepdims=True), 2, 1)
    assert_attention(none, np.broadcast_to(mean, none.shape), "float8")


@hopper_alone
def test_windows_caps_and_sinks(forced):
    host = operands(1, 2, 1, 300, 280, 64)
    for left, right in ((0, 0), (30, 0), (3, 90), (70, -1)):
        compare(host, left=left, right=right)
    sinks = np.array([0.5, -np.inf], np.float32)
    compare(host, soft_cap=1.5, sinks=sinks)
    compare(host, sinks=sinks, scale=0.3, causal=True)


@hopper_alone
def test_lengths_of_batches(forced):
    """NaN beyond the lengths has no influence."""
    host = operands(3, 2, 1, 100, 290, 64)
    lengths, query_lengths = np.array([290, 0, 131], np.int32), np.array([100, 30, 65], np.int32)
    for x, ends in ((host[1], lengths), (host[2], lengths)):
        for batch, end in enumerate(ends):
            x[batch, :, end:] = np.nan
    device = [kw.asarray(x) for x in host]
    for x in host[1:]:
        x[np.isnan(x.astype(np.float32))] = 0
    compare(host, device, lengths=lengths)
    compare(host, device, lengths=lengths, query_lengths=query_lengths, causal=True)


@hopper_alone
def test_packed_sequences(forced):
    host = operands(1, 2, 1, 300, 420, 64)
    rows = [kw.asarray(np.ascontiguousarray(x[0].swapaxes(0, 1))) for x in host]
    q_starts, k_starts = [0, 100, 100, 230, 300], [0, 128, 200, 200, 420]
    got = attention(
        *rows, enable_gqa=True, cu_seqlens_q=kw.asarray(np.array(q_starts, np.int32)),
        cu_seqlens_k=kw.asarray(np.array(k_starts, np.int32)), max_seqlen_q=130, value_scale=2.0,
    )  # fmt: skip
    exact = [x.astype(np.float64) for x in host]
    for i in range(4):
        q = exact[0][:, :, q_starts[i] : q_starts[i + 1]]
        k, v = (x[:, :, k_starts[i] : k_starts[i + 1]] for x in exact[1:])
        if q.shape[2] == 0:
            continue
        wanted = reference(q, k, 2 * v)[0] if k.shape[2] else np.zeros_like(q)
        seen = got[q_starts[i] : q_starts[i + 1]].transpose((1, 0, 2)).reshape(wanted.shape)
        assert_attention(seen, wanted, "float8")


@hopper_alone
def test_views(forced):
    """Axes in another order, and repeated heads."""
    host = operands(2, 2, 1, 90, 150, 64)
    turned = [kw.asarray(np.ascontiguousarray(x.swapaxes(1, 2))).transpose((0, 2, 1, 3))
              for x in host]  # fmt: skip
    compare(host, turned)
    repeated = [kw.asarray(host[0]), *(kw.broadcast_to(kw.asarray(x[:1]), x.shape)
                                       for x in host[1:])]  # fmt: skip
    compare([host[0], *(np.repeat(x[:1], 2, 0) for x in host[1:])], repeated)


@hopper_alone
def test_outlying_weights_and_no_numbers(forced):
    """Scores far apart keep the largest weights exact; NaN spreads to what sees it."""
    host = operands(1, 1, 1, 70, 300, 64)
    large = [(host[0].astype(np.float32) * 30).astype(E4M3), *host[1:]]
    compare(large)
    host[2][0, 0, 7] = np.nan
    got = attention(*(kw.asarray(x) for x in (host[1], *host[1:])), is_causal=True).numpy()
    assert np.isnan(got.astype(np.float32)[0, 0, 7:]).all()


@hopper_alone
def test_what_the_kernel_does_not_take():
    """Operands are widened: errors are those of bfloat16."""
    host = operands(1, 1, 1, 150, 600, 128)
    device = [kw.asarray(x) for x in host]
    exact = [x.astype(np.float64) for x in host]
    slopes = np.array([0.1], np.float32)
    mask = np.random.default_rng(1).random((150, 600)) < 0.5
    assert_attention(
        attention(*device, alibi=kw.asarray(slopes)), reference(*exact, alibi=slopes)[0], "bfloat16"
    )
    assert_attention(attention(*device, kw.asarray(mask)), reference(*exact, mask)[0], "bfloat16")
    few = [x[:, :, :40] for x in device]
    assert_attention(attention(*few), reference(*(x[:, :, :40] for x in exact))[0], "bfloat16")
    small = [np.ascontiguousarray(x[..., :64]) for x in host]
    assert_attention(
        attention(*(kw.asarray(x) for x in small)),
        reference(*(x.astype(np.float64) for x in small))[0],
        "bfloat16",
    )
    got = attention(*device).numpy().astype(np.float64)
    wanted = reference(*exact)[0]
    assert 6e-3 < np.linalg.norm(got - wanted) / np.linalg.norm(wanted) < 3.2e-2
    with (
        _core._AttentionPlan("hopper"),
        pytest.raises(ArgumentError, match="scale is not above 0"),
    ):
        attention(*device, scale=-1.0)


@hopper_alone
def test_the_same_call_gives_the_same_bits(forced):
    device = [kw.asarray(x) for x in operands(2, 2, 1, 200, 700, 128)]
    first = attention(*device, enable_gqa=True).numpy()
    assert (attention(*device, enable_gqa=True).numpy().view(np.uint16)
            == first.view(np.uint16)).all()  # fmt: skip
