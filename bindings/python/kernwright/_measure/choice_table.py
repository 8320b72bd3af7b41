"""The file of kernels' choices, which several processes may write."""

from __future__ import annotations

import contextlib
import fcntl
import json
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

from kernwright import _core
from kernwright._support.files import read_text, told_of, write_whole


def update(path: pathlib.Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Lets `change` alter the table in the file, and has this process use it. Raises StoreError,
    and InvalidArgument for a file that is no table; the file stays as it is."""
    with told_of(path, "written"), _alone(path):
        table: dict[str, Any] = {"format": 1, "devices": {}}
        if path.exists():
            text = read_text(path)
            _core._use_launch_table(text)  # says what is wrong with it
            table = json.loads(text)
        change(table)
        text = json.dumps(table, indent=1, sort_keys=True) + "\n"
        write_whole(path, text)
    _core._use_launch_table(text)


@contextlib.contextmanager
def _alone(path: pathlib.Path) -> Iterator[None]:
    """While nobody else reads the file to write it. Its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_name(f".{path.name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
