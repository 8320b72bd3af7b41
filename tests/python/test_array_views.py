"""Array.view(dtype) against NumPy's."""

import numpy as np
import pytest
from conftest import DTYPES

import kernwright as kw


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_view_is_numpys(source, target):
    source, target = (np.dtype(getattr(kw, name, name)) for name in (source, target))
    memory = np.random.default_rng(5).integers(0, 2, 16 * 6 * 4, dtype=np.uint8)
    values = memory.view(source).reshape(4, -1)
    x = kw.asarray(values)
    cuts = (..., (slice(None, None, -2),), (slice(1, 3), slice(0, 1)), (slice(0, 0),), (0,))
    cuts += ((..., slice(None, None, 2)), (..., slice(0, 4)), (..., slice(0, 0)), (0, 0))
    for cut in cuts:
        try:
            expected = values[cut].view(target)
        except (ValueError, TypeError):
            with pytest.raises(kw.InvalidArgument):
                x[cut].view(target)
            continue
        try:
            found = x[cut].view(target)
        except kw.InvalidArgument as error:  # the device's alignment; NumPy has no such rule
            assert "multiples of" in str(error)
            step = target.itemsize // (2 if target.kind == "c" else 1)
            pointer, strides = values[cut].ctypes.data - values.ctypes.data, values[cut].strides
            assert pointer % step or any(stride % step for stride in strides)
            continue
        assert (found.shape, found.dtype) == (expected.shape, target)
        if found.size:
            assert found.strides == expected.strides
        assert found.numpy().tobytes() == expected.tobytes()


def test_view_shares_memory_and_keeps_it():
    x = kw.zeros((2, 3), "i8")
    seen = x.view("u8")
    assert seen.ptr == x.ptr and not seen.read_only
    seen[0, 1] = 2**63
    assert x.numpy()[0, 1] == -(2**63)
    assert x.view().dtype == np.int64 and x.view().ptr == x.ptr
    seen = kw.arange(1000, dtype="i4").view("u1").view("f2")
    pointer = seen.ptr
    for _ in range(10):
        assert kw.zeros(1000, "i4").ptr != pointer
    assert (seen.view("i4").numpy() == np.arange(1000)).all()


def test_view_refuses_what_makes_no_elements():
    with pytest.raises(kw.InvalidArgument, match="whole number"):
        kw.zeros(3, "u1").view("f4")
    with pytest.raises(kw.InvalidArgument, match="gaps"):
        kw.zeros((4, 4), "f4").T.view("u1")
    with pytest.raises(kw.InvalidArgument, match="without axes"):
        kw.zeros((), "f4").view("u1")
    with pytest.raises(kw.InvalidArgument, match="multiples of 4"):
        kw.zeros(9, "u1")[1:].view("f4")
    for wrong in ((2, 3), [2], 3, "nonsense", object(), "f4,i4"):
        with pytest.raises(kw.ArgumentError):
            kw.zeros(4).view(wrong)


def test_parts_of_complex_numbers_are_views():
    for dtype in ("complex64", "complex128"):
        values = (np.arange(12) + 1j * np.arange(12)[::-1]).reshape(3, 4).astype(dtype)
        for cut in (..., (slice(None, None, -2),), (slice(1, 3), slice(None, None, 3)), 1, (1, 2),
                    slice(0, 0)):  # fmt: skip
            host = values.copy()
            x = kw.asarray(host)
            view = host[cut] if isinstance(host[cut], np.ndarray) else host[1:2, 2:3].reshape(())
            for part in ("real", "imag"):
                found = getattr(x[cut], part)
                assert found.dtype == view.real.dtype and np.array_equal(
                    found.numpy(), getattr(view, part)
                )
            x[cut].imag = 7
            view.imag = 7
            x[cut].real *= 2
            view.real *= 2
            assert np.array_equal(x.numpy(), host)
            assert np.array_equal(x[cut].conj().numpy(), host[cut].conj())
            assert np.array_equal(x.T.conjugate().numpy(), host.T.conj())


def test_parts_of_real_numbers():
    for dtype in ("float32", "int16", "bool", "bfloat16"):
        x = kw.ones(3, dtype)
        assert x.real.ptr == x.ptr and x.imag.dtype == x.dtype and x.imag.tolist() == [0] * 3
        x.real = [0, 1, 1]
        assert x.tolist() == [0, 1, 1]
        with pytest.raises(kw.ArgumentError, match="no imaginary"):
            x.imag = 1
    with pytest.raises(kw.InvalidArgument, match=r"broadcast|Incompatible"):
        kw.ones(3, "complex64").real = [1, 2]
