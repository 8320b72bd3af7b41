"""Draws rooflines of results: measured rates over operations a byte, and the device's limits.

    bench/roofline.py                    docs/pictures/roofline_<subject>.svg for each of SUBJECTS
    bench/roofline.py gemm -r DIR -o DIR

The slanted roof is the memory's rate, the flat one that of the tensor cores. A point is one way of
computing one row of a document in results/. Failed or wrong rows are left out and named. A device
without a data sheet in the package gets only points. Needs matplotlib.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kernwright._support.data_sheets import data_sheet

HERE = pathlib.Path(__file__).parent
MARKERS = "osD^vP*X<>"


class Point(NamedTuple):
    """One time: the subject, operations per necessary byte of memory, TFLOP/s."""

    who: str
    intensity: float
    rate: float


class Work(NamedTuple):
    """The work of a row: operations, and the least bytes to read and write."""

    flops: float
    bytes: float


def gemm_work(row: dict[str, Any], who: str) -> Work:
    rows, columns, inner = row["shape"]
    element = 4 if row["dtype"] == "float32" else 2
    moved = rows * inner + inner * columns + rows * columns
    return Work(2.0 * rows * columns * inner, element * moved)


def gemv_work(row: dict[str, Any], who: str) -> Work:
    m, n, k = row["m"], row["n"], row["k"]
    weight = {"float8_e4m3fn": 1, "int8": 1, "float32": 4}.get(row["weights"], 2)
    return Work(2.0 * m * n * k, weight * n * k + 2 * (m * k + m * n))


def packed_work(row: dict[str, Any], who: str) -> Work:
    m, n, k = row["m"], row["n"], row["k"]
    weights = 2 * n * k if who.endswith("bfloat16") else row["bytes"]
    return Work(2.0 * m * n * k, weights + 2 * (m * k + m * n))


def attention_work(row: dict[str, Any], who: str) -> Work:
    queries = row["batch"] * row["heads"] * row["queries"] * row["dim"]
    cached = 2 * row["batch"] * row["kv_heads"] * row["keys"] * row["dim"]
    half = 2 if row.get("causal") else 1
    element = 1 if who.endswith(("float8", "int8")) else 2
    if row.get("subject") == "backward":  # five products; all operands and three gradients
        return Work(10.0 * queries * row["keys"] / half, 2 * element * cached + 2 * 4 * queries)
    return Work(4.0 * queries * row["keys"] / half, element * cached + 2 * 2 * queries)


def grouped_work(row: dict[str, Any], who: str) -> Work:
    rows, n, k = row["rows"], row["n"], row["k"]
    ours = row["figures"]["ours"]
    weights = ours["TB/s of weights"] * ours["us"] * 1e6  # of the groups with rows
    return Work(2.0 * rows * n * k, weights + 2 * rows * (n + k))


class Subject(NamedTuple):
    """One picture: its document, the work of a row, which rows and which of their times."""

    document: str
    work: Callable[[dict[str, Any], str], Work]
    ways: tuple[str, ...] = ()  # beside "ours" and those that begin with "torch"; empty: all


SUBJECTS: dict[str, Subject] = {
    "gemm": Subject("gemm", gemm_work),
    "gemv": Subject("gemv", gemv_work),
    "packed": Subject("gemv_formats", packed_work),
    "attention": Subject("attention", attention_work),
    "decode": Subject(
        "decode_attention",
        attention_work,
        ways=("ours, pages of 16", "ours, float8", "ours, int8"),
    ),
    "grouped": Subject("grouped", grouped_work, ways=("ours",)),
}


def point_name(row: dict[str, Any], who: str) -> str:
    return f"{who}, backward" if row.get("subject") == "backward" else who


def make_points(subject: str, document: dict[str, Any]) -> Iterator[Point]:
    """All times of a subject in its document. Prints what it leaves out."""
    spec = SUBJECTS[subject]
    for number, row in enumerate(document["rows"]):
        if not row.get("correct", True):
            print(f"{subject}: row {number} was wrong and is left out", file=sys.stderr)
            continue
        for who, found in row.get("figures", row).items():
            known = who == "ours" or who.startswith("torch") or not spec.ways or who in spec.ways
            if not isinstance(found, dict) or not known:
                continue
            if "error" in found:
                print(f"{subject}: {who} of row {number}: {found['error']}", file=sys.stderr)
            if "us" not in found:
                continue
            work = spec.work(row, who)
            yield Point(
                point_name(row, who), work.flops / work.bytes, work.flops / found["us"] / 1e6
            )


def read_roofs(device: str) -> tuple[float, float] | None:
    """TFLOP/s of dense 16-bit products with accumulators in float32, and TB/s of memory."""
    sheet = data_sheet(device)
    return None if sheet is None else (sheet.flops / 1e12, sheet.bandwidth / 1e12)


def draw(subject: str, document: dict[str, Any], path: pathlib.Path) -> int:
    """Writes the picture and returns its number of points; with no points it writes none."""
    import matplotlib

    matplotlib.use("svg")
    # Text stays text, and the file is reproducible.
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "kernwright"})
    from matplotlib import pyplot

    points = list(make_points(subject, document))
    if not points:
        return 0
    device = document["machine"]["device"]
    figure, axes = pyplot.subplots(figsize=(7.5, 4.5), layout="constrained")
    rates = [p.rate for p in points]
    most = max(rates)
    low = min(p.intensity for p in points) / 2
    high = max(p.intensity for p in points) * 2
    roofs = read_roofs(device)
    if roofs is not None:
        flat, memory = roofs
        most = max(most, flat)
        ridge = flat / memory
        low, high = min(low, ridge / 2), max(high, ridge * 2)
        axes.plot([low, ridge, high], [low * memory, flat, flat], color="black", linewidth=1)
        axes.annotate(f"{flat:g} TFLOP/s", (high, flat), ha="right", va="bottom")
        axes.annotate(f"{memory:g} TB/s", (ridge, flat * 0.6), ha="right", va="top")
    names = sorted({p.who for p in points}, key=lambda who: (not who.startswith("ours"), who))
    for number, who in enumerate(names):
        selected = [p for p in points if p.who == who]
        marker = MARKERS[number % len(MARKERS)]
        axes.scatter(
            [p.intensity for p in selected],
            [p.rate for p in selected],
            s=22,
            label=who,
            marker=marker,
        )
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(min(rates) / 1.3, 1.3 * most))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:.0e}"[0] in "25" else "")
    axes.set_xlabel("operations a byte")
    axes.set_ylabel("TFLOP/s")
    axes.set_title(f"{subject} on {device}")
    axes.grid(which="major", alpha=0.3)
    figure.legend(fontsize="small", loc="outside lower center", ncols=4)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
    return len(points)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("subjects", nargs="*", choices=[[], *SUBJECTS], help="all of them")
    parser.add_argument("-r", "--results", type=pathlib.Path, default=HERE / "results")
    parser.add_argument(
        "-o", "--output", type=pathlib.Path, default=HERE.parent / "docs" / "pictures"
    )
    options = parser.parse_args(arguments)
    for subject in options.subjects or SUBJECTS:
        source = options.results / f"{SUBJECTS[subject].document}.json"
        if not source.exists():
            print(f"{subject}: there is no {source}", file=sys.stderr)
            continue
        target = options.output / f"roofline_{subject}.svg"
        count = draw(subject, json.loads(source.read_text()), target)
        print(f"{target}: {count} points" if count else f"{subject}: nothing was timed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
