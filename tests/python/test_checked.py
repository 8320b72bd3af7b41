"""Launches without array checks, on request."""

import numpy as np
import pytest

import kernwright as kw


def test_checks_can_be_left_out_and_come_back(saxpy):
    x, y = kw.ones(8), kw.zeros(8)
    wrong = kw.ones(8, dtype="int32")
    with kw.checked(False):
        saxpy[1, 8](1.0, wrong, y, 8)  # as it is: the bits of an int 1 are a tiny float
        with pytest.raises(kw.ArgumentError, match="missing"):
            saxpy[1, 8](1.0, x, y)
        with pytest.raises(kw.ArgumentError, match="wants an array"):
            saxpy[1, 8](1.0, object(), y, 8)
        with kw.checked(True), pytest.raises(kw.ArgumentError, match="int32"):
            saxpy[1, 8](1.0, wrong, y, 8)
        saxpy[1, 8](1.0, wrong, y, 8)
    assert (y.numpy() == 2 * np.array(1, "i4").view("f4")).all()
    with pytest.raises(kw.ArgumentError, match="int32"):
        saxpy[1, 8](1.0, wrong, y, 8)
    kw.checked(False)  # from now on
    saxpy[1, 8](1.0, wrong, y, 8)
    kw.checked(True)
    with pytest.raises(TypeError):
        kw.checked(None)
