"""The page of the simulated device's speed, and its table in the figures, for report.py."""

from __future__ import annotations

from typing import Any

from report_text import load, table

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


def in_milliseconds(result: dict[str, Any] | None) -> str:
    return f"{result['processor_min']:.2f}" if result else ""


def check_cost(result: dict[str, Any] | None) -> str:
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
        cells += [check_cost(result.get(checks)) for checks in ("race_and_init", "all_checks")]
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


def simulator_page() -> str | None:
    parts = [part for part in (kernels_page(), peers_page()) if part]
    return SIMULATOR_INTRODUCTION + "\n".join([*parts, SIMULATOR_NOTES]) if parts else None
