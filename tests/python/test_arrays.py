"""Arrays: creation, copies, views. NumPy says what is right."""


import ml_dtypes
import numpy as np
import pytest
from conftest import DTYPES
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import kernwright as kw


def numpy_dtype(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def sample(shape, name, seed=0):
    """Random bytes as elements, without NaN (whose bits a comparison would ignore)."""
    rng = np.random.default_rng(seed)
    dtype = numpy_dtype(name)
    if name == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    raw = np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)
    with np.errstate(invalid="ignore"):
        return np.where(np.isnan(raw), np.ones_like(raw), raw)


SHAPES = st.lists(st.integers(0, 5), max_size=5).map(tuple)


@settings(max_examples=60, deadline=None)
@given(shape=SHAPES, name=st.sampled_from(DTYPES), seed=st.integers(0, 99))
def test_round_trip(shape, name, seed):
    values = sample(shape, name, seed)
    x = kw.asarray(values)
    assert x.shape == shape and x.dtype == values.dtype and x.ndim == len(shape)
    assert x.size == values.size and x.nbytes == values.nbytes
    assert x.strides == values.strides or x.size == 0
    back = x.numpy()
    assert back.dtype == values.dtype
    assert back.tobytes() == values.tobytes()


@settings(max_examples=40, deadline=None)
@given(data=st.data(), shape=SHAPES)
def test_non_contiguous_input(data, shape):
    values = np.arange(np.prod(shape), dtype=np.int32).reshape(shape).T
    if values.ndim:
        step = data.draw(st.sampled_from([1, 2, -1, -2]))
        values = values[::step]
    np.testing.assert_array_equal(kw.asarray(values).numpy(), values)


@settings(max_examples=100, deadline=None)
@given(data=st.data(), shape=st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple))
def test_basic_indexing_agrees_with_numpy(data, shape):
    values = np.arange(np.prod(shape), dtype=np.int16).reshape(shape)
    index = data.draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    got = kw.asarray(values)[index]
    expected = values[index]
    assert got.shape == np.shape(expected)
    np.testing.assert_array_equal(got.numpy(), expected)


@pytest.mark.parametrize("index", [5, -6, (0, 9), (0, 0, 0), (..., ...)])
def test_wrong_indices_are_index_errors(index):
    with pytest.raises(IndexError):
        kw.zeros((5, 4))[index]


@pytest.mark.parametrize("index", [1.5, "a", [0, 1], np.array([0]), True, np.array([True])])
def test_index_arrays_are_refused_with_advice(index):
    with pytest.raises(TypeError, match="numpy"):
        kw.zeros((5, 4))[index]


def test_views_share_memory_and_keep_it_alive():
    x = kw.asarray(np.arange(12, dtype=np.float32).reshape(3, 4))
    view = x[1:, ::2]
    assert view.ptr == x.ptr + 16
    del x
    np.testing.assert_array_equal(view.numpy(), [[4, 6], [8, 10]])


def test_iteration_and_length():
    x = kw.asarray(np.arange(6).reshape(3, 2))
    assert len(x) == 3
    assert [row.numpy().tolist() for row in x] == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(TypeError):
        len(kw.zeros(()))


def test_transpose_and_reshape():
    values = np.arange(24, dtype=np.int64).reshape(2, 3, 4)
    x = kw.asarray(values)
    np.testing.assert_array_equal(x.T.numpy(), values.T)
    np.testing.assert_array_equal(x.transpose(1, 0, 2).numpy(), values.transpose(1, 0, 2))
    assert x.T.ptr == x.ptr and not x.T.is_contiguous
    assert x.reshape(6, 4).ptr == x.ptr
    np.testing.assert_array_equal(x.reshape((4, -1)).numpy(), values.reshape(4, -1))
    np.testing.assert_array_equal(x.T.reshape(-1).numpy(), values.T.reshape(-1))
    for wrong in ((5, 5), (-1, -1), (-1, 7)):
        with pytest.raises(ValueError, match=r"24|\(2, 3, 4\)|-1"):
            x.reshape(wrong)
    with pytest.raises(ValueError):
        x.transpose(0, 0, 1)


@pytest.mark.parametrize("name", DTYPES)
def test_copy_of_a_strided_view(name):
    values = sample((7, 9), name)
    view = kw.asarray(values)[::-2, 1::3]
    copy = view.copy()
    assert copy.is_contiguous
    assert copy.numpy().tobytes() == np.ascontiguousarray(values[::-2, 1::3]).tobytes()


def test_a_copy_is_independent():
    x = kw.zeros(4)
    y = x.copy()
    y[...] = 1
    assert x.numpy().sum() == 0
