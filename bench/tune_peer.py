"""Kernel Tuner's own spaces and strategies, in an interpreter that has kernel_tuner and nothing of
ours: started by tune_space.py and tune_replay.py, prints one JSON line."""

from __future__ import annotations

import ast
import contextlib
import gzip
import json
import math
import pathlib
import random
import resource
import statistics
import sys
import tempfile
import time


def values_of(text):
    """Kernel Tuner itself evaluates such texts; these are the benchmark's own files."""
    return eval(compile(ast.parse(text, mode="eval"), "T1", "eval"), {"range": range, "list": list})


def space(path):
    from kernel_tuner.searchspace import Searchspace

    described = json.loads(pathlib.Path(path).read_text())["ConfigurationSpace"]
    parameters = {row["Name"]: values_of(row["Values"]) for row in described["TuningParameters"]}
    conditions = [row["Expression"] for row in described.get("Conditions") or []]
    start = time.perf_counter()
    found = Searchspace(parameters, conditions, 1024)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return {"configurations": found.size, "seconds": seconds, "peak MB": peak}


def load(path):
    data = pathlib.Path(path).read_bytes()
    rows = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)["results"]
    costs = {}
    for row in rows:
        values = tuple(row["configuration"].values())
        if row.get("invalidity", "correct") != "correct":
            costs[values] = None
            continue
        measured = [m["value"] for m in row.get("measurements", ()) if m["name"] == "time"]
        costs[values] = measured[0] if measured else statistics.fmean(row["times"]["runtimes"])
    return list(rows[0]["configuration"]), costs


def cache_file(names, costs, parameters, folder):
    """The table as a cache file of Kernel Tuner, which its simulation mode reads."""
    entries = {}
    for values, cost in costs.items():
        entry = dict(zip(names, values, strict=True))
        entry["time"] = "RuntimeFailedConfig" if cost is None else cost
        entry["times"] = [] if cost is None else [cost]
        for part in ("compile", "verification", "benchmark", "strategy", "framework"):
            entry[f"{part}_time"] = 0
        entry["timestamp"] = "2026-01-01T00:00:00+00:00"
        entries[",".join(str(value) for value in values)] = entry
    path = pathlib.Path(folder) / "cache.json"
    path.write_text(
        json.dumps(
            {
                "device_name": "table",
                "kernel_name": "kernel",
                "problem_size": [1, 1],
                "tune_params_keys": names,
                "tune_params": parameters,
                "objective": "time",
                "cache": entries,
            }
        )
    )
    return path


def trace_of(results, names, costs, evaluations):
    """The best cost after each evaluation, each configuration counted once."""
    best, seen, trace = math.inf, set(), []
    for result in results:
        values = tuple(result[name] for name in names)
        if values in seen:
            continue
        seen.add(values)
        cost = costs[values]
        best = min(best, math.inf if cost is None else cost)
        trace.append(best)
    return trace[:evaluations]


def replay(path, strategy, seeds, evaluations):
    import kernel_tuner
    import numpy as np

    names, costs = load(path)
    columns = zip(*costs, strict=True)
    parameters = {name: sorted(set(column)) for name, column in zip(names, columns, strict=True)}
    known = set(costs)

    def listed(configuration):
        return tuple(configuration[name] for name in names) in known

    traces = []
    with tempfile.TemporaryDirectory() as folder:
        cache = cache_file(names, costs, parameters, folder)
        for seed in range(seeds):
            random.seed(seed)
            np.random.seed(seed)
            results, _ = kernel_tuner.tune_kernel(
                "kernel",
                'extern "C" __global__ void kernel() {}',
                (1, 1),
                [],
                parameters,
                restrictions=listed,
                strategy=strategy,
                strategy_options={"max_fevals": evaluations},
                simulation_mode=True,
                cache=str(cache),
                verbose=False,
            )
            traces.append(trace_of(results, names, costs, evaluations))
    return {"best": min(c for c in costs.values() if c is not None), "traces": traces}


def main():
    what, *arguments = sys.argv[1:]
    with contextlib.redirect_stdout(sys.stderr):
        if what == "space":
            result = space(*arguments)
        else:
            path, strategy, seeds, evaluations = arguments
            result = replay(path, strategy, int(seeds), int(evaluations))
    print(json.dumps(result).replace("Infinity", "1e999"))


if __name__ == "__main__":
    main()
