"""kw.elementwise, kw.reduction, kw.scan: expression strings, CuPy's and PyCUDA's signatures."""

import ml_dtypes
import numpy as np
import pytest

import kernwright as kw

RNG = np.random.default_rng(3)


def normal(*shape, dtype="float32"):
    return RNG.standard_normal(shape).astype(dtype)


def close(result, expected, rounding=1e-6):
    expected = np.asarray(expected, "float64")
    assert result.shape == expected.shape
    got = result.numpy().astype("float64")
    np.testing.assert_allclose(got, expected, rtol=4 * rounding, atol=4 * rounding)
    assert np.linalg.norm(got - expected) <= rounding * np.linalg.norm(expected)


# ---- elementwise


def test_an_expression_is_called_with_its_names():
    x, y = normal(6, 33), normal(33)
    axpy = kw.elementwise("z = a * x + y")
    close(axpy(x=kw.asarray(x), y=kw.asarray(y), a=2.0), 2 * x.astype("f8") + y)
    two = kw.elementwise("s = x + y; d = x - y", name="both")
    close(two(kw.asarray(x), kw.asarray(y))[1], x.astype("f8") - y)
    with pytest.raises(kw.InvalidArgument, match="reduces nothing"):
        kw.elementwise("z = sum(x)")(x=kw.asarray(x))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8", "int64", "bool"])
def test_cupy_types_follow_the_arrays(dtype):
    x = (normal(5, 70) * 3).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    add = kw.elementwise("T x, T y", "T z", "z = x + y", "add")
    result = add(kw.asarray(x), kw.asarray(x[0]))
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result.numpy(), x + x[0])


def test_cupy_outputs_numbers_and_layouts():
    x, y = normal(5, 70), normal(5, 1)
    sums = kw.elementwise("T x, T y, float32 s", "T z, bool big", "z = x * s + y; big = z > 1")
    z, big = sums(kw.asarray(x)[::-1], kw.asarray(y), 3)
    close(z, x[::-1].astype("f8") * 3 + y)
    assert big.dtype == bool
    assert np.array_equal(big.numpy(), z.numpy() > 1)
    add = kw.elementwise("T x", "T z", "z += x")
    out = kw.ones((70, 5))
    assert add(kw.asarray(x).T, out) is out
    close(out, x.T.astype("f8") + 1)
    assert kw.elementwise("T x", "T z", "z = x", return_tuple=True)(out)[0].shape == (70, 5)
    assert kw.elementwise("T x", "T z", "z = x", no_return=True)(out) is None
    assert add(kw.zeros((0, 3)), kw.zeros((0, 3))).shape == (0, 3)


def test_cupy_raw_arrays_and_indices():
    x, y = normal(6, 7), normal(7)
    gather = kw.elementwise("T x, raw T y", "T z", "z = x + y[(i + 1) % y.size()]")
    close(gather(kw.asarray(x), kw.asarray(y)), x.astype("f8") + np.roll(y, -1))
    half = kw.asarray(x.astype("float16"))
    twice = kw.elementwise("raw T x", "raw T z", "z[i] = x[n - 1 - i] * 2")
    out = kw.empty((42,), kw.float16)
    twice(half, out, size=42)
    close(out, x.astype("float16").astype("f8").ravel()[::-1] * 2, 1e-3)
    place = kw.elementwise("T x", "T z", "z = _ind.get()[0] * 100 + _ind.get()[1]")
    close(place(kw.asarray(x)), np.add.outer(100 * np.arange(6), np.arange(7)))
    rows = kw.elementwise("raw T x", "T s", "s = 0; for (int k = 0; k < x.shape()[1]; ++k) "
                          "s += x[i * x.shape()[1] + k]")  # fmt: skip
    close(rows(kw.asarray(x), kw.empty((6,))), x.astype("f8").sum(1))


def test_cupy_preamble_and_loops():
    x = normal(300)
    square = kw.elementwise(
        "T x", "T z", "z = twice(x) + shift", "square", loop_prep="const float shift = 1;",
        preamble="__device__ float twice(float x) { return 2 * x; }",
    )  # fmt: skip
    close(square(kw.asarray(x)), 2 * x.astype("f8") + 1)
    assert "twice" in square.source(kw.asarray(x))


def test_pycuda_elementwise():
    x = normal(6, 50)
    given, out = kw.asarray(x), kw.zeros((6, 50))
    axpy = kw.elementwise("float a, const float *x, float *y", "y[i] = a * x[i]", "axpy")
    assert axpy(2.0, given, out) is None
    close(out, 2 * x.astype("f8"))
    axpy(0.0, given, out, slice=slice(10, 300, 7))
    expected = 2 * x.astype("f8").ravel()
    expected[10:300:7] = 0
    close(out, expected.reshape(6, 50))
    axpy(1.0, given, out, range=slice(5, 5))
    with pytest.raises(kw.ArgumentError, match="gaps"):
        axpy(1.0, given.T, out)
    with pytest.raises(kw.ArgumentError, match="float64"):
        axpy(1.0, kw.zeros((3,), kw.float64), out)
    with pytest.raises(kw.InvalidArgument, match="pointer"):
        kw.elementwise("float a", "y[i] = a")


def test_wrong_elementwise():
    x = kw.ones((3, 4))
    add = kw.elementwise("T x, T y", "T z", "z = x + y", "add")
    with pytest.raises(kw.ArgumentError, match="takes 2 inputs"):
        add(x)
    with pytest.raises(kw.ArgumentError, match="float64"):
        add(x, kw.ones((3, 4), kw.float64))
    with pytest.raises(kw.InvalidArgument, match="Incompatible dimensions"):
        add(x, kw.ones((3,)))
    with pytest.raises(kw.ArgumentError, match="asarray"):
        add(x, np.ones((3, 4), np.float32))
    with pytest.raises(kw.InvalidArgument, match="no argument decides the type S"):
        kw.elementwise("T x", "S z", "z = x")(x)
    with pytest.raises(kw.InvalidArgument, match="no parameter"):
        kw.elementwise("T", "T z", "z = 1")
    with pytest.raises(kw.InvalidArgument, match="size="):
        kw.elementwise("raw T x", "T z", "z = 1")(x)
    with pytest.raises(kw.CompileError):
        kw.elementwise("T x", "T z", "z = nothing(x)")(x)
    with pytest.raises(kw.ArgumentError):
        kw.elementwise(3)


# ---- reductions


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2), -1], ids=str)
def test_cupy_reductions(axis):
    x = normal(5, 17, 40)
    norm = kw.reduction("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm")
    wide = x.astype("f8")
    close(norm(kw.asarray(x), axis=axis), np.sqrt((wide**2).sum(axis=axis)))
    kept = norm(kw.asarray(x)[::-1], axis=axis, keepdims=True)
    close(kept, np.sqrt((wide[::-1] ** 2).sum(axis=axis, keepdims=True)))


def test_cupy_reductions_of_several_inputs_and_outputs():
    x, y = normal(9, 50), normal(50)
    most = kw.reduction("T x, T y, float32 s", "T most, float64 more", "x * y * s", "max(a, b)",
                        "most = a; more = a * 2 + s", None, "most")  # fmt: skip
    first, second = most(kw.asarray(x), kw.asarray(y), 2, axis=1)
    expected = (x.astype("f8") * y * 2).max(1)
    close(first, expected)
    close(second, expected * 2 + 2)
    assert second.dtype == np.float64
    total = kw.reduction("T x", "T y", "x", "a + b", "y = a", "0", reduce_type="float64")
    half = kw.asarray(normal(3, 100, dtype="float16"))
    out = kw.empty((3,), kw.float16)
    assert total(half, axis=1, out=out) is out
    close(out, half.numpy().astype("f8").sum(1), 1e-3)
    with pytest.raises(kw.InvalidArgument, match="identity"):
        most(kw.zeros((0,)), kw.zeros((0,)), 1)
    assert total(kw.zeros((0,))).item() == 0
    with pytest.raises(kw.InvalidArgument, match="axis 3"):
        total(half, axis=3)
    with pytest.raises(kw.InvalidArgument, match="raw"):
        kw.reduction("raw T x", "T y", "x", "a + b", "y = a", "0")


def test_pycuda_reductions():
    x, y = normal(100003), normal(100003)
    dot = kw.reduction(np.float32, "0", "a + b", map_expr="x[i] * y[i] * s",
                       arguments="const float *x, float *y, float s", name="dot")  # fmt: skip
    result = dot(kw.asarray(x), kw.asarray(x), 2.0)
    assert result.shape == ()
    close(result, 2 * (x.astype("f8") ** 2).sum())
    close(dot(kw.asarray(x[:5]), kw.asarray(y[:5]), 1.0), x[:5].astype("f8") @ y[:5], 1e-5)
    most = kw.reduction(np.int32, neutral="-1000", reduce_expr="max(a, b)", arguments="int *x")
    assert most(kw.asarray(np.array([[3, 9], [7, 1]], np.int32)).T).item() == 9
    assert most(kw.zeros((0,), kw.int32)).item() == -1000
    neighbours = kw.reduction(np.float32, "0", "a + b", "i > 0 ? x[i] - x[i - 1] : 0.0f",
                              "const float *x")  # fmt: skip
    close(neighbours(kw.asarray(x)), np.float64(x[-1]) - x[0], 1e-3)


def test_reduction_expressions():
    x, y = normal(7, 33), normal(33)
    dot = kw.reduction("r = sum(x * y)")
    wide = x.astype("f8") * y
    close(dot(x=kw.asarray(x), y=kw.asarray(y), axis=-1), wide.sum(-1), 3e-6)
    norm = kw.reduction("sqrt(sum(x * x))")
    close(norm(kw.asarray(x), keepdims=True), np.full((1, 1), np.linalg.norm(x.astype("f8"))))
    close(norm(kw.asarray(x), axis=(0,)), np.linalg.norm(x.astype("f8"), axis=0))
    with pytest.raises(kw.InvalidArgument, match="reduces nothing"):
        kw.reduction("x + 1")(kw.asarray(x))


# ---- scans


@pytest.mark.parametrize("length", [1, 7, 2047, 2049, 20000])
def test_scans_of_any_length(length):
    x = normal(3, length)
    wide = x.astype("f8")
    total = kw.scan("a + b", neutral=0)(kw.asarray(x))
    np.testing.assert_allclose(total.numpy(), wide.cumsum(1), rtol=1e-5, atol=1e-3)
    before = kw.scan("a + b", neutral="0", exclusive=True)(kw.asarray(x))
    expected = np.concatenate([np.zeros((3, 1)), wide.cumsum(1)[:, :-1]], 1)
    np.testing.assert_allclose(before.numpy(), expected, rtol=1e-5, atol=1e-3)
    close(kw.scan("max(a, b)")(kw.asarray(x)), np.maximum.accumulate(wide, 1), 0)
    assert np.array_equal(kw.scan("b")(kw.asarray(x)).numpy(), x)
    assert np.array_equal(kw.scan("a")(kw.asarray(x)).numpy(), np.repeat(x[:, :1], length, 1))


def test_scans_along_axes_of_values_and_dtypes():
    x = normal(30, 4, 5)
    for axis in (0, 1, -1):
        close(kw.scan("a + b")(kw.asarray(x), axis=axis), x.astype("f8").cumsum(axis), 3e-6)
    squares = kw.scan("a + b", "x * x + y")
    close(squares(x=kw.asarray(x), y=1.0, axis=0), (x.astype("f8") ** 2 + 1).cumsum(0), 3e-6)
    small = RNG.integers(-9, 9, 5000).astype("int8")
    assert np.array_equal(kw.scan("a + b")(kw.asarray(small)).numpy(), small.cumsum(dtype="int8"))
    seen = small > 7
    assert np.array_equal(
        kw.scan("a || b")(kw.asarray(seen)).numpy(), np.logical_or.accumulate(seen)
    )
    assert kw.scan("a + b")(kw.zeros((0, 3))).shape == (0, 3)


def test_pycuda_scans():
    values = RNG.integers(-5, 5, 100003).astype("int32")
    total = kw.scan(np.int32, "a+b")
    x = kw.asarray(values)
    assert np.array_equal(total(x, "new").numpy(), values.cumsum())
    assert np.array_equal(x.numpy(), values)
    assert total(x) is x
    assert np.array_equal(x.numpy(), values.cumsum())
    before = kw.scan(np.int32, "a+b", "0", exclusive=True)(kw.asarray(values))
    assert np.array_equal(before.numpy(), values.cumsum() - values)
    with pytest.raises(kw.ArgumentError, match="float32"):
        total(kw.zeros((3,)))
    with pytest.raises(kw.InvalidArgument, match="neutral"):
        kw.scan(np.int32, "a+b", exclusive=True)
    with pytest.raises(kw.InvalidArgument, match="axis 2"):
        kw.scan("a + b")(x, axis=2)


# ---- all of them


def test_in_a_graph():
    x = kw.asarray(normal(3, 5000))
    made = (
        kw.elementwise("T x", "T z", "z = x * 2"),
        kw.reduction("T x", "T y", "x", "max(a, b)", "y = a", None),
        kw.scan("max(a, b)"),
    )
    for make in made:
        make(x)
    graph, stream = kw.Graph(), kw.Stream()
    with graph.capture(stream):
        results = [make(x) for make in made]
    values = normal(3, 5000)
    x[...] = values
    graph.launch(stream)
    stream.synchronize()
    close(results[0], 2 * values.astype("f8"))
    assert results[1].item() == values.max()
    assert np.array_equal(results[2].numpy(), np.maximum.accumulate(values, 1))


def test_under_all_checks(sim):
    x = kw.asarray(normal(3, 40000))
    with kw.checks("memory", "init", "race", "sync") as report:
        kw.elementwise("T x, raw T y", "T z", "z = x + y[i]")(x[:, ::2], x)
        kw.elementwise("float *x, float *y", "y[i] = x[i]")(x, kw.zeros((3, 40000)))
        kw.reduction("T x", "T y", "x", "max(a, b)", "y = a", None)(x, axis=1)
        kw.reduction(np.float32, "0", "a + b", arguments="float *x")(x)
        kw.scan("a + b")(x)
        kw.scan("a + b", neutral=0, exclusive=True)(x)
        kw.synchronize()
    assert not report.findings
