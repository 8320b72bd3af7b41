"""Cost of an allocation of 4 MB and its free: our pool from Python and from C++, CuPy, torch and
the driver's own pool, in one run.

Host time of one pair in a loop. All pools are warm, so only the subject for the driver asks the
driver for memory. For our pool, "misses while measured" shows it.
"""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import subprocess
from collections.abc import Callable
from typing import Any

import harness
import kernwright as kw

BYTES = 4 << 20
MEMORY = kw.memory


def ours() -> dict[str, Callable[[], Any]]:
    alloc, empty = MEMORY.alloc, kw.empty
    count = BYTES // 4
    assert alloc(BYTES).ptr % 256 == 0
    return {
        "kernwright memory.alloc": lambda: alloc(BYTES),
        "kernwright empty": lambda: empty(count),
    }


def cupy_subjects() -> dict[str, Callable[[], Any]]:
    import cupy as cp

    alloc = cp.get_default_memory_pool().malloc
    assert alloc(BYTES).ptr
    count = BYTES // 4
    return {
        "CuPy pool.malloc": lambda: alloc(BYTES),
        "CuPy empty": lambda: cp.empty(count, cp.float32),
    }


def torch_subjects() -> dict[str, Callable[[], Any]]:
    import torch

    alloc, free = torch.cuda.caching_allocator_alloc, torch.cuda.caching_allocator_delete
    count = BYTES // 4
    assert torch.empty(count, device="cuda").data_ptr()
    return {
        "torch caching_allocator": lambda: free(alloc(BYTES)),
        "torch empty": lambda: torch.empty(count, device="cuda"),
    }


def driver_subjects() -> dict[str, Callable[[], Any]]:
    """The driver's pool through ctypes: mostly the cost of ctypes; the C++ part has it without."""
    driver = ctypes.CDLL("libcuda.so.1")
    address, stream = ctypes.c_uint64(), ctypes.c_void_p()

    def pair() -> None:
        driver.cuMemAllocAsync(ctypes.byref(address), ctypes.c_size_t(BYTES), stream)
        driver.cuMemFreeAsync(address, stream)

    pair()
    assert address.value
    return {"cuMemAllocAsync, ctypes": pair}


def python_part() -> dict[str, Any]:
    subjects = ours()
    failed = {}
    for make in (cupy_subjects, torch_subjects, driver_subjects):
        try:
            subjects |= make()
        except (ImportError, OSError, RuntimeError, AttributeError) as error:
            failed[make.__name__.removesuffix("_subjects")] = str(error).splitlines()[0]
    before = MEMORY.stats()
    results = harness.alternate(subjects, kw.current_device().synchronize, calls=5000)
    after = MEMORY.stats()
    return {
        "us": results,
        "absent": failed,
        "misses while measured": after["misses"] - before["misses"],
    }


def cpp_part(program: pathlib.Path) -> dict[str, Any] | None:
    if not program.is_file():
        return None
    run = subprocess.run([program], capture_output=True, text=True, check=True, env=os.environ)
    return json.loads(run.stdout)


def main() -> None:
    options = harness.arguments(__doc__ or "", "alloc_cost")
    device = kw.current_device()
    folder = os.environ.get("KERNWRIGHT_BENCH_BUILD", "build/release")
    program = pathlib.Path(__file__).parents[1] / folder / "bench" / "alloc_cost"
    with MEMORY.use(MEMORY.PoolResource()):
        python = python_part()
    harness.write(
        options.output,
        {
            "machine": harness.machine(),
            "bytes": BYTES,
            "simulated": device.is_simulated,
            "cpp, us": cpp_part(program),
            "python": python,
        },
    )


if __name__ == "__main__":
    main()
