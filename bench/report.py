"""Writes docs/figures.md and the other pages of speed from the documents in bench/results."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Callable
from typing import Any

from report_arrays import (
    array_calls,
    attention,
    few_rows,
    packed_weights,
    write_operations_page,
)
from report_kernels import choice_rule, first_calls, published
from report_products import (
    decoding,
    float8_attention,
    grouped,
    grouped_float8,
    products,
    products_of_types,
)
from report_text import HERE, load, table

FIGURES = HERE.parent / "docs" / "figures.md"
FIGURES_INTRODUCTION = """\
# Figures

This page is written by `bench/report.py` from the files in `bench/results`; `bench/README.md`
says how each figure was measured. Every result was checked, and the compared programs took turns
in one run. If Kernel Tuner did not measure all configurations, its time is what it would need
for all of them at the same pace. An error by the norm is ||result - expected|| / ||expected||,
with the expected numbers in float64. "Below the bound" stands for results of which the benchmark
kept only that their error is below 1e-2 (attention) or 4e-3 (packed weights).

"""
SIMULATOR = HERE.parent / "docs" / "simulator_speed.md"
SIMULATOR_INTRODUCTION = """\
# How fast the simulated device is

Written by `bench/report.py` from `bench/results/sim_kernels.json` and `sim_peers.json`. Every
result was checked; every access was checked for bounds, alignment and use after free.

"""
SIMULATOR_NOTES = """\
The loop is the plain C++ one that `g++ -O2` compiles: three nested loops for sgemm.

What a user should know:

- Blocks run side by side on `KERNWRIGHT_SIM_THREADS` host threads (all cores by default). These
  threads do not run on the processor of the launching thread. After more than 50 microseconds of
  work they poll for the next launch for as long, and then sleep.
- The best instruction set of the processor is used; `KERNWRIGHT_SIM_ISA` names another one.
- Values that depend only on parameters, thread indices and the launch's shape are computed once for
  each warp and launch. So many small blocks cost little more than few large ones.
- Shared-memory accesses with a fixed address are checked once per warp. Others are
  recognised by their shape: same address, neighbours, two halves. Scattered ones go lane by lane.
- `x[i]` of neighbours in global memory is one step: product, sum and access, also under the checks.
  The increment of a counted loop, its comparison and its branch are one step too.
- Memory of the device takes the host's memory when it is first touched.
- The race and init checks ([checks.md](checks.md)) are measured with one host thread. For a warp's
  neighbouring accesses they keep one record for sixteen words. Reads of shared memory are recorded
  when somebody writes to it; a barrier in between makes them history. Stores of lanes that are far
  apart look only at the records of their words, if a stretch of 64 KiB has no others.
"""

SEARCH_NOTES = """\
The marks of the portfolio are 0.87 / 0.93 / 0.98 / 0.90. On the convolution it misses the first
two, and so does every other search in the table. Good configurations are few there: of 4362, 5 are
within 0.87 of the optimum, 2 within 0.93 and 1 within 0.98. Of the 11130 of the dedispersion 67, 34
and 11 are, and the portfolio reaches all marks.
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


def simulated() -> str | None:
    document = load("sim_kernels")
    if document is None:
        return None
    rows = [
        (name, f"{result['simulated_ms']['median']:.1f} ({result['plain_loop_ms']['median']:.1f})")
        for name, result in document.items()
        if isinstance(result, dict) and "simulated_ms" in result
    ]
    machine = f"{document['processor']} ({document['instruction_set']})"
    title = f"The simulated device, one core of {machine}, every access checked:"
    return table(title, ("", "ms, median (a plain C++ loop)"), rows)


def searches() -> str | None:
    document = load("tune_replay")
    if document is None:
        return None
    tables = document["tables"]
    names = [name for name in next(iter(tables.values()))["strategies"] if "brute" not in name]

    def cell(result: dict[str, Any] | str) -> str:
        if isinstance(result, str):
            return "failed"
        figures = [result[f"mean at {n}"] for n in (50, 100, 200)]
        return " / ".join(f"{f:.2f}" for f in [*figures, result["10th percentile at 200"]])

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
    return f"{text}\n{SEARCH_NOTES}"


def in_milliseconds(result: dict[str, Any] | None) -> str:
    return f"{result['processor_min']:.2f}" if result else ""


def cost_of_checks(result: dict[str, Any] | None) -> str:
    """The time with checks, and its ratio to the time without."""
    return f"{in_milliseconds(result['checked_ms'])} ({result['times']:.1f}x)" if result else ""


def kernels_page() -> str | None:
    document = load("sim_kernels")
    if document is None or "module_load" not in document:
        return None
    sets = [document["instruction_set"], "avx2", "baseline"]
    header = ["", *sets, "2 threads", "race + init checks", "all checks", "C++ loop"]
    lines = [
        f"Best of {document['rounds']} runs in ms of processor time, {document['processor']}. Two\n"
        "threads: elapsed, how many times faster than one, and how many times one process's work\n"
        "two do on that machine (medians of rounds that take turns):\n",
        "| " + " | ".join(header) + " |",
        "|---" * len(header) + "|",
    ]
    for name, result in document.items():
        if not isinstance(result, dict) or "simulated_ms" not in result:
            continue
        others = result["others_ms"]
        cells = [name, in_milliseconds(result["simulated_ms"])]
        cells += [in_milliseconds(others.get(name)) for name in sets[1:]]
        two = result["two_threads_ms"]
        cells += [f"{two['min']:.2f} ({two['times']:.2f}x; {two['machine_times']:.2f}x)"]
        cells += [cost_of_checks(result.get(checks)) for checks in ("race_and_init", "all_checks")]
        cells += [in_milliseconds(result["plain_loop_ms"])]
        lines.append("| " + " | ".join(cells) + " |")
    loading, memory = document["module_load"], document["memory"]
    return "\n".join(lines) + (
        f"\n\nLoading a module of {loading['lines']} lines, from text to code: "
        f"{loading['load_ms']['min']:.2f} ms. {memory['allocated'] >> 20} MB of\ndevice memory "
        f"take {memory['resident_after_allocation'] >> 10} kB of the host's until touched.\n"
    )


def peers_page() -> str | None:
    document = load("sim_peers")
    if document is None:
        return None
    works = {"saxpy_1m": "saxpy, 1 M", "sgemm_tiled_256": "sgemm, 256 x 256"}
    rows = [
        (
            name.replace("_", " "),
            " | ".join(
                f"{document[work][name]['whole_ms']:.1f} "
                f"({document[work][name]['times_kernwright']:.1f}x)"
                for work in works
            ),
        )
        for name in document["saxpy_1m"]
    ]
    title = (
        f"Beside other ways to run such code without a GPU, {document['machine']['processor']},\n"
    )
    title += "ms of processor time (and how many times ours):"
    return table(title, ("", " | ".join(works.values())), rows)


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
    series = one["time, s"]
    text = (
        f"Two marks are missed: {one['verdict median, s']:.2f} s for a verdict instead of 0.6 s, "
        f"and {document['verdicts a second']} verdicts a second instead of 5. The timed series "
        f"take {series:.2f} s of a verdict. In a series each array goes to the device right before "
        "its launch and comes back right after it, so that no other launch finds it, and every "
        "result is compared. One judgement at a time uses the GPU, because two would disturb each "
        f"other's times: one after the other, {series:.2f} s each are {1 / series:.1f} verdicts a "
        "second, however many workers there are."
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


def write_simulator_page() -> None:
    parts = [part for part in (kernels_page(), peers_page()) if part]
    if parts:
        SIMULATOR.write_text(SIMULATOR_INTRODUCTION + "\n".join([*parts, SIMULATOR_NOTES]))


SUBJECTS: dict[str, tuple[Callable[[], str | None], ...]] = {
    "Launches": (launch, graphs),
    "Memory and copies": (allocation, transfers, copies),
    "Compiling, caches, import": (compile_cost, cached, imports, workers, first_calls),
    "Tuning, judging, measuring": (sessions, searches, verdicts, measuring),
    "Calls of array functions": (array_calls,),
    "Matrix products": (products, products_of_types, few_rows, packed_weights),
    "Grouped products": (grouped, grouped_float8),
    "Attention": (attention, float8_attention, decoding),
    "Published figures, and the rule of choices": (published, choice_rule),
    "The simulated device": (simulated,),
}


def main() -> None:
    write_simulator_page()
    write_operations_page()
    parts = []
    for heading, subjects in SUBJECTS.items():
        tables = [text for text in (make() for make in subjects) if text]
        if tables:
            parts.append(f"## {heading}\n\n" + "\n".join(tables))
    FIGURES.write_text(FIGURES_INTRODUCTION + "\n".join(parts))


if __name__ == "__main__":
    main()
