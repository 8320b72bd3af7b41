"""Sequences of numbers between two ends: of equal distances, of equal ratios."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kernwright._array.creation import REAL_TYPES, asarray, is_real, is_whole
from kernwright._array.data_types import get_default_dtype
from kernwright._array.host_values import checked_cast, require_fitting
from kernwright._core import Array, _dtype, _from_numpy, _result_type, _sequence, empty
from kernwright.errors import ArgumentError, InvalidArgument

__all__ = ["geomspace", "linspace", "logspace"]


def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False,
    dtype: Any = None, axis: int = 0, *, device: Any = None,
) -> Any:  # fmt: skip
    """`num` evenly spaced values from start to stop. Real values are computed on the device, in
    float64; integers are the largest that are not above them. The default dtype is that of
    get_default_dtype(). Ends may be arrays of the device: the values lie along a new axis `axis`,
    and have the dtype of the ends, float64 of integers. `retstep`: a tuple of the values and their
    distance.

    >>> kw.linspace(0, 1, 5).numpy()
    array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    if not isinstance(endpoint, (bool, int, np.bool_)):
        raise ArgumentError(f"endpoint is True or False, got {endpoint!r:.60}; a type is dtype=")
    if isinstance(start, Array) or isinstance(stop, Array):
        made, distance = _lines(start, stop, num, endpoint, dtype, axis)
        return (made, distance) if retstep else made
    made = _numbers_between(start, stop, num, dtype, endpoint, device)
    if made.ndim > 1 and axis != 0:
        order = [*range(1, made.ndim)]
        order.insert(axis if axis >= 0 else made.ndim + axis, 0)
        made = made.transpose(order)
    if not retstep:
        return made
    parts = num - 1 if endpoint else num
    return made, (np.subtract(stop, start) / parts if parts > 0 else float("nan"))


def _numbers_between(
    start: Any, stop: Any, num: int, dtype: Any, endpoint: bool, device: Any
) -> Array:
    wanted = None if dtype is None else np.dtype(_dtype(dtype))
    if is_whole(num) and not 0 <= num < 2**63:
        raise InvalidArgument(f"linspace(): num must be at least 0 and below 2^63, got {num}")
    if all(map(is_real, (start, stop))) and is_whole(num) and num > 1:
        wanted = _result_type(0.0) if wanted is None else wanted
        distance = float(stop) - float(start)
        step = distance / (num - 1 if endpoint else num)
        if wanted.name in REAL_TYPES and math.isfinite(distance) and (step or not distance):
            made = empty(num, wanted, device=device)
            _sequence(made, float(start), step, float(stop) if endpoint else None)
            return made
    values = np.linspace(start, stop, num, endpoint=endpoint)
    if wanted is None:
        wanted = _result_type(0j if np.iscomplexobj(values) else 0.0)
    elif wanted.kind in "iu" and values.dtype.kind == "f":
        values = np.floor(values)
        if values.size:
            require_fitting(int(values.min()), int(values.max()), wanted)
    return _from_numpy(checked_cast(values, wanted), device)


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0,
    dtype: Any = None, axis: int = 0, *, device: Any = None,
) -> Array:  # fmt: skip
    """`num` numbers from base**start to base**stop with exponents of equal distances, of the
    default dtype unless told otherwise. Computed in float64. Ends may be arrays of the device: the
    numbers lie along a new axis `axis` and have the dtype of the ends, float64 of integers.

    >>> kw.logspace(0, 2, 3).numpy()
    array([  1.,  10., 100.], dtype=float32)
    """
    import kernwright as kw

    if any(isinstance(value, Array) for value in (start, stop, base)):
        shares = _shares(num, endpoint, start, stop, base)
        made = kw.float_power(base, start + (stop - start) * shares)
        made = _exact_whole(made, _type_of_ends(dtype, start, stop, base))
        return made if axis == 0 else kw.moveaxis(made, 0, axis)
    cuts_off = dtype is not None and _dtype(dtype).kind in "iu"
    if cuts_off or not all(map(is_real, (start, stop, base))):
        # Whole numbers are cut off, so that the last bit of a power counts.
        values = np.logspace(start, stop, num, endpoint=endpoint, base=base)
        return _converted(asarray(values, device=device), dtype)
    exponents = linspace(start, stop, num, dtype="float64", endpoint=endpoint, device=device)
    return _converted(kw.float_power(float(base), exponents), dtype)


def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None,
    axis: int = 0, *, device: Any = None,
) -> Array:  # fmt: skip
    """`num` numbers from `start` to `stop`, each the one before times the same factor, of the
    default dtype unless told otherwise. Computed in float64; ends that are numbers are exact, and
    arrays of the device may be ends, as for logspace(). InvalidArgument if an end is the number 0.

    >>> kw.geomspace(1, 8, 4).numpy()
    array([1., 2., 4., 8.], dtype=float32)
    """
    import kernwright as kw

    if any(isinstance(value, Array) for value in (start, stop)):
        shares = _shares(num, endpoint, start, stop)
        made = kw.multiply(kw.float_power(kw.divide(stop, start), shares), start)
        made = kw.where(shares == 0, start, kw.where(shares == 1, stop, made))
        made = _exact_whole(made, _type_of_ends(dtype, start, stop))
        return made if axis == 0 else kw.moveaxis(made, 0, axis)
    if np.any(np.equal(start, 0)) or np.any(np.equal(stop, 0)):
        raise InvalidArgument("geomspace() cannot begin or end at 0")
    kind = "f" if dtype is None else _dtype(dtype).kind
    if kind in "iu" or not all(map(is_real, (start, stop))) or float(start) * float(stop) < 0:
        values = np.geomspace(start, stop, num, endpoint, complex if kind == "c" else None)
        return _converted(asarray(values, device=device), dtype)
    shares = linspace(
        0, math.log2(stop / start), num, dtype="float64", endpoint=endpoint, device=device
    )
    made = kw.exp2(shares) * float(start)
    if endpoint and num > 1:
        made[-1] = float(stop)
    return _converted(made, dtype)


def _lines(
    start: Any, stop: Any, num: int, endpoint: bool, dtype: Any, axis: int
) -> tuple[Array, Array]:
    """linspace() between arrays, and the distances of its values. Both ends are exact."""
    import kernwright as kw

    shares = _shares(num, endpoint, start, stop)
    made = kw.where(shares == 1, stop, start + kw.subtract(stop, start) * shares)
    wanted = _type_of_ends(dtype, start, stop)
    if wanted.kind in "iu" and made.dtype.kind == "f":
        made = kw.floor(made)
    made = kw.moveaxis(made.astype(wanted, copy=False), 0, axis)
    parts = num - 1 if endpoint else num
    difference: Array = kw.subtract(stop, start)
    steps = difference.astype(_type_of_ends(None, start, stop), copy=False)
    return made, kw.divide(steps, parts) if parts > 0 else kw.full_like(steps, np.nan)


def _shares(num: int, endpoint: bool, *ends: Any) -> Array:
    """From 0 to 1 along a first axis before those of arrays on the device."""
    arrays = [end for end in ends if isinstance(end, Array)]
    shares = linspace(0, 1, num, dtype="float64", endpoint=endpoint, device=arrays[0].device)
    ndim = max(array.ndim for array in arrays)
    made: Array = shares.reshape((-1,) + (1,) * ndim)
    return made


def _exact_whole(values: Array, dtype: Any) -> Array:
    """`values` in `dtype`. An integer type cuts off the fraction, but the power of a whole number
    may end a rounding error below it: such a value is rounded first."""
    import kernwright as kw

    if dtype.kind in "iu" and values.dtype.kind == "f":
        nearest = kw.rint(values)
        values = kw.where(kw.abs(values - nearest) <= 1e-13 * kw.abs(nearest), nearest, values)
    return values.astype(dtype, copy=False)


def _type_of_ends(dtype: Any, *ends: Any) -> Any:
    """The type of the arrays among the ends together, float64 of integers, unless one is named."""
    if dtype is not None:
        return _dtype(dtype)
    made = _result_type(*ends)
    return np.dtype(np.float64) if made.kind in "iub" else made


def _converted(values: Array, dtype: Any) -> Array:
    real = get_default_dtype()
    default = _result_type(real, 0j) if values.dtype.kind == "c" else real
    return values.astype(default if dtype is None else _dtype(dtype), copy=False)
