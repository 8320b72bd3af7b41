"""Arguments of NumPy that functions of the array API standard do not have: against NumPy."""

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
        compare(kw.linspace([0.0, 1], [2.0, 3], 3, "float64", axis=1),
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
