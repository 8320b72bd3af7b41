"""Transforms against NumPy's in float64."""

import numpy as np
import pytest
from numpy_pairs import compare

import kernwright as kw

LENGTHS = [1, 2, 3, 5, 16, 60, 64, 67, 97, 128, 400, 512, 521, 1009, 1024, 2 * 521]


def close(got, expected, tolerance=1e-12):
    got = got.numpy()
    assert got.shape == expected.shape
    scale = max(np.linalg.norm(expected), 1e-300)
    assert np.linalg.norm(got - expected) <= tolerance * scale


@pytest.mark.parametrize("n", LENGTHS)
def test_complex_transforms(n):
    rng = np.random.default_rng(n)
    x = rng.standard_normal((2, n)) + 1j * rng.standard_normal((2, n))
    close(kw.fft.fft(kw.asarray(x)), np.fft.fft(x))
    close(kw.fft.ifft(kw.asarray(x)), np.fft.ifft(x))
    single = kw.fft.fft(kw.asarray(x.astype(np.complex64)))
    assert single.dtype == np.complex64
    close(single, np.fft.fft(x), 2e-6)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 9, 67, 100])
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_real_transforms(n, norm):
    rng = np.random.default_rng(n)
    x = rng.standard_normal((3, n))
    half = rng.standard_normal((3, n)) + 1j * rng.standard_normal((3, n))
    close(kw.fft.rfft(kw.asarray(x), norm=norm), np.fft.rfft(x, norm=norm))
    close(kw.fft.ihfft(kw.asarray(x), norm=norm), np.fft.ihfft(x, norm=norm))
    for wanted in (n, n + 3, max(1, n - 1)):
        close(kw.fft.irfft(kw.asarray(half), n=wanted, norm=norm),
              np.fft.irfft(half, n=wanted, norm=norm))  # fmt: skip
        close(kw.fft.hfft(kw.asarray(half), n=wanted, norm=norm),
              np.fft.hfft(half, n=wanted, norm=norm))  # fmt: skip


def test_sizes_axes_and_views():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 6, 5)) + 1j * rng.standard_normal((4, 6, 5))
    a = kw.asarray(x)
    close(kw.fft.fft(a[::-1], n=4, axis=1), np.fft.fft(x[::-1], n=4, axis=1))
    close(kw.fft.fft(a, n=9, axis=0), np.fft.fft(x, n=9, axis=0))
    close(kw.fft.fftn(a), np.fft.fftn(x))
    close(kw.fft.ifftn(a, s=(3, 8), axes=(0, 2)), np.fft.ifftn(x, s=(3, 8), axes=(0, 2)))
    close(kw.fft.rfftn(a.real if hasattr(a, "real") else kw.real(a)), np.fft.rfftn(x.real))
    close(kw.fft.irfftn(a), np.fft.irfftn(x, axes=(0, 1, 2)))
    close(kw.fft.irfftn(a, s=(4, 7), axes=(1, 2)), np.fft.irfftn(x, s=(4, 7), axes=(1, 2)))


def test_helpers():
    for n in (1, 2, 7, 8):
        np.testing.assert_allclose(kw.fft.fftfreq(n, d=0.1).numpy(), np.fft.fftfreq(n, 0.1), 1e-6)
        np.testing.assert_allclose(kw.fft.rfftfreq(n).numpy(), np.fft.rfftfreq(n), 1e-6)
    x = np.arange(30.0).reshape(5, 6)
    for axes in (None, 0, (0, 1), -1):
        got = kw.fft.fftshift(kw.asarray(x), axes=axes)
        np.testing.assert_array_equal(got.numpy(), np.fft.fftshift(x, axes))
        np.testing.assert_array_equal(kw.fft.ifftshift(got, axes=axes).numpy(), x)


def test_refusals():
    x = kw.ones((4,), dtype="complex64")
    with pytest.raises(kw.InvalidArgument, match="norm"):
        kw.fft.fft(x, norm="half")
    with pytest.raises(kw.InvalidArgument, match="at least one element"):
        kw.fft.fft(x, n=0)
    with pytest.raises(kw.InvalidArgument, match="out of range"):
        kw.fft.fft(x, axis=1)
    with pytest.raises(kw.ArgumentError, match="real numbers"):
        kw.fft.rfft(x)
    with pytest.raises(kw.InvalidArgument, match="at least one element"):
        kw.fft.fftfreq(0)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64", "float16"])
def test_types_of_transforms(dtype):
    x = np.random.default_rng(1).integers(0, 2, (2, 60)).astype(dtype)
    narrow = dtype == "float16"
    for name in ("fft", "ifft", "rfft", "ihfft", "irfft", "hfft"):
        got = getattr(kw.fft, name)(kw.asarray(x))
        expected = getattr(np.fft, name)(x.astype(np.float64))
        assert got.dtype.itemsize == expected.dtype.itemsize // (2 if narrow else 1)
        close(got, expected, 2e-6 if narrow else 1e-12)


@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2"])
def test_two_axes_and_arguments_by_position(name):
    real = np.random.default_rng(3).normal(size=(3, 6, 5))
    x = real if name == "rfft2" else real + 1j * real[::-1]
    call, reference = getattr(kw.fft, name), getattr(np.fft, name)
    for args in ((), ((4, 8),), (None, (1, 0)), ((5, 3), (0, 2), "ortho")):
        compare(call(kw.asarray(x), *args), reference(x, *args))
    one, two = name.replace("2", ""), name.replace("2", "n")
    compare(getattr(kw.fft, one)(kw.asarray(x), 8, 1, None), getattr(np.fft, one)(x, 8, 1, None))
    compare(
        getattr(kw.fft, two)(kw.asarray(x), None, (0, 1)), getattr(np.fft, two)(x, None, (0, 1))
    )


def test_frequencies_by_position():
    compare(kw.fft.fftfreq(7, 0.5), np.float32(np.fft.fftfreq(7, 0.5)), rtol=1e-6)
    compare(kw.fft.rfftfreq(7, 0.5), np.float32(np.fft.rfftfreq(7, 0.5)), rtol=1e-6)
    compare(kw.fft.fftshift(kw.arange(5), 0), np.fft.fftshift(np.arange(5), 0))
