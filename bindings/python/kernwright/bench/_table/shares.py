"""What random rows say together: percentiles of shares and ratios, and the rows that fall short."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from kernwright.bench._run import relative_width
from kernwright.bench._table.draws import KIND_OF, NAMES

PERCENTILES = (5, 25, 50, 75, 95)
MARK = 0.9  # of the ratio at the 5th percentile; rows below it are listed
_LAUNCH = 0.006  # milliseconds that a kernel takes whatever little it does
_FEW_ROWS = 8  # of a product that reads its weights once
_SMALL_WEIGHTS = 1 << 26  # elements
_BOUND = 0.85  # share of the copy's rate that leaves little to gain

Row = Mapping[str, Any]


def _percentiles(values: Sequence[float]) -> dict[str, float] | None:
    if not values:
        return None
    found = np.percentile(np.asarray(values, float), PERCENTILES)
    return {str(p): round(float(v), 4) for p, v in zip(PERCENTILES, found, strict=True)}


def _ratios(rows: Iterable[Row]) -> list[float]:
    return [row["times_best_peer"] for row in rows if "times_best_peer" in row]


def _shares(rows: Iterable[Row]) -> list[float]:
    """Of the rows that memory bounds: products and attention have operations to tell of."""
    return [row["of_copy"] for row in rows if "of_copy" in row and "tflop_per_s" not in row]


def _of_kind(rows: Sequence[Row]) -> dict[str, Any]:
    ratios = _ratios(rows)
    mean = math.exp(math.fsum(map(math.log, ratios)) / len(ratios)) if ratios else None
    return {
        "rows": len(rows),
        "right": sum(row["status"] == "ok" for row in rows),
        "compared": len(ratios),
        "ratio": _percentiles(ratios),
        "geometric_mean": None if mean is None else round(mean, 4),
        "of_copy": _percentiles(_shares(rows)),
    }


def _extents(row: Row) -> list[int]:
    return [int(extent) for extent in row["axes"]["shape"].split("x")]


def _lies_odd(row: Row) -> bool:
    """Whether rows begin elsewhere than at multiples of 16 bytes."""
    size = 4 if row["axes"]["dtype"] == "float32" else 2
    return row["axes"].get("layout") == "shifted" or _extents(row)[-1] * size % 16 != 0


def _is_small_product(row: Row) -> bool:
    """Of few rows with weights that are read in some 20 microseconds."""
    rows, columns, inner = _extents(row)
    return rows <= _FEW_ROWS and columns * inner <= _SMALL_WEIGHTS


# What is known of rows that stay behind a peer: text in the name, where it holds, and why.
_KNOWN: tuple[tuple[str, Callable[[Row], bool], str], ...] = (
    ("var of", lambda row: True,
     "a variance takes distances from a pivot, and their squares"),
    ("norm backward", lambda row: row.get("launches", 1) > 1,
     "a second launch adds the parts of the weights' gradients"),
    ("decode", lambda row: "layout" in row["axes"],
     "keys of a head lie apart: blocks of its neighbours do not read at the same time"),
    ("attention", lambda row: not row["name"].startswith("decode") and _extents(row)[-1] <= 64,
     "heads of 64 have half as many multiplications for each exponential as those of 128"),
    ("", _lies_odd, "no aligned packs: elements are loaded one by one, or copied first"),
    ("matmul", _is_small_product, "blocks of tiles fill a part of their last wave alone"),
)  # fmt: skip


def reason(row: Row) -> str:
    """Why a row is below the mark, as far as it is known."""
    peer = row["peers"][row["best_peer"]]
    if row["median"] < _LAUNCH and peer["median"] < _LAUNCH:
        return "a launch: both take less than 6 us"
    if row["median"] * (1 - relative_width(row)) * MARK < peer["interval"][1]:
        return "noise: the intervals reach the mark"
    for text, holds, why in _KNOWN:
        if text in row["name"] and holds(row):
            return why
    if "tflop_per_s" not in row and row.get("of_copy", 0.0) >= _BOUND:
        return f"memory: at {row['of_copy']:.2f} of the rate of a copy"
    return "not known"


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Percentiles for each kind and for all, and the compared rows below the mark, slowest first.

    Rows that stay in L2 have a ratio and no share of the memory's rate.
    """
    kinds = {name: [row for row in rows if KIND_OF.get(row["name"]) == name] for name in NAMES}
    found = {name: _of_kind(some) for name, some in kinds.items() if some}
    below = [row for row in rows if row.get("times_best_peer", math.inf) < MARK]
    below.sort(key=lambda row: float(row["times_best_peer"]))
    return {
        "mark": MARK,
        "kinds": {**found, "all": _of_kind(rows)},
        "below": [
            {
                "name": row["name"],
                "axes": row["axes"],
                "peer": row["best_peer"],
                "ratio": round(row["times_best_peer"], 4),
                "reason": reason(row),
            }
            for row in below
        ],
    }


def _cells(name: str, kind: Mapping[str, Any]) -> list[str]:
    def numbers(values: Mapping[str, float] | None) -> list[str]:
        return [f"{v:.2f}" for v in values.values()] if values else [""] * len(PERCENTILES)

    mean = kind["geometric_mean"]
    return [name, f"{kind['right']}/{kind['rows']}", *numbers(kind["ratio"]),
            "" if mean is None else f"{mean:.2f}", *numbers(kind["of_copy"])]  # fmt: skip


def lines(found: Mapping[str, Any]) -> list[str]:
    """The summary as text."""
    heads = [
        "",
        "right",
        *(f"{p} %" for p in PERCENTILES),
        "mean",
        *(f"{p} %" for p in PERCENTILES),
    ]
    table = [heads, *(_cells(name, kind) for name, kind in found["kinds"].items())]
    width = [max(len(row[i]) for row in table) for i in range(len(heads))]
    text = [
        "ratio of the peer's time to ours, then the share of the rate of a copy, at percentiles"
    ]
    for row in table:
        first, *rest = (cell.rjust(w) for cell, w in zip(row, width, strict=True))
        text.append("  ".join([row[0].ljust(len(first)), *rest]).rstrip())
    if not found["kinds"]["all"]["compared"]:
        return [*text, "no peer ran: there are no ratios"]
    count = len(found["below"])
    text.append(f"{count} below {found['mark']:g}{':' if count else ''}")
    for row in found["below"]:
        axes = " ".join(row["axes"].values())
        text.append(f"  {row['ratio']:.2f}x {row['peer']}  {row['name']} {axes}: {row['reason']}")
    return text


def markdown(found: Mapping[str, Any]) -> str:
    """The summary as two tables: of kinds, and of the rows below the mark."""
    heads = ["kind", "right", *(f"ratio {p} %" for p in PERCENTILES), "mean",
             *(f"of copy {p} %" for p in PERCENTILES)]  # fmt: skip
    table = [heads, ["---", *["---:"] * (len(heads) - 1)]]
    table += [_cells(name, kind) for name, kind in found["kinds"].items()]
    below = [["below", "operation", "shape", "reason"], ["---:", "---", "---", "---"]]
    for row in found["below"]:
        axes = " ".join(row["axes"].values())
        below.append([f"{row['ratio']:.2f}x {row['peer']}", row["name"], axes, row["reason"]])
    return "\n\n".join(
        "\n".join("| " + " | ".join(one) + " |" for one in part) for part in (table, below)
    )
