"""Shared by the modules of report.py: results by name, tables of Markdown."""

from __future__ import annotations

import json
import pathlib
from typing import Any

HERE = pathlib.Path(__file__).parent


def load(name: str) -> dict[str, Any] | None:
    path = HERE / "results" / f"{name}.json"
    return json.loads(path.read_text()) if path.is_file() else None


def table(title: str, columns: tuple[str, str], rows: list[tuple[str, str]]) -> str:
    lines = [f"{title}\n", f"| {columns[0]} | {columns[1]} |", "|---|---|"]
    return "\n".join(lines + [f"| {name} | {value} |" for name, value in rows]) + "\n"
