"""Writes docs/figures.md and the other pages of speed from the documents in bench/results."""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable

from report_arrays import (
    array_calls,
    attention,
    few_rows,
    operations_page,
    packed_weights,
    wide_attention,
)
from report_kernels import choice_rule, first_calls, published
from report_models import endurance, language_models, loads_and_starts, served, step_profile
from report_products import (
    decoding,
    float8_attention,
    grouped,
    grouped_float8,
    products,
    typed_products,
)
from report_schedule import evictions, first_blocks, latencies, shares, submissions
from report_simulator import simulated, simulator_page
from report_summary import PICTURE, picture, summary
from report_text import HERE, load, table
from report_training import chain, convolutions, losses, recurrences, starts, training
from report_tuning import measuring, searches, sessions, verdicts

DOCS = HERE.parent / "docs"
FIGURES_INTRODUCTION = """\
# Figures

This page is written by `bench/report.py` from the files in `bench/results`; `bench/README.md`
says how each figure was measured. Every result was checked, and the compared programs took turns
in one run. If Kernel Tuner did not measure all configurations, its time is what it would need
for all of them at the same pace. An error by the norm is ||result - expected|| / ||expected||,
with the expected numbers in float64. "Below the bound" stands for results of which the benchmark
kept only that their error is below 1e-2 (attention) or 4e-3 (packed weights).

"""


def launch() -> str | None:
    document = load("launch_overhead")
    if document is None:
        return None
    device = document["machine"]["device"]
    api = document["cpp"]["after"]["kernwright C++ API"]
    results = list(document["python"].items())
    results.insert(1, ("kernwright C++ API (a process of its own)", api))
    rows = [(name, f"{result['median']:.2f} ({result['times']:.2f}x)") for name, result in results]
    columns = ("", "us, median (of the driver's loop in turn with it)")
    return table(f"Launching a 4-argument kernel, {device}:", columns, rows)


def allocation() -> str | None:
    document = load("alloc_cost")
    if document is None:
        return None
    rows = [
        (f"{language}: {name}", f"{result['median']:.3f}")
        for language, part in (
            ("C++", document["cpp, us"] or {}),
            ("Python", document["python"]["us"]),
        )
        for name, result in part.items()
    ]
    device = document["machine"]["device"]
    return table(f"Allocating 4 MB and freeing it, {device}:", ("", "us, median"), rows)


def graphs() -> str | None:
    document = load("graph_replay")
    if document is None:
        return None
    kernels = document["cpp"]["kernels"]
    rows = [
        (f"C++: {name}", f"{result['median'] / kernels:.3f}")
        for name, result in document["cpp"].items()
        if isinstance(result, dict)
    ] + [
        (f"Python: {name}", f"{result['median'] / kernels:.3f}")
        for name, result in document["launch until done"].items()
    ]
    title = f"{kernels} small kernels from launch to end, {document['machine']['device']}:"
    return table(title, ("", "us a kernel, median"), rows)


def transfers() -> str | None:
    document = load("transfer_pipeline")
    if document is None:
        return None
    rows = [
        (
            f"{kind} memory",
            f"{result['serial ms']:.1f} | {result['pipeline ms']:.1f} | "
            f"{result['pipeline / serial']:.2f} | {result['GB/s both ways']:.0f}",
        )
        for kind in ("page-locked", "pageable")
        for result in (document[kind],)
    ]
    title = "Host to device, compute, device to host, in pieces of 16.8 MB"
    columns = "ms one after the other | ms through a TransferEngine | ratio | GB/s both ways"
    return table(f"{title}, {document['machine']['device']}:", ("", columns), rows)


def copies() -> str | None:
    document = load("copy_bandwidth")
    if document is None:
        return None
    rows = [
        (f"{direction}: {subject}", f"{figure:.1f}")
        for direction in ("host to device", "device to host")
        for subject, figure in document[direction].items()
    ]
    title = f"Copies of {document['bytes'] >> 20} MB, {document['machine']['device']}:"
    return table(title, ("", "GB/s, best"), rows)


def compile_cost() -> str | None:
    document = load("compile_cost_gpu")
    if document is None:
        return None
    rows = [
        (f"{source}: {subject}", f"{result['median']:.1f}")
        for source, results in document["results"].items()
        for subject, result in results.items()
    ]
    parallel = document["parallel"]
    variants = f"{parallel['variants']} variants"
    rows.append((f"{variants}, one after the other", f"{parallel['one after the other, ms']:.0f}"))
    processors = parallel["processors"]
    rows.append((f"{variants}, warmup on {processors} cores", f"{parallel['warmup, ms']:.0f}"))
    on_two = document.get("parallel on two")
    if on_two:
        rows.append((f"{variants}, warmup on 2 cores", f"{on_two['warmup, ms']:.0f}"))
    device = document["machine"]["device"]
    return table(f"A new source to object code, {device}:", ("", "ms, median"), rows)


def cached() -> str | None:
    document = load("cache_cost_gpu")
    if document is None:
        return None
    results = document["results"]
    again = results["request again, us"]
    new = results["new process, text to kernel, ms"]
    rows = [(f"asked for again, {name}", f"{again[name]['median'] / 1e3:.4f}") for name in again]
    rows.append(("new process, text to kernel, from the disk", f"{new['from the disk, median']}"))
    if "driver alone, median" in new:
        rows.append(("of which the driver alone", f"{new['driver alone, median']}"))
    rows.append(("new process, text to kernel, compiled", f"{new['compiled']:.1f}"))
    rows += [
        (f"new process, whole, {name}", f"{seconds * 1e3:.0f}")
        for name, seconds in results["new process, whole, s"].items()
    ]
    device = document["machine"]["device"]
    return table(f"A source that was compiled before, {device}:", ("", "ms, median"), rows)


def imports() -> str | None:
    document = load("import_time_gpu")
    if document is None:
        return None
    rows = [
        (name, f"{result['beyond_numpy']:.3f}")
        for name, result in document["results"].items()
        if name != "numpy"
    ]
    return table("Import, beyond Python with NumPy:", ("", "s, median"), rows)


def workers() -> str | None:
    document = load("worker_cost")
    if document is None:
        return None
    one, many = document["one"], document["variants_200"]
    rows = [
        (
            "one small kernel",
            f"{one['in_process_ms']['median']:.1f} (least {one['in_process_ms']['min']:.1f}) | "
            f"{one['worker_ms']['median']:.1f} (least {one['worker_ms']['min']:.1f})",
        ),
        (
            f"200 variants, {document['threads']} threads",
            f"{statistics.median(many['in_process_ms']):.0f} | "
            f"{statistics.median(many['workers_ms']):.0f}",
        ),
    ]
    text = table(
        f"Compiles in worker processes, NVRTC {document['nvrtc']}:",
        ("", "ms, in the process | ms, in workers"),
        rows,
    )
    return (
        f"{text}\nA worker costs some milliseconds for one kernel. What is had for it: a crash,\n"
        "an endless template or too deep a nesting ends a compile and nothing else.\n"
    )


SUBJECTS: dict[str, tuple[Callable[[], str | None], ...]] = {
    "Launches": (launch, graphs),
    "Memory and copies": (allocation, transfers, copies),
    "Compiling, caches, import": (compile_cost, cached, imports, workers, first_calls),
    "Tuning, judging, measuring": (sessions, searches, verdicts, measuring),
    "Calls of array functions": (array_calls,),
    "Matrix products": (products, typed_products, few_rows, packed_weights),
    "Grouped products": (grouped, grouped_float8),
    "Attention": (attention, wide_attention, float8_attention, decoding),
    "Language models": (language_models, loads_and_starts, step_profile, served, endurance),
    "Training": (training, losses, starts, chain),
    "Convolutions and recurrent networks": (convolutions, recurrences),
    "Tasks that share a device": (latencies, first_blocks, shares, submissions, evictions),
    "Published figures, and the rule of choices": (published, choice_rule),
    "The simulated device": (simulated,),
}


def figures_page() -> str:
    parts = []
    for heading, subjects in SUBJECTS.items():
        tables = [text for text in (make() for make in subjects) if text]
        if tables:
            parts.append(f"## {heading}\n\n" + "\n".join(tables))
    return "\n".join([FIGURES_INTRODUCTION + summary(), *parts])


def pages() -> dict[str, str]:
    """The text of each page with results of this machine's kind, by its name in docs/."""
    made = {
        "figures.md": figures_page(),
        PICTURE: picture(),
        "operations_speed.md": operations_page(),
        "simulator_speed.md": simulator_page(),
    }
    return {name: text for name, text in made.items() if text is not None}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; name pages that would change"
    )
    options = parser.parse_args()
    stale = [
        name
        for name, text in pages().items()
        if not (DOCS / name).is_file() or (DOCS / name).read_text() != text
    ]
    for name in stale:
        print(f"docs/{name} {'differs from' if options.check else 'is written from'} the results")
        if not options.check:
            (DOCS / name).write_text(pages()[name])
    return int(options.check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
