"""Cost of a kernel that was compiled before: requested again in one process, or loaded from disk by
a new process. CuPy and cuda.core do the same in whole processes."""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import harness

SAXPY = """__global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}"""

# A new process with an open device: from the text to a kernel ready to launch. It runs as a
# command and as a file, because a kernel knows the line of its text in a file.
FROM_DISK = f"""
import json, pathlib, time
import kernwright as kw
x, y = kw.ones(1024), kw.ones(1024)
kw.current_device().synchronize()
start = time.perf_counter()
k = kw.kernel('''{SAXPY}''')
k.compile()
k.attributes
ready = time.perf_counter() - start
k[4, 256](2.0, x, y, 1024)
right = bool((y.numpy() == 3).all())
# NVRTC runs in a process of its own.
nvrtc = any(path.read_text() for path in pathlib.Path("/proc/self/task").glob("*/children"))
print(json.dumps(dict(ms=ready * 1e3, right=right, nvrtc=nvrtc)))
"""
# The driver's own part of such a process, for the same object code.
DRIVER_LOAD = """
import ctypes, json, os, time
import kernwright as kw
x = kw.ones(1024)
kw.current_device().synchronize()
code = open(os.environ["CUBIN"], "rb").read()
driver = ctypes.CDLL("libcuda.so.1")
module, function, value = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
context = ctypes.c_void_p()
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == 0
start = time.perf_counter()
results = [
    driver.cuModuleLoadData(ctypes.byref(module), code),
    driver.cuModuleGetFunction(ctypes.byref(function), module, os.environ["NAME"].encode()),
    driver.cuFuncGetAttribute(ctypes.byref(value), 0, function),
]
ready = time.perf_counter() - start
print(json.dumps(dict(ms=ready * 1e3, right=results == [0, 0, 0] and value.value == 1024)))
"""
WHOLE = {
    "kernwright": f"""
import numpy as np, kernwright as kw
x, y = kw.asarray(np.ones(1024, np.float32)), kw.asarray(np.ones(1024, np.float32))
kw.kernel('''{SAXPY}''')[4, 256](2.0, x, y, 1024)
assert (y.numpy() == 3).all()
""",
    "cupy": f"""
import numpy as np, cupy
x, y = cupy.asarray(np.ones(1024, np.float32)), cupy.asarray(np.ones(1024, np.float32))
k = cupy.RawKernel('extern "C" ' + '''{SAXPY}''', "saxpy")
k((4,), (256,), (np.float32(2), x, y, np.int32(1024)))
assert (y.get() == 3).all()
""",
}


def again_in_process() -> dict[str, float]:
    """Microseconds of a request for a kernel that was compiled before."""
    import kernwright as kw

    kw.kernel(SAXPY).compile()
    spellings = [SAXPY + " " * n for n in range(50)]
    for text in spellings:
        kw.kernel(text).compile()

    def same_line() -> None:
        kw.kernel(SAXPY).compile()

    count = iter(range(10**9))

    def new_line() -> None:
        # Each request is on another line of another file: it hits the memory cache and loads anew.
        code = compile("k = kw.kernel(text); k.compile()", f"<{next(count)}>", "exec")
        exec(code, {"kw": kw, "text": SAXPY})

    timed = harness.alternate({"same line": same_line}, calls=2000)
    timed |= harness.alternate({"another line, loaded anew": new_line}, calls=100)
    return timed


def child(code: str, env: dict[str, str], file: str | None = None) -> str:
    """Runs the code in a new process, from `file` if given, and returns its output."""
    if file is not None:
        pathlib.Path(file).write_text(code)
    what = ["-c", code] if file is None else [file]
    run = subprocess.run([sys.executable, *what], capture_output=True, text=True, env=env)
    if run.returncode != 0:
        raise SystemExit(run.stderr)
    return run.stdout


def median_ms(runs: list[dict[str, float]]) -> float:
    return round(statistics.median(run["ms"] for run in runs), 3)


def object_code(env: dict[str, str], folder: str) -> dict[str, str]:
    """The environment for DRIVER_LOAD: the object code that FROM_DISK loads."""
    import kernwright as kw

    kernel = kw.kernel(SAXPY)
    file = pathlib.Path(folder) / "saxpy.cubin"
    file.write_bytes(kernel.cubin)
    name = next(word for word in kernel.ptx.split() if "saxpy" in word).rstrip("(")
    return {**env, "CUBIN": str(file), "NAME": name}


def main() -> None:
    options = harness.arguments(__doc__.splitlines()[0], "cache_cost")
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "KERNWRIGHT_CACHE_DIR": os.path.join(folder, "cache")}
        first = json.loads(child(FROM_DISK, env))
        script = os.path.join(folder, "first_kernel.py")
        child(FROM_DISK, env, script)  # the file's name makes another key
        import kernwright as kw

        driver_env = {} if kw.current_device().is_simulated else object_code(env, folder)
        later, in_file, driver = [], [], []
        for _ in range(15):
            later.append(json.loads(child(FROM_DISK, env)))
            in_file.append(json.loads(child(FROM_DISK, env, script)))
            if driver_env:
                driver.append(json.loads(child(DRIVER_LOAD, driver_env)))
        subjects = {
            name: code for name, code in WHOLE.items() if importlib.util.find_spec(name) is not None
        }
        if kw.current_device().is_simulated:
            subjects.pop("cupy", None)
        seconds: dict[str, list[float]] = {name: [] for name in subjects}
        for _ in range(8):
            for name, code in subjects.items():
                start = time.perf_counter()
                child(code, env)
                seconds[name].append(time.perf_counter() - start)
    results = {
        "request again, us": again_in_process(),
        "new process, text to kernel, ms": {
            "compiled": round(first["ms"], 3),
            "from the disk, median": median_ms(later),
            "from the disk, best": round(min(r["ms"] for r in later), 3),
            "from the disk, text in a file, median": median_ms(in_file),
            **({"driver alone, median": median_ms(driver)} if driver else {}),
            "nvrtc loaded": any(r["nvrtc"] for r in later + in_file),
            "results right": all(r["right"] for r in [first, *later, *in_file, *driver]),
        },
        "new process, whole, s": {
            name: round(statistics.median(v[1:]), 3) for name, v in seconds.items()
        },
    }
    harness.write(
        options.output, {"subject": "cache_cost", "machine": harness.machine(), "results": results}
    )


if __name__ == "__main__":
    main()
