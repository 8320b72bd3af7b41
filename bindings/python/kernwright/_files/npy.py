"""NumPy's files of one array, read to a device.

>>> import kernwright as kw, numpy as np, tempfile, os
>>> path = os.path.join(tempfile.mkdtemp(), "x.npy")
>>> np.save(path, np.arange(3))
>>> kw.load_npy(path).numpy().tolist()
[0, 1, 2]
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kernwright import _core
from kernwright._core import Array
from kernwright._files.opening import OpenFile, Path
from kernwright.errors import InvalidArgument

__all__ = ["load_npy"]

_LONGEST = 10_000


def load_npy(path: Path, *, device: Any = None) -> Array:
    """The array of a .npy file on a device, through 24 MB of page-locked memory.

    Numbers and bools in the order of bytes of this machine; arrays in Fortran's order come as
    transposed views. Raises StoreError for files that cannot be read or are damaged,
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
        made = _core.empty(shape[::-1] if fortran else shape, dtype, device=device)
        opened.read([made], [begin])
        return made.T if fortran else made
    finally:
        opened.close()


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
    if dtype.hasobject or dtype.kind not in "biufc" or not dtype.isnative:
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
