"""Rows of the table as lines and as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernwright._support.words import printable
from kernwright.bench._run import relative_width
from kernwright.bench._tables import escaped, verdict_text

HEADS = ("operation", "dtype", "shape", "us", "+-", "TB/s", "of copy", "best peer", "ratio",
         "error", "result")  # fmt: skip


def microseconds(milliseconds: float) -> str:
    return f"{milliseconds * 1e3:.4g}"


def _measured(row: Mapping[str, Any]) -> list[str]:
    if "median" not in row:
        return ["", "", "", ""]
    if row["unit"] != "ms":
        return [f"{row['median']:,.0f} {row['unit']}", "", "", ""]
    of_copy = row.get("of_copy")
    return [
        microseconds(row["median"]),
        f"{100 * relative_width(row):.2g} %",
        f"{row['gb_per_s'] / 1e3:.3g}",
        "" if of_copy is None else f"{100 * of_copy:.0f} %",
    ]


def _beside(row: Mapping[str, Any]) -> list[str]:
    best = row.get("best_peer")
    if best is None:
        return ["", ""]
    return [
        f"{best} {microseconds(row['peers'][best]['median'])}",
        f"{row['times_best_peer']:.2f}x",
    ]


def _notes(row: Mapping[str, Any]) -> str:
    if row["status"] != "ok":
        return printable(f"{row['status']}: {row['error']}")
    notes = ["right"]
    if "tflop_per_s" in row:
        notes.append(f"{row['tflop_per_s']:.3g} TFLOP/s")
    if row.get("policy") not in (None, "cold", "warm"):
        notes.append(str(row["policy"]))
    if "note" in row:
        notes.append(printable(str(row["note"])))
    for name, entry in (row.get("peers") or {}).items():
        said = entry.get("error") or entry.get("note")
        if said:
            notes.append(printable(f"{name}: {said}"))
    return ", ".join(notes)


def cells(row: Mapping[str, Any], compared: Mapping[str, Any] | None = None) -> list[str]:
    off = row.get("off")
    error = "" if off is None else ("0" if off == 0 else f"{off:.1e}")
    axes = row["axes"]
    shape = " ".join(axes[name] for name in ("shape", "layout") if name in axes)
    found = [row["name"], axes["dtype"], shape, *_measured(row), *_beside(row), error,
             _notes(row)]  # fmt: skip
    return found if compared is None else [*found, verdict_text(compared)]


def line(row: Mapping[str, Any], place: str = "") -> str:
    """One row as soon as it is measured."""
    name, dtype, shape, time, width, rate, share, peer, ratio, error, notes = cells(row)
    start = f"{place:>8} {name:<24} {dtype:<9} {shape:<14}"
    if "median" not in row:
        return f"{start} {notes}"
    unit = "" if row["unit"] != "ms" else " us"
    parts = [
        f"{time + unit:>14}",
        f"+-{width}" if width else "",
        f"{rate} TB/s" if rate else "",
        f"{share} of copy" if share else "",
        f"{ratio} {peer} us" if peer else "",
        f"error {error}",
        notes,
    ]
    return f"{start} {'  '.join(p for p in parts if p)}".rstrip()


def markdown(
    rows: Sequence[Mapping[str, Any]],
    compared: Sequence[Mapping[str, Any]] | None = None,
    other: str = "",
) -> str:
    """A table; `compared` has a verdict for each row."""
    heads = [*HEADS, *([f"beside {other}"] if compared is not None else [])]
    rule = [*["---"] * 3, *["---:"] * 4, "---", "---:", "---:", *["---"] * (len(heads) - 10)]
    table = [heads, rule]
    for place, row in enumerate(rows):
        table.append(cells(row, compared[place] if compared is not None else None))
    return "\n".join("| " + " | ".join(map(escaped, one)) + " |" for one in table)


def heading(document: Mapping[str, Any]) -> str:
    """The device, the ceiling, peers that run and those that do not."""
    device = document["device"]
    lines = [f"{device['name']}, kernwright {document['kernwright']}"]
    if device["is_simulated"]:
        lines.append("simulated: rows are counts of instructions and memory transactions, and tell "
                     "nothing of a GPU's times; peers do not run here")  # fmt: skip
        return "\n".join(lines)
    if document.get("copy_gb_per_s"):
        lines.append(f"copy of 1 GiB: {document['copy_gb_per_s'] / 1e3:.3g} TB/s read and written")
    peers = ", ".join(f"{name} {version}" for name, version in document["peers"].items())
    if peers:
        lines.append(f"peers: {peers}")
    for name, why in document["missing"].items():
        lines.append(f"no {name}: {printable(why)}")
    return "\n".join(lines)
