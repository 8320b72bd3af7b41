"""The lines of a log: runs, and rows with a step."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

from kernwright._support.files import read_bytes
from kernwright.errors import StoreError


class LogRecord(NamedTuple):
    """What the runs of a file have said of themselves, and their rows, of which a later run
    replaces those of the steps from its first one on."""

    runs: list[dict[str, Any]]
    rows: list[dict[str, Any]]


def cut_to_whole_lines(path: str) -> None:
    """Removes a last line without an end, which a process left when it was killed."""
    try:
        file = open(path, "r+b")  # noqa: SIM115
    except FileNotFoundError:
        return
    with file:
        end = file.seek(0, os.SEEK_END)
        while end > 0:
            begin = max(0, end - (1 << 16))
            file.seek(begin)
            place = file.read(end - begin).rfind(b"\n")
            if place >= 0:
                end = begin + place + 1
                break
            end = begin
        file.truncate(end)


def read_log(path: str) -> LogRecord:
    """Raises StoreError with the number of a line that is none of a log."""
    runs: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    begins = True
    lines = read_bytes(path).split(b"\n")
    if len(lines) == 1 and lines[0]:
        raise StoreError(f"{path} is no log: it has no whole line")
    for number, line in enumerate(lines[:-1], 1):  # behind the last line end a row is being written
        try:
            row = json.loads(line)
            if "run" in row:
                runs.append(dict(row["run"]))
                begins = True
                continue
            step = int(row["step"])
        except (ValueError, KeyError, TypeError):
            raise StoreError(f"{path}, line {number} is no line of a log: {line[:80]!r}") from None
        if begins:
            rows = [each for each in rows if each["step"] < step]
            begins = False
        rows.append(row)
    return LogRecord(runs, rows)


def number_of(value: Any) -> float | None:
    """A value of a row as a number; "nan" and "inf" are numbers, other texts are none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return float(value)
    return float(value) if value in ("nan", "inf", "-inf") else None
