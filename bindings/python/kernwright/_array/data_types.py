"""Element types: conversion, limits, kinds; the constants of the array API."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernwright._array.host_values import kind_of
from kernwright._core import Array, _dtype, _result_type, _set_default_dtype
from kernwright.errors import ArgumentError

__all__ = [
    "astype",
    "e",
    "finfo",
    "get_default_dtype",
    "iinfo",
    "inf",
    "isdtype",
    "nan",
    "newaxis",
    "pi",
    "set_default_dtype",
]

e = 2.718281828459045
pi = 3.141592653589793
inf = float("inf")
nan = float("nan")
newaxis = None

_KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


def astype(x: Array, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Array:
    """`x` with its elements as `dtype`, by NumPy's rules of astype(); on `device` where one is
    named. copy=False gives `x` itself where nothing changes. A complex array has no real form.

    >>> kw.astype(kw.asarray([1.5, -2.5]), "int32").numpy()
    array([ 1, -2], dtype=int32)
    """
    if not isinstance(x, Array):
        raise ArgumentError(f"astype() converts arrays of a device, not {kind_of(x)}: kw.asarray()")
    if np.dtype(x.dtype).kind == "c" and _kind_of(dtype) in "f":
        raise ArgumentError(
            f"elements of {x.dtype} become {_dtype(dtype)} only without their imaginary part: "
            "take it with kw.real(x)"
        )
    if device is not None:
        x = x.to(device)
    return x.astype(dtype, copy=copy)


def set_default_dtype(dtype: Any, /) -> None:
    """Sets the element type of what is made of Python floats, where no type is named: by asarray(),
    full(), zeros(), ones(), empty(), eye(), arange(), linspace(), fft.fftfreq() and kw.random.
    Complex numbers get the complex type of its width. Types of arrays that exist do not change.

    `dtype`: float32 (that of a new process), float64, float16 or bfloat16; ArgumentError for
    another. The type is that of all threads. A call of another thread in the same moment uses the
    type before or after; none sees both.

    >>> kw.set_default_dtype("float64")
    >>> kw.zeros(2).dtype, kw.asarray([1 + 2j]).dtype
    (dtype('float64'), dtype('complex128'))
    >>> kw.set_default_dtype("float32")
    """
    if dtype is None:  # NumPy's name of float64
        raise ArgumentError('set_default_dtype() needs a type, such as "float32", and got None')
    _set_default_dtype(dtype)


def get_default_dtype() -> np.dtype[Any]:
    """The element type that Python floats become: see set_default_dtype().

    >>> kw.get_default_dtype()
    dtype('float32')
    """
    return _result_type(0.0)


def _kind_of(dtype: Any) -> str:
    """b, i, u, f or c; the small floats of ml_dtypes are floats, too."""
    kind = np.dtype(_dtype(dtype)).kind
    return "f" if kind == "V" else kind


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether `dtype` is of the kind: "bool", "signed integer", "unsigned integer", "integral",
    "real floating", "complex floating", "numeric"; a dtype; or one of a tuple of them.

    >>> kw.isdtype(kw.float32, "real floating")
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ArgumentError(f"isdtype() knows no kind {kind!r}: {', '.join(_KINDS)}")
        return _kind_of(dtype) in _KINDS[kind]
    return bool(_dtype(dtype) == _dtype(kind))


class finfo:
    """The limits of a floating type, given as one, as an array, or as a complex type, whose parts
    they are then: bits, eps, max, min, smallest_normal, dtype.

    >>> kw.finfo("bfloat16").eps
    0.0078125
    """

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Any

    def __init__(self, type: Any, /) -> None:
        dtype = np.dtype(type.dtype if isinstance(type, Array) else _dtype(type))
        if _kind_of(dtype) not in "fc":
            raise ArgumentError(f"finfo() is about floating types, not {dtype}: kw.iinfo()")
        if dtype.kind == "V":
            import ml_dtypes

            limits: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
        else:
            limits = np.finfo(dtype)
        self.bits = int(limits.bits)
        self.eps = float(limits.eps)
        self.max = float(limits.max)
        self.min = float(limits.min)
        self.smallest_normal = float(limits.smallest_normal)
        self.dtype = np.dtype(limits.dtype)

    def __repr__(self) -> str:
        return f"finfo(dtype={self.dtype}, min={self.min}, max={self.max}, eps={self.eps})"


class iinfo:
    """The limits of an integer type, given as one or as an array: bits, max, min, dtype.

    >>> kw.iinfo("int8").max
    127
    """

    bits: int
    max: int
    min: int
    dtype: Any

    def __init__(self, type: Any, /) -> None:
        dtype = np.dtype(type.dtype if isinstance(type, Array) else _dtype(type))
        if dtype.kind not in "iu":
            raise ArgumentError(f"iinfo() is about integer types, not {dtype}: kw.finfo()")
        limits = np.iinfo(dtype)
        self.bits, self.max, self.min = int(limits.bits), int(limits.max), int(limits.min)
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"iinfo(dtype={self.dtype}, min={self.min}, max={self.max})"


def _promoted(*arrays: Any) -> tuple[Array, ...]:
    """All as arrays of the type that NumPy's promotion gives them."""
    for each in arrays:
        if not isinstance(each, Array):
            raise ArgumentError(
                f"an array of a device is needed, got {kind_of(each)}: kw.asarray()"
            )
    types = [each.dtype for each in arrays]
    if all(each is types[0] for each in types):  # promotion costs more than a launch
        return arrays
    common = _result_type(*types)
    return tuple(each.astype(common, copy=False) for each in arrays)
