"""Files from the command line, looked at before any work is done."""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import traceback
from collections.abc import Iterator

from kernwright.cli import UsageError
from kernwright.errors import (
    DeviceLost,
    DriverNotFound,
    NvrtcNotFound,
    OutOfMemory,
    StoreError,
)

# No other use would do better.
_NO_USE = (DeviceLost, DriverNotFound, NvrtcNotFound, OutOfMemory, StoreError)


def existing(path: str) -> str:
    """The path of a readable file. Throws UsageError."""
    if os.path.isdir(path):
        raise UsageError(f"{path!r} is a folder: name a file")
    if not os.path.exists(path):
        raise UsageError(f"there is no file {path!r}")
    if not os.path.isfile(path):
        raise UsageError(f"{path!r} is no regular file")
    if not os.access(path, os.R_OK):
        raise UsageError(f"{path!r} cannot be read: its permissions forbid it")
    return path


@contextlib.contextmanager
def running(path: str, what: str, *, all_of_it: bool = True) -> Iterator[None]:
    """What the Python file `path` raises meanwhile is a UsageError that names file, line and error:
    "the task file 't.py', line 3 raised ...". `what`: "task", "benchmark", ... Without `all_of_it`
    other code runs as well, whose errors stay what they are."""
    try:
        yield
    except UsageError:
        raise
    except _NO_USE:
        raise
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        where = [frame for frame in frames if _is_same(frame.filename, path)]
        if not where and not all_of_it:
            raise
        line = f", line {where[-1].lineno}" if where else ""
        raise UsageError(
            f"the {what} file {path!r}{line} raised {type(error).__name__}: {error}"
        ) from error


def _is_same(one: str, other: str) -> bool:
    return os.path.abspath(one) == os.path.abspath(other)


def writable(path: str) -> str:
    """The path of a file to be made or replaced. Throws UsageError."""
    folder = os.path.dirname(path) or "."
    if not path or os.path.isdir(path):
        raise UsageError(f"{path!r} is a folder: name a file to write")
    if not os.path.isdir(folder):
        raise UsageError(f"{path!r} cannot be written: there is no folder {folder!r}")
    place = path if os.path.exists(path) else folder
    if not os.access(place, os.W_OK):
        raise UsageError(f"{path!r} cannot be written: the permissions of {place!r} forbid it")
    return path


def architectures(given: list[str]) -> list[str]:
    """Those of --arch (several times, or with commas). Throws UsageError."""
    names = [name.strip() for text in given for name in text.split(",")]
    if "" in names:
        raise UsageError("--arch names no architecture: write sm_90, sm_90a or compute_80")
    return list(dict.fromkeys(names))


def complete_files(argument: argparse.Action) -> None:
    """Shells complete paths here; read by shtab."""
    argument.complete = {  # type: ignore[attr-defined]
        "bash": "_shtab_compgen_files",
        "zsh": "_files",
        "tcsh": "f",
    }


def read_text(path: str) -> str:
    """The text of a file. Throws UsageError."""
    try:
        return pathlib.Path(existing(path)).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path!r} is not UTF-8 text") from error
