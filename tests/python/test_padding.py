"""pad(): all modes against NumPy."""

import numpy as np
import pytest
from numpy_pairs import compare, same, views

import kernwright as kw

X = np.array([[3.0, 1.0, 2.0, 7.5], [1.0, 4.0, -2.0, 8.0], [0.5, 2.5, 9.0, 1.0]])
MODES = [
    *("constant", "edge", "linear_ramp", "maximum", "mean", "median", "minimum"),
    *("reflect", "symmetric", "wrap"),
]


@pytest.mark.parametrize("mode", MODES)
def test_widths_and_types(mode):
    for widths in (2, (1, 3), [(2, 0), (1, 3)], [(9, 4), (0, 11)], 0):
        same("pad", X, widths, mode)
    same("pad", np.arange(12).reshape(3, 4), (2, 5), mode)
    same("pad", X[:1], 3, mode)
    same("pad", X[0], {0: (1, 2)}, mode)
    same("pad", X.astype(np.float32), 1, mode, rtol=1e-6)
    for view in views(X):
        compare(kw.pad(view, 2, mode), np.pad(X, 2, mode))


def test_options():
    for mode in ("reflect", "symmetric"):
        for widths in ((2, 1), (9, 4), [(0, 3), (7, 1)]):
            same("pad", X, widths, mode, reflect_type="odd")
        same("pad", X[:1], 2, mode, reflect_type="odd")
    for mode in ("maximum", "mean", "median", "minimum"):
        same("pad", X, 2, mode, stat_length=2)
        same("pad", X, 2, mode, stat_length=((1, 9), (2, 3)))
    same("pad", X, 2, constant_values=((1, 2), (3, 4)))
    same("pad", X, 2, constant_values=(1, 2.5))
    same("pad", X, (2, 3), "linear_ramp", end_values=((1, 2), (-3, 4)))
    same("pad", X + 1j, 2, "linear_ramp", end_values=2j)
    same("pad", np.array([-5, 3]), (3, 4), "linear_ramp", end_values=((-1, -6),))
    assert kw.pad(kw.asarray(X), (1, 2), "empty").shape == (6, 7)
    compare(kw.pad(kw.asarray(X), (1, 2), "empty")[1:4, 1:5], X)
    compare(kw.pad(kw.asarray(X), 1, constant_values=kw.asarray(5.0)),
            np.pad(X, 1, constant_values=5))  # fmt: skip


def test_functions():
    def framed(vector, width, axis, options):
        before, after = width
        vector[:before] = options.get("value", 10) + axis
        if after:
            vector[-after:] = vector[before : before + after][::-1]

    for widths in (2, ((1, 0), (2, 1)), 0):
        same("pad", X, widths, framed)
        same("pad", X, widths, framed, value=-3)
    cube = np.arange(12).reshape(2, 3, 2)
    same("pad", cube, 1, framed)
    same("pad", np.arange(3.0), (2, 1), framed)
    with pytest.raises(TypeError, match="value"):
        kw.pad(kw.asarray(X), 1, value=3)


def test_errors():
    x = kw.asarray(X)
    for widths in (-1, 1.5, (1, 2, 3)):
        with pytest.raises(kw.InvalidArgument, match="pad_width"):
            kw.pad(x, widths)
    with pytest.raises(kw.InvalidArgument, match="mode"):
        kw.pad(x, 1, "mirror")
    with pytest.raises(kw.InvalidArgument, match="reflect_type"):
        kw.pad(x, 1, "reflect", reflect_type="half")
    with pytest.raises(kw.InvalidArgument, match="stat_length"):
        kw.pad(x, 1, "mean", stat_length=0)
    for mode in ("edge", "mean", "linear_ramp"):
        with pytest.raises(kw.InvalidArgument, match="no element"):
            kw.pad(x[:0], 1, mode)
    with pytest.raises(kw.ArgumentError, match="numbers"):
        kw.pad(x, 1, constant_values="one")
