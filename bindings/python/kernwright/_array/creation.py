"""Creating arrays: from values, from NumPy, from other libraries' arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from kernwright._array.host_values import (
    checked_cast,
    dtype_of_value,
    kind_of,
    read_values,
    require_fitting,
)
from kernwright._core import (
    Array,
    _adopt,
    _concat,
    _dtype,
    _from_numpy,
    _is_number,
    _result_type,
    _sequence,
    _whole_sequence,
    empty,
)
from kernwright._support.cycles import require_no_cycle
from kernwright.errors import ArgumentError, InvalidArgument

# What is read on the host; other objects may be arrays of a device.
HOST_TYPES = (np.ndarray, np.generic, bool, int, float, complex, list, tuple)


def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Array:
    """An array filled with `fill_value`: a number, or an array of the device or host values that
    are broadcast to `shape`. The default dtype is that of asarray(fill_value). ValueError.

    >>> kw.full((2, 2), 7).numpy()
    array([[7, 7],
           [7, 7]])
    """
    if np.isscalar(fill_value):
        dtype = dtype_of_value(fill_value) if dtype is None else dtype
        array = empty(shape, dtype, device=device)
        array._fill(fill_value)
        return array
    values = asarray(fill_value, device=device)
    if dtype is None and isinstance(fill_value, Array) and _is_number(fill_value):
        dtype = _result_type(0.0 if values.dtype.kind == "f" else 0)
    array = empty(shape, values.dtype if dtype is None else dtype, device=values.device)
    array[...] = values
    return array


def zeros(shape: Any, dtype: Any = None, *, device: Any = None) -> Array:
    """An array of zeros; the default dtype is that of get_default_dtype().

    >>> kw.zeros((2, 3)).numpy()
    array([[0., 0., 0.],
           [0., 0., 0.]], dtype=float32)
    """
    return full(shape, 0, _result_type(0.0) if dtype is None else dtype, device=device)


def ones(shape: Any, dtype: Any = None, *, device: Any = None) -> Array:
    """An array of ones; the default dtype is that of get_default_dtype().

    >>> kw.ones((2, 2)).numpy()
    array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    return full(shape, 1, _result_type(0.0) if dtype is None else dtype, device=device)


def empty_like(x: Any, dtype: Any = None, *, shape: Any = None, device: Any = None) -> Array:
    """An uninitialised array of the shape, dtype and device of `x`.

    >>> kw.empty_like(kw.ones((2, 3)), "int8").nbytes
    6
    """
    return empty(*_like(x, dtype, shape), device=_device_like(x, device))


def zeros_like(x: Any, dtype: Any = None, *, shape: Any = None, device: Any = None) -> Array:
    """Zeros of the shape, dtype and device of `x`.

    >>> kw.zeros_like(kw.asarray([5, 6])).numpy()
    array([0, 0])
    """
    return zeros(*_like(x, dtype, shape), device=_device_like(x, device))


def ones_like(x: Any, dtype: Any = None, *, shape: Any = None, device: Any = None) -> Array:
    """Ones of the shape, dtype and device of `x`.

    >>> kw.ones_like(kw.asarray([5, 6])).numpy()
    array([1, 1])
    """
    return ones(*_like(x, dtype, shape), device=_device_like(x, device))


def full_like(
    x: Any, fill_value: Any, dtype: Any = None, *, shape: Any = None, device: Any = None
) -> Array:
    """`fill_value` in the shape, dtype and device of `x`.

    >>> kw.full_like(kw.zeros(3), 7).numpy()
    array([7., 7., 7.], dtype=float32)
    """
    shape, dtype = _like(x, dtype, shape)
    return full(shape, fill_value, dtype, device=_device_like(x, device))


def _like(x: Any, dtype: Any, shape: Any) -> tuple[Any, Any]:
    if not hasattr(x, "shape") or not hasattr(x, "dtype"):
        raise ArgumentError(
            f"the ..._like functions take an array, got {kind_of(x)}: make one of it with "
            "kw.asarray(x), or name the shape, as in kw.zeros(shape)"
        )
    return (x.shape if shape is None else shape), (x.dtype if dtype is None else dtype)


def _device_like(x: Any, device: Any) -> Any:
    return x.device if device is None and isinstance(x, Array) else device


def arange(
    start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: Any = None
) -> Array:
    """Evenly spaced values in [start, stop), or [0, start) when `stop` is left out. Real values
    are computed on the device, in float64 or int64.

    >>> kw.arange(4).numpy()
    array([0, 1, 2, 3])
    >>> kw.arange(1, 2, 0.25).numpy()
    array([1.  , 1.25, 1.5 , 1.75], dtype=float32)
    """
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise InvalidArgument("arange() with a step of 0 never ends")
    wanted = np.dtype(dtype_of_value(start + stop + step) if dtype is None else _dtype(dtype))
    if wanted.kind in "iu":
        if all(map(is_whole, (start, stop, step))):
            return _whole_sequence_of(range(start, stop, step), wanted, device)
        values = np.arange(start, stop, step)
        return _from_numpy(checked_cast(values, wanted), device)
    # In float64 and rounded once, whatever the element type.
    count = max(0, math.ceil((stop - start) / step))
    if wanted.name in REAL_TYPES and all(map(is_real, (start, step))):
        made = empty(count, wanted, device=device)
        _sequence(made, float(start), float(step), None)
        return made
    values = start + step * np.arange(count, dtype=np.float64)
    return _from_numpy(checked_cast(values, wanted), device)


# Types of the numbers that a kernel computes in float64.
REAL_TYPES = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2")


def is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_real(value: Any) -> bool:
    """A number of float64."""
    if isinstance(value, (float, np.floating)):
        return True
    return is_whole(value) and -(2**63) <= value < 2**64


def _whole_sequence_of(values: range, dtype: Any, device: Any) -> Array:
    made = empty(len(values), dtype, device=device)
    if len(values) > 0:
        require_fitting(min(values[0], values[-1]), max(values[0], values[-1]), dtype)
        _whole_sequence(made, _wrapped(values.start), _wrapped(values.step))
    return made


def _wrapped(value: int) -> int:
    """What 64 bits hold of an int, as a signed one."""
    return (value + 2**63) % 2**64 - 2**63


def asarray(obj: Any, dtype: Any = None, *, device: Any = None, copy: bool | None = None) -> Array:
    """`obj` as an array: itself, a view of another library's device array, or a copy of host data.

    NumPy arrays keep their dtype. Python floats become those of get_default_dtype(), ints int64, or
    uint64 where a list of them needs it; ArgumentRangeError for integers that neither holds.
    Sequences may hold arrays of a device: they are stacked there, in the type that an operation on
    all of them has. copy=False raises where only a copy would do.

    >>> kw.asarray([1, 2, 3]).numpy()
    array([1, 2, 3])
    >>> kw.asarray(np.zeros((2, 3))).shape
    (2, 3)
    """
    if isinstance(obj, Array):
        return _convert(obj, dtype, device, copy)
    if not isinstance(obj, HOST_TYPES):
        adopted = _adopt(obj, device)
        if adopted is not None:
            return _convert(adopted, dtype, device, copy)
    if copy is False:
        raise InvalidArgument(f"{kind_of(obj)} is in host memory: only a copy reaches the device")
    values = read_or_stacked(obj, dtype, device)
    if isinstance(values, Array):
        return values if device is None else values.to(device)
    return _from_numpy(values if dtype is None else checked_cast(values, _dtype(dtype)), device)


def read_or_stacked(obj: Any, dtype: Any, device: Any) -> np.ndarray[Any, Any] | Array:
    """Values of the host as read_values() has them; nested sequences with arrays of a device among
    their elements as one array of `dtype` on that device."""
    try:
        return read_values(obj, dtype)
    except TypeError:
        made = _stacked(obj, dtype, device) if isinstance(obj, (list, tuple)) else None
        if made is None:
            raise
        return made


def _stacked(obj: Any, dtype: Any, device: Any) -> Array | None:
    """None where no element is an array of a device."""
    try:
        nested = _adopted(obj, device)
    except RecursionError:
        require_no_cycle(obj, "the list")
        raise
    leaves = list(_leaves(nested))
    near = next((leaf for leaf in leaves if isinstance(leaf, Array)), None)
    if near is None:
        return None
    if dtype is None:
        dtype = _result_type(*(getattr(leaf, "dtype", leaf) for leaf in leaves))
    return _stacked_parts(nested, _dtype(dtype), near.device)


def _adopted(obj: Any, device: Any) -> Any:
    """`obj` as nested lists of numbers and arrays, with views of other libraries' device arrays."""
    if isinstance(obj, (list, tuple)):
        return [_adopted(each, device) for each in obj]
    if isinstance(obj, (Array, *HOST_TYPES)):
        return obj
    adopted = _adopt(obj, device)
    return read_values(obj, None) if adopted is None else adopted


def _leaves(obj: Any) -> Iterator[Any]:
    if isinstance(obj, list):
        for each in obj:
            yield from _leaves(each)
    else:
        yield obj


def _stacked_parts(obj: Any, dtype: Any, device: Any) -> Array:
    if isinstance(obj, list):
        return stack_equal([_stacked_parts(each, dtype, device) for each in obj])
    if isinstance(obj, Array):
        return obj.astype(dtype, copy=False)
    return asarray(obj, dtype, device=device)


def stack_equal(parts: list[Array], axis: int = 0) -> Array:
    """Arrays of one dtype along a new axis, counted from the front. InvalidArgument for no arrays
    and for different shapes."""
    if not parts:
        raise InvalidArgument("there is no array to join")
    for part in parts:
        if part.shape != parts[0].shape:
            raise InvalidArgument(
                f"Incompatible dimensions: arrays of shapes {parts[0].shape} and {part.shape} "
                "cannot be stacked"
            )
    place = (slice(None),) * axis
    return _concat([part[(*place, None)] for part in parts], axis)


def from_dlpack(x: Any, *, device: Any = None, copy: bool | None = None) -> Array:
    """A view of another library's device array, through DLPack.

    >>> x = kw.ones(3)
    >>> kw.from_dlpack(x).ptr == x.ptr
    True
    """
    if isinstance(x, Array):
        return _convert(x, None, device, copy)
    if not hasattr(x, "__dlpack__"):
        raise ArgumentError(f"{kind_of(x)} has no __dlpack__ method")
    adopted = _adopt(x, device)
    if adopted is None:
        raise ArgumentError(f"{kind_of(x)} is in host memory: copy it with kw.asarray(x)")
    return _convert(adopted, None, None, copy)


def _convert(x: Array, dtype: Any, device: Any, copy: bool | None) -> Array:
    result = x if device is None else x.to(device)
    if dtype is not None and _dtype(dtype) != result.dtype:
        result = result.astype(dtype)
    if copy is False and result is not x:
        raise InvalidArgument(
            f"an array of {x.dtype} on {x.device} cannot become one of "
            f"{_dtype(dtype) if dtype is not None else x.dtype} on {result.device} without a copy"
        )
    return result.copy() if copy and result is x else result
