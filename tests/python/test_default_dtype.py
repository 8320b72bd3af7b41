"""kw.set_default_dtype: what is made of Python floats."""

import threading

import ml_dtypes
import numpy as np
import pytest

import kernwright as kw


@pytest.fixture(params=["float64", "float16", "bfloat16"])
def dtype(request):
    kw.set_default_dtype(request.param)
    yield np.dtype(getattr(ml_dtypes, request.param, request.param))
    kw.set_default_dtype("float32")


def test_what_is_made_of_floats(dtype):
    wide = np.dtype("complex128" if dtype == np.float64 else "complex64")
    assert kw.get_default_dtype() == dtype
    made = (
        kw.asarray(0.1), kw.asarray([[1, 2.5]]), kw.full(2, 0.5), kw.zeros(2), kw.ones((2, 2)),
        kw.empty(3), kw.eye(2), kw.arange(0.0, 1.0, 0.25), kw.linspace(0, 1, 3),
        kw.fft.fftfreq(4), kw.fft.rfftfreq(4), kw.random.uniform(3, seed=1),
        kw.random.normal((2,), seed=1), kw.where(kw.asarray([True, False]), 1.0, 0.5),
    )  # fmt: skip
    assert [x.dtype for x in made] == [dtype] * len(made)
    assert kw.asarray(0.1).numpy() == dtype.type(0.1)
    assert kw.asarray([1j]).dtype == kw.full(2, 1j).dtype == kw.result_type(1j) == wide
    assert kw.result_type(1.0) == dtype
    info = kw.__array_namespace_info__().default_dtypes()
    assert info["real floating"] == dtype and info["complex floating"] == wide


def test_what_has_a_type_keeps_it(dtype):
    assert kw.asarray([1, 2]).dtype == kw.arange(3).dtype == kw.full(2, 7).dtype == np.int64
    assert kw.asarray(np.float32(1)).dtype == kw.asarray(np.ones(2, "f4")).dtype == np.float32
    assert kw.zeros(2, "float32").dtype == (kw.ones(2, "float32") * 0.5).dtype == np.float32
    assert kw.zeros_like(kw.ones(2, "int8")).dtype == np.int8
    assert (kw.asarray([1, 2]) / 2).dtype == np.float64
    assert kw.asarray([True]).dtype == bool


def test_it_is_that_of_all_threads(dtype):
    found = []
    thread = threading.Thread(target=lambda: found.append(kw.zeros(1).dtype))
    thread.start()
    thread.join()
    assert found == [dtype]


@pytest.mark.parametrize("wrong", ["int32", "complex64", "float8_e5m2", bool, "nonsense", None, 3])
def test_what_is_no_default(wrong):
    with pytest.raises(kw.ArgumentError):
        kw.set_default_dtype(wrong)
    assert kw.get_default_dtype() == np.float32
