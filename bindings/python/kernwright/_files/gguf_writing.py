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
_BOOL, _TEXT, _LIST = 7, 8, 9
# GGUF's numbers of the kinds of metadata; each dtype of numbers is a kind.
_NUMBERS = {
    "uint8": 0, "int8": 1, "uint16": 2, "int16": 3, "uint32": 4, "int32": 5, "float32": 6,
    "uint64": 10, "int64": 11, "float64": 12,
}  # fmt: skip


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
    makes for formats of blocks ("q4_k") and "mxfp4", uint8 whose last axis has the blocks of a row.
    Up to four axes. `metadata` are texts, ints, floats, bools, and lists of one of them: NumPy's
    numbers keep their dtype, Python's ints become uint32 where they fit, floats float32. Raises
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
    if isinstance(value, (list, tuple, np.ndarray)):
        return _LIST, _list(key, list(value) if not isinstance(value, np.ndarray) else value)
    if isinstance(value, (bool, np.bool_)):
        return _BOOL, struct.pack("<?", bool(value))
    if isinstance(value, str):
        return _TEXT, _text(value)
    if isinstance(value, (int, float, np.integer, np.floating)):
        return _numbers(key, [value])
    raise _wrong(key, value)


def _list(key: str, values: Any) -> bytes:
    """The kind of a list's values, their count, and all of them."""
    if len(values) == 0 or isinstance(values[0], str):
        kind, data = _TEXT, b"".join(map(_text, values))
    elif all(isinstance(each, (bool, np.bool_)) for each in values):
        kind, data = _BOOL, bytes(map(bool, values))
    else:
        kind, data = _numbers(key, values)
    return struct.pack("<IQ", kind, len(values)) + data


def _numbers(key: str, values: Any) -> tuple[int, bytes]:
    """The kind of numbers of one kind, and their bytes."""
    kinds = {type(each) for each in values}
    (kind,) = kinds if len(kinds) == 1 else (None,)
    if kind is int:
        fitting = [
            name
            for name in ("uint32", "int32", "uint64", "int64")
            if np.iinfo(name).min <= min(values) and max(values) <= np.iinfo(name).max
        ]
        if not fitting:
            raise ArgumentError(f"metadata {key!r:.60}: {values!r:.60} is out of 64 bits")
        array = np.array(values, fitting[0])
    elif kind is float:
        array = np.array(values, "float32")
    else:
        array = np.asarray(values)
        if kind is None or array.ndim != 1 or array.dtype.name not in _NUMBERS:
            raise _wrong(key, values)
    return _NUMBERS[array.dtype.name], array.astype(array.dtype.newbyteorder("<")).tobytes()


def _wrong(key: str, value: Any) -> ArgumentError:
    return ArgumentError(
        f"metadata {key!r:.60}: texts, ints, floats, bools and lists of one kind can be written, "
        f"got {value!r:.60}"
    )
