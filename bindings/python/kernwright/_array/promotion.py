"""Types of results: NumPy's promotion, with ml_dtypes' rules for bfloat16 and the 8-bit floats."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from kernwright import _core

__all__ = ["can_cast", "promote_types", "result_type"]


def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """The type that an operation on all of these gives: arrays, types and their names, numbers.

    Numbers of Python are weak: they take the type of the others where it has their kind. Alone they
    are int64, float32 and complex64. ArgumentError for what is no array, type or number.

    >>> kw.result_type(kw.ones(3), 2.0), kw.result_type("int32", "float32")
    (dtype('float32'), dtype('float64'))
    """
    return _core._result_type(*arrays_and_dtypes)


def promote_types(type1: Any, type2: Any, /) -> np.dtype[Any]:
    """The type that values of both go into. ArgumentError for what is no element type.

    >>> kw.promote_types("uint8", "int8")
    dtype('int16')
    """
    return _core._promote_types(type1, type2)


def can_cast(from_: Any, to: Any, /, casting: Literal["safe", "same_kind"] = "safe") -> bool:
    """Whether values of a type, or of an array, go into another: all of them ("safe"), or up to
    digits ("same_kind": what `out=` and operators in place ask for).

    >>> kw.can_cast("int32", "float64"), kw.can_cast("float64", "float32")
    (True, False)
    """
    return _core._can_cast(from_, to, casting)
