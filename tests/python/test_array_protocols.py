"""Membership, hashes, conversions to numbers, iteration."""

import pytest

import kernwright as kw


def test_membership_and_hash():
    x, y = kw.ones(3), kw.ones(3)
    for container in (x, kw.ones(0), kw.ones(())):
        with pytest.raises(kw.ArgumentError, match="numpy"):
            1.0 in container  # noqa: B015
    assert x in [x, y]  # the same object
    with pytest.raises(kw.InvalidArgument, match="3 elements"):  # of y == x, element by element
        x in [y]  # noqa: B015
    for fails in (lambda: [y].index(x), lambda: sorted([x, y]), lambda: max(x, y)):
        with pytest.raises(kw.InvalidArgument, match="3 elements"):
            fails()
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    assert (x is x) and x is not y


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
