"""Element types: their names in device code, and NumPy's type for an operation's operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernwright._core import _dtype
from kernwright.errors import ArgumentRangeError, InvalidArgument

# dtype name -> (element type in memory, type that it computes in, kind)
_TYPES = {
    "bool": ("Bool", "bool", "b"),
    "int8": ("Int8", "Int8", "i"),
    "int16": ("Int16", "Int16", "i"),
    "int32": ("Int32", "Int32", "i"),
    "int64": ("Int64", "Int64", "i"),
    "uint8": ("UInt8", "UInt8", "u"),
    "uint16": ("UInt16", "UInt16", "u"),
    "uint32": ("UInt32", "UInt32", "u"),
    "uint64": ("UInt64", "UInt64", "u"),
    "float16": ("Float16", "float", "f"),
    "bfloat16": ("BFloat16", "float", "f"),
    "float8_e4m3fn": ("Float8E4M3", "float", "f"),
    "float8_e5m2": ("Float8E5M2", "float", "f"),
    "float32": ("Float32", "float", "f"),
    "float64": ("Float64", "double", "f"),
}
# A Python number that no dtype was given for: the dtype that it computes in among its like.
WEAK = {"b": np.dtype("bool"), "i": np.dtype("int64"), "f": np.dtype("float64")}


def _entry(dtype: Any) -> tuple[str, str, str]:
    try:
        return _TYPES[dtype.name]
    except KeyError:
        raise InvalidArgument(
            f"elements of {dtype} cannot be fused: kw.fuse and the makers of kernels take bools, "
            "integers and real floats (split complex arrays into .real and .imag)"
        ) from None


def element_type(dtype: Any) -> str:
    """The type in memory: "Float16"."""
    return _entry(dtype)[0]


def compute_type(dtype: Any) -> str:
    """The type of a value in a register: "float" for float16."""
    return _entry(dtype)[1]


def kind_of(dtype: Any) -> str:
    """ "b", "i", "u" or "f"."""
    return _entry(dtype)[2]


def compute_dtype(dtype: Any) -> Any:
    """The dtype of arithmetic with `dtype`."""
    return np.dtype({"float": "float32", "double": "float64"}.get(_entry(dtype)[1], dtype))


def as_dtype(dtype: Any) -> np.dtype[Any]:
    """A dtype of arrays; Python's float is float32, as everywhere in the package."""
    found = np.dtype(_dtype(dtype))
    _entry(found)
    return found


def weak_kind(value: Any) -> str | None:
    """The kind of a Python number; None for everything else."""
    if isinstance(value, (np.generic, np.ndarray)):
        return None
    if isinstance(value, bool):
        return "b"
    if isinstance(value, int):
        return "i"
    return "f" if isinstance(value, float) else None


def is_narrow(dtype: Any) -> bool:
    """Whether it is one of the floats beyond NumPy's own."""
    return dtype.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2")


def resolve(name: str, ufunc: Any, operands: list[Any]) -> np.dtype[Any]:
    """The dtype from `ufunc` for dtypes and (weak) Python numbers.

    A Python float beside bfloat16 or float8 stays of that dtype, as it does beside float16.
    """
    narrow = next((o for o in operands if isinstance(o, np.dtype) and is_narrow(o)), None)
    samples = []
    for operand in operands:
        if isinstance(operand, np.dtype):
            samples.append(np.empty(0, operand))
        elif narrow is not None and isinstance(operand, float):
            samples.append(np.empty(0, narrow))
        else:
            samples.append(operand)
    try:
        with np.errstate(all="ignore"):
            found: np.dtype[Any] = ufunc(*samples).dtype
            return found
    except OverflowError as error:
        raise ArgumentRangeError(f"{name}: {error}") from None
    except (TypeError, ValueError) as error:
        shown = ", ".join(str(o) for o in operands)
        raise InvalidArgument(f"{name} is not defined for ({shown}): {error}") from None


def literal(value: Any, dtype: Any) -> str:
    """A number as text of the type of arithmetic with `dtype`."""
    kind, ctype = kind_of(dtype), compute_type(dtype)
    if kind == "b":
        return "true" if value else "false"
    if kind in "iu":
        return _whole_literal(int(value), ctype, kind)
    number = float(np.float32(value)) if ctype == "float" else float(value)
    if number != number or number in (float("inf"), float("-inf")):
        return _special_literal(number, ctype)
    text = repr(number)
    if "e" not in text and "." not in text:
        text += ".0"
    if ctype == "float":
        text = str(np.float32(number))
        text = (text if "." in text or "e" in text else text + ".0") + "f"
    return f"({text})" if text.startswith("-") else text


def _whole_literal(value: int, ctype: str, kind: str) -> str:
    if value == -(2**63):
        return "(-9223372036854775807LL - 1)"
    suffix = {"Int64": "LL", "UInt64": "ULL", "UInt32": "u"}.get(ctype, "")
    text = f"{value}{suffix}"
    if ctype in ("Int8", "Int16", "UInt8", "UInt16"):
        return f"{ctype}({value})"
    if value == -(2**31) and ctype == "Int32":
        text = "-2147483647 - 1"
    return f"({text})" if value < 0 else text


def _special_literal(number: float, ctype: str) -> str:
    if ctype == "float":
        bits = 0x7FC00000 if number != number else 0x7F800000 if number > 0 else 0xFF800000
        return f"__int_as_float({bits:#x})"
    bits = 0x7FF8 if number != number else 0x7FF0 if number > 0 else 0xFFF0
    return f"__longlong_as_double({bits << 48:#x}LL)"


def lowest(dtype: Any) -> Any:
    """The least value of the dtype."""
    if kind_of(dtype) == "f":
        return float("-inf")
    return False if kind_of(dtype) == "b" else np.iinfo(dtype).min


def highest(dtype: Any) -> Any:
    """The greatest value of the dtype."""
    if kind_of(dtype) == "f":
        return float("inf")
    return True if kind_of(dtype) == "b" else np.iinfo(dtype).max
