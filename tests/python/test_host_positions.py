"""Positions that the host has are checked there: sequences, ints, NumPy's arrays."""

import numpy as np
import pytest

import kernwright as kw


def test_beyond_the_ends():
    values = np.arange(12.0).reshape(3, 4)
    x = kw.asarray(values)
    for wild in ([5], [0, -5], np.array([4]), 4, -5, (4,), [[2], [9]], np.int8(7)):
        rows = np.reshape(wild, (1, -1))
        for mode in (None, "raise"):
            for call in (
                lambda m, w=wild: kw.take(x, w, axis=1, mode=m),
                lambda m, w=wild: x.T.take(w, axis=0, mode=m),
                lambda m, w=rows: kw.take_along_axis(x, w, axis=1, mode=m),
                lambda m, w=rows: kw.gather(x, 1, w, mode=m),
                lambda m, w=rows: kw.scatter(x, 1, w, 1, mode=m),
                lambda m, w=wild: kw.put(x, w, 1, axis=1, mode=m),
                lambda m, w=rows: kw.put_along_axis(x, w, 1, 1, mode=m),
            ):
                with pytest.raises(IndexError, match=r"out of bounds for axis [01] with size 4"):
                    call(mode)
        found = kw.take(x, wild, axis=1, mode="clip")
        nearest = np.clip(np.where(np.less(wild, 0), np.add(wild, 4), wild), 0, 3)
        np.testing.assert_array_equal(found.numpy(), np.take(values, nearest, axis=1))
    with pytest.raises(IndexError):
        kw.take(x, [12])
    with pytest.raises(IndexError):
        kw.put(x.T, [99], [1.0])
    kw.put(x, [99], [1.0], mode="clip")
    np.testing.assert_array_equal(x.numpy(), values)
    assert kw.take(x, [-12, 11]).tolist() == [0, 11] and kw.take(x, []).shape == (0,)
