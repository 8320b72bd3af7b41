"""NumPy's files of one array, read to a device and written from there.

>>> import kernwright as kw, tempfile, os
>>> path = os.path.join(tempfile.mkdtemp(), "x.npy")
>>> kw.save_npy(path, kw.arange(3))
>>> kw.load_npy(path).numpy().tolist()
[0, 1, 2]
"""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np

from kernwright import _core
from kernwright._array.operands import device_array
from kernwright._core import Array
from kernwright._files.opening import OpenFile, Part, Path, read_parts
from kernwright._files.writing import replacing
from kernwright.errors import InvalidArgument

__all__ = ["load_npy", "save_npy"]

_LONGEST = 10_000


def load_npy(path: Path, *, device: Any = None) -> Array:
    """The array of a .npy file on a device, through up to 64 MB of page-locked memory.

    Numbers and bools, in either order of bytes (the device swaps them); arrays in Fortran's order
    come as transposed views. Raises StoreError for files that cannot be read or are damaged,
    InvalidArgument for unknown dtypes.

    >>> np.save("x.npy", np.arange(3))
    >>> kw.load_npy("x.npy").numpy()
    array([0, 1, 2])
    """
    opened = OpenFile(path)
    try:
        shape, fortran, dtype, begin = _header(opened)
        count = math.prod(shape)
        if opened.size - begin != count * dtype.itemsize:
            raise opened.wrong(
                f"is damaged, or cut off: {dtype} of shape {shape} is {count * dtype.itemsize} "
                f"bytes, and there are {opened.size - begin}"
            )
        native = dtype.newbyteorder("=")
        made = _core.empty(shape[::-1] if fortran else shape, native, device=device)
        read_parts([Part(opened, begin, made)])
        if not dtype.isnative:
            made = _swapped(made)
        return made.T if fortran else made
    finally:
        opened.close()


def save_npy(path: Path, x: Any) -> None:
    """Writes an array as a .npy file, which replaces `path` only when it is whole.

    `x` is an array of a device, of any strides. Version 1.0 of the format in C order, as np.save()
    writes it. The host holds 24 MB at most. NumPy has no bfloat16 and no float8: InvalidArgument.
    Raises StoreError where the file cannot be written.

    >>> kw.save_npy("x.npy", kw.arange(3))
    >>> np.load("x.npy")
    array([0, 1, 2])
    """
    array = numpy_array(x, "x")
    with replacing(path) as (file, target):
        file.write(header_of(array))
        _core._write_file(file.fileno(), target, array if array.is_contiguous else array.copy())


def numpy_array(value: Any, name: str) -> Array:
    """`value` as an Array of a dtype that NumPy's files have."""
    array = device_array(value, name)
    if array.dtype.kind not in "biufc":
        raise InvalidArgument(
            f"{name} is of {array.dtype.name}, which NumPy's files lack: save_safetensors() keeps "
            "it, astype() converts it"
        )
    return array


def is_numbers(dtype: np.dtype[Any]) -> bool:
    """Whether arrays here have this dtype of NumPy, in some order of bytes."""
    return dtype.kind in "biufc" and dtype.itemsize <= (16 if dtype.kind == "c" else 8)


def header_of(array: Array) -> bytes:
    """The head of a .npy file of version 1.0 for this array in C order."""
    written = io.BytesIO()
    fields = {
        "descr": np.lib.format.dtype_to_descr(array.dtype),
        "fortran_order": False,
        "shape": tuple(array.shape),
    }
    np.lib.format.write_array_header_1_0(written, fields)
    return written.getvalue()


def _swapped(array: Array) -> Array:
    """Each element with its bytes the other way round."""
    width = array.dtype.itemsize // (2 if array.dtype.kind == "c" else 1)
    if array.size == 0 or width == 1:
        return array
    lines = array.reshape(-1).view("uint8").reshape(-1, width)
    return lines[:, ::-1].copy().reshape(-1).view(array.dtype).reshape(array.shape)


def _header(opened: OpenFile) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    head = opened.bytes(0, min(12, opened.size))
    if head[:6] != b"\x93NUMPY" or len(head) < 10:
        raise opened.wrong("is no .npy file")
    wide = head[6] > 1
    begin = 12 if wide else 10
    length = int.from_bytes(head[8:begin], "little")
    if head[6] not in (1, 2, 3) or length > min(_LONGEST, opened.size - begin):
        raise opened.wrong(f"is damaged: version {head[6]}, a header of {length} bytes")
    shape, fortran, descr = _fields(opened, opened.bytes(begin, length), head[6])
    try:
        dtype = np.dtype(descr)
    except (TypeError, ValueError, SyntaxError):
        raise opened.wrong(f"is damaged: its dtype is {descr!r:.80}") from None
    if not is_numbers(dtype):
        raise InvalidArgument(f"{opened.name} is of {dtype}, which no array here has")
    return shape, fortran, dtype, begin + length


def _fields(opened: OpenFile, text: bytes, version: int) -> tuple[tuple[int, ...], bool, Any]:
    import ast

    try:
        given = ast.literal_eval(text.decode("utf-8" if version == 3 else "latin-1").strip())
        shape, fortran, descr = given["shape"], given["fortran_order"], given["descr"]
    except (ValueError, SyntaxError, TypeError, KeyError, RecursionError, MemoryError):
        raise opened.wrong("is damaged: its header is no description of an array") from None
    whole = isinstance(shape, tuple) and all(type(n) is int and 0 <= n < 1 << 63 for n in shape)
    if not whole or not isinstance(fortran, bool) or len(given) != 3:
        raise opened.wrong(f"is damaged: its header is {given!r:.120}")
    return shape, fortran, descr
