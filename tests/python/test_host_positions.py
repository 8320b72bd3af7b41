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
        for given in (wild, kw.asarray(wild)):
            for mode in ("clip", "wrap"):
                found = kw.take(x, given, axis=1, mode=mode)
                np.testing.assert_array_equal(found.numpy(), np.take(values, wild, 1, mode=mode))
    far = np.array([2**64 - 1, 2**63, 3, 0], np.uint64)
    assert kw.take(x[0], kw.asarray(far), mode="clip").tolist() == [3, 3, 3, 0]
    assert kw.take(x[0], kw.asarray(far), mode="wrap").tolist() == [3, 0, 3, 0]
    with pytest.raises(IndexError):
        kw.take(x, [12])
    with pytest.raises(IndexError):
        kw.put(x.T, [99], [1.0])
    for given in ([99, -5], kw.asarray([99, -5])):
        y = x.copy()
        kw.put(y, given, [7.0, 8.0], mode="clip")
        expected = values.copy()
        np.put(expected, [99, -5], [7.0, 8.0], mode="clip")
        np.testing.assert_array_equal(y.numpy(), expected)
    assert kw.take(x, [-12, 11]).tolist() == [0, 11] and kw.take(x, []).shape == (0,)
