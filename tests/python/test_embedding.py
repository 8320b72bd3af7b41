"""Embedding and the gradient of its table: against NumPy."""

import numpy as np
import pytest
from nn_arrays import TYPES, assert_close, values, views, wide

import kernwright as kw

nn = kw.nn


@pytest.mark.parametrize(
    "dtype, cols",
    [
        *[("float32", cols) for cols in (1, 7, 64, 200)],
        *[(dtype, cols) for dtype in (*TYPES, "float8_e4m3fn") for cols in (7, 80)],
    ],
)
def test_rows_are_exact(dtype, cols):
    table = kw.asarray(values((50, cols))).astype(dtype)
    for ids in (np.array([[3, 49, 0], [3, 3, 1]], np.int32), np.arange(50)[::-1].copy()):
        got = nn.embedding(kw.asarray(ids), table)
        assert got.shape == (*ids.shape, cols) and got.dtype == table.dtype
        np.testing.assert_array_equal(wide(got.numpy()), wide(table.numpy())[ids])


def test_views_and_sizes():
    table = values((12, 35))
    ids = np.array([0, 11, 5, 5])
    for view in views(table):
        np.testing.assert_array_equal(nn.embedding(kw.asarray(ids), view).numpy(), table[ids])
    strided = kw.asarray(np.arange(12, dtype=np.int64))[::-3]
    got = nn.embedding(strided, kw.asarray(table))
    np.testing.assert_array_equal(got.numpy(), table[np.arange(12)[::-3]])
    assert_close(nn.embedding(kw.asarray(ids), kw.asarray(table), scale=5.5), 5.5 * table[ids])
    assert nn.embedding(kw.empty((0, 2), "int64"), kw.asarray(table)).shape == (0, 2, 35)
    assert nn.embedding(kw.asarray(ids), kw.ones((12, 0))).shape == (4, 0)
    assert nn.embedding(kw.full((), 2, "int64"), kw.asarray(table)).shape == (35,)
    many = np.random.default_rng(0).integers(0, 12, 5000)
    np.testing.assert_array_equal(
        nn.embedding(kw.asarray(many), kw.asarray(table)).numpy(), table[many]
    )


@pytest.mark.parametrize("ids", ["int32", "int64"])
def test_numbers_outside_of_the_table(ids):
    table = kw.ones((4, 3))
    bad = kw.asarray(np.array([[1, 3], [4, -1]], ids))
    np.testing.assert_array_equal(nn.embedding(bad, table).numpy().sum(axis=2), [[3, 3], [0, 0]])
    with pytest.raises(kw.InvalidArgument, match=r"id 4 \(element 2 of ids\).*\(4, 3\)"):
        nn.embedding(bad, table, check=True)
    assert nn.embedding(bad[:1], table, check=True).shape == (1, 2, 3)
    empty = nn.embedding(kw.asarray(np.array([0], ids)), kw.ones((0, 3)))
    assert not empty.numpy().any()


def gradient(dy, ids, rows, padding=None):
    made = np.zeros((rows, dy.shape[-1]))
    np.add.at(made, ids.ravel(), wide(dy).reshape(-1, dy.shape[-1]))
    if padding is not None:
        made[padding] = 0
    return made


@pytest.mark.parametrize("dtype", TYPES)
def test_gradient_of_the_table(dtype):
    for rows, count, cols in ((5, 100, 8), (70000, 3000, 33), (300, 2500, 4), (1, 700, 1)):
        ids = (np.random.default_rng(rows).random(count) ** 3 * rows).astype(np.int64)
        dy = values((count, cols), dtype, rows)
        got = nn.embedding_backward(kw.asarray(dy), kw.asarray(ids), rows)
        expected = gradient(dy, ids, rows)
        assert got.shape == (rows, cols) and got.dtype == dy.dtype
        assert_close(got, expected, dtype, 20)
        again = nn.embedding_backward(kw.asarray(dy), kw.asarray(ids), rows)
        np.testing.assert_array_equal(wide(got.numpy()), wide(again.numpy()))


def test_gradient_of_views_padding_and_nothing():
    ids = np.array([[2, 0, 2], [9, -1, 1]], np.int32)
    inside = np.where((ids < 0) | (ids >= 4), 3, ids)
    dy = values((6, 35))
    expected = gradient(dy, inside, 4)
    expected[3] = 0
    for view in views(dy):
        got = nn.embedding_backward(view.reshape(2, 3, 35), kw.asarray(ids), 4)
        assert_close(got, expected)
    expected[2] = 0
    a = kw.asarray(dy.reshape(2, 3, 35))
    got = nn.embedding_backward(a, kw.asarray(ids), 4, padding_idx=2, scale=0.5)
    assert_close(got, 0.5 * expected)
    none = nn.embedding_backward(kw.ones((0, 3)), kw.empty((0,), "int64"), 2)
    np.testing.assert_array_equal(none.numpy(), np.zeros((2, 3)))
    assert nn.embedding_backward(kw.ones((2, 3)), kw.zeros(2, "int64"), 0).shape == (0, 3)


def test_wrong_calls():
    ids = kw.asarray(np.array([0, 1]))
    with pytest.raises(kw.ArgumentError, match="int32 or int64"):
        nn.embedding(kw.ones(2), kw.ones((3, 4)))
    with pytest.raises(kw.InvalidArgument, match=r"Incompatible dimensions.*\(3, 4, 5\)"):
        nn.embedding(ids, kw.ones((3, 4, 5)))
    with pytest.raises(kw.ArgumentError, match="floating"):
        nn.embedding(ids, kw.zeros((3, 4), "int32"))
    with pytest.raises(kw.InvalidArgument, match="one axis more"):
        nn.embedding_backward(kw.ones((3, 4)), ids, 5)
    with pytest.raises(kw.InvalidArgument, match="-1 rows"):
        nn.embedding_backward(kw.ones((2, 4)), ids, -1)


def test_no_finding_in_any_kernel(sim):
    ids = np.random.default_rng(0).integers(-1, 300, 2500)
    with kw.checks("memory", "init", "race", "sync") as report:
        numbers = kw.asarray(ids)
        nn.embedding(numbers[:90], kw.ones((301, 7)))
        nn.embedding_backward(kw.ones((2500, 6)), numbers, 301)
    report.raise_if_any()


def test_replay_in_a_graph():
    ids, table = kw.asarray(np.array([1, 1, 0])), kw.asarray(values((3, 8)))
    nn.embedding_backward(nn.embedding(ids, table), ids, 3)
    stream, graph = kw.Stream(), kw.Graph()
    with graph.capture(stream):
        rows = nn.embedding(ids, table)
        back = nn.embedding_backward(rows, ids, 3)
    fresh = np.array([2, 0, 2])
    ids[...] = kw.asarray(fresh)
    kw.current_device().synchronize()
    graph.launch(stream)
    stream.synchronize()
    np.testing.assert_array_equal(rows.numpy(), table.numpy()[fresh])
    assert_close(back, gradient(table.numpy()[fresh], fresh, 3))
