"""Construction of constrained spaces from T1 files: ours and Kernel Tuner's Searchspace.

    tune_space.py T1... [--peer-python PYTHON] [--json OUT]

Each in its own process: seconds (the best of three), the peak of resident memory, the count.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys

import harness

OURS = """
import json, resource, sys, time
import kernwright as kw
kw.tune.Space(a=[1]).size
start = time.perf_counter()
space = kw.tune.Space.from_t1(sys.argv[1])
size = space.size
seconds = time.perf_counter() - start
start = time.perf_counter()
space.sample(1000, 0)
sample = time.perf_counter() - start
start = time.perf_counter()
for config in space:
    pass
listed = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
print(json.dumps({"configurations": size, "combinations": space.combinations, "seconds": seconds,
                  "1000 samples, s": sample, "walk through all, s": listed,
                  "peak MB": peak}))
"""
ROUNDS = 3


def best_run(command: list[str]) -> dict[str, float] | str:
    runs = []
    for _ in range(ROUNDS):
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode != 0:
            lines = run.stderr.strip().splitlines() or ["no message"]
            return f"failed: {lines[-1]}"
        runs.append(json.loads(run.stdout.splitlines()[-1]))
    return min(runs, key=lambda result: result["seconds"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="T1")
    parser.add_argument("--peer-python", default=sys.executable, help="one that has kernel_tuner")
    parser.add_argument(
        "--json", type=pathlib.Path, default=harness.RESULTS / "tune_space.json", metavar="OUT"
    )
    options = parser.parse_args()
    peer = str(pathlib.Path(__file__).with_name("tune_peer.py"))
    spaces = {}
    for path in options.files:
        measured = best_run([sys.executable, "-c", OURS, str(path)])
        other = best_run([options.peer_python, peer, "space", str(path)])
        row = {"kernwright": measured, "kernel_tuner": other}
        if isinstance(measured, dict) and isinstance(other, dict):
            row["same count"] = measured["configurations"] == other["configurations"]
        spaces[path.stem] = row
    harness.write(
        options.json, {"subject": "tune_space", "machine": harness.machine(), "spaces": spaces}
    )


if __name__ == "__main__":
    main()
