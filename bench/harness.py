"""Shared by the benchmarks: alternating timings, the machine's description, the JSON document."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time
import timeit
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import Any

import documents

RESULTS = pathlib.Path(__file__).with_name("results")


class Loop:
    """A subject that runs a given number of calls in its own loop."""

    def __init__(self, run: Callable[[int], Any]) -> None:
        self.run = run

    def __call__(self) -> None:
        self.run(1)


def statement(text: str, names: Mapping[str, Any]) -> Loop:
    """A Python statement in a plain loop without function calls around it, as in timeit."""
    timer = timeit.Timer(text, globals=dict(names))
    return Loop(timer.timeit)


def _repeat(call: Callable[[], Any], calls: int) -> None:
    if isinstance(call, Loop):
        call.run(calls)
        return
    for _ in range(calls):
        call()


def alternate(
    subjects: dict[str, Callable[[], Any]],
    settle: Callable[[], Any] = lambda: None,
    calls: int = 2000,
    rounds: int = 9,
    within: Mapping[str, Callable[[], AbstractContextManager[Any]]] = MappingProxyType({}),
    reference: str | None = None,
) -> dict[str, dict[str, float]]:
    """Microseconds per call of each subject, measured in turn: {name: {"min": ..., "median": ...}}.

    `settle` runs after each loop (a synchronisation, so that no queue stays full). `within` gives
    a subject a context for its calls. "times" is the time of a call divided by the `reference`
    subject's: the median of the rounds' ratios, because a slow phase of the machine slows both.
    """
    samples: dict[str, list[float]] = {name: [] for name in subjects}
    for call in subjects.values():
        call()
    settle()
    for _ in range(rounds):
        for name, call in subjects.items():
            with within.get(name, nullcontext)():
                start = time.perf_counter()
                _repeat(call, calls)
                samples[name].append((time.perf_counter() - start) / calls * 1e6)
            settle()
    result = {}
    for name, v in samples.items():
        result[name] = {"min": round(min(v), 3), "median": round(statistics.median(v), 3)}
        if reference is not None:
            ratios = [sample / other for sample, other in zip(v, samples[reference], strict=True)]
            result[name]["times"] = round(statistics.median(ratios), 3)
    return result


def versions(*packages: str) -> dict[str, str]:
    found = {}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, Any]:
    """Processor, Python, and the device of kernwright."""
    import kernwright as kw

    device = kw.current_device()
    processor = platform.processor()
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            processor = line.split(":", 1)[1].strip()
            break
    return {
        "processor": processor,
        "python": platform.python_version(),
        "device": device.name,
        "driver": device.driver_version,
        "packages": versions("kernwright", "cupy-cuda13x", "cuda-core", "torch", "numba-cuda",
                             "nvidia-cuda-nvrtc", "warp-lang", "numba", "sgl-deep-gemm",
                             "triton", "numpy"),
    }  # fmt: skip


def arguments(description: str, name: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("-o", "--output", type=pathlib.Path, default=RESULTS / f"{name}.json")
    return parser.parse_args()


def child(module: str, kind: str, *arguments: str, **environment: str) -> dict[str, Any]:
    """What `CHILDREN[kind]` of a benchmark's module returns in a new process."""
    here = str(pathlib.Path(__file__).parent)
    code = f"import sys, json; sys.path.insert(0, {here!r}); import {module}\n"
    code += f"print(json.dumps({module}.CHILDREN[{kind!r}](*{arguments!r})))"
    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, env={**os.environ, **environment},
    )  # fmt: skip
    if ended.returncode != 0:
        raise SystemExit(f"{kind} {arguments[0]}: {ended.stderr[-1000:]}")
    result: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return result


def save(path: pathlib.Path, document: dict[str, Any]) -> None:
    """Writes the document as it is so far."""
    documents.write(path, document)


def write(path: pathlib.Path, document: dict[str, Any]) -> None:
    save(path, document)
    print(documents.text(document))
