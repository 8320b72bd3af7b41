"""What verify= takes as equal where no tolerance is given."""

import numpy as np
import pytest

from kernwright.tune._sessions.arguments import Arguments, Expected, Verifier


def first_difference(got, wanted, rtol=None, atol=None):
    return Expected(wanted, got.dtype, rtol, atol).difference(got)


@pytest.mark.parametrize(
    ("got", "wanted", "noise", "equal"),
    [
        ("float32", "float64", 1e-6, True),  # a reference in double of a kernel in single
        ("float32", "float64", 1e-2, False),
        ("float32", "float32", 1e-6, True),
        ("float16", "float64", 1e-3, True),
        ("float16", "float32", 1e-1, False),
        ("float64", "float64", 1e-6, False),
        ("float64", "float32", 1e-6, True),
        ("float32", "int64", 1e-6, True),
        ("complex64", "complex128", 1e-6, True),
        ("int32", "int64", 0.0, True),
    ],
)
def test_the_narrower_type_decides(got, wanted, noise, equal):
    values = np.arange(1, 9)
    mine = (values * (1 + noise)).astype(got)
    assert (first_difference(mine, values.astype(wanted)) is None) == equal


def test_whole_numbers_are_exact():
    values = np.arange(1, 9)
    for wanted in ("int32", "int64", "float64"):
        other = values + (values == 3)
        assert first_difference(other.astype("int32"), values.astype(wanted))


def test_the_first_difference_of_a_large_array_is_named_and_all_are_counted():
    wanted = np.linspace(1, 2, 300_000).reshape(3, 100_000)
    got = wanted.astype("float32")
    assert first_difference(got, wanted) is None
    got[1, 70_000:70_003] = np.nan
    got[2, 5] = -1
    text = first_difference(got, wanted)
    assert text.startswith(f"[1, 70000] is nan, not {wanted[1, 70_000]}; 4 of 300000 differ")
    wanted[1, 70_000:70_003] = np.nan
    assert first_difference(got, wanted).startswith("[2, 5] is -1.0")


@pytest.mark.parametrize("dtype", ["float32", "int32", "complex128", "i4,f4"])
def test_empty_and_single_elements(dtype):
    for shape in ((0,), (2, 0), ()):
        assert first_difference(np.ones(shape, dtype), np.ones(shape, dtype)) is None
    assert first_difference(np.ones((), dtype), np.zeros((), dtype))


def test_given_tolerances_are_taken_as_they_are():
    got, wanted = np.array([1.0, 0.0, np.inf, np.nan]), np.array([1.1, -0.0, np.inf, np.nan])
    assert first_difference(got, wanted, rtol=0.1) is None
    assert first_difference(got, wanted, atol=0.1 + 1e-12) is None
    assert first_difference(got, wanted, rtol=0.05, atol=0.0)
    assert first_difference(got[1:], wanted[1:], rtol=0, atol=0) is None
    assert first_difference(got[2:], wanted[2:][::-1], rtol=1, atol=1)


def test_right_bytes_are_compared_once(monkeypatch):
    x, out = np.arange(5, dtype="float32"), np.zeros(5, "float32")
    verifier = Verifier(Arguments((x, out)), (x, 2 * x), None, None)
    seen, compare = [], Expected.difference
    monkeypatch.setattr(
        Expected, "difference", lambda self, got: seen.append(got) or compare(self, got)
    )

    def verify(values):
        seen.clear()
        return verifier([(1, values.astype("float32").tobytes())])

    assert verify(2 * x) is None and len(seen) == 2
    assert verify(2 * x) is None and not seen
    assert verify(3 * x).startswith("argument 1[1] is 3.0, not 2.0; 4 of 5 differ")
    assert verify(2 * x) is None and not seen
    assert verify(2 * x * (1 + 1e-6)) is None and len(seen) == 1
    # What was const is written by another configuration.
    assert verifier([(0, (x + 1).tobytes()), (1, (2 * x).tobytes())]).startswith("argument 0[0]")


def test_expected_values_are_copied():
    x, wanted = np.arange(5, dtype="float32"), np.arange(5, dtype="float64")
    verifier = Verifier(Arguments((x,)), wanted, None, None)
    wanted[:] = 0
    assert verifier([(0, x.tobytes())]) is None
