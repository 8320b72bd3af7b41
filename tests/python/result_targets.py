"""Arrays that tests give functions of kw.nn for results, their `out`."""

import numpy as np
import pytest

import kernwright as kw
from kernwright.errors import ArgumentError, InvalidArgument

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


def require_captured(call):
    """A captured function writes to `out` by its graph, too."""
    expected = call()
    out = like(expected)
    captured = kw.captured(lambda x: call.func(x, *call.args[1:], **call.keywords, out=out) * 1)
    for _ in range(4):
        out[...] = 0
        assert bits(captured(call.args[0])) == bits(expected)
    assert bits(out) == bits(expected)


def require_wrong_kinds_refused(attempt, one):
    """`attempt` calls a function with an array in place of `one`: another dtype, an array of NumPy,
    elements that are one."""
    with pytest.raises(InvalidArgument, match=str(one.dtype)):
        attempt(kw.empty(one.shape, "uint8"))
    with pytest.raises(ArgumentError, match="array of a device"):
        attempt(np.empty(one.shape))
    with pytest.raises(InvalidArgument, match=r"read-only|several of its elements are one"):
        attempt(kw.broadcast_to(kw.zeros((), dtype=one.dtype), one.shape))
