"""Helpers of the tests of kw.nn: values of every dtype, views of every kind, errors of a result."""

import ml_dtypes
import numpy as np

import kernwright as kw

TYPES = {
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float32": np.float32,
    "float64": np.float64,
}
# Of one rounding of the result, with a little room for the arithmetic.
EPSILON = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 2e-6, "float64": 1e-13}


def values(shape, dtype="float32", seed=0, scale=1.0):
    """Normal values of `dtype` as NumPy holds them."""
    made = np.random.default_rng(seed).normal(size=shape) * scale
    return made.astype(TYPES[dtype])


def wide(x):
    return np.asarray(x).astype(np.float64)


def assert_close(got, expected, dtype="float32", factor=1.0):
    """Element by element, and by the norm of the whole."""
    got, expected = wide(got.numpy()), wide(expected)
    assert got.shape == expected.shape
    rtol = EPSILON[dtype] * factor
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol)
    finite = np.isfinite(expected)
    norm = np.linalg.norm(expected[finite])
    if norm > 0:
        assert np.linalg.norm(got[finite] - expected[finite]) <= rtol * norm


def views(x):
    """The same values on the device: row-major, transposed, reversed, with gaps, misaligned."""
    yield kw.asarray(x)
    yield kw.asarray(np.ascontiguousarray(x.T)).T
    yield kw.asarray(np.ascontiguousarray(x[::-1]))[::-1]
    gaps = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    gaps[..., ::2] = x
    yield kw.asarray(gaps)[..., ::2]
    padded = np.zeros((*x.shape[:-1], x.shape[-1] + 3), x.dtype)
    padded[..., 1:-2] = x
    yield kw.asarray(padded)[..., 1:-2]
    shifted = kw.asarray(np.concatenate([np.zeros(1, x.dtype), x.ravel()]))
    yield shifted[1:].reshape(x.shape)
