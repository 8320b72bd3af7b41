"""kernwright doctor: the parts of this machine, and a kernel run on it (else no exit code 0)."""

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

from kernwright._core import _describe_bytes as size_text
from kernwright._support.words import counted

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
    rules, priorities = device.partition_rules, device.priority_range
    return {
        "name": device.name,
        "simulated": device.is_simulated,
        "compute_capability": ".".join(str(part) for part in device.compute_capability),
        "multiprocessors": device.attributes["multiprocessor_count"],
        "memory_total": memory.total,
        "memory_free": memory.free,
        "partitions": rules.supported,
        "partition_minimum": rules.minimum,
        "partition_alignment": rules.alignment,
        "priority_least": priorities[0],
        "priority_greatest": priorities[1],
    }


@contextlib.contextmanager
def uncached() -> Iterator[None]:
    """No cache answers meanwhile. Values of the variables must be valid, as for every program."""
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
        "simulated": device.is_simulated,
        "compile_ms": round((compiled - started) * 1e3, 2),
        "run_ms": round((time.perf_counter() - compiled) * 1e3, 2),
    }


def cache_status() -> dict[str, Any]:
    """The place of compiled kernels, or the mistake in the variables about it."""
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
    report: dict[str, Any] = {
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
    report["verdict"] = verdict(report)
    return report


def verdict(report: dict[str, Any]) -> str:
    """The sum of all of it, in one sentence."""
    if not report["kernel"]["ran"]:
        if not report["nvrtc"]["found"]:
            return "no kernel runs here: NVRTC is missing (pip install nvidia-cuda-nvrtc)"
        return "no kernel runs here, for the reason above"
    device = report["kernel"]["device"]
    if not report["kernel"]["simulated"]:
        text = f"kernels run on {device}"
    elif report["driver"]["available"]:
        text = "kernels run, on the simulated device, as KERNWRIGHT_DEVICE says"
    else:
        text = "kernels run, on the simulated device, as there is no CUDA driver"
    cache = report["cache"]
    if cache.get("mode") == "disk" and cache.get("state") != "on":
        text += "; they are not kept on the disk"
    return text


def cache_line(cache: dict[str, Any]) -> str:
    if "error" in cache:
        return str(cache["error"])
    if cache["mode"] != "disk":
        return f"no disk: KERNWRIGHT_CACHE={cache['mode']}"
    state = cache["state"] + (f" ({cache['reason']})" if cache["reason"] else "")
    size = f"{size_text(cache['bytes'])} of {size_text(cache['limit'])}"
    entries = counted(cache["entries"], "entry", "entries")
    return f"{state}, {cache['path'] or 'no folder'}, {entries}, {size}"


def print_nvrtc(nvrtc: dict[str, Any]) -> None:
    """The library, then each other searched place, once. Places without a library are of interest
    only where none was found."""
    if nvrtc["found"]:
        print(f"nvrtc      {nvrtc['version']} at {nvrtc['path']}")
    else:  # the places follow the first line of the error
        print(f"nvrtc      {nvrtc['error'].partition(chr(10))[0].rstrip(':')}")
    said = {nvrtc["path"]} if nvrtc["found"] else set()
    for origin, path, outcome in nvrtc["candidates"]:
        empty = outcome == "not found" and nvrtc["found"]
        if outcome == "loaded" or empty or path in said:
            continue
        said.add(path)
        print(f"             {origin}: {path}: {outcome.replace(f'{path}: ', '')}")


def print_device(device: dict[str, Any], driver: dict[str, Any]) -> None:
    if "error" in device:
        print(f"device     {said_above(device['error'], {'driver': driver['reason']})}")
        return
    memory = f"{size_text(device['memory_free'])} free of {size_text(device['memory_total'])}"
    capability = f"compute capability {device['compute_capability']}"
    count = counted(device["multiprocessors"], "multiprocessor")
    print(f"device     {device['name']}, {capability}, {count}, {memory}")
    print(f"           {partitions_text(device)}; {priorities_text(device)}")


def partitions_text(device: dict[str, Any]) -> str:
    if not device["partitions"]:
        return "no partitions: the driver has no green contexts (CUDA 12.5 and newer)"
    return (
        f"partitions of at least {device['partition_minimum']} multiprocessors, "
        f"in multiples of {device['partition_alignment']}"
    )


def priorities_text(device: dict[str, Any]) -> str:
    least, greatest = device["priority_least"], device["priority_greatest"]
    if least == greatest:
        return "streams have no priorities"
    return f"priorities of streams from {least} (lowest) to {greatest} (highest)"


def said_above(text: str, lines: dict[str, str | None]) -> str:
    """The text, with repeated parts named by the earlier line."""
    for title, line in lines.items():
        if line and line in text:
            text = text.replace(line, f"see {title} above")
    return text


def print_report(report: dict[str, Any]) -> None:
    driver, nvrtc = report["driver"], report["nvrtc"]
    print(f"python     {report['python']} on {report['platform']}")
    if driver["available"]:
        print(f"driver     CUDA {driver['version'] // 1000}.{driver['version'] % 1000 // 10}")
    else:
        print(f"driver     {driver['reason']}")
    for device in report["devices"]:
        print_device(device, driver)
    print_nvrtc(nvrtc)
    print(f"headers    {report['headers']}")
    print(f"cache      {cache_line(report['cache'])}")
    for name, value in report["environment"].items():
        print(f"variable   {name}={value}")
    print("packages   " + ", ".join(f"{n} {v}" for n, v in report["packages"].items()))
    kernel = report["kernel"]
    if kernel["ran"]:
        print(f"kernel     compiled in {kernel['compile_ms']} ms, right on {kernel['device']}")
    else:
        lines = {
            "driver": driver["reason"],
            "nvrtc": nvrtc["error"],
            "cache": report["cache"].get("error"),
        }
        print(f"kernel     DID NOT RUN: {said_above(kernel['error'], lines)}")
    print(f"verdict    {report['verdict']}")


def run(arguments: argparse.Namespace) -> int:
    report = examine()
    if arguments.json:
        print(json.dumps(report, indent=1))
    else:
        print_report(report)
    return 0 if report["kernel"]["ran"] else 1
