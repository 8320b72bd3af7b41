"""sort, argsort, searchsorted and isin beside NumPy."""

import pathlib
import struct

import numpy as np
import pytest
from sort_values import REAL, order, same_bits, values

import kernwright as kw


def check(x, array=None, **options):
    """sort and argsort of `array`, whose values are `x`."""
    array = kw.asarray(x) if array is None else array
    options = {"axis": -1, "descending": False, **options}
    wanted = order(x, **options)
    indices = kw.argsort(array, **options)
    assert indices.dtype == np.int64 and indices.is_contiguous
    np.testing.assert_array_equal(indices.numpy(), wanted)
    result = kw.sort(array, **options)
    assert result.is_contiguous
    assert same_bits(result.numpy(), np.take_along_axis(x, wanted, options["axis"]))


@pytest.mark.parametrize("dtype", REAL)
def test_every_dtype_by_every_method(dtype):
    for n in (9, 1500, 4500):
        check(values(kw, (2, n), dtype))
    check(values(kw, (3, 70), dtype), descending=True)
    check(values(kw, (1, 4097), dtype), descending=True)


@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 63, 64, 65, 127, 129, 511, 513, 1023, 1024, 1025,
                               2047, 2048, 2049, 4095, 4096])  # fmt: skip
def test_lengths_of_rows(n):
    check(values(kw, (5, n), "float32"))


def test_long_rows_of_several_blocks():
    check(values(kw, (70_001,), "float32"))
    check(values(kw, (3, 12_289), "int32"), descending=True)
    few = np.random.default_rng(1).integers(0, 2, 20_000).astype(np.int64)
    check(few)
    check(np.zeros(9_000, np.float32))


@pytest.mark.parametrize("axis", [0, 1, 2, -2])
def test_axes(axis):
    check(values(kw, (6, 5, 7), "float32"), axis=axis)
    check(values(kw, (3, 4, 5), "int16"), axis=axis, descending=True)


def test_the_flat_array():
    x = values(kw, (4, 6), "float32")
    assert same_bits(kw.sort(kw.asarray(x), axis=None).numpy(), x.ravel()[order(x.ravel())])
    assert kw.argsort(kw.asarray(x), axis=None).shape == (24,)


def test_views():
    x = values(kw, (12, 1302), "float32")
    array = kw.asarray(x)
    for index in [np.s_[::-1, ::-1], np.s_[::2, 1:], np.s_[3:, 5:900:3], np.s_[1, 1:]]:
        check(x[index], array[index])
    check(x.T, array.T)
    check(x.T, array.T, axis=0)
    bits = kw.asarray(np.arange(99, dtype=np.uint8)[::-1].copy())
    check(bits[1:].numpy(), bits[1:])
    row = kw.asarray(np.float32([2, 1, 3]))._broadcast((4, 3))
    np.testing.assert_array_equal(kw.sort(row).numpy(), [[1, 2, 3]] * 4)
    np.testing.assert_array_equal(kw.argsort(row, axis=0).numpy(), [[k] * 3 for k in range(4)])


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3), (2, 0, 4)])
def test_nothing_to_sort(shape):
    for axis in range(len(shape)):
        assert kw.sort(kw.zeros(shape), axis=axis).shape == shape
        assert kw.argsort(kw.zeros(shape), axis=axis).shape == shape


def test_many_rows():
    check(values(kw, (3000, 6), "int8"))
    check(values(kw, (1001, 33), "uint16"), descending=True)


def test_methods():
    x = values(kw, (5, 40), "float32")
    array = kw.asarray(x)
    np.testing.assert_array_equal(array.argsort().numpy(), order(x))
    assert array.sort(axis=0, descending=True) is None
    x = np.take_along_axis(x, order(x, 0, True), 0)
    assert same_bits(array.numpy(), x)
    array[:, ::2].sort()
    x[:, ::2] = np.take_along_axis(x[:, ::2], order(x[:, ::2]), -1)
    assert same_bits(array.numpy(), x)
    frozen = kw.asarray(np.arange(3))._broadcast((2, 3))
    with pytest.raises(ValueError):
        frozen.sort()


@pytest.mark.parametrize("function", [kw.sort, kw.argsort])
def test_what_cannot_be_sorted(function):
    x = kw.ones((2, 3))
    with pytest.raises(ValueError, match="2"):
        function(x, axis=2)
    with pytest.raises(ValueError):
        function(x, axis=-3)
    with pytest.raises(ValueError):
        function(kw.ones(()))
    with pytest.raises(TypeError, match="axis"):
        function(x, axis=1.5)
    with pytest.raises(TypeError, match="complex"):
        function(kw.ones(3, "complex64"))
    with pytest.raises(TypeError, match="asarray"):
        function(np.ones(3))
    with pytest.raises(TypeError, match="asarray"):
        function([3, 1])
    with pytest.raises(TypeError):
        function(x, order="C")


def test_a_graph_sorts_anew_at_each_launch():
    x = kw.empty((2, 5000))
    short = kw.empty((9, 40))
    graph = kw.Graph()
    with graph.capture():
        long_result, places, short_result = kw.sort(x), kw.argsort(x), kw.sort(short)
    for seed in (1, 2):
        host = values(kw, (2, 5000), "float32", seed)
        host_short = values(kw, (9, 40), "float32", seed)
        x[...] = host
        short[...] = host_short
        graph.launch()
        np.testing.assert_array_equal(long_result.numpy(), np.sort(host))
        np.testing.assert_array_equal(places.numpy(), order(host))
        np.testing.assert_array_equal(short_result.numpy(), np.sort(host_short))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", ["int8", "uint64", "float16", "bfloat16", "float32", "float64"])
def test_search(dtype, side):
    x = values(kw, (1000,), dtype)
    x = x[order(x)]
    wanted = values(kw, (7, 30), dtype, seed=5)
    found = kw.searchsorted(kw.asarray(x), kw.asarray(wanted), side=side)
    assert found.dtype == np.int64
    # Ranks of both together are numbers without NaN.
    together = np.unique(
        np.concatenate([x, wanted.ravel()]).astype(
            np.float64 if x.dtype.kind not in "iu" else x.dtype
        ),
        return_inverse=True,
    )[1].ravel()
    reference = np.searchsorted(together[: x.size], together[x.size :], side)
    np.testing.assert_array_equal(found.numpy(), reference.reshape(wanted.shape))


def test_search_by_a_sorter_and_views():
    x = np.float32([5, 1, 4, 1])
    array = kw.asarray(x)
    sorter = kw.argsort(array)
    for wanted in (4.0, 0, np.float32(9)):
        found = kw.searchsorted(array, wanted, side="right", sorter=sorter)
        assert found.shape == ()
        assert found.item() == np.searchsorted(x, wanted, "right", sorter=np.argsort(x))
    found = kw.searchsorted(array, array[::-1], sorter=sorter.astype("int32"))
    np.testing.assert_array_equal(found.numpy(), [0, 2, 0, 3])
    wild = kw.asarray(np.int64([-5, 99, 2, 0]))
    kw.searchsorted(array, 3.0, sorter=wild).numpy()  # reads nothing outside
    rising = kw.asarray(np.arange(10))
    np.testing.assert_array_equal(kw.searchsorted(rising, 2.5).numpy(), 3)
    np.testing.assert_array_equal(kw.searchsorted(rising[::2], kw.asarray([3, 9])).numpy(), [2, 5])
    assert kw.searchsorted(kw.zeros(0), kw.ones((2, 2))).numpy().tolist() == [[0, 0], [0, 0]]
    assert kw.searchsorted(rising, kw.zeros((0, 3))).shape == (0, 3)


def test_wrong_searches():
    x = kw.arange(4)
    with pytest.raises(ValueError, match="side"):
        kw.searchsorted(x, x, side="middle")
    with pytest.raises(ValueError, match="one dimension"):
        kw.searchsorted(kw.ones((2, 2)), kw.ones(2))
    with pytest.raises(ValueError, match="Incompatible dimensions"):
        kw.searchsorted(x, x, sorter=kw.arange(3))
    with pytest.raises(TypeError, match="integers"):
        kw.searchsorted(x, x, sorter=kw.ones(4))
    with pytest.raises(TypeError, match="asarray"):
        kw.searchsorted(x, [1, 2])
    with pytest.raises(TypeError, match="complex"):
        kw.searchsorted(kw.ones(3, "complex64"), kw.ones(3, "complex64"))


@pytest.mark.parametrize("dtype", ["bool", "int16", "uint32", "float16", "float32"])
def test_membership(dtype):
    x = values(kw, (30, 11), dtype)
    among = values(kw, (500,), dtype, seed=3)[::7]
    wide = [v.astype(np.float64) for v in (x, among)]
    for invert in (False, True):
        found = kw.isin(kw.asarray(x), kw.asarray(among), invert=invert)
        assert found.dtype == np.bool_
        np.testing.assert_array_equal(found.numpy(), np.isin(*wide, invert=invert))


def test_membership_of_numbers_and_of_mixed_types():
    x = kw.asarray(np.int32([[1, 2], [3, 4]]))
    np.testing.assert_array_equal(kw.isin(x, 3).numpy(), [[False, False], [True, False]])
    np.testing.assert_array_equal(kw.isin(x, 2.5, invert=True).numpy(), [[True] * 2] * 2)
    np.testing.assert_array_equal(kw.isin(x, kw.asarray([4.0, 9.5])).numpy(), [[0, 0], [0, 1]])
    assert kw.isin(2, x).item() and not kw.isin(7, x).item()
    assert not kw.isin(x, kw.zeros(0, "int32")).numpy().any()
    assert kw.isin(kw.zeros((0, 2)), x).shape == (0, 2)
    large = kw.asarray(np.int32([1]))
    assert not kw.isin(large, 1 << 40).item()


def test_the_kernels_under_all_checks(sim):
    with kw.checks("memory", "init", "race", "sync") as report:
        check(values(kw, (3, 40), "float32"))
        check(values(kw, (2, 100), "float64"))
        check(values(kw, (2, 1030), "float16"))
        check(values(kw, (1, 4500), "int16"))
        check(values(kw, (2, 7000), "float32"), descending=True)
        x = kw.asarray(np.sort(values(kw, (300,), "int32")))
        kw.searchsorted(x, x, sorter=kw.argsort(x))
        kw.isin(x, x[::2])
        sim.synchronize()
    report.raise_if_any()


def sort_wide(x, tile=(256, 8)):
    """What the kernels for rows of 2^30 elements and more make of rows of uint16."""
    text = (pathlib.Path(__file__).parents[2] / "kernels_src/sort/radix_sort.cu").read_text()
    kernels = kw.module(text)
    rows, n = x.shape
    threads, items = tile
    tiles, chunks, rising = -(-n // (threads * items)), 3, bytes(32)
    source, indices = kw.asarray(x), kw.empty(x.shape, "int64")
    values = [kw.empty(x.shape, "uint16") for _ in range(2)]
    numbers = [kw.empty(x.shape, "uint64") for _ in range(2)]
    counts, arrived = kw.zeros((rows, 2, 256), "uint64"), kw.zeros(rows, "uint32")
    idle, tickets = kw.empty(rows, "uint32"), kw.zeros(2, "uint32")
    boards = [kw.empty(rows * tiles * 256, "uint64") for _ in range(2)]
    kernels["count_digits<UInt16, false, true>"][rows * chunks, 256](
        source, counts, arrived, idle, boards[0], boards[0].size, n, -(-n // chunks), chunks, rising
    )
    addresses = [array.ptr for array in (source, *values, *numbers, indices)]
    sides = struct.pack("<6Qi4x", *addresses, 1)
    move = kernels[f"move_digits<UInt16, false, {threads}, {items}, true, true>"]
    for place, following in enumerate((boards[1], None)):
        move[rows * tiles, threads, None, 8 * threads * items](
            sides, counts, idle, tickets[place:], boards[place], following, n, tiles, place, rising
        )
    return values[0].numpy(), indices.numpy()


def test_the_instance_for_rows_of_2_to_the_30_elements():
    """No test has memory for such rows; the kernels do not care how many elements there are."""
    x = np.random.default_rng(2).integers(0, 1 << 16, (2, 9000)).astype(np.uint16)
    x[1] &= 0xFF00
    with kw.checks("memory", "init", "race", "sync") as report:
        found, places = sort_wide(x)
    report.raise_if_any()
    np.testing.assert_array_equal(places, np.argsort(x, kind="stable"))
    np.testing.assert_array_equal(found, np.sort(x))


@pytest.mark.parametrize("dtype", ["int32", "uint64", "float64"])
def test_rows_without_one_digit_or_another(dtype):
    """Passes that would move nothing are left out, of each row others."""
    rng = np.random.default_rng(4)
    x = rng.integers(0, 1 << 16, (5, 4200)).astype(dtype)
    x[0] %= 256
    x[1] = 7
    if dtype == "uint64":
        x[2] <<= np.uint64(24)
        x[3] |= np.uint64(1 << 40)
    for descending in (False, True):
        check(x, descending=descending)
    check(x[1:3] * x.dtype.type(3), kw.asarray(x[1:3]) * 3)
