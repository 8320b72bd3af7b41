"""Cost of launches from Python on a GPU: ours, checked, the driver's loop and others.

Host time of a call in a loop of 2000. The kernel is shorter than the call, so the queue never
fills. Python's statements are timed as in timeit. All run in one process and in turn, also the
driver's loop (launch_loop.cpp), because the driver's part differs from process to process.
launch_floor.cpp compares our C++ API with that loop.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pathlib
import subprocess
from collections.abc import Iterator
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
LOOP = "cuLaunchKernel loop, C++"
NO_CONTEXT = "kernwright k[grid, block](...), no context current"


def ours() -> dict[str, Any]:
    k = kw.kernel(SOURCE)
    x, y = kw.ones(N), kw.ones(N)
    run = k[4, 256]
    check = kw.ones(N)
    run(2.0, x, check, N)
    assert (check.numpy() == 3).all()
    names = {"k": k, "run": run, "x": x, "y": y, "N": N}
    subjects = {
        "kernwright k[grid, block](...)": harness.statement("k[4, 256](2.0, x, y, N)", names),
        "kernwright bound configuration": harness.statement("run(2.0, x, y, N)", names),
        UNCHECKED: harness.statement("run(2.0, x, y, N)", names),
        NO_CONTEXT: harness.statement("k[4, 256](2.0, x, y, N)", names),
    }
    for count in (16, 58):
        out = kw.zeros(1, dtype=np.int32)
        bound = kw.kernel(wide_source(count))[1, 32]
        numbers = tuple(range(count - 1))
        bound(out, *numbers)
        assert out.numpy()[0] == sum(numbers)
        subjects[f"kernwright {count} arguments"] = harness.statement(
            "run(out, *numbers)", {"run": bound, "out": out, "numbers": numbers}
        )
    return subjects


class Driver:
    """The driver's own calls, in this process and in the context shared by all libraries."""

    def __init__(self, build: pathlib.Path) -> None:
        self.device = kw.current_device()
        self.calls = ctypes.CDLL("libcuda.so.1")
        self.library = ctypes.CDLL(str(build / "bench" / "launch_loop.so"))
        self.context = ctypes.c_void_p()
        self("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), 0)
        self("cuCtxSetCurrent", self.context)

    def __call__(self, name: str, *arguments: Any) -> None:
        result = getattr(self.calls, name)(*arguments)
        assert result == 0, (name, result)

    @contextlib.contextmanager
    def without_context(self) -> Iterator[None]:
        """Makes no context current, as in a process that uses kernwright alone."""
        self("cuCtxSetCurrent", None)
        yield
        self("cuCtxSetCurrent", self.context)

    def subjects(self) -> dict[str, Any]:
        """cuLaunchKernel in a C++ loop, on the same stream as launches from Python."""
        stream = ctypes.c_void_p(kw.current_stream().handle)
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        code = kw.Program(SOURCE).compile("cubin").code
        self("cuModuleLoadData", ctypes.byref(module), code)
        self("cuModuleGetFunction", ctypes.byref(function), module, b"axpy")
        x, y, check = kw.ones(N), kw.ones(N), kw.ones(N)

        def run(target: kw.Array, calls: int) -> None:
            values = (ctypes.c_float(2), ctypes.c_uint64(x.ptr), ctypes.c_uint64(target.ptr),
                      ctypes.c_int(N))  # fmt: skip
            slots = (ctypes.c_void_p * 4)(*(ctypes.addressof(value) for value in values))
            launch = self.calls.cuLaunchKernel
            result = self.library.launch_loop(launch, function, stream, slots, calls)
            assert result == 0, result

        run(check, 1)
        assert (check.numpy() == 3).all()
        return {LOOP: harness.Loop(lambda calls: run(y, calls))}


def cupy_subjects() -> dict[str, Any]:
    import cupy as cp

    k = cp.RawKernel(SOURCE, "axpy")
    x, y, a = cp.ones(N, cp.float32), cp.ones(N, cp.float32), np.float32(2)
    names = {"k": k, "run": kw.kernel(SOURCE)[4, 256], "a": a, "x": x, "y": y, "N": N}
    return {
        "CuPy RawKernel": harness.statement("k((4,), (256,), (a, x, y, N))", names),
        "kernwright on CuPy arrays": harness.statement("run(2.0, x, y, N)", names),
    }


def torch_subjects() -> dict[str, Any]:
    import torch

    x, y = torch.ones(N, device="cuda"), torch.ones(N, device="cuda")
    compiled = torch.cuda._compile_kernel(SOURCE, "axpy")
    names = {"k": compiled, "run": kw.kernel(SOURCE)[4, 256], "x": x, "y": y, "N": N}
    compiled_call = "k((4, 1, 1), (256, 1, 1), (2.0, x, y, N))"
    return {
        "torch add_": harness.statement("y.add_(x)", names),
        "kernwright on torch tensors": harness.statement("run(2.0, x, y, N)", names),
        "torch _compile_kernel": harness.statement(compiled_call, names),
    }


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
    names = {"launch": launch, "stream": stream, "config": config, "k": k, "a": a, "n": n,
             "px": x.ptr, "py": y.ptr, "keep": (x, y)}  # fmt: skip
    call = "launch(stream, config, k, a, px, py, n)"
    return {"cuda.core launch (unchecked)": harness.statement(call, names)}


def floor(build: pathlib.Path) -> dict[str, Any]:
    """The driver's own loop and our C++ API, from bench/launch_floor.cpp."""
    program = build / "bench" / "launch_floor"
    if not program.is_file():
        return {}
    result = subprocess.run([program], check=True, capture_output=True, text=True)
    return json.loads(result.stdout)


def main() -> None:
    options = harness.arguments(__doc__.splitlines()[0], "launch_overhead")
    folder = os.environ.get("KERNWRIGHT_BENCH_BUILD", "build/release")
    build = pathlib.Path(__file__).parents[1] / folder
    driver = Driver(build)
    subjects, missing = {**driver.subjects(), **ours()}, {}
    for make in (cuda_core_subjects, cupy_subjects, torch_subjects):
        try:
            subjects.update(make())
        except Exception as error:  # missing or broken packages are named, not hidden
            missing[make.__name__] = repr(error)
    before = floor(build)
    microseconds = harness.alternate(
        subjects,
        driver.device.synchronize,
        rounds=31,
        reference=LOOP,
        within={UNCHECKED: lambda: kw.checked(False), NO_CONTEXT: driver.without_context},
    )
    after = floor(build)
    harness.write(
        options.output,
        {"subject": "launch_overhead", "unit": "us per call", "machine": harness.machine(),
         "python": microseconds, "cpp": {"before": before, "after": after}, "missing": missing},
    )  # fmt: skip


if __name__ == "__main__":
    main()
