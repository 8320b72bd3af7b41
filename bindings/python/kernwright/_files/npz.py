"""NumPy's archives of several arrays, read to a device and written from there.

>>> import kernwright as kw, tempfile, os
>>> path = os.path.join(tempfile.mkdtemp(), "arrays.npz")
>>> kw.savez(path, w=kw.ones(2), b=kw.zeros((3, 1)))
>>> {name: array.shape for name, array in kw.load_npz(path).items()}
{'w': (2,), 'b': (3, 1)}
"""

from __future__ import annotations

import lzma
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

import kernwright
from kernwright._core import Array
from kernwright._files.npy import header_of, is_numbers, numpy_array
from kernwright._files.opening import OpenFile, Path
from kernwright._files.writing import replacing
from kernwright.errors import ArgumentError, Error, InvalidArgument, NameNotFound

__all__ = ["load_npz", "savez", "savez_compressed"]

_PIECE = 1 << 24

# What zipfile, its decompressors and NumPy's reader raise for files that are damaged or encrypted.
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, tokenize.TokenError, EOFError,
    OSError, RuntimeError, ValueError, TypeError, SyntaxError, OverflowError, MemoryError,
)  # fmt: skip


def load_npz(
    path: Path, names: Iterable[str] | None = None, *, device: Any = None
) -> dict[str, Array]:
    """The arrays of a .npz archive, or those of `names`, on a device, in their order.

    Numbers and bools, in either order of bytes, compressed or not. The host holds one array at a
    time. Nothing is unpickled. Raises StoreError for files that cannot be read or are damaged,
    InvalidArgument for unknown dtypes, NameNotFound.

    >>> np.savez("arrays.npz", w=np.arange(3), b=np.ones(2))
    >>> kw.load_npz("arrays.npz", ["w"])["w"].numpy()
    array([0, 1, 2])
    """
    if isinstance(names, str):
        raise ArgumentError(f"names are a list of str, got the str {names!r}")
    opened = OpenFile(path)
    try:
        try:
            with zipfile.ZipFile(opened.file) as archive:
                members = {name.removesuffix(".npy"): name for name in archive.namelist()}
                wanted = list(members if names is None else names)
                for name in wanted:
                    if name not in members:
                        known = ", ".join(list(members)[:8])
                        raise NameNotFound(f"{opened.name} has no array {name!r:.80}; of {known}")
                return {name: _member(archive, members[name], opened, device) for name in wanted}
        except Error:
            raise
        except _DAMAGE as error:
            raise opened.wrong(f"is no archive of arrays, or damaged: {error}") from None
    finally:
        opened.close()


def _member(archive: zipfile.ZipFile, member: str, opened: OpenFile, device: Any) -> Array:
    with archive.open(member) as file:
        try:
            host = np.lib.format.read_array(file, allow_pickle=False)
        except (ValueError, tokenize.TokenError, MemoryError) as error:
            raise opened.wrong(f"is damaged: {member} is no array of numbers: {error}") from None
    if not is_numbers(host.dtype):
        raise InvalidArgument(f"{member} of {opened.name} is of {host.dtype}: no array here is")
    return kernwright.asarray(host.astype(host.dtype.newbyteorder("="), copy=False), device=device)


def savez(path: Path, *arrays: Any, **named: Any) -> None:
    """Writes arrays of a device as a .npz archive, which replaces `path` only when it is whole.

    Arrays without a name are "arr_0", "arr_1", ... as np.savez() has it; the path is taken as it
    is. Raises as save_npy().

    >>> kw.savez("arrays.npz", kw.ones(2), b=kw.zeros(3))
    >>> sorted(np.load("arrays.npz"))
    ['arr_0', 'b']
    """
    _save(path, arrays, named, zipfile.ZIP_STORED)


def savez_compressed(path: Path, *arrays: Any, **named: Any) -> None:
    """savez() with each array compressed (deflate).

    >>> kw.savez_compressed("arrays.npz", b=kw.zeros(3))
    >>> kw.load_npz("arrays.npz")["b"].numpy()
    array([0., 0., 0.], dtype=float32)
    """
    _save(path, arrays, named, zipfile.ZIP_DEFLATED)


def _save(path: Path, arrays: tuple[Any, ...], named: dict[str, Any], method: int) -> None:
    every: dict[str, Any] = dict(named)
    for i, array in enumerate(arrays):
        if f"arr_{i}" in every:
            raise InvalidArgument(f"arr_{i} is the name of an array without one: choose another")
        every[f"arr_{i}"] = array
    checked = {name: numpy_array(array, name) for name, array in every.items()}
    with replacing(path) as (file, _):
        with zipfile.ZipFile(file, "w", compression=method, allowZip64=True) as archive:
            for name, array in checked.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    member.write(header_of(array))
                    for piece in _pieces(array):
                        member.write(piece)


def _pieces(array: Array) -> Iterator[bytes]:
    """The bytes of an array in C order, some megabytes at a time."""
    flat = array.reshape(-1)
    step = max(1, _PIECE // array.dtype.itemsize)
    for begin in range(0, array.size, step):
        yield flat[begin : begin + step].numpy().tobytes()
