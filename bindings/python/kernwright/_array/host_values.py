"""Values of the host on their way to an array: what they are read as, and what does not fit."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from kernwright._core import Array, _dtype, _result_type
from kernwright.errors import ArgumentError, ArgumentRangeError

_ONLY_OF_TORCH = ("bfloat16", "float8_e4m3fn", "float8_e5m2")  # torch gives NumPy none of them


def read_values(obj: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """`obj` as a NumPy array for checked_cast() to `dtype`, or of the type that asarray() gives it.
    Raises ArgumentError for values that are no numbers, and ArgumentRangeError for integers that no
    type holds."""
    given = isinstance(obj, (np.ndarray, np.generic))
    if given and is_masked(obj):
        raise ArgumentError(
            f"{kind_of(obj)} with masked elements: fill them first, or pass its data without the "
            "mask"
        )
    if not given and not isinstance(obj, (list, tuple, bool, int, float, complex)):
        given = hasattr(obj, "__array__") or hasattr(obj, "__array_interface__") or _has_buffer(obj)
        if given or hasattr(obj, "__dlpack__"):
            obj, given = _foreign_values(obj, given), True
    values = np.asarray(memoryview(obj) if isinstance(obj, (bytes, bytearray)) else obj)
    if not given:
        values = _exact_integers(obj, values, dtype)
    if values.dtype == object and dtype is not None:
        values = np.asarray(obj, dtype=_dtype(dtype))
    if values.dtype.kind in "OSUMmV" and not _known(values.dtype):
        raise ArgumentError(
            f"{kind_of(obj)} with elements of dtype {values.dtype}: arrays hold numbers and bools"
            + _advice(values.dtype)
        )
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    wide = values.dtype.name in ("float64", "complex128")
    if wide and dtype is None and not given and not _holds_numpy(obj):
        values = checked_cast(values, _result_type(0j if values.dtype.kind == "c" else 0.0))
    return values


def _foreign_values(obj: Any, is_array: bool) -> Any:
    """What NumPy reads of another library's object; a tensor that has a gradient is read, too."""
    if isinstance(obj, (bytes, bytearray)):
        return obj
    if getattr(obj, "requires_grad", False) is True:
        obj = obj.detach()
    torch = sys.modules.get("torch")
    try:
        if torch is not None and isinstance(obj, torch.Tensor):
            name = str(obj.dtype).removeprefix("torch.")
            if name in _ONLY_OF_TORCH:
                bits = obj.contiguous().view(torch.int16 if obj.itemsize == 2 else torch.uint8)
                return bits.numpy().view(_dtype(name))
        return np.asarray(obj) if is_array else np.from_dlpack(obj)
    except (RuntimeError, TypeError, ValueError, BufferError) as error:
        raise ArgumentError(f"{kind_of(obj)} cannot be read: {error}") from error


def checked_cast(values: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    """astype() that refuses integers which do not fit, where NumPy would wrap them."""
    dtype = np.dtype(dtype)
    if values.dtype == dtype:
        return values
    if values.dtype.kind in "iu" and dtype.kind in "iu" and values.size:
        require_fitting(int(values.min()), int(values.max()), dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(dtype, copy=False)


def checked_values(values: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    """Values of the host in the type of the array that they are assigned to."""
    if values.dtype.kind == "c" and dtype.kind != "c":
        raise ArgumentError(f"complex values do not go into an array of {dtype}")
    return checked_cast(values, dtype)


def require_fitting(low: int, high: int, dtype: Any) -> None:
    """Raises ArgumentRangeError unless the integers from `low` to `high` are values of `dtype`."""
    limits = np.iinfo(dtype)
    if low < limits.min or high > limits.max:
        raise ArgumentRangeError(
            f"values {low} ... {high} do not fit {dtype} ({limits.min} ... {limits.max})"
        )


def dtype_of_value(value: Any) -> Any:
    """The element type of an array of `value`, where none is named."""
    if isinstance(value, (np.generic, np.ndarray, Array)):
        return value.dtype
    if isinstance(value, (bool, np.bool_)):
        return np.bool_
    if isinstance(value, int):
        return np.uint64 if 2**63 <= value < 2**64 else np.int64
    return _result_type(0j if isinstance(value, complex) else 0.0)


def is_masked(values: Any) -> bool:
    """Whether elements of a NumPy array are masked: their values mean nothing."""
    return (
        type(values) is not np.ndarray
        and isinstance(values, np.ma.MaskedArray)
        and bool(np.any(values.mask))
    )


def kind_of(obj: Any) -> str:
    """The type of `obj` as an error names it: "a list", "a pandas.DataFrame"."""
    module, name = type(obj).__module__, type(obj).__qualname__
    if module.startswith("kernwright."):
        return f"a kw.{name}"
    return f"a {name}" if module == "builtins" else f"a {module}.{name}"


def _exact_integers(obj: Any, values: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    """Integers that NumPy reads as float64, because some need int64 and others uint64, or as
    objects, because some need more: exactly, where they go into integers."""
    wanted = None if dtype is None else np.dtype(_dtype(dtype))
    if wanted is not None and wanted.kind not in "iu":
        return values
    if values.dtype == np.float64:
        if not np.any(np.abs(values) >= 2.0**63):
            return values
        exact = np.asarray(obj, dtype=object)
    elif values.dtype == object and values.size:
        exact = values
    else:
        return values
    if not all(isinstance(value, (int, np.integer)) for value in exact.flat):
        return values
    low, high = (int(bound(map(int, exact.flat))) for bound in (min, max))
    if wanted is None and low < 0 and 2**63 <= high < 2**64:
        raise ArgumentRangeError(
            f"integers from {low} to {high} fit neither int64 nor uint64: name the type that they "
            'are rounded to, as in dtype="float64"'
        )
    kept = np.dtype(np.uint64) if wanted is None else wanted
    require_fitting(low, high, kept)
    return exact.astype(kept)


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
