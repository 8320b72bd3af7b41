"""The arguments of a call: arrays adopted, numbers told apart, all of one device."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernwright._core import Array, _adopt
from kernwright._fuse import types
from kernwright.errors import ArgumentError, InvalidArgument


def take(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Arrays of other libraries as arrays, the rest as it is; raises for what is neither."""
    taken: dict[str, Any] = {}
    for key, value in given.items():
        taken[key] = value if type(value) is Array else _taken(name, key, value)
    return taken


def _taken(name: str, key: str, value: Any) -> Any:
    if isinstance(value, (bool, int, float, str, type(None), np.generic, np.dtype, type)):
        return value
    if isinstance(value, tuple) and all(isinstance(v, (int, str, type(None))) for v in value):
        return value
    if isinstance(value, np.ndarray):
        raise ArgumentError(
            f"{name}: {key} is a NumPy array in host memory: bring it to the device with "
            "kw.asarray(x)"
        )
    if isinstance(value, complex):
        raise InvalidArgument(f"{name}: {key} is complex: complex numbers cannot be fused")
    return adopt(name, key, value)


def adopt(name: str, key: str, value: Any) -> Array:
    """An array of this package or another's on a device."""
    if isinstance(value, Array):
        return value
    if hasattr(value, "__cuda_array_interface__") or hasattr(value, "__dlpack__"):
        adopted = _adopt(value, None)
        if adopted is not None:
            return adopted
        if hasattr(value, "__dlpack__"):
            raise ArgumentError(
                f"{name}: {key}, a {type(value).__name__}, is in host memory: copy it with "
                "kw.asarray(x)"
            )
    raise ArgumentError(
        f"{name}: {key} is a {type(value).__name__}; arrays and numbers are what it takes"
    )


def signature_of(values: dict[str, Any]) -> Any:
    """What decides about the kernel: equal for calls that launch the same."""
    parts: list[Any] = []
    for value in values.values():
        if type(value) is Array:
            parts.append(
                (value.shape, value.strides, value.dtype, value.ptr & 15, value.device.ordinal,
                 value.device.is_simulated)
            )  # fmt: skip
        elif isinstance(value, np.generic):
            parts.append(value.dtype)
        elif (kind := types.weak_kind(value)) is not None:
            parts.append(kind)
        else:
            parts.append((type(value), value))
    return tuple(parts)


def same_device(name: str, arrays: list[Array]) -> Any:
    """The device of all arrays."""
    if not arrays:
        raise ArgumentError(f"{name} takes at least one array")
    device = arrays[0].device
    for array in arrays[1:]:
        if array.device != device:
            raise ArgumentError(
                f"{name}: the arrays must be on the same device, got {device} and {array.device}: "
                "copy with .to(device)"
            )
    return device


def is_aligned(array: Array) -> bool:
    """Whether each element lies at a multiple of its size."""
    size = array.dtype.itemsize
    return array.ptr % size == 0 and all(s % size == 0 for s in array.strides)
