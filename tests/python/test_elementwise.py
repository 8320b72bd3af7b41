"""Elementwise functions: against NumPy in types, values, special values, layouts and errors."""

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import kernwright as kw

REFERENCE = {
    "erf": lambda x: scipy.special.erf(x).astype(x.dtype),
    "rsqrt": lambda x: (1 / np.sqrt(x)).astype(x.dtype),
}
TOLERANCE = {
    np.dtype(np.float16): 2e-3, np.dtype(ml_dtypes.bfloat16): 1.6e-2,
    np.dtype(np.float32): 2e-6, np.dtype(np.complex64): 4e-6,
    np.dtype(np.float64): 1e-14, np.dtype(np.complex128): 2e-14,
    np.dtype(ml_dtypes.float8_e4m3fn): 0.13, np.dtype(ml_dtypes.float8_e5m2): 0.26,
}  # fmt: skip
UNARY = {
    "abs": ("bool", "int8", "float16", "complex64"),
    **dict.fromkeys(["isfinite", "isinf", "isnan"], ("int8", "float32", "complex64")),
    **dict.fromkeys(["conj", "real", "imag"], ("uint8", "complex64")),
    "logical_not": ("bool", "complex64"),
    **dict.fromkeys(["ceil", "floor", "trunc"], ("uint64", "float16")),
    "round": ("float32", "complex64"),
    "signbit": ("float16", "float64"),
    "negative": ("int8", "uint32", "float64", "complex64"),
    "positive": ("float16",),
    "sign": ("int8", "uint64", "float32", "complex64"),
    "square": ("bool", "int8", "complex64"),
    "reciprocal": ("int8", "float32", "complex64"),
    "bitwise_invert": ("bool", "int8", "uint64"),
    "exp": ("bool", "int16", "int64", "float64", "complex128"),
    "sqrt": ("float32", "float64", "complex128"),
    **dict.fromkeys(["acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp2"],
                    ("float32", "complex128")),
    **dict.fromkeys(["expm1", "log", "log10", "log1p", "log2", "sin", "sinh", "tan", "tanh"],
                    ("float32", "complex128")),
    **dict.fromkeys(["cbrt", "erf", "rsqrt"], ("float16", "float64")),
    **dict.fromkeys(["deg2rad", "fabs", "rad2deg"], ("int16", "float64")),
    **dict.fromkeys(["isneginf", "isposinf"], ("int8", "float32")),
    **dict.fromkeys(["iscomplex", "isreal"], ("bool", "complex64")),
    "angle": ("float32", "int64", "complex128"),
    "bitwise_count": ("bool", "int8", "uint64"),
    "fix": ("int32", "float64"),
    "i0": ("float32", "float64"),
    "rint": ("int32", "complex64"),
    "sinc": ("float32", "complex128"),
}  # fmt: skip
BINARY = {
    **dict.fromkeys(["add", "multiply"], ("bool", "int8", "uint64", "float16", "complex64")),
    "subtract": ("int8", "float64"),
    "divide": ("bool", "float16", "complex64"),
    **dict.fromkeys(["floor_divide", "remainder", "fmod"], ("bool", "uint8", "float16", "float64")),
    **dict.fromkeys(["maximum", "minimum"], ("bool", "uint64", "complex64")),
    **dict.fromkeys(["bitwise_and", "bitwise_or", "bitwise_xor"], ("bool", "int8")),
    **dict.fromkeys(["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"],
                    ("int8", "complex64")),
    **dict.fromkeys(["logical_and", "logical_or", "logical_xor"], ("float32",)),
    **dict.fromkeys(["atan2", "copysign", "hypot", "logaddexp"], ("int8", "float64")),
    "nextafter": ("float16", "float32", "float64"),
    **dict.fromkeys(["fmax", "fmin"], ("bool", "float16", "complex64")),
    **dict.fromkeys(["gcd", "lcm"], ("int8", "uint64")),
    **dict.fromkeys(["heaviside", "logaddexp2"], ("int8", "float64")),
    "float_power": ("int64", "complex64"),
}  # fmt: skip


def values(dtype, size=70, seed=0, low=-3.0, high=3.0):
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, size).astype(bool)
    if dtype.kind in "iu":
        least = 0 if dtype.kind == "u" else -100
        return rng.integers(least, 100, size).astype(dtype)
    if dtype.kind == "c":
        return (values("f8", size, seed) + 1j * values("f8", size, seed + 1)).astype(dtype)
    return rng.uniform(low, high, size).astype(dtype)


def check(got, expected, exact=False):
    """Types and shapes are equal, the error is small as a whole and each."""
    out = got.numpy()
    assert out.dtype == expected.dtype and out.shape == expected.shape
    if exact or out.dtype.kind in "biu":
        np.testing.assert_array_equal(out, expected)
        return
    wide = "c16" if out.dtype.kind == "c" else "f8"
    out, expected, bound = out.astype(wide), expected.astype(wide), TOLERANCE[out.dtype]
    np.testing.assert_allclose(out, expected, rtol=20 * bound, atol=2 * bound)
    finite = np.isfinite(expected)
    assert np.linalg.norm((out - expected)[finite]) <= bound * np.linalg.norm(expected[finite])


def reference(name):
    return REFERENCE.get(name) or getattr(np, name)


@pytest.mark.parametrize("name", UNARY)
@np.errstate(all="ignore")
def test_functions_of_one(name):
    for dtype in UNARY[name]:
        real = np.dtype(dtype).kind == "f"
        x = (
            np.abs(values(dtype))
            if name in ("sqrt", "rsqrt", "log", "log2", "log10") and real
            else values(dtype)
        )
        if real and name in ("acos", "asin", "atanh", "log1p"):
            x = x / np.array(3.5, dtype)
        if name == "acosh" and real:
            x = np.abs(x) + np.array(1, dtype)
        if name == "reciprocal" and dtype == "int8":
            x = np.abs(x) + np.int8(1)
        expected = np.asarray(reference(name)(x))
        if name == "conj":
            expected = expected.astype(dtype)
        check(getattr(kw, name)(kw.asarray(x)), expected)


@pytest.mark.parametrize("name", BINARY)
@np.errstate(all="ignore")
def test_functions_of_two(name):
    for dtype in BINARY[name]:
        x, y = values(dtype), values(dtype, seed=9)
        y[3:6] = x[3:6]
        expected = np.asarray(reference(name)(x, y))
        check(getattr(kw, name)(kw.asarray(x), kw.asarray(y)), expected, exact=name == "nextafter")


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_small_floats_compute_in_float32_and_round_once(dtype):
    dtype = np.dtype(getattr(ml_dtypes, dtype))
    x, y = values(dtype), values(dtype, seed=1)
    wide = x.astype("f4"), y.astype("f4")
    for name in ("add", "multiply", "divide", "maximum"):
        expected = reference(name)(*wide).astype(dtype)
        check(getattr(kw, name)(kw.asarray(x), kw.asarray(y)), expected, exact=True)
    check(kw.exp(kw.asarray(x)), np.exp(wide[0]).astype(dtype))
    check(kw.nextafter(kw.asarray(x), kw.asarray(y)), np.nextafter(x, y), exact=True)
    assert kw.add(kw.asarray(x), 0.5).dtype == dtype
    assert kw.equal(kw.asarray(x), kw.asarray(x)).numpy().all()


@np.errstate(all="ignore")
def test_powers():
    for dtype in ("float16", "float64", "complex64"):
        x, y = values(dtype), values(dtype, seed=4)
        x = np.abs(x).astype(dtype) if np.dtype(dtype).kind == "f" else x
        check(kw.pow(kw.asarray(x), kw.asarray(y)), np.power(x, y))
    for dtype in ("bool", "int8"):
        x, y = values(dtype), np.abs(values(dtype, seed=4))
        check(kw.pow(kw.asarray(x), kw.asarray(y)), np.power(x, y))
    x = np.array([-2, -1, 0, 1, 2])
    np.testing.assert_array_equal(
        (kw.asarray(x) ** kw.asarray(-np.ones(5, int))).numpy(), [0, -1, 0, 1, 0]
    )
    for number in (2, 0.5, 2.0, -1.5):
        for dtype in ("float32", "uint8"):
            if dtype == "uint8" and number == 0.5:
                continue
            x = np.abs(values(dtype)) + np.array(1, dtype)
            check(kw.asarray(x) ** number, x.astype(x.dtype) ** number)
    with pytest.raises(kw.InvalidArgument, match="negative integer powers"):
        kw.arange(5) ** -1
    with pytest.raises(ValueError):
        kw.arange(5) ** np.int64(-2)


def test_clip_and_where():
    x = values("f4")
    a = kw.asarray(x)
    check(kw.clip(a, -1, 1), np.clip(x, -1, 1))
    check(kw.clip(a, max=0.5), np.clip(x, None, 0.5))
    check(kw.clip(a, kw.asarray(x[::-1].copy())), np.maximum(x, x[::-1]))
    check(kw.clip(a), x)
    check(kw.clip(kw.asarray(np.array([1, np.nan], "f4")), 2, 3), np.array([2, np.nan], "f4"))
    check(kw.where(a > 0, a, -a), np.abs(x), exact=True)
    check(kw.where(a > 0, a, 0), np.where(x > 0, x, np.float32(0)), exact=True)
    check(
        kw.where(a > 0, kw.asarray(np.arange(70, dtype="i2")), a),
        np.where(x > 0, np.arange(70, dtype="i2"), x),
    )
    assert kw.where(a > 0, 1, 2).dtype == np.int64
    np.testing.assert_array_equal(kw.where(a > 0)[0].numpy(), np.where(x > 0)[0])
    for given, missing in (((1,), "x2"), ((None, 1), "x1"), ((1, None), "x2")):
        with pytest.raises(kw.ArgumentError, match=f"{missing} is missing"):
            kw.where(a > 0, *given)
    with pytest.raises(kw.Error, match="condition is"):
        kw.where([True, False])
    with pytest.raises(kw.InvalidArgument, match=r"where\(\) of an array without dimensions"):
        kw.where(kw.asarray(True))
    assert kw.where(a > 0, kw.ones(70, "i4"), 2.5).dtype == np.float64


SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 3e38, 0.5, -2.5, 1.5]
)


@pytest.mark.parametrize("dtype", ["f4"])
@np.errstate(all="ignore")
def test_special_values(dtype):
    x = SPECIAL.astype(dtype)
    a = kw.asarray(x)
    for name in ("abs", "ceil", "floor", "trunc", "round", "sign", "negative", "sqrt"):
        got, expected = getattr(kw, name)(a).numpy(), reference(name)(x)
        np.testing.assert_array_equal(got, expected)
        solid = ~np.isnan(expected) & (name != "sign")
        np.testing.assert_array_equal(np.signbit(got)[solid], np.signbit(expected)[solid])
    for name in ("exp", "expm1", "log1p", "sin", "tanh", "atan", "asinh", "cbrt", "erf"):
        got, expected = getattr(kw, name)(a).numpy(), reference(name)(x)
        np.testing.assert_allclose(got, expected, rtol=3e-6, atol=1e-44)
    b, y = kw.asarray(x[:, None].copy()), x[:, None]
    names = [
        "add",
        "multiply",
        "divide",
        "floor_divide",
        "remainder",
        "fmod",
        "maximum",
        "minimum",
        "atan2",
    ]
    names += ["copysign", "hypot", "logaddexp", "pow", "nextafter", "less", "equal", "less_equal"]
    for name in names:
        got, expected = getattr(kw, name)(b, a).numpy(), reference(name)(y, x)
        np.testing.assert_allclose(got, expected, rtol=3e-6, err_msg=name)
        if name in ("copysign", "floor_divide", "remainder", "atan2"):
            solid = ~np.isnan(expected)
            np.testing.assert_array_equal(np.signbit(got)[solid], np.signbit(expected)[solid])


FUNCTIONS = ["exp", "log", "sqrt", "sinh", "cosh", "tanh", "cos", "asin", "acos", "acosh", "atanh"]


@pytest.mark.parametrize("name", FUNCTIONS)
@np.errstate(all="ignore")
def test_special_complex_values(name):
    parts = np.array([0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan, 800.0, 1e300])
    z = np.empty((parts.size, parts.size), complex)
    z.real, z.imag = parts[:, None], parts
    got, expected = getattr(kw, name)(kw.asarray(z)).numpy(), getattr(np, name)(z)
    for part in ("real", "imag"):
        one, other = getattr(got, part), getattr(expected, part)
        # C99 leaves the sign of some zeros and infinities open.
        np.testing.assert_allclose(np.abs(one), np.abs(other), rtol=1e-12)


def test_integers_divide_as_in_numpy():
    for dtype in ("int8", "int64", "uint16"):
        info = np.iinfo(dtype)
        x = np.array([info.min, info.min, -7 if info.min else 7, 7, 7, 0, info.max], dtype)
        y = np.array([-1 if info.min else 1, 1, 2, 0, 3, 0, info.max], dtype)
        with np.errstate(all="ignore"):
            for name in ("floor_divide", "remainder", "fmod"):
                np.testing.assert_array_equal(
                    getattr(kw, name)(kw.asarray(x), kw.asarray(y)).numpy(), getattr(np, name)(x, y)
                )
        shifts = np.array([0, 1, 5, 8, 40, 64, 200], "uint8").astype(dtype)
        check(kw.bitwise_right_shift(kw.asarray(x), kw.asarray(shifts)), x >> shifts)
        check(kw.bitwise_left_shift(kw.asarray(x), kw.asarray(shifts)), x << shifts)


def layouts(x):
    """Views of the same values: rows, columns, steps, reversed, misaligned."""
    yield kw.asarray(x)
    yield kw.asarray(x.T.copy()).T
    wide = np.zeros((x.shape[0], 2 * x.shape[1]), x.dtype)
    wide[:, ::2] = x
    yield kw.asarray(wide)[:, ::2]
    yield kw.asarray(x[::-1, ::-1].copy())[::-1, ::-1]
    flat = kw.asarray(np.concatenate([x[:1, 0], x.ravel()]))
    yield flat[1:].reshape(x.shape)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (16, 33), (8, 64)])
def test_layouts(shape):
    x, y = (values("f4", np.prod(shape), seed).reshape(shape) for seed in (0, 1))
    expected = x + y
    for a in layouts(x):
        for b in layouts(y):
            check(kw.add(a, b), expected, exact=True)
        check(kw.negative(a), -x, exact=True)


SHAPES = [((5, 1), (1, 6)), ((3, 4, 8), (8,)), ((3, 4, 8), (3, 1, 1)), ((), (9,)), ((1,), (0,))]
SHAPES += [((7, 16), (7, 1)), ((2, 1, 3, 1, 5), (4, 1, 6, 1))]


@pytest.mark.parametrize("dtypes", [("f4", "f4"), ("u1", "f8"), ("f2", "f4"), ("c8", "i8")])
def test_broadcasting_and_mixed_types(dtypes):
    for left, right in SHAPES:
        x = values(dtypes[0], np.prod(left, dtype=int)).reshape(left)
        y = values(dtypes[1], np.prod(right, dtype=int), 1).reshape(right)
        check(kw.multiply(kw.asarray(x), kw.asarray(y)), np.asarray(x * y))


def test_random_shapes():
    rng = np.random.default_rng(3)
    for _ in range(25):
        full = rng.integers(1, 6, rng.integers(1, 6))
        arrays = []
        for seed in range(3):
            shape = np.where(rng.random(full.size) < 0.3, 1, full)[rng.integers(0, full.size) :]
            arrays.append(values("f4", np.prod(shape), seed).reshape(shape))
        ours = [kw.asarray(a) for a in arrays]
        check(kw.clip(*ours), np.clip(*arrays), exact=True)
        check(kw.subtract(ours[0], ours[1]), arrays[0] - arrays[1], exact=True)


def test_many_dimensions():
    x = np.arange(2**11, dtype="i4").reshape((2,) * 11)
    axes = (0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9)
    got = kw.asarray(x).transpose(*axes) + kw.asarray(x)
    np.testing.assert_array_equal(got.numpy(), x.transpose(axes) + x)


@pytest.mark.parametrize("size", [0, 1, 2, 7, 511, 512, 513, 4095, 4097, 100_003])
def test_sizes(size):
    x = np.arange(size, dtype="i2")
    for start in (0, 1) if size else (0,):
        check(kw.add(kw.asarray(x)[start:], 3), x[start:] + np.int16(3))
    y = np.arange(size, dtype="f4")
    check(kw.sqrt(kw.asarray(y)), np.sqrt(y))


def test_out():
    x, y = values("f4").reshape(7, 10), values("f4", seed=1).reshape(7, 10)
    a, b = kw.asarray(x), kw.asarray(y)
    out = kw.empty((7, 10))
    assert kw.add(a, b, out=out) is out
    check(out, x + y, exact=True)
    kw.add(a, b, out=out.T.T[::-1])
    check(out, (x + y)[::-1], exact=True)
    narrow = kw.zeros((7, 10), "f2")
    kw.add(a, b, out=narrow)
    check(narrow, (x + y).astype("f2"), exact=True)
    wide = kw.zeros((2, 7, 10), "f8")
    kw.add(a, b, out=wide)
    check(wide, np.stack([x + y] * 2).astype("f8"), exact=True)
    kw.greater(a, b, out=narrow)
    check(narrow, (x > y).astype("f2"), exact=True)
    strided = kw.zeros((7, 20), "f2")
    kw.exp(a, out=strided[:, ::2])
    check(strided[:, ::2], np.exp(x).astype("f2"))
    assert not strided[:, 1::2].numpy().any()


def test_out_that_overlaps():
    x = np.arange(20, dtype="f4")
    a = kw.asarray(x)
    kw.add(a[:-1], 1, out=a[1:])
    np.testing.assert_array_equal(a.numpy(), np.concatenate([[0], x[:-1] + 1]))
    a = kw.asarray(x)
    kw.multiply(a[::-1], a, out=a)
    np.testing.assert_array_equal(a.numpy(), x[::-1] * x)


def test_wrong_out():
    a = kw.ones((3, 4))
    with pytest.raises(kw.InvalidArgument, match=r"\(3, 4\).*\(4, 3\)"):
        kw.exp(a, out=kw.empty((4, 3)))
    with pytest.raises(kw.ArgumentError, match=r"float32.*int32"):
        kw.exp(a, out=kw.empty((3, 4), "i4"))
    with pytest.raises(TypeError):
        kw.exp(a, out=np.ones((3, 4)))
    with pytest.raises(kw.InvalidArgument, match="stride of 0"):
        kw.exp(a, out=kw.ones((1, 4))._broadcast((3, 4)))


def test_wrong_operands():
    a = kw.ones((3, 4))
    named = r"float32 array of shape \(3, 4\) on .* and int32 array of shape \(5,\) on "
    with pytest.raises(kw.InvalidArgument, match=rf"Incompatible dimensions: {named}"):
        kw.add(a, kw.ones(5, "int32"))
    named = r"shape \(3, 4\) of the operands before and int32 array of shape \(5,\) on "
    with pytest.raises(kw.InvalidArgument, match=rf"Incompatible dimensions: {named}"):
        kw.where(a > 0, a, kw.ones(5, "int32"))
    with pytest.raises(kw.ArgumentError, match="asarray"):
        kw.add(a, np.ones((3, 4)))
    for wrong in ("text", None, [1, 2], object()):
        with pytest.raises(kw.ArgumentError, match=r"operand 2 of add\(\)"):
            kw.add(a, wrong)
    with pytest.raises(kw.InvalidArgument, match="needs an array"):
        kw.add(1, 2)
    with pytest.raises(TypeError):
        kw.add(a)
    with pytest.raises(kw.ArgumentError, match=r"subtract\(\) is not defined for bool and bool"):
        kw.subtract(a > 0, a > 0)
    with pytest.raises(kw.ArgumentError, match=r"bitwise_and.*float32"):
        kw.bitwise_and(a, 1)
    with pytest.raises(kw.ArgumentError, match=r"floor.*complex64"):
        kw.floor(kw.ones(3, "c8"))
    with pytest.raises(kw.ArgumentRangeError, match=r"300.*uint8"):
        kw.add(kw.ones(3, "u1"), 300)


def test_every_form_passes_all_checks(sim):
    x = values("f4", 7 * 33).reshape(7, 33)
    with kw.checks("memory", "init", "race", "sync") as report:
        a = kw.asarray(x)
        check(kw.add(a, a), x + x, exact=True)  # two packs a thread, and a rest
        check(kw.sin(a), np.sin(x))  # one pack
        check(kw.add(a.T, a.T[::-1]), x.T + x.T[::-1], exact=True)
        check(kw.multiply(a[:, :32], kw.asarray(x[:, :1].copy())), x[:, :32] * x[:, :1], exact=True)
        check(kw.where(a > 0, a, 1.5), np.where(x > 0, x, np.float32(1.5)), exact=True)
    report.raise_if_any()


def test_in_a_graph():
    a, b = kw.ones((5, 8)), kw.full((8,), 2.0)
    out = kw.empty((5, 8))
    stream, graph = kw.Stream(), kw.Graph()
    with graph.capture(stream):
        kw.add(a, b, out=out)
        total = out * 2
    a[...] = 5.0
    for _ in range(3):
        graph.launch(stream)
    stream.synchronize()
    np.testing.assert_array_equal(out.numpy(), np.full((5, 8), 7.0))
    np.testing.assert_array_equal(total.numpy(), np.full((5, 8), 14.0))


def test_distances_beyond_32_bits():
    ends = kw.empty(2**31 + 64, "u1")[:: 2**31]
    ends[...] = 7
    check(kw.add(ends, 1), np.array([8, 8], "u1"))
    kw.multiply(ends, 3, out=ends)
    check(ends, np.array([21, 21], "u1"))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_every_small_float_is_read_exactly(name):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    codes = np.arange(2 ** (8 * dtype.itemsize), dtype=f"u{dtype.itemsize}").view(dtype)
    got = kw.multiply(kw.asarray(codes), np.float32(1)).numpy()
    expected = codes.astype("f4")
    np.testing.assert_array_equal(got, expected)
    solid = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got)[solid], np.signbit(expected)[solid])


def test_expm1_of_complex_zeros_is_zero():
    """The standard has 0 for -0, where NumPy has -0."""
    got = kw.expm1(kw.asarray(np.array([complex(0, 0), complex(-0.0, 0), complex(0, -0.0)])))
    values = got.numpy()
    assert not np.signbit(values.real).any()
    assert np.signbit(values.imag).tolist() == [False, False, True]


# The elements behind the last pack may begin a block of their own.
@pytest.mark.parametrize("size", [255, 513, 1023, 1025, 2049, 65_537, 270_337])
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
def test_elements_behind_the_last_pack(size, dtype):
    x = (np.arange(size) % 50).astype(dtype)
    np.testing.assert_array_equal((kw.asarray(x) + kw.asarray(x)).numpy(), x + x)
    np.testing.assert_array_equal((kw.asarray(x) * 2).numpy(), x * 2)
