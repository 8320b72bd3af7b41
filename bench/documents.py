"""Writes a benchmark's JSON document: a record stands on one line, so that a diff shows figures;
so does a list of numbers of any length.

    python bench/documents.py results/operations.json   # a run of `kernwright bench`, for results/

The program drops samples and keeps eight digits of each figure: medians and intervals remain.
"""

from __future__ import annotations

import argparse
import json
import pathlib
from typing import Any

RECORD = 900  # characters: a value of at most this length stands on one line
DIGITS = 8


def text(value: Any, depth: int = 0) -> str:
    """JSON of the value; an object or list too long for a line has a line for each entry, but a
    list of numbers has one line."""
    line = json.dumps(value)
    nested = isinstance(value, dict) or (
        isinstance(value, list) and not all(isinstance(entry, (int, float)) for entry in value)
    )
    if len(line) + depth <= RECORD or not nested:
        return line
    pad = "\n" + " " * (depth + 1)
    if isinstance(value, dict):
        entries = [f"{json.dumps(key)}: {text(entry, depth + 1)}" for key, entry in value.items()]
        start, end = "{}"
    else:
        entries = [text(entry, depth + 1) for entry in value]
        start, end = "[]"
    return f"{start}{pad}{(',' + pad).join(entries)}{pad[:-1]}{end}"


def write(path: pathlib.Path, document: Any) -> None:
    """Replaces the file by the document; makes the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text(document) + "\n")


def figures(value: Any) -> Any:
    """The value without lists of samples, its numbers of `DIGITS` digits."""
    if isinstance(value, dict):
        return {
            key: figures(entry)
            for key, entry in value.items()
            if not (key == "samples" and isinstance(entry, list))
        }
    if isinstance(value, list):
        return [figures(entry) for entry in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=pathlib.Path, nargs="+")
    for path in parser.parse_args().files:
        write(path, figures(json.loads(path.read_text())))


if __name__ == "__main__":
    main()
