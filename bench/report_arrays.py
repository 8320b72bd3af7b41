"""Figures of operations on arrays, packed weights and attention, for report.py."""

from __future__ import annotations

import textwrap
from typing import Any

from report_products import error_by_norm, wide, with_note
from report_text import HERE, load, table

OPERATIONS = HERE.parent / "docs" / "operations_speed.md"
OPERATIONS_INTRODUCTION = """\
# How fast operations on arrays are

Written by `bench/report.py` from `bench/results/operations.json`, which `kernwright bench` writes.
[bench.md](bench.md) says what the columns are and how they are measured.

"""


def packed_weights() -> str | None:
    document = load("gemv_formats")
    if document is None:
        return None
    rows = []
    for row in document["rows"]:
        peers = {name: of["us"] for name, of in row.items() if name.startswith("torch ")}
        if not peers:
            continue
        best = min(peers, key=lambda name: peers[name])
        name = f"{row['weights']}, {row['n']} x {row['k']}, {row['m']} row{'s'[: row['m'] > 1]}"
        ours = row["ours"]
        values = f"{ours['us']:.1f} | {ours['TB/s']:.2f} | {peers[best]:.1f}"
        values += f" ({best.removeprefix('torch ')}) | {peers[best] / ours['us']:.2f}"
        rows.append((name, f"{values} | {error_by_norm(row)}"))
    title = f"Products with packed weights, cold L2, {document['machine']['device']}:"
    columns = (
        "us, kernwright | TB/s of packed bytes | us, torch's fastest | times as fast | "
        "error by the norm"
    )
    text = table(title, ("format, weights, rows of x", columns), rows)
    return with_note(wide(text, 6), document)


def array_calls() -> str | None:
    document = load("array_overhead")
    if document is None:
        return None
    rows = [
        (f"`{name}`", f"{result['median']:.2f} ({result['times']:.2f}x)")
        for name, result in document["python"].items()
    ]
    columns = ("", "us, median (of the driver's loop in turn with it)")
    title = f"Calls from Python on arrays of 1024 elements, {document['machine']['device']}:"
    return table(title, columns, rows)


def attention() -> str | None:
    document = load("attention")
    if document is None:
        return None
    rows = []
    for row in document["rows"]:
        found = {name: of["TFLOP/s"] for name, of in row.items() if is_speed(of)}
        peers = {name: speed for name, speed in found.items() if name.startswith("torch ")}
        if "ours" not in found or not peers or row["dim"] != 128:
            continue
        best = max(peers, key=lambda name: peers[name])
        heads = f"{row['heads']} / {row['kv_heads']}"
        causal = ", causal" if row["causal"] else ""
        name = f"{row['subject']}, {row['batch']} x {heads} heads, {row['queries']}"
        name += "" if row["keys"] == row["queries"] else f" x {row['keys']}"
        values = f"{found['ours']:.0f} | {peers[best]:.0f} ({best.removeprefix('torch ')})"
        values += f" | {found['ours'] / peers[best]:.2f} | {error_by_norm(row)}"
        rows.append((name + causal, values))
    title = f"Attention with heads of 128 bfloat16 elements, {document['machine']['device']}:"
    columns = "TFLOP/s, kernwright | TFLOP/s, torch's fastest backend | ratio | error by the norm"
    text = table(title, ("batch x heads / heads of keys, queries (x keys)", columns), rows)
    return with_note(wide(text, 5), document)


def is_speed(value: Any) -> bool:
    return isinstance(value, dict) and "TFLOP/s" in value


def write_operations_page() -> None:
    document = load("operations")
    if document is None or document["device"]["is_simulated"]:
        return
    from kernwright.bench._table import text

    table_of_rows = text.markdown(document["rows"])
    about = text.heading(document).replace("\n", "\n\n")
    page = f"{OPERATIONS_INTRODUCTION}{about}\n\n{beside_peers(document['rows'])}\n\n"
    if "note" in document:
        page += f"{textwrap.fill(document['note'], 100)}\n\n"
    OPERATIONS.write_text(f"{page}{table_of_rows}\n")


def beside_peers(rows: list[dict[str, Any]]) -> str:
    ratios = []
    for row in rows:
        times = [of["median"] for of in (row.get("peers") or {}).values() if of.get("median")]
        if row["status"] == "ok" and times:
            ratios.append(min(times) / row["median"])
    reached = {mark: sum(ratio >= mark for ratio in ratios) for mark in (1, 0.95, 0.9)}
    return (
        f"Of {len(ratios)} rows with a peer {reached[1]} are at least as fast as the best one, "
        f"{reached[0.95]} reach 0.95 of its speed and {reached[0.9]} reach 0.9."
    )
