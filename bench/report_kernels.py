"""Figures of the kernels' first calls, of their choice, and those that others published, for
report.py."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Any

from report_text import HERE, load, measured_table, table

PUBLISHED = HERE / "published.json"
# Seconds: the mark of one first call, and that of most of them.
FIRST_CALL, MOST_FIRST_CALLS = 1.0, 0.5
# The rule's part above the table, on average.
RULE = 0.05


def megabytes(size: int) -> str:
    return f"{size / 1e6:.2f} MB"


def first_calls() -> str | None:
    document = load("first_call")
    if document is None:
        return None
    results = document["results"]
    rows = [
        (name, f"{entry['s']:.2f}", f"{entry['from a pack, s'] * 1e3:.1f}", str(entry["compiles"]))
        for name, entry in results.items()
    ]
    columns = ("", "s, compiled", "ms, from a pack", "compiles")
    machine = document["machine"]
    beside = document["processes at a time"]
    order = "one after the other" if beside == 1 else f"{beside} at a time"
    title = (
        f"The first call of a family in a new process, {order}, on {machine['processors']} cores "
        f"({machine['processor']})"
    )
    times = [entry["s"] for entry in results.values()]
    few = sum(time <= MOST_FIRST_CALLS for time in times)
    over = [name for name, entry in results.items() if entry["s"] > FIRST_CALL]
    text = measured_table(title, document, columns, rows)
    notes = (
        f"Most should take {MOST_FIRST_CALLS} s, and all {FIRST_CALL:g} s: {few} of {len(times)} "
        f"take no more than {MOST_FIRST_CALLS} s. Above {FIRST_CALL:g} s: "
        f"{'; '.join(over) or 'none'}."
    )
    return f"{text}\n{textwrap.fill(notes, 100)}\n\n{packs(document)}"


def packs(document: dict[str, Any]) -> str:
    measured, named = document["pack"], load("pack_size") or {"results": {}}
    found = [(f"the calls of this table, {measured['arch']}", measured)]
    for arch, entry in named["results"].items():
        found.append(
            (f"each operation of `kw.warmup()` with two types and one shape, {arch}", entry)
        )
    rows = [
        (
            name,
            f"{entry['codes']} | {megabytes(entry['pack bytes'])}"
            f" | {megabytes(entry['compressed bytes'])}",
        )
        for name, entry in found
    ]
    title = "Packs; the code in a pack is not compressed:"
    return table(title, ("", "codes | size | compressed by zlib"), rows)


def choice_rule() -> str | None:
    document = load("choice_rule")
    if document is None:
        return None
    rows = [
        (
            types,
            str(entry["shapes"]),
            str(entry["with a plan"]),
            str(entry["measured"]),
            f"{entry['mean of measured']:.3f}",
            f"{entry['mean']:.3f}",
        )
        for types, entry in document["types"].items()
        if entry["measured"]
    ]
    columns = (
        "types and layout",
        "shapes of the table",
        "not by the rule",
        "of these measured",
        "ratio of these",
        "ratio of all",
    )
    title = "The rule against the table, the time of the rule divided by that of the table"
    worst = ", ".join(
        f"{row['shape']} {row['types']} {row['ratio']:.2f}" for row in document["worst"]
    )
    mean = document["mean of the table"]
    reached = "reached" if mean <= 1 + RULE else "missed"
    notes = (
        f"Geometric means: {document['mean of measured']:.3f} of the measured shapes, "
        f"{mean:.3f} of all shapes, with 1 where the table has the rule. The mark of "
        f"{1 + RULE:g} for all shapes is {reached}. The table was of every measured plan then; "
        f"it keeps those with a ratio above 1.10. The largest ratios: {worst}."
    )
    return f"{measured_table(title, document, columns, rows)}\n{textwrap.fill(notes, 100)}\n"


def published() -> str | None:
    if not PUBLISHED.is_file():
        return None
    document = json.loads(PUBLISHED.read_text())
    parts = [*published_products(document["float8 products"])]
    parts += [*published_attention(document["attention"])]
    if not parts:
        return None
    title = (
        "Figures that others published beside ours, TFLOP/s. Theirs are of H100s, ours those\n"
        "of the tables above, measured in other ways: a ratio says less than those of one run:"
    )
    text = table(title, ("", "kernwright | published | ratio | source"), parts)
    sources = (f"{key}: {source}" for key, source in document["sources"].items())
    return text + "".join(f"\n- {source}." for source in sources) + "\n"


def beside(ours: float, row: dict[str, Any], source: str) -> str:
    return f"{ours:.0f} | {row['TFLOP/s']:.0f} | {ours / row['TFLOP/s']:.2f} | {source}"


def published_products(entry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    document = load("gemm_types") or {"rows": []}
    measured = {
        tuple(row["shape"]): row["ours"]["TFLOP/s"]
        for row in document["rows"]
        if row["type"] == "fp8_blocks"
    }
    for row in entry["rows"]:
        shape = tuple(row["shape"])
        if shape in measured:
            name = f"float8 with scales of blocks, {'x'.join(map(str, shape))}"
            yield name, beside(measured[shape], row, entry["source"])


def published_attention(rows: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    document = load("attention") or {"rows": []}
    measured = {
        (row["subject"], row["batch"], row["heads"], row["queries"], row["causal"]): row["ours"]
        for row in document["rows"]
        if row["dim"] == 128 and row["queries"] == row["keys"] and "TFLOP/s" in row["ours"]
    }
    for row in rows:
        ours = measured.get((row["subject"], *row["beside"], row["causal"]))
        if ours is None:
            continue
        batch, heads, tokens = row["beside"]
        name = f"attention {row['subject']}, {batch} x {heads} heads of 128, {tokens}"
        name += ", causal" if row["causal"] else ""
        if row["shape"] != row["beside"]:
            batch, heads, tokens = row["shape"]
            name += f" (theirs {batch} x {heads} heads)"
        yield name, beside(ours["TFLOP/s"], row, row["source"])
