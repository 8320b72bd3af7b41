"""Arrays of more than 2^31 elements: each kernel counts with 64 bits where it has to."""

import numpy as np
import pytest

import kernwright as kw

COUNT = 3_000_000_000
# Needed free memory: three arrays of a byte each element, and memory of a scan or an index.
NEEDED = 16 << 30
# On both sides of the limits of 31 and 32 bits, at both ends, and somewhere.
PROBES = [0, 1, 2**31 - 1, 2**31, 2**31 + 1, 2_345_678_901, COUNT - 2, COUNT - 1]


@pytest.fixture(scope="module")
def device():
    cuda = [each for each in kw.devices() if not each.is_simulated]
    if not cuda:
        pytest.skip("arrays of 3 * 10^9 elements want a GPU")
    with cuda[0] as device:
        kw.memory.trim()
        free = device.memory_info().free
        if free < NEEDED:
            pytest.skip(f"{NEEDED} bytes must be free on {device}, and {free} are")
        yield device
        kw.memory.trim()


@pytest.fixture
def x(device):
    """5 everywhere but at the probes, which are 1, 2, ..."""
    made = kw.full(COUNT, 5, "uint8")
    for value, place in enumerate(PROBES, 1):
        made[place] = value
    return made


VALUES = list(range(1, len(PROBES) + 1))
BETWEEN = [7, 2**31 + 77, COUNT - 99]


def at(array, places):
    """Elements, each by a view of its own."""
    return [int(array[place].item()) for place in places]


def test_add(x):
    y = x + x
    assert y.size == COUNT
    assert at(y, PROBES) == [2 * value for value in VALUES]
    assert at(y, BETWEEN) == [10] * 3
    y += 1
    assert at(y, PROBES) == [2 * value + 1 for value in VALUES]


def test_copies(x):
    y = x.copy()
    assert at(y, PROBES) == VALUES and at(y, BETWEEN) == [5] * 3
    backward = x[::-1].copy()
    assert at(backward, [COUNT - 1 - place for place in PROBES]) == VALUES
    as_int8 = x.astype("int8")
    assert at(as_int8, PROBES) == VALUES and at(as_int8, BETWEEN) == [5] * 3


def test_sums(x):
    total = 5 * (COUNT - len(PROBES)) + sum(VALUES)
    assert kw.sum(x, dtype="int64").item() == total
    rows = kw.sum(x.reshape(3, COUNT // 3), axis=1, dtype="int64").numpy()
    assert int(rows.sum()) == total and len(set(rows.tolist())) == 3
    assert kw.max(x).item() == len(PROBES)
    assert kw.argmax(x).item() == PROBES[-1]
    assert kw.count_nonzero(x == 5).item() == COUNT - len(PROBES) + 1


def test_where(x):
    y = kw.where(x == 5, x, 100)
    assert at(y, BETWEEN) == [5] * 3
    assert at(y, PROBES) == [5 if value == 5 else 100 for value in VALUES]


def test_transpose(x):
    rows, columns = 30_000, 100_000
    y = x.reshape(rows, columns).T.copy()
    places = [(place % columns, place // columns) for place in PROBES]
    assert [int(y[place].item()) for place in places] == VALUES
    assert int(y[columns - 1, rows - 1].item()) == VALUES[-1]


def test_take_and_put(x):
    places = kw.asarray(np.array(PROBES + BETWEEN))
    assert kw.take(x, places).numpy().tolist() == VALUES + [5] * 3
    assert x[places].numpy().tolist() == VALUES + [5] * 3
    kw.put(x, places, 9)
    assert at(x, PROBES + BETWEEN) == [9] * (len(PROBES) + 3)
    assert at(x, [2, 2**31 + 2]) == [5, 5]


def test_concat_at_the_end(x):
    y = kw.concat([x[: COUNT - 3], kw.asarray(np.array([11, 12, 13], np.uint8))])
    assert y.size == COUNT
    assert at(y, [2**31, COUNT - 4, COUNT - 3, COUNT - 1]) == [4, 5, 11, 13]
