"""Rows of benchmarks as text and as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernwright._support.words import pairs_text, printable, time_text
from kernwright.bench._run import relative_width


def value_text(row: Mapping[str, Any]) -> str:
    """12.3 us, 0.55 ms; 12,345 counts"""
    if "median" not in row:
        return ""
    median = row["median"]
    if row["unit"] != "ms":
        return f"{median:,.0f} {row['unit']}"
    return time_text(median)


def axes_text(row: Mapping[str, Any]) -> str:
    return pairs_text(row["axes"])


def verdict_text(compared: Mapping[str, Any] | None) -> str:
    if compared is None:
        return ""
    if compared["ratio"] is None:
        return str(compared["verdict"])
    low, high = compared["interval"]
    return f"{compared['verdict']} {compared['ratio']:.3f}x ({low:.3f} to {high:.3f})"


def _status(row: Mapping[str, Any]) -> str:
    if row["status"] != "ok":
        return printable(f"{row['status']}: {row['error']}".replace("\n", " "))
    return "right" if row["checked"] else "not checked"


def cells(row: Mapping[str, Any], compared: Mapping[str, Any] | None = None) -> list[str]:
    width = f"{100 * relative_width(row):.2g} %" if row.get("unit") == "ms" else ""
    rate = f"{row['gb_per_s']:.4g} GB/s" if "gb_per_s" in row else ""
    speed = f"{row['tflop_per_s']:.4g} TFLOP/s" if "tflop_per_s" in row else ""
    notes = _status(row) + (", throttled" if row.get("throttled") else "")
    found = [row["name"], axes_text(row), value_text(row), width, rate, speed, notes]
    return found if compared is None else [*found, verdict_text(compared)]


HEADS = ("benchmark", "axes", "median", "+-", "bandwidth", "speed", "result")


def line(row: Mapping[str, Any]) -> str:
    """One row as soon as it is measured."""
    name = f"{row['name']} {axes_text(row)}".strip()
    if "median" not in row:
        return f"{name:<44} {_status(row)}"
    rest = "  ".join(text for text in cells(row)[3:] if text)
    return f"{name:<44} {value_text(row):>18}  {rest}".rstrip()


def escaped(text: str) -> str:
    """A cell of a table in Markdown."""
    return " ".join(text.replace("|", "\\|").split())


def markdown(
    rows: Sequence[Mapping[str, Any]], compared: Sequence[Mapping[str, Any]] | None, other: str
) -> str:
    """A table; `compared` has a verdict for each row."""
    heads = [*HEADS, *([f"beside {other}"] if compared is not None else [])]
    table = [heads, ["---", "---", *(["---:"] * 4), *(["---"] * (len(heads) - 6))]]
    for place, row in enumerate(rows):
        table.append(cells(row, compared[place] if compared is not None else None))

    return "\n".join("| " + " | ".join(map(escaped, one)) + " |" for one in table)
