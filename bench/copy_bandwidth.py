"""Bandwidth of copies: page-locked and plain host memory to the device and back, device to device.

The peak is the driver's own cuMemcpyAsync on memory of cuMemHostAlloc. torch is measured as well.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import harness
import kernwright as kw

BYTES = 256 << 20
Subjects = dict[str, Callable[[], Any]]


def checked(results: tuple[Any, ...]) -> Any:
    """The results of a cuda.bindings call without its result code."""
    if int(results[0]) != 0:
        raise RuntimeError(f"the driver returned {results[0]!r}")
    return results[1] if len(results) > 1 else None


def driver_copies(host: int, device: int, upload: bool) -> Callable[[], Any]:
    from cuda.bindings import driver

    copy = driver.cuMemcpyHtoDAsync if upload else driver.cuMemcpyDtoHAsync
    first, second = (device, host) if upload else (host, device)

    def call() -> None:
        checked(copy(first, second, BYTES, 0))
        checked(driver.cuStreamSynchronize(0))

    return call


def add_peers(uploads: Subjects, downloads: Subjects) -> None:
    """The driver and torch, each with its own memory, which the calls keep alive."""
    try:
        import torch
        from cuda.bindings import driver
    except ImportError as error:
        print("no peer:", error, file=sys.stderr)
        return
    checked(driver.cuCtxSetCurrent(checked(driver.cuDevicePrimaryCtxRetain(0))))
    host = checked(driver.cuMemHostAlloc(BYTES, 0))
    device = checked(driver.cuMemAlloc(BYTES))
    uploads["driver"] = driver_copies(int(host), int(device), True)
    downloads["driver"] = driver_copies(int(host), int(device), False)
    pinned = torch.empty(BYTES, dtype=torch.uint8, pin_memory=True)
    plain = torch.ones(BYTES, dtype=torch.uint8)
    there = torch.empty(BYTES, dtype=torch.uint8, device="cuda")
    for name, memory in (("torch", pinned), ("torch, plain memory", plain)):
        uploads[name] = lambda memory=memory: there.copy_(memory)
        downloads[name] = lambda memory=memory: memory.copy_(there)
    downloads["torch cpu(), new memory"] = there.cpu


def add_cupy(uploads: Subjects, downloads: Subjects) -> None:
    """CuPy on plain memory; both calls return after the copy is done."""
    try:
        import cupy
    except ImportError as error:
        print("no peer:", error, file=sys.stderr)
        return
    there = cupy.ones(BYTES, cupy.uint8)
    plain = np.ones(BYTES, np.uint8)
    uploads["CuPy set, plain memory"] = lambda: there.set(plain)
    downloads["CuPy get(), new memory"] = there.get


def host_copies() -> tuple[Subjects, Subjects, Callable[[], bool]]:
    engine = kw.TransferEngine()
    x = kw.empty(BYTES, "uint8")
    pinned, plain = kw.pinned(BYTES, "uint8"), np.empty(BYTES, np.uint8)
    pinned[:] = np.arange(BYTES, dtype=np.uint32) % 251
    plain[:] = pinned
    expected = plain.copy()
    uploads: Subjects = {
        "engine": lambda: engine.upload(pinned, x).wait(),
        "engine, plain memory": lambda: engine.upload(plain, x).wait(),
        "assignment, plain memory": lambda: x.__setitem__(slice(None), plain),
    }
    downloads: Subjects = {
        "engine": lambda: engine.download(x, pinned).wait(),
        "engine, plain memory": lambda: engine.download(x, plain).wait(),
        "numpy(), new memory": x.numpy,
    }

    def right() -> bool:
        pinned[:] = 0
        engine.download(x, pinned).wait()
        return bool((pinned == expected).all() and (x.numpy() == expected).all())

    return uploads, downloads, right


def between_devices() -> tuple[Subjects, Callable[[], bool]]:
    first, second = kw.devices()[:2]
    values = np.arange(BYTES, dtype=np.uint32).astype(np.uint8)
    with first:
        x = kw.asarray(values)
    copies: Subjects = {"x.to(other)": lambda: (x.to(second), second.synchronize())}
    try:
        import torch

        here, there = (torch.ones(BYTES, dtype=torch.uint8, device=f"cuda:{i}") for i in (0, 1))
        copies["torch"] = lambda: (there.copy_(here), torch.cuda.synchronize(1))
    except ImportError as error:
        print("no peer:", error, file=sys.stderr)
    return copies, lambda: bool((x.to(second).numpy() == values).all())


def bandwidths(copies: Subjects) -> dict[str, float]:
    """GB/s of each copy in its best round: disturbances only make a copy slower."""
    times = harness.alternate(copies, calls=3, rounds=9)
    return {name: round(BYTES / time["min"] / 1e3, 2) for name, time in times.items()}


def main() -> None:
    options = harness.arguments(__doc__.splitlines()[0], "copy_bandwidth")
    uploads, downloads, right = host_copies()
    add_peers(uploads, downloads)
    add_cupy(uploads, downloads)
    result: dict[str, Any] = {
        "subject": "copy_bandwidth",
        "machine": harness.machine(),
        "bytes": BYTES,
        "unit": "GB/s",
        "host to device": bandwidths(uploads),
        "device to host": bandwidths(downloads),
        "correct": right(),
    }
    if len(kw.devices()) > 1:
        copies, right = between_devices()
        result["device to device"] = bandwidths(copies)
        result["correct between devices"] = right()
    harness.write(options.output, result)


if __name__ == "__main__":
    main()
