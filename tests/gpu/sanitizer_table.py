"""Findings compared: compute-sanitizer on a GPU beside kw.checks on the simulated device.

    python tests/gpu/sanitizer_table.py --jobs 8 --out sanitizer

runs every faulty kernel of tests/sim/bugs under memcheck, racecheck, initcheck and synccheck, each
in a process of its own with a time limit, and once on the simulated device. It writes
OUT/sanitizer.json (counts, lines and the tools' summaries) and OUT/sanitizer.md (a table). Needs
kernwright, a GPU, and compute-sanitizer (on PATH, in a CUDA toolkit, or given by --sanitizer).
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "python"))
import bug_corpus

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
PLACES = ("/usr/local/cuda/bin/compute-sanitizer", "/opt/cuda/bin/compute-sanitizer")


def launch(bug: bug_corpus.Bug, place: str) -> None:
    """One launch on the current device; arrays come straight from the driver."""
    import numpy as np

    import kernwright as kw

    device = kw.current_device()
    if not device.is_simulated:
        kw.memory.use(kw.memory.DeviceResource())

    freed = []

    def argument(one: bug_corpus.Argument) -> object:
        if not one.count:
            if one.dtype == "uint64":
                return kw.Pointer(int(one.value))
            return np.dtype(one.dtype).type(one.value)
        if one.value == "iota":
            return kw.asarray(np.arange(one.count).astype(one.dtype))
        if one.value == "zeros":
            return kw.asarray(np.zeros(one.count, one.dtype))
        array = kw.empty(one.count, one.dtype)
        if one.value != "freed":
            return array
        freed.append(array)
        return kw.Pointer(array.ptr)

    source = pathlib.Path(place)
    source.write_text(bug.source)
    arch = "compute_90a" if bug.capability and device.is_simulated else None
    kernel = kw.module(source, options=kw.ProgramOptions(lineinfo=True, arch=arch))["bug"]
    config = kw.LaunchConfig(
        bug.grid, bug.block, None, bug.shared, cooperative=bug.cooperative, cluster=bug.cluster
    )
    arguments = [argument(one) for one in bug.arguments]
    freed.clear()  # from here on, no other argument can get the same address
    device.synchronize()
    kernel.launch(config, *arguments)
    device.synchronize()


def simulated(bug: bug_corpus.Bug) -> dict[str, object]:
    """Kinds and lines found by kw.checks, in this process."""
    import kernwright as kw

    with kw.checks() as report:
        with contextlib.suppress(kw.DeviceFault):  # it is in the report
            launch(bug, f"/tmp/{bug.name}.cu")
    lines: dict[str, list[int]] = {}
    for finding in report:
        lines[finding.kind] = sorted({*lines.get(finding.kind, []), *finding.lines})
    return {"findings": len(report), "lines": lines}


def run(
    command: list[str], device: str, limit: float, capability: str = ""
) -> tuple[int | None, str]:
    """Exit status (None: out of time, the whole group was ended) and output."""
    environment = {**os.environ, "KERNWRIGHT_DEVICE": device}
    if capability:
        environment["KERNWRIGHT_SIM_CAPABILITY"] = capability
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return None, output


def read_tool(tool: str, name: str, status: int | None, output: str) -> dict[str, object]:
    summaries = re.findall(r"=+ ((?:ERROR|RACECHECK) SUMMARY: .*)", output)
    counts = [int(n) for text in summaries for n in re.findall(r"SUMMARY: (\d+)", text)]
    lines = {int(n) for n in re.findall(rf"{name}\.cu:(\d+)", output)}
    text = "\n".join(line for line in output.splitlines() if line.startswith("========="))
    return {
        "tool": tool,
        "status": status,
        "timed_out": status is None,
        "findings": max(counts, default=0),
        "ran": bool(summaries),
        "lines": sorted(lines),
        "summary": summaries[-1] if summaries else output[-300:],
        "text": text[:4000],
    }


def examine(bug: bug_corpus.Bug, sanitizer: str, limit: float) -> dict[str, object]:
    me = [sys.executable, str(pathlib.Path(__file__).resolve()), "--one", bug.name]
    status, output = run([*me, "--sim"], "sim", limit, bug.capability)
    last = output.strip().splitlines()[-1:]
    sim = (
        json.loads(last[0])
        if status == 0 and last
        else {"findings": 0, "lines": {}, "text": output}
    )
    result: dict[str, object] = {
        "name": bug.name,
        "kind": bug.kind,
        "lines": {kind: sorted(lines) for kind, lines in bug.lines.items()},
        "simulated": sim,
    }
    for tool in TOOLS:
        # Error codes of the driver are part of normal work, and no findings.
        command = [sanitizer, "--tool", tool, "--print-limit", "50"]
        command += ["--report-api-errors", "no"] if tool == "memcheck" else []
        status, output = run([*command, *me], "cuda", limit)
        result[tool] = read_tool(tool, bug.name, status, output)
    return result


def cell(result: dict[str, object], wanted: set[int]) -> str:
    if result.get("timed_out"):
        return "hangs"
    if not result["findings"]:
        return "-" if result.get("ran", True) else "?"
    found = result["lines"]
    lines = set(found) if isinstance(found, list) else {n for each in found.values() for n in each}
    return "lines" if lines and lines <= wanted else "found"


def table(results: list[dict[str, object]]) -> str:
    rows = [
        "| kernel | kind | kw.checks | " + " | ".join(TOOLS) + " |",
        "|---|---|---" + "|---" * len(TOOLS) + "|",
    ]
    for result in results:
        wanted = {n for lines in result["lines"].values() for n in lines}
        cells = [cell(result["simulated"], wanted)] + [cell(result[t], wanted) for t in TOOLS]
        rows.append(f"| {result['name']} | {result['kind']} | " + " | ".join(cells) + " |")
    kinds = dict.fromkeys(str(result["kind"]) for result in results)
    rows += [
        "",
        "| kind | kernels | kw.checks | compute-sanitizer, any tool |",
        "|---|---|---|---|",
    ]
    for kind in kinds:
        own = [result for result in results if result["kind"] == kind]
        ours = sum(bool(result["simulated"]["findings"]) for result in own)
        theirs = sum(any(result[tool]["findings"] for tool in TOOLS) for result in own)
        rows.append(f"| {kind} | {len(own)} | {ours} | {theirs} |")
    legend = (
        "`lines`: found at the lines at fault; `found`: found, at other lines or at none;\n"
        "`-`: nothing; `hangs`: out of time; `?`: the tool did not run.\n\n"
    )
    return legend + "\n".join(rows) + "\n"


def find_sanitizer(given: str | None) -> str:
    for place in (given, shutil.which("compute-sanitizer"), *PLACES):
        if place and os.access(place, os.X_OK):
            return place
    raise SystemExit("compute-sanitizer is not here: name it with --sanitizer")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--limit", type=float, default=90, help="seconds for one process")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("sanitizer"))
    parser.add_argument("--sanitizer")
    parser.add_argument("--only", default="", help="part of the kernels' names")
    parser.add_argument("--known", type=pathlib.Path, help="results to keep: no kernel runs twice")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--sim", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        bug = bug_corpus.load(bug_corpus.FOLDER / f"{options.one}.cu")
        if options.sim:
            print(json.dumps(simulated(bug)))
        else:
            launch(bug, f"/tmp/{bug.name}.cu")
        return
    sanitizer = find_sanitizer(options.sanitizer)
    bugs = [bug for bug in bug_corpus.bugs() if options.only in bug.name]
    options.out.mkdir(parents=True, exist_ok=True)
    # Kernels that may hang come last: they keep the GPU busy until their time is up.
    bugs.sort(key=lambda bug: (bug.kind in ("sync", "deadlock"), bug.name))
    results: list[dict[str, object]] = []
    if options.known:
        names = {bug.name for bug in bugs}
        results = [one for one in json.loads(options.known.read_text()) if one["name"] in names]
        done = {one["name"] for one in results}
        bugs = [bug for bug in bugs if bug.name not in done]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = [pool.submit(examine, bug, sanitizer, options.limit) for bug in bugs]
        for job in concurrent.futures.as_completed(jobs):
            results.append(job.result())
            results.sort(key=lambda result: (str(result["kind"]), str(result["name"])))
            (options.out / "sanitizer.json").write_text(json.dumps(results, indent=1))
            (options.out / "sanitizer.md").write_text(table(results))
    print(table(results))


if __name__ == "__main__":
    main()
