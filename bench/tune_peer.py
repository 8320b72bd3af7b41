"""Kernel Tuner's own spaces, strategies and sessions, in an interpreter without Kernwright:
tune_space.py, tune_replay.py and tune_session.py start it, and it prints one JSON line."""

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

MOST_BEST = 20  # configurations in a session's answer, the best first


def parse_values(text):
    """Kernel Tuner itself evaluates such texts; these are the benchmark's own files."""
    return eval(compile(ast.parse(text, mode="eval"), "T1", "eval"), {"range": range, "list": list})


def space(path):
    from kernel_tuner.searchspace import Searchspace

    described = json.loads(pathlib.Path(path).read_text())["ConfigurationSpace"]
    parameters = {row["Name"]: parse_values(row["Values"]) for row in described["TuningParameters"]}
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
    """The table as a cache file for Kernel Tuner's simulation mode."""
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


def make_trace(results, names, costs, evaluations):
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
            traces.append(make_trace(results, names, costs, evaluations))
    return {"best": min(c for c in costs.values() if c is not None), "traces": traces}


def check_launches():
    """Makes Kernel Tuner check the result code of each call of cuda-python.

    The code comes in a tuple, and Kernel Tuner 1.5.0 ignores it: a kernel that does not launch then
    takes no time, and wins.
    """
    from kernel_tuner.backends import nvcuda

    check = nvcuda.cuda_error_check
    nvcuda.cuda_error_check = lambda found: check(found[0] if isinstance(found, tuple) else found)


def session(name, count, seconds, language, winner):
    """Kernel Tuner compiles and measures `count` configurations of a subject by itself.

    It stops after `seconds`. Then it measures `winner`, the best configuration of another tuner.
    """
    import kernel_tuner
    from tune_subjects import STANDARD, subject

    check_launches()
    chosen = subject(name)
    listed = {tuple(config.values()) for config in chosen.configurations(count)}
    parameters = {key: list(values) for key, values in chosen.parameters.items()}
    axes = dict(zip(("grid_div_x", "grid_div_y"), ([d] for d in chosen.divisors), strict=False))
    sizes = tuple(chosen.problem[size] for size in chosen.sizes)

    def tune(budget, allowed=listed):
        def is_allowed(configuration):  # Kernel Tuner would parse a lambda's text
            return tuple(configuration[key] for key in parameters) in allowed

        results, _ = kernel_tuner.tune_kernel(
            chosen.name,
            chosen.source,
            sizes,
            chosen.arguments(),
            parameters,
            block_size_names=list(chosen.block),
            restrictions=is_allowed,
            strategy="random_sample",
            strategy_options=budget,
            lang=language,
            compiler_options=[f"--std={STANDARD}"],
            verbose=False,
            **axes,
        )
        return results

    parts = ("compile_time", "benchmark_time", "verification_time", "framework_time")

    def timed(budget):
        start = time.perf_counter()
        return tune(budget), time.perf_counter() - start

    def told(row):
        is_good = isinstance(row.get("time"), (int, float))
        why = None if is_good else str(row.get("__error__", row.get("time")))
        config = {key: row[key] for key in parameters}
        return {"config": config, "ms": float(row["time"]) if is_good else None, "why": why}

    # Imports, the context, the arguments and the space are not counted.
    timed({"max_fevals": 1})
    (first, *_), wall = timed({"max_fevals": 1})
    prepare = max(wall - sum(first.get(part, 0) for part in parts) / 1000, 0.0)
    results, wall = timed({"max_fevals": count, "time_limit": seconds + prepare})
    wall -= prepare
    rows = [told(row) for row in results]
    best = sorted((row for row in rows if row["why"] is None), key=lambda row: row["ms"])
    failed = [row for row in rows if row["why"] is not None]
    confirmed = (
        tune({"max_fevals": 1}, {tuple(winner[key] for key in parameters)}) if winner else []
    )
    return {
        "evaluations": len(results),
        "seconds": wall,
        "failed": len(failed),
        "failures": failed[:5],
        "best_ms": best[0]["ms"],
        "config": best[0]["config"],
        "best": best[:MOST_BEST],
        "our winner": [told(row) for row in confirmed],
        **{part: sum(row.get(part, 0) for row in results) / 1000 for part in parts},
    }


def main():
    what, *arguments = sys.argv[1:]
    with contextlib.redirect_stdout(sys.stderr):
        if what == "space":
            result = space(*arguments)
        elif what == "session":
            name, count, seconds, language, winner = arguments
            result = session(name, int(count), float(seconds), language, json.loads(winner))
        else:
            path, strategy, seeds, evaluations = arguments
            result = replay(path, strategy, int(seeds), int(evaluations))
    print(json.dumps(result).replace("Infinity", "1e999"))


if __name__ == "__main__":
    main()
