"""Files that replace another one only when they are whole."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import IO, Any

from kernwright._files.opening import path_of
from kernwright._support.files import store_error
from kernwright.errors import InvalidArgument


@contextlib.contextmanager
def replacing(path: Any) -> Iterator[tuple[IO[bytes], str]]:
    """A new file beside `path` and the path as str. The file takes the place of `path` after its
    bytes have reached the disk; if anything raises before, `path` is as it was.

    Raises StoreError for what the system refuses, InvalidArgument for what is no path.
    """
    target = path_of(path)
    made = f"{target}.{os.getpid()}.part"
    try:
        with open(made, "wb", buffering=0) as file:
            yield file, target
            os.fsync(file.fileno())
        os.replace(made, target)
    except OSError as error:
        raise store_error(target, "written", error) from None
    except ValueError as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument(f"{target!r} is no path: {error}") from None
    finally:
        if "\0" not in made and os.path.exists(made):
            os.unlink(made)
