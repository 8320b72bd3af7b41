"""Figures of operations on arrays, packed weights and attention, for report.py."""

from __future__ import annotations

import textwrap
from typing import Any

from report_text import error_by_norm, fastest_peer, load, measured_table

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
        best = fastest_peer(row)
        if best is None:
            continue
        ours = row["ours"]
        rows.append(
            (
                f"{row['weights']}, {row['n']} x {row['k']}, {row['m']} row{'s'[: row['m'] > 1]}",
                f"{ours['us']:.1f}",
                f"{ours['TB/s']:.2f}",
                f"{best[1]:.1f} ({best[0]})",
                f"{best[1] / ours['us']:.2f}",
                error_by_norm(row),
            )
        )
    columns = (
        "format, weights, rows of x",
        "us, kernwright",
        "TB/s of packed bytes",
        "us, torch's fastest",
        "times as fast",
        "error by the norm",
    )
    return measured_table("Products with packed weights, cold L2", document, columns, rows)


def few_rows() -> str | None:
    document = load("gemv")
    if document is None:
        return None
    single_rows = {
        (row["weights"], row["n"], row["k"]): row["ours"]["TB/s"]
        for row in document["rows"]
        if row["m"] == 1
    }
    rows = []
    for row in document["rows"]:
        ours, best = row["ours"], fastest_peer(row)
        one = single_rows.get((row["weights"], row["n"], row["k"]))
        rows.append(
            (
                f"{row['weights']}, {row['n']} x {row['k']}, {row['m']} row{'s'[: row['m'] > 1]}",
                f"{ours['us']:.1f}",
                f"{ours['TB/s']:.2f}",
                f"{ours['TB/s'] / one:.2f}" if one else "",
                f"{best[1]:.1f} ({best[0]})" if best else "",
                f"{best[1] / ours['us']:.2f}" if best else "",
                error_by_norm(row),
            )
        )
    columns = (
        "weights, rows of x",
        "us, kernwright",
        "TB/s of weights",
        "of one row's",
        "us, torch's fastest",
        "times as fast",
        "error by the norm",
    )
    return measured_table("Products with few rows, cold L2", document, columns, rows)


def array_calls() -> str | None:
    document = load("array_overhead")
    if document is None:
        return None
    rows = [
        (f"`{name}`", f"{result['median']:.2f} ({result['times']:.2f}x)")
        for name, result in document["python"].items()
    ]
    columns = ("", "us, median (of the driver's loop in turn with it)")
    return measured_table("Calls from Python on small arrays and matrices", document, columns, rows)


def attention() -> str | None:
    return _attention((128,), "Attention with heads of 128 bfloat16 elements")


def wide_attention() -> str | None:
    return _attention((192, 256), "Attention with heads of 192 and 256 bfloat16 elements")


def _attention(dims: tuple[int, ...], title: str) -> str | None:
    document = load("attention")
    if document is None:
        return None
    rows = []
    for row in document["rows"]:
        best = fastest_peer(row, "TFLOP/s")
        if "TFLOP/s" not in row["ours"] or best is None or row["dim"] not in dims:
            continue
        ours = row["ours"]["TFLOP/s"]
        size = f", {row['dim']}" if len(dims) > 1 else ""
        keys = "" if row["keys"] == row["queries"] else f" x {row['keys']}"
        rows.append(
            (
                f"{row['subject']}{size}, {row['batch']} x {row['heads']} / {row['kv_heads']} "
                f"heads, "
                f"{row['queries']}{keys}{', causal' if row['causal'] else ''}",
                f"{ours:.0f}",
                f"{best[1]:.0f} ({best[0]})",
                f"{ours / best[1]:.2f}",
                error_by_norm(row),
            )
        )
    columns = (
        "batch x heads / heads of keys, queries (x keys)",
        "TFLOP/s, kernwright",
        "TFLOP/s, torch's fastest backend",
        "ratio",
        "error by the norm",
    )
    return measured_table(title, document, columns, rows)


def operations_page() -> str | None:
    document = load("operations")
    if document is None or document["device"]["is_simulated"]:
        return None
    from kernwright.bench._table import text

    row_table = text.markdown(document["rows"])
    about = text.heading(document).replace("\n", "\n\n")
    page = f"{OPERATIONS_INTRODUCTION}{about}\n\n{beside_peers(document['rows'])}\n\n"
    if "note" in document:
        page += f"{textwrap.fill(document['note'], 100)}\n\n"
    return f"{page}{row_table}\n{random_shapes()}"


def random_shapes() -> str:
    """The summary of a run of `kernwright bench --random`."""
    document = load("random_shapes")
    if document is None or document["device"]["is_simulated"]:
        return ""
    from kernwright.bench._table import shares, text

    found = document["random"]
    about = text.heading(document).replace("\n", "\n\n")
    call = f"kernwright bench --random {found['draws']} --seed {found['seed']}"
    return (
        f"\n## Random shapes\n\n`{call}` ([bench.md](bench.md)), from "
        f"`bench/results/random_shapes.json`.\n\n{about}\n\n"
        f"{shares.markdown(found)}\n"
    )


def beside_peers(rows: list[dict[str, Any]]) -> str:
    ratios = []
    for row in rows:
        times = [
            entry["median"] for entry in (row.get("peers") or {}).values() if entry.get("median")
        ]
        if row["status"] == "ok" and times:
            ratios.append(min(times) / row["median"])
    reached = {mark: sum(ratio >= mark for ratio in ratios) for mark in (1, 0.95, 0.9)}
    return (
        f"Of {len(ratios)} rows with a peer {reached[1]} are at least as fast as the best one, "
        f"{reached[0.95]} reach 0.95 of its speed and {reached[0.9]} reach 0.9."
    )
