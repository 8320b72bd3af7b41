"""searchsorted() and isin() of uint64 beside signed integers, against Python's integers."""

import bisect

import numpy as np
import pytest

import kernwright as kw

# Pairs of neighbours that float64 does not tell apart, and the ends of both types.
WIDE = [0, 1, 2**53, 2**53 + 1, 2**62 + 25, 2**62 + 26, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1]
LONG = [-(2**63), 1 - 2**63, -(2**53) - 1, -1, *WIDE[:7]]


def signed(dtype):
    limits = np.iinfo(dtype)
    return [x for x in LONG if limits.min <= x <= limits.max] + [limits.min, limits.max]


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8"])
def test_both_orders_of_types(dtype):
    narrow = sorted(set(signed(dtype)))
    for x1, first, x2, second in (
        (narrow, dtype, WIDE, "uint64"),
        (WIDE, "uint64", narrow, dtype),
    ):
        inside, wanted = (kw.asarray(np.array(v, t)) for v, t in ((x1, first), (x2, second)))
        for side, rule in (("left", bisect.bisect_left), ("right", bisect.bisect_right)):
            found = kw.searchsorted(inside, wanted, side=side).numpy()
            assert found.dtype == np.int64
            assert found.tolist() == [rule(x1, x) for x in x2], (first, side)
        assert kw.isin(wanted, inside).numpy().tolist() == [x in x1 for x in x2]
        assert kw.isin(wanted, inside, invert=True).numpy().tolist() == [x not in x1 for x in x2]


def test_a_sorter_views_and_nothing():
    order = np.random.default_rng(0).permutation(len(WIDE))
    mixed = kw.asarray(np.array(WIDE, np.uint64)[order])
    sorter = kw.asarray(np.argsort(order))
    wanted = kw.asarray(np.array(LONG, np.int64).reshape(1, -1).repeat(2, 0))[:, ::-1]
    found = kw.searchsorted(mixed, wanted, sorter=sorter).numpy()
    assert found.tolist() == [[bisect.bisect_left(WIDE, x) for x in LONG[::-1]]] * 2
    none = kw.zeros(0, "uint64")
    assert kw.searchsorted(none, wanted).numpy().tolist() == [[0] * len(LONG)] * 2
    assert not kw.isin(wanted, none).numpy().any()
    assert kw.isin(none, wanted).shape == (0,)


def test_numbers_beyond_one_type():
    wide, long = kw.asarray(np.array(WIDE, np.uint64)), kw.asarray(np.array(LONG, np.int64))
    assert kw.searchsorted(wide, -5).item() == 0
    assert kw.searchsorted(wide, 2**53 + 1).item() == 3
    assert kw.searchsorted(long, 2**63).item() == len(LONG)
    assert not kw.isin(wide, -1).numpy().any()
    assert not kw.isin(long, 2**64 - 1).numpy().any()
    assert kw.isin(wide, np.int64(2**53 + 1)).numpy().tolist() == [x == 2**53 + 1 for x in WIDE]
