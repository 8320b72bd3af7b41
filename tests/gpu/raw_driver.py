"""The CUDA driver through ctypes: its own behaviour, without our library in between."""

import ctypes
import json
import os
import pathlib
import struct
import subprocess
import sys
import time

# Exported names of libcuda that differ from CUDA's own.
SYMBOLS = {
    name: name + "_v2"
    for name in (
        "cuCtxCreate",
        "cuCtxDestroy",
        "cuCtxPushCurrent",
        "cuCtxPopCurrent",
        "cuDevicePrimaryCtxRelease",
        "cuDevicePrimaryCtxReset",
        "cuDeviceTotalMem",
        "cuMemAlloc",
        "cuMemFree",
        "cuMemGetInfo",
        "cuMemcpyHtoD",
        "cuMemcpyDtoH",
        "cuMemcpyDtoD",
        "cuMemcpyHtoDAsync",
        "cuMemcpyDtoHAsync",
        "cuMemcpyDtoDAsync",
        "cuMemsetD8",
        "cuMemsetD32",
        "cuStreamDestroy",
        "cuEventDestroy",
        "cuModuleGetGlobal",
        "cuMemAllocHost",
        "cuMemHostRegister",
        "cuStreamBeginCapture",
    )
}


class Missing(Exception):
    """The driver at hand lacks a function."""


class Driver:
    """Calls by name; the result code comes back, and never an exception for it."""

    def __init__(self):
        self.library = ctypes.CDLL(os.environ.get("KERNWRIGHT_TEST_LIBCUDA", "libcuda.so.1"))
        self.must("cuInit", 0)

    def call(self, name, *arguments):
        try:
            function = getattr(self.library, SYMBOLS.get(name, name))
        except AttributeError:
            raise Missing(name) from None
        return function(*arguments)

    def must(self, name, *arguments):
        code = self.call(name, *arguments)
        if code != 0:
            raise RuntimeError(f"{name}: {self.name(code)}")

    def name(self, code):
        text = ctypes.c_char_p()
        self.library.cuGetErrorName(code, ctypes.byref(text))
        return (text.value or b"unknown").decode().removeprefix("CUDA_") + f" ({code})"

    def handle(self, name, *arguments):
        """Calls a function with a handle as its first parameter; raises on errors."""
        made = ctypes.c_void_p()
        self.must(name, ctypes.byref(made), *arguments)
        return made

    def count(self):
        number = ctypes.c_int()
        self.must("cuDeviceGetCount", ctypes.byref(number))
        return number.value

    def attribute(self, number, device=0):
        value = ctypes.c_int()
        self.must("cuDeviceGetAttribute", ctypes.byref(value), number, device)
        return value.value

    def memory(self, size=256):
        address = ctypes.c_uint64()
        self.must("cuMemAlloc", ctypes.byref(address), ctypes.c_size_t(size))
        self.must("cuMemsetD8", address, 0, ctypes.c_size_t(size))
        return address

    def free_bytes(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.must("cuMemGetInfo", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def function(self, image, name):
        module = self.handle("cuModuleLoadData", image)
        return self.handle("cuModuleGetFunction", module, name.encode())

    def launch(self, function, *arguments, grid=(1, 1, 1), block=(1, 1, 1), shared=0, stream=None):
        """The code of a launch; arguments are ctypes values."""
        pointers = (ctypes.c_void_p * max(1, len(arguments)))(
            *(ctypes.cast(ctypes.byref(a), ctypes.c_void_p) for a in arguments)
        )
        return self.call("cuLaunchKernel", function, *grid, *block, shared, stream, pointers, None)


def compile_image(source, arch, kind="cubin"):
    """Object code of extern "C" kernels, in a process that leaves the GPU alone."""
    if "KERNWRIGHT_TEST_LIBCUDA" in os.environ:  # a stand-in for PTX alone
        kind, arch = "ptx", arch.replace("sm", "compute")
    program = (
        "import sys, kernwright as kw\n"
        "options = kw.ProgramOptions(arch=sys.argv[1])\n"
        "code = kw.Program(sys.stdin.read(), options).compile(sys.argv[2]).code\n"
        "sys.stdout.buffer.write(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, arch, kind],
        input=source.encode(),
        capture_output=True,
        timeout=60,
        env={**os.environ, "KERNWRIGHT_DEVICE": "sim"},
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode()[-500:])
    return done.stdout + (b"\0" if kind == "ptx" else b"")


def text_section(image):
    """Offset and size of the first .text section of a cubin; the whole of any other file."""
    if not image.startswith(b"\x7fELF"):
        return 64, len(image) - 64
    table, entry, count, names = struct.unpack_from("<Q10xHHH", image, 40)
    base = struct.unpack_from("<Q", image, table + names * entry + 24)[0]
    for index in range(count):
        name, offset, size = struct.unpack_from("<I20xQQ", image, table + index * entry)
        if image[base + name :].startswith(b".text"):
            return offset, size
    raise ValueError("no code")


def emit(key, value):
    """A finding of a child, written at once: the next call may end it."""
    print(json.dumps([key, value]), flush=True)


def collect(arguments, timeout, **environment):
    """Runs a child that emits; {"findings": {...}, "ended": exit code or "timeout", "seconds"}."""
    start = time.monotonic()
    with subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    ) as child:
        try:
            out, err = child.communicate(timeout=timeout)
            ended = child.returncode
        except subprocess.TimeoutExpired:
            child.kill()
            out, err = child.communicate()
            ended = "timeout"
    findings = {}
    for line in out.splitlines():
        try:
            key, value = json.loads(line)
        except ValueError:
            continue  # output of device code or of the driver
        findings[key] = value
    result = {"findings": findings, "ended": ended, "seconds": round(time.monotonic() - start, 2)}
    if ended != 0 and err:
        result["error"] = err[-800:]
    return result


def timed(call):
    """(result, milliseconds)"""
    start = time.perf_counter()
    result = call()
    return result, round((time.perf_counter() - start) * 1e3, 3)


# The device of the library: the GPU, unless the driver is a stand-in.
LIBRARY_DEVICE = "sim" if "KERNWRIGHT_TEST_LIBCUDA" in os.environ else "cuda"
# The script with the option `--part` for a child's part.
MAIN = pathlib.Path(__file__).resolve().with_name("measure_unknowns.py")
SAXPY = """extern "C" __global__ void good(int* p) { p[0] = 42; }
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void shared(int* p) { extern __shared__ int s[]; if (p[1]) p[0] = s[0]; }
"""


def start():
    """The driver with the primary context of device 0 current, and this context."""
    d = Driver()
    context = d.handle("cuDevicePrimaryCtxRetain", 0)
    d.must("cuCtxSetCurrent", context)
    return d, context


def arch_of(d):
    return f"sm_{d.attribute(75)}{d.attribute(76)}"
