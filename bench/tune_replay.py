"""Searches replayed on brute-force tables (T4 files): ours and Kernel Tuner's strategies.

    tune_replay.py TABLE... [--strategies a,b] [--seeds 25] [--peer-python PYTHON] [--json OUT]

Each figure compares the best configuration after some evaluations (failures count) with the
optimum: the mean over seeds at 50, 100 and 200, and the 10th percentile at 200.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import time

import harness
import kernwright as kw

MARKS = (50, 100, 200)
WITHIN = (0.87, 0.93, 0.98)  # parts of the optimum
PEERS = (
    "random_sample", "genetic_algorithm", "simulated_annealing", "diff_evo", "greedy_ils", "mls",
    "pso", "dual_annealing", "hybrid_vndx", "adaptive_tabu_greywolf",
)  # fmt: skip


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def summary(best: float, traces: list[list[float]]) -> dict[str, float]:
    def part(trace: list[float], evaluations: int) -> float:
        return best / trace[min(evaluations, len(trace)) - 1] if trace else 0.0

    result = {f"mean at {n}": round(statistics.fmean(part(t, n) for t in traces), 4) for n in MARKS}
    last = [part(trace, MARKS[-1]) for trace in traces]
    result["10th percentile at 200"] = round(percentile(last, 0.1), 4)
    return result


def within(table: kw.tune.Table, mark: float) -> int:
    """How many configurations reach so much of the optimum."""
    return sum(cost is not None and table.best_cost / cost >= mark for cost in table.costs.values())


def ours(table: kw.tune.Table, name: str, seeds: int, batch: int) -> dict[str, float]:
    start = time.perf_counter()
    traces = [table.replay(name, MARKS[-1], seed=seed, batch=batch) for seed in range(seeds)]
    seconds = time.perf_counter() - start
    steps = sum(len(trace) for trace in traces)
    return {**summary(table.best_cost, traces), "ms a proposal": round(seconds / steps * 1e3, 3)}


def peer(python: str, path: pathlib.Path, name: str, seeds: int) -> dict[str, float] | str:
    script = pathlib.Path(__file__).with_name("tune_peer.py")
    command = [python, script, "replay", path, name, str(seeds), str(MARKS[-1])]
    run = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if run.returncode != 0:
        lines = run.stderr.strip().splitlines() or ["no message"]
        return f"failed: {lines[-1]}"
    document = json.loads(run.stdout.splitlines()[-1])
    return summary(document["best"], document["traces"])


def peer_version(python: str) -> str | None:
    code = "import importlib.metadata as m; print(m.version('kernel_tuner'))"
    run = subprocess.run([python, "-c", code], capture_output=True, text=True)
    return run.stdout.strip() if run.returncode == 0 else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="+", type=pathlib.Path, metavar="TABLE")
    parser.add_argument("--strategies", default=",".join(kw.tune.strategies()))
    parser.add_argument("--seeds", type=int, default=25)
    parser.add_argument("--batch", type=int, default=1, help="configurations asked at a time")
    parser.add_argument("--peer-python", default=sys.executable, help="one that has kernel_tuner")
    parser.add_argument("--peers", default=",".join(PEERS), help="Kernel Tuner's strategies")
    parser.add_argument(
        "--json", type=pathlib.Path, default=harness.RESULTS / "tune_replay.json", metavar="OUT"
    )
    options = parser.parse_args()
    version = peer_version(options.peer_python)
    document = {
        "subject": "tune_replay",
        "machine": harness.machine(),
        "kernel_tuner": version,
        "seeds": options.seeds,
        "batch": options.batch,
        "tables": {},
    }
    for path in options.tables:
        table = kw.tune.Table.from_t4(path)
        rows = {}
        for name in filter(None, options.strategies.split(",")):
            rows[f"kernwright {name}"] = ours(table, name, options.seeds, options.batch)
            print(path.name, name, rows[f"kernwright {name}"], file=sys.stderr)
        for name in filter(None, options.peers.split(",")) if version else ():
            rows[f"kernel_tuner {name}"] = peer(options.peer_python, path, name, options.seeds)
            print(path.name, name, rows[f"kernel_tuner {name}"], file=sys.stderr)
        failed = sum(cost is None for cost in table.costs.values())
        document["tables"][path.name.removesuffix(".gz").removesuffix(".json")] = {
            "configurations": len(table),
            "failed": failed,
            "within": {mark: within(table, mark) for mark in WITHIN},
            "strategies": rows,
        }
    harness.write(options.json, document)


if __name__ == "__main__":
    main()
