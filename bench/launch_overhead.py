"""Cost of launching from Python: ours, checked, beside CuPy, cuda.core and torch, one run on a GPU.

Host time of a call in a loop of 2000 (the queue never fills: the kernel is shorter than the call).
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from typing import Any

import numpy as np

import harness
import kernwright as kw

SOURCE = r"""
extern "C" __global__ void axpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}"""
N = 1024


def wide_source(count: int) -> str:
    """A kernel of `count` int parameters that adds them into out[0]."""
    parameters = ", ".join(f"int p{i}" for i in range(count - 1))
    total = " + ".join(f"p{i}" for i in range(count - 1))
    return (
        f'extern "C" __global__ void wide(int* out, {parameters}) '
        f"{{ if (threadIdx.x == 0) out[0] = {total}; }}"
    )


UNCHECKED = "kernwright bound, unchecked"


def ours() -> dict[str, Any]:
    k = kw.kernel(SOURCE)
    x, y = kw.ones(N), kw.ones(N)
    run = k[4, 256]
    check = kw.ones(N)
    run(2.0, x, check, N)
    assert (check.numpy() == 3).all()
    subjects = {
        "kernwright k[grid, block](...)": lambda: k[4, 256](2.0, x, y, N),
        "kernwright bound configuration": lambda: run(2.0, x, y, N),
        UNCHECKED: lambda: run(2.0, x, y, N),
    }
    for count in (16, 58):
        out = kw.zeros(1, dtype=np.int32)
        bound = kw.kernel(wide_source(count))[1, 32]
        numbers = tuple(range(count - 1))
        bound(out, *numbers)
        assert out.numpy()[0] == sum(numbers)
        subjects[f"kernwright {count} arguments"] = lambda b=bound, o=out, v=numbers: b(o, *v)
    return subjects


def cupy_subjects() -> dict[str, Any]:
    import cupy as cp

    k = cp.RawKernel(SOURCE, "axpy")
    x, y, a = cp.ones(N, cp.float32), cp.ones(N, cp.float32), np.float32(2)
    ours_kernel = kw.kernel(SOURCE)[4, 256]
    return {
        "CuPy RawKernel": lambda: k((4,), (256,), (a, x, y, N)),
        "kernwright on CuPy arrays": lambda: ours_kernel(2.0, x, y, N),
    }


def torch_subjects() -> dict[str, Any]:
    import torch

    x, y = torch.ones(N, device="cuda"), torch.ones(N, device="cuda")
    subjects = {"torch add_": lambda: y.add_(x)}
    ours_kernel = kw.kernel(SOURCE)[4, 256]
    subjects["kernwright on torch tensors"] = lambda: ours_kernel(2.0, x, y, N)
    compiled = torch.cuda._compile_kernel(SOURCE, "axpy")
    subjects["torch _compile_kernel"] = lambda: compiled((4, 1, 1), (256, 1, 1), (2.0, x, y, N))
    return subjects


def cuda_core_subjects() -> dict[str, Any]:
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

    device = Device()
    device.set_current()
    stream = device.create_stream()
    major, minor = device.compute_capability
    program = Program(SOURCE, "c++", ProgramOptions(arch=f"sm_{major}{minor}"))
    k = program.compile("cubin").get_kernel("axpy")
    x, y = kw.ones(N), kw.ones(N)
    config, a, n = LaunchConfig(grid=(4,), block=(256,)), np.float32(2), np.int32(N)
    px, py = x.ptr, y.ptr
    keep = (x, y)
    return {
        "cuda.core launch (unchecked)": lambda k=k, keep=keep: launch(
            stream, config, k, a, px, py, n
        )
    }


def floor(build: pathlib.Path) -> dict[str, Any]:
    """The driver's own loop and our C++ API, from bench/launch_floor.cpp."""
    program = build / "bench" / "launch_floor"
    if not program.is_file():
        return {}
    result = subprocess.run([program], check=True, capture_output=True, text=True)
    return json.loads(result.stdout)


def main() -> None:
    options = harness.arguments(__doc__.splitlines()[0], "launch_overhead")
    subjects, missing = ours(), {}
    for make in (cuda_core_subjects, cupy_subjects, torch_subjects):
        try:
            subjects.update(make())
        except Exception as error:  # a peer that is absent or broken is named, not hidden
            missing[make.__name__] = repr(error)
    folder = os.environ.get("KERNWRIGHT_BENCH_BUILD", "build/release")
    build = pathlib.Path(__file__).parents[1] / folder
    before = floor(build)
    device = kw.current_device()
    microseconds = harness.alternate(
        subjects, device.synchronize, within={UNCHECKED: lambda: kw.checked(False)}
    )
    after = floor(build)
    harness.write(
        options.output,
        {"subject": "launch_overhead", "unit": "us per call", "machine": harness.machine(),
         "python": microseconds, "cpp": {"before": before, "after": after}, "missing": missing},
    )  # fmt: skip


if __name__ == "__main__":
    main()
