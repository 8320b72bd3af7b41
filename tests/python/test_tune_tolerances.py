"""What verify= takes as equal where no tolerance is given."""

import numpy as np
import pytest

from kernwright.tune._arguments import first_difference


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
    assert (first_difference(mine, values.astype(wanted), None, None) is None) == equal


def test_whole_numbers_are_exact():
    values = np.arange(1, 9)
    for wanted in ("int32", "int64", "float64"):
        other = values + (values == 3)
        assert first_difference(other.astype("int32"), values.astype(wanted), None, None)
