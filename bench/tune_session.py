"""Tuning sessions beside Kernel Tuner: the same device, configurations and kernel text in one run.

    tune_session.py [SUBJECT...] [--count N] [--peer-python PYTHON] [--peer-seconds S] [-o OUT]

Each subject (convolution: compiles dominate; gemm, hotspot: measuring does) is tuned over the same
`count` configurations by either, each in a process of its own with cold caches. Neither the
interpreter's start nor the device's is counted. Kernel Tuner stops after `peer-seconds`; what it
would need for all configurations follows from what it did. Then both winners run in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from tune_subjects import subject

import harness

HERE = pathlib.Path(__file__).parent
SUBJECTS = ("convolution", "gemm", "hotspot")
ROUNDS = 5


def device_arguments(chosen):
    import numpy as np

    import kernwright as kw

    return [kw.asarray(a) if isinstance(a, np.ndarray) else a for a in chosen.arguments()]


def ours(name: str, count: int, small: bool) -> dict:
    """One session over all configurations."""
    import kernwright as kw

    chosen = subject(name, small)
    listed = chosen.configurations(count)
    arguments = device_arguments(chosen)
    warm = kw.kernel("__global__ void warm(float* x) { x[0] = 1; }")
    warm[1, 1](arguments[0])
    kw.synchronize()
    start = time.perf_counter()
    session = kw.tune.Session(
        chosen.source,
        kw.tune.Space.from_configurations(listed),
        arguments,
        grid=chosen.grid,
        block=chosen.block,
        problem=chosen.problem,
        budget={"evaluations": len(listed)},
        seed=0,
    )
    best = session.run(progress=None)
    wall = time.perf_counter() - start
    failed = [trial for trial in session.trials if trial.status != "correct"]
    return {
        "evaluations": len(session.trials),
        "seconds": wall,
        "failed": len(failed),
        "failures": sorted({f"{trial.status}: {str(trial.error)[:80]}" for trial in failed})[:5],
        "best_ms": best.median,
        "interval_ms": list(best.interval or ()),
        "ties": len(best.ties),
        "config": dict(best.config),
        "compile_time": sum(trial.compile_seconds or 0 for trial in session.trials),
        "benchmark_time": sum(trial.measure_seconds or 0 for trial in session.trials),
    }


def race(name: str, small: bool, *configs: dict) -> dict:
    """Both winners in turns: medians, and the ratio of the first to the second in each round."""
    import numpy as np

    import kernwright as kw

    chosen = subject(name, small)
    timer = kw._core._Timer()
    runs, outputs = [], []
    for config in configs:
        values = {**chosen.problem, **config}
        kernel = kw.kernel(
            chosen.source, chosen.name, defines={k: str(v) for k, v in config.items()}
        )
        grid, block = (
            tuple(kw.tune.Expression(text)(values) for text in texts)
            for texts in (chosen.grid, chosen.block)
        )
        arguments = device_arguments(chosen)
        launch = kernel[grid, block]
        launch(*arguments)
        outputs.append(arguments[0].numpy())
        runs.append(lambda launch=launch, arguments=arguments: launch(*arguments))
    times = [[], []]
    for _ in range(ROUNDS):
        for place, run in enumerate(runs):
            found = timer.measure(
                run, policy="cold", min_samples=10, max_samples=30, max_seconds=0.5, noise=0.002
            )
            counts = found["counts"]
            times[place].append(float(sum(counts.values())) if counts else found["median_ms"])
    ratios = sorted(a / b for a, b in zip(*times, strict=True))
    # Temporal tiling of another depth computes something else: then there is nothing to compare.
    same = all(c.get("temporal_tiling_factor") == configs[0].get("temporal_tiling_factor")
               for c in configs)  # fmt: skip
    scale = float(np.abs(outputs[1]).max()) or 1.0
    return {
        "ours": float(np.median(times[0])),
        "peer's": float(np.median(times[1])),
        "ratio": [ratios[0], ratios[len(ratios) // 2], ratios[-1]],
        "largest difference of the outputs": float(np.abs(outputs[0] - outputs[1]).max()) / scale
        if same
        else None,
    }


def run_self(*words: str, **variables: str) -> dict:
    command = [sys.executable, str(pathlib.Path(__file__)), *words]
    return last_line(command, {**os.environ, **variables})


def last_line(command: list[str], environment: dict | None = None) -> dict:
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    if result.returncode != 0:
        lines = result.stderr.strip().splitlines() or ["no message"]
        return {"failed to run": lines[-1][-300:]}
    return json.loads(result.stdout.splitlines()[-1])


def compared(name: str, options: argparse.Namespace) -> dict:
    small = ["--small"] if options.small else []
    count = str(options.count)
    with tempfile.TemporaryDirectory() as folder:
        mine = run_self("--ours", name, "--count", count, *small, KERNWRIGHT_CACHE_DIR=folder)
    peer = {"failed to run": "left out"}
    if options.peer_python:
        words = ["session", name, count, str(options.peer_seconds), options.peer_language]
        peer = last_line([options.peer_python, str(HERE / "tune_peer.py"), *words])
    found = {"dominated by": subject(name).repeats, "ours": mine, "kernel_tuner": peer}
    if "seconds" in mine and "seconds" in peer:
        projected = peer["seconds"] * mine["evaluations"] / peer["evaluations"]
        found["kernel_tuner, seconds for all"] = projected
        found["times as fast"] = projected / mine["seconds"]
        configs = json.dumps([mine["config"], peer["config"]])
        found["winners in turns"] = run_self("--race", name, "--configs", configs, *small)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=", ".join(SUBJECTS))
    parser.add_argument("--count", type=int, default=200, help="configurations of each")
    parser.add_argument("--peer-python", default=None, help="an interpreter with kernel_tuner")
    parser.add_argument("--peer-seconds", type=float, default=60.0)
    parser.add_argument("--peer-language", default="NVCUDA", help="its backend: NVCUDA or CUPY")
    parser.add_argument("--small", action="store_true", help="sizes for the simulated device")
    parser.add_argument("--ours", metavar="SUBJECT", help=argparse.SUPPRESS)
    parser.add_argument("--race", metavar="SUBJECT", help=argparse.SUPPRESS)
    parser.add_argument("--configs", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument(
        "-o", type=pathlib.Path, default=harness.RESULTS / "tune_session.json", metavar="OUT"
    )
    options = parser.parse_args()
    if options.ours:
        print(json.dumps(ours(options.ours, options.count, options.small)))
        return
    if options.race:
        print(json.dumps(race(options.race, options.small, *options.configs)))
        return
    wrong = [name for name in options.subjects if name not in SUBJECTS]
    if wrong:
        parser.error(f"there is no subject {wrong[0]!r}; there is: {', '.join(SUBJECTS)}")
    results = {name: compared(name, options) for name in options.subjects or SUBJECTS}
    document = {
        "subject": "tune_session",
        "machine": harness.machine(),
        "count": options.count,
        "results": results,
    }
    for name, found in results.items():
        print(name, json.dumps(found, indent=1))
    harness.write(options.o, document)


if __name__ == "__main__":
    main()
