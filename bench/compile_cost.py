"""Cost of compiling a new small source to a callable kernel, beside NVRTC alone and the peers.

Every source is new; the compiler's own cache is off where the interface lets one say so.
"""

from __future__ import annotations

import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Callable

import harness
import kernwright as kw

PRELUDES = {"plain": "", "cuda_fp16.h": "#include <cuda_fp16.h>\n"}
BODY = r"""
extern "C" __global__ void NAME(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}"""
serial = itertools.count()


def source(prelude: str) -> tuple[str, str]:
    name = f"axpy{next(serial)}"
    return prelude + BODY.replace("NAME", name), name


def ours(prelude: str) -> None:
    text, name = source(prelude)
    kw.kernel(text, name, extra=["--no-cache"]).compile()


def cupy_subject() -> Callable[[str], None]:
    os.environ["CUPY_CACHE_DIR"] = tempfile.mkdtemp()
    import cupy as cp

    def compile_one(prelude: str) -> None:
        text, name = source(prelude)
        cp.RawKernel(text, name, options=("--no-cache",)).compile()

    return compile_one


def cuda_core_subject() -> Callable[[str], None]:
    from cuda.core import Device, Program, ProgramOptions

    device = Device()
    device.set_current()
    major, minor = device.compute_capability

    def compile_one(prelude: str) -> None:
        text, name = source(prelude)
        options = ProgramOptions(arch=f"sm_{major}{minor}", no_cache=True)
        Program(text, "c++", options).compile("cubin").get_kernel(name)

    return compile_one


def torch_subject() -> Callable[[str], None]:
    import torch

    def compile_one(prelude: str) -> None:
        text, name = source(prelude)
        torch.cuda._compile_kernel(text, name)

    return compile_one


def measure(subjects: dict[str, Callable[[str], None]], prelude: str, rounds: int = 15):
    """Milliseconds per compile, in turn; the first round (library loading) is reported apart."""
    samples: dict[str, list[float]] = {name: [] for name in subjects}
    for _ in range(rounds):
        for name, compile_one in subjects.items():
            start = time.perf_counter()
            compile_one(prelude)
            samples[name].append((time.perf_counter() - start) * 1e3)
    return {
        name: {"first": round(v[0], 2), "min": round(min(v[1:]), 2),
               "median": round(statistics.median(v[1:]), 2)}
        for name, v in samples.items()
    }  # fmt: skip


def main() -> None:
    options = harness.arguments(__doc__.splitlines()[0], "compile_cost")
    subjects: dict[str, Callable[[str], None]] = {"kernwright": ours}
    missing = {}
    if not kw.current_device().is_simulated:
        peers = {"CuPy": cupy_subject, "cuda.core": cuda_core_subject, "torch": torch_subject}
        for name, make in peers.items():
            try:
                subjects[name] = make()
                subjects[name]("")
            except Exception as error:  # a peer that is absent or broken is named, not hidden
                subjects.pop(name, None)
                missing[name] = repr(error)
    results = {}
    for title, prelude in PRELUDES.items():
        usable = dict(subjects)
        for name in list(usable):
            try:
                usable[name](prelude)
            except Exception as error:  # a peer that cannot find the header
                missing[f"{name}, {title}"] = repr(error)[:300]
                usable.pop(name)
        results[title] = measure(usable, prelude)
    harness.write(
        options.output,
        {"subject": "compile_cost", "unit": "ms per new source", "machine": harness.machine(),
         "results": results, "missing": missing},
    )  # fmt: skip


if __name__ == "__main__":
    main()
