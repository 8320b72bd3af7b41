"""Values of the host as arrays: large integers, sequences with arrays, numbers as bools."""

import numpy as np
import pytest

import kernwright as kw

IDS = [2573020360226874006, 13687853399390180967]


def test_integers_beyond_int64():
    for values in (IDS, tuple(IDS), [IDS, IDS[::-1]], [np.int64(IDS[0]), np.uint64(IDS[1])],
                   [IDS[0], np.uint64(IDS[1])], [True, IDS[1]], [np.array([1]), np.array([2**63])],
                   IDS[1], [[0], [2**64 - 1]]):  # fmt: skip
        x = kw.asarray(values)
        assert x.dtype == np.uint64
        assert x.tolist() == np.array(values, object).astype("u8").tolist()
    assert kw.asarray(IDS, "uint64").tolist() == IDS
    assert kw.full(2, IDS[1]).tolist() == [IDS[1]] * 2
    assert kw.asarray([2**53 + 1, -1], "int64").tolist() == [2**53 + 1, -1]
    assert kw.asarray([0.5, 2.0**63]).dtype == kw.asarray(IDS, "float32").dtype == np.float32
    assert kw.asarray([-1, 2**63], "float64").tolist() == [-1, 2.0**63]


def test_integers_that_no_type_holds():
    for values, dtype in (
        ([-1, 2**63], None), ([-1, 2**64], None), ([0, 2**64], None), ([-(2**63) - 1], None),
        (IDS, "int64"), ([-1, 2**63], "uint64"), ([-1, 2**63], "int64"), ([0, 2**64], "uint64"),
        ([[1], [2**70]], "int32"),
    ):  # fmt: skip
        with pytest.raises(OverflowError, match=str(max(np.ravel(np.array(values, object))))):
            kw.asarray(values, dtype)
    x = kw.zeros(2, "int64")
    for key in (Ellipsis, [0, 1]):
        with pytest.raises(OverflowError):
            x[key] = IDS
    y = kw.zeros(2, "uint64")
    y[...] = IDS
    y[[1, 0]] = IDS
    assert y.tolist() == IDS[::-1]


def test_sequences_with_arrays():
    values = np.arange(4.0)
    x = kw.asarray(values)
    for dtype, parts in (("float64", [x.sum(), x.max(), 1.0]), ("float64", (1, x[0], True))):
        made = kw.asarray(parts)
        assert made.dtype == dtype and made.tolist() == [float(part) for part in parts]
    rows = kw.asarray([x, x + 1, [0, 1, 2, x[3]], values])
    assert np.array_equal(rows.numpy(), [values, values + 1, values, values])
    assert kw.asarray([[x, x]]).shape == (1, 2, 4) and kw.asarray([x[:0]]).shape == (1, 0)
    half = kw.asarray([kw.ones(2, "float16"), 2 * kw.ones(2, "float16")], "int32")
    assert half.dtype == np.int32 and half.tolist() == [[1, 1], [2, 2]]
    assert kw.asarray([kw.asarray(np.int8(1)), 2.5]).dtype == np.float64
    alone = kw.asarray([x])
    alone[...] = 0
    assert x.tolist() == values.tolist()  # a copy
    y = kw.zeros((2, 4))
    y[0] = [x.sum(), x[1], 7, True]
    y[[1], :] = [x.sum(), x[1], 7, True]
    assert y.tolist() == [[6, 1, 7, 1]] * 2


def test_sequences_get_the_type_of_promotion():
    x = kw.asarray([x.astype("bfloat16") for x in (kw.ones(3), 2 * kw.ones(3))])
    assert x.dtype == kw.bfloat16
    mixed = kw.asarray([x[0], kw.full(3, 2**24 + 1, dtype="int32")])
    assert mixed.dtype == np.float64 and mixed.tolist() == [[1.0] * 3, [2.0**24 + 1] * 3]


def test_sequences_that_make_no_array():
    x = kw.ones(3)
    with pytest.raises(kw.InvalidArgument):
        kw.asarray([x, kw.ones(4)])
    with pytest.raises(kw.InvalidArgument):
        kw.asarray([x, 1.0])
    for wrong in ([x[0], "text"], [x[0], None], [[x[0]], [object()]]):
        with pytest.raises(TypeError):
            kw.asarray(wrong)
    with pytest.raises(kw.InvalidArgument, match="copy"):
        kw.asarray([x], copy=False)


def test_full_of_arrays():
    assert kw.full(3, kw.asarray(1), dtype=kw.int32).tolist() == [1, 1, 1]
    assert kw.full((2,), kw.asarray(np.float64(2.5))).dtype == np.float64
    assert kw.full((), kw.asarray(np.int8(3))).dtype == np.int8
    assert kw.full_like(kw.zeros(2), kw.asarray(np.float64(0.5))).tolist() == [0.5, 0.5]
    for row in ([1, 2, 3], np.arange(3), kw.asarray([[5, 6, 7]])):
        assert kw.full((2, 3), row).tolist() == [list(map(int, kw.asarray(row).reshape(-1)))] * 2
    with pytest.raises(kw.InvalidArgument, match=r"broadcast|Incompatible"):
        kw.full((2, 3), kw.ones(2))


def test_numbers_as_bools_are_numpys():
    for value in (3, 0, -1, 2.5, 0.0, float("nan"), 1j, 0j, np.int8(4), np.float32(0), 1 << 70):
        x, host = kw.zeros((2, 3), "bool"), np.zeros((2, 3), bool)
        x[0], host[0] = value, value
        x[:, 1], host[:, 1] = value, value
        x[[1], 2], host[[1], 2] = value, value
        assert np.array_equal(x.numpy(), host), value
        assert kw.full(2, value, "bool").tolist() == [bool(value)] * 2
    x[...] = [[3, 0, 1], [0.5, 0, 2]]
    assert x.tolist() == [[True, False, True], [True, False, True]]
    with pytest.raises(TypeError):
        x[0] = "text"


def test_fill_of_arrays():
    x = kw.zeros(3)
    for value in (kw.asarray(2), kw.asarray([[3.0]]), np.array(4), [5], np.float32(6)):
        x.fill(value)
        assert x.tolist() == [kw.asarray(value).item()] * 3
    with pytest.raises(kw.InvalidArgument, match="one value"):
        x.fill([1, 2, 3])


@pytest.mark.parametrize("key", [0, slice(1, 3), (Ellipsis, 0), (slice(None), 1), [0, 2],
                                 (0, slice(0, 0)), (1, slice(2, 3)), np.array([True, False, True])],
                         ids=str)  # fmt: skip
def test_assignment_drops_leading_ones(key):
    for dtype in ("float64", "int32"):
        for source in (kw.asarray, np.asarray, np.ndarray.tolist):
            host = np.zeros((3, 4))
            device = kw.asarray(host)
            values = np.arange(host[key].size, dtype=dtype).reshape((1, 1, *host[key].shape))
            host[key] = values
            device[key] = source(values)
            assert np.array_equal(device.numpy(), host)
    with pytest.raises(kw.InvalidArgument):
        device[0] = kw.zeros((2, 1, 4))
    with pytest.raises(kw.InvalidArgument):
        device[0] = np.zeros((2, 1, 4))
