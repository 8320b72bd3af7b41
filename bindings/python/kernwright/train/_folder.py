"""The folder of a checkpoint: written beside the ones before and named when it is whole."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import shutil
import zlib
from collections.abc import Iterable
from typing import Any, NamedTuple

from kernwright._files.opening import OpenFile
from kernwright._support.files import store_error
from kernwright.errors import StoreError

STATE = "state.json"
_DIGITS = 7
_PIECE = 1 << 24  # bytes that are written, or read for a checksum, at a time
_FINISHED = re.compile(r"\d{7,}")
_LEFT_OVER = re.compile(r"\.(\d{7,})\.(?:part|old)\.(\d+)")


class Content(NamedTuple):
    """A file to be written: its name, and its bytes in pieces."""

    name: str
    pieces: list[Any]


def finished(root: pathlib.Path) -> list[int]:
    """The numbers of the whole checkpoints, in order."""
    try:
        names = os.listdir(root)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise store_error(str(root), "read", error) from None
    return sorted(int(name) for name in names if _FINISHED.fullmatch(name))


def folder_of(root: pathlib.Path, number: int) -> pathlib.Path:
    return root / f"{number:0{_DIGITS}}"


def publish(root: pathlib.Path, contents: Iterable[Content], state: Any, keep: int) -> None:
    """Writes a checkpoint under the next number, and removes all but the last `keep`. All bytes
    reach the disk before the folder has its name. Raises StoreError, and then nothing is new."""
    number = (finished(root) or [0])[-1] + 1
    final = folder_of(root, number)
    made = root / f".{final.name}.part.{os.getpid()}"
    try:
        if not root.is_dir():
            root.mkdir(parents=True, exist_ok=True)
            _sync_folder(root.parent)
        _remove_left_over(root)
        made.mkdir()
        files = {content.name: _write(made / content.name, content.pieces) for content in contents}
        text = json.dumps({"files": files, **state}, sort_keys=True)
        whole = json.dumps({"crc32": zlib.crc32(text.encode()), "state": text}, indent=0)
        _write(made / STATE, [whole.encode()])
        _sync_folder(made)
        os.rename(made, final)
        _sync_folder(root)
    except OSError as error:
        raise store_error(str(error.filename or final), "written", error) from None
    finally:
        shutil.rmtree(made, ignore_errors=True)
    for old in finished(root)[:-keep]:
        _remove(root, folder_of(root, old))


def _write(path: pathlib.Path, pieces: Iterable[Any]) -> dict[str, int]:
    """Writes a new file to the disk; its size and checksum."""
    size = check = 0
    with open(path, "xb", buffering=0) as file:
        for piece in pieces:
            view = memoryview(piece).cast("B")
            for begin in range(0, len(view), _PIECE):
                part = view[begin : begin + _PIECE]
                check = zlib.crc32(part, check)
                while len(part) > 0:
                    part = part[file.write(part) :]
            size += len(view)
        os.fsync(file.fileno())
    return {"bytes": size, "crc32": check}


def _sync_folder(path: pathlib.Path) -> None:
    opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _remove(root: pathlib.Path, folder: pathlib.Path) -> None:
    """A folder loses its name before its files: what has a name is whole."""
    hidden = root / f".{folder.name}.old.{os.getpid()}"
    with contextlib.suppress(OSError):
        os.rename(folder, hidden)
        shutil.rmtree(hidden, ignore_errors=True)


def _remove_left_over(root: pathlib.Path) -> None:
    """What processes that have ended left behind."""
    for name in os.listdir(root):
        match = _LEFT_OVER.fullmatch(name)
        if match and not _is_alive(int(match[2])):
            shutil.rmtree(root / name, ignore_errors=True)


def _is_alive(process: int) -> bool:
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def read_state(folder: pathlib.Path) -> dict[str, Any]:
    """The state of a checkpoint after checks of all its files. Raises StoreError, which names the
    file that is missing, cut off or damaged."""
    opened = OpenFile(folder / STATE)
    try:
        text = opened.bytes(0, opened.size)
    finally:
        opened.close()
    try:
        whole = json.loads(text)
        inner, check = whole["state"], whole["crc32"]
        if zlib.crc32(inner.encode()) != check:
            raise opened.wrong("is damaged: its checksum is not that of its text")
        state = json.loads(inner)
        files = dict(state["files"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise opened.wrong(f"is damaged, or no state of a checkpoint: {error!r:.200}") from None
    for name, expected in files.items():
        _require_whole(folder / name, expected)
    return dict(state)


def _require_whole(path: pathlib.Path, expected: dict[str, int]) -> None:
    opened = OpenFile(path)
    try:
        if opened.size != expected["bytes"]:
            raise opened.wrong(
                f"is cut off or changed: it has {opened.size} bytes, and {expected['bytes']} were "
                "written"
            )
        check = 0
        for begin in range(0, opened.size, _PIECE):
            check = zlib.crc32(opened.bytes(begin, min(_PIECE, opened.size - begin)), check)
        if check != expected["crc32"]:
            raise opened.wrong(
                f"is damaged: its checksum is {check:08x}, and {expected['crc32']:08x} was written"
            )
    finally:
        opened.close()


def missing(root: pathlib.Path) -> StoreError:
    return StoreError(f"{root} has no checkpoint: save() makes one")
