"""Files that are written whole, and Python files that are run."""

from __future__ import annotations

import contextlib
import os
import pathlib
import sys
from collections.abc import Iterator


def write_whole(path: str | os.PathLike[str], text: str, errors: str = "strict") -> None:
    """Replaces what is at `path` only by the whole text. Raises OSError, which names `path`."""
    target = pathlib.Path(path)
    made = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        made.write_text(text, encoding="utf-8", errors=errors)
        os.replace(made, target)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(target)) from None
    finally:
        with contextlib.suppress(OSError):
            made.unlink(missing_ok=True)


@contextlib.contextmanager
def imports_beside(path: str | os.PathLike[str]) -> Iterator[None]:
    """While a Python file runs, it may import what lies beside it."""
    folder = str(pathlib.Path(path).resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # the file may have removed it
            sys.path.remove(folder)
