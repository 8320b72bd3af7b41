"""kw.fuse: traced functions and strings against NumPy in float64."""

import random

import ml_dtypes
import numpy as np
import pytest
from scipy import special

import kernwright as kw

RNG = np.random.default_rng(7)
ROUNDING = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 3e-6, "float64": 1e-12}


def normal(*shape, dtype="float32"):
    return RNG.standard_normal(shape).astype(dtype)


def wide(value):
    if isinstance(value, np.ndarray) and (value.dtype.kind == "f" or value.dtype.itemsize == 2):
        return value.astype("float64") if value.dtype.kind in "fV" else value
    return value


def check(function, *args, reference=None, tolerance=None, dtypes=True):
    """Compares with `function` itself on NumPy arrays, values in float64, dtypes in their own."""
    fused = kw.fuse(function)
    given = [kw.asarray(a) if isinstance(a, np.ndarray) else a for a in args]
    results = fused(*given)
    with np.errstate(all="ignore"):
        expected = (reference or function)(*[wide(a) for a in args])
        own = (reference or function)(*args) if dtypes else expected
    if not isinstance(results, tuple):
        results, expected, own = (results,), (expected,), (own,)
    assert len(results) == len(expected)
    for result, value, typed in zip(results, expected, own, strict=True):
        value = np.asarray(value)
        assert result.shape == value.shape
        if dtypes:
            assert result.dtype == np.asarray(typed).dtype
        bound = ROUNDING.get(result.dtype.name, 0) if tolerance is None else tolerance
        got = result.numpy().astype("float64")
        np.testing.assert_allclose(got, value.astype("float64"), rtol=4 * bound, atol=4 * bound)
        finite = np.isfinite(value.astype("float64")) & np.isfinite(got)
        norm = np.linalg.norm(value[finite].astype("float64"))
        assert np.linalg.norm(got[finite] - value[finite].astype("float64")) <= bound * norm
    return fused


def softmax(x):
    shifted = np.exp(x - x.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


SHAPES = [(), (0,), (1,), (1023,), (1025,), (3, 0), (37, 130), (5, 1, 33), (2, 3, 4, 5, 6)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_chains_of_any_shape_are_one_kernel(shape):
    x, y = normal(*shape), normal(*shape)
    fused = check(lambda x, y: np.exp(x) * y + 2 - np.maximum(x, 0.5), x, y)
    assert len(fused.kernels) == (x.size > 0)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_floats(dtype):
    x = normal(65, 34, dtype=dtype)
    check(lambda x: (x * 2 + 1, x / 3, np.tanh(x), np.sqrt(abs(x)), -x, x**2, x > 0), x)


def test_bfloat16_stays_so_beside_python_numbers():
    x = normal(33, 64).astype(ml_dtypes.bfloat16)
    result = kw.fuse(lambda x: kw.exp(x * 0.5) + 1.0)(kw.asarray(x))
    assert result.dtype == ml_dtypes.bfloat16
    expected = np.exp(x.astype("float64") * 0.5) + 1
    np.testing.assert_allclose(result.numpy().astype("float64"), expected, rtol=2**-8)


@pytest.mark.parametrize("name", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_integers_wrap_and_divide_as_numpy_has_it(name):
    x = RNG.integers(0, 255, (7, 33)).astype(name)
    y = RNG.integers(1, 100, (7, 33)).astype(name)
    y[0] = 0
    y[1] = -1 if name.startswith("i") else 1

    def chain(x, y):
        return x + y, x - y, x * y, x // y, x % y, x & y, x | ~y, x ^ y, x >> 2, x << 3, -x

    with np.errstate(all="ignore"):
        check(chain, x, y)
    check(lambda x, y: (x > y, x == y, abs(x), np.sign(x), np.minimum(x, y), x / (y + 300.0)), x, y)


def test_mixed_dtypes_promote():
    i, f, h = RNG.integers(-9, 9, (4, 5)).astype("int32"), normal(4, 5), normal(5, dtype="float16")
    check(lambda i, f, h: (i + f, i * 2, i / 2, f + h, i > h, h + 1, np.sqrt(abs(i))), i, f, h)
    b = i > 0
    check(lambda b, f: (b & (f > 0), b + b, b * 2, b | ~b, np.where(b, f, 0)), b, f)


def test_floor_division_of_floats():
    x = np.array([7.5, -7.5, 0.0, -0.0, np.inf, np.nan, 1e-40, 3.0], np.float32)
    y = np.array([2.0, -2.0, 0.0, 0.3, -0.3, 3.0, 1.0, -1.0], np.float32)

    def chain(x, y):
        return x[:, None] // y, x[:, None] % y, np.fmod(x[:, None], y)

    results = kw.fuse(chain)(kw.asarray(x), kw.asarray(y))
    with np.errstate(all="ignore"):
        quotient, *rests = chain(x, y)
        for result, expected in zip(results, (quotient, *rests), strict=True):
            np.testing.assert_array_equal(result.numpy(), expected)


def test_special_values():
    x = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-42, -1.0, 3.4e38], np.float32)
    check(lambda x: (np.maximum(x, 0), np.minimum(x, 0), np.sign(x), np.isnan(x)), x)
    check(lambda x: (np.isinf(x), np.isfinite(x), np.signbit(x), np.rint(x), np.floor(x)), x)
    check(lambda x: (x.max(), x.min(), x.sum(), (x > 0).any(), (x > 0).all()), x)
    assert kw.fuse(lambda x: x.argmax())(kw.asarray(x)).item() == 0
    assert np.signbit(kw.fuse(lambda x: x * 1)(kw.asarray(x)).numpy()[3])


FUNCTIONS = [
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "cbrt",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "atanh",
    "square",
    "reciprocal",
    "ceil",
    "floor",
    "trunc",
    "round",
    "abs",
    "negative",
]


def test_functions_by_their_standard_names():
    x = RNG.uniform(0.1, 0.9, 200).astype("float32")
    fused = kw.fuse(lambda x: tuple(getattr(kw, name)(x) for name in FUNCTIONS))
    numpy = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh",
             "atanh": "arctanh", "round": "rint"}  # fmt: skip
    results = fused(kw.asarray(x))
    for name, result in zip(FUNCTIONS, results, strict=True):
        expected = getattr(np, numpy.get(name, name))(x.astype("float64"))
        np.testing.assert_allclose(result.numpy(), expected, rtol=2e-6, atol=1e-7, err_msg=name)
    more = kw.fuse(lambda x: (kw.erf(x), kw.rsqrt(x), kw.nn.silu(x), kw.nn.gelu(x)))
    erf, rsqrt, silu, gelu = (r.numpy() for r in more(kw.asarray(x)))
    wide = x.astype("float64")
    np.testing.assert_allclose(erf, special.erf(wide), rtol=1e-6)
    np.testing.assert_allclose(rsqrt, wide**-0.5, rtol=1e-6)
    np.testing.assert_allclose(silu, wide * special.expit(wide), rtol=1e-6)
    np.testing.assert_allclose(gelu, wide * special.ndtr(wide), rtol=1e-5)


def test_views_of_arguments_and_of_values():
    x, y = normal(12, 18), normal(18)
    check(lambda x, y: (x[::-1, 3:-2][:, ::3] * 2, x[:, None] + y, x.T + 1, x[2] - x[-1]), x, y)
    check(lambda x, y: ((x + y)[1:, ::2].T * 3, (x * y)[5], (x + 1)[..., None]), x, y)
    check(lambda x: (x.reshape(12, 3, 6).sum(axis=1), (x + 1).reshape(-1) * 2), x)
    check(lambda x: (x.sum(axis=1)[2:5] * 2, x.sum(axis=1)[:, None] + x, x.max(axis=0)[::-1]), x)
    check(
        lambda x: ((abs(x).sum() * 2)[..., None], (abs(x).max() + (x[0, 0] * 2 + 1))[None, None]), x
    )
    check(lambda x: x.transpose(2, 0, 1).max(axis=(0, 2)), normal(4, 5, 6))
    assert np.array_equal(
        kw.fuse(lambda x: kw.squeeze(kw.expand_dims(x, axis=0), 0))(kw.asarray(x)).numpy(), x
    )


def test_strided_misaligned_and_broadcast_arguments():
    x, y = normal(40, 66), normal(40, 66)
    given, other = kw.asarray(x), kw.asarray(y)
    add = kw.fuse(lambda a, b: a * 2 + b)
    for key in [np.s_[:, 1:], np.s_[::-1], np.s_[:, ::-1], np.s_[::3, 5:60:2], np.s_[3:4, 1:2]]:
        result = add(given[key], other[key])
        np.testing.assert_allclose(result.numpy(), x[key] * 2 + y[key], rtol=1e-6)
    np.testing.assert_allclose(add(given, other[0]).numpy(), x * 2 + y[0], rtol=1e-6)
    np.testing.assert_allclose(add(given[:, :1], other).numpy(), x[:, :1] * 2 + y, rtol=1e-6)
    bytes_ = kw.zeros((4 * 101 + 1,), kw.uint8)
    assert add(bytes_[1:], bytes_[1:]).shape == (4 * 101,)


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2), (1, 2), (0, 1, 2)], ids=str)
def test_reductions_over_axes(axis):
    x = normal(5, 17, 33)
    check(lambda x: (x.sum(axis=axis), x.max(axis=axis), x.mean(axis=axis, keepdims=True)), x,
          tolerance=2e-6)  # fmt: skip
    check(lambda x: ((x > 0).any(axis=axis), (x > 0).sum(axis=axis), abs(x).min(axis=axis)), x)
    if not isinstance(axis, tuple):
        fused = kw.fuse(lambda x: (x.argmax(axis), x.argmin(axis)))
        for result, name in zip(fused(kw.asarray(x)), ("argmax", "argmin"), strict=True):
            assert np.array_equal(result.numpy(), getattr(x, name)(axis))


@pytest.mark.parametrize("name", ["bool", "int8", "uint16", "int64"])
def test_reductions_of_integers(name):
    x = RNG.integers(0, 3, (9, 70)).astype(name)
    check(lambda x: (x.sum(axis=0), x.max(axis=1), x.mean(axis=1)), x)
    check(lambda x: (x.prod(axis=1), x.any(axis=0), x.all(axis=1)), x)


def test_ties_take_the_first_place():
    x = np.tile(np.array([1, 5, 5, 0, 0], np.int32), (3, 500))
    fused = kw.fuse(lambda x: (x.argmax(axis=1), x.argmin(axis=1), x.argmax()))
    for result, expected in zip(fused(kw.asarray(x)), (1, 3, 1), strict=True):
        assert (result.numpy() == expected).all()


def test_no_elements():
    empty = kw.zeros((0, 3))
    assert kw.fuse(lambda x: x.sum())(empty).item() == 0
    assert np.array_equal(kw.fuse(lambda x: x.prod(axis=0))(empty).numpy(), np.ones(3))
    assert kw.fuse(lambda x: x * 2)(empty).shape == (0, 3)
    with pytest.raises(kw.InvalidArgument, match="no elements"):
        kw.fuse(lambda x: x.max(axis=0))(empty)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (4, 128), (7, 1000), (3, 8193), (2, 40000)])
def test_softmax_is_one_kernel_where_rows_fit(shape):
    fused = check(softmax, normal(*shape), tolerance=1e-6)
    assert len(fused.kernels) == (1 if shape[1] < 40000 else 5)


def test_norms_with_weights_and_residuals_are_one_kernel():
    x, r, w, b = normal(33, 384), normal(33, 384), normal(384), normal(384)

    def add_rms_norm(x, r, w):
        total = x + r
        return total, total / np.sqrt((total * total).mean(axis=-1, keepdims=True) + 1e-6) * w

    assert len(check(add_rms_norm, x, r, w).kernels) == 1

    def layer_norm(x, w, b):
        centred = x - x.mean(axis=-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5) * w + b

    assert len(check(layer_norm, x, w, b).kernels) == 1
    h = x.astype("float16")
    fused = kw.fuse(lambda x, w, b: kw.nn.layer_norm(x, w, b))
    half = fused(*(kw.asarray(v.astype("float16")) for v in (x, w, b))).numpy()
    expected = layer_norm(*(v.astype("float16").astype("float64") for v in (h, w, b)))
    np.testing.assert_allclose(half.astype("float64"), expected, rtol=4e-3, atol=4e-3)


def test_what_one_kernel_cannot_hold_is_split():
    x = np.abs(normal(37, 130)) + 1
    fused = check(lambda x: x / x.sum(axis=0, keepdims=True) + x / x.sum(axis=1, keepdims=True), x)
    assert len(fused.kernels) == 2
    check(lambda x: (x - x.mean(axis=0)) / x.std(axis=0), x, tolerance=2e-6)
    check(lambda x: x / x.max(axis=1) if False else x.sum(axis=0) + x.sum(axis=1)[:130], x[:, :37])
    check(lambda x: np.log(np.exp(x - x.max()).sum()) + x.max(), x)


def test_few_long_rows_take_several_blocks():
    x = normal(3, 70001)
    fused = check(lambda x: (x.sum(axis=1), abs(x).max(axis=1), (x * x).sum()), x, tolerance=3e-6)
    assert any(kernel.name.endswith("_part") for kernel in fused.kernels)
    tall = normal(20000, 40)
    check(lambda x: (abs(x).mean(axis=0), x.max(axis=0)), tall)
    assert np.array_equal(kw.fuse(lambda x: x.argmax(0))(kw.asarray(tall)).numpy(), tall.argmax(0))


def test_results_are_the_same_each_time():
    x = kw.asarray(normal(5, 60000))
    fused = kw.fuse(lambda x: (x.sum(), x.sum(axis=1), kw.nn.softmax(x)))
    first = [r.numpy() for r in fused(x)]
    assert all(np.array_equal(r.numpy(), f) for r, f in zip(fused(x), first, strict=True))


def test_numbers_are_passed_not_compiled():
    fused = kw.fuse(lambda x, a: x * a + 1)
    x = normal(100)
    for a in (2.0, 3.5, -1.0):
        np.testing.assert_allclose(fused(kw.asarray(x), a).numpy(), x * a + 1, rtol=1e-6, atol=1e-6)
    assert len(fused.kernels) == 1
    assert fused(kw.asarray(x), np.float64(2)).dtype == np.float64
    assert fused(kw.asarray(x), 3).dtype == np.float32
    small = kw.asarray(np.ones(4, np.uint8))
    with pytest.raises(kw.ArgumentRangeError, match="300"):
        fused(small, 300)
    with pytest.raises(kw.ArgumentRangeError, match="300"):
        kw.fuse(lambda x: x + 300)(small)


def test_sizes_of_one_class_share_a_kernel():
    fused = kw.fuse(lambda x: x * 2)
    for rows in (4, 8, 12):
        fused(kw.ones((rows, 256)))
    assert len(fused.kernels) == 1


def helper(x):
    return kw.exp(x) + 1


def test_functions_call_others_and_have_defaults():
    scale = 3.0

    @kw.fuse
    def inner(x):
        return helper(x) * scale

    @kw.fuse(name="outer_one")
    def outer(x, *, shift=1.0, dtype=None):
        y = inner(x) + shift
        return y if dtype is None else y.astype(dtype)

    x = normal(50)
    expected = (np.exp(x.astype("float64")) + 1) * 3
    np.testing.assert_allclose(outer(kw.asarray(x)).numpy(), expected + 1, rtol=1e-6)
    result = outer(kw.asarray(x), shift=2.0, dtype=kw.float16)
    assert result.dtype == np.float16
    assert "outer_one(" in outer.source(kw.asarray(x))
    np.testing.assert_allclose(inner(kw.asarray(x)).numpy(), expected, rtol=1e-6)


def test_arguments_of_any_name():
    x = normal(4, 40)
    given = [kw.asarray(x + n) for n in range(6)]

    def chain(row, float, t0, Layout, sum_0, x_run, *, lane=2.0):
        value = row + float * t0 - Layout * sum_0 + x_run * lane
        return value - value.sum(axis=-1, keepdims=True)

    a = [g.numpy().astype("f8") for g in given]
    value = a[0] + a[1] * a[2] - a[3] * a[4] + a[5] * 2
    result = kw.fuse(chain, name="class")(*given).numpy()
    np.testing.assert_allclose(result, value - value.sum(-1, keepdims=True), rtol=1e-5, atol=1e-4)


def test_strings():
    x, y = normal(6, 40), normal(6, 40)
    norm = kw.fuse("x / sqrt(sum(x * x, -1, keepdims=True))")
    expected = x / np.linalg.norm(x.astype("float64"), axis=-1, keepdims=True)
    np.testing.assert_allclose(norm(x=kw.asarray(x)).numpy(), expected, rtol=1e-6)
    two = kw.fuse("s = x + y; d = s * 2; e = where(s > 0, s, 0)")
    d, e = two(kw.asarray(x), y=kw.asarray(y))
    np.testing.assert_allclose(d.numpy(), (x + y) * 2, rtol=1e-6)
    np.testing.assert_allclose(e.numpy(), np.maximum(x + y, 0), rtol=1e-6)
    with pytest.raises(kw.ArgumentError, match="y is missing"):
        two(kw.asarray(x))
    with pytest.raises(kw.InvalidArgument, match="where"):
        kw.fuse("x > 0 ? x : 0")
    with pytest.raises(kw.InvalidArgument, match="statements"):
        kw.fuse("for i in x: pass")


def random_program(draw):
    """Shapes of three arguments that may broadcast, and steps that choose among values."""
    shape = [draw.choice([1, 2, 3, 5, 16, 33, 64]) for _ in range(draw.choice([1, 2, 2, 3]))]
    shapes = []
    for _ in range(3):
        own = [1 if draw.random() < 0.25 else n for n in shape]
        shapes.append(tuple(own[draw.randint(0, len(own) - 1) if draw.random() < 0.3 else 0 :]))
    kinds = ["add", "mul", "max", "where", "exp", "keep", "reduce", "view", "T", "new"]
    steps = [(draw.choice(kinds), draw.random(), draw.random(), draw.random()) for _ in range(7)]
    return shapes, steps


def combined(kind, p, q):
    if kind == "add":
        return p + q * 0.5
    if kind == "mul":
        return p * q * 0.5
    return np.maximum(p, q) if kind == "max" else np.where(p > q, p, q * 0.25)


def changed(kind, p, b, c):
    if kind in ("keep", "reduce") and p.ndim:
        axes = tuple(sorted({int(b * p.ndim), int(c * p.ndim)}))
        name = ["sum", "max", "mean", "min"][int(c * 4)]
        operand = abs(p) if name in ("sum", "mean") else p
        return getattr(operand, name)(axis=axes, keepdims=kind == "keep") * 0.1
    if kind == "view" and p.ndim and p.shape[0] > 1:
        return p[int(b * p.shape[0])] if c < 0.4 else p[:: -1 if b < 0.5 else 2]
    if kind == "T":
        return p.T
    return p[..., None] if kind == "new" else np.exp(-abs(p))


def run_program(steps, *arguments):
    values = list(arguments)
    for kind, a, b, c in steps:
        p, q = values[int(a * len(values))], values[int(b * len(values))]
        pairs = zip(reversed(p.shape), reversed(q.shape), strict=False)
        if kind in ("add", "mul", "max", "where") and all(m == n or 1 in (m, n) for m, n in pairs):
            values.append(combined(kind, p, q))
        else:
            values.append(changed(kind, p, b, c))
    return tuple(values[-3:])


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed):
    shapes, steps = random_program(random.Random(seed))
    arguments = [normal(*shape) for shape in shapes]
    results = kw.fuse(lambda x, y, z: run_program(steps, x, y, z))(*map(kw.asarray, arguments))
    expected = run_program(steps, *(a.astype("float64") for a in arguments))
    for result, value in zip(results, expected, strict=True):
        assert result.shape == value.shape
        np.testing.assert_allclose(result.numpy(), value, rtol=3e-5, atol=3e-5)


def branches(x):
    return x if x > 0 else -x


def changes(x):
    x += 1
    return x


WRONG = {
    "branch": (branches, "where"),
    "in place": (changes, "does not change"),
    "mask": (lambda x: x[x > 0], "indexes with integers"),
    "outside": (lambda x: x + ARRAY[0], "make it an argument"),
    "product": (lambda x: x @ x, "matrix product"),
    "other function": (lambda x: np.sort(x), "cannot be fused"),
    "no value": (lambda x: 3, "returns"),
    "axis": (lambda x: x.sum(2), "axis 2"),
    "index": (lambda x: x[9], "out of range"),
    "read": (lambda x: float(x), "cannot branch"),
    "shapes": (lambda x: x + x[:, :2], r"Incompatible dimensions: add of shapes \(3, 5\)"),
}
ARRAY = [None]


@pytest.mark.parametrize("case", WRONG, ids=str)
def test_what_cannot_be_fused_says_so(case):
    function, message = WRONG[case]
    ARRAY[0] = kw.ones((3, 5))
    with pytest.raises(kw.InvalidArgument, match=message):
        kw.fuse(function)(kw.ones((3, 5)))


def test_wrong_arguments():
    double = kw.fuse(lambda x: x * 2)
    with pytest.raises(kw.ArgumentError, match="asarray"):
        double(np.ones(3))
    with pytest.raises(kw.InvalidArgument, match="complex64"):
        double(kw.zeros((3,), kw.complex64))
    with pytest.raises(kw.ArgumentError, match="missing"):
        double()
    with pytest.raises(kw.ArgumentError, match="takes a function or a string"):
        kw.fuse(3)


def test_in_a_graph():
    x = kw.asarray(normal(20, 300))
    fused = kw.fuse(lambda x: (kw.nn.softmax(x), x.sum(0)))
    fused(x)
    graph, stream = kw.Graph(), kw.Stream()
    with graph.capture(stream):
        y, total = fused(x)
    x[...] = normal(20, 300)
    graph.launch(stream)
    stream.synchronize()
    np.testing.assert_allclose(y.numpy(), softmax(x.numpy().astype("float64")), rtol=1e-5)
    np.testing.assert_allclose(total.numpy(), x.numpy().sum(0), rtol=1e-4, atol=1e-5)


def test_under_all_checks(sim):
    x, long = kw.asarray(normal(20, 300)), kw.asarray(normal(3, 70000))
    with kw.checks("memory", "init", "race", "sync") as report:
        kw.fuse(lambda x: (kw.nn.softmax(x), x[:, ::-1] + x, x.sum(0), x.argmax(1)))(x)
        kw.fuse(lambda x: (x.argmax(1), x.sum(1), x.mean()))(long)
        kw.fuse(lambda x: kw.nn.rms_norm(x.astype(kw.bfloat16)))(x)
        kw.synchronize()
    assert not report.findings


@pytest.mark.parametrize("name", ["norm", "hypotf", "round", "free", "y1"])
def test_functions_named_like_cudas(name):
    x = kw.asarray([1.0, 2.0])
    assert kw.fuse(lambda x: x + 1, name=name)(x).numpy().tolist() == [2, 3]
