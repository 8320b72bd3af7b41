"""Files of the GGUF format (version 3), written.

>>> import kernwright as kw
>>> kw.save_gguf("m.gguf", {"w": kw.ones((2, 3))}, {"general.architecture": "llama"})
>>> with kw.Gguf("m.gguf") as file:
...     file.metadata, file["w"].shape
({'general.architecture': 'llama'}, (2, 3))
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from kernwright import _core
from kernwright._array.operands import device_array
from kernwright._core import Array
from kernwright._files.gguf import _TYPES
from kernwright._files.opening import Path, path_of
from kernwright._files.writing import replacing
from kernwright.errors import ArgumentError, InvalidArgument

__all__ = ["save_gguf"]

_ALIGNMENT = 32
_KINDS = {name: (kind, numbers, size) for kind, (name, numbers, size) in _TYPES.items()}
# Kinds of metadata: int32, float32, bool, text, list, int64.
_INT, _FLOAT, _BOOL, _TEXT, _LIST, _LONG = 5, 6, 7, 8, 9, 11


class _Entry(NamedTuple):
    name: str
    array: Array
    kind: int
    shape: tuple[int, ...]  # of numbers


def save_gguf(
    path: Path, arrays: Mapping[str, Any], metadata: Mapping[str, Any] | None = None
) -> None:
    """Writes arrays by name as a GGUF file, which replaces `path` only when it is whole.

    An array of numbers keeps its dtype; a pair (blocks, format) is what kw.nn.quant.quantize()
    makes for "q4_0" to "iq4_xs" and "mxfp4", uint8 whose last axis has the blocks of a row. Up to
    four axes. `metadata` are texts, ints, floats, bools, and lists of one of them. Raises
    ArgumentError and InvalidArgument for what the format cannot hold, StoreError.

    >>> blocks = kw.nn.quant.quantize(kw.ones((4, 256)), "q4_k")
    >>> kw.save_gguf("m.gguf", {"w": (blocks, "q4_k")}, {"llama.block_count": 1})
    >>> with kw.Gguf("m.gguf") as file:
    ...     file.format("w"), file.shape("w")
    ('q4_k', (4, 256))
    """
    path_of(path)
    if not isinstance(arrays, Mapping):
        raise ArgumentError(f"arrays are a mapping from name to array, got {arrays!r:.80}")
    entries = [_entry(name, value) for name, value in arrays.items()]
    head = _head(entries, {} if metadata is None else metadata)
    with replacing(path) as (file, target):
        file.write(head)
        for entry in entries:
            whole = entry.array if entry.array.is_contiguous else entry.array.copy()
            _core._write_file(file.fileno(), target, whole)
            file.write(bytes(-entry.array.nbytes % _ALIGNMENT))


def _entry(name: Any, value: Any) -> _Entry:
    if not isinstance(name, str):
        raise ArgumentError(f"{name!r:.80} is no name of an array in a GGUF file")
    blocks, format = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
    array = device_array(blocks, f"array {name}")
    if format is None:
        format = array.dtype.name
        if format not in _KINDS:
            raise InvalidArgument(f"array {name} is of {format}, which the format lacks")
    if format not in _KINDS:
        raise InvalidArgument(f"array {name}: {format!r:.40} is no format of GGUF")
    kind, numbers, size = _KINDS[format]
    shape = tuple(array.shape)
    if numbers > 1:
        if array.dtype.name != "uint8" or not shape or shape[-1] % size != 0:
            raise InvalidArgument(
                f"array {name}: rows of {format} are uint8 blocks of {size} bytes, got "
                f"{array.dtype.name} of shape {shape}"
            )
        shape = (*shape[:-1], shape[-1] // size * numbers)
    if not 1 <= len(shape) <= 4:
        raise InvalidArgument(f"array {name} has {len(shape)} axes; GGUF holds 1 to 4")
    return _Entry(name, array, kind, shape)


def _head(entries: list[_Entry], metadata: Mapping[str, Any]) -> bytes:
    made = b"GGUF" + struct.pack("<IQQ", 3, len(entries), len(metadata))
    for key, value in metadata.items():
        kind, data = _value(key, value)
        made += _text(key) + struct.pack("<I", kind) + data
    begin = 0
    for entry in entries:
        extents = entry.shape[::-1]
        made += _text(entry.name) + struct.pack(f"<I{len(extents)}Q", len(extents), *extents)
        made += struct.pack("<IQ", entry.kind, begin)
        begin += entry.array.nbytes + -entry.array.nbytes % _ALIGNMENT
    return made + bytes(-len(made) % _ALIGNMENT)


def _text(value: Any) -> bytes:
    if not isinstance(value, str):
        raise ArgumentError(f"metadata have names of texts, got {value!r:.60}")
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def _value(key: str, value: Any) -> tuple[int, bytes]:
    """The kind of a value in GGUF's numbering, and its bytes."""
    if isinstance(value, (bool, np.bool_)):
        return _BOOL, struct.pack("<?", bool(value))
    if isinstance(value, (int, np.integer)):
        short = -(2**31) <= value < 2**31
        return (_INT, struct.pack("<i", value)) if short else (_LONG, struct.pack("<q", value))
    if isinstance(value, (float, np.floating)):
        return _FLOAT, struct.pack("<f", value)
    if isinstance(value, str):
        return _TEXT, _text(value)
    if isinstance(value, (list, tuple, np.ndarray)):
        parts = [_value(key, each) for each in value]
        kinds = {kind for kind, _ in parts}
        if kinds <= {_INT, _LONG} and len(kinds) == 2:
            parts, kinds = [(_LONG, struct.pack("<q", each)) for each in value], {_LONG}
        if len(kinds) <= 1 and _LIST not in kinds:
            head = struct.pack("<IQ", kinds.pop() if kinds else _TEXT, len(parts))
            return _LIST, head + b"".join(data for _, data in parts)
    raise ArgumentError(
        f"metadata {key!r:.60}: texts, ints, floats, bools and lists of one kind can be written, "
        f"got {value!r:.60}"
    )
