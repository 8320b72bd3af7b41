"""Figures of tuning, judging and measuring, for report.py."""

from __future__ import annotations

import textwrap
from typing import Any

from report_text import load, table

# Parts of the optimum after 50, 100 and 200 evaluations, and the 10th percentile after 200.
SEARCH_MARKS = (0.87, 0.93, 0.98, 0.90)
SEARCH_FIGURES = ("mean at 50", "mean at 100", "mean at 200", "10th percentile at 200")
VERDICT_MARK, RATE_MARK = 0.6, 5  # seconds, verdicts a second


def sessions() -> str | None:
    document = load("tune_session")
    if document is None:
        return None
    rows = []
    for name, result in document["results"].items():
        ours, peer = result["ours"], result["kernel_tuner"]
        ratio = result["winners in turns"]["ratio"][1]
        rows.append(
            (
                f"{name} ({result['dominated by']})",
                f"{ours['seconds']:.1f} | {result['kernel_tuner, seconds for all']:.1f} "
                f"({peer['evaluations']} measured) | {result['times as fast']:.1f} | {ratio:.3f}",
            )
        )
    columns = "s, kernwright | s, Kernel Tuner | times as fast | our winner's time / theirs"
    title = f"Tuning {document['count']} configurations, {document['machine']['device']}:"
    return table(title, ("", columns), rows)


def searches() -> str | None:
    document = load("tune_replay")
    if document is None:
        return None
    tables = document["tables"]
    names = [name for name in next(iter(tables.values()))["strategies"] if "brute" not in name]

    def cell(result: dict[str, Any] | str) -> str:
        if isinstance(result, str):
            return "failed"
        return " / ".join(f"{result[name]:.2f}" for name in SEARCH_FIGURES)

    rows = [
        (
            name.replace("_", " "),
            " | ".join(cell(table["strategies"][name]) for table in tables.values()),
        )
        for name in names
    ]
    title = (
        "Searches replayed on brute-force tables: the part of the optimum that is found after 50,\n"
        "100 and 200 evaluations, and the 10th percentile after 200; means over "
        f"{document['seeds']} seeds, beside\nKernel Tuner {document['kernel_tuner']}:"
    )
    columns = " | ".join(name.removesuffix("_T4").replace("_", ", ") for name in tables)
    text = table(title, ("", columns), rows)
    return f"{text}\n{search_notes(tables)}"


def search_notes(tables: dict[str, Any]) -> str:
    """The marks that our default search misses, and how many configurations are good."""
    marks = " / ".join(f"{mark:.2f}" for mark in SEARCH_MARKS)
    notes = [f"The marks of the portfolio are {marks}."]
    for name, results in tables.items():
        found = results["strategies"]["kernwright portfolio"]
        pairs = zip(SEARCH_FIGURES, SEARCH_MARKS, strict=True)
        missed = [figure for figure, mark in pairs if round(found[figure], 2) < mark]
        what = f"misses those of the {' and the '.join(missed)}" if missed else "reaches all"
        title = name.removesuffix("_T4").replace("_", ", ")
        note = f"On {title!r} it {what}."
        if "within" in results:
            within = ", ".join(f"{count} reach {mark}" for mark, count in results["within"].items())
            note += f" Of its {results['configurations']} configurations {within} of the optimum."
        notes.append(note)
    return textwrap.fill(" ".join(notes), 100) + "\n"


def verdicts() -> str | None:
    document = load("judge_gpu")
    if document is None:
        return None
    one, lost = document["one at a time"], document["recovery"]
    attacks, right = document["attacks"], document["right kernels"]
    rows = [
        (f"a verdict on {one['elements']} elements, s", f"{one['verdict median, s']:.2f}"),
        (f"verdicts a second, {document['workers']} workers", document["verdicts a second"]),
        ("attacks accepted", f"{len(attacks['accepted'])} of {attacks['attacks']}"),
        ("right kernels refused", f"{len(right['refused'])} of {right['kernels']}"),
    ] + [
        (f"a verdict right after an {name}, s", f"{lost[name]['next verdict, s']:.2f}")
        for name in ("illegal address", "endless loop")
    ]
    text = table(f"The judge, {document['machine']['device']}:", ("", ""), rows)
    return f"{text}\n{judge_notes(one, document)}"


def judge_notes(one: dict[str, Any], document: dict[str, Any]) -> str:
    """Which of the marks are missed, and why."""
    series, verdict, rate = (
        one["time, s"],
        one["verdict median, s"],
        document["verdicts a second"],
    )
    missed = []
    if verdict > VERDICT_MARK:
        missed.append(f"{verdict:.2f} s for a verdict instead of {VERDICT_MARK} s")
    if rate < RATE_MARK:
        missed.append(f"{rate} verdicts a second instead of {RATE_MARK}")
    text = f"Marks that are missed: {', and '.join(missed)}. " if missed else ""
    text += (
        f"The timed series take {series:.2f} s of a verdict. In a series each array goes to the "
        "device right before its launch and comes back right after it, so that no other launch "
        "finds it, and every result is compared. One judgement at a time uses the GPU, because two "
        f"would disturb each other's times: one after the other, {series:.2f} s each are "
        f"{1 / series:.1f} verdicts a second, however many workers there are."
    )
    return textwrap.fill(f"{text} {document.get('note', '')}".rstrip(), 100) + "\n"


def measuring() -> str | None:
    document = load("measure")
    if document is None or "workers" not in document:
        return None
    workers = {row["subject"]: row for row in document["workers"]}
    rows = [
        (
            row["subject"],
            f"{row['ours_ms'] * 1e3:.3f} | {row['ratio']:.4f} | "
            f"{row['do_bench_ratio']:.4f} | {workers[row['subject']]['ratio']:.4f}",
        )
        for row in document["subjects"]
    ]
    title = f"The time of a kernel with a cold L2 cache, {document['device']}:"
    columns = (
        "us | of nvbench's recipe | Triton's do_bench of nvbench's | used worker of a fresh one"
    )
    text = table(title, ("", columns), rows)
    outside = [row for row in document["workers"] if abs(row["ratio"] - 1) > 0.01]
    for row in outside:
        used, fresh = row["persistent_ms"] * 1e3, row["fresh_ms"] * 1e3
        note = (
            "One mark is missed: used and fresh workers agree within 1 %, but for "
            f"{row['subject']!r} ({row['ratio']:.4f}), with {used:.3f} us and {fresh:.3f} us. "
            "Events of this GPU count in steps of 0.032 us. The two times differ by "
            f"{round((used - fresh) / 0.032)} steps, and one step is {3.2 / fresh:.1f} % of them."
        )
        text += f"\n{textwrap.fill(note, 100)}\n"
    return text
