"""Copies of transposed views, which go through tiles where both sides have long lines."""

import itertools

import numpy as np
import pytest

import kernwright as kw


def values_of(shape, dtype):
    count = int(np.prod(shape))
    values = np.random.default_rng(count).integers(0, 251, count)
    return values.astype(dtype).reshape(shape)


def same(found, expected):
    assert (found.shape, found.dtype, found.is_contiguous) == (expected.shape, expected.dtype, True)
    np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("shape", [(64, 128), (127, 129), (16, 200), (15, 70), (70, 15), (2, 300),
                                   (130, 66), (1, 50)])  # fmt: skip
def test_matrices(dtype, shape):
    values = values_of(shape, dtype)
    x = kw.asarray(values)
    same(x.T.copy(), values.T)
    same(x[:, ::-1].T.copy(), values[:, ::-1].T)
    same(x[::-1].T.copy(), values[::-1].T)
    same(x[1:, 1:].T.copy(), values[1:, 1:].T)
    same(x[:, ::2].T.copy(), values[:, ::2].T)


@pytest.mark.parametrize("shape", [(3, 40, 36), (17, 2, 5, 33), (2, 3, 20, 4, 18), (20, 30, 4)])
def test_any_order_of_axes(shape):
    values = values_of(shape, "float32")
    x = kw.asarray(values)
    for order in itertools.islice(
        itertools.permutations(range(len(shape))), 0, None, len(shape) - 2
    ):
        same(x.transpose(order).copy(), values.transpose(order))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "complex128"])
def test_into_transposed_views(dtype):
    values = values_of((3, 66, 70), dtype)
    target, expected = kw.zeros((70, 3, 68), dtype), np.zeros((70, 3, 68), dtype)
    for cut in (np.s_[:, :, :66], np.s_[:, :, 2:], np.s_[:, ::-1, 1:67]):
        target[cut] = kw.asarray(values).transpose(2, 0, 1)
        expected[cut] = values.transpose(2, 0, 1)
        np.testing.assert_array_equal(target.numpy(), expected)
    x = kw.asarray(values[0])
    x[:66, :66] = x[:66, :66].T  # meets itself
    np.testing.assert_array_equal(x.numpy()[:, :66], values[0, :, :66].T)


def test_misaligned_lines():
    for offset in (0, 1, 2, 3, 5):
        memory = values_of(64 * 80 + 8, "uint8")
        values = memory[offset : offset + 64 * 80].reshape(64, 80)
        x = kw.asarray(memory)[offset : offset + 64 * 80].reshape(64, 80)
        same(x.T.copy(), values.T)
        same(x.view("u1").reshape(64, 4, 20).transpose(2, 0, 1).copy(),
             values.reshape(64, 4, 20).transpose(2, 0, 1))  # fmt: skip


def test_under_all_checks_and_in_a_graph():
    values = values_of((2, 70, 36), "float32")
    with kw.checks("memory", "init", "race", "sync") as report:
        x = kw.asarray(values)
        same(x.transpose(2, 0, 1).copy(), values.transpose(2, 0, 1))
        same(x[:, :, :35].transpose(2, 1, 0).copy(), values[:, :, :35].transpose(2, 1, 0))
        same(kw.asarray(values.astype("u1")).T.copy(), values.astype("u1").T)
    assert not report, str(report)
    target, stream, graph = kw.zeros((36, 70, 2)), kw.Stream(), kw.Graph()
    with graph.capture(stream):
        target[...] = x.T
    x[...] = 1 - x.numpy()
    graph.launch(stream)
    stream.synchronize()
    same(target, (1 - values).T)
