"""Membership, hashes, formats, conversions to numbers and lists, iteration."""

import math

import ml_dtypes
import numpy as np
import pytest

import kernwright as kw


@pytest.mark.parametrize("dtype", ["int64", "float64", "bool", "bfloat16", "complex64"])
def test_membership_is_numpys(dtype):
    values = np.array([[0, 1, 1], [1, 0, 7]]).astype(getattr(ml_dtypes, dtype, dtype))
    for view in (values, values[:, ::-2], values[:0], values[1:, 2:].reshape(())):
        x = kw.asarray(view)
        for value in (0, 1, 7, 8, 1.0, 0.5, True, np.float32(7)):
            assert (value in x) == (value in view), (dtype, view.shape, value)
    assert "text" not in kw.ones(3) and None not in kw.ones(3)
    assert float("nan") not in kw.asarray([float("nan")])
    assert kw.asarray([1, 2]) in kw.asarray([[5, 2], [3, 4]])  # broadcast: some element is equal
    with pytest.raises(kw.InvalidArgument, match="Incompatible dimensions"):
        kw.ones(2) in kw.ones(3)  # noqa: B015


def test_identity_and_hash():
    x, y = kw.ones(3), kw.ones(3)
    assert x in [x, y]  # the same object
    with pytest.raises(kw.InvalidArgument, match="3 elements"):  # of y == x, element by element
        x in [y]  # noqa: B015
    for fails in (lambda: [y].index(x), lambda: sorted([x, y]), lambda: max(x, y)):
        with pytest.raises(kw.InvalidArgument, match="3 elements"):
            fails()
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    assert (x is x) and x is not y


def test_formats():
    for value, spec in ((2.5, ".3f"), (7, "d"), (0.5, ">8.1%"), (True, ""), (1 + 2j, ".1f")):
        assert format(kw.asarray(value), spec) == format(value, spec)
    assert f"{kw.full((), 0.5, 'bfloat16'):.2f}" == "0.50" and f"{kw.full((1, 1), 3):04d}" == "0003"
    x = kw.asarray([1.5, 2.5])
    assert f"{x}" == str(x) and f"{x!r:>3}" == repr(x)
    with pytest.raises(kw.ArgumentError, match=r"x\.tolist"):
        f"{x:.2f}"
    with pytest.raises(ValueError, match="format code"):
        f"{kw.asarray(1.5):d}"


@pytest.mark.parametrize("dtype", ["bool", "uint64", "float16", "bfloat16", "complex128"])
def test_lists_are_numpys(dtype):
    values = np.arange(12).reshape(3, 4).astype(getattr(ml_dtypes, dtype, dtype))
    for view in (values, values.T[::-2], values[:0], values[1, 2]):
        found = kw.asarray(view).tolist()
        assert found == view.tolist() and type(found) is type(view.tolist())
    first = kw.asarray(values).tolist()[0][0]
    assert type(first) in (bool, int, float, complex)


def test_whole_numbers_of_one_element():
    for value in (2.5, -2.5, 7, True):
        for function in (math.floor, math.ceil, math.trunc):
            found = function(kw.full((1,), value, type(value)))
            assert found == function(value) and type(found) is int
    for function in (math.floor, math.ceil, math.trunc):
        with pytest.raises(kw.InvalidArgument, match="2 elements"):
            function(kw.ones(2))
    with pytest.raises(OverflowError):
        math.trunc(kw.asarray(float("inf")))
    with pytest.raises(TypeError):
        math.floor(kw.asarray(1j))


def test_scalars_lengths_and_iteration():
    for convert in (bool, int, float, complex):
        assert convert(kw.full((), 1)) == convert(1)
        with pytest.raises(kw.InvalidArgument, match="2 elements"):
            convert(kw.ones(2))
        with pytest.raises(kw.InvalidArgument, match="0 elements"):
            convert(kw.ones(0))
    with pytest.raises(kw.ArgumentError, match="without dimensions"):
        len(kw.ones(()))
    with pytest.raises(kw.ArgumentError, match="without dimensions"):
        iter(kw.ones(()))
    assert [row.numpy().tolist() for row in kw.arange(4).reshape(2, 2)] == [[0, 1], [2, 3]]
    assert list(kw.ones((0, 3))) == []
    assert [int(n) for n in reversed(kw.arange(3))] == [2, 1, 0]
    with pytest.raises(kw.ArgumentError):
        range(10)[kw.ones(())]
