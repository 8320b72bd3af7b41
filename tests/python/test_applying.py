"""apply_along_axis, vectorize: against NumPy."""

import numpy as np
import pytest
from numpy_pairs import compare, views

import kernwright as kw

X = np.arange(24.0).reshape(2, 3, 4)


def test_slices():
    x = kw.asarray(X)
    for axis in (-1, 0, 1):
        compare(kw.apply_along_axis(kw.sum, axis, x), np.apply_along_axis(np.sum, axis, X))
        compare(kw.apply_along_axis(lambda v: v[::2] + 1, axis, x),
                np.apply_along_axis(lambda v: v[::2] + 1, axis, X))  # fmt: skip
        compare(kw.apply_along_axis(kw.outer, axis, x, kw.arange(2)),
                np.apply_along_axis(np.outer, axis, X, np.arange(2)))  # fmt: skip
    compare(kw.apply_along_axis(lambda v: 3, 0, x), np.full((3, 4), 3))
    for view in views(X[0]):
        compare(kw.apply_along_axis(kw.cumsum, 1, view), np.cumsum(X[0], 1))
    compare(kw.apply_along_axis(kw.sort, 0, kw.asarray([3, 1])), np.array([1, 3]))
    with pytest.raises(kw.InvalidArgument, match="no vector"):
        kw.apply_along_axis(kw.sum, 1, kw.ones((0, 3)))
    with pytest.raises(kw.AxisError):
        kw.apply_along_axis(kw.sum, 2, kw.ones((2, 3)))


def test_functions_of_numbers():
    x = kw.asarray(X[0])
    larger = kw.vectorize(lambda a, b: kw.where(a > b, a - b, a + b))
    compare(larger(x, 3.0), np.where(X[0] > 3, X[0] - 3, X[0] + 3))
    compare(larger(x, x[0]), np.where(X[0] > X[0, 0], X[0] - X[0, 0], X[0] + X[0, 0]))
    compare(larger(x, b=5), np.where(X[0] > 5, X[0] - 5, X[0] + 5))
    single = kw.vectorize(lambda a: a * a, otypes=["float32"])
    compare(single(x), np.float32(X[0] ** 2))

    @kw.vectorize
    def both(a):
        """Sum and product."""
        return a + a, a * a

    assert both.__doc__ == "Sum and product."
    compare(both(x), (X[0] * 2, X[0] ** 2))
    p = kw.vectorize(lambda q, a: sum(c * a**i for i, c in enumerate(q)), excluded={0})
    compare(p([1.0, 2.0, 3.0], x), 1 + 2 * X[0] + 3 * X[0] ** 2)


def test_errors():
    with pytest.raises(kw.ArgumentError, match="function"):
        kw.vectorize(3)
    with pytest.raises(kw.ArgumentError, match="apply_along_axis"):
        kw.vectorize(lambda a: a, signature="(n)->()")
    with pytest.raises(kw.InvalidArgument):
        kw.vectorize(lambda a: a if a > 0 else -a)(kw.ones(3))
    with pytest.raises(kw.InvalidArgument, match="otypes"):
        kw.vectorize(lambda a: a, otypes=["f4", "f4"])(kw.ones(3))
