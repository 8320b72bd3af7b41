"""Files to be read and written whole, and Python files to be run."""

from __future__ import annotations

import contextlib
import os
import pathlib
import sys
from collections.abc import Iterator

from kernwright.errors import ArgumentError, InvalidArgument, StoreError


def store_error(name: str, what: str, error: OSError) -> StoreError:
    """The error for a file which cannot be read, written, ..."""
    made = StoreError(f"{name} cannot be {what}: {error.strerror} (errno {error.errno})")
    made.errno = error.errno
    return made


@contextlib.contextmanager
def told_of(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """A refusal of the system meanwhile is a StoreError: the file cannot be `what` ("read")."""
    try:
        name = os.fsdecode(path)
    except TypeError:
        raise ArgumentError(f"a path is a str or os.PathLike, got {path!r:.80}") from None
    try:
        os.fsencode(name)
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"{name!r} is no path: {error}") from None
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        raise store_error(name, what, error) from None
    except ValueError as error:
        if "\0" not in name:
            raise
        raise InvalidArgument(f"{name!r} is no path: {error}") from None


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The contents of a file. Raises StoreError."""
    with told_of(path, "read"):
        return pathlib.Path(os.fsdecode(path)).read_bytes()


def read_text(path: str | os.PathLike[str]) -> str:
    """The same as UTF-8 text. Raises InvalidArgument for other bytes."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"{os.fsdecode(path)} is no UTF-8 text: {error}") from None


def write_whole(path: str | os.PathLike[str], text: str, errors: str = "strict") -> None:
    """Replaces the file at `path` only by the whole text; what is there and no file (a pipe, a
    device, /dev/stdout) is written to. Raises StoreError, which names `path`."""
    with told_of(path, "written"):
        path = os.fsdecode(path)
        target = pathlib.Path(os.path.realpath(path))  # a link stays
        is_open = os.path.abspath(path).startswith(("/dev/", "/proc/"))
        if is_open and target.is_file():  # where standard output goes to: others write there, too
            with open(path, "a", encoding="utf-8", errors=errors) as file:
                file.write(text)
            return
        if target.exists() and not target.is_file():
            target.write_text(text, encoding="utf-8", errors=errors)
            return
        made = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            made.write_text(text, encoding="utf-8", errors=errors)
            os.replace(made, target)
        finally:
            with contextlib.suppress(OSError):
                made.unlink(missing_ok=True)


@contextlib.contextmanager
def imports_beside(path: str | os.PathLike[str]) -> Iterator[None]:
    """While a Python file runs, it may import the files beside it."""
    folder = str(pathlib.Path(path).resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # the file may have removed it
            sys.path.remove(folder)
