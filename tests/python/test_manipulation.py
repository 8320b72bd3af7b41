"""Joining, splitting, repeating, padding, other shapes and orders, against NumPy."""

import hypothesis
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from conftest import DTYPES

import kernwright as kw

SHAPES = [(), (5,), (0, 3), (3, 1, 4), (2, 3, 4, 5)]


def same(found, expected):
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(found.numpy(), expected)


def numbered(shape, dtype="float32"):
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


@pytest.mark.parametrize("shape", SHAPES)
def test_views_of_axes(shape):
    values, x = numbered(shape), kw.asarray(numbered(shape))
    for axis in range(-len(shape) - 1, len(shape) + 1):
        found = kw.expand_dims(x, axis=axis)
        same(found, np.expand_dims(values, axis))
        assert found.ptr == x.ptr
    same(kw.expand_dims(x, axis=(0, -1)), np.expand_dims(values, (0, -1)))
    same(kw.squeeze(x), np.squeeze(values))
    same(kw.flip(x), np.flip(values))
    same(x.ravel(), values.ravel())
    for a in range(len(shape)):
        same(kw.flip(x, axis=a), np.flip(values, a))
        for b in range(len(shape)):
            same(kw.moveaxis(x, a, b), np.moveaxis(values, a, b))
            same(x.swapaxes(a, b), np.swapaxes(values, a, b))
    order = tuple(reversed(range(len(shape))))
    same(kw.permute_dims(x, order), values.transpose(order))
    same(kw.broadcast_to(x, (2, *shape)), np.broadcast_to(values, (2, *shape)))
    same(x.T.flatten(), values.T.flatten())
    if len(shape) > 1:
        same(kw.matrix_transpose(x), np.swapaxes(values, -1, -2))
        same(kw.moveaxis(x, (0, 1), (-1, 0)), np.moveaxis(values, (0, 1), (-1, 0)))
        same(x.T.ravel(), values.T.ravel())


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_moves(name):
    dtype = np.dtype(getattr(kw, name, name))
    values = np.random.default_rng(1).integers(0, 2, (5, 6)).astype(dtype)
    x = kw.asarray(values)
    same(kw.concat([x, x.T.reshape(5, 6)[:, :1], x[:, ::-2]], axis=1),
         np.concatenate([values, values.T.reshape(5, 6)[:, :1], values[:, ::-2]], 1))  # fmt: skip
    same(kw.roll(x, 2, axis=1), np.roll(values, 2, 1))
    same(kw.triu(x, k=1), np.triu(values, 1))
    same(kw.diag(x[0]), np.diag(values[0]))
    same(kw.diag(x, k=-2), np.diag(values, -2))
    same(kw.eye(3, 4, k=1, dtype=dtype), np.eye(3, 4, 1).astype(dtype))
    same(kw.pad(x, 1, "edge"), np.pad(values, 1, "edge"))
    same(kw.pad(x, 1), np.pad(values, 1))


@hypothesis.settings(max_examples=40, deadline=None)
@hypothesis.given(st.data(), hnp.array_shapes(max_dims=3, min_side=0, max_side=5))
def test_joining_and_splitting(data, shape):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    parts = []
    for extent in data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=4)):
        other = list(shape)
        other[axis] = extent
        parts.append(numbered(other, data.draw(st.sampled_from(["int16", "float32"]))))
    whole = np.concatenate(parts, axis)
    found = kw.concat([kw.asarray(part) for part in parts], axis=axis)
    same(found, whole)
    same(kw.concat([kw.asarray(part) for part in parts], axis=None), np.concatenate(parts, None))
    same(kw.cat([kw.asarray(part) for part in parts], axis), whole)
    cuts = data.draw(st.lists(st.integers(-3, 9), max_size=3))
    for mine, numpys in zip(
        kw.split(found, cuts, axis=axis), np.split(whole, cuts, axis), strict=True
    ):
        same(mine, numpys)
    for mine, numpys in zip(kw.unstack(found, axis=axis), np.moveaxis(whole, axis, 0), strict=True):
        same(mine, numpys)
    same(kw.stack([found, found, found], axis=axis), np.stack([whole] * 3, axis))


@hypothesis.settings(max_examples=40, deadline=None)
@hypothesis.given(st.data(), hnp.array_shapes(max_dims=3, min_side=0, max_side=5))
def test_repeating_and_rolling(data, shape):
    values = numbered(shape, "int32")[..., ::-1]
    x = kw.asarray(np.ascontiguousarray(values[..., ::-1]))[..., ::-1]
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    shifts = tuple(data.draw(st.integers(-7, 7)) for _ in shape)
    same(kw.roll(x, shifts, axis=tuple(range(len(shape)))),
         np.roll(values, shifts, tuple(range(len(shape)))))  # fmt: skip
    same(kw.roll(x, shifts[0]), np.roll(values, shifts[0]))
    count = data.draw(st.integers(0, 3))
    same(x.repeat(count, axis), np.repeat(values, count, axis))
    same(kw.repeat(x, count), np.repeat(values, count))
    counts = data.draw(hnp.arrays("int32", shape[axis], elements=st.integers(0, 3)))
    same(kw.repeat(x, counts, axis), np.repeat(values, counts, axis))
    same(kw.repeat_interleave(x, kw.asarray(counts), axis), np.repeat(values, counts, axis))
    times = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    same(kw.tile(x, times), np.tile(values, times))


@hypothesis.settings(max_examples=40, deadline=None)
@hypothesis.given(st.data(), hnp.array_shapes(max_dims=3, min_side=0, max_side=4))
def test_padding(data, shape):
    values = numbered(shape, "int16")
    widths = [data.draw(st.tuples(st.integers(0, 6), st.integers(0, 6))) for _ in shape]
    mode = data.draw(st.sampled_from(["constant", "edge", "reflect", "wrap"]))
    try:
        expected = np.pad(values, widths, mode)
    except ValueError:
        with pytest.raises(kw.InvalidArgument, match="no element"):
            kw.pad(kw.asarray(values), widths, mode)
        return
    same(kw.pad(kw.asarray(values), widths, mode), expected)
    if mode == "constant":
        expected = np.pad(values, widths, constant_values=-7)
        same(kw.pad(kw.asarray(values), widths, constant_values=-7), expected)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
def test_triangles(dtype):
    for shape in ((4, 4), (1, 7), (2, 3, 16), (3, 33, 8), (0, 4), (64, 63)):
        values = numbered(shape, dtype) + np.ones((), dtype)
        x = kw.asarray(values)
        for k in (-(2**40), -3, 0, 1, 5, 2**40):
            small = max(-99, min(k, 99))
            same(kw.tril(x, k=k), np.tril(values, small))
            same(kw.triu(x, k=k), np.triu(values, small))
        same(kw.tril(x.swapaxes(-1, -2)), np.tril(np.swapaxes(values, -1, -2)))
        same(kw.triu(x[..., 1:, 1:]), np.triu(values[..., 1:, 1:]))
    special = np.full((3, 3), np.nan)
    same(kw.tril(kw.asarray(special)), np.tril(special))


def test_diagonals_and_identities():
    for size in (0, 1, 5):
        for k in (-6, -1, 0, 2):
            values = numbered((size,))
            same(kw.diag(kw.asarray(values[::-1].copy())[::-1], k=k), np.diag(values, k))
            same(kw.eye(size, 4, k=k), np.eye(size, 4, k, dtype=np.float32))
            matrix = numbered((size, 3))
            same(kw.diag(kw.asarray(matrix), k=k), np.diag(matrix, k))
    same(kw.eye(3), np.eye(3, dtype=np.float32))


def test_meshgrid_and_broadcast_arrays():
    lines = [numbered((n,)) for n in (3, 1, 4)]
    on_device = [kw.asarray(line) for line in lines]
    for indexing in ("xy", "ij"):
        for count in (1, 2, 3):
            expected = np.meshgrid(*lines[:count], indexing=indexing)
            for mine, numpys in zip(kw.meshgrid(*on_device[:count], indexing=indexing), expected,
                                    strict=True):  # fmt: skip
                same(mine, numpys)
    for mine, numpys in zip(kw.broadcast_arrays(on_device[0], kw.zeros((2, 1)), kw.zeros(())),
                            np.broadcast_arrays(lines[0], np.zeros((2, 1), "f4"),
                                                np.zeros((), "f4")), strict=True):  # fmt: skip
        same(mine, numpys)


def test_reshape_copies_when_asked():
    x = kw.asarray(numbered((4, 6)))
    assert kw.reshape(x, (6, -1)).ptr == x.ptr
    assert kw.reshape(x, (6, 4), copy=True).ptr != x.ptr
    assert kw.reshape(x, 24, copy=False).ptr == x.ptr
    same(kw.reshape(x.T, 24), numbered((4, 6)).T.reshape(24))
    with pytest.raises(kw.InvalidArgument, match="only by a copy"):
        kw.reshape(x.T, 24, copy=False)
    x.T.fill(3)
    same(x, np.full((4, 6), 3, np.float32))


def test_wrong_arguments():
    x = kw.zeros((3, 4))
    for call, error, match in (
        (lambda: kw.concat([]), ValueError, "no array"),
        (lambda: kw.concat([x, kw.zeros((3, 5))]), ValueError, "Incompatible dimensions"),
        (lambda: kw.concat([x, kw.zeros(3)]), ValueError, "Incompatible dimensions"),
        (lambda: kw.concat([x], axis=2), ValueError, "axis 2 is out of range"),
        (lambda: kw.diag(x[0], k=1.5), TypeError, "k is an int, got 1.5"),
        (lambda: kw.diag(x[0], k=2**70), OverflowError, f"k of {2**70} is out of range"),
        (lambda: kw.expand_dims(x, axis=9), kw.AxisError, "axis 9 is out of range"),
        (lambda: kw.flip(x, axis=-9), IndexError, "axis -9 is out of range"),
        (lambda: kw.concat([x, np.zeros((3, 4))]), TypeError, "array 1 .*asarray"),
        (lambda: kw.concat([kw.zeros(()), kw.zeros(())]), ValueError, "axis"),
        (lambda: kw.stack([x, x.T]), ValueError, "Incompatible dimensions"),
        (lambda: kw.split(x, 2), ValueError, "no 2 equal parts"),
        (lambda: kw.permute_dims(x, (0, 0)), ValueError, "twice"),
        (lambda: kw.permute_dims(x, (0,)), ValueError, "do not order"),
        (lambda: kw.squeeze(x, axis=0), ValueError, "not 1"),
        (lambda: kw.broadcast_to(x, (3, 5)), ValueError, "does not broadcast"),
        (lambda: kw.broadcast_arrays(x, kw.zeros(3)), ValueError, "Incompatible dimensions"),
        (lambda: kw.roll(x, (1, 2), axis=0), ValueError, "2 shifts"),
        (lambda: kw.repeat(x, -1, axis=0), ValueError, "-1 times"),
        (lambda: kw.repeat(x, kw.asarray([3, -1, 2]), axis=0), ValueError, "-1 times"),
        (lambda: kw.repeat(x, [3, -1, 2], axis=0), ValueError, "-1 times"),
        (lambda: kw.repeat(x, [1, 2], axis=0), ValueError, "Incompatible dimensions"),
        (lambda: kw.repeat(x, [0.5], axis=0), TypeError, "float64"),
        (lambda: kw.tile(x, -1), ValueError, "laid out"),
        (lambda: kw.pad(x, ((1, 1),) * 3), ValueError, "pad_width"),
        (lambda: kw.pad(x, -1), ValueError, "0 and more"),
        (lambda: kw.pad(x, 1, "mirror"), ValueError, "mirror"),
        (lambda: kw.tril(kw.zeros(())), ValueError, "two axes"),
        (lambda: kw.diag(kw.zeros((2, 2, 2))), ValueError, "no matrix"),
        (lambda: kw.eye(-1), ValueError, "-1 rows"),
        (lambda: kw.meshgrid(x, indexing="yx"), ValueError, "yx"),
        (lambda: kw.meshgrid(*[kw.zeros(2**16)] * 4), kw.InvalidArgument, "that is too large"),
    ):
        with pytest.raises(error, match=match):
            call()


def test_every_kernel_under_all_checks():
    values = numbered((7, 9))
    with kw.checks("memory", "init", "race", "sync") as report:
        x = kw.asarray(values)
        kw.concat([x, x.T[:7, :7]], axis=1), kw.roll(x, 3), kw.tile(x, (2, 2))
        kw.tril(x), kw.triu(x[:, :8], k=1), kw.diag(x), kw.diag(x[0]), kw.eye(5)
        kw.pad(x, 2, "wrap"), kw.pad(x, 20, "reflect"), kw.repeat(x, kw.asarray([3] * 7), 0)
        kw.synchronize()
    assert not report, str(report)


def test_a_graph_replays():
    x, target = kw.asarray(numbered((4, 6))), kw.zeros((6, 10))
    stream, graph = kw.Stream(), kw.Graph()
    with graph.capture(stream):
        target[...] = kw.concat(
            [kw.tril(x).T, kw.pad(kw.roll(x, 1, axis=0), ((1, 1), (0, 0)))], axis=1
        )
    for step in range(2):
        values = numbered((4, 6)) + step
        x[...] = values
        graph.launch(stream)
        stream.synchronize()
        rolled = np.pad(np.roll(values, 1, 0), ((1, 1), (0, 0)))
        same(target, np.concatenate([np.tril(values).T, rolled], 1))
