"""Integers of 4 bits, which no array's dtype is: two in a byte of uint8.

>>> import numpy as np, kernwright as kw
>>> packed = kw.nn.quant.pack_int4(kw.asarray(np.array([1, -2, 7], np.int8)))
>>> packed.numpy().tolist(), kw.nn.quant.unpack_int4(packed, length=3).numpy().tolist()
([225, 7], [1, -2, 7])
"""

from __future__ import annotations

import operator
from typing import Any

from kernwright._core import Array, _pack_nibbles, _unpack_nibbles
from kernwright.errors import ArgumentError, ArgumentRangeError

__all__ = ["pack_int4", "unpack_int4"]


def pack_int4(x: Any) -> Array:
    """The low 4 bits of integers, two in a byte along the last axis, as uint8 (..., (n + 1) / 2).

    The first of two is in the low half; for an odd n the last byte's high half is 0. Numbers from
    -8 to 7, or 0 to 15, come back from unpack_int4() as they were; others wrap around, as
    astype() to a narrower integer does: clip() before to saturate. Raises InvalidArgument for
    other dtypes and without axes.

    >>> kw.nn.quant.pack_int4(kw.asarray([[1, 0, 0, 1]], "int8")).numpy()
    array([[ 1, 16]], dtype=uint8)
    """
    return _pack_nibbles(x)


def unpack_int4(packed: Any, *, signed: bool = True, length: int | None = None) -> Array:
    """The numbers of pack_int4(), as int8 from -8 to 7, or with ``signed=False`` uint8 to 15.

    `length` is the extent of the last axis: twice that of `packed` unless told otherwise, or one
    less. Raises InvalidArgument for other lengths and for what is not uint8.

    >>> packed = kw.nn.quant.pack_int4(kw.asarray([[1, -2, 3, -4]], "int8"))
    >>> kw.nn.quant.unpack_int4(packed).numpy()
    array([[ 1, -2,  3, -4]], dtype=int8)
    """
    if length is None:
        return _unpack_nibbles(packed, bool(signed), -1)
    try:
        extent = operator.index(length)
    except TypeError:
        raise ArgumentError(f"length is an int, got {type(length).__name__}") from None
    if not 0 <= extent < 1 << 62:
        raise ArgumentRangeError(f"length of {extent} is out of range")
    return _unpack_nibbles(packed, bool(signed), extent)
