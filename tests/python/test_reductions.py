"""Reductions over any axes against NumPy in float64."""

import itertools

import ml_dtypes
import numpy as np
import pytest

import kernwright as kw

RNG = np.random.default_rng(20)
START = RNG.bit_generator.state
NARROW = {"float16": 2e-3, "bfloat16": 2e-2, "float8_e4m3fn": 1e-1, "float8_e5m2": 2e-1}


@pytest.fixture(autouse=True)
def same_numbers():
    """A test has the same numbers in any order of tests."""
    RNG.bit_generator.state = START


def close(got, wanted, tolerance=2e-6):
    """Norm-wise and element by element."""
    values = got.numpy()
    wanted = np.asarray(wanted)
    assert values.shape == wanted.shape
    values = values.astype(wanted.dtype)
    np.testing.assert_allclose(values, wanted, rtol=10 * tolerance, atol=10 * tolerance)
    finite = np.isfinite(wanted)
    norm = np.linalg.norm(wanted[finite])
    assert np.linalg.norm((values - wanted)[finite]) <= tolerance * norm + 1e-30


def all_axes(ndim):
    axes = range(-ndim, 0)
    return [None, *itertools.chain(*(itertools.combinations(axes, n) for n in range(ndim + 1)))]


@pytest.mark.parametrize(
    "shape",
    [(), (1,), (3,), (1023,), (70001,), (33, 65), (1000, 3), (3, 20011), (4, 7, 9), (2, 300, 17)],
)
def test_every_axis_of_every_shape(shape):
    values = RNG.standard_normal(shape).astype(np.float32) + np.float32(0.5)
    x, wide = kw.asarray(values), values.astype(np.float64)
    for axis in all_axes(len(shape)):
        for keepdims in (False, True):
            close(kw.sum(x, axis=axis, keepdims=keepdims), wide.sum(axis, keepdims=keepdims))
        close(x.var(axis), wide.var(axis))
        if axis is None or len(axis) == 1:
            one = None if axis is None else axis[0]
            np.testing.assert_array_equal(kw.argmax(x, axis=one).numpy(), values.argmax(one))


VIEWS = {
    "transposed": lambda a: a.T,
    "reversed": lambda a: a[::-1, :, ::-1],
    "stepped": lambda a: a[:, ::2, 1::3],
    "misaligned": lambda a: a[1:, :, 1:],
    "one row": lambda a: a[2:3],
}


@pytest.mark.parametrize("view", VIEWS)
def test_views_are_read_where_they_are(view):
    # Whole numbers, whose sums are exact: one wrong element changes them.
    values = RNG.integers(-1000, 1000, (6, 40, 50)).astype(np.float32)
    x, seen = VIEWS[view](kw.asarray(values)), VIEWS[view](values)
    for axis in (None, 0, 1, 2, (0, 2), (1, 2), (0, 1)):
        np.testing.assert_array_equal(kw.sum(x, axis=axis).numpy(), seen.sum(axis, dtype="f8"))
        if not isinstance(axis, tuple):
            np.testing.assert_array_equal(kw.argmax(x, axis=axis).numpy(), seen.argmax(axis))


def test_broadcast_arrays_and_many_axes():
    values = RNG.standard_normal((5, 1, 7)).astype(np.float32)
    x, wide = kw.asarray(values)._broadcast((5, 30, 7)), np.broadcast_to(values, (5, 30, 7))
    for axis in (None, 0, 1, 2, (0, 1), (1, 2)):
        close(kw.sum(x, axis=axis), wide.astype(np.float64).sum(axis), 5e-6)
    values = np.arange(2**12, dtype=np.float32).reshape((2,) * 12)
    axis = (0, 2, 4, 6, 8, 10)
    x = kw.asarray(values)
    np.testing.assert_array_equal(kw.sum(x, axis=axis).numpy(), values.sum(axis))
    kept = kw.sum(x, axis=axis, keepdims=True)
    np.testing.assert_array_equal(kept.numpy(), values.sum(axis, keepdims=True))


def of_dtype(name, shape):
    dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
    values = 4 * RNG.standard_normal(shape)
    if dtype.kind == "c":
        values = values + 1j * RNG.standard_normal(shape)
    if dtype.kind == "u":
        values = np.abs(values)
    return values.astype(np.float32 if dtype.kind not in "c" else dtype).astype(dtype)


INTEGERS = ["bool", "int8", "int64", "uint8", "uint16"]
FLOATS = ["float16", "bfloat16", "float8_e4m3fn", "float64"]


@pytest.mark.parametrize("name", [*INTEGERS, *FLOATS, "complex64", "complex128"])
def test_dtypes(name):
    values = of_dtype(name, (3, 77))
    kind = "c" if name.startswith("complex") else "f" if name in FLOATS else "i"
    wide = values.astype(np.complex128 if kind == "c" else np.float64)
    x, tolerance = kw.asarray(values), NARROW.get(name, 2e-6)
    total = kw.sum(x, axis=1)
    close(total, wide.sum(1), tolerance)
    if kind == "i":
        assert total.dtype == np.sum(values).dtype
    else:
        assert total.dtype == values.dtype
    if name in ("bool", "int8", "float16", "float64", "complex64"):
        average = kw.mean(x, axis=1)
        assert average.dtype == (np.float64 if kind == "i" else values.dtype)
        close(average, wide.mean(1), tolerance)
    if name in ("bool", "uint8", "float8_e4m3fn", "complex64"):
        assert kw.any(x, axis=1).dtype == np.bool_
        np.testing.assert_array_equal(kw.all(x, axis=1).numpy(), wide.all(1))
    if kind == "c":
        for refused in (kw.max, kw.argmin, kw.logsumexp):
            with pytest.raises(kw.InvalidArgument, match="no order"):
                refused(x)
        return
    assert kw.max(x, axis=1).dtype == values.dtype
    close(kw.max(x, axis=1), wide.max(1))
    np.testing.assert_array_equal(kw.argmin(x, axis=1).numpy(), wide.argmin(1))


def test_spread_of_other_types():
    for name in ("int8", "float16", "complex64"):
        values = of_dtype(name, (3, 77))
        wide = values.astype(np.complex128 if name == "complex64" else np.float64)
        got = kw.std(kw.asarray(values), axis=1, correction=1)
        assert got.dtype == {"int8": "float64", "float16": "float16"}.get(name, "float32")
        close(got, wide.std(1, ddof=1), NARROW.get(name, 2e-6))


def test_products_and_wanted_dtypes():
    values = (1 + 0.1 * RNG.standard_normal((5, 60))).astype(np.float32)
    x = kw.asarray(values)
    close(kw.prod(x, axis=1), values.astype(np.float64).prod(1))
    close(kw.sum(x, axis=0, dtype="float64"), values.astype(np.float64).sum(0), 1e-15)
    small = np.arange(200, dtype=np.int32)
    assert kw.prod(kw.asarray(small[1:])).item() == 0  # wraps around
    summed = kw.sum(kw.asarray(small), dtype=np.int8)
    assert (summed.dtype, summed.item()) == (np.int8, int(small.sum(dtype=np.int8)))
    assert kw.sum(kw.asarray([False, True]), dtype=bool).item() is True
    assert kw.count_nonzero(kw.asarray([0.0, -0.0, np.nan, 2.0])).item() == 2


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_variances_beyond_the_range(dtype):
    """Infinite where squares of finite numbers are, and NaN where an element is infinite."""
    most = float(np.finfo(dtype).max)
    few = np.array([[most, -most, 1], [most / 2, 1, 2], [1, np.inf, 2], [-np.inf, np.inf, np.nan]])
    many = np.full((4, 70_000), 0.9 * most)
    many[:, ::2] *= -1
    many[1, 7], many[2, 60_001] = np.inf, np.nan
    # NumPy's sums of the long rows are infinite in both directions.
    long = {"var": [np.inf, np.nan, np.nan, np.inf], "nanvar": [np.inf, np.nan, np.inf, np.inf]}
    names = ("var", "nanvar", *(["std"] if dtype != "float32" else []))  # sums may be of doubles
    for name in names:
        short = getattr(np, name)(few.astype(dtype), axis=1)
        for values, wanted in ((few, short), (many, long.get(name, long["var"]))):
            x = kw.asarray(values.astype(dtype))
            for got in (getattr(kw, name)(x, axis=1), getattr(kw, name)(x.T.copy(), axis=0)):
                np.testing.assert_array_equal(got.numpy(), wanted)
    assert kw.var(kw.asarray(many[3].astype(dtype))).item() == np.inf


@pytest.mark.parametrize(("dtype", "digits"), [("float16", 11), ("bfloat16", 8)])
@pytest.mark.parametrize("n", [7, 2100, 30_011])
def test_spreads_of_short_elements_lose_no_digits(dtype, digits, n):
    """They are joined in float; the one error that is left is the rounding of the result."""
    values = RNG.standard_normal((6, n))
    values[1] += 100
    values[2] = 1024
    values[2, n // 3] += 64  # all but one are equal
    values[3, 0] = 3e4  # the pivot of its thread is far from all others
    values[4, : n // 2] += 500
    values[5, 5] = -3e4
    x = values.astype(dtype)
    wanted = x.astype(np.float64).std(1)
    for got in (kw.std(kw.asarray(x), 1), kw.std(kw.asarray(x.T.copy()), 0)):
        np.testing.assert_allclose(got.numpy().astype(np.float64), wanted, 1.01 * 2.0**-digits)


def test_sums_of_squares_of_short_elements_may_be_beyond_the_range():
    values = np.full((3, 30_000), 1e17)
    values[:, ::2] *= -1
    x = values.astype("bfloat16")
    wanted = x.astype(np.float64).var(1)
    for got in (kw.var(kw.asarray(x), 1), kw.var(kw.asarray(x.T.copy()), 0)):
        np.testing.assert_allclose(got.numpy().astype(np.float64), wanted, 4e-3)
    values[0, 7], values[1, 8], values[2] = np.inf, np.nan, np.where(values[2] > 0, 3e38, -3e38)
    for name, wanted in (("var", [np.nan, np.nan, np.inf]), ("nanvar", [np.nan, 1e34, np.inf])):
        x = kw.asarray(values.astype("bfloat16"))
        got = getattr(kw, name)(x, axis=1).numpy().astype(np.float64)
        np.testing.assert_allclose(got, wanted, 1e-2)


@pytest.mark.parametrize("order", [0, 1, 2, 3, 0.5, np.inf, -np.inf])
def test_vector_norms(order):
    values = RNG.standard_normal((9, 31)).astype(np.float32)
    wanted = np.linalg.norm(values.astype(np.float64), axis=1, ord=order)
    close(kw.linalg.vector_norm(kw.asarray(values), axis=1, ord=order), wanted, 1e-5)
    if order in (1, 2, np.inf):
        values = (values + 1j).astype(np.complex64)
        got = kw.linalg.vector_norm(kw.asarray(values), axis=1, ord=order)
        assert got.dtype == np.float32
        close(got, np.linalg.norm(values.astype(np.complex128), axis=1, ord=order), 1e-5)
    if order == 2:
        assert kw.linalg.vector_norm(kw.asarray([3, 4])).item() == 5.0


def test_sums_lose_few_digits():
    tenth = np.full(2_000_003, 0.1, np.float32)
    wanted = tenth.astype(np.float64).sum()
    assert abs(kw.sum(kw.asarray(tenth)).item() - wanted) <= 1e-7 * wanted
    columns = np.full((50_000, 8), 0.1, np.float32)
    wanted = columns.astype(np.float64).sum(0)
    np.testing.assert_allclose(kw.sum(kw.asarray(columns), axis=0).numpy(), wanted, rtol=3e-7)
    far = (RNG.standard_normal(300_001) + 1e4).astype(np.float32)
    wanted = far.astype(np.float64).var()
    assert abs(kw.var(kw.asarray(far)).item() - wanted) <= 1e-6 * wanted
    far[0] = -1e6  # the pivot of its thread is far from all others
    wanted = far.astype(np.float64).var()
    assert abs(kw.var(kw.asarray(far)).item() - wanted) <= 1e-5 * wanted
    assert kw.var(kw.full((1000,), 0.1)).item() == 0


def test_the_same_bits_each_time():
    x = kw.asarray(RNG.standard_normal(300_000).astype(np.float32))
    assert len({kw.sum(x).numpy().tobytes() for _ in range(3)}) == 1


def test_special_values():
    nan, inf = np.nan, np.inf
    rows = np.array(
        [[1, nan, 3, nan], [inf, 1, 2, 3], [-inf, -inf, -inf, -inf], [0, -0.0, 0, 1e-42]]
    )
    values = rows.astype(np.float32)
    x = kw.asarray(values)
    for name in ("max", "min", "argmax", "argmin", "sum", "any", "all"):
        got, wanted = getattr(x, name)(1).numpy(), getattr(values, name)(1)
        np.testing.assert_array_equal(got, wanted, err_msg=name)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(x.var(1).numpy()[:3], values.var(1)[:3])
    got = kw.logsumexp(x, axis=1).numpy()
    assert np.isnan(got[0]) and got[1] == inf and got[2] == -inf and abs(got[3] - np.log(4)) < 1e-6
    ties = kw.asarray(np.array([3, 7, 7, 1, 1, 7] * 3000, np.int32))
    assert (ties.argmax().item(), ties.argmin().item()) == (1, 3)
    lowest = kw.full((70_000,), -inf)
    assert lowest.argmax().item() == 0


PASSING_NAN = ("nansum", "nanprod", "nanmean", "nanmax", "nanmin", "nanvar", "nanstd")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of rows without a number
@pytest.mark.parametrize(  # pairs: every function meets two types, every type three functions
    ("name", "dtype"),
    [("nansum", "float16"), ("nansum", "float64"), ("nanprod", "bfloat16"), ("nanprod", "float32"),
     ("nanmean", "float16"), ("nanmean", "float32"), ("nanmax", "bfloat16"), ("nanmax", "float64"),
     ("nanmin", "float16"), ("nanmin", "float32"), ("nanvar", "float16"), ("nanvar", "float64"),
     ("nanstd", "bfloat16"), ("nanstd", "float32")],
)  # fmt: skip
def test_reductions_that_pass_over_nan(name, dtype):
    values = RNG.uniform(0.5, 1.5, (37, 900)).astype(getattr(ml_dtypes, dtype, dtype))
    values[RNG.random(values.shape) < 0.2] = np.nan
    values[3], values[:, 5], values[7, 1:], values[9, :2] = np.nan, np.nan, np.nan, (np.inf, np.nan)
    if name == "nanprod":
        values[:, 40:] = 1
    x, wide = kw.asarray(values), values.astype(np.float64)
    for axis in (None, 0, 1, (0, 1)):
        for rows in (slice(None), slice(9)):  # with the infinite one, and without
            wanted = getattr(np, name)(wide[rows], axis=axis)
            got = getattr(kw, name)(x[rows], axis=axis)
            assert got.dtype == x.dtype
            close(got, wanted, NARROW.get(dtype, 2e-6))
    close(getattr(kw, name)(x[:0], axis=1), np.zeros(0))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", PASSING_NAN)
def test_nan_of_other_types(name):
    ours, theirs = getattr(kw, name), getattr(np, name)
    whole = RNG.integers(-3, 4, (5, 300)).astype(np.int16)
    for values in (whole, whole % 2 == 0):
        if values.dtype == bool and name in ("nanvar", "nanstd"):
            continue
        got, wanted = ours(kw.asarray(values), axis=0), theirs(values, axis=0)
        assert got.dtype == wanted.dtype
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-12)
    complexes = (RNG.standard_normal((6, 700, 2)) @ [1, 1j]).astype(np.complex64)
    complexes[2, 3], complexes[4] = complex(np.nan, 1), complex(1, np.nan)
    if name in ("nanmax", "nanmin"):
        with pytest.raises(kw.errors.InvalidArgument, match=rf"{name}\(\) of complex64.* no order"):
            ours(kw.asarray(complexes))
        with pytest.raises(ValueError, match="no elements"):
            ours(kw.zeros((0, 3)), axis=0)
        return
    if name == "nanprod":
        complexes = complexes[:, :9]
    for axis in (0, None):
        close(ours(kw.asarray(complexes), axis=axis), theirs(complexes.astype("c16"), axis=axis))
    if name in ("nanvar", "nanstd"):
        few = np.float32([[1, 3, np.nan], [1, 2, 4], [np.nan] * 3])
        for correction in (1, 2):
            wanted = theirs(few, axis=1, ddof=correction)
            close(ours(kw.asarray(few), axis=1, correction=correction), wanted)
        assert np.isnan(ours(kw.asarray(few), axis=1, correction=-1).numpy()[2])
    if name in ("nansum", "nanmean", "nanprod"):
        with pytest.raises(kw.errors.InvalidArgument, match=rf"{name}\(\) .*bool"):
            ours(kw.ones(3), dtype="bool")
    if name in ("nansum", "nanmean"):
        got = ours(kw.asarray(np.float32([1.5, np.nan, 2.25])), dtype="float64")
        assert got.dtype == np.float64 and got.item() == theirs([1.5, np.nan, 2.25])


def test_nan_of_long_rows_and_many_segments():
    values = RNG.uniform(0.5, 1.5, (3, 400_001)).astype(np.float32)
    values[:, ::7] = np.nan
    for name in ("nansum", "nanmean", "nanmax", "nanmin", "nanvar", "nanstd"):
        for axis in (None, 1):
            wanted = getattr(np, name)(values.astype(np.float64), axis=axis)
            close(getattr(kw, name)(kw.asarray(values), axis=axis), wanted, 5e-6)


def test_logsumexp_does_not_overflow():
    values = 300 * RNG.standard_normal((7, 501))
    top = values.max(1, keepdims=True)
    wanted = np.log(np.exp(values - top).sum(1)) + top[:, 0]
    close(kw.logsumexp(kw.asarray(values), axis=1), wanted, 1e-14)
    close(kw.logsumexp(kw.asarray(values.astype(np.float32)), axis=0, keepdims=True),
          np.logaddexp.reduce(values, 0, keepdims=True), 1e-6)  # fmt: skip


def test_reductions_of_nothing():
    x = kw.zeros((3, 0))
    results = {"sum": 0, "prod": 1, "any": False, "all": True, "count_nonzero": 0}
    results |= {"mean": np.nan, "var": np.nan, "logsumexp": -np.inf}
    for name, wanted in results.items():
        got = getattr(kw, name)(x, axis=1).numpy()
        np.testing.assert_array_equal(got, [wanted] * 3, err_msg=name)
        assert getattr(kw, name)(x, axis=0).shape == (0,)
    assert kw.linalg.vector_norm(x, axis=1).numpy().tolist() == [0, 0, 0]
    for refused in (kw.max, kw.min, kw.argmax, kw.argmin):
        assert refused(x, axis=0).shape == (0,)
        with pytest.raises(kw.InvalidArgument, match=r"axis 1 of float32 array of shape \(3, 0\)"):
            refused(x, axis=1)
    with pytest.raises(ValueError, match="no elements"):
        kw.linalg.vector_norm(x, ord=np.inf)


def test_out_takes_the_result():
    values = RNG.standard_normal((4, 300)).astype(np.float32)
    x, out = kw.asarray(values), kw.zeros((8,))[::2]
    assert kw.sum(x, axis=1, out=out) is out
    close(out, values.astype(np.float64).sum(1))
    first = x[:, 0]
    x.max(1, first)  # on the elements themselves
    np.testing.assert_array_equal(first.numpy(), values.max(1))
    for wrong in (kw.zeros((3,)), kw.zeros((4,), "float64"), kw.zeros((4, 1))):
        with pytest.raises(kw.InvalidArgument, match="does not go into"):
            kw.sum(x, axis=1, out=wrong)
    with pytest.raises(kw.InvalidArgument):
        kw.sum(x, axis=1, out=kw.zeros((1,))._broadcast((4,)))  # one element four times
    with pytest.raises(kw.ArgumentError, match="out is"):
        kw.sum(x, axis=1, out=np.zeros(4, np.float32))


def test_wrong_calls():
    x = kw.zeros((2, 3))
    with pytest.raises(kw.InvalidArgument, match="axis"):
        kw.sum(x, axis=2)
    with pytest.raises(kw.InvalidArgument, match="twice"):
        kw.sum(x, axis=(1, -1))
    with pytest.raises(kw.InvalidArgument, match="one axis"):
        kw.argmax(x, axis=(0, 1))
    for axis in ("0", 1.0, True, (0, None)):
        with pytest.raises(kw.ArgumentError, match="an axis is an int"):
            kw.sum(x, axis=axis)
    with pytest.raises(kw.ArgumentError, match=r"kernwright\.asarray"):
        kw.sum(np.zeros(3))
    with pytest.raises(kw.InvalidArgument, match="mean"):
        kw.mean(x, dtype="int32")
    with pytest.raises(kw.ArgumentError, match="correction"):
        kw.var(x, correction="1")
    with pytest.raises(kw.ArgumentError, match="ord"):
        kw.linalg.vector_norm(x, ord="fro")


def test_every_kernel_under_all_checks():
    rows = RNG.standard_normal((3, 9001)).astype(np.float32)
    with kw.checks("memory", "init", "race", "sync") as report:
        x = kw.asarray(rows)
        for call in (kw.sum, kw.var, kw.argmax, kw.any, kw.nansum, kw.nanmean, kw.nanvar):
            call(kw.ones(40_000))  # blocks post to the last one
            call(kw.ones((2, 40_000)), axis=1)
        for call in (kw.sum, kw.var, kw.argmax, kw.nanmean, kw.nanmax):
            call(x, axis=1)
            call(x.T, axis=0)
            call(kw.asarray(rows.T.copy()), axis=0)
        kw.synchronize()
    assert not report.findings, str(report)


def test_the_last_block_gets_all_of_many_segments():
    values = RNG.integers(-1000, 1000, 3_000_001).astype(np.float64)
    for n in (100_000, 1_000_003, 3_000_001):  # up to kReduceBlock segments, and more
        for dtype in ("float32", "float64", "int32"):
            x = kw.asarray(values[:n].astype(dtype))
            assert kw.sum(x).numpy() == values[:n].sum()
            assert kw.argmax(x).numpy() == values[:n].argmax()


def test_a_graph_replays_reductions():
    values = RNG.standard_normal((2, 30_000)).astype(np.float32)
    x, out, places = kw.asarray(values), kw.zeros((2,)), kw.zeros((2,), "int64")
    stream, graph = kw.Stream(), kw.Graph()
    x.sum(1)
    with graph.capture(stream):
        x.sum(1, out=out)
        x.argmax(1, out=places)
    x[:] = kw.asarray(2 * values)
    kw.synchronize()
    graph.launch(stream)
    stream.synchronize()
    close(out, 2 * values.astype(np.float64).sum(1))
    np.testing.assert_array_equal(places.numpy(), values.argmax(1))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "complex64"])
def test_equal_rows_have_equal_results_at_any_address(dtype):
    """Rows of odd lengths begin at every place of a pack: no sum may depend on the place."""
    names = ["sum"] if dtype in ("float16", "complex64") else ["sum", "mean", "prod", "var", "norm"]
    functions = {"norm": kw.linalg.vector_norm}
    for n in (9, 33, 1001, 5003):
        row = RNG.normal(size=n) + (1j * RNG.normal(size=n) if dtype == "complex64" else 0)
        row = (row * 1.5 / np.abs(row).max() if n < 99 else row).astype(dtype)
        matrix = kw.asarray(np.tile(row, (9, 1)))
        shifted = kw.asarray(np.concatenate([row[:3], np.tile(row, 9)]))[3:].reshape(9, n)
        for name in names:
            call = functions.get(name) or getattr(kw, name)
            results = [call(x, axis=1).numpy() for x in (matrix, shifted)]
            assert len(set(np.concatenate(results).tolist())) == 1, (name, n)
            wide = row.astype(np.complex128)
            wanted = np.linalg.norm(wide) if name == "norm" else getattr(np, name)(wide)
            wanted = wanted if dtype == "complex64" else wanted.real
            tolerance = NARROW.get(dtype, 2e-5)
            np.testing.assert_allclose(results[0][0], wanted, tolerance, tolerance, err_msg=name)


def test_long_rows_shared_by_blocks_have_equal_results_at_any_address():
    row = RNG.normal(size=70001).astype(np.float32)
    sums = [kw.sum(kw.asarray(np.concatenate([row[:k], row]))[k:]).item() for k in range(4)]
    assert len(set(sums)) == 1
    assert abs(sums[0] - row.sum(dtype=np.float64)) < 1e-2
    small = RNG.integers(-9, 9, (3, 40001)).astype(np.int8)
    assert (kw.sum(kw.asarray(small), axis=1).numpy() == small.sum(axis=1)).all()
    places = kw.argmax(kw.asarray(np.tile(small[0], (9, 1))), axis=1).numpy()
    assert (places == small[0].argmax()).all()
