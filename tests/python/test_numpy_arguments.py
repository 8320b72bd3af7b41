"""Arguments of NumPy that functions of the array API standard do not have: against NumPy."""

import functools
import inspect

import numpy as np
import pytest
from numpy_pairs import compare, same

import kernwright as kw

RNG = np.random.default_rng(31)
V, M, CUBE = RNG.normal(size=7), RNG.normal(size=(3, 4)), RNG.normal(size=(2, 3, 4))
WHOLE = RNG.integers(0, 9, 12)


def test_orders_and_searches():
    for kind in (None, "quicksort", "mergesort", "heapsort", "stable"):
        same("sort", M, 0, kind)
    same("argsort", M, kind="stable")
    same("partition", np.sort(V), 3, -1, "introselect")
    same("searchsorted", np.sort(WHOLE), WHOLE, "right")
    same("searchsorted", WHOLE, WHOLE[:4], "left", np.argsort(WHOLE))
    same("isin", WHOLE, WHOLE[:2], False, True)
    same("isin", WHOLE, WHOLE[:2], kind="table")
    x = kw.asarray(M)
    for call in (kw.sort, kw.argsort, lambda x, kind: kw.partition(x, 1, kind=kind)):
        with pytest.raises(kw.InvalidArgument, match="kind"):
            call(x, kind="bubble")
    with pytest.raises(kw.InvalidArgument, match="kind"):
        kw.isin(x, x, kind="hash")


def test_grids_shapes_and_bounds():
    for options in ({"sparse": True}, {"sparse": True, "indexing": "ij"}, {"copy": False}):
        same("meshgrid", V, M[0], WHOLE[:2], **options)
    line = kw.asarray(V)
    assert kw.meshgrid(line, line, copy=False, sparse=True)[0].ptr == line.ptr
    assert kw.meshgrid(line, line, sparse=True)[0].ptr != line.ptr
    for shape in ((4, 3), (2, -1), -1, (3, 2, 2)):
        same("reshape", M, shape, "F")
    same("reshape", CUBE[:, ::2], (-1, 4), order="F")
    x = kw.asarray(CUBE)
    assert kw.reshape(x.T, (6, 4), order="F", copy=False).ptr == x.ptr
    with pytest.raises(kw.InvalidArgument, match="order"):
        kw.reshape(x, -1, "K")
    same("tile", M, reps=(2, 1))
    same("clip", M, a_min=-0.5, a_max=0.5)
    same("clip", M, -0.5, None)
    out = kw.empty((3, 4), "float64")
    assert kw.clip(kw.asarray(M), 0, 1, out) is out
    compare(out, np.clip(M, 0, 1))
    with pytest.raises(kw.ArgumentError, match="one argument"):
        kw.clip(x, 0, 1, a_min=2)


@pytest.mark.parametrize("name", ["concat", "concatenate", "stack"])
def test_types_and_outputs_of_joined_arrays(name):
    call, single = getattr(kw, name), M.astype(np.float32)
    same(name, [single, M], 1, dtype=np.float64)
    same(name, [single, single], dtype=np.complex64)
    same(name, [M, M], dtype=np.int32, casting="unsafe")
    expected = getattr(np, name)([M, M], 1)
    out = kw.empty(expected.shape, "float64")
    assert call([kw.asarray(M), kw.asarray(M)], 1, out) is out
    compare(out, expected)
    x = kw.asarray(M)
    with pytest.raises(kw.ArgumentError, match="int32 by the rule 'same_kind'"):
        call([x, x], dtype="int32")
    with pytest.raises(kw.ArgumentError, match="out or dtype"):
        call([x, x], 1, out, dtype="float64")
    with pytest.raises(kw.InvalidArgument, match="out of shape"):
        call([x, x], 1, x)


def test_choices_positions_and_outputs():
    out = kw.empty((3, 2), "float64")
    assert kw.take(kw.asarray(M), [0, 5], 1, out, "wrap") is out
    compare(out, np.take(M, [0, 5], 1, mode="wrap"))
    same("compress", [True, False, True], M, 0)
    same("compress", [0, 1], M)
    same("extract", [True, False, True], V[:3])
    found = kw.empty((2, 4), "float64")
    assert kw.compress([1, 0, 1], kw.asarray(M), 0, found) is found
    compare(found, M[::2])
    index = kw.asarray(WHOLE[:7] % 3)
    choices = [kw.asarray(V), 2, kw.asarray(V + 1)]
    compare(kw.choose(index, choices), np.choose(WHOLE[:7] % 3, [V, 2, V + 1]))
    target = kw.empty(7, "float64")
    assert kw.choose(index, choices, target, "wrap") is target
    compare(kw.ix_([0, 2], [True, False, True]), np.ix_([0, 2], [True, False, True]))
    compare(kw.ravel_multi_index(([0, 1], [2, 3]), (3, 4)), np.array([2, 7]))
    compare(kw.ravel_multi_index((kw.asarray([0, 1]), 2), (3, 4)), np.array([2, 6]))


def test_numbers_beside_arrays():
    single = V.astype(np.float32)
    for name in ("outer", "inner", "kron", "dot"):
        same(name, V, 2)
        same(name, 2.5, V)
        assert getattr(kw, name)(kw.asarray(single), 2.5).dtype == np.float32
    same("polyval", V, 2.5)
    points = np.array([0.0, 1.0]), np.array([2.0, 3.0])
    for x in (0.5, [0.5, 3.0], 2, np.float64(0.25)):
        same("interp", x, *points)
    assert kw.interp(0.5, *(kw.asarray(p.astype(np.float32)) for p in points)).dtype == np.float32
    with pytest.raises(kw.ArgumentError, match="real numbers"):
        kw.interp(1j, *map(kw.asarray, points))


@pytest.mark.parametrize("name", ["linspace", "logspace", "geomspace"])
def test_sequences_between_arrays(name):
    starts, stops = np.array([1.0, 2.0]), np.array([[4.0], [5.0]])
    for axis in (0, 1, -1):
        same(name, starts, stops, 4, axis=axis)
    same(name, starts, 5, 4, endpoint=False)
    same(name, starts, 5, 1)
    same(name, starts, 5, 0)
    assert getattr(kw, name)(kw.asarray(starts.astype(np.float32)), 3.0, 3).dtype == np.float32
    if name == "linspace":
        ends = kw.asarray(np.array([1e16])), kw.asarray(np.array([0.1]))
        assert kw.linspace(*ends, 3)[-1].item() == 0.1  # 1e16 + (0.1 - 1e16) is 0
        same(name, starts, stops, 4, retstep=True)
        same(name, np.array([1, -2]), np.array([7, 9]), 4, dtype=np.int64)
        compare(kw.linspace([0.0, 1], [2.0, 3], 3, dtype="float64", axis=1),
                np.linspace([0.0, 1], [2.0, 3], 3, axis=1))  # fmt: skip
        values, distance = kw.linspace(0, 1, 5, retstep=True)
        assert values.tolist() == [0, 0.25, 0.5, 0.75, 1] and distance == 0.25
        assert np.isnan(kw.linspace(0, 1, 1, retstep=True)[1])


def test_matrices_with_numpys_arguments():
    square = M[:, :3] + M[:, :3].T + 1j * (M[:, 1:] - M[:, 1:].T)
    noisy = square + np.tril(RNG.normal(size=(3, 3)), -1)
    x, low = kw.asarray(M), kw.asarray(noisy)
    for side in ("L", "U"):
        compare(kw.linalg.eigvalsh(low, side), np.linalg.eigvalsh(noisy, side), rtol=1e-10)
        values, vectors = kw.linalg.eigh(low, side)
        compare(values, np.linalg.eigh(noisy, side)[0], rtol=1e-10)
        full = np.tril(noisy) if side == "L" else np.triu(noisy)
        whole = full + np.conj(full.T) - np.diag(np.real(np.diag(noisy)))
        compare(kw.matmul(kw.asarray(whole), vectors), vectors.numpy() * values.numpy(), rtol=1e-10)
    with pytest.raises(kw.ArgumentError, match="UPLO"):
        kw.linalg.eigh(low, "l")
    compare(kw.linalg.svd(x, True, False), np.linalg.svd(M, True, False), rtol=1e-10)
    thin = M[:, :2] @ M[:2, :3]
    for bound in (1e-12, 1.0, 100.0):
        assert int(kw.linalg.matrix_rank(kw.asarray(thin), bound)) == np.linalg.matrix_rank(
            thin, bound
        )
    compare(kw.linalg.pinv(kw.asarray(thin), 1e-10), np.linalg.pinv(thin, 1e-10), rtol=1e-9)
    found = kw.linalg.lstsq(kw.asarray(thin), kw.asarray(V[:3]), 1e-10)
    compare(found[0], np.linalg.lstsq(thin, V[:3], 1e-10)[0], rtol=1e-9)
    compare(kw.linalg.cond(kw.asarray(M[:, :3]), 1), np.linalg.cond(M[:, :3], 1), rtol=1e-9)
    triangle = kw.linalg.qr(x, "complete")[1]
    compare(kw.abs(triangle), np.abs(np.linalg.qr(M, "complete")[1]), rtol=1e-9)
    for call in (kw.linalg.matrix_rank, kw.linalg.pinv):
        with pytest.raises(kw.ArgumentError, match="one argument"):
            call(x, 0.1, rtol=0.1)


def test_methods_with_numpys_arguments():
    x, whole = kw.asarray(M), kw.asarray(WHOLE[:4] % 2)
    calls = [("diagonal", (1,)), ("diagonal", ()), ("trace", ()), ("trace", (-1,))]
    calls += [("argsort", (0, "stable")), ("take", ([0, 9], 1, None, "clip"))]
    for name, args in calls:
        compare(getattr(x, name)(*args), np.asarray(getattr(M, name)(*args)))
    compare(x.dot(x.T), M.dot(M.T))
    compare(kw.asarray(np.sort(V)).searchsorted(x, "right"), np.sort(V).searchsorted(M, "right"))
    compare(whole.choose([x[0], x[1]]), (WHOLE[:4] % 2).choose([M[0], M[1]]))
    found = np.take_along_axis(M, x.argpartition(2).numpy(), 1)
    np.testing.assert_array_equal(found[:, 2], np.sort(M)[:, 2])
    y = x.copy()
    y.sort(0, "stable")
    compare(y, np.sort(M, 0))
    assert (x.item(5), x.item(-1), x.item(2, 1), x.item((0, 3))) == (
        *(M.item(5), M.item(-1), M.item(2, 1), M.item((0, 3))),
    )
    for position in ((12,), (0, 4)):
        with pytest.raises(IndexError):
            x.item(*position)
    with pytest.raises(kw.InvalidArgument, match="each of 2 axes"):
        x.item(0, 0, 0)


@pytest.mark.parametrize(
    ("name", "args", "options"),
    [
        ("argsort", (M,), {"axis": True}),
        ("trapezoid", (M,), {"axis": True}),
        ("unwrap", (M,), {"axis": True}),
        ("trim_zeros", (M,), {"axis": (0, -2)}),
        ("cov", (M,), {"dtype": "int64"}),
        ("corrcoef", (M,), {"dtype": "int64"}),
        ("ediff1d", (M > 0,), {}),
        ("gradient", (M > 0,), {}),
    ],
)
def test_what_numpy_refuses_is_refused(name, args, options):
    with pytest.raises((TypeError, ValueError)):
        getattr(np, name)(*args, **options)
    with pytest.raises((kw.ArgumentError, kw.InvalidArgument)):
        getattr(kw, name)(*map(kw.asarray, args), **options)


def test_integers_of_i0_are_float64():
    for values in (np.array([True, False]), np.uint8([1, 2, 255]), np.arange(3)):
        same("i0", values)


ALIKE = [
    "median",
    "quantile",
    "percentile",
    "average",
    "cov",
    "corrcoef",
    "isclose",
    "allclose",
    "array_equal",
    "nan_to_num",
    "digitize",
    "nanmedian",
    "nanargmax",
    "nanargmin",
    "nancumsum",
    "nancumprod",
    "nansum",
    "nanmean",
    "nanstd",
    "nanvar",
    "nanmin",
    "nanmax",
    "partition",
    "argpartition",
    "lexsort",
    "interp",
    "select",
    "union1d",
    "intersect1d",
    "setdiff1d",
    "setxor1d",
    "tril_indices",
    "triu_indices",
    "unravel_index",
    "ravel_multi_index",
    "delete",
    "insert",
    "append",
    "hstack",
    "vstack",
    "dstack",
    "column_stack",
    "block",
    "transpose",
    "logspace",
    "geomspace",
    "linspace",
    "rot90",
    "fliplr",
    "flipud",
    "rollaxis",
    "apply_along_axis",
    "dot",
    "inner",
    "outer",
    "kron",
    "vdot",
    "cross",
    "convolve",
    "correlate",
    "gradient",
    "trapezoid",
    "ediff1d",
    "polyfit",
    "polyval",
    "fmax",
    "fmin",
    "rint",
    "fix",
    "gcd",
    "lcm",
    "sinc",
    "unwrap",
    "i0",
    "heaviside",
    "deg2rad",
    "ldexp",
    "packbits",
    "unpackbits",
    "histogram",
    "histogram2d",
    "unique",
    "diff",
    "pad",
    "take",
    "searchsorted",
    "isin",
    "tril",
    "triu",
    "clip",
    "round",
    "sum",
    "mean",
    "var",
    "std",
    "prod",
    "max",
    "min",
    "all",
    "any",
    "cumsum",
    "cumprod",
    "sort",
    "argsort",
    "argmax",
    "argmin",
    "count_nonzero",
    "split",
    "tile",
    "repeat",
    "roll",
    "flip",
    "moveaxis",
    "swapaxes",
    "squeeze",
    "expand_dims",
    "broadcast_to",
    "reshape",
    "ravel",
    "eye",
    "full",
    "zeros",
    "ones",
    "arange",
    "diag",
    "diagonal",
    "fft.fft",
    "fft.ifft",
    "fft.rfft",
    "fft.irfft",
    "fft.hfft",
    "fft.ihfft",
    "fft.fft2",
    "fft.ifft2",
    "fft.rfft2",
    "fft.irfft2",
    "fft.fftn",
    "fft.ifftn",
    "fft.rfftn",
    "fft.irfftn",
]
# What arrays here have no use for, elementwise functions among them, and the mean of var().
ABSENT = {"casting", "dtype", "like", "mean", "order", "signature", "subok", "where"}


def named_parameters(home, name):
    function = functools.reduce(getattr, name.split("."), home)
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [p for p in inspect.signature(function).parameters.values() if p.kind not in kinds]


@pytest.mark.parametrize("name", ALIKE)
def test_arguments_behind_the_first_have_numpys_names_and_places(name):
    theirs, ours = named_parameters(np, name)[1:], named_parameters(kw, name)[1:]
    takes_names = {p.name for p in ours if p.kind != inspect.Parameter.POSITIONAL_ONLY}
    for place, wanted in enumerate(theirs):
        if wanted.kind != inspect.Parameter.POSITIONAL_ONLY and wanted.name not in ABSENT:
            renamed = {"a_min": "min", "a_max": "max"}.get(wanted.name, wanted.name)
            assert renamed in takes_names
            if wanted.kind != inspect.Parameter.KEYWORD_ONLY:
                assert ours[place].name == renamed
                assert ours[place].kind != inspect.Parameter.KEYWORD_ONLY


def test_numpys_names_in_calls():
    rows, vector = kw.asarray(M), kw.asarray(V)
    compare(kw.take(rows, indices=[1, 2], axis=0), np.take(M, [1, 2], axis=0))
    compare(kw.repeat(rows, repeats=[1, 2, 0], axis=0), np.repeat(M, [1, 2, 0], axis=0))
    compare(kw.split(rows, indices_or_sections=[1])[1], np.split(M, [1])[1])
    compare(kw.moveaxis(rows, source=0, destination=-1), M.T)
    compare(kw.swapaxes(rows, axis1=0, axis2=1), M.T)
    compare(kw.searchsorted(kw.sort(vector), v=vector), np.searchsorted(np.sort(V), V))
    compare(kw.isin(vector, test_elements=vector[:3]), np.isin(V, V[:3]))
    compare(kw.pad(vector, pad_width=2, mode="edge"), np.pad(V, 2, "edge"))
    compare(kw.eye(N=3, M=4, k=1, dtype="float64"), np.eye(3, 4, 1))
    compare(kw.linspace(0, 1, 5, False, False, "float64"), np.linspace(0, 1, 5, False))
    compare(
        kw.histogram(vector, 3, (0, 1), True, vector)[0], np.histogram(V, 3, (0, 1), True, V)[0]
    )
    with pytest.raises(kw.ArgumentError, match="endpoint is True or False"):
        kw.linspace(0, 1, 5, "float64")
    with pytest.raises(kw.ArgumentError, match="pad_width is missing"):
        kw.pad(vector)


def test_outputs_by_position():
    x, out = kw.asarray(M), kw.empty((3, 4), "float64")
    for call, expected in ((kw.rint, np.rint(M)), (kw.deg2rad, np.deg2rad(M)), (kw.abs, np.abs(M))):
        assert call(x, out) is out
        compare(out, expected)
    assert kw.fmax(x, 0.0, out) is out
    compare(out, np.fmax(M, 0))
    assert kw.round(x, 1, out) is out
    compare(out, np.round(M, 1))
    square = kw.empty((3, 3), "float64")
    assert kw.matmul(x, x.T, square) is square
    compare(square, M @ M.T)


@pytest.mark.parametrize("name", ["fft", "ifft", "hfft", "fft2", "ifftn", "rfftn", "irfft2"])
def test_outputs_of_transforms(name):
    expected = getattr(np.fft, name)(M)
    out = kw.empty(expected.shape, expected.dtype)
    assert getattr(kw.fft, name)(kw.asarray(M), out=out) is out
    compare(out, expected)
    with pytest.raises(kw.InvalidArgument, match="out of shape"):
        getattr(kw.fft, name)(kw.asarray(M), out=out[:1])


@pytest.mark.parametrize("name", ["tril", "triu"])
def test_triangles_of_a_vector_are_matrices(name):
    for vector in (V, WHOLE, V > 0, V[:0], V[::-2]):
        for k in (-1, 0, 2, 99):
            compare(getattr(kw, name)(kw.asarray(vector), k), getattr(np, name)(vector, k))
    with pytest.raises(kw.InvalidArgument, match="no matrix"):
        getattr(kw, name)(kw.asarray(2.5))


def test_types_of_joined_vectors():
    for name in ("hstack", "vstack"):
        same(name, [V, V], dtype=np.float32, casting="same_kind")
        same(name, [V, V], dtype=np.int32, casting="unsafe")
        with pytest.raises(kw.ArgumentError, match="same_kind"):
            getattr(kw, name)([kw.asarray(V), kw.asarray(V)], dtype="int32")


def test_points_of_interpolation_in_lists():
    points, values = [0.0, 1.0, 2.5], [3.0, -1.0, 4.0]
    compare(
        kw.interp(kw.asarray(V), points, values).astype("float64"), np.interp(V, points, values)
    )
    assert kw.interp(0.5, points, values).item() == 1.0


@pytest.mark.parametrize("method", ["lower", "higher", "nearest", "inverted_cdf",
                                    "closest_observation"])  # fmt: skip
def test_quantiles_that_are_elements_keep_their_type(method):
    for numbers in (WHOLE, WHOLE.astype(np.uint8), WHOLE + 2**60):
        for q in (0.3, [0.1, 0.37, 0.99]):
            same("quantile", numbers, q, method=method)


def test_sets_of_signed_and_unsigned_integers():
    """They are compared by their values, though NumPy's common type is float64."""
    signed = kw.asarray(np.array([0, 1, 2**53, 2**53 + 1, 2**63 - 1, -1], np.int64))
    unsigned = kw.asarray(np.array([1, 2**53 + 1, 2**63, 2**64 - 1], np.uint64))
    values, at, there = kw.intersect1d(signed, unsigned, return_indices=True)
    assert (at.tolist(), there.tolist()) == ([1, 3], [0, 1])
    assert values.dtype == "float64" and values.tolist() == [1.0, float(2**53 + 1)]
    assert kw.intersect1d(unsigned, signed).tolist() == values.tolist()
    assert kw.setdiff1d(signed, unsigned).tolist() == [-1, 0, 2**53, 2**63 - 1]
    assert kw.setxor1d(signed, unsigned).size == 6
    assert kw.intersect1d(unsigned[2:], signed).size == 0


def test_lists_beside_float64_have_all_their_digits():
    x = np.array([1.7e9 + 30, 1.7e9 + 90])
    places, values = [1.7e9, 1.7e9 + 60, 1.7e9 + 120], [0.1, 1.1, 2.1]
    found = kw.interp(kw.asarray(x), places, values)
    np.testing.assert_allclose(found.numpy(), np.interp(x, places, values), rtol=1e-12)
