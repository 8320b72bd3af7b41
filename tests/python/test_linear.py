"""Products against NumPy in float64, and exactly for integers."""

import ml_dtypes
import numpy as np
import pytest

import kernwright as kw

REAL = ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool"]
TOLERANCE = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 1e-6, "complex64": 1e-6}


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name)) if name == "bfloat16" else np.dtype(name)


def values(rng, shape, name):
    if name == "bool":
        return rng.random(shape) < 0.3
    if name.startswith(("int", "uint")):
        low = 0 if name[0] == "u" else -9
        return rng.integers(low, 10, shape).astype(name)
    made = rng.standard_normal(shape)
    if name.startswith("complex"):
        made = made + 1j * rng.standard_normal(shape)
    return made.astype(dtype_of(name))


def wide(x):
    if x.dtype.kind in "iub":
        return x
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def compare(got, expected):
    got = got.numpy()
    assert got.shape == expected.shape
    if got.dtype.kind in "iub":
        np.testing.assert_array_equal(got, expected.astype(got.dtype))
        return
    error = np.linalg.norm(wide(got) - expected) / max(np.linalg.norm(expected), 1e-30)
    assert error <= TOLERANCE.get(got.dtype.name, 1e-14)


@pytest.mark.parametrize("name", [*REAL, "complex64", "complex128"])
def test_matmul_of_every_type(name):
    rng = np.random.default_rng(1)
    with kw.checks("memory", "init", "race", "sync") as report:
        for a, b in [((3, 5), (5, 7)), ((65, 33), (33, 70)), ((2, 1, 3, 4), (5, 4, 2))]:
            x, y = values(rng, a, name), values(rng, b, name)
            result = kw.asarray(x) @ kw.asarray(y)
            assert result.dtype == x.dtype
            compare(result, wide(x) @ wide(y))
    report.raise_if_any()


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((4,), (4,)), ((4,), (4, 3)), ((3, 4), (4,)), ((2, 3, 4), (4,)), ((4,), (2, 4, 5)),
        ((0, 4), (4, 3)), ((3, 0), (0, 2)), ((2, 3, 4), (4, 0)), ((1, 1), (1, 1)),
        ((3, 1, 2, 4), (2, 4, 3)), ((129, 1), (1, 130)), ((1, 300), (300, 1)),
    ],
)  # fmt: skip
def test_matmul_of_every_shape(a, b):
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal(a), rng.standard_normal(b)
    compare(kw.matmul(kw.asarray(x), kw.asarray(y)), x @ y)


def test_matmul_of_views():
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((6, 8, 10)), rng.standard_normal((10, 9))
    a, b = kw.asarray(x), kw.asarray(y)
    compare(a.mT[:, ::2] @ a[:, 1:7:2].mT.mT[:, :, ::-1][:, :, :10].mT[:, :8].mT[:, :, :8].mT,
            x.mT[:, ::2] @ x[:, 1:7:2][:, :, ::-1].mT[:, :8].mT[:, :, :8].mT)  # fmt: skip
    compare(a[::-1, ::3] @ b[:, ::-2], x[::-1, ::3] @ y[:, ::-2])


def test_matmul_promotes_and_refuses():
    x = kw.ones((2, 3))
    assert (x @ kw.ones((3, 2), dtype="float64")).dtype == np.float64
    assert (kw.ones((2, 3), dtype="int32") @ kw.ones((3, 2), dtype="int64")).dtype == np.int64
    with pytest.raises(kw.InvalidArgument, match=r"Incompatible dimensions.*\(2, 3\).*\(2, 3\)"):
        x @ x
    with pytest.raises(kw.InvalidArgument, match="Incompatible dimensions"):
        kw.matmul(kw.ones(()), x)
    with pytest.raises(kw.InvalidArgument, match="Incompatible dimensions"):
        kw.ones((2, 4, 3)) @ kw.ones((3, 3, 5))
    with pytest.raises(TypeError):
        x @ np.ones((3, 2), np.float32)
    with pytest.raises(TypeError):
        x @ 2
    y = kw.asarray(np.arange(4.0).reshape(2, 2))
    before = y.numpy()
    y @= y
    np.testing.assert_array_equal(y.numpy(), before @ before)


def test_nan_and_infinity_pass_through_products():
    x = np.ones((3, 17), np.float32)
    x[1, 16] = np.nan
    y = np.ones((17, 2), np.float32)
    y[0, 1] = np.inf
    np.testing.assert_array_equal((kw.asarray(x) @ kw.asarray(y)).numpy(), x @ y)


@pytest.mark.parametrize("axes", [0, 1, 2, ([1, 2], [0, 1]), ((-1,), (1,)), ([], [])])
def test_tensordot(axes):
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal((3, 4, 5)), rng.standard_normal((4, 5, 6))
    if axes == 1:
        y = rng.standard_normal((5, 2, 3))
    compare(kw.tensordot(kw.asarray(x), kw.asarray(y), axes=axes), np.tensordot(x, y, axes))


def test_tensordot_refuses():
    x = kw.ones((2, 3))
    for axes in (1, 3, ([0], [0, 1]), ([5], [0]), ([0, 0], [0, 1])):
        with pytest.raises(kw.InvalidArgument):
            kw.tensordot(x, x, axes=axes)


@pytest.mark.parametrize("name", ["float32", "complex128"])
def test_vecdot(name):
    rng = np.random.default_rng(5)
    x, y = values(rng, (4, 3, 5), name), values(rng, (3, 5), name)
    compare(kw.vecdot(kw.asarray(x), kw.asarray(y)), np.vecdot(wide(x), wide(y)))
    compare(kw.vecdot(kw.asarray(x), kw.asarray(x), axis=-3), np.vecdot(wide(x), wide(x), axis=0))
    with pytest.raises(kw.InvalidArgument, match="Incompatible dimensions"):
        kw.vecdot(kw.ones(3), kw.ones(4))


def test_products_in_a_graph():
    stream = kw.Stream()
    a, b = kw.ones((8, 8)), kw.ones((8, 8))
    a @ b  # compiled before
    graph = kw.Graph()
    with graph.capture(stream):
        c = a @ b
    graph.launch(stream)
    stream.synchronize()
    assert graph.node_count > 0 and (c.numpy() == 8).all()


@pytest.mark.parametrize("format", ["nf4", "fp4", "q8_0", "int8"])
def test_a_layer_with_a_quantised_weight(format):
    layer, x = kw.nn.Linear(256, 64, seed=1), kw.ones((2, 256))
    expected = layer(x).numpy()
    made = layer.quantize(format)(x).numpy()
    error = np.linalg.norm(made - expected) / np.linalg.norm(expected)
    assert 0 < error < (0.2 if format.endswith("4") else 0.02)


@pytest.mark.parametrize("rows", [1, 100])
@pytest.mark.parametrize("dtype", ["float16", "float64", "int32"])
def test_scales_are_float32(rows, dtype):
    x, weight = kw.ones((rows, 64), "float16"), kw.ones((32, 64), "int8")
    assert (kw.nn.linear(x, weight, scale=kw.ones(32)).numpy() == 64).all()
    with pytest.raises(
        kw.InvalidArgument, match="scale is float32 and has one number, or one a row"
    ):
        kw.nn.linear(x, weight, scale=kw.ones(32, dtype))
