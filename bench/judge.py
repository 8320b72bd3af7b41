"""The judge: latency and throughput of verdicts, right kernels, attacks, endurance.

    judge.py [--workers N] [--verdicts N] [--most N] [--parts latency,attacks] [--json OUT]

Latency: verdicts one after the other, of texts new to every cache (their comments differ).
Throughput: the same texts on N workers. Right kernels and attacks: those of the tests. Endurance:
N workers make --verdicts verdicts, of right, wrong and faulty kernels in turn; the memory of this
process and of its workers is sampled. Recovery: a verdict right after one that lost the worker.
Fresh: the time of a kernel by a new judge, and by a judge after hundreds of verdicts.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import sys
import time
from typing import Any

import numpy as np

import harness
import kernwright as kw

TESTS = pathlib.Path(__file__).resolve().parents[1] / "tests" / "python"
sys.path.insert(0, str(TESTS))

ROUNDS = 20
FOR_EACH_WORKER = 8
DRAWN = 300  # kernels of judge_drawn.py

SAXPY = """// {number}
__global__ void saxpy(float a, const float* __restrict__ x, const float* __restrict__ y,
                      float* __restrict__ out, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a * x[i] + y[i];
}}"""
ENDLESS = "{ while (out[i] != 12345.0f || n > 0) __threadfence(); }"
ILLEGAL = "*(float*)(out + (1ll << 40) * n) = a;"


def text(number: int) -> str:
    return SAXPY.format(number=f"{os.getpid()} {time.time_ns()} {number}")


def saxpy_task(most: int) -> kw.Task:
    return kw.Task(
        entry="saxpy",
        signature="float a, const float* x, const float* y, float* out, int n",
        inputs=kw.Inputs(
            a="float32", x="float32[n]", y="float32[n]", out="float32[n]", n="size", most=most
        ),
        reference=lambda a, x, y, out, n: (
            *(None, None, None),
            np.float64(a) * x.astype(np.float64) + y,
            None,
        ),
        bytes=lambda a, x, y, out, n: 12 * n,
        rtol=1e-5,
        atol=1e-4,
    )


def accepted(verdict: kw.Verdict) -> kw.Verdict:
    if not verdict.accepted:
        raise SystemExit(f"a right kernel was refused: {verdict}")
    return verdict


def latency(judge: kw.Judge, task: kw.Task) -> dict[str, Any]:
    accepted(judge.judge(text(0), task))
    seconds = []
    for number in range(ROUNDS):
        start = time.perf_counter()
        verdict = accepted(judge.judge(text(number), task, seed=number))
        seconds.append(time.perf_counter() - start)
    return {
        "verdict median, s": round(statistics.median(seconds), 4),
        "verdict max, s": round(max(seconds), 4),
        "compile, s": round(verdict.compile_seconds, 4),
        "check, s": round(verdict.check_seconds, 4),
        "time, s": round(verdict.time_seconds, 4),
        "cases": len(verdict.cases),
        "unit": verdict.timing.unit if verdict.timing else None,
        "median": verdict.timing.median if verdict.timing else None,
        "floor": verdict.floor,
    }


def throughput(judge: kw.Judge, task: kw.Task) -> float:
    count = FOR_EACH_WORKER * judge.workers
    start = time.perf_counter()
    futures = [judge.submit(text(number), task, seed=number) for number in range(count)]
    for future in futures:
        accepted(future.result())
    return round(count / (time.perf_counter() - start), 2)


def recovery(judge: kw.Judge, task: kw.Task) -> dict[str, Any]:
    """Seconds of a right verdict after one that lost its worker, and without such a loss."""
    found: dict[str, Any] = {}
    for name, fault in (("illegal address", ILLEGAL), ("endless loop", ENDLESS)):
        bad = text(0).replace("out[i] = a * x[i] + y[i];", fault)
        seconds, status = [], ""
        for number in range(5):
            status = judge.judge(bad, task, timeout=2).status
            start = time.perf_counter()
            accepted(judge.judge(text(number), task))
            seconds.append(time.perf_counter() - start)
        found[name] = {"status": status, "next verdict, s": round(max(seconds), 4)}
    found["workers lost"] = judge.losses
    return found


def right_kernels(judge: kw.Judge) -> dict[str, Any]:
    import judge_drawn
    import judge_good

    kernels = [*judge_good.kernels(), *judge_drawn.drawn(1, DRAWN)]
    futures = [(name, judge.submit(s, task)) for name, s, task in kernels]
    refused = {
        name: str(future.result()) for name, future in futures if not future.result().accepted
    }
    return {"kernels": len(futures), "refused": refused}


def attacks(judge: kw.Judge) -> dict[str, Any]:
    import test_judge_attacks as corpus

    futures = {
        path.stem: judge.submit(path, corpus.make_task(path), timeout=corpus.patience(path))
        for path in corpus.ATTACKS
    }
    statuses = {name: future.result().status for name, future in futures.items()}
    counts = {status: list(statuses.values()).count(status) for status in set(statuses.values())}
    return {
        "attacks": len(statuses),
        "accepted": [name for name, status in statuses.items() if status == "accepted"],
        "statuses": counts,
    }


def resident_mb() -> tuple[float, float]:
    """Memory of this process, and of its children."""
    pages = {"own": 0, "children": 0}
    pid = os.getpid()
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if int(folder.name) == pid or parent == pid:
                whose = "own" if int(folder.name) == pid else "children"
                pages[whose] += int((folder / "statm").read_text().split()[1])
        except (OSError, ValueError, IndexError):
            continue
    in_mb = os.sysconf("SC_PAGESIZE") / 1e6
    return round(pages["own"] * in_mb, 1), round(pages["children"] * in_mb, 1)


def endurance(judge: kw.Judge, task: kw.Task, verdicts: int) -> dict[str, Any]:
    body = "out[i] = a * x[i] + y[i];"
    kinds = [
        ("accepted", body),
        ("wrong", "out[i] = a * x[i] - y[i];"),
        ("finding", "out[i] = a * x[i] + y[i + 1];"),
        ("accepted", body + " "),
        ("compile", "out[i] = a * x[i] + z[i];"),
    ]
    losses = judge.losses
    memory: list[tuple[float, float]] = []
    surprises = 0
    start = time.perf_counter()
    batch = max(1, verdicts // 10)
    for begin in range(0, verdicts, batch):
        futures = []
        for number in range(begin, min(begin + batch, verdicts)):
            wanted, code = kinds[number % len(kinds)]
            source = SAXPY.format(number=number % 50).replace(body, code)
            futures.append((wanted, judge.submit(source, task, seed=number)))
        surprises += sum(future.result().status != wanted for wanted, future in futures)
        memory.append(resident_mb())
    return {
        "verdicts": verdicts,
        "a second": round(verdicts / (time.perf_counter() - start), 1),
        "other than they should be": surprises,
        "workers lost": judge.losses - losses,
        "resident MB on the way": [megabytes for megabytes, _ in memory],
        "resident MB of workers on the way": [children for _, children in memory],
    }


def fresh(used: kw.Judge, task: kw.Task) -> dict[str, Any]:
    """Medians of the same kernel by judges of different ages, alternating."""
    medians: dict[str, list[float]] = {"fresh": [], "used": []}
    for number in range(5):
        with kw.Judge(1) as new:
            for name, judge in (("fresh", new), ("used", used)):
                timing = accepted(judge.judge(text(number), task, seed=number)).timing
                medians[name].append(timing.median if timing else 0.0)
    both = {name: statistics.median(values) for name, values in medians.items()}
    return {**both, "used / fresh": round(both["used"] / both["fresh"], 4)}


PARTS = ("latency", "recovery", "throughput", "right", "attacks", "fresh", "endurance")


def measure(part: str, options: argparse.Namespace) -> dict[str, Any]:
    """Measures one part and returns its figures."""
    # On the simulated device the timed case is small, as its time is the interpreter's.
    simulated = kw.current_device().is_simulated
    task = saxpy_task(20000 if simulated else options.most)
    with kw.Judge(1 if part in ("latency", "recovery") else options.workers) as judge:
        if part == "latency":
            return {"one at a time": {**latency(judge, task), "elements": options.most}}
        if part == "recovery":
            return {"recovery": recovery(judge, task)}
        if part == "throughput":
            return {"workers": judge.workers, "verdicts a second": throughput(judge, task)}
        if part == "right":
            return {"right kernels": right_kernels(judge)}
        if part == "attacks":
            return {"attacks": attacks(judge)}
        if part == "fresh":
            return {"fresh and used workers": fresh(judge, task)}
        return {"endurance": endurance(judge, saxpy_task(500), options.verdicts)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=min(16, len(os.sched_getaffinity(0))))
    parser.add_argument("--verdicts", type=int, default=1000, help="for endurance")
    parser.add_argument("--most", type=int, default=1 << 20, help="elements of the timed case")
    parser.add_argument("--parts", default=",".join(PARTS), help="of: " + ", ".join(PARTS))
    parser.add_argument(
        "--json", type=pathlib.Path, default=harness.RESULTS / "judge.json", metavar="OUT"
    )
    options = parser.parse_args()
    document: dict[str, Any] = {"subject": "judge", "machine": harness.machine()}
    for part in options.parts.split(","):
        found = measure(part, options)
        print(json.dumps(found), flush=True)
        document.update(found)
    harness.write(options.json, document)


if __name__ == "__main__":
    main()
