"""Bits packed into bytes, and bytes taken apart."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from kernwright._array.operands import axis_of, device_array
from kernwright._core import Array, empty
from kernwright.errors import ArgumentError, InvalidArgument

__all__ = ["packbits", "unpackbits"]

_PACK = """
const Int64 row = i / bytes, first = i % bytes * 8;
unsigned int made = 0;
for (int bit = 0; bit < 8; ++bit) {
  if (first + bit < bits && x[row * bits + first + bit] != 0) {
    made |= 1u << (LITTLE ? bit : 7 - bit);
  }
}
y = made;
"""
_UNPACK = """
const Int64 row = i / bits, bit = i % bits;
unsigned int made = 0;
if (bit < bytes * 8) {
  made = static_cast<unsigned int>(x[row * bytes + bit / 8]);
  made = made >> (LITTLE ? bit % 8 : 7 - bit % 8) & 1u;
}
y = made;
"""


@functools.cache
def _kernel(packs: bool, little: bool) -> Any:
    from kernwright._fuse.elementwise import ElementwiseKernel

    code = (_PACK if packs else _UNPACK).replace("LITTLE", "true" if little else "false")
    name = "packbits" if packs else "unpackbits"
    return ElementwiseKernel("raw T x, int64 bits, int64 bytes", "uint8 y", code, name)


def _rows(x: Any, axis: int | None, bitorder: str) -> tuple[Array, int]:
    """`axis` as the last one, without gaps."""
    import kernwright as kw

    array: Array = device_array(x)
    if bitorder not in ("big", "little"):
        raise InvalidArgument(f'bitorder is "big" or "little", got {bitorder!r}')
    if axis is None:
        array, axis = array.reshape(-1), 0
    at = axis_of(axis, array.ndim)
    moved = kw.moveaxis(array, at, -1)
    return moved if moved.is_contiguous else moved.copy(), at


def _run(x: Array, at: int, bits: int, size: int, packs: bool, bitorder: str) -> Array:
    import kernwright as kw

    made = empty((*x.shape[:-1], size), np.uint8, device=x.device)
    count = size if packs else x.shape[-1]
    if made.size:
        source = x if x.size else kw.zeros(1, x.dtype, device=x.device)
        _kernel(packs, bitorder == "little")(source, np.int64(bits), np.int64(count), made)
    return kw.moveaxis(made, -1, at)


def packbits(x: Any, axis: int | None = None, bitorder: str = "big") -> Array:
    """Integers or bools along `axis` (None: all, flat), eight in a byte, 1 where they are not 0;
    the last byte is filled with zeros. The first is the highest bit, with bitorder="little" the
    lowest. ArgumentError for other types.

    >>> kw.packbits(kw.asarray([1, 0, 1])).numpy()
    array([160], dtype=uint8)
    """
    rows, at = _rows(x, axis, bitorder)
    if rows.dtype.kind not in "iub":
        raise ArgumentError(f"packbits() takes integers and bools, got {rows.dtype}")
    bits = rows.shape[-1]
    return _run(rows, at, bits, -(-bits // 8), True, bitorder)


def unpackbits(
    x: Any, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Array:
    """The bits of bytes along `axis` (None: of all, flat) as uint8: eight of each. `count` of them,
    zeros beyond the last; a negative one leaves so many out. ArgumentError unless `x` is of uint8.

    >>> kw.unpackbits(kw.asarray([160], "uint8"), count=3).numpy()
    array([1, 0, 1], dtype=uint8)
    """
    rows, at = _rows(x, axis, bitorder)
    if rows.dtype != np.uint8:
        raise ArgumentError(f"unpackbits() takes bytes (uint8), got {rows.dtype}")
    whole = rows.shape[-1] * 8
    size = whole if count is None else operator.index(count)
    if size < 0:
        if -size > whole:
            raise InvalidArgument(f"count={count} leaves more than the {whole} bits out")
        size += whole
    return _run(rows, at, size, size, False, bitorder)
