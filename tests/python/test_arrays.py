"""Arrays: creation, copies, views, against NumPy."""

import pickle
import warnings

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
    """Random bytes as elements, without NaN: a comparison would ignore its bits."""
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


@pytest.mark.parametrize("index", [1.5, "a", [0.5], np.array([1j]), (0, 2.0)])
def test_what_is_no_index_is_refused(index):
    with pytest.raises(TypeError, match="is indexed by ints, slices"):
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


@pytest.mark.parametrize(
    ("shift", "size", "by_kernel"),
    [(1, 600_001, True), (4, 600_001, True), (8, 600_001, False), (1, 4001, False)],
)
def test_a_long_piece_is_copied_by_a_kernel_if_it_is_shifted(shift, size, by_kernel):
    """The driver copies slowly between addresses that differ by no multiple of 16 bytes."""
    host = np.arange(size + 8).astype(np.int16)
    x, graph, stream = kw.asarray(host), kw.Graph(), kw.Stream()
    kw.synchronize()
    with graph.capture(stream):
        copied = x[shift : shift + size].copy()
    assert ["copy_lines" in node.name for node in graph.nodes] == [True] * by_kernel
    graph.launch(stream)
    stream.synchronize()
    assert np.array_equal(copied.numpy(), host[shift : shift + size])


def test_a_copy_is_independent():
    x = kw.zeros(4)
    y = x.copy()
    y[...] = 1
    assert x.numpy().sum() == 0


# One code converts the types of a kind; each type meets each other kind.
KINDS = [
    ("bool",), ("int8", "int16", "int32", "int64"), ("uint8", "uint16", "uint32", "uint64"),
    ("float32", "float64"), ("float16", "bfloat16"), ("float8_e4m3fn", "float8_e5m2"),
    ("complex64", "complex128"),
]  # fmt: skip
CASTS = [
    (sources[i % len(sources)], targets[(i + number) % len(targets)])
    for number, sources in enumerate(KINDS)
    for targets in KINDS
    for i in range(max(len(sources), len(targets)))
]


@pytest.mark.parametrize(("source", "target"), CASTS)
def test_astype(source, target):
    values = np.array([0, 1, 1, 0, 1, 1], dtype=numpy_dtype(source)).reshape(2, 3)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a dropped imaginary part
        expected = values.astype(numpy_dtype(target))
    got = kw.asarray(values).astype(target)
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got.numpy(), expected)


def test_astype_values_and_spellings():
    values = np.array([-1.5, 0.1, 3e5, np.inf, np.nan, 65504], np.float32)
    x = kw.asarray(values)
    for spelling in ("f2", np.float16, np.dtype("float16"), "float16", kw.float16):
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(x.astype(spelling).numpy(), values.astype(np.float16))
    np.testing.assert_array_equal(x.T[::-1].astype("f8").numpy(), values[::-1].astype("f8"))
    assert x.astype("float32") is not x
    same = x.astype("float32", copy=False)
    assert same.ptr == x.ptr
    for wrong in ("no_type", object, "datetime64[s]", 3):
        with pytest.raises(TypeError, match="bfloat16"):
            x.astype(wrong)


def test_defaults_of_python_values():
    assert kw.asarray([1.0, 2.0]).dtype == np.float32
    assert kw.asarray([1, 2]).dtype == np.int64
    assert kw.asarray([True]).dtype == np.bool_
    assert kw.asarray(1j).dtype == np.complex64
    assert kw.asarray(2.5).shape == ()
    assert kw.asarray(np.float64(2.5)).dtype == np.float64
    assert kw.asarray([np.float64(2.5)]).dtype == np.float64
    assert kw.asarray(np.zeros(2)).dtype == np.float64
    assert kw.asarray([1, 2], dtype="bfloat16").dtype == ml_dtypes.bfloat16
    assert kw.empty(3).dtype == np.float32
    assert kw.full(2, 7).dtype == np.int64
    assert kw.full(2, 7.5).dtype == np.float32


def test_asarray_of_host_buffers():
    assert kw.asarray(b"abc").dtype == np.uint8
    import array

    np.testing.assert_array_equal(kw.asarray(array.array("h", [1, -2])).numpy(), [1, -2])
    np.testing.assert_array_equal(kw.asarray(np.array([1, 2], ">i4")).numpy(), [1, 2])


@pytest.mark.parametrize("wrong", ["text", [None], [object()], np.array(["a"]), {"a": 1}])
def test_what_is_no_array_is_refused(wrong):
    with pytest.raises(TypeError):
        kw.asarray(wrong)


def test_integers_that_do_not_fit_are_refused():
    with pytest.raises(OverflowError, match="300"):
        kw.asarray([300], dtype="uint8")
    with pytest.raises(OverflowError, match="-1"):
        kw.full(3, -1, dtype="uint32")


@pytest.mark.parametrize("name", DTYPES)
def test_zeros_ones_full_and_like(name):
    dtype = numpy_dtype(name)
    for shape in ((), 3, (2, 0, 4), (3, 5)):
        np.testing.assert_array_equal(kw.zeros(shape, name).numpy(), np.zeros(shape, dtype))
        np.testing.assert_array_equal(kw.ones(shape, name).numpy(), np.ones(shape, dtype))
    x = kw.full((2, 3), 1, name)
    np.testing.assert_array_equal(kw.zeros_like(x).numpy(), np.zeros((2, 3), dtype))
    np.testing.assert_array_equal(kw.ones_like(x).numpy(), np.ones((2, 3), dtype))
    assert kw.empty_like(x).shape == (2, 3) and kw.empty_like(x).dtype == dtype
    assert kw.full_like(x, 0, shape=4).shape == (4,)
    assert kw.zeros_like(np.ones((2, 2), "i2")).dtype == np.int16


def test_full_takes_any_value_of_its_type():
    assert (kw.full(5, 3 + 4j).numpy() == 3 + 4j).all()
    assert (kw.full(5, 3 + 4j, "complex128").numpy() == 3 + 4j).all()
    assert np.isnan(kw.full(5, float("nan")).numpy()).all()
    assert (kw.full(5, -7, "int16").numpy() == -7).all()
    with pytest.raises(TypeError):
        kw.full(5, 1.5, "int32")
    with pytest.raises(TypeError):
        kw.full(5, "x", "int32")


def test_arange_and_linspace():
    for arguments in ((5,), (2, 9), (9, 2), (9, 2, -3), (0, 1, 0.25), (0.5, 3)):
        expected = np.arange(*arguments)
        got = kw.arange(*arguments)
        assert got.dtype == (np.int64 if expected.dtype.kind == "i" else np.float32)
        np.testing.assert_allclose(got.numpy(), expected)
    assert kw.arange(4, dtype="float16").dtype == np.float16
    with pytest.raises(ValueError):
        kw.arange(1, 2, 0)
    np.testing.assert_allclose(kw.linspace(0, 1, 5).numpy(), np.linspace(0, 1, 5))
    np.testing.assert_allclose(
        kw.linspace(0, 1, 5, dtype="f8", endpoint=False).numpy(),
        np.linspace(0, 1, 5, endpoint=False),
    )


@pytest.mark.parametrize("wrong", [(-1,), (2, -3)])
def test_negative_extents_are_refused(wrong):
    with pytest.raises(ValueError, match="-"):
        kw.empty(wrong)


@pytest.mark.parametrize("wrong", [1.5, "3", (1, 2.0), None, (True,)])
def test_what_is_no_shape_is_refused(wrong):
    with pytest.raises(TypeError):
        kw.empty(wrong)


def test_too_large_arrays_raise_and_leave_nothing_behind(device):
    with pytest.raises((kw.OutOfMemory, kw.InvalidArgument)):
        kw.empty(1 << 60, "uint8")
    with pytest.raises(kw.InvalidArgument):
        kw.empty((1 << 40, 1 << 40))
    assert kw.zeros(4).numpy().sum() == 0


def test_assignment_of_scalars_and_arrays():
    values = np.zeros((4, 6), np.float32)
    x = kw.asarray(values)

    def both(index, value):
        x[index] = value
        values[index] = value.numpy() if isinstance(value, kw.Array) else value
        np.testing.assert_array_equal(x.numpy(), values)

    both((slice(None), 0), 3)
    both(1, 2.5)
    both((2, 3), np.float32(9))
    both((slice(None, None, 2), slice(1, 5, 2)), [[1, 2], [3, 4]])
    both(slice(None), np.arange(6, dtype=np.float64))
    both((slice(1, 3), slice(None, None, -1)), kw.arange(6, dtype="float32"))
    both(Ellipsis, kw.full((), 4.0))
    both((0, slice(0, 0)), 8)


def test_assignment_converts_and_refuses():
    x = kw.zeros(4, "int32")
    x[...] = kw.asarray([1, 2, 3, 4])
    assert x.numpy().tolist() == [1, 2, 3, 4]
    with pytest.raises(ValueError, match=r"\(3,\)"):
        x[...] = [1, 2, 3]
    with pytest.raises(OverflowError):
        x[0] = 1 << 40
    with pytest.raises(TypeError):
        x[...] = "text"
    with pytest.raises(TypeError):
        kw.zeros(2)[...] = 1j


def test_overlapping_assignment_is_as_if_copied_first():
    values = np.arange(10, dtype=np.int32)
    x = kw.asarray(values)
    x[1:] = x[:-1]
    values[1:] = values[:-1].copy()
    np.testing.assert_array_equal(x.numpy(), values)


def test_item_and_python_numbers():
    assert kw.asarray([[2.5]]).item() == 2.5
    assert isinstance(kw.asarray(3).item(), int)
    assert float(kw.full((), 1.5)) == 1.5 and int(kw.full((), 7)) == 7
    assert complex(kw.full((), 1j)) == 1j
    assert [10, 20, 30][kw.asarray(1)] == 20
    assert bool(kw.ones(())) and not bool(kw.zeros((1, 1)))
    with pytest.raises(ValueError, match="not one"):
        kw.zeros(2).item()
    with pytest.raises(ValueError):
        bool(kw.zeros(2))
    with pytest.raises(TypeError):
        [1, 2][kw.ones(())]


def test_no_copy_to_the_host_by_itself():
    x = kw.zeros(3)
    with pytest.raises(TypeError, match=r"\.numpy\(\)"):
        np.asarray(x)
    with pytest.raises(TypeError):
        np.array([x, x])


def test_repr_shows_values_type_and_device(device):
    text = repr(kw.asarray([1.5, 2.0]))
    assert "1.5" in text and "float32" in text and str(device) in text
    assert "..." in repr(kw.arange(10_000)) and "9999" in repr(kw.arange(10_000))
    assert "shape=(0, 3)" in repr(kw.zeros((0, 3)))
    big = np.arange(40 * 50).reshape(40, 50)
    shown, whole = repr(kw.asarray(big)), np.array2string(big, threshold=0, separator=", ")
    assert (
        shown.replace(" ", "")
        .replace("\n", "")
        .startswith("kw.Array(" + whole.replace(" ", "").replace("\n", ""))
    )


@pytest.mark.parametrize("name", DTYPES)
def test_pickling_copies_the_data(name):
    values = sample((3, 4), name)
    x = pickle.loads(pickle.dumps(kw.asarray(values)[:, ::2]))
    assert x.numpy().tobytes() == np.ascontiguousarray(values[:, ::2]).tobytes()


def test_to_another_device_and_back(device):
    values = sample((5, 7), "float32")
    x = kw.asarray(values)
    assert x.to(device) is x
    there = x[:, ::-1].to("sim")
    assert there.device.is_simulated
    np.testing.assert_array_equal(there.to(device).numpy(), values[:, ::-1])


def test_pinned_memory_is_numpy_memory():
    x = kw.pinned((3, 4), "float64")
    x[...] = 7
    assert x.shape == (3, 4) and x.dtype == np.float64 and x.flags.writeable
    assert kw.asarray(x).numpy().sum() == 84
    view = x[1]
    del x
    assert view.sum() == 28
    assert kw.pinned(0).size == 0


def test_many_allocations_give_memory_back(device):
    kw.zeros(1 << 20)
    device.synchronize()
    before = device.memory_info().free
    for _ in range(300):
        kw.empty(1 << 20)
    device.synchronize()
    assert before - device.memory_info().free < 64 << 20
