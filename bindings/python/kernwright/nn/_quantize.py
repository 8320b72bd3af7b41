"""Rows, and blocks of rows, as 8-bit numbers times a scale."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernwright import _core
from kernwright._core import Array
from kernwright.errors import InvalidArgument

__all__ = ["dequantize_rows", "quantize_blocks", "quantize_rows"]


def quantize_rows(
    x: Array, dtype: Any = "int8", *, scope: str = "row", scale: Array | None = None
) -> tuple[Array, Array]:
    """(q, scale) with x about q * scale: q of `dtype` and the shape of x, scale float32.

    A scale is the largest magnitude of a row (the last axis) over 127 for int8, which is symmetric,
    over 448 for float8_e4m3fn and 57344 for float8_e5m2; q is x / scale to nearest even. Its shape
    is x.shape[:-1]; with ``scope="tensor"`` it is () and one for all. An array of one number or
    one a row given as `scale` is taken instead: what it does not reach is clipped.

    x is float16, bfloat16 or float32, with any strides. A row of zeros has the scale 0; a NaN makes
    the scale of its row NaN, an infinity makes it infinite. Raises InvalidArgument.

    >>> q, scale = kw.nn.quantize_rows(kw.asarray(np.array([[1.0, -2.0, 0.5]], np.float32)))
    >>> q.numpy().tolist(), round(float(scale.numpy()[0]), 4)
    ([[64, -127, 32]], 0.0157)
    """
    if scope not in ("row", "tensor"):
        raise InvalidArgument(f'scope is "row" or "tensor", not {scope!r}')
    return _core._quantize_rows(x, dtype, scope == "tensor", scale)


def quantize_blocks(
    x: Array, block: int = 128, *, dtype: Any = "float8_e4m3fn"
) -> tuple[Array, Array]:
    """(q, scale): as quantize_rows(), with a scale for every `block` numbers of a row.

    `block` is 16, 32, 64, 128 or 256; the last one of a row may have fewer numbers. q has the shape
    of x, scale x.shape[:-1] + (columns / block, rounded up). Blocks of 128 are what
    scaled_matmul() takes beside weights in tiles of 128 by 128; the scales of a block's place in
    all rows follow each other in memory, as it reads them. Raises InvalidArgument.

    >>> q, scale = kw.nn.quantize_blocks(kw.ones((2, 256)))
    >>> q.shape, scale.shape, round(float(scale.numpy()[1, 1]), 6)
    ((2, 256), (2, 2), 0.002232)
    """
    if isinstance(block, bool) or not isinstance(block, (int, np.integer)):
        raise InvalidArgument(f"block is an int, not {block!r}")
    if not 0 < block <= 256:
        raise InvalidArgument(f"blocks are of 16, 32, 64, 128 or 256 numbers, not of {block}")
    return _core._quantize_blocks(x, int(block), dtype)


def dequantize_rows(q: Array, scale: Array, dtype: Any = "float32") -> Array:
    """q * scale as float16, bfloat16 or float32: what quantize_rows() made, back.

    `scale` has one number, or one for each row of q. Raises InvalidArgument.

    >>> q, scale = kw.asarray([[1, 2], [3, 4]], "int8"), kw.asarray([10.0, 0.5])
    >>> kw.nn.dequantize_rows(q, scale).numpy()
    array([[10. , 20. ],
           [ 1.5,  2. ]], dtype=float32)
    """
    return _core._dequantize_rows(q, scale, dtype)
