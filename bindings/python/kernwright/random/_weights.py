"""The chances of choice(), checked where they are on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

import kernwright
from kernwright import _core
from kernwright.errors import InvalidArgument


def weights_of(p: Any, n: int, without_replacement: int | None, device: Any) -> _core.Array:
    """`p` as float64 on the device, for n things; `without_replacement`: how many are drawn so."""
    array = p if isinstance(p, _core.Array) else None
    if array is None and hasattr(p, "__dlpack_device__") and not isinstance(p, np.ndarray):
        array = _core._adopt(p)
    if array is not None:
        if array.shape != (n,):
            raise InvalidArgument(f"p has shape {array.shape}, and a has {n} elements: ({n},)")
        return array.astype("float64", copy=not array.is_contiguous)
    values = np.asarray(p, np.float64)
    if values.shape != (n,):
        raise InvalidArgument(f"p has shape {values.shape}, and a has {n} elements: ({n},)")
    if not (values >= 0).all():
        raise InvalidArgument("p holds a negative number or NaN")
    total = float(values.sum())
    if abs(total - 1) > 1e-8 and abs(total - 1) > 1e-3 * _half_digits(p):
        raise InvalidArgument(f"p sums to {total}, not to 1: divide it by its sum")
    if without_replacement is not None and without_replacement > int((values > 0).sum()):
        raise InvalidArgument(
            f"cannot take {without_replacement} without replacement: {int((values > 0).sum())} "
            "elements of p are above 0"
        )
    return kernwright.asarray(values, device=device)


def _half_digits(p: Any) -> bool:
    """Whether p is of a type whose sum may be off by more than float64's rounding."""
    return getattr(p, "dtype", np.dtype("f8")).itemsize < 8
