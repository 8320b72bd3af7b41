"""Tuning sessions, ours and Kernel Tuner's: same device, configurations and kernel text in one run.

    tune_session.py [SUBJECT...] [--count N] [--peer-python PYTHON] [--peer-seconds S] [-o OUT]
    tune_session.py [SUBJECT...] [--count N] --repeat 20 [--evaluations N] [--small] [-o OUT]

Compiles dominate the subject convolution; measurements dominate gemm and hotspot. Both tuners get
the same `count` configurations of a subject, each in its own process with cold caches. The start of
the interpreter and of the device does not count. Kernel Tuner stops after `peer-seconds`; its time
for all configurations is extrapolated. Both compile for the same standard with no other option:
ours to a cubin, Kernel Tuner to PTX, from which the driver makes a cubin.

Then both winners, compiled by us, run in turns. Kernel Tuner's winner is its best configuration
that launches; "refused" lists the better ones and the reasons. "our winner" among Kernel Tuner's
figures is its measurement of our winner.

With --repeat so many fresh sessions of ours run instead, on the same configurations: all of them,
or --evaluations of them by choice of the search. See tune_repeats.py.
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

import tune_repeats
from tune_subjects import STANDARD, subject

import harness

HERE = pathlib.Path(__file__).parent
SUBJECTS = ("convolution", "gemm", "hotspot")
ROUNDS = 5


def device_arguments(chosen):
    import numpy as np

    import kernwright as kw

    return [kw.asarray(a) if isinstance(a, np.ndarray) else a for a in chosen.arguments()]


def ours(name: str, count: int, small: bool, seed: int = 0, evaluations: int | None = None) -> dict:
    """One session over all configurations, or `evaluations` of them."""
    import kernwright as kw

    chosen = subject(name, small)
    listed = chosen.configurations(count)
    arguments = device_arguments(chosen)
    warm = kw.kernel("__global__ void warm(float* x) { x[0] = 1; }")
    warm[1, 1](arguments[0])
    kw.synchronize()
    start = time.perf_counter()
    session = kw.tune.Session(
        kw.kernel(chosen.source, chosen.name, std=STANDARD),
        kw.tune.Space.from_configurations(listed),
        arguments,
        grid=chosen.grid,
        block=chosen.block,
        problem=chosen.problem,
        budget={"evaluations": min(evaluations or len(listed), len(listed))},
        seed=seed,
    )
    best = session.run(progress=None)
    wall = time.perf_counter() - start
    failed = [trial for trial in session.trials if trial.status != "correct"]
    if best is None:
        return {"failed to run": f"no configuration was correct: {failed[:1]}"}
    return {
        **tune_repeats.summary(session, best),
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


def contestant(chosen, config: dict) -> tuple:
    """A function that runs the kernel once, and its output. Raises kw.Error if it cannot launch."""
    import kernwright as kw

    values = {**chosen.problem, **config}
    defines = {name: str(value) for name, value in config.items()}
    kernel = kw.kernel(chosen.source, chosen.name, std=STANDARD, defines=defines)
    grid, block = (
        tuple(kw.tune.Expression(text)(values) for text in texts)
        for texts in (chosen.grid, chosen.block)
    )
    arguments = device_arguments(chosen)
    launch = kernel[grid, block]
    launch(*arguments)
    return (lambda: launch(*arguments)), arguments[0].numpy()


def first_that_launches(chosen, configs: list[dict]) -> tuple:
    """The first of `configs` that launches (None: none does) with its contestant(), and the errors
    of those before it."""
    import kernwright as kw

    refused = []
    for config in configs:
        try:
            return config, contestant(chosen, config), refused
        except kw.Error as error:
            refused.append({"config": config, "why": str(error)[:300]})
    return None, None, refused


def sampled(timer, run) -> float:
    """Milliseconds; on the simulated device its counted cost."""
    measured = timer.measure(
        run, policy="cold", min_samples=10, max_samples=30, max_seconds=0.5, noise=0.002
    )
    counts = measured["counts"]
    return float(sum(counts.values())) if counts else measured["median_ms"]


def race(name: str, small: bool, ours: list[dict], peers: list[dict]) -> dict:
    """The first configurations of ours and of the peer's that launch, in turns: medians, and the
    ratio of the first to the second in each round."""
    import numpy as np

    import kernwright as kw

    chosen = subject(name, small)
    timer = kw._core._Timer()
    our_result, first, my_refused = first_that_launches(chosen, ours)
    other, second, other_refused = first_that_launches(chosen, peers)
    found = {
        "configs": {"ours": our_result, "peer's": other},
        "refused": {"ours": my_refused, "peer's": other_refused},
    }
    if our_result is None or other is None:
        return found
    times = [[], []]
    for _ in range(ROUNDS):
        for place, (run, _) in enumerate((first, second)):
            times[place].append(sampled(timer, run))
    ratios = sorted(a / b for a, b in zip(*times, strict=True))
    # Another depth of temporal tiling computes something else: results cannot be compared.
    depth = "temporal_tiling_factor"
    difference = None
    if our_result.get(depth) == other.get(depth):
        scale = float(np.abs(second[1]).max()) or 1.0
        difference = float(np.abs(first[1] - second[1]).max()) / scale
    return {
        **found,
        "ours": float(np.median(times[0])),
        "peer's": float(np.median(times[1])),
        "ratio": [ratios[0], ratios[len(ratios) // 2], ratios[-1]],
        "largest difference of the outputs": difference,
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
        our_result = run_self("--ours", name, "--count", count, *small, KERNWRIGHT_CACHE_DIR=folder)
    peer = {"failed to run": "left out"}
    if options.peer_python:
        winner = json.dumps(our_result.get("config"))
        words = ["session", name, count, str(options.peer_seconds), options.peer_language, winner]
        peer = last_line([options.peer_python, str(HERE / "tune_peer.py"), *words])
    found = {"dominated by": subject(name).repeats, "ours": our_result, "kernel_tuner": peer}
    if "seconds" in our_result and "seconds" in peer:
        projected = peer["seconds"] * our_result["evaluations"] / peer["evaluations"]
        found["kernel_tuner, seconds for all"] = projected
        found["times as fast"] = projected / our_result["seconds"]
        configs = json.dumps([[our_result["config"]], [row["config"] for row in peer["best"]]])
        found["winners in turns"] = run_self("--race", name, "--configs", configs, *small)
    return found


def repeat(name: str, options: argparse.Namespace, keep) -> None:
    words = [name, "--count", str(options.count), *(["--small"] if options.small else [])]
    if options.evaluations:
        words += ["--evaluations", str(options.evaluations)]

    def one(seed: int, folder: str) -> dict:
        found = run_self("--ours", *words, "--seed", str(seed), KERNWRIGHT_CACHE_DIR=folder)
        told = found.get("winner", found)
        print(f"{name}, session {seed}: {told}", file=sys.stderr, flush=True)
        return found

    def long(configs: list[dict]) -> dict:
        return run_self("--long", *words, "--configs", json.dumps(configs))

    tune_repeats.repeated(options.repeat, one, long, keep)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=", ".join(SUBJECTS))
    parser.add_argument("--count", type=int, default=200, help="configurations of each")
    parser.add_argument("--peer-python", default=None, help="an interpreter with kernel_tuner")
    parser.add_argument("--peer-seconds", type=float, default=60.0)
    parser.add_argument("--peer-language", default="NVCUDA", help="its backend: NVCUDA or CUPY")
    parser.add_argument("--small", action="store_true", help="sizes for the simulated device")
    parser.add_argument("--repeat", type=int, default=0, help="fresh sessions of ours alone")
    parser.add_argument("--evaluations", type=int, default=None, help="of each with --repeat")
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--long", metavar="SUBJECT", help=argparse.SUPPRESS)
    parser.add_argument("--ours", metavar="SUBJECT", help=argparse.SUPPRESS)
    parser.add_argument("--race", metavar="SUBJECT", help=argparse.SUPPRESS)
    parser.add_argument("--configs", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument("-o", type=pathlib.Path, default=None, metavar="OUT")
    options = parser.parse_args()
    if options.ours:
        chosen = (options.ours, options.count, options.small, options.seed, options.evaluations)
        print(json.dumps(ours(*chosen)))
        return
    if options.long:
        measured = tune_repeats.measured_long(options.long, options.small, options.configs)
        print(json.dumps(measured))
        return
    if options.race:
        print(json.dumps(race(options.race, options.small, *options.configs)))
        return
    wrong = [name for name in options.subjects if name not in SUBJECTS]
    if wrong:
        parser.error(f"there is no subject {wrong[0]!r}; there is: {', '.join(SUBJECTS)}")
    out = options.o or harness.RESULTS / f"tune_{'repeats' if options.repeat else 'session'}.json"
    results: dict[str, dict] = {}
    document = {
        "subject": "tune_repeats" if options.repeat else "tune_session",
        "machine": harness.machine(),
        "count": options.count,
        "results": results,
    }
    for name in options.subjects or SUBJECTS:  # saved after each one, in case time runs out
        if options.repeat:

            def keep(found: dict, name: str = name) -> None:
                results[name] = found
                harness.save(out, document)

            repeat(name, options, keep)
            continue
        results[name] = compared(name, options)
        harness.write(out, document)


if __name__ == "__main__":
    main()
