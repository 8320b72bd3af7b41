"""The public functions, by format."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from kernwright import _core
from kernwright._array.composed.padding import pad
from kernwright._array.creation import asarray, zeros
from kernwright._array.elementwise import abs as magnitudes
from kernwright._array.elementwise import where
from kernwright._array.operands import device_array
from kernwright._array.reductions import max as largest
from kernwright._array.reductions import mean
from kernwright._array.sorting import searchsorted
from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument

__all__ = ["dequantize", "formats", "quantize"]

# Numbers and bytes of a block.
_GGUF = {name: (numbers, size) for name, (numbers, size, *_) in _core._gguf_formats().items()}
# The number of the format in the extension and the numbers of a block.
_CODES = {"nf4": (0, 64), "fp4": (3, 64), "mxfp4": (1, 32), "nvfp4": (2, 16)}
# Formats of bitsandbytes: codes count all numbers in turn, blocks have their largest magnitude.
_ABSMAX = ("nf4", "fp4")
_NESTED = "(codes, absmax) or (codes, absmax codes, table, absmax scales, offset)"
_PARTS = {
    **{
        name: f"uint8 blocks of {size} bytes: {numbers} numbers"
        for name, (numbers, size) in _GGUF.items()
    },
    "nf4": _NESTED,
    "fp4": _NESTED,
    "mxfp4": "(codes, exponents)",
    "nvfp4": "(codes, scales, scale of all)",
    "fp8_block": "(weight, weight_scale_inv)",
    "gptq": "(qweight, qzeros, scales) or (qweight, qzeros, scales, g_idx)",
    "gptq_v2": "as gptq, zeros without an offset of 1",
    "awq": "(qweight, qzeros, scales)",
}
ONLY_READ = ("gptq", "gptq_v2", "awq")
_LARGEST_NVFP4 = 6.0 * 448.0


def formats() -> dict[str, str]:
    """The names of the formats, each with what `blocks` is: an array or a tuple of arrays.

    >>> kw.nn.quant.formats()["q4_k"]
    'uint8 blocks of 144 bytes: 256 numbers'
    """
    return dict(_PARTS)


def quantize(
    x: Array,
    format: str,
    *,
    block: int | tuple[int, int] | None = None,
    double: bool = False,
) -> Any:
    """`x`, which is float16, bfloat16 or float32, in a format, as dequantize() takes it.

    - Formats of GGUF, as "q4_0" or "q4_k": as ggml's reference where it makes no search, else
      scales from the extreme values of a group. uint8 of shape (..., n / values * bytes): the last
      axis holds whole blocks, of 32 or 256 numbers.
    - "nf4", "fp4": (codes, absmax) of all numbers in turn, in blocks of `block` (64): a code is
      that of x / absmax. With ``double=True`` absmax is quantised too: (codes, absmax codes, table,
      absmax scales, offset), as bitsandbytes keeps them.
    - "mxfp4": (codes, exponents) of 32 numbers: 2 ** (floor(log2(largest)) - 2), codes to nearest
      even, at most 6. "nvfp4": (codes, scales, scale of all) of 16 numbers: largest / 6 as
      float8_e4m3fn times largest of all / 2688. The last axis holds whole blocks.
    - "fp8_block": (float8_e4m3fn, scales), a scale for each tile of `block` ((128, 128)) of the
      last two axes: largest / 448.

    NaN counts as 0 in GGUF blocks and makes the scale of its block NaN elsewhere. Raises
    InvalidArgument for shapes and dtypes that do not fit.

    >>> codes, absmax = kw.nn.quant.quantize(kw.asarray(np.array([1.0, -2.0], np.float32)), "nf4")
    >>> codes.numpy().tolist(), absmax.numpy().tolist()
    ([192], [2.0])
    """
    _check_name(format)
    x = device_array(x, "x")
    if format in ONLY_READ:
        raise InvalidArgument(f"{format} is a format that is read only: dequantize() takes it")
    if double and format not in _ABSMAX:
        raise InvalidArgument(f"double=True is an option of {' and '.join(_ABSMAX)}, not {format}")
    if format in _GGUF:
        _no_block(block, format)
        return _core._quantize_gguf(x, format)
    if format == "fp8_block":
        return _core._quantize_tiles(x, _tile(block))
    return _quantize_codes(x, format, block, double)


def dequantize(
    blocks: Any,
    format: str,
    *,
    shape: tuple[int, ...] | None = None,
    dtype: Any = "float32",
    block: int | tuple[int, int] | None = None,
) -> Array:
    """The numbers of `blocks`, as float16, bfloat16 or float32; in float32 exact by the format.

    `blocks` is what formats() says. GGUF blocks are uint8 and lie along the last axis, as the rows
    of a file's tensor. Codes of "nf4" and "fp4" are for all numbers in turn, the first of two in
    the high half of a byte; of "mxfp4" and "nvfp4" it is in the low half. A number is

    - "nf4", "fp4": table[code] * absmax of its block of `block` (64) numbers,
    - "mxfp4": code * 2 ** (exponent - 127), blocks of 32; an exponent of 255 is NaN,
    - "nvfp4": code * (scale * scale of all), blocks of 16; scales are float8_e4m3fn or uint8,
    - "fp8_block": weight * weight_scale_inv of its tile of `block` ((128, 128)),
    - "gptq": scale * (code - zero - 1), "gptq_v2" and "awq": scale * (code - zero).

    The result has `shape`, which "nf4" and "fp4" need for an odd count of numbers. Raises
    InvalidArgument for lengths, shapes and dtypes that do not fit.

    >>> blocks = kw.zeros(144, dtype="uint8")
    >>> kw.nn.quant.dequantize(blocks, "q4_k", shape=(16, 16), dtype="float16").shape
    (16, 16)
    """
    _check_name(format)
    shape = None if shape is None else _whole_numbers(shape)
    if format in _GGUF:
        _no_block(block, format)
        if isinstance(blocks, (tuple, list)):
            raise ArgumentError(f"blocks of {format} are one array, got a {type(blocks).__name__}")
        return _reshaped(_core._dequantize_gguf(blocks, format, dtype), shape)
    counts = {"mxfp4": (2,), "fp8_block": (2,), "gptq": (3, 4), "gptq_v2": (3, 4)}
    counts |= dict.fromkeys(_ABSMAX, (2, 5))
    parts = _parts(blocks, format, counts.get(format, (3,)))
    if format in _CODES:
        return _dequantize_codes(parts, format, block, shape, dtype)
    if format == "fp8_block":
        values, scales = parts
        if scales.dtype.name in ("bfloat16", "float16"):
            scales = scales.astype("float32")
        made = _core._dequantize_tiles(values, scales, _tile(block), dtype)
    else:
        _no_block(block, format)
        codes, zero_points, scales = parts[:3]
        if format == "awq":
            made = _core._dequantize_awq(codes, zero_points, scales, dtype)
        else:
            groups, offset = (parts[3] if len(parts) == 4 else None), int(format == "gptq")
            made = _core._dequantize_gptq(codes, zero_points, scales, groups, offset, dtype)
    return _reshaped(made, shape)


def _check_name(format: Any) -> None:
    if not isinstance(format, str) or format not in _PARTS:
        raise InvalidArgument(f"format is one of {', '.join(_PARTS)}, not {format!r}")


def _no_block(block: Any, format: str) -> None:
    if block is not None:
        raise InvalidArgument(f"the blocks of {format} have one size: block is not given")


def _whole_numbers(value: Any) -> tuple[int, ...]:
    numbers = value if isinstance(value, (tuple, list)) else (value,)
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
            raise ArgumentError(f"a shape is ints, got {value!r}")
        if not 0 <= number < 2**63:
            raise InvalidArgument(f"a shape has extents from 0 on, not {value!r}")
    return tuple(int(number) for number in numbers)


def _tile(block: Any) -> tuple[int, int]:
    if block is None:
        return 128, 128
    tile = _whole_numbers(block)
    if len(tile) != 2:
        raise InvalidArgument(f"block of fp8_block is (rows, columns), not {block!r}")
    return tile[0], tile[1]


def _block_size(block: Any, format: str) -> int:
    usual = _CODES[format][1]
    if block is None:
        return usual
    sizes = _whole_numbers(block)
    if len(sizes) != 1 or (format not in _ABSMAX and sizes[0] != usual):
        raise InvalidArgument(f"a block of {format} has {usual} numbers, not {block!r}")
    return sizes[0]


def _parts(blocks: Any, format: str, counts: tuple[int, ...]) -> list[Array]:
    if not isinstance(blocks, (tuple, list)) or len(blocks) not in counts:
        raise ArgumentError(f"blocks of {format} are {_PARTS[format]}")
    return [device_array(part, "blocks") for part in blocks]


def _reshaped(array: Array, shape: tuple[int, ...] | None) -> Array:
    return array if shape is None else array.reshape(shape)


def _rows(x: Array, format: str, size: int) -> tuple[int, ...]:
    """The shape without the last axis; that holds whole blocks."""
    if x.ndim == 0 or x.shape[-1] % size != 0:
        raise InvalidArgument(
            f"Incompatible dimensions: the last axis holds whole blocks of {size} numbers of "
            f"{format}, not the shape {x.shape}"
        )
    return x.shape[:-1]


def _quantize_codes(x: Array, format: str, block: Any, double: bool) -> tuple[Array, ...]:
    kind, size = _CODES[format][0], _block_size(block, format)
    if format in _ABSMAX:
        counts = (x.size + 1) // 2, -(-x.size // max(size, 1))
        codes, absmax = _core._quantize_codes(x, None, kind, size, counts[:1], counts[1:])
        return (codes, *_nested(absmax)) if double else (codes, absmax)
    rows = _rows(x, format, size)
    n = x.shape[-1]
    shapes = (*rows, n // 2), (*rows, n // size)
    if format == "mxfp4":
        return _core._quantize_codes(x, None, kind, size, *shapes)
    most = largest(magnitudes(x)) if x.size else zeros((), device=x.device)
    factor = most.astype("float32") / _LARGEST_NVFP4
    return (*_core._quantize_codes(x, factor, kind, size, *shapes), factor)


def _dequantize_codes(
    parts: list[Array], format: str, block: Any, shape: tuple[int, ...] | None, dtype: Any
) -> Array:
    kind, size = _CODES[format][0], _block_size(block, format)
    codes, *scales = parts
    if format == "nvfp4" and scales[0].dtype.name == "uint8":
        scales[0] = scales[0].view("float8_e4m3fn")
    if shape is None:
        shape = (2 * codes.size,)
        if format not in _ABSMAX and codes.ndim > 0:
            shape = (*codes.shape[:-1], 2 * codes.shape[-1])
    if format not in _ABSMAX and math.prod(shape) % size != 0:
        raise InvalidArgument(
            f"Incompatible dimensions: {format} has blocks of {size} numbers, not the shape {shape}"
        )
    return _core._dequantize_codes(codes, tuple(scales), kind, size, shape, dtype)


# ---- the second quantisation of nf4 and fp4: absmax less its mean in blocks of 256, by a table


def _nested(absmax: Array) -> tuple[Array, Array, Array, Array]:
    count = absmax.size
    table, between = _dynamic_table(absmax.device)
    if count == 0:
        zero = zeros((), device=absmax.device)
        return absmax.astype("uint8"), table, absmax, zero
    offset = mean(absmax)
    rows = pad(absmax - offset, (0, -count % 256)).reshape((-1, 256))
    scales = largest(magnitudes(rows), axis=1)
    divisors = where(scales == 0, 1.0, scales)
    places = searchsorted(between, (rows / divisors.reshape((-1, 1))).reshape((-1,)))
    return places.astype("uint8")[:count], table, scales, offset


@functools.lru_cache(maxsize=16)
def _dynamic_table(device: Any) -> tuple[Array, Array]:
    """256 numbers from -1 to 1, of seven decades, and what lies in the middle between them.

    "8-bit Optimizers via Block-wise Quantization", T. Dettmers et al., 2021.
    """
    numbers = [0.0, 1.0]
    for decade in range(7):
        bounds = np.linspace(0.1, 1, 2**decade + 1, dtype=np.float32)
        means = (bounds[:-1] + bounds[1:]) / np.float32(2)
        for value in means.tolist():
            numbers += [10.0 ** (decade - 6) * value, -(10.0 ** (decade - 6)) * value]
    table = np.sort(np.array(numbers, np.float32))
    between = (table[:-1] + table[1:]) / np.float32(2)
    return asarray(table, device=device), asarray(between, device=device)
