"""Where a source text comes from: a file, or a string literal in somebody's Python file."""

from __future__ import annotations

import os
import re
import stat
import sys
from types import FrameType
from typing import Any, NamedTuple

from kernwright import _core
from kernwright.errors import ArgumentError, InvalidArgument

# Frames above the caller that are searched for the literal, when a helper passed it on.
_FRAMES = 6
# Of a file: enough for the comments above the directives that open PTX.
_HEAD = 4096
_PTX = re.compile(rb"^[ \t]*\.version[ \t]+\d", re.MULTILINE)


class Located(NamedTuple):
    """A source text, and the file and line that messages about it name."""

    text: str
    name: str
    first_line: int
    directory: str


def locate(source: Any, depth: int = 1) -> Located:
    """A str is source text, a path is read. `depth`: frames between the user and this call."""
    if isinstance(source, str):
        return _locate_literal(source, sys._getframe(depth + 1))
    if isinstance(source, os.PathLike):
        return _read(os.fsdecode(source))
    raise ArgumentError(
        "a kernel's source is a str (the text), a path object, or object code (PTX or a cubin as "
        f"bytes, an ObjectCode), got {type(source).__name__}"
    )


def object_code(source: Any) -> tuple[_core.ObjectCode, str] | None:
    """What was compiled already, and a name for it: None for texts and files of them."""
    if isinstance(source, _core.ObjectCode):
        return source, f"<{source.kind}>"
    if isinstance(source, (bytes, bytearray, memoryview)):
        if not _is_code(bytes(source[:_HEAD])):
            return None
        code = _core.ObjectCode._of_image(bytes(source))
        return code, f"<{code.kind}>"
    if not isinstance(source, os.PathLike):
        return None
    path = os.fsdecode(source)
    try:
        with open(path, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            head = file.read(_HEAD)
    except (OSError, ValueError):
        return None  # reading the text will tell
    return (_core.ObjectCode.load(path), path) if _is_code(head) else None


def _is_code(head: bytes) -> bool:
    return head.startswith((b"\x7fELF", b"KWOBJ")) or _PTX.search(head) is not None


def _read(path: str) -> Located:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            text = file.read()
    except OSError as error:
        raise InvalidArgument(f"cannot read {path!r}: {error.strerror}") from error
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"{path!r} is not UTF-8 text") from error
    return Located(text, path, 1, os.path.dirname(os.path.abspath(path)))


def _locate_literal(text: str, frame: FrameType | None) -> Located:
    searched: set[str] = set()
    for _ in range(_FRAMES if text.strip() else 0):
        if frame is None:
            break
        name = frame.f_code.co_filename
        if name not in searched:
            searched.add(name)
            line = _line_of_literal(text, frame)
            if line:
                return Located(text, name, line, "")
        frame = frame.f_back
    return Located(text, "<string>", 1, "")


def _line_of_literal(text: str, frame: FrameType) -> int:
    """The line of the frame's file on which `text` begins, 0 when it is not there."""
    name = frame.f_code.co_filename
    if name[:1] == "<" and name[-1:] == ">":
        # No file: an interactive session keeps what was typed in linecache, or nobody has it.
        kept = sys.modules.get("linecache")
        starts = _in_lines(text, frame) if kept is not None and name in kept.cache else []
    else:
        starts = _core._lines_in_file(name, text) or _in_lines(text, frame)
    if not starts:
        return 0
    # The same text may be written down twice: the one nearest above the call is meant.
    above = [line for line in starts if line <= frame.f_lineno]
    return max(above) if above else min(starts)


def _in_lines(text: str, frame: FrameType) -> list[int]:
    """Lines on which the text begins in whatever Python can show the source of, a literal that was
    dedented included: most others stand in the file byte for byte."""
    import linecache

    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
    whole = "".join(lines)
    wanted = text.splitlines()
    # A text that was put together has a line that stands nowhere, which is soon found.
    if any(line.strip() not in whole for line in wanted):
        return []
    return _verbatim(text, whole) or _by_lines(wanted, lines)


def _verbatim(text: str, whole: str) -> list[int]:
    starts = []
    at = whole.find(text)
    while at >= 0:
        starts.append(whole.count("\n", 0, at) + 1)
        at = whole.find(text, at + 1)
    return starts


def _by_lines(wanted: list[str], lines: list[str]) -> list[int]:
    """Places where all lines but the first and last agree apart from indentation.

    That finds a literal that was dedented, or whose first line follows other text.
    """
    while wanted and not wanted[-1].strip():
        wanted.pop()
    skipped = 0
    while wanted and not wanted[0].strip():
        wanted.pop(0)
        skipped += 1
    if len(wanted) < 2:
        return []
    inner = [line.strip() for line in wanted[1:-1]]
    first, last = wanted[0].strip(), wanted[-1].strip()
    found = []
    for i in range(len(lines) - len(wanted) + 1):
        if (
            first in lines[i]
            and last in lines[i + len(wanted) - 1]
            and all(lines[i + 1 + j].strip() == line for j, line in enumerate(inner))
        ):
            found.append(i + 1 - skipped)
    return [line for line in found if line > 0]
