"""Creating arrays: from values, from NumPy, from other libraries' arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kernwright._core import (
    Array,
    _adopt,
    _dtype,
    _from_numpy,
    _sequence,
    _whole_sequence,
    empty,
)
from kernwright.errors import ArgumentError, InvalidArgument


def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Array:
    """An array filled with `fill_value`; the default dtype is that of asarray().

    >>> kw.full((2, 2), 7).numpy()
    array([[7, 7],
           [7, 7]])
    """
    if dtype is None:
        dtype = _default_dtype(fill_value)
    array = empty(shape, dtype, device=device)
    array._fill(fill_value)
    return array


def zeros(shape: Any, dtype: Any = None, *, device: Any = None) -> Array:
    """An array of zeros, of float32 unless told otherwise.

    >>> kw.zeros((2, 3)).numpy()
    array([[0., 0., 0.],
           [0., 0., 0.]], dtype=float32)
    """
    return full(shape, 0, np.float32 if dtype is None else dtype, device=device)


def ones(shape: Any, dtype: Any = None, *, device: Any = None) -> Array:
    """An array of ones, of float32 unless told otherwise.

    >>> kw.ones((2, 2)).numpy()
    array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    return full(shape, 1, np.float32 if dtype is None else dtype, device=device)


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
            f"the ..._like functions take an array, got {_kind(x)}: make one of it with "
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
    wanted = np.dtype(_default_dtype(start + stop + step) if dtype is None else _dtype(dtype))
    if wanted.kind in "iu":
        if all(map(_is_whole, (start, stop, step))):
            return _whole_sequence_of(range(start, stop, step), wanted, device)
        values = np.arange(start, stop, step)
        return _from_numpy(_checked_cast(values, wanted), device)
    # In float64 and rounded once, whatever the element type.
    count = max(0, math.ceil((stop - start) / step))
    if wanted.name in _REAL and all(map(_is_real, (start, step))):
        made = empty(count, wanted, device=device)
        _sequence(made, float(start), float(step), None)
        return made
    values = start + step * np.arange(count, dtype=np.float64)
    return _from_numpy(_checked_cast(values, wanted), device)


def linspace(
    start: Any, stop: Any, num: int = 50, dtype: Any = None, *, endpoint: bool = True,
    device: Any = None,
) -> Array:  # fmt: skip
    """`num` evenly spaced values from start to stop, of float32 unless told otherwise. Real values
    are computed on the device, in float64.

    >>> kw.linspace(0, 1, 5).numpy()
    array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    wanted = None if dtype is None else np.dtype(_dtype(dtype))
    if _is_whole(num) and not 0 <= num < 2**63:
        raise InvalidArgument(f"linspace(): num must be at least 0 and below 2^63, got {num}")
    if all(map(_is_real, (start, stop))) and _is_whole(num) and num > 1:
        wanted = np.dtype(np.float32) if wanted is None else wanted
        distance = float(stop) - float(start)
        step = distance / (num - 1 if endpoint else num)
        if wanted.name in _REAL and math.isfinite(distance) and (step or not distance):
            made = empty(num, wanted, device=device)
            _sequence(made, float(start), step, float(stop) if endpoint else None)
            return made
    values = np.linspace(start, stop, num, endpoint=endpoint)
    default = np.complex64 if np.iscomplexobj(values) else np.float32
    return _from_numpy(_checked_cast(values, default if wanted is None else wanted), device)


# Types of the numbers that a kernel computes in float64.
_REAL = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2")


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_real(value: Any) -> bool:
    """A number of float64."""
    if isinstance(value, (float, np.floating)):
        return True
    return _is_whole(value) and -(2**63) <= value < 2**64


def _whole_sequence_of(values: range, dtype: Any, device: Any) -> Array:
    made = empty(len(values), dtype, device=device)
    if len(values) > 0:
        _require_fitting(min(values[0], values[-1]), max(values[0], values[-1]), dtype)
        _whole_sequence(made, _wrapped(values.start), _wrapped(values.step))
    return made


def _wrapped(value: int) -> int:
    """What 64 bits hold of an int, as a signed one."""
    return (value + 2**63) % 2**64 - 2**63


def asarray(obj: Any, dtype: Any = None, *, device: Any = None, copy: bool | None = None) -> Array:
    """`obj` as an array: itself, a view of another library's device array, or a copy of host data.

    NumPy arrays keep their dtype; Python floats become float32, ints int64, complex complex64.
    copy=False raises where only a copy would do.

    >>> kw.asarray([1, 2, 3]).numpy()
    array([1, 2, 3])
    >>> kw.asarray(np.zeros((2, 3))).shape
    (2, 3)
    """
    if isinstance(obj, Array):
        return _convert(obj, dtype, device, copy)
    if not isinstance(obj, (np.ndarray, np.generic, bool, int, float, complex, list, tuple)):
        adopted = _adopt(obj, device)
        if adopted is not None:
            return _convert(adopted, dtype, device, copy)
    if copy is False:
        raise InvalidArgument(f"{_kind(obj)} is in host memory: only a copy reaches the device")
    return _from_numpy(_host_values(obj, dtype), device)


def from_dlpack(x: Any, *, device: Any = None, copy: bool | None = None) -> Array:
    """A view of another library's device array, through DLPack.

    >>> x = kw.ones(3)
    >>> kw.from_dlpack(x).ptr == x.ptr
    True
    """
    if isinstance(x, Array):
        return _convert(x, None, device, copy)
    if not hasattr(x, "__dlpack__"):
        raise ArgumentError(f"{_kind(x)} has no __dlpack__ method")
    adopted = _adopt(x, device)
    if adopted is None:
        raise ArgumentError(f"{_kind(x)} is in host memory: copy it with kw.asarray(x)")
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


def is_masked(values: Any) -> bool:
    """Whether elements of a NumPy array are masked: their values mean nothing."""
    return (
        type(values) is not np.ndarray
        and isinstance(values, np.ma.MaskedArray)
        and bool(np.any(values.mask))
    )


def _host_values(obj: Any, dtype: Any) -> np.ndarray[Any, Any]:
    given = isinstance(obj, (np.ndarray, np.generic))
    if given and is_masked(obj):
        raise ArgumentError(
            f"{_kind(obj)} with masked elements: fill them first, or pass its data without the mask"
        )
    if not given and not isinstance(obj, (list, tuple, bool, int, float, complex)):
        given = hasattr(obj, "__array__") or hasattr(obj, "__array_interface__") or _has_buffer(obj)
        if not given and hasattr(obj, "__dlpack__"):
            obj, given = np.from_dlpack(obj), True
    values = np.asarray(memoryview(obj) if isinstance(obj, (bytes, bytearray)) else obj)
    if values.dtype == object and dtype is not None:
        values = np.asarray(obj, dtype=_dtype(dtype))
    if values.dtype.kind in "OSUMmV" and not _known(values.dtype):
        raise ArgumentError(
            f"{_kind(obj)} with elements of dtype {values.dtype}: arrays hold numbers and bools"
            + _advice(values.dtype)
        )
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    if dtype is not None:
        return _checked_cast(values, _dtype(dtype))
    if not given and not _holds_numpy(obj):
        values = values.astype(_NARROW.get(values.dtype.name, values.dtype), copy=False)
    return values


# What NumPy makes of Python numbers -> what arrays make of them.
_NARROW: dict[str, Any] = {"float64": np.float32, "complex128": np.complex64}


def _holds_numpy(obj: Any) -> bool:
    while isinstance(obj, (list, tuple)) and obj:
        obj = obj[0]
    return isinstance(obj, (np.ndarray, np.generic))


def _advice(dtype: np.dtype[Any]) -> str:
    """What to pass instead of values of this dtype, where there is something."""
    if dtype.names:
        return '; pass values.view("uint8"), the bytes of structs'
    if dtype.name in ("int4", "uint4"):
        whole = dtype.name.replace("4", "8")
        return (
            "; integers of 4 bits lie two in a byte: "
            f'kw.nn.quant.pack_int4(kw.asarray(values.astype("{whole}")))'
        )
    return ""


def _known(dtype: np.dtype[Any]) -> bool:
    try:
        return bool(_dtype(dtype) == dtype)
    except ArgumentError:
        return False


def _has_buffer(obj: Any) -> bool:
    try:
        memoryview(obj)
    except TypeError:
        return False
    return True


def _checked_cast(values: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    """astype() that refuses integers which do not fit, where NumPy would wrap them."""
    dtype = np.dtype(dtype)
    if values.dtype == dtype:
        return values
    if values.dtype.kind in "iu" and dtype.kind in "iu" and values.size:
        _require_fitting(int(values.min()), int(values.max()), dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(dtype, copy=False)


def _require_fitting(low: int, high: int, dtype: Any) -> None:
    limits = np.iinfo(dtype)
    if low < limits.min or high > limits.max:
        from kernwright.errors import ArgumentRangeError

        raise ArgumentRangeError(
            f"values {low} ... {high} do not fit {dtype} ({limits.min} ... {limits.max})"
        )


def _default_dtype(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.dtype
    if isinstance(value, (bool, np.bool_)):
        return np.bool_
    if isinstance(value, int):
        return np.int64
    return np.complex64 if isinstance(value, complex) else np.float32


def _kind(obj: Any) -> str:
    module, name = type(obj).__module__, type(obj).__qualname__
    if module.startswith("kernwright."):
        return f"a kw.{name}"
    return f"a {name}" if module == "builtins" else f"a {module}.{name}"
