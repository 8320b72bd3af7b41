"""Shared by the modules of report.py: results by name, tables of Markdown."""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Iterable, Sequence
from typing import Any

HERE = pathlib.Path(__file__).parent


def load(name: str) -> dict[str, Any] | None:
    path = HERE / "results" / f"{name}.json"
    return json.loads(path.read_text()) if path.is_file() else None


def table(title: str, columns: tuple[str, str], rows: list[tuple[str, str]]) -> str:
    """A name and a value in each row; a value with bars fills several columns."""
    head = f"| {columns[0]} | {columns[1]} |"
    lines = [f"{title}\n", head, "|" + "---|" * (head.count("|") - 1)]
    return "\n".join(lines + [f"| {shown(name)} | {value} |" for name, value in rows]) + "\n"


def shown(name: str) -> str:
    """The name, with code that Markdown would take for a link marked as code."""
    return re.sub(r"\S+\[[^\]]*\]\([^)]*\)", r"`\g<0>`", name)


def measured_table(
    title: str, document: dict[str, Any], columns: Sequence[str], rows: Iterable[Sequence[str]]
) -> str:
    """A table of a result: its device behind the title, and its note below."""
    device = document["machine"]["device"]
    pairs = [(row[0], " | ".join(row[1:])) for row in rows]
    text = table(f"{title}, {device}:", (columns[0], " | ".join(columns[1:])), pairs)
    return f"{text}\n{document['note']}\n" if "note" in document else text


def fastest_peer(row: dict[str, Any], unit: str = "us") -> tuple[str, float] | None:
    """The fastest of torch's ways in a row, without "torch", and its time; with another unit than
    us the one with the highest rate."""
    peers = {
        name.removeprefix("torch "): entry[unit]
        for name, entry in row.items()
        if name.startswith("torch ") and isinstance(entry, dict) and unit in entry
    }
    if not peers:
        return None
    best = (min if unit == "us" else max)(peers, key=lambda name: peers[name])
    return best, peers[best]


def error_by_norm(row: dict[str, Any]) -> str:
    return f"{row['error']:.1e}" if "error" in row else "below the bound"
