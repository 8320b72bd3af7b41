"""Parameters of distributions: those of the host are checked, and all spread over a shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import kernwright
from kernwright import _core
from kernwright.errors import ArgumentError, InvalidArgument


class Range(NamedTuple):
    """The values that a parameter may have: a test over NumPy values, and the words for it."""

    words: str
    holds: Callable[[Any], Any]


ANY = Range("is a number", lambda x: x == x)
NOT_NEGATIVE = Range("is not negative", lambda x: x >= 0)
POSITIVE = Range("is above 0", lambda x: x > 0)
FINITE_POSITIVE = Range("is above 0 and finite", lambda x: (x > 0) & (x < np.inf))
ABOVE_ONE = Range("is above 1", lambda x: x > 1)
CHANCE = Range("lies between 0 and 1", lambda x: (x >= 0) & (x <= 1))
SUCCESS = Range("is above 0 and at most 1", lambda x: (x > 0) & (x <= 1))
COUNT = Range(
    "is a whole number from 0 to 9.2e18", lambda x: (x >= 0) & (x <= 9.2e18) & (np.floor(x) == x)
)
MEAN = Range("lies between 0 and 9.2e18", lambda x: (x >= 0) & (x <= 9.2e18))


class Parameter(NamedTuple):
    """The parameter `name` of a distribution as it was given, and its range."""

    name: str
    value: Any
    range: Range = ANY


def is_device_array(value: Any) -> bool:
    """Whether `value` lies on a device already: such parameters are not checked."""
    if isinstance(value, _core.Array):
        return True
    return not isinstance(value, np.ndarray) and (
        hasattr(value, "__dlpack_device__") or hasattr(value, "__cuda_array_interface__")
    )


def checked(parameter: Parameter) -> Any:
    """A float, a float64 array of NumPy, or an array of a device as it is."""
    name, value, allowed = parameter
    if is_device_array(value):
        array = value if isinstance(value, _core.Array) else _core._adopt(value)
        if array is None:
            raise ArgumentError(f"{name} is on another device than CUDA's: copy it with asarray()")
        if array.dtype.kind == "c":
            raise InvalidArgument(f"{name} is real, got {array.dtype}")
        return array
    try:
        host = np.asarray(value)
        if host.dtype.kind == "c":
            raise TypeError
        host = host.astype(np.float64)
    except (TypeError, ValueError):
        from kernwright._support.calls import misfit

        raise misfit(name, "a number or an array of numbers", value) from None
    wrong = ~np.asarray(allowed.holds(host))
    if wrong.any():
        raise InvalidArgument(f"{name} {allowed.words}, got {host[wrong].reshape(-1)[0]:g}")
    return float(host) if host.ndim == 0 else host


def on_device(value: Any, device: Any) -> _core.Array:
    """A checked array as float64 on the device."""
    if isinstance(value, _core.Array):
        return value.astype("float64", copy=False)
    return kernwright.asarray(np.asarray(value, np.float64), device=device)


def spread(
    parameters: Sequence[Parameter], shape: tuple[int, ...] | None, device: Any
) -> tuple[tuple[int, ...], list[Any]]:
    """The shape of the result, and each parameter as a float or as a float64 array of that shape.

    Without a shape it is that to which the arrays broadcast.
    """
    values = [checked(parameter) for parameter in parameters]
    extents = [value.shape for value in values if not isinstance(value, float)]
    if not extents:
        return (() if shape is None else shape), values
    device = next((v.device for v in values if isinstance(v, _core.Array)), device)
    try:
        joined = np.broadcast_shapes(*extents)
        if shape is not None and np.broadcast_shapes(joined, shape) != shape:
            raise ValueError
    except ValueError:
        named = ", ".join(
            f"{parameter.name} {value.shape}"
            for parameter, value in zip(parameters, values, strict=True)
            if not isinstance(value, float)
        )
        onto = "one shape" if shape is None else f"shape {shape}"
        raise InvalidArgument(f"{named} do not broadcast to {onto}") from None
    target = joined if shape is None else shape
    return target, [_over(value, target, device) for value in values]


def _over(value: Any, shape: tuple[int, ...], device: Any) -> Any:
    if isinstance(value, float):
        return value
    array = kernwright.broadcast_to(on_device(value, device), shape)
    return array if array.is_contiguous else array.copy()


def is_plain(*values: Any) -> bool:
    """Whether all are numbers of the host."""
    return all(isinstance(value, (int, float, np.generic)) for value in values)


def require_order(
    lower_name: str, lower: Any, upper_name: str, upper: Any, *, strict: bool = False
) -> None:
    """Raises where two parameters of the host are in the wrong order."""
    if is_device_array(lower) or is_device_array(upper):
        return
    low, high = np.asarray(lower), np.asarray(upper)
    try:
        wrong = np.broadcast_to(
            ~((low < high) if strict else (low <= high)), np.broadcast_shapes(low.shape, high.shape)
        )
    except (ValueError, TypeError):
        return  # spread() says that they do not broadcast, or are no numbers
    if wrong.any():
        low, high = (
            np.broadcast_to(each, wrong.shape)[wrong].reshape(-1)[0] for each in (low, high)
        )
        raise InvalidArgument(
            f"{lower_name} is {'below' if strict else 'at most'} {upper_name}, got {low} and {high}"
        )
