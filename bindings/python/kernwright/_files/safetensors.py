"""Files of the safetensors format: arrays by name, behind a header of JSON.

>>> import kernwright as kw, tempfile, os
>>> path = os.path.join(tempfile.mkdtemp(), "w.safetensors")
>>> kw.save_safetensors(path, {"w": kw.ones((2, 3), "bfloat16")}, metadata={"by": "me"})
>>> with kw.SafeTensors(path) as file:
...     file.shape("w"), file["w"].dtype.name, file.metadata
((2, 3), 'bfloat16', {'by': 'me'})
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kernwright import _core
from kernwright._array.operands import device_array
from kernwright._core import Array
from kernwright._files.header import parse_json, parse_safetensors
from kernwright._files.opening import NamedArrays, OpenFile, Part, Path, path_of, read_parts
from kernwright._files.writing import replacing
from kernwright.errors import ArgumentError, InvalidArgument

__all__ = ["SafeTensors", "load_safetensors", "save_safetensors"]

# Names of the format and of dtypes here.
_DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16",
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
    "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "C64": "complex64",
}  # fmt: skip
_CODES = {name: code for code, name in _DTYPES.items()}


class SafeTensors(NamedArrays):
    """The arrays of a safetensors file as a mapping by name; each is read when asked for.

    The header is read and checked at once: sizes, shapes and places that do not fit each other or
    the file raise StoreError. Several threads read arrays through up to 64 MB of page-locked
    memory, so that the host never holds one. `device` as for kw.empty(). Use it in a
    with-statement, or close() it.

    >>> kw.save_safetensors("model.safetensors", {"w": kw.ones((2, 3))})
    >>> with kw.SafeTensors("model.safetensors") as file:
    ...     print(list(file), file.shape("w"), file.dtype("w"), float(file["w"].sum()))
    ['w'] (2, 3) float32 6.0
    """

    metadata: dict[str, str]
    """What the writer noted."""

    def __init__(self, path: Path, *, device: Any = None) -> None:
        super().__init__(path, device)
        try:
            self.metadata, self._tensors, self._begin = parse_safetensors(self._opened)
        except BaseException:
            self.close()
            raise

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array, without reading it."""
        return self._tensors[self._known(name)].shape

    def dtype(self, name: str) -> str:
        """The dtype of an array: ours, or the format's own name where there is none."""
        code = self._tensors[self._known(name)].dtype
        return _DTYPES.get(code, code)

    def nbytes(self, name: str) -> int:
        """The bytes of an array in the file."""
        tensor = self._tensors[self._known(name)]
        return tensor.end - tensor.begin

    def bytes(self, name: str) -> Array:
        """The bytes of an array as uint8: for dtypes that there are none of here (F4, F8_E8M0)."""
        tensor = self._tensors[self._known(name)]
        made = _core.empty((tensor.end - tensor.begin,), "uint8", device=self._device)
        read_parts([Part(self._opened, self._begin + tensor.begin, made)])
        return made

    def _names(self) -> Mapping[str, Any]:
        return self._tensors

    def _place(self, name: str) -> tuple[tuple[int, ...], Any, int]:
        tensor = self._tensors[name]
        if tensor.dtype not in _DTYPES:
            raise InvalidArgument(
                f"{name} of {self._opened.name} is of {tensor.dtype}, which no array here has: "
                "bytes() gives its bytes"
            )
        return tensor.shape, _DTYPES[tensor.dtype], self._begin + tensor.begin


def load_safetensors(
    path: Path, names: Iterable[str] | None = None, *, device: Any = None
) -> dict[str, Array]:
    """The arrays of a safetensors file, or those of `names`, on a device.

    `path` may be the index of a file in several parts ("model.safetensors.index.json"), which lie
    beside it. The host holds 64 MB of a file at most: see SafeTensors, which also reads single
    arrays. Raises StoreError for files that cannot be read or are damaged, NameNotFound.

    >>> kw.save_safetensors("model.safetensors", {"bias": kw.ones(2)})
    >>> kw.load_safetensors("model.safetensors")["bias"].numpy()
    array([1., 1.], dtype=float32)
    """
    name = path_of(path)
    if not name.endswith(".index.json"):
        file = SafeTensors(path, device=device)
        try:
            return file.load(names)
        finally:
            file.close()
    if isinstance(names, str):
        raise ArgumentError(f"names are a list of str, got the str {names!r}")
    parts = index_parts(name)
    wanted = list(parts) if names is None else list(names)
    missing = next((each for each in wanted if each not in parts), None)
    if missing is not None:
        raise InvalidArgument(f"{name} has no array {missing!r}")
    with contextlib.ExitStack() as stack:
        files = {
            part: stack.enter_context(
                SafeTensors(os.path.join(os.path.dirname(name), part), device=device)
            )
            for part in dict.fromkeys(parts[each] for each in wanted)
        }
        made = [files[parts[each]]._new_part(each) for each in wanted]
        read_parts(made)
    return {each: part.array for each, part in zip(wanted, made, strict=True)}


def index_parts(name: str) -> dict[str, str]:
    """Which file beside the index has each array."""
    opened = OpenFile(name)
    try:
        if opened.size > 100_000_000:
            raise opened.wrong(f"has {opened.size} bytes, and an index at most 100000000")
        given = parse_json(opened, opened.bytes(0, opened.size))
    finally:
        opened.close()
    parts = given.get("weight_map") if isinstance(given, dict) else None
    if not isinstance(parts, dict):
        raise opened.wrong("has no weight_map")
    for part in parts.values():
        if not isinstance(part, str) or part in ("", ".", "..") or os.path.basename(part) != part:
            raise opened.wrong(f"names {part!r:.80}, which is no file beside it")
    return parts


class Entry(NamedTuple):
    """An array with its name, and the format's name of its dtype."""

    name: str
    array: Array
    code: str


def save_safetensors(
    path: Path, arrays: Mapping[str, Array], *, metadata: Mapping[str, str] | None = None
) -> None:
    """Writes arrays by name as a safetensors file, which replaces `path` only when it is whole.

    Any strides; views of other libraries' device arrays too. complex128 has no name in the format:
    InvalidArgument. The host holds 24 MB at most. Raises StoreError.

    >>> kw.save_safetensors("model.safetensors", {"bias": kw.ones(2)})
    >>> list(kw.SafeTensors("model.safetensors"))
    ['bias']
    """
    path_of(path)
    entries = ordered_entries(arrays)
    head = head_of(entries, metadata)
    with replacing(path) as (file, target):
        file.write(head)
        for entry in entries:
            whole = entry.array.copy() if not entry.array.is_contiguous else entry.array
            _core._write_file(file.fileno(), target, whole)


def ordered_entries(arrays: Mapping[str, Array]) -> list[Entry]:
    """The arrays in the order of their bytes. Raises for what the format cannot hold."""
    if not isinstance(arrays, Mapping):
        raise ArgumentError(f"arrays are a mapping from name to array, got {arrays!r:.80}")
    return sorted((_entry(*item) for item in arrays.items()), key=_order)


def head_of(entries: Iterable[Entry], metadata: Mapping[str, str] | None) -> bytes:
    """What stands in front of the bytes of the arrays."""
    import json

    header: dict[str, Any] = {}
    if metadata is not None:
        header["__metadata__"] = _texts(metadata)
    end = 0
    for name, array, code in entries:
        begin, end = end, end + array.nbytes
        header[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _entry(name: Any, value: Any) -> Entry:
    if not isinstance(name, str) or name == "__metadata__":
        raise ArgumentError(f"{name!r:.80} is no name of an array in a safetensors file")
    array = device_array(value, f"array {name}")
    code = _CODES.get(array.dtype.name)
    if code is None:
        raise InvalidArgument(f"array {name} is of {array.dtype.name}, which the format lacks")
    return Entry(name, array, code)


def _order(entry: Entry) -> tuple[int, str]:
    """Wide elements first, so that all are aligned; as the format's own library has it."""
    return -entry.array.dtype.itemsize, entry.name


def _texts(metadata: Mapping[str, str]) -> dict[str, str]:
    if not isinstance(metadata, Mapping) or not all(
        isinstance(text, str) for item in metadata.items() for text in item
    ):
        raise ArgumentError("metadata are a mapping from str to str")
    return dict(metadata)
