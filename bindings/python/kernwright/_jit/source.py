"""Where a source text comes from: a file, or a string literal in somebody's Python file."""

from __future__ import annotations

import os
import re
import sys
from types import FrameType
from typing import Any, NamedTuple

from kernwright import _core
from kernwright.errors import ArgumentError, InvalidArgument

# Frames above the caller that are searched for the literal, when a helper passed it on.
_FRAMES = 6

_BYTE_ORDER_MARK = "\ufeff"
_SUFFIXES = (".cu", ".cuh", ".ptx", ".cubin", ".fatbin", ".cpp", ".cc", ".h", ".hpp", ".txt")
# Of a file: enough for the comments above the directives that open PTX.
_HEAD = 4096
_PTX = re.compile(rb"^(?:\xef\xbb\xbf)?[ \t]*\.version[ \t]+\d", re.MULTILINE)
# Of a str, which is CUDA C++ mostly: what comes first but for comments.
_PTX_TEXT = re.compile(r"\ufeff?(?:\s|//[^\n]*|/\*.*?\*/)*\.version[ \t]+\d", re.DOTALL)
# ELF, ObjectCode.save(), a fat binary, LTO-IR, a library, LLVM bitcode.
_CODE = (b"\x7fELF", b"KWOBJ", b"\x50\xed\x55\xba", b"\xed\x43\x4e\x7f", b"!<arch>", b"BC\xc0\xde")


class Located(NamedTuple):
    """A source text, and its file and line in messages."""

    text: str
    name: str
    first_line: int
    directory: str


def locate(source: Any, depth: int = 1) -> Located:
    """A str is source text, a path is read. `depth`: frames between the user and this call."""
    if isinstance(source, str):
        text = source.removeprefix(_BYTE_ORDER_MARK)
        _refuse_path(text)
        return _locate_literal(text, sys._getframe(depth + 1))
    if isinstance(source, os.PathLike):
        return _read(_core._path(source, "a kernel's source"))
    raise ArgumentError(
        "a kernel's source is a str (the text), a path object, or object code (PTX or a cubin as "
        f"bytes, an ObjectCode), got {type(source).__name__}"
    )


def _refuse_path(text: str) -> None:
    """A str is source text. What can be none, and looks like a path, was meant as one."""
    path = text.strip()
    if not path or len(path) > 4096 or any(c in path for c in "\n\r\0{};"):
        return
    if path.endswith(_SUFFIXES) or ("(" not in path and os.path.isfile(path)):
        raise InvalidArgument(
            f"the source {path!r} looks like the path of a file, and a str is the text itself: "
            f"pass pathlib.Path({path!r})"
        )


def object_code(source: Any) -> tuple[_core.ObjectCode, str] | None:
    """Compiled code, and a name for it: None for texts and files of them."""
    if isinstance(source, _core.ObjectCode):
        return source, f"<{source.kind}>"
    if isinstance(source, str):
        return _of_image(source.encode(errors="replace")) if _PTX_TEXT.match(source) else None
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _of_image(bytes(source)) if _is_code(bytes(source[:_HEAD])) else None
    if not isinstance(source, os.PathLike):
        return None
    path = _core._path(source, "a kernel's source")
    head = _core._file_head(path, _HEAD)
    return (_core.ObjectCode.load(path), path) if _is_code(head) else None


def _of_image(image: bytes) -> tuple[_core.ObjectCode, str]:
    code = _core.ObjectCode._of_image(image)
    return code, f"<{code.kind}>"


def _is_code(head: bytes) -> bool:
    """Also for code of a wrong form: an error at its loading says so."""
    return head.startswith(_CODE) or _PTX.search(head) is not None


def _read(path: str) -> Located:
    try:
        text = _core._read_source_file(path).decode()
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"{path!r} is not UTF-8 text: save it in that encoding") from error
    text = text.removeprefix(_BYTE_ORDER_MARK)
    # Not abspath(): "link/.." is the folder that the link names, not the one that holds it.
    folder = os.path.dirname(os.path.join(os.getcwd(), path))
    if folder != _printable(folder):
        raise InvalidArgument(
            f"the folder {folder!r} has a line break, or bytes that are not UTF-8, in its name: "
            "the compiler cannot be told of it. Read the file and pass its text"
        )
    return Located(text, _printable(path), 1, folder)


def _printable(name: str) -> str:
    """With escapes for what neither UTF-8 nor a line of a message can hold."""
    escaped = name.replace("\n", "\\n").replace("\r", "\\r")
    return escaped.encode("utf-8", "backslashreplace").decode()


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
                return Located(text, _printable(name), line, "")
        frame = frame.f_back
    return Located(text, "<string>", 1, "")


def _line_of_literal(text: str, frame: FrameType) -> int:
    """The first line of `text` in the frame's file, 0 when it is not there."""
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

    This finds a dedented literal, and one with other text before its first line.
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
