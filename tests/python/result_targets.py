"""Arrays that tests give functions of kw.nn for results, their `out`."""

import numpy as np

import kernwright as kw

UNTOUCHED = 77  # in all memory that no result has


def random(*shape, dtype="float32", seed=0):
    values = np.random.default_rng(seed + sum(shape)).normal(size=shape)
    return kw.asarray(values.astype(np.float32)).astype(dtype)


def bits(array):
    return array.numpy().tobytes()


def as_tuple(results):
    return results if isinstance(results, tuple) else (results,)


def like(results, make=None):
    """An `out` for these results, of numbers that they do not have."""
    make = make or (lambda shape, dtype: kw.full(shape, UNTOUCHED, dtype=dtype))
    made = tuple(make(each.shape, each.dtype) for each in as_tuple(results))
    return made if isinstance(results, tuple) else made[0]


def spaced(shape, dtype):
    """Gaps of a row's length behind each row."""
    return kw.full((*shape[:-1], 2 * shape[-1]), UNTOUCHED, dtype=dtype)[..., : shape[-1]]


def reversed_rows(shape, dtype):
    return kw.full(shape, UNTOUCHED, dtype=dtype)[..., ::-1, :]


def by_columns(shape, dtype):
    """The last two axes exchanged in memory."""
    return kw.full((*shape[:-2], shape[-1], shape[-2]), UNTOUCHED, dtype=dtype).mT


def shifted(shape, dtype):
    """Contiguous, but it begins one element behind a multiple of 16 bytes."""
    count = int(np.prod(shape))
    return kw.full(count + 1, UNTOUCHED, dtype=dtype)[1:].reshape(shape)


LAYOUTS = (spaced, reversed_rows, by_columns, shifted)


def require_same_bits(call, expected, make=None):
    """`call` with an `out` of this layout returns it, with the bits of `expected`."""
    out = like(expected, make)
    got = call(out=out)
    for made, given, wanted in zip(as_tuple(got), as_tuple(out), as_tuple(expected), strict=True):
        assert made is given
        assert bits(given) == bits(wanted)


def allocations(call):
    """How often `call` takes memory once its kernels are there."""
    call()
    before = kw.memory.stats()["allocations"]
    call()
    return kw.memory.stats()["allocations"] - before
