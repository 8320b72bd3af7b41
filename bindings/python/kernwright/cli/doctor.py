"""kernwright doctor: what this machine has, and a kernel run on it. Exit code 0 only if it ran."""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import json
import os
import platform
import time
from collections.abc import Iterator
from typing import Any

PACKAGES = ("kernwright", "numpy", "ml_dtypes", "nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12",
            "torch", "cupy-cuda13x", "cupy-cuda12x", "numba-cuda", "cuda-core")  # fmt: skip
KERNEL = """
__global__ void doctor(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i] + 1.0f;
}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document only")


def packages() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def describe_device(device: Any) -> dict[str, Any]:
    memory = device.memory_info()
    return {
        "name": device.name,
        "simulated": device.is_simulated,
        "compute_capability": ".".join(str(part) for part in device.compute_capability),
        "multiprocessors": device.attributes["multiprocessor_count"],
        "memory_total": memory.total,
        "memory_free": memory.free,
    }


@contextlib.contextmanager
def uncached() -> Iterator[None]:
    """No cache answers meanwhile. What the variables say must be valid, as for every program."""
    from kernwright import cache

    cache.info()
    before = os.environ.get("KERNWRIGHT_CACHE")
    os.environ["KERNWRIGHT_CACHE"] = "off"
    try:
        yield
    finally:
        del os.environ["KERNWRIGHT_CACHE"]
        if before is not None:
            os.environ["KERNWRIGHT_CACHE"] = before


def run_kernel() -> dict[str, Any]:
    """Compiles, launches and checks one kernel on the current device."""
    import numpy as np

    import kernwright as kw

    try:
        device = kw.current_device()
        started = time.perf_counter()
        kernel = kw.kernel(KERNEL)
        with uncached():
            kernel.compile()
        compiled = time.perf_counter()
        x = np.arange(1000, dtype=np.float32)
        y = np.zeros_like(x)
        kernel[4, 256](kw.In(x), kw.Out(y), x.size)
        if not np.array_equal(y, 2 * x + 1):
            raise kw.Error("the kernel ran and its result is wrong")
    except kw.Error as error:
        return {"ran": False, "error": f"{type(error).__name__}: {error}"}
    return {
        "ran": True,
        "device": device.name,
        "compile_ms": round((compiled - started) * 1e3, 2),
        "run_ms": round((time.perf_counter() - compiled) * 1e3, 2),
    }


def cache_status() -> dict[str, Any]:
    """Where compiled kernels are kept, or what is wrong with the variables that say so."""
    from kernwright import Error, cache

    try:
        return {name: value for name, value in cache.info().items() if name != "process"}
    except Error as error:
        return {"error": f"{type(error).__name__}: {error}"}


def examine() -> dict[str, Any]:
    """Everything doctor knows, as plain data."""
    import kernwright as kw
    from kernwright import _core

    try:
        devices = [describe_device(device) for device in kw.devices()]
    except kw.Error as error:
        devices = [{"error": f"{type(error).__name__}: {error}"}]
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "driver": _core.driver_status(),
        "devices": devices,
        "nvrtc": _core.nvrtc_status(),
        "headers": _core.headers_status(),
        "cache": cache_status(),
        "environment": {
            row["name"]: os.environ[row["name"]]
            for row in _core.environment_table()
            if row["name"] in os.environ
        },
        "packages": packages(),
        "kernel": run_kernel(),
    }


def gibibytes(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"


def cache_line(cache: dict[str, Any]) -> str:
    if "error" in cache:
        return str(cache["error"])
    if cache["mode"] != "disk":
        return f"no disk: KERNWRIGHT_CACHE={cache['mode']}"
    state = cache["state"] + (f" ({cache['reason']})" if cache["reason"] else "")
    size = f"{cache['bytes'] / 2**20:.1f} MiB of {cache['limit'] / 2**20:.0f} MiB"
    return f"{state}, {cache['path'] or 'no folder'}, {cache['entries']} entries, {size}"


def print_report(report: dict[str, Any]) -> None:
    driver, nvrtc = report["driver"], report["nvrtc"]
    print(f"python     {report['python']} on {report['platform']}")
    if driver["available"]:
        print(f"driver     CUDA {driver['version'] // 1000}.{driver['version'] % 1000 // 10}")
    else:
        print(f"driver     {driver['reason']}")
    for device in report["devices"]:
        if "error" in device:
            print(f"device     {device['error']}")
            continue
        memory = f"{gibibytes(device['memory_free'])} free of {gibibytes(device['memory_total'])}"
        capability = f"compute capability {device['compute_capability']}"
        count = f"{device['multiprocessors']} multiprocessors"
        print(f"device     {device['name']}, {capability}, {count}, {memory}")
    if nvrtc["found"]:
        print(f"nvrtc      {nvrtc['version']} at {nvrtc['path']}")
    else:
        print(f"nvrtc      {nvrtc['error']}")
    for origin, path, outcome in nvrtc["candidates"]:
        if outcome != "loaded":
            print(f"             {origin}: {path}: {outcome}")
    print(f"headers    {report['headers']}")
    print(f"cache      {cache_line(report['cache'])}")
    for name, value in report["environment"].items():
        print(f"variable   {name}={value}")
    print("packages   " + ", ".join(f"{n} {v}" for n, v in report["packages"].items()))
    kernel = report["kernel"]
    if kernel["ran"]:
        print(f"kernel     compiled in {kernel['compile_ms']} ms, right on {kernel['device']}")
    else:
        print(f"kernel     DID NOT RUN: {kernel['error']}")


def run(arguments: argparse.Namespace) -> int:
    report = examine()
    if arguments.json:
        print(json.dumps(report, indent=1))
    else:
        print_report(report)
    return 0 if report["kernel"]["ran"] else 1
