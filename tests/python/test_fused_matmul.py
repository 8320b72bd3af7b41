"""kw.nn.fused_matmul: products with an expression at the end, against NumPy in float64."""

import ml_dtypes
import numpy as np
import pytest
from hopper import HOPPER, run_at_9_0, simulated_elsewhere
from scipy.special import ndtr

import kernwright as kw
from kernwright.errors import ArgumentError

TYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32}
ERROR = {"float16": 1e-3, "bfloat16": 6e-3, "float32": 2e-6}
fused = kw.nn.fused_matmul


def values(*shape, dtype="float16", seed=0):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) / shape[-1] ** 0.25).astype(TYPES[dtype])


def close(got, wanted, dtype):
    off = np.linalg.norm(got.numpy().astype(np.float64) - wanted)
    assert off <= ERROR[dtype] * np.linalg.norm(wanted), off / np.linalg.norm(wanted)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(65, 48, 40), (1, 7, 3), (33, 8, 700)])
def test_expressions(dtype, shape):
    m, n, k = shape
    a, b = values(m, k, dtype=dtype), values(k, n, dtype=dtype, seed=1)
    bias, c = values(n, seed=2, dtype="float32"), values(m, n, dtype=dtype, seed=3)
    x = a.astype("f8") @ b.astype("f8")
    host = {"bias": bias, "c": c}
    for text, wanted, given in [
        ("relu(x)", np.maximum(x, 0), ()),
        ("gelu_tanh(x + bias) * c", gelu(x + bias) * c.astype("f8"), ("bias", "c")),
        ("clip(alpha * x,\\n -0.5, .25e0) + beta", np.clip(3 * x, -0.5, 0.25) + 2, ()),
        ("x / (1 + fabsf(c)) - 1e-1", x / (1 + np.abs(c.astype("f8"))) - 0.1, ("c",)),
        ("x > bias ? x : bias", np.maximum(x, bias), ("bias",)),
    ]:
        options = {name: kw.asarray(host[name]) for name in given}
        got = fused(kw.asarray(a), kw.asarray(b), text.replace("\\n", "\n"), alpha=3.0, beta=2.0,
                    **options)  # fmt: skip
        assert got.dtype == TYPES[dtype]
        close(got, wanted, dtype)
        got = fused(kw.asarray(a), kw.asarray(b), text.replace("\\n", "\n"), alpha=3.0, beta=2.0,
                    dtype="float32", **options)  # fmt: skip
        close(got, wanted, "float32")


def test_gelu_of_float32_keeps_its_digits():
    x = np.linspace(-6, 6, 24 * 32, dtype="float32").reshape(24, 32)
    one = np.eye(32, dtype="float32")
    wanted = x * ndtr(x.astype("f8"))
    for got in (fused(kw.asarray(x), kw.asarray(one), "gelu(x)"), kw.nn.gelu(kw.asarray(x))):
        assert (np.abs(got.numpy() - wanted) <= 1e-6 * np.abs(wanted) + 1e-9).all()


def test_layouts_batches_and_types():
    a, b = values(2, 20, 24, dtype="float16"), values(2, 16, 24, dtype="float16", seed=1)
    x = a.astype("f8") @ b.astype("f8").swapaxes(1, 2)
    right = kw.permute_dims(kw.asarray(b), (0, 2, 1))
    close(fused(kw.asarray(a), right, "silu(x)"), x / (1 + np.exp(-x)), "float16")
    wide = [kw.asarray(each[0].astype(np.float32)) for each in (a, b)]
    close(fused(wide[0], wide[1].T, "x * x", precision="tf32"), x[0] ** 2, "float16")
    assert fused(kw.ones((0, 16), "float16"), kw.ones((16, 8), "float16"), "x").shape == (0, 8)
    empty = fused(kw.ones((3, 0), "float16"), kw.ones((0, 8), "float16"), "x + 2")
    assert (empty.numpy() == 2).all()


@pytest.mark.skipif(not HOPPER, reason="needs compute capability 9.0")
def test_on_wgmma():
    a, b = values(200, 128, dtype="bfloat16"), values(128, 264, dtype="bfloat16", seed=1)
    close(fused(kw.asarray(a), kw.asarray(b), "sigmoid(x)"),
          1 / (1 + np.exp(-(a.astype("f8") @ b.astype("f8")))), "bfloat16")  # fmt: skip


@simulated_elsewhere
def test_on_a_simulated_device_of_9_0():
    run_at_9_0(__file__)


def test_in_a_graph_and_under_all_checks(sim):
    a, b = values(40, 32, dtype="float16"), kw.asarray(values(32, 24, dtype="float16", seed=1))
    left, bias, stream, graph = kw.asarray(a), kw.ones(24), kw.Stream(), kw.Graph()
    kw.synchronize()
    with graph.capture(stream):
        got = fused(left, b, "relu(x + bias)", bias=bias)
    left[...] = kw.asarray(a[::-1].copy())
    kw.synchronize()
    graph.launch(stream)
    stream.synchronize()
    assert np.array_equal(got.numpy(), fused(left, b, "relu(x + bias)", bias=bias).numpy())
    with kw.checks("memory", "init", "race", "sync") as report:
        fused(left, b, "relu(x + bias)", bias=bias)
        kw.synchronize()
    assert not report.findings, str(report)


def product(epilogue, **options):
    return fused(kw.ones((4, 16), "float16"), kw.ones((16, 8), "float16"), epilogue, **options)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: product(""), kw.ArgumentError, "expression"),
        (lambda: product(None), kw.ArgumentError, "expression"),
        (lambda: product("x + bias"), kw.ArgumentError, "none is given"),
        (lambda: product("x", c=kw.ones((4, 8))), kw.ArgumentError, "does not name"),
        (lambda: product("x + bias", bias=kw.ones(9)), kw.InvalidArgument, "bias"),
        (lambda: product("x * c", c=kw.ones((8, 4))), kw.InvalidArgument, "c is"),
        (
            lambda: fused(kw.ones((4, 16), "int16"), kw.ones((16, 8), "int16"), "x"),
            kw.ArgumentError,
            "float16",
        ),
        (lambda: fused(np.ones((4, 16)), kw.ones((16, 8)), "x"), kw.ArgumentError, "asarray"),
    ],
)
def test_wrong_input(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_what_does_not_compile_names_the_expression():
    with pytest.raises(kw.CompileError) as failed:
        product("x +\n swish(x)")
    error = failed.value.diagnostics[0]
    assert "swish" in error.message and error.line == 2 and "epilogue" in str(error.file)


NARROW = {
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "int8": np.int8,
}


def quantised(exact, dtype):
    if dtype == "int8":
        return np.clip(np.rint(exact), -128, 127)
    return exact.astype(np.float32).astype(NARROW[dtype]).astype(np.float64)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("source", TYPES)
@pytest.mark.parametrize("shape", [(33, 70, 64), (130, 256, 512), (5, 7, 3), (64, 64, 4096)])
def test_quantised_results(dtype, source, shape):
    """Sums differ in their last bits, so a few results are one step of the type off."""
    m, n, k = shape
    a, b = values(m, k, dtype=source), values(k, n, dtype=source, seed=1)
    bias = values(n, dtype="float32", seed=2)
    factor = 20.0 if dtype == "int8" else 1.0
    got = fused(
        kw.asarray(a), kw.asarray(b), "x * alpha + bias",
        bias=kw.asarray(bias), alpha=factor, dtype=dtype,
    )  # fmt: skip
    assert str(got.dtype) == dtype
    exact = a.astype("f8") @ b.astype("f8") * factor + bias
    wanted, off = quantised(exact, dtype), {"int8": 1, "float8_e4m3fn": 1 / 8, "float8_e5m2": 1 / 4}
    found = got.numpy().astype(np.float64)
    step = 1 if dtype == "int8" else np.maximum(np.abs(wanted) * off[dtype], 2.0**-9)
    assert (np.abs(found - wanted) <= step).all()
    assert (found != wanted).mean() < 0.02


def test_quantised_results_of_special_values():
    a = kw.asarray(np.array([[np.nan], [np.inf], [-np.inf], [300], [2.5], [-3.5]], np.float32))
    one = kw.ones((1, 1))
    assert fused(a, one, "x", dtype="int8").numpy()[:, 0].tolist() == [0, 127, -128, 127, 2, -4]
    got = fused(a, one, "x", dtype="float8_e5m2").numpy()[:, 0].astype(np.float64)
    assert str(got.tolist()) == "[nan, inf, -inf, 320.0, 2.5, -3.5]"


def test_wrong_quantised_results_and_parentheses():
    a = kw.ones((4, 4))
    with pytest.raises(ArgumentError, match="int8 has no c"):
        fused(a, a, "x + c", c=a, dtype="int8")
    with pytest.raises(ArgumentError, match="not int16"):
        fused(a, a, "x", dtype="int16")
    for text in ("1.0f) * (x", "(x", "x)"):
        with pytest.raises(ArgumentError, match="parentheses"):
            fused(a, a, text)
