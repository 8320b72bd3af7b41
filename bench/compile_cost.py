"""Cost of compiling a new source to a cubin: ours, NVRTC alone, the peers, and in parallel.

Every source is new. No cache is used, and the compiler's own cache is off where possible. "NVRTC"
is the bare library with default options, "NVRTC, minimal + PCH" uses its fastest options. Each
subject has its own process, as in normal use, and they take turns.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

os.environ["KERNWRIGHT_CACHE"] = "memory"

from nvrtc_loop import NvrtcLoop

import harness
import kernwright as kw

AXPY = r"""
extern "C" __global__ void NAME(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}"""
HALF = r"""#include <cuda_fp16.h>
extern "C" __global__ void NAME(float a, const __half* x, __half* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = __hfma(__float2half(a), x[i], y[i]);
}"""
SMALL_FLOATS = r"""#include <cuda_bf16.h>
#include <cuda_fp8.h>
extern "C" __global__ void NAME(float a, const __nv_bfloat16* x, __nv_fp8_e4m3* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = __nv_fp8_e4m3(a * __bfloat162float(x[i]));
}"""
BLOCK_REDUCE = r"""#include <cub/block/block_reduce.cuh>
extern "C" __global__ void NAME(float a, const float* x, float* y, int n) {
    using Reduce = cub::BlockReduce<float, 256>;
    __shared__ typename Reduce::TempStorage storage;
    const float sum = Reduce(storage).Sum(a * x[threadIdx.x]);
    if (threadIdx.x == 0) y[0] = sum;
}"""
# Row -> (source, rounds, whether --minimal is possible).
ROWS = {
    "small": (AXPY, 25, True),
    "cuda_fp16.h": (HALF, 25, True),
    "cuda_bf16.h + cuda_fp8.h": (SMALL_FLOATS, 25, True),
    "cub block reduce": (BLOCK_REDUCE, 6, False),
}
VARIANTS = 200
FLOOR = "NVRTC, minimal + PCH"
WARM_ROUNDS = 2  # the second makes a precompiled header, if any

serial = itertools.count()


def fresh(template: str) -> tuple[str, str]:
    name = f"k{next(serial)}"
    return template.replace("NAME", name), name


def arch() -> str:
    device = kw.current_device()
    major, minor = (8, 0) if device.is_simulated else device.compute_capability
    return f"sm_{major}{minor}"


def kernwright_subject() -> Callable[[str], None]:
    options = kw.ProgramOptions(arch=arch(), extra=["--no-cache"])

    def compile_one(template: str) -> None:
        kw.Program(fresh(template)[0], options).compile("cubin")

    return compile_one


def nvrtc_subject(*options: str, pch: bool = False) -> Callable[[str], None]:
    loop = NvrtcLoop(arch(), options, pch)

    def compile_one(template: str) -> None:
        loop(fresh(template)[0])

    return compile_one


def cupy_subject() -> Callable[[str], None]:
    os.environ["CUPY_CACHE_DIR"] = tempfile.mkdtemp()
    import cupy as cp

    def compile_one(template: str) -> None:
        text, name = fresh(template)
        cp.RawKernel(text, name, options=("--no-cache", "--std=c++17")).compile()

    return compile_one


def cuda_core_subject() -> Callable[[str], None]:
    from cuda.core import Device, Program, ProgramOptions

    Device().set_current()
    from nvrtc_loop import include_options

    folders = [option[2:].decode() for option in include_options()]

    def compile_one(template: str) -> None:
        text, name = fresh(template)
        options = ProgramOptions(arch=arch(), no_cache=True, std="c++17", include_path=folders)
        Program(text, "c++", options).compile("cubin").get_kernel(name)

    return compile_one


def torch_subject() -> Callable[[str], None]:
    import torch

    def compile_one(template: str) -> None:
        text, name = fresh(template)
        torch.cuda._compile_kernel(text, name)

    return compile_one


def makers(title: str) -> dict[str, Callable[[], Callable[[str], None]]]:
    """The compile function of each subject in a row, for use inside its process."""
    best = ("--minimal",) if ROWS[title][2] else ()
    pch = "#include" in ROWS[title][0]
    return {
        "kernwright": kernwright_subject,
        "NVRTC": nvrtc_subject,
        FLOOR: lambda: nvrtc_subject(*best, pch=pch),
        "CuPy": cupy_subject,
        "cuda.core": cuda_core_subject,
        "torch": torch_subject,
    }


def serve(title: str, name: str) -> None:
    """Compiles a new source of the row for each input line, and prints the milliseconds."""
    compile_one = makers(title)[name]()
    compile_one(AXPY)  # loads libraries
    for _ in sys.stdin:
        start = time.perf_counter()
        compile_one(ROWS[title][0])
        print((time.perf_counter() - start) * 1e3, flush=True)


class Subject:
    """One subject of a row, in a process of its own."""

    def __init__(self, title: str, name: str) -> None:
        folder = str(pathlib.Path(__file__).parent)
        code = f"import sys; sys.path.insert(0, {folder!r}); import compile_cost; "
        code += f"compile_cost.serve({title!r}, {name!r})"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __call__(self) -> float:
        """Milliseconds of one compile. Raises RuntimeError with the end of the process's output."""
        with contextlib.suppress(BrokenPipeError):
            print(file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self.process.communicate()[1][-300:])
        return float(line)

    def close(self) -> None:
        self.process.communicate()


def measure(title: str, names: list[str], missing: dict[str, str]) -> dict[str, dict[str, float]]:
    """Milliseconds per compile, in turn; first compiles (of headers) are reported separately.

    The order within a round changes, because a subject leaves its code in the processor's caches.
    The ratio is the median of the rounds' ratios; a slow phase of the machine hardly changes it.
    """
    subjects = {name: Subject(title, name) for name in names}
    samples: dict[str, list[float]] = {}
    for name, subject in list(subjects.items()):
        try:
            samples[name] = [subject()]
        except RuntimeError as error:  # a peer that fails is named, not hidden
            missing[f"{name}, {title}"] = str(error)
            del subjects[name]
    order, shuffled = list(subjects), random.Random(1)
    for _ in range(ROWS[title][1] + WARM_ROUNDS - 1):
        for name in order:
            samples[name].append(subjects[name]())
        shuffled.shuffle(order)
    for subject in subjects.values():
        subject.close()
    result = {
        name: {
            "first": round(v[0], 2),
            "second": round(v[1], 2),
            "min": round(min(v[WARM_ROUNDS:]), 2),
            "median": round(statistics.median(v[WARM_ROUNDS:]), 2),
        }
        for name, v in samples.items()
    }
    pairs = zip(samples["kernwright"][WARM_ROUNDS:], samples[FLOOR][WARM_ROUNDS:], strict=True)
    ratio = statistics.median(ours / floor for ours, floor in pairs)
    result["kernwright"]["over the best of NVRTC"] = round(ratio, 3)
    return result


def variants() -> list[kw.Kernel]:
    """Kernels of one source with different options, not compiled yet."""
    unit = next(serial)
    text = AXPY.replace("NAME", f"v{unit}").replace("a * x[i]", "FACTOR * a * x[i]")
    return [
        kw.kernel(text, f"v{unit}", defines={"FACTOR": i}, extra=["--no-cache"])
        for i in range(VARIANTS)
    ]


def parallel() -> dict[str, float]:
    """200 variants one by one, then all by warmup(): twice, and the first run is cold."""
    for kernel in variants()[:5]:
        kernel.compile()
    start = time.perf_counter()
    for kernel in variants():
        kernel.compile()
    one_by_one = time.perf_counter() - start
    times = []
    for _ in range(3):
        kernels = variants()
        start = time.perf_counter()
        kw.warmup(kernels, wait=True)
        times.append(time.perf_counter() - start)
    return {
        "processors": len(os.sched_getaffinity(0)),
        "variants": VARIANTS,
        "one after the other, ms": round(one_by_one * 1e3, 1),
        "warmup, first time, ms": round(times[0] * 1e3, 1),
        "warmup, ms": round(min(times) * 1e3, 1),
        "speed-up, first time": round(one_by_one / times[0], 2),
        "speed-up": round(one_by_one / min(times), 2),
    }


# Runs parallel() on two distant processors, because neighbours may share a core.
ON_TWO = f"""
import json, os, sys
mine = sorted(os.sched_getaffinity(0))
os.sched_setaffinity(0, {{mine[0], mine[len(mine) // 2]}})
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
import compile_cost
print(json.dumps(compile_cost.parallel()))
"""


def parallel_on_two() -> dict[str, float]:
    run = subprocess.run([sys.executable, "-c", ON_TWO], capture_output=True, text=True)
    if run.returncode != 0:
        raise SystemExit(run.stderr)
    return json.loads(run.stdout)


def main() -> None:
    options = harness.arguments(__doc__.splitlines()[0], "compile_cost")
    missing: dict[str, str] = {}
    names = ["kernwright", "NVRTC", FLOOR]
    if not kw.current_device().is_simulated:
        names += ["CuPy", "cuda.core", "torch"]
    results = {title: measure(title, names, missing) for title in ROWS}
    harness.write(
        options.output,
        {"subject": "compile_cost", "unit": "ms per new source", "machine": harness.machine(),
         "results": results, "parallel": parallel(),
         "parallel on two": parallel_on_two(), "missing": missing},
    )  # fmt: skip


if __name__ == "__main__":
    main()
