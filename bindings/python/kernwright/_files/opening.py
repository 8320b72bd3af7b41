"""Files opened to be read, and their parts; lists of arrays by name."""

from __future__ import annotations

import abc
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kernwright import _core
from kernwright._core import Array
from kernwright._support.files import store_error
from kernwright.errors import ArgumentError, InvalidArgument, NameNotFound, StoreError

Path = str | os.PathLike[str]


class OpenFile:
    """A file open for reading, with its size at that moment."""

    def __init__(self, path: Any) -> None:
        self.name = path_of(path)
        try:
            # Not blocked by a pipe without a writer.
            opened = os.open(self.name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            self.file = open(opened, "rb", buffering=0)  # noqa: SIM115
            status = os.fstat(opened)
        except OSError as error:
            raise store_error(self.name, "read", error) from None
        except ValueError as error:
            raise InvalidArgument(f"{self.name!r} is no path: {error}") from None
        if not stat.S_ISREG(status.st_mode):
            self.file.close()
            raise self.wrong("is no regular file")
        self.size = status.st_size

    def bytes(self, offset: int, count: int) -> bytes:
        """As many bytes as were asked for. StoreError where the file ends before."""
        parts = []
        try:
            while count > 0:
                part = os.pread(self.file.fileno(), min(count, 1 << 24), offset)
                if not part:
                    raise self.wrong(f"ends at byte {offset}, and {count} more are needed")
                parts.append(part)
                offset += len(part)
                count -= len(part)
        except OSError as error:
            raise store_error(self.name, "read", error) from None
        return b"".join(parts)

    def wrong(self, what: str) -> StoreError:
        """The error for a file of another kind than expected."""
        return StoreError(f"{self.name} {what}")

    def close(self) -> None:
        self.file.close()


class Part(NamedTuple):
    """An array without gaps, and where its bytes are."""

    file: OpenFile
    offset: int
    array: Array


def read_parts(parts: Sequence[Part]) -> None:
    """Fills arrays of one device from any files by several threads, through page-locked memory;
    waits. Raises InvalidArgument for closed files, StoreError."""
    for part in parts:
        if part.file.file.closed:
            raise InvalidArgument(f"{part.file.name} was closed")
    _core._read_files(
        [part.array for part in parts],
        [(part.file.file.fileno(), part.file.name, part.offset) for part in parts],
    )


def path_of(path: Any) -> str:
    """A path as str. Raises ArgumentError."""
    try:
        return os.fsdecode(path)
    except TypeError:
        raise ArgumentError(f"a path is a str or os.PathLike, got {path!r:.80}") from None


class NamedArrays(Mapping[str, Array]):
    """Arrays of a file by name: each is read when it is asked for, and not kept."""

    _opened: OpenFile

    @abc.abstractmethod
    def _place(self, name: str) -> tuple[tuple[int, ...], Any, int]:
        """Shape and dtype of what is made for `name`, and the place of its bytes."""

    @abc.abstractmethod
    def _names(self) -> Mapping[str, Any]:
        """The contents of the file, by the names of its arrays."""

    def __init__(self, path: Path, device: Any) -> None:
        self._device = device
        self._opened = OpenFile(path)

    def __getitem__(self, name: str) -> Array:
        return self.load([name])[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def __contains__(self, name: object) -> bool:
        return name in self._names()

    def load(self, names: Iterable[str] | None = None) -> dict[str, Array]:
        """The arrays of these names, or all, in their order. Raises NameNotFound."""
        if names is None:
            wanted = list(self)
        elif isinstance(names, str):
            raise ArgumentError(f"names are a list of str, got the str {names!r}")
        else:
            wanted = list(names)
        parts = [self._new_part(name) for name in wanted]
        read_parts(parts)
        return {name: part.array for name, part in zip(wanted, parts, strict=True)}

    def _new_part(self, name: str) -> Part:
        """A new array for the one of that name, to be filled. Raises NameNotFound."""
        shape, dtype, offset = self._place(self._known(name))
        made = _core.empty(shape, dtype, device=self._device)
        return Part(self._opened, offset, made)

    def _part_of(self, name: str, array: Array) -> Part:
        """An array to be filled with the one of that name. Raises NameNotFound, InvalidArgument."""
        shape, dtype, offset = self._place(self._known(name))
        if (array.shape, array.dtype.name) != (shape, dtype) or not array.is_contiguous:
            raise InvalidArgument(
                f"{name} of {self._opened.name} is {dtype} of shape {shape}, and is read into "
                f"{array.dtype.name} of shape {array.shape} without gaps"
            )
        return Part(self._opened, offset, array)

    def read_into(self, arrays: Mapping[str, Array]) -> None:
        """Reads arrays into those given under their names, which have their shapes and dtypes and
        no gaps. Raises NameNotFound, InvalidArgument."""
        read_parts([self._part_of(name, array) for name, array in arrays.items()])

    def _known(self, name: Any) -> str:
        known = self._names()
        if isinstance(name, str) and name in known:
            return name
        some = ", ".join(list(known)[:8]) + (", ..." if len(known) > 8 else "")
        raise NameNotFound(f"{self._opened.name} has no array {name!r:.80}; there are {some}")

    def close(self) -> None:
        """Closes the file: nothing more can be read."""
        self._opened.close()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"kw.{type(self).__name__}({self._opened.name!r}, {len(self)} arrays)"
