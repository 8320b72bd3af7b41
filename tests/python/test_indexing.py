"""Indexing by arrays and masks, take, gather, scatter and put, against NumPy."""

import itertools

import hypothesis
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from conftest import DTYPES

import kernwright as kw

UNITS = ("uint8", "float16", "float32", "float64", "complex128")


def same(found, expected):
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found.numpy(), expected)


@st.composite
def keys(draw, shape):
    """A key for an array of this shape, with at least one array in it."""
    common = draw(hnp.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=3))
    parts, axis = [], 0
    while axis < len(shape) and (axis < 1 or draw(st.booleans())):
        kind = draw(st.sampled_from(["slice", "int", "array", "array", "mask", "none"]))
        extent = shape[axis]
        if kind == "slice":
            parts.append(draw(st.slices(extent)))
        elif kind == "int" and extent:
            parts.append(draw(st.integers(-extent, extent - 1)))
        elif kind == "array" and extent:
            cut = draw(st.integers(0, len(common)))
            sides = tuple(draw(st.sampled_from([1, side])) for side in common[cut:])
            positions = hnp.arrays("int64", sides, elements=st.integers(-extent, extent - 1))
            parts.append(draw(positions))
        elif kind == "mask":
            count = draw(st.integers(1, min(2, len(shape) - axis)))
            parts.append(draw(hnp.arrays("bool", shape[axis : axis + count])))
            axis += count - 1
        elif kind == "none":
            parts.append(None)
            continue
        else:
            parts.append(slice(None))
        axis += 1
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), Ellipsis)
        used = [p for p in parts if p is not None and p is not Ellipsis]
        masks = [p.ndim for p in used if isinstance(p, np.ndarray) and p.dtype.kind == "b"]
        taken = len(used) - len(masks) + sum(masks)
        if parts[-1] is not Ellipsis and taken < len(shape):
            hypothesis.assume(False)  # the rest would stand at other axes
    hypothesis.assume(any(isinstance(part, np.ndarray) for part in parts))
    return tuple(parts)


def on_device(key, where):
    return tuple(
        kw.asarray(part) if where == "device" and isinstance(part, np.ndarray) else part
        for part in key
    )


@hypothesis.settings(max_examples=60, deadline=None)
@hypothesis.given(st.data(), hnp.array_shapes(max_dims=4, min_side=0, max_side=4))
def test_index_arrays_agree_with_numpy(data, shape):
    values = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    if data.draw(st.booleans()):
        values = np.asfortranarray(values)[::-1]
        x = kw.asarray(np.ascontiguousarray(values.T)).T
    else:
        x = kw.asarray(values)
    key = data.draw(keys(shape))
    where = data.draw(st.sampled_from(["device", "host"]))
    try:
        expected = values[key]
    except (IndexError, ValueError):
        with pytest.raises((IndexError, ValueError)):
            x[key]
        return
    same(x[on_device(key, where)], expected)
    result = values.copy()
    target = x.copy()
    rest = data.draw(st.integers(0, expected.ndim))
    written = -1 - np.arange(np.prod(expected.shape[rest:]), dtype=np.int32)
    written = written.reshape(expected.shape[rest:])
    result[key] = written
    target[on_device(key, where)] = kw.asarray(written) if data.draw(st.booleans()) else written
    same(target, result)


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_is_selected_and_written(name):
    dtype = np.dtype(getattr(kw, name, name))
    values = np.random.default_rng(3).integers(0, 2, (6, 5)).astype(dtype)
    x, mask = kw.asarray(values), values.real.astype(np.float64) > 0
    same(x[[4, 0, -1]], values[[4, 0, -1]])
    same(x[kw.asarray(mask)], values[mask])
    x[kw.asarray(mask)] = x[0, 0]
    values[mask] = values[0, 0]
    same(x, values)


@pytest.mark.parametrize("dtype", UNITS)
@pytest.mark.parametrize("row", [1, 2, 3, 4, 7, 8, 16, 33])
def test_rows_of_any_width_and_alignment(dtype, row):
    values = np.arange(9 * (row + 1) * 2).reshape(9, row + 1, 2).astype(dtype)
    index = np.array([[8, 0, -1], [3, -9, 3]], np.int32)
    x = kw.asarray(values)
    for cut in (np.s_[:], np.s_[:, 1:], np.s_[:, ::-1], np.s_[::-2, :, 0], np.s_[:, :1, 1]):
        view, part = x[cut], values[cut]
        for axis in range(part.ndim):
            places = index % part.shape[axis] - (index < 0) * part.shape[axis]
            same(kw.take(view, kw.asarray(places), axis=axis), np.take(part, places, axis))


def test_more_axes_than_a_kernel_walks():
    values = np.arange(2**11, dtype=np.int16).reshape((2,) * 11)
    order = (9, 0, 7, 2, 5, 4, 3, 6, 1, 8, 10)
    x, turned = kw.asarray(values).transpose(order), values.transpose(order)
    same(x[:, :, kw.asarray([1, 0, 1])], turned[:, :, [1, 0, 1]])
    mask = turned % 3 == 0
    result = np.ascontiguousarray(turned)
    x[kw.asarray(mask)], result[mask] = 7, 7
    x[..., [1, 1], :], result[..., [1, 1], :] = 5, 5
    same(x, result)
    same(kw.tril(x), np.tril(result))


@pytest.mark.parametrize("index_type", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_integers_of_any_type_are_positions(index_type):
    values = np.arange(120.0).reshape(60, 2)
    index = np.array([59, 0, 7, 7], index_type)
    same(kw.take(kw.asarray(values), kw.asarray(index), axis=0), values[index])
    same(kw.asarray(values)[kw.asarray(index), 1], values[index, 1])
    same(kw.take(kw.asarray(values), kw.asarray(index.astype("u8"))), values.ravel()[index])


def test_positions_beyond_the_ends():
    x = kw.arange(5)
    wild = kw.asarray(np.array([5, 99, -6, -(2**62), 2**62, 4, -5]))
    assert kw.take(x, wild).numpy().tolist() == [4, 4, 0, 0, 4, 4, 0]
    assert x[wild].numpy().tolist() == [4, 4, 0, 0, 4, 4, 0]
    for unique in (False, True):
        y = kw.arange(5)
        kw.put(y, kw.asarray([7, -6, 1]), [10, 11, 12], unique_indices=unique)
        assert y.numpy().tolist() == [0, 12, 2, 3, 4]
    y = kw.zeros((3, 4))
    y[wild, kw.asarray([0, 1, 2, 3, 0, 1, 2])] = 1
    assert not y.numpy().any()
    kw.put(y, wild, kw.ones((7, 4)), axis=0, reduce="add")
    assert not y.numpy().any()
    with pytest.raises(IndexError, match="5 of 7 indices are out of bounds for axis 0 with size 5"):
        kw.take(x, wild, mode="raise")
    with pytest.raises(IndexError):
        kw.put(x, wild, 0, mode="raise")
    with pytest.raises(IndexError):
        kw.take_along_axis(x, wild, mode="raise")
    assert kw.take(x, wild[-2:], mode="raise").numpy().tolist() == [4, 0]
    same(x, np.arange(5))
    for key in ([5], [-6], np.array([2, 9]), (slice(None), [0])):
        with pytest.raises(IndexError):
            x[key]
        with pytest.raises(IndexError):
            x[key] = 0


def test_masks():
    values = np.arange(5 * 1030, dtype=np.float32).reshape(5, 1030)
    for share in (0, 0.003, 0.5, 1):
        mask = np.random.default_rng(1).random(values.shape) < share
        x, where = kw.asarray(values), kw.asarray(mask)
        same(x[where], values[mask])
        same(x[:, 1:][where[:, 1:]], values[:, 1:][mask[:, 1:]])
        same(x.T[where.T], values.T[mask.T])
        same(x[where[:, 3]], values[mask[:, 3]])
        same(x[:, where[0]], values[:, mask[0]])
        result = values.copy()
        for value in (-1, values[mask][::-1].copy()):
            x[where], result[mask] = value, value
            same(x, result)
        row = np.arange(1030, dtype=np.float32)
        x[where[:, 0]], result[mask[:, 0]] = kw.asarray(row), row
        same(x, result)
        column = row[:5, None]
        x[:, where[0]], result[:, mask[0]] = column, column
        same(x, result)
    big = np.random.default_rng(2).random(300_001) < 0.3
    same(kw.arange(300_001)[kw.asarray(big)], np.flatnonzero(big))
    same(kw.arange(3)[True], np.arange(3)[True])
    same(kw.arange(3)[kw.asarray(np.False_)], np.arange(3)[np.False_])
    with pytest.raises(IndexError, match="does not match axis 1"):
        kw.zeros((2, 3))[kw.asarray(np.ones((2, 4), bool))]
    with pytest.raises(kw.InvalidArgument):
        kw.zeros(4)[[True, True, True, False]] = [1, 2]


@pytest.mark.parametrize("dtype", UNITS)
def test_along_an_axis(dtype):
    rng = np.random.default_rng(4)
    values = rng.integers(0, 100, (4, 7, 5)).astype(dtype)
    for axis in (0, 1, -1):
        shape = list(values.shape)
        shape[axis] = 9
        extent = values.shape[axis]
        index = rng.integers(-extent, extent, shape)
        x = kw.asarray(values)
        same(kw.take_along_axis(x, index, axis), np.take_along_axis(values, index, axis))
        same(kw.take_along_axis(x.T, kw.asarray(index).T, -1 - axis % -3),
             np.take_along_axis(values.T, index.T, -1 - axis % -3))  # fmt: skip
        written = rng.integers(0, 100, shape).astype(dtype)
        result = values.copy()
        kw.put_along_axis(x, index, written, axis)
        np.put_along_axis(result, index, written, axis)
        same(x, result)
        order = np.argsort(rng.random(values.shape), axis)
        kw.put_along_axis(x, order, values, axis, unique_indices=True)
        np.put_along_axis(result, order, values, axis)
        same(x, result)
    narrow = rng.integers(0, 7, (1, 3, 1))
    x = kw.asarray(values)
    same(kw.take_along_axis(x, narrow, 1), np.take_along_axis(values, narrow, 1))


def test_a_mask_beside_an_int():
    """A slice or None separates it from the rest: the true elements come first."""
    values, mask = np.arange(15.0).reshape(1, 3, 5), np.array([1, 0, 1, 1, 0], bool)
    for given in (np.arange(3.0)[:, None], np.arange(3.0)[None], np.float64(4), np.arange(9.0)):
        given = given.reshape(3, 3) if given.size == 9 else given
        x = kw.asarray(values)
        x[0, :, kw.asarray(mask)], values[0, :, mask] = kw.asarray(given), given
        same(x, values)
    x = kw.zeros((1, 0))
    x[0, None, kw.zeros(0, "bool")] = kw.zeros((0, 1))


def test_gather_and_scatter_are_torchs():
    rng = np.random.default_rng(5)
    values = rng.random((6, 5)).astype(np.float32)
    index = rng.integers(0, 6, (3, 4))
    rows, columns = index, np.arange(4)[None].repeat(3, 0)
    x = kw.asarray(values)
    same(kw.gather(x, 0, index), values[rows, columns])
    source = rng.random((4, 4)).astype(np.float32)
    result = values.copy()
    result[rows, columns] = source[:3]
    same(kw.scatter(x, 0, index, kw.asarray(source)), result)
    same(x, values)
    result = values.copy()
    np.add.at(result, (rows, columns), source[:3])
    same(kw.scatter(x, 0, kw.asarray(index), source, reduce="add"), result)
    same(kw.scatter(x, 0, kw.asarray(index), 2.0)[index, columns], np.full((3, 4), 2, np.float32))
    same(kw.gather(x, 1, np.zeros((0, 3), int)), np.zeros((0, 3), np.float32))


@pytest.mark.parametrize("name", [n for n in DTYPES if n != "bool"])
def test_adding_is_in_the_order_of_positions(name):
    dtype = np.dtype(getattr(kw, name, name))
    rng = np.random.default_rng(6)
    values = rng.integers(0, 3, (10, 3)).astype(dtype)
    index = rng.integers(-10, 10, 40)
    added = rng.integers(0, 2, (40, 3)).astype(dtype)
    wide = np.complex128 if dtype.kind == "c" else np.float64
    result = values.astype(wide)
    np.add.at(result, index, added.astype(wide))
    x = kw.asarray(values)
    kw.put(x, index, kw.asarray(added), axis=0, reduce="add")
    same(x, result.astype(dtype))


def test_adding_many_floats_is_numpys_to_the_last_bit():
    rng = np.random.default_rng(7)
    values = rng.standard_normal((3, 70_000)).astype(np.float32)
    index = rng.integers(0, 70_000, 5000)
    index[::3] = 4711
    added = rng.standard_normal((3, 5000)).astype(np.float32)
    x = kw.asarray(values)
    kw.put(x[::-1], kw.asarray(index), kw.asarray(added), axis=1, reduce="add")
    np.add.at(values[::-1], (slice(None), index), added)
    same(x, values)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "float16", "complex128"])
@pytest.mark.parametrize("width", [1, 3, 8, 16, 96])
def test_rows_are_added_in_packs_of_any_alignment(dtype, width):
    """Rows next to each other, misaligned, far apart, reversed, in columns."""
    rng = np.random.default_rng(width)
    values = rng.integers(-4, 5, (40, width)).astype(dtype)
    ids = rng.integers(-7, 7, 40)
    ids[:9] = 3
    whole = rng.integers(-4, 5, (7, 2 * width + 3)).astype(dtype)
    views = [
        lambda x: x[:, :width], lambda x: x[:, 1 : width + 1], lambda x: x[::-1, 2 : width + 2],
        lambda x: x[:, width - 1 :: -1], lambda x: x[:, : 2 * width : 2],
    ]  # fmt: skip
    for view in views:
        expected, made = whole.copy(), kw.asarray(whole)
        np.add.at(view(expected), ids, values)
        kw.put(view(made), kw.asarray(ids), kw.asarray(values), axis=0, reduce="add")
        np.testing.assert_array_equal(made.numpy(), expected)
    flat = np.zeros(7 * width + 1, dtype)
    made = kw.asarray(flat)
    kw.put(made[1:].reshape(7, width), kw.asarray(ids), kw.asarray(values), axis=0, reduce="add")
    np.add.at(flat[1:].reshape(7, width), ids, values)
    np.testing.assert_array_equal(made.numpy(), flat)


def test_equal_positions_take_the_last_value():
    rng = np.random.default_rng(8)
    index = rng.integers(0, 50, 3000)
    values, written = np.zeros((50, 6), np.float32), rng.random((3000, 6)).astype(np.float32)
    x = kw.asarray(values)
    x[kw.asarray(index)], values[index] = kw.asarray(written), written
    same(x, values)
    pair = (index, rng.integers(0, 6, 3000))
    x[tuple(map(kw.asarray, pair))], values[pair] = kw.asarray(written[:, 0]), written[:, 0]
    same(x, values)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "complex128"])
@pytest.mark.parametrize("places", [40, 900, 5000])
def test_written_by_places_or_by_positions(dtype, places):
    """Few places for many positions are walked themselves, many are not."""
    rng = np.random.default_rng(places)
    index = rng.integers(-places, places, 700)
    given = rng.integers(0, 100, (700, 3)).astype(dtype)
    for key in (index, index.astype(np.int32), np.repeat(index, 2)[::2]):
        values = np.zeros(places, dtype)
        x = kw.asarray(values)
        x[kw.asarray(key)], values[key] = kw.asarray(given)[:, 1], given[:, 1]
        same(x, values)
    # Beside other axes, at any place, from values of any strides.
    values = np.zeros((3, places, 2), dtype)
    x = kw.asarray(values)
    pairs = index.reshape(350, 2)
    block = given[:, 0].reshape(2, 350)
    x[1:, kw.asarray(pairs), 1] = kw.asarray(block).T
    values[1:, pairs, 1] = block.T
    same(x, values)
    x[::-1, kw.asarray(index)[::-1], :] = kw.asarray(given)[:, :2]
    values[::-1, index[::-1], :] = given[:, :2]
    same(x, values)
    x[:, kw.asarray(index)], values[:, index] = 7, 7
    same(x, values)


def test_scattered_by_places():
    rng = np.random.default_rng(3)
    for rows in (20, 300):
        index = rng.integers(0, rows, (40, 6))
        x, written = rng.random((rows, 7)), rng.random((6, 40)).T
        found = kw.scatter(kw.asarray(x), 0, kw.asarray(index), kw.asarray(written))
        for i, j in np.ndindex(40, 6):
            x[index[i, j], j] = written[i, j]
        same(found, x)
    line, values = rng.integers(0, 9, 50), rng.random(50)
    found = kw.scatter(
        kw.zeros(9, "f8"), 0, kw.asarray(line), kw.asarray(values[::-1].copy())[::-1]
    )
    x = np.zeros(9)
    x[line] = values
    same(found, x)


@pytest.mark.parametrize("dtype", ["float32", "uint8", "float16", "int64", "bool"])
def test_single_elements_of_which_the_last_one_wins(dtype):
    rng = np.random.default_rng(12)
    views = (lambda a: a, lambda a: a[::-1], lambda a: a[::3], lambda a: a[1:], lambda a: a[:1])
    for view, (size, count) in itertools.product(views, ((50, 5000), (3000, 1000), (9000, 3000))):
        start = rng.integers(0, 200, size).astype(dtype)
        places = view(start).size
        index, given = rng.integers(-places, places, count), rng.integers(0, 200, count)
        given = given.astype(dtype)
        wanted = start.copy()
        for place, value in zip(index, given, strict=True):
            view(wanted)[place] = value
        for number in ("int64", "int32"):
            x, at = kw.asarray(start), kw.asarray(index.astype(number))
            kw.put(view(x), at, kw.asarray(given), axis=0)
            same(x, wanted)
            x = kw.asarray(start)
            kw.put(view(x)[:, None], at, kw.asarray(given)[:, None], axis=0)
            same(x, wanted)
        found = kw.scatter(kw.asarray(view(start)), 0, kw.asarray(index), kw.asarray(given))
        same(found, view(wanted))
    rows, columns = rng.integers(0, 6, 60), rng.integers(0, 4, 60)
    table, given = np.zeros((6, 4), dtype), rng.integers(0, 200, 60).astype(dtype)
    x = kw.asarray(table).T
    x[kw.asarray(columns), kw.asarray(rows)] = kw.asarray(given)
    for i, j, value in zip(rows, columns, given, strict=True):
        table[i, j] = value
    same(x, table.T)


def test_sources_that_share_memory_with_the_target():
    values = np.arange(12.0)
    x = kw.asarray(values)
    x[np.arange(12)[::-1].copy()] = x
    same(x, values[::-1])
    order = np.random.default_rng(9).permutation(12)
    x, values = kw.asarray(order), order.copy()
    x[x], values[values] = x[::-1], values[::-1].copy()
    same(x, values)


def test_wrong_arguments():
    x = kw.zeros((3, 4))
    for call, error, match in (
        (lambda: kw.take(x, [0], axis=2), ValueError, "axis 2 is out of range"),
        (lambda: kw.take(x, [0.5], axis=0), TypeError, "float"),
        (lambda: kw.take(x, kw.zeros(2), axis=0), TypeError, "integers"),
        (lambda: kw.take(np.zeros(3), [0]), TypeError, "asarray"),
        (lambda: kw.take(x, [0], axis=0, mode="mirror"), ValueError, "wrap"),
        (lambda: kw.take(kw.zeros((0, 3)), [0], axis=0), IndexError, "size 0"),
        (lambda: kw.gather(x, 0, [0]), ValueError, "Incompatible dimensions"),
        (lambda: kw.gather(x, 0, [[0] * 5]), ValueError, "Incompatible dimensions"),
        (lambda: kw.take_along_axis(x, [[0], [0]], 1), ValueError, "Incompatible dimensions"),
        (lambda: kw.scatter(x, 0, [[0]], [1.0]), ValueError, "Incompatible dimensions"),
        (lambda: kw.scatter(x, 0, [[0]], 1, reduce="mul"), ValueError, "mul"),
        (lambda: kw.put(x, [0], kw.zeros(5), axis=0), ValueError, "does not broadcast"),
        (lambda: kw.put(kw.broadcast_to(kw.zeros(3), (2, 3)), [0], 1, axis=0), ValueError,
         "repeats elements"),
        (lambda: kw.put(kw.zeros(3, "bool"), [0], True, reduce="add"), ValueError, "bool"),
        (lambda: x[[0, 1], [0, 1, 2]], ValueError, "Incompatible dimensions"),
        (lambda: x[[0], [0], [0]], IndexError, "too many"),
        (lambda: x[..., [0], ...], IndexError, "Ellipsis"),
        (lambda: x[kw.zeros(3)], TypeError, "indexed by"),
        (lambda: x.__setitem__([0], 1j), TypeError, "1j"),
    ):  # fmt: skip
        with pytest.raises(error, match=match):
            call()


def test_every_kernel_under_all_checks():
    values = np.arange(40, dtype=np.float32).reshape(8, 5)
    with kw.checks("memory", "init", "race", "sync") as report:
        x = kw.asarray(values)
        index = kw.asarray(np.array([1, 1, 7, -1, 0]))
        mask = kw.asarray(values % 3 == 0)
        kw.take(x, index, axis=0, mode="raise")
        x[index, index[:, None]]
        x[mask], x.T[mask.T], x[:, mask[0]]
        x[index] = kw.ones((5, 5))
        x[index, index] = kw.ones(5)
        x[mask] = 3
        x[index] = 2
        many = kw.asarray(np.arange(500) * 7 % 300)
        kw.put(kw.zeros(256), many, kw.ones(500))
        kw.put(kw.zeros(9000), many, kw.ones(500))
        kw.scatter(kw.zeros((30, 4)), 0, many.reshape(125, 4) % 30, kw.ones((125, 4)))
        kw.put(x, index, kw.ones((5, 5)), axis=0, reduce="add")
        kw.put_along_axis(x, index.reshape(5, 1), 4, 0)
        kw.repeat(x, kw.asarray([2] * 8), axis=0)
        big = kw.asarray(np.arange(3000) % 70)
        kw.put(kw.zeros(70), big, 1, reduce="add")
        kw.synchronize()
    assert not report, str(report)


def test_a_graph_replays():
    x, index = kw.asarray(np.arange(12.0).reshape(6, 2)), kw.asarray([0, 0, 5])
    mask, added = kw.asarray(np.arange(6) > 3), kw.ones((3, 2), "f8")

    def work():
        kw.put(x, index, added, axis=0, reduce="add")
        x[index] = kw.take(x, index, axis=0)[::-1]
        x[mask] = added[0]

    expected = np.arange(12.0).reshape(6, 2)
    stream, graph = kw.Stream(), kw.Graph()
    with graph.capture(stream):
        work()
    for _ in range(3):
        graph.launch(stream)
        stream.synchronize()
        np.add.at(expected, [0, 0, 5], 1.0)
        expected[[0, 0, 5]] = expected[[0, 0, 5]][::-1]
        expected[4:] = 1
        same(x, expected)
