"""Products of groups of float8 rows with scales of blocks, ours beside torch's and our bfloat16.

Cases are those of DeepGEMM's tables of grouped products, whose published figures stand beside ours
(its README at the first release, commit a6d97a1, on an H800: another machine), and layers of
grouped.py. DeepGEMM itself takes turns with ours where its package is installed.

Like is compared with like: ours with scales of blocks with DeepGEMM, and each kind of accumulation
with scales of rows with the fastest of torch's (grouped_float8_runs.py). Errors are against the
float8 numbers times their scales, in float64. Kernels below 50 us are measured by graphs of
launches over rotating operands (replays.py). The simulated device checks only the results, with
small shapes and no timing.
"""

from __future__ import annotations

import argparse
import functools
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import grouped
import numpy as np
import replays
from grouped_float8_runs import (
    FAST,
    SOURCE,
    TINY,
    Case,
    Operands,
    candidates,
    cases,
    operands,
    ours,
    runs,
)

import harness
import kernwright as kw
from kernwright import _core

TOLERANCE = 4e-3
SHORT = 50  # us
PEERS = ("torch", "DeepGEMM")


def relative_error(case: Case, arrays: Operands, result: kw.Array) -> float:
    """||out - reference|| / ||reference|| of the groups' first and last rows, in float64."""
    x, weights, scale_a, scale_b = arrays.blocks
    ends, columns = np.cumsum(case.sizes), min(case.n, 256)
    wrong = right = 0.0
    for group in np.unique(np.linspace(0, len(ends) - 1, 8).astype(int)):
        if case.sizes[group] == 0:
            continue
        edges = np.unique([ends[group] - case.sizes[group], ends[group] - 1])
        rows = kw.asarray(edges)
        each = np.repeat(kw.take(scale_a, rows, axis=0).numpy().astype(np.float64), 128, 1)
        left = kw.take(x, rows, axis=0).numpy().astype(np.float64) * each[:, : case.k]
        tiles = scale_b[int(group)].numpy().astype(np.float64)
        each = np.repeat(np.repeat(tiles, 128, 0), 128, 1)[:columns, : case.k]
        expected = left @ (weights[int(group), :columns].numpy().astype(np.float64) * each).T
        got = kw.take(result, rows, axis=0).numpy().astype(np.float64)[:, :columns]
        wrong += float(((got - expected) ** 2).sum())
        right += float((expected**2).sum())
    return (wrong / right) ** 0.5 if right else 0.0


def figures(
    case: Case, arrays: Operands, options: argparse.Namespace, torch: Any
) -> tuple[str, dict[str, dict[str, Any]]]:
    """How the subjects were measured, and the figures of each."""

    def make_runs(arrays: Operands) -> dict[str, Callable[[], Any]]:
        return candidates(case, arrays) if options.candidates else runs(case, arrays, torch)

    problem = grouped.Problem(
        arrays.blocks[0], arrays.blocks[1], arrays.numbers, np.array(case.sizes)
    )
    subjects = make_runs(arrays)
    taken = grouped.alternate(problem, subjects, options, torch)
    for figure in taken.values():
        figure.pop("TB/s of weights", None)
    if min(figure.get("us", SHORT) for figure in taken.values()) >= SHORT:
        return "single launches", taken
    count = replays.copy_count(arrays.blocks[0].nbytes + arrays.blocks[1].nbytes)
    copies = [subjects, *(make_runs(operands(case, seed)) for seed in range(1, count))]

    def maker(title: str) -> replays.Replay:
        launches = [each[title] for each in copies]
        return (
            replays.Theirs(torch, launches) if title.startswith(PEERS) else replays.Ours(launches)
        )

    all_of = replays.figures({title: functools.partial(maker, title) for title in subjects})
    return "replays", {
        title: us if isinstance(us, dict) else
        {"us": round(us, 2), "TFLOP/s": round(problem.products / us / 1e6, 1)}
        for title, us in all_of.items()
    }  # fmt: skip


def ratios(taken: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Times as fast as the fastest peer with accumulation of the same kind."""

    def fastest(titles: list[str]) -> float | None:
        return min((taken[title]["us"] for title in titles if "us" in taken[title]), default=None)

    torchs = [title for title in taken if title.startswith("torch")]
    pairs = {
        "of DeepGEMM": ("ours", ["DeepGEMM"] if "DeepGEMM" in taken else []),
        "of torch": ("ours, scales of rows", [t for t in torchs if not t.endswith(FAST)]),
        "of torch" + FAST: ("ours, scales of rows" + FAST, [t for t in torchs if t.endswith(FAST)]),
    }
    return {
        name: round(best / taken[our_title]["us"], 3)
        for name, (our_title, peers) in pairs.items()
        if our_title in taken and (best := fastest(peers))
    }


def measure(case: Case, options: argparse.Namespace, torch: Any) -> dict[str, Any]:
    arrays = operands(case)
    groups, rows = len(case.sizes), sum(case.sizes)
    row: dict[str, Any] = {
        "case": case.title,
        "groups": groups,
        "rows": rows,
        "n": case.n,
        "k": case.k,
        "choice": _core._grouped_choice(
            rows,
            case.n,
            case.k,
            groups,
            of_blocks=True,
            capacity=case.sizes[0] if case.is_masked else 0,
        ),
    }
    if case.published:
        row["published"] = {"TFLOP/s": case.published, "source": SOURCE}
    row["error"] = relative_error(case, arrays, ours(case, arrays)().reshape(rows, case.n))
    row["correct"] = row["error"] < TOLERANCE
    if kw.current_device().is_simulated:
        return row
    row["by"], row["figures"] = figures(case, arrays, options, torch)
    return row | ratios(row["figures"])


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "-o", "--output", type=pathlib.Path, default=harness.RESULTS / "grouped_float8.json"
    )
    parser.add_argument("--candidates", action="store_true", help="measure every tile")
    parser.add_argument("--cases", type=int, nargs="+", help="only these, from 0")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.1, help="of a measurement of a round")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    torch = grouped.torch_or_none()
    chosen = TINY if kw.current_device().is_simulated else cases()
    if options.cases:
        chosen = [chosen[number] for number in options.cases]
    document: dict[str, Any] = {
        "subject": "grouped float8", "machine": harness.machine(), "rows": []
    }  # fmt: skip
    for case in chosen:
        row = measure(case, options, torch)
        print(row, file=sys.stderr, flush=True)
        document["rows"].append(row)
        document["correct"] = all(each["correct"] for each in document["rows"])
        harness.save(options.output, document)
    harness.write(options.output, document)


if __name__ == "__main__":
    main()
