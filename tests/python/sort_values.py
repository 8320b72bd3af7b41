"""Values for the tests of sorting and their order by a NumPy reference without NaN."""

import numpy as np

REAL = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"),
]


def values(kw, shape, dtype, seed=0):
    """Random, with many equal elements, and for floats both zeros, NaN, subnormals, infinity."""
    rng = np.random.default_rng([seed, len(dtype), *shape])
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if "int" in dtype:
        limits = np.iinfo(dtype)
        made = rng.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
        flat = made.reshape(-1)
        flat[::3] = rng.integers(0, 3, flat[::3].size)
        return made
    made = rng.standard_normal(shape)
    flat = made.reshape(-1)
    flat[::3] = rng.integers(-2, 3, flat[::3].size)
    special = [np.nan, np.inf, -np.inf, -0.0, 0.0, 2.0**-130, -(2.0**-130), -np.nan]
    flat[1::7] = rng.choice(special, flat[1::7].size)
    with np.errstate(over="ignore", invalid="ignore"):
        return made.astype(np.dtype(getattr(kw, dtype)))


def ranks(x, descending=False):
    """Integers in the order of the elements: equal ones alike, NaN above all."""
    flat = x.reshape(-1)
    wide = flat if flat.dtype.kind in "iub" else flat.astype(np.float64)
    _, inverse = np.unique(wide, return_inverse=True)
    inverse = inverse.reshape(x.shape)
    return -inverse if descending else inverse


def order(x, axis=-1, descending=False):
    return np.argsort(ranks(x, descending), axis=axis, kind="stable")


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
