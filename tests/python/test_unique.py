"""unique_*, nonzero and its kin, masks, bincount and histogram beside NumPy."""

import itertools

import numpy as np
import pytest
from sort_values import REAL, ranks, same_bits, values

import kernwright as kw
from kernwright import _core


def reference(x):
    """Values, first places, inverse and counts, each NaN for itself."""
    flat = x.reshape(-1)
    wide = flat if flat.dtype.kind in "iub" else flat.astype(np.float64)
    numbers = np.unique(wide, return_inverse=True)[1].ravel()
    nan = wide != wide
    numbers[nan] = numbers.max(initial=0) + 1 + np.arange(nan.sum())
    _, first, inverse, counts = np.unique(
        numbers, return_index=True, return_inverse=True, return_counts=True
    )
    return flat[first], first, inverse.reshape(x.shape), counts


@pytest.mark.parametrize("dtype", REAL)
def test_unique_of_every_dtype(dtype):
    x = values(kw, (5, 400), dtype)
    made = kw.unique_all(kw.asarray(x))
    wanted = reference(x)
    assert same_bits(made.values.numpy(), wanted[0])
    for ours, theirs in zip(made[1:], wanted[1:], strict=True):
        assert ours.dtype == np.int64
        np.testing.assert_array_equal(ours.numpy(), theirs)


@pytest.mark.parametrize("shape", [(1,), (), (2, 3), (1025,), (9001,)])
def test_unique_of_shapes(shape):
    x = values(kw, shape, "int16").reshape(shape) // 100
    array = kw.asarray(x)
    found, first, inverse, counts = reference(x)
    assert same_bits(kw.unique_values(array).numpy(), found)
    both = kw.unique_counts(array)
    np.testing.assert_array_equal(both.values.numpy(), found)
    np.testing.assert_array_equal(both.counts.numpy(), counts)
    back = kw.unique_inverse(array)
    np.testing.assert_array_equal(back.inverse_indices.numpy(), inverse)
    np.testing.assert_array_equal(back.values.numpy(), found)
    np.testing.assert_array_equal(kw.unique_all(array).indices.numpy(), first)


def test_unique_with_numpys_arguments():
    x = values(kw, (5, 40), "int16") // 100
    array = kw.asarray(x)
    np.testing.assert_array_equal(kw.unique(array).numpy(), np.unique(x))
    for asked in itertools.product((False, True), repeat=3):
        if not any(asked):
            continue
        made, wanted = kw.unique(array, *asked), np.unique(x, *asked)
        assert isinstance(made, tuple) and len(made) == len(wanted)
        names = ["values", *itertools.compress(("index", "inverse", "counts"), asked)]
        for name, ours, theirs in zip(names, made, wanted, strict=True):
            shape = x.shape if name == "inverse" else theirs.shape
            np.testing.assert_array_equal(ours.numpy(), theirs.reshape(shape), err_msg=name)
    assert kw.unique(kw.zeros(0), return_counts=True)[1].shape == (0,)
    with pytest.raises(TypeError, match="asarray"):
        kw.unique([1, 2])


def test_unique_of_nothing_and_of_views():
    made = kw.unique_all(kw.zeros((0, 3)))
    assert [part.shape for part in made] == [(0,), (0,), (0, 3), (0,)]
    x = values(kw, (40, 31), "float32")
    array = kw.asarray(x)
    made = kw.unique_all(array.T[::-2])
    for ours, theirs in zip(made, reference(x.T[::-2]), strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)
    with pytest.raises(TypeError, match="asarray"):
        kw.unique_values([1, 2])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", [(), (7, 3), (0, 2), (3001,)])
def test_unique_of_complex_numbers(shape, dtype):
    rng = np.random.default_rng(7)
    x = (rng.integers(-9, 9, shape) + 1j * rng.integers(-9, 9, shape)).astype(dtype)
    x = np.where(rng.random(shape) < 0.1, x.conj() * 0, x).astype(dtype)  # -0 among them
    made = kw.unique_all(kw.asarray(x))
    wanted = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    for ours, theirs in zip(made, wanted, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.reshape(ours.shape))
    assert made.values.dtype == x.dtype
    if x.size > 100:  # each NaN for itself, whichever part it is
        x[[3, 5, 9]] = [complex(np.nan, 1), complex(np.nan, 1), complex(1, np.nan)]
        with_nan = kw.unique_all(kw.asarray(x).reshape(-1))
        assert int(kw.isnan(with_nan.values).sum()) == 3
        again = with_nan.values.numpy()[with_nan.inverse_indices.numpy()]
        np.testing.assert_array_equal(again, x)
        assert with_nan.counts.numpy()[np.isnan(with_nan.values.numpy())].tolist() == [1] * 3


@pytest.mark.parametrize("dtype", [*REAL, "complex64", "complex128"])
def test_nonzero_of_every_dtype(dtype):
    x = (np.arange(40 * 31) % 3 == 0).reshape(40, 31).astype(np.dtype(getattr(kw, dtype, bool)))
    for ours, theirs in zip(kw.nonzero(kw.asarray(x)), np.nonzero(x), strict=True):
        assert ours.dtype == np.int64
        np.testing.assert_array_equal(ours.numpy(), theirs)


@pytest.mark.parametrize(
    "shape",
    [(1,), (0,), (3, 0), (13, 17), (3, 4, 5), (20_001,), (2, 1, 3, 1, 2, 1, 2, 3, 2, 2)],
)
def test_places_of_set_elements(shape):
    x = np.random.default_rng(4).integers(0, 3, shape) % 2
    x = x.astype(bool)
    array = kw.asarray(x)
    for ours, theirs in zip(array.nonzero(), np.nonzero(x), strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)
    np.testing.assert_array_equal(kw.argwhere(array).numpy(), np.argwhere(x))
    np.testing.assert_array_equal(kw.flatnonzero(array).numpy(), np.flatnonzero(x))


def test_places_in_views_and_special_values():
    x = np.float32([0, -0.0, np.nan, 1e-45, np.inf])
    np.testing.assert_array_equal(kw.flatnonzero(kw.asarray(x)).numpy(), [2, 3, 4])
    mask = np.random.default_rng(4).integers(0, 2, (50, 70)).astype(bool)
    array = kw.asarray(mask)
    for index in [np.s_[::-1], np.s_[:, ::3], np.s_[1, 3:], np.s_[7]]:
        np.testing.assert_array_equal(kw.argwhere(array[index]).numpy(), np.argwhere(mask[index]))
    assert kw.flatnonzero(kw.zeros(99)).shape == (0,)
    assert kw.argwhere(kw.ones(())).shape == (1, 0)
    assert kw.argwhere(kw.zeros(())).shape == (0, 0)
    with pytest.raises(ValueError, match="without dimensions"):
        kw.nonzero(kw.ones(()))


@pytest.mark.parametrize("dtype", ["bool", "float16", "int32", "float64", "complex128"])
def test_masks_choose_elements_and_parts(dtype):
    x = np.arange(30 * 7 * 3).reshape(30, 7, 3).astype(dtype)
    array = kw.asarray(x)
    rng = np.random.default_rng(2)
    for ndim in (0, 1, 2, 3):
        mask = np.asarray(rng.integers(0, 2, x.shape[:ndim]).astype(bool))
        chosen = _core._compress(array, kw.asarray(mask))
        np.testing.assert_array_equal(chosen.numpy(), x[mask])
    mask = rng.integers(0, 2, (3, 7)).astype(bool)
    chosen = _core._compress(array[::-1].T, kw.asarray(mask))
    np.testing.assert_array_equal(chosen.numpy(), x[::-1].T[mask])


def test_wrong_masks():
    x = kw.ones((3, 4))
    assert _core._compress(kw.ones((3, 0)), kw.ones(3, "bool")).shape == (3, 0)
    with pytest.raises(ValueError, match=r"Incompatible dimensions.*\(4,\).*\(3, 4\)"):
        _core._compress(x, kw.ones(4, "bool"))
    with pytest.raises(ValueError, match="Incompatible dimensions"):
        _core._compress(x, kw.ones((3, 4, 1), "bool"))
    with pytest.raises(TypeError, match="bool"):
        _core._compress(x, kw.ones((3, 4), "int32"))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64", "uint64"])
def test_bincount(dtype):
    x = np.random.default_rng(6).integers(0, 90, 5000) % (2 if dtype == "bool" else 90)
    array = kw.asarray(x.astype(dtype))
    for minlength in (0, 1, 300, 5000):
        counts = kw.bincount(array, minlength=minlength)
        assert counts.dtype == np.int64
        np.testing.assert_array_equal(counts.numpy(), np.bincount(x, minlength=minlength))
    weights = np.random.default_rng(7).standard_normal(5000).astype(np.float32)
    sums = kw.bincount(array, kw.asarray(weights), minlength=100)
    assert sums.dtype == np.float64
    np.testing.assert_allclose(sums.numpy(), np.bincount(x, weights, 100), rtol=1e-12, atol=1e-12)
    again = kw.bincount(array, kw.asarray(weights), minlength=100)
    assert same_bits(sums.numpy(), again.numpy())


def test_bincount_of_many_bins_and_of_nothing():
    x = np.random.default_rng(6).integers(0, 70_000, 3000)
    weights = np.random.default_rng(7).standard_normal(3000)
    array = kw.asarray(x)
    np.testing.assert_array_equal(kw.bincount(array).numpy(), np.bincount(x))
    sums = kw.bincount(array, kw.asarray(weights))
    np.testing.assert_allclose(sums.numpy(), np.bincount(x, weights), rtol=1e-12, atol=1e-14)
    assert kw.bincount(kw.zeros(0, "int32"), minlength=3).numpy().tolist() == [0, 0, 0]
    assert kw.bincount(kw.zeros(0, "int32")).shape == (0,)
    np.testing.assert_array_equal(kw.bincount(array[::-3]).numpy(), np.bincount(x[::-3]))


def test_wrong_bincounts():
    with pytest.raises(ValueError, match="-4"):
        kw.bincount(kw.asarray([3, -4]))
    with pytest.raises(ValueError, match=r"\(2, 2\)"):
        kw.bincount(kw.ones((2, 2), "int32"))
    with pytest.raises(TypeError, match="float32"):
        kw.bincount(kw.ones(3))
    with pytest.raises(ValueError, match="Incompatible dimensions"):
        kw.bincount(kw.arange(3), kw.ones(4))
    with pytest.raises(ValueError, match="minlength"):
        kw.bincount(kw.arange(3), minlength=-1)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "uint8"])
def test_histogram(dtype):
    rng = np.random.default_rng(8)
    x = (rng.standard_normal((50, 60)) * 40 + 100).clip(0, 250).astype(dtype)
    array = kw.asarray(x)
    edges = np.asarray([20.0, 50.5, 50.5, 90.0, 200.0])
    many = 40 if dtype == "float16" else 5000
    for options in ({}, {"bins": 7, "range": (30, 180)}, {"bins": edges}, {"bins": [1, 2, 300]},
                    {"bins": many}, {"bins": 33, "density": True}):  # fmt: skip
        counts, found = kw.histogram(array, **options)
        wanted, theirs = np.histogram(x, **options)
        np.testing.assert_allclose(found.numpy(), theirs, rtol=1e-12)
        assert found.dtype == theirs.dtype
        if "density" in options:
            np.testing.assert_allclose(counts.numpy(), wanted, rtol=1e-12)
        else:
            assert counts.dtype == np.int64
            np.testing.assert_array_equal(counts.numpy(), wanted)


def test_histogram_with_weights():
    rng = np.random.default_rng(9)
    x, weights = rng.standard_normal((2, 4000))
    for options in ({"bins": 11}, {"bins": [-1.0, 0, 0.5]}, {"bins": 4, "density": True}):
        counts, _ = kw.histogram(kw.asarray(x), weights=kw.asarray(weights), **options)
        wanted, _ = np.histogram(x, weights=weights, **options)
        np.testing.assert_allclose(counts.numpy(), wanted, rtol=1e-9)
    halves = kw.histogram(kw.asarray(x), weights=kw.ones(4000, "float32"))[0]
    assert halves.dtype == np.float32 and halves.numpy().sum() == 4000


def test_histogram_borders():
    x = np.float64([0, 0.1, 0.2, 0.30000000000000004, 0.7, 0.9999999999999999, 1, 2, -1, np.nan])
    for bins in (3, 10, 49, 100):
        counts, edges = kw.histogram(kw.asarray(x), bins, (0, 1))
        wanted, _ = np.histogram(x, bins, (0, 1))
        np.testing.assert_array_equal(counts.numpy(), wanted)
        by_edges, same = kw.histogram(kw.asarray(x), edges)
        np.testing.assert_array_equal(by_edges.numpy(), wanted)
        assert same is edges
    assert kw.histogram(kw.zeros(0))[0].numpy().tolist() == [0] * 10
    counts, edges = kw.histogram(kw.ones(5), 2)
    assert counts.numpy().tolist() == [0, 5] and edges.numpy().tolist() == [0.5, 1, 1.5]
    assert kw.histogram(kw.asarray(x[:6]).astype("bfloat16"), 4, (0, 1))[0].numpy().sum() == 6


def test_wrong_histograms():
    x = kw.asarray(np.float32([1, np.nan]))
    for options, text in [
        ({}, "not finite"),
        ({"range": (1, 0)}, "falls"),
        ({"bins": 0}, "from 1"),
        ({"bins": 10**12}, "from 1"),
        ({"bins": 99, "range": (1, 1.000001)}, "too many"),
        ({"bins": [3, 2]}, "rise"),
        ({"bins": [3]}, "two or more"),
        ({"bins": kw.ones((2, 2))}, "one dimension"),
        ({"range": (0, 2), "weights": kw.ones(3)}, "Incompatible dimensions"),
    ]:
        with pytest.raises(ValueError, match=text):
            kw.histogram(x, **options)
    for options in ({"bins": "auto"}, {"bins": 2.5}, {"range": (0, 2), "weights": [1, 2]}):
        with pytest.raises(TypeError):
            kw.histogram(x, **options)
    with pytest.raises(TypeError, match=r"range is \(low, high\), got 1"):
        kw.histogram(x, range=1)
    with pytest.raises(TypeError, match="complex"):
        kw.histogram(kw.ones(3, "complex64"))


def test_counts_come_to_the_host_only_outside_of_captures():
    x = kw.ones(100, "int32")
    for work in (kw.flatnonzero, kw.unique_values, kw.bincount):
        graph = kw.Graph()
        with pytest.raises(kw.CaptureError), graph.capture():
            work(x)


def test_the_kernels_under_all_checks(sim):
    x = values(kw, (3000,), "float32")
    array = kw.asarray(x)
    with kw.checks("memory", "init", "race", "sync") as report:
        kw.unique_all(array)
        kw.argwhere(array.reshape(60, 50))
        mask = kw.asarray(ranks(x) % 2 == 0)
        _core._compress(array, mask)
        _core._compress(array.reshape(1500, 2), mask[:1500])
        numbers = kw.asarray(np.arange(3000) % 70)
        kw.bincount(numbers, kw.ones(3000))
        kw.bincount(numbers)
        kw.histogram(kw.ones(3000), density=True)
        kw.histogram(kw.ones(3000), weights=kw.ones(3000), bins=3)
        sim.synchronize()
    report.raise_if_any()
