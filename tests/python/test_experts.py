"""Routing, rows in the order of experts and back, and whole layers of experts, against NumPy."""

import ml_dtypes
import numpy as np
import pytest
from hopper import run_at_9_0, simulated_elsewhere
from nn_arrays import TYPES, assert_close, values, views, wide

import kernwright as kw


@simulated_elsewhere
def test_layers_on_a_simulated_device_of_9_0():
    run_at_9_0(__file__)


# ------------------------------------------------------------------------------------- routing


def scores_of(logits, kind):
    logits = wide(logits)
    if kind == "sigmoid":
        return 1 / (1 + np.exp(-logits))
    scores = np.exp(logits - logits.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)


def routed(logits, k, scores="softmax", renormalize=True, bias=None, groups=1, kept=1, scale=1.0):
    """Weights and experts in float64."""
    score = scores_of(logits, scores)
    value = score if bias is None else score + wide(bias)
    if kept < groups:
        parts = value.reshape(len(value), groups, -1)
        good = parts.max(-1) if bias is None else np.sort(parts, -1)[..., -2:].sum(-1)
        best = np.argsort(-good, axis=1, kind="stable")[:, :kept]
        there = np.zeros(good.shape, bool)
        np.put_along_axis(there, best, True, axis=1)
        value = np.where(np.repeat(there, parts.shape[-1], axis=1), value, -np.inf)
    experts = np.argsort(-value, axis=1, kind="stable")[:, :k]
    weights = np.take_along_axis(score, experts, axis=1)
    if renormalize:
        weights = weights / weights.sum(axis=1, keepdims=True)
    return weights * scale, experts


@pytest.mark.parametrize(
    ("tokens", "experts", "k", "more"),
    [
        (0, 8, 2, {}),
        (1, 1, 1, {}),
        (5, 8, 2, {"renormalize": False}),
        (9, 33, 33 - 1, {"scale": 3.0}),
        (37, 64, 6, {"scores": "sigmoid"}),
        (9, 64, 8, {"scores": "sigmoid", "groups": 8, "kept": 4, "scale": 2.5}),
        (9, 160, 6, {"groups": 8, "kept": 3, "renormalize": False}),
        (3, 1024, 8, {"groups": 32, "kept": 5}),
    ],
)
@pytest.mark.parametrize("biased", [False, True])
def test_routes(tokens, experts, k, more, biased):
    logits = values((tokens, experts), seed=experts)
    bias = values((experts,), seed=1, scale=0.1) if biased else None
    arguments = {"groups_kept" if key == "kept" else key: value for key, value in more.items()}
    if biased:
        arguments["bias"] = kw.asarray(bias)
    made = kw.nn.route(kw.asarray(logits), k, **arguments)
    assert (made.weights.dtype, made.experts.dtype) == (np.float32, np.int32)
    assert made.experts.shape == (tokens, k)
    if tokens == 0:
        return
    weights, chosen = routed(logits, k, bias=bias, **more)
    assert made.experts.numpy().tolist() == chosen.tolist()
    assert_close(made.weights, weights)


def test_equal_scores_go_to_the_lower_number():
    logits = np.random.default_rng(0).integers(0, 3, (40, 70)).astype(np.float32)
    made = kw.nn.route(kw.asarray(logits), 12)
    assert made.experts.numpy().tolist() == routed(logits, 12)[1].tolist()


@pytest.mark.parametrize("dtype", [*TYPES, "float8_e4m3fn"])
def test_logits_of_every_dtype(dtype):
    logits = values((7, 16), seed=2, scale=3).astype(getattr(ml_dtypes, dtype, dtype))
    weights, chosen = routed(logits, 3)
    made = kw.nn.route(kw.asarray(logits), 3)
    assert made.experts.numpy().tolist() == chosen.tolist()
    assert_close(made.weights, weights)


def test_logits_in_every_layout():
    logits = values((8, 12), seed=3)
    for view in views(logits):
        made = kw.nn.route(view, 4)
        assert made.experts.numpy().tolist() == routed(logits, 4)[1].tolist()


@pytest.mark.parametrize("scores", ["softmax", "sigmoid"])
def test_logits_that_are_no_numbers(scores):
    nan, inf = np.nan, np.inf
    logits = [[nan, 1, 2, 0], [nan] * 4, [-inf] * 4, [inf, 0, inf, 1], [-inf, 5, -inf, nan]]
    made = kw.nn.route(kw.asarray(np.array(logits, np.float32)), 3, scores=scores)
    expected = [[2, 1, 3], [0, 1, 2], [0, 1, 2], [0, 2, 3], [1, 0, 2]]
    if scores == "softmax":
        expected[3] = [0, 2, 1]
    assert made.experts.numpy().tolist() == expected
    assert np.isfinite(made.weights.numpy()).all()


# --------------------------------------------------------------------------- rows in their order


def sorted_pairs(experts, count):
    """Offsets, positions, sources."""
    flat = experts.ravel()
    there = (flat >= 0) & (flat < count)
    order = np.argsort(np.where(there, flat, count), kind="stable")
    end = int(there.sum())
    positions, sources = np.full(flat.size, -1), np.full(flat.size, -1)
    positions[order[:end]] = np.arange(end)
    sources[:end] = order[:end]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(flat[there], minlength=count))])
    return offsets, positions.reshape(experts.shape), sources


@pytest.mark.parametrize(
    ("tokens", "k", "count", "columns", "dtype"),
    [
        (50, 2, 8, 24, "bfloat16"),
        (3000, 3, 64, 8, "float32"),
        (1, 4, 300, 7, "int8"),
        (0, 2, 4, 8, "float32"),
        (4, 0, 3, 8, "float16"),
        (20, 1, 2048, 3, "float64"),
        (33, 5, 1, 9, "complex64"),
        (7, 2, 3, 0, "float32"),
    ],
)
def test_permute_and_back(tokens, k, count, columns, dtype):
    rng = np.random.default_rng(tokens)
    x = rng.integers(-100, 100, (tokens, columns)).astype(getattr(ml_dtypes, dtype, dtype))
    experts = rng.integers(-1, count + 1, (tokens, k)).astype(np.int32)
    made = kw.nn.permute(kw.asarray(x), kw.asarray(experts), count)
    offsets, positions, sources = sorted_pairs(experts, count)
    assert made.offsets.numpy().tolist() == offsets.tolist()
    assert made.positions.numpy().tolist() == positions.tolist()
    assert made.sources.numpy().tolist() == sources.tolist()
    expected = np.zeros((tokens * k, columns), x.dtype)
    expected[: offsets[-1]] = x[sources[: offsets[-1]] // max(k, 1)]
    assert made.rows.numpy().tobytes() == expected.tobytes()
    if dtype in TYPES:
        factors = rng.standard_normal((tokens, k)).astype(np.float32)
        back = kw.nn.unpermute(made.rows, made.positions, kw.asarray(factors))
        kept = np.where(positions >= 0, wide(factors), 0)
        assert_close(back, kept.sum(1)[:, None] * wide(x), dtype, factor=200)


def test_permute_in_every_layout():
    x = values((9, 20), seed=1)
    experts = np.random.default_rng(2).integers(0, 4, (9, 2))
    expected = kw.nn.permute(kw.asarray(x), kw.asarray(experts), 4).rows.numpy()
    for view in views(x):
        made = kw.nn.permute(view, kw.asarray(experts.astype(np.int32)), 4)
        assert (made.rows.numpy() == expected).all()
    turned = kw.asarray(np.ascontiguousarray(experts.T)).T
    assert (kw.nn.permute(kw.asarray(x), turned, 4).rows.numpy() == expected).all()


def test_unpermute():
    rows = values((6, 20), "bfloat16", seed=1)
    positions = np.array([[0, 5, 2], [-1, 3, 3], [6, 2**31 - 1, 1], [-1, -1, -1]])
    weights = values((4, 3), seed=2)
    there = (positions >= 0) & (positions < 6)
    picked = wide(rows)[np.where(there, positions, 0)]
    for factors in (None, weights):
        each = np.where(there, 1 if factors is None else wide(factors), 0)
        expected = (each[..., None] * picked).sum(1)
        for view in views(rows):
            more = () if factors is None else (kw.asarray(factors),)
            assert_close(kw.nn.unpermute(view, kw.asarray(positions), *more), expected, "bfloat16")


def test_numbers_beyond_int32_are_outside():
    x = kw.asarray(values((2, 8)))
    for far in (2**32 + 1, 2**31, -(2**32), 2**62):
        experts = np.array([[far], [1]])
        made = kw.nn.permute(x, kw.asarray(experts), 3)
        assert made.offsets.numpy().tolist() == [0, 0, 1, 1]
        assert made.positions.numpy().tolist() == [[-1], [0]]
        back = kw.nn.unpermute(x, kw.asarray(experts)).numpy()
        np.testing.assert_array_equal(back, [[0] * 8, x.numpy()[1]])


# ------------------------------------------------------------------------------------- a layer


def layer(x, logits, up, down, k):
    """Two products for each expert, SwiGLU between them."""
    weights, experts = kw.nn.route(logits, k)
    sorted_rows = kw.nn.permute(x, experts, up.shape[0])
    inside = kw.nn.grouped_linear(sorted_rows.rows, up, sorted_rows.offsets, gate="silu")
    out = kw.nn.grouped_linear(inside, down, sorted_rows.offsets)
    return kw.nn.unpermute(out, sorted_rows.positions, weights)


def dense_layer(x, logits, up, down, k):
    """The same of every expert, in float64."""
    weights, experts = routed(logits, k)
    out = np.zeros(x.shape)
    half = up.shape[1] // 2
    for expert in range(up.shape[0]):
        y = wide(x) @ wide(up[expert]).T
        y = y[:, :half] / (1 + np.exp(-y[:, :half])) * y[:, half:]
        part = np.where(experts == expert, weights, 0).sum(1)
        out += part[:, None] * (y @ wide(down[expert]).T)
    return out


def layer_inputs(tokens, experts, skew, seed=0):
    x = values((tokens, 72), "bfloat16", seed)
    up = values((experts, 80, 72), "bfloat16", seed + 1, scale=0.2)
    down = values((experts, 72, 40), "bfloat16", seed + 2, scale=0.2)
    logits = values((tokens, experts), seed=seed + 3) - skew * np.log1p(np.arange(experts))
    return x, logits.astype(np.float32), up, down


@pytest.mark.parametrize(
    ("tokens", "experts", "k", "skew"),
    [(90, 8, 2, 0), (90, 8, 2, 4), (70, 16, 8, 1), (1, 8, 2, 0), (0, 8, 2, 0), (40, 4, 4, 0)],
)
def test_a_layer(tokens, experts, k, skew):
    inputs = layer_inputs(tokens, experts, skew)
    result = layer(*(kw.asarray(each) for each in inputs), k)
    assert result.shape == (tokens, 72)
    expected = dense_layer(*inputs, k)
    off = np.linalg.norm(wide(result.numpy()) - expected)
    assert off <= 8e-3 * np.linalg.norm(expected)
    again = layer(*(kw.asarray(each) for each in inputs), k)
    assert result.numpy().tobytes() == again.numpy().tobytes()


def test_a_layer_in_a_graph():
    """Replayed for other tokens, which go to other experts."""
    arrays = [kw.asarray(each) for each in layer_inputs(60, 8, 0)]
    layer(*arrays, 2)
    graph = kw.Graph()
    with graph.capture():
        result = layer(*arrays, 2)
    others = layer_inputs(60, 8, 6, seed=9)
    for array, other in zip(arrays, others, strict=True):
        array[...] = kw.asarray(other)
    graph.launch()
    kw.synchronize()
    expected = dense_layer(*others, 2)
    assert np.linalg.norm(wide(result.numpy()) - expected) <= 8e-3 * np.linalg.norm(expected)


def test_a_layer_under_all_checks():
    if not kw.current_device().is_simulated:
        pytest.skip("only the simulated device looks")
    arrays = [kw.asarray(each) for each in layer_inputs(70, 8, 3)]
    bias = kw.asarray(values((8,)))
    pairs = np.random.default_rng(1).integers(-1, 9, (2200, 2)).astype(np.int32)
    many, x = kw.asarray(pairs), kw.zeros((2200, 3), "float16")
    with kw.checks("memory", "init", "race", "sync") as report:
        layer(*arrays, 2)
        kw.nn.route(arrays[1], 3, scores="sigmoid", bias=bias, groups=4, groups_kept=2)
        made = kw.nn.permute(x, many, 8)
        kw.nn.unpermute(made.rows, made.positions)
    assert report.findings == []


def test_errors():
    logits, x = kw.zeros((4, 8)), kw.zeros((4, 6))
    experts = kw.zeros((4, 2), "int32")
    for k in (0, 9, -1):
        with pytest.raises(kw.InvalidArgument, match=f"k is {k}"):
            kw.nn.route(logits, k)
    with pytest.raises(kw.InvalidArgument, match="k is 5"):
        kw.nn.route(logits, 5, groups=4, groups_kept=2)
    for groups, kept in ((3, 1), (0, 0), (4, 5), (4, 0)):
        with pytest.raises(kw.InvalidArgument, match="groups of one size"):
            kw.nn.route(logits, 1, groups=groups, groups_kept=kept)
    with pytest.raises(kw.InvalidArgument, match="1 to 1024 experts"):
        kw.nn.route(kw.zeros((4, 1025)), 2)
    with pytest.raises(kw.InvalidArgument, match="two dimensions"):
        kw.nn.route(logits[0], 2)
    with pytest.raises(kw.InvalidArgument, match=r"bias is .*\(7,\)"):
        kw.nn.route(logits, 2, bias=kw.zeros(7))
    with pytest.raises(kw.ArgumentError, match="softmax"):
        kw.nn.route(logits, 2, scores="tanh")
    with pytest.raises(kw.ArgumentError):
        kw.nn.route(logits.astype("int32"), 2)
    with pytest.raises(kw.InvalidArgument, match=r"of 4 tokens.*\(3, 2\)"):
        kw.nn.permute(x, experts[:3], 8)
    with pytest.raises(kw.ArgumentError, match="int32 or int64"):
        kw.nn.permute(x, experts.astype("float32"), 8)
    for count in (0, 2049):
        with pytest.raises(kw.InvalidArgument, match=f"not {count}"):
            kw.nn.permute(x, experts, count)
    with pytest.raises(kw.InvalidArgument, match="weights are"):
        kw.nn.unpermute(x, experts, kw.zeros((4, 3)))
    with pytest.raises(kw.ArgumentError):
        kw.nn.unpermute(x.astype("int32"), experts)
    with pytest.raises(kw.InvalidArgument, match="two dimensions"):
        kw.nn.unpermute(x[0], experts)
