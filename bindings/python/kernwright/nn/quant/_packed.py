"""Weights in the layout of their product.

>>> import numpy as np, kernwright as kw
>>> weight = kw.asarray(np.eye(16, 32, dtype=np.float32))
>>> packed = kw.nn.quant.pack(kw.nn.quant.quantize(weight, "q8_0"), "q8_0")
>>> kw.nn.linear(kw.ones((1, 32), dtype="float16"), packed).numpy()[0, :3].tolist()
[1.0, 1.0, 1.0]
"""

from __future__ import annotations

from typing import Any

from kernwright import _core
from kernwright._array.operands import device_array
from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.nn._packed_weight import PackedWeight
from kernwright.nn.quant import _formats

__all__ = ["PackedWeight", "pack", "unpack"]

_WORDS = {"gptq": 0, "gptq_v2": 0, "awq": 1}  # as the extension numbers sources


def pack(
    blocks: Any,
    format: str,
    *,
    shape: tuple[int, int] | None = None,
    block: int | tuple[int, int] | None = None,
) -> PackedWeight:
    """Weights of shape (n, k) in the layout that linear() reads, made once on the device.

    `blocks` is what dequantize() takes, of a matrix: formats() lists the formats.

    - formats of GGUF, as "q4_0" or "q4_k": blocks of shape (n, bytes of a row).
    - "gptq", "gptq_v2", "awq": (qweight, qzeros, scales), which hold the transposed weights, with
      groups of 32, 64 or 128 along k in their order; without zeros, (qweight, None, scales), a
      number is scale * (code - 8). The result's format is "int4". Of GPTQ a fourth may be g_idx,
      the group of each of k, as act-order makes it: columns are packed group by group, and
      linear() gathers x's. Leave it out where groups are in their order. Each group has as many
      columns as the others: what has not, or is no group, is NaN.
    - "nf4", "fp4": (codes, absmax) or the five arrays of ``double=True``, with blocks of `block`
      (64; or 32, 128) numbers. `shape` is needed.
    - "mxfp4", "nvfp4": codes of shape (n, k / 2).
    - "fp8_block": float8_e4m3fn; `block` ((128, 128)) has a multiple of 128 columns.

    `shape` is (n, k), and found by itself where blocks have it. Rows of 16 and columns of 128 are
    filled up with zeros. The arrays are new: `blocks` may go. Raises InvalidArgument with the
    shapes and dtypes that do not fit.

    >>> blocks = kw.nn.quant.quantize(kw.ones((48, 256)), "nf4")
    >>> kw.nn.quant.pack(blocks, "nf4", shape=(48, 256)).nbytes
    6912
    """
    _formats._check_name(format)
    wanted = None if shape is None else _formats._whole_numbers(shape)
    if wanted is not None and len(wanted) != 2:
        raise InvalidArgument(f"packed weights have the shape (n, k), not {shape!r}")
    if format in _WORDS:
        return _pack_words(blocks, format, wanted, block)
    parts = _blocks_of(blocks, format)
    group, tile = 0, (128, 128)
    if format == "fp8_block":
        tile = _formats._tile(block)
        if parts[1].dtype.name in ("bfloat16", "float16"):
            parts[1] = parts[1].astype("float32")
    elif format in _formats._ABSMAX:
        group = _formats._block_size(block, format)
    elif format in _formats._CODES:
        _formats._block_size(block, format)
    else:
        _formats._no_block(block, format)
    if format == "nvfp4" and parts[1].dtype.name == "uint8":
        parts[1] = parts[1].view("float8_e4m3fn")
    n, k = _shape_of(parts[0], format) if wanted is None else wanted
    return _made(format, 2, parts, (n, k), group, tile, 0)


def unpack(packed: PackedWeight, *, dtype: Any = "float32") -> Array:
    """The numbers of packed weights, (n, k), as float16, bfloat16 or float32.

    They have the bits that dequantize() gives; of GPTQ and AWQ transposed, as linear() takes
    weights. Raises InvalidArgument for arrays that do not fit the format.

    >>> packed = kw.nn.quant.pack(kw.zeros((3, 34), dtype="uint8"), "q8_0")
    >>> kw.nn.quant.unpack(packed, dtype="bfloat16").shape
    (3, 32)
    """
    if not isinstance(packed, PackedWeight):
        raise ArgumentError(f"unpack() takes a PackedWeight, got a {type(packed).__name__}")
    return _core._unpack_weights(packed._spec, packed._arrays, dtype)


def _blocks_of(blocks: Any, format: str) -> list[Array]:
    if format in _formats._GGUF:
        if isinstance(blocks, (tuple, list)):
            raise ArgumentError(f"blocks of {format} are one array, got a {type(blocks).__name__}")
        return [device_array(blocks, "blocks")]
    counts = {"nvfp4": (3,), **dict.fromkeys(_formats._ABSMAX, (2, 5))}
    return _formats._parts(blocks, format, counts.get(format, (2,)))


def _shape_of(array: Array, format: str) -> tuple[int, int]:
    if format in _formats._ABSMAX:
        raise InvalidArgument(f"codes of {format} have no rows: pack() takes shape=(n, k)")
    if array.ndim != 2:
        raise InvalidArgument(
            f"packed weights are a matrix: blocks of {format} have two axes, not the shape "
            f"{array.shape}, or pack() takes shape=(n, k)"
        )
    rows, columns = array.shape
    if format in ("mxfp4", "nvfp4"):
        return rows, 2 * columns
    if format == "fp8_block":
        return rows, columns
    numbers, size = _formats._GGUF[format]
    if columns % size != 0:
        raise InvalidArgument(
            f"Incompatible dimensions: the last axis of {format} holds whole blocks of {size} "
            f"bytes, not the shape {array.shape}"
        )
    return rows, columns // size * numbers


def _pack_words(
    blocks: Any, format: str, wanted: tuple[int, ...] | None, block: Any
) -> PackedWeight:
    _formats._no_block(block, format)
    counts = (3,) if format == "awq" else (3, 4)
    if not isinstance(blocks, (tuple, list)) or len(blocks) not in counts:
        raise ArgumentError(f"blocks of {format} are {_formats._PARTS[format]} for pack()")
    listed = device_array(blocks[3], "blocks") if len(blocks) == 4 else None
    codes, scales = device_array(blocks[0], "blocks"), device_array(blocks[2], "blocks")
    parts = [codes, scales]
    if blocks[1] is not None:
        parts.append(device_array(blocks[1], "blocks"))
    if any(part.ndim != 2 for part in parts):
        raise InvalidArgument(
            f"codes, zeros and scales of {format} have two axes, not the shapes "
            f"{', '.join(str(part.shape) for part in parts)}"
        )
    rows, columns = codes.shape
    n, k = (8 * columns, rows) if format == "awq" else (columns, 8 * rows)
    if wanted is not None and wanted != (n, k):
        raise InvalidArgument(f"Incompatible dimensions: {(n, k)} of qweight, not {wanted}")
    groups = scales.shape[0]
    if groups == 0 or k % groups != 0:
        raise InvalidArgument(
            f"Incompatible dimensions: {k} rows are no equal parts of {groups} groups"
        )
    made_shapes = [(groups, n), (groups, n // 8)]
    for part, made in zip(parts[1:], made_shapes, strict=False):
        if part.shape != made:
            raise InvalidArgument(
                f"Incompatible dimensions: {format} of {groups} groups and {n} columns has scales "
                f"of {made_shapes[0]} and zeros of {made_shapes[1]}, not {part.shape}"
            )
    offset = int(format == "gptq")
    group = k // groups
    return _made("int4", _WORDS[format], parts, (n, k), group, (128, 128), offset, listed)


def _made(
    format: str,
    source: int,
    parts: list[Array],
    shape: tuple[int, int],
    group: int,
    tile: tuple[int, int],
    zero_offset: int,
    listed: Array | None = None,
) -> PackedWeight:
    for number in (*shape, group, *tile):
        if number >= 2**31:
            raise InvalidArgument(f"packed weights have less than 2**31 rows, not {number}")
    spec = (format, *shape, group, *tile)
    arrays = _core._pack_weights(spec, source, tuple(parts), zero_offset, listed)
    return PackedWeight(format, shape, arrays, group=group, tile=tile)
