"""Products of one row that take the RMS norm in front: against float64, and which kernels."""

import numpy as np
import pytest
from hopper import HOPPER, run_at_9_0, simulated_elsewhere

import kernwright as kw
from kernwright import _core
from kernwright.llm.models._layers import Linear, RMSNorm
from kernwright.nn import quant
from kernwright.nn._linear import normed_linear

EPS = 1e-3
BOUNDS = {"bfloat16": 6e-3, "float16": 8e-4, "float32": 1e-6}


def drawn(shape, seed, dtype, scale=1.0):
    values = np.random.default_rng(seed).normal(size=shape) * scale
    return kw.asarray(values.astype(np.float32)).astype(dtype)


def weights(kind, n, k, dtype):
    """What linear() takes, its scale, and the numbers."""
    w = drawn((n, k), 1, dtype, k**-0.5)
    if kind == "plain":
        return w, None, w.astype("float32").numpy()
    if kind in ("int8", "float8_e4m3fn"):
        codes, scale = kw.nn.quantize_rows(w, kind)
        return codes, scale, codes.astype("float32").numpy() * scale.numpy()[:, None]
    packed = quant.pack(quant.quantize(w, kind), kind)
    return packed, None, quant.unpack(packed).numpy()


def wide(array):
    return array.astype("float32").numpy().astype(np.float64)


def silu(y):
    return y / (1 + np.exp(-y))


def product(x, norm, numbers, bias):
    x, norm, bias = wide(x), wide(norm), wide(bias)
    normed = x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS) * norm
    return normed @ numbers.astype(np.float64).T + bias


def close(made, wanted, dtype):
    error = np.linalg.norm(wide(made) - wanted) / np.linalg.norm(wanted)
    assert error < BOUNDS[dtype]


def kernels(call):
    stream, graph = kw.Stream(), kw.Graph()
    with stream, graph.capture(stream):
        call()
    return " ".join(str(node) for node in graph.nodes)


# Weights, n, k, dtype of x, rows of x; the kernel that takes the norm, on a device of 9.0 alone
# unless x is float32.
CASES = (
    ("plain", 24, 1024, "bfloat16", 1, "skinny_dot"),
    ("plain", 301, 2056, "float16", 1, "skinny_dot"),
    ("plain", 24, 1024, "float32", 1, "skinny_dot"),
    ("float8_e4m3fn", 4096, 4096, "bfloat16", 1, "skinny_row"),
    ("q4_k", 516, 3584, "bfloat16", 1, "packed_whole"),
    ("q4_0", 512, 3616, "float16", 1, "packed_whole"),
    ("plain", 24, 1024, "bfloat16", 2, None),
    ("plain", 40, 90, "float16", 1, None),  # k of no whole packs
    ("int8", 24, 256, "bfloat16", 1, None),
    ("q4_k", 32, 256, "bfloat16", 1, None),
    ("plain", 24, 64, "float32", 70, None),  # more rows than a kernel for few takes
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case[:5])))
def test_norm_in_front_of_a_product(case):
    kind, n, k, dtype, rows, kernel = case
    weight, scale, numbers = weights(kind, n, k, dtype)
    x, norm = drawn((rows, k), 2, dtype, 3.0), drawn(k, 3, dtype)
    bias, residual = drawn(n, 4, dtype), drawn((rows, n), 5, dtype)

    def call():
        return normed_linear(
            x, norm, EPS, weight, bias, scale=scale, residual=residual, activation="silu"
        )

    with kw.checks("memory", "init", "race", "sync") as report:
        made = call()
    report.raise_if_any()
    close(made, silu(product(x, norm, numbers, bias)) + wide(residual), dtype)
    assert np.array_equal(call().view("uint8").numpy(), made.view("uint8").numpy())
    launched = kernels(call)
    fused = kernel is not None and (HOPPER or dtype == "float32")
    assert ("norm_rows" in launched) != fused
    assert not fused or kernel in launched


GATED = (
    ("plain", 600, 1024, "bfloat16", "skinny_dot"),
    ("plain", 602, 1032, "float32", "skinny_dot"),
    ("float8_e4m3fn", 4096, 4096, "bfloat16", "skinny_row"),
    ("q4_k", 4256, 3584, "bfloat16", "packed_whole"),
    ("plain", 24, 1024, "bfloat16", "skinny_dot"),  # one row of the weights a block: no gate
    ("q4_k", 64, 256, "bfloat16", None),
)


@pytest.mark.parametrize("case", GATED, ids=lambda case: "-".join(map(str, case[:4])))
def test_norm_in_front_of_a_product_and_gate_behind(case):
    kind, n, k, dtype, kernel = case
    weight, scale, numbers = weights(kind, n, k, dtype)
    x, norm, bias = drawn((1, k), 2, dtype, 3.0), drawn(k, 3, dtype), drawn(n, 4, dtype)

    def call():
        return normed_linear(x, norm, EPS, weight, bias, scale=scale, gate="silu")

    made, both = call(), product(x, norm, numbers, bias)
    close(made, silu(both[:, : n // 2]) * both[:, n // 2 :], dtype)
    launched = kernels(call)
    fused = kernel is not None and (HOPPER or dtype == "float32")
    assert ("norm_rows" in launched) != fused
    assert ("gate_forward" in launched) != (fused and n >= 600)
    if fused:  # the same bits as the same kernel without the gate, and that of the gate
        apart = kw.nn.swiglu(normed_linear(x, norm, EPS, weight, bias, scale=scale))
        assert np.array_equal(apart.view("uint8").numpy(), made.view("uint8").numpy())


def test_a_layer_norms_apart_where_dtypes_differ():
    layer, norm = Linear(1024, 24), RMSNorm(1024, EPS)
    layer.weight, norm.weight = drawn((24, 1024), 1, "float32"), drawn(1024, 3, "float16")
    x = drawn((1, 1024), 2, "float32")
    assert np.array_equal(layer(x, norm).numpy(), layer(norm(x)).numpy())


def test_rows_that_are_planned_together_have_the_bits_of_two_kernels():
    x, norm = drawn((1, 1024), 2, "bfloat16"), drawn(1024, 3, "bfloat16")
    w = weights("plain", 24, 1024, "bfloat16")[0]

    def both():
        return normed_linear(x, norm, EPS, w), kw.nn.linear(kw.nn.rms_norm(x, norm, EPS), w)

    one, two = _core._with_planned_rows(32, both)
    assert np.array_equal(one.view("uint16").numpy(), two.view("uint16").numpy())


def test_infinity_and_nan_give_nan():
    norm, w = drawn(1024, 3, "bfloat16"), weights("plain", 24, 1024, "bfloat16")[0]
    for value in (np.inf, np.nan):
        x = np.ones((1, 1024), np.float32)
        x[0, 7] = value
        made = normed_linear(kw.asarray(x).astype("bfloat16"), norm, EPS, w)
        assert np.isnan(made.astype("float32").numpy()).all()


def test_a_norm_of_another_shape_or_dtype_is_refused():
    x, w = drawn((1, 64), 2, "float32"), drawn((8, 64), 1, "float32")
    packed = weights("q4_k", 16, 256, "float32")[0]
    wide = drawn((1, 256), 2, "bfloat16")
    for rows, weight, norm in (
        (x, w, drawn(63, 3, "float32")), (x, w, drawn(64, 3, "bfloat16")),
        (wide, packed, drawn(64, 3, "bfloat16")), (wide, packed, drawn(256, 3, "float32")),
    ):  # fmt: skip
        with pytest.raises(kw.errors.InvalidArgument, match="norm is a"):
            normed_linear(rows, norm, EPS, weight)


@simulated_elsewhere
def test_on_a_newer_device():
    run_at_9_0(__file__)


@pytest.mark.parametrize("rows", [1, 2])
def test_a_gate_of_an_odd_number_of_rows_is_refused(rows):
    x, norm, w = kw.ones((rows, 256)), kw.ones(256), kw.ones((33, 256))
    with pytest.raises(kw.InvalidArgument, match="odd"):
        normed_linear(x, norm, EPS, w, gate="silu")


def test_a_gate_of_no_rows_has_half_of_the_columns():
    packed = quant.pack(quant.quantize(kw.ones((64, 256)), "q8_0"), "q8_0")
    x, norm = kw.zeros((0, 256), "float16"), kw.ones(256, "float16")
    for w in (packed, kw.ones((64, 256), "float16")):
        assert normed_linear(x, norm, EPS, w, gate="silu").shape == (0, 32)
