"""Files of the GGUF format: metadata, and arrays of numbers or of blocks.

>>> import kernwright as kw
>>> file = kw.Gguf("model.gguf")  # doctest: +SKIP
>>> file.metadata["general.architecture"]  # doctest: +SKIP
'llama'
"""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from kernwright import _core
from kernwright._core import Array
from kernwright._files.opening import NamedArrays, OpenFile, Part, Path
from kernwright.errors import InvalidArgument

__all__ = ["Gguf", "split_mxfp4"]

# ggml's number of a type: its name, numbers and bytes of a block. The kernels have more.
_TYPES = {
    0: ("float32", 1, 4), 1: ("float16", 1, 2), 9: ("q8_1", 32, 36), 15: ("q8_k", 256, 292),
    16: ("iq2_xxs", 256, 66), 17: ("iq2_xs", 256, 74), 18: ("iq3_xxs", 256, 98),
    19: ("iq1_s", 256, 50), 21: ("iq3_s", 256, 110), 22: ("iq2_s", 256, 82), 24: ("int8", 1, 1),
    25: ("int16", 1, 2), 26: ("int32", 1, 4), 27: ("int64", 1, 8), 28: ("float64", 1, 8),
    29: ("iq1_m", 256, 56), 30: ("bfloat16", 1, 2), 34: ("tq1_0", 256, 54),
    35: ("tq2_0", 256, 66), 39: ("mxfp4", 32, 17),
}  # fmt: skip
_TYPES |= {row[2]: (name, row[0], row[1]) for name, row in _core._gguf_formats().items()}
_NUMBERS = "BbHhIif?  Qqd"  # of metadata, by the number of the type
_TEXT, _LIST = 8, 9
_MOST_AXES = 4
_MOST_ALIGNMENT = 1 << 20


class _Tensor(NamedTuple):
    format: str
    shape: tuple[int, ...]  # of numbers
    made: tuple[int, ...]  # of what is read
    dtype: str
    begin: int
    bytes: int


class Gguf(NamedArrays):
    """The arrays of a GGUF file (version 2 or 3) as a mapping by name; each is read when asked for.

    Numbers come with their dtype. Blocks come as uint8; the last axis has the blocks of a row.
    kw.nn.quant.dequantize() takes them in this form; numbers() calls it. Shapes are those of NumPy:
    ggml's first extent is the last axis. `metadata` has texts, numbers, bools, lists of texts, and
    NumPy arrays of numbers. Counts, texts, shapes and places that do not fit the file raise
    StoreError before anything is made of them. Arrays come to the device through up to
    64 MB of page-locked memory.
    """

    metadata: dict[str, Any]
    """What the writer noted: general.architecture, ..."""

    def __init__(self, path: Path, *, device: Any = None) -> None:
        super().__init__(path, device)
        try:
            self.version, self.metadata, self._tensors = _parse(self._opened)
        except BaseException:
            self.close()
            raise

    def format(self, name: str) -> str:
        """How an array is kept: "q4_k", or the dtype of its numbers: "float32"."""
        return self._tensors[self._known(name)].format

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array's numbers."""
        return self._tensors[self._known(name)].shape

    def nbytes(self, name: str) -> int:
        """The bytes of an array in the file."""
        return self._tensors[self._known(name)].bytes

    def numbers(self, name: str, dtype: Any = "float32") -> Array:
        """The numbers of an array in a dtype, from its blocks if need be.

        Raises InvalidArgument for formats that dequantize() does not read.
        """
        return self._numbers_of(name, self[name], dtype)

    def _numbers_of(self, name: str, read: Array, dtype: Any) -> Array:
        """numbers() of what was read before."""
        import kernwright as kw

        tensor = self._tensors[self._known(name)]
        if tensor.made == tensor.shape:
            return read.astype(dtype)
        if tensor.format == "mxfp4":
            return kw.nn.quant.dequantize(split_mxfp4(read), "mxfp4", dtype=dtype)
        if tensor.format not in kw.nn.quant.formats():
            raise InvalidArgument(
                f"{name} of {self._opened.name} is in {tensor.format}, which "
                "kw.nn.quant.dequantize() does not read"
            )
        return kw.nn.quant.dequantize(read, tensor.format, shape=tensor.shape, dtype=dtype)

    def _joined_parts(self, names: Sequence[str]) -> tuple[Array, list[Part]]:
        """One new array for matrices with rows of equal bytes, one above the other, and its parts
        to be filled."""
        shapes = [self._tensors[self._known(name)].made for name in names]
        whole = _core.empty(
            (sum(rows for rows, _ in shapes), shapes[0][1]), "uint8", device=self._device
        )
        parts, begin = [], 0
        for name, (rows, _) in zip(names, shapes, strict=True):
            parts.append(self._part_of(name, whole[begin : begin + rows]))
            begin += rows
        return whole, parts

    def _names(self) -> Mapping[str, Any]:
        return self._tensors

    def _place(self, name: str) -> tuple[tuple[int, ...], Any, int]:
        tensor = self._tensors[name]
        return tensor.made, tensor.dtype, tensor.begin


def split_mxfp4(blocks: Array) -> tuple[Array, Array]:
    """ggml's blocks of MXFP4 as kw.nn.quant has them, (codes, exponents).

    A block is an exponent and 16 bytes, whose low halves are the first 16 codes.
    """
    import kernwright as kw

    whole = blocks.reshape((*blocks.shape[:-1], blocks.shape[-1] // 17, 17))
    low, high = whole[..., 1:] & 15, whole[..., 1:] >> 4
    codes = kw.concat([low, high], axis=-1)
    pairs = codes[..., 0::2] | (codes[..., 1::2] << 4)
    return pairs.reshape((*blocks.shape[:-1], -1)), whole[..., 0].copy()


class _Fields:
    """Reads fields in turn: none is longer than what is left of the file."""

    def __init__(self, opened: OpenFile) -> None:
        self.opened, self.at = opened, 0
        self._file = io.BufferedReader(opened.file, 1 << 16)

    def detach(self) -> None:
        """Leaves the file open."""
        self._file.detach()

    def bytes(self, count: int) -> bytes:
        if count > self.opened.size - self.at:
            raise self.opened.wrong(
                f"is damaged, or cut off: at byte {self.at} there should be {count} more, and "
                f"there are {self.opened.size - self.at}"
            )
        found = self._file.read(count)
        if len(found) != count:
            raise self.opened.wrong(f"ends at byte {self.at + len(found)}: it was cut off")
        self.at += count
        return found

    def number(self, code: str) -> Any:
        return struct.unpack("<" + code, self.bytes(struct.calcsize(code)))[0]

    def count(self, least: int) -> int:
        """A number of things of at least so many bytes each."""
        found: int = self.number("Q")
        if found * least > self.opened.size - self.at:
            raise self.opened.wrong(f"is damaged: it says {found} at byte {self.at - 8}")
        return found

    def text(self) -> str:
        try:
            return self.bytes(self.count(1)).decode()
        except UnicodeDecodeError:
            raise self.opened.wrong(f"has a text before byte {self.at} that is no UTF-8") from None

    def value(self, kind: int) -> Any:
        if kind == _TEXT:
            return self.text()
        if kind == _LIST:
            return self.list(self.number("I"))
        return self.number(self.code(kind))

    def code(self, kind: int) -> str:
        code = _NUMBERS[kind] if kind < len(_NUMBERS) else " "
        if code == " ":
            raise self.opened.wrong(f"has the unknown type {kind} of metadata at byte {self.at}")
        return code

    def list(self, kind: int) -> Any:
        if kind == _TEXT:
            return [self.text() for _ in range(self.count(8))]
        dtype = np.dtype("<" + self.code(kind)) if kind != 7 else np.dtype(bool)
        return np.frombuffer(self.bytes(self.count(dtype.itemsize) * dtype.itemsize), dtype)


def _parse(opened: OpenFile) -> tuple[int, dict[str, Any], dict[str, _Tensor]]:
    fields = _Fields(opened)
    if opened.size < 24 or fields.bytes(4) != b"GGUF":
        raise opened.wrong("is no GGUF file")
    version: int = fields.number("I")
    if version not in (2, 3):
        swapped = " (of a machine with other bytes first)" if version & 0xFFFF == 0 else ""
        raise opened.wrong(f"is GGUF of version {version}{swapped}; 2 and 3 are read")
    tensor_count, entry_count = fields.count(24), fields.count(13)
    metadata: dict[str, Any] = {}
    for _ in range(entry_count):
        name = fields.text()
        if name in metadata:
            raise opened.wrong(f"has the metadata {name!r:.80} twice")
        metadata[name] = fields.value(fields.number("I"))
    alignment = metadata.get("general.alignment", 32)
    power = isinstance(alignment, int) and 0 < alignment <= _MOST_ALIGNMENT
    if not power or alignment & (alignment - 1):
        raise opened.wrong(f"has an alignment of {alignment!r:.40}, which is no power of two")
    tensors: dict[str, _Tensor] = {}
    for _ in range(tensor_count):
        name = fields.text()
        if name in tensors:
            raise opened.wrong(f"has the array {name!r:.80} twice")
        tensors[name] = _tensor(fields, name, alignment)
    fields.detach()
    begin = -(-fields.at // alignment) * alignment
    return version, metadata, _placed(opened, tensors, begin)


def _tensor(fields: _Fields, name: str, alignment: int) -> _Tensor:
    axes = fields.number("I")
    if axes > _MOST_AXES:
        raise fields.opened.wrong(f"is damaged: {name!r:.80} has {axes} axes")
    shape = tuple(fields.number("Q") for _ in range(axes))[::-1]
    kind, begin = fields.number("I"), fields.number("Q")
    if kind not in _TYPES:
        raise fields.opened.wrong(f"has {name!r:.80} of ggml's type {kind}, which is unknown here")
    format, numbers, size = _TYPES[kind]
    last = shape[-1] if shape else 1
    if last % numbers != 0 or begin % alignment != 0:
        raise fields.opened.wrong(
            f"is damaged: {name!r:.80} of {format} has the shape {shape} and begins at {begin}"
        )
    if numbers == 1:
        return _Tensor(format, shape, shape, format, begin, math.prod(shape) * size)
    made = (*shape[:-1], last // numbers * size)
    return _Tensor(format, shape, made, "uint8", begin, math.prod(made))


def _placed(opened: OpenFile, tensors: dict[str, _Tensor], begin: int) -> dict[str, _Tensor]:
    """With places in the file. They must not overlap, nor lie outside."""
    end = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: item[1].begin):
        if tensor.begin < end or begin + tensor.begin + tensor.bytes > opened.size:
            raise opened.wrong(
                f"is damaged, or cut off: {name!r:.80} has {tensor.bytes} bytes from "
                f"{begin + tensor.begin} on, the one before ends at {begin + end}, and the file at "
                f"{opened.size}"
            )
        end = tensor.begin + tensor.bytes
    return {name: each._replace(begin=begin + each.begin) for name, each in tensors.items()}
