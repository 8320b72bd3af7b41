"""packbits, unpackbits: against NumPy."""

import numpy as np
import pytest
from numpy_pairs import compare, same, views

import kernwright as kw

RNG = np.random.default_rng(12)
BITS = RNG.integers(0, 2, (5, 13))


@pytest.mark.parametrize("bitorder", ["big", "little"])
def test_bits(bitorder):
    for axis in (None, 0, -1):
        same("packbits", BITS, axis=axis, bitorder=bitorder)
        packed = np.packbits(BITS, axis=axis, bitorder=bitorder)
        same("unpackbits", packed, axis=axis, bitorder=bitorder)
        for count in (0, 3, 13, 99, -2):
            same("unpackbits", packed, axis=axis, count=count, bitorder=bitorder)
    same("packbits", BITS[0].astype(bool), bitorder=bitorder)
    same("packbits", BITS[:0], axis=1, bitorder=bitorder)
    same("packbits", BITS[:, :0], axis=1, bitorder=bitorder)
    same("unpackbits", np.zeros(0, np.uint8), bitorder=bitorder)
    for view in views(BITS):
        compare(kw.packbits(view, 1, bitorder), np.packbits(BITS, 1, bitorder))


def test_errors():
    with pytest.raises(kw.ArgumentError, match="integers"):
        kw.packbits(kw.ones(3))
    with pytest.raises(kw.ArgumentError, match="uint8"):
        kw.unpackbits(kw.arange(3))
    with pytest.raises(kw.InvalidArgument, match="bitorder"):
        kw.packbits(kw.arange(3), bitorder="middle")
    with pytest.raises(kw.InvalidArgument, match="count"):
        kw.unpackbits(kw.asarray([1], "uint8"), count=-9)
