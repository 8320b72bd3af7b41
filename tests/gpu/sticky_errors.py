"""Provokes each sticky error on a real GPU, in processes of their own, and records what still
works: which calls, other contexts, other devices, a reset of the primary context, the library.

    python tests/gpu/sticky_errors.py -o sticky.json
"""

import argparse
import ctypes
import json
import pathlib
import sys
import time

from raw_driver import (
    LIBRARY_DEVICE,
    Driver,
    Missing,
    collect,
    compile_image,
    emit,
    text_section,
    timed,
)

PRELUDE = 'extern "C" __global__ void good(int* p) { p[0] = 42; }\n'
BROKEN = {
    "illegal address": 'extern "C" __global__ void bad(int* p) { *(volatile int*)16 = p[0]; }',
    "misaligned address": """extern "C" __global__ void bad(int* p) {
        *(volatile int*)((char*)p + 1) = 1; }""",
    "assert": """extern "C" __device__ void __assertfail(const char*, const char*, unsigned,
                                                     const char*, size_t);
        extern "C" __global__ void bad(int* p) {
            if (p[0] != 12345) __assertfail("on purpose", "bad.cu", 1, "bad", 1); }""",
    "trap": 'extern "C" __global__ void bad(int* p) { if (p[0] != 12345) asm volatile("trap;"); }',
    "illegal instruction": 'extern "C" __global__ void bad(int* p) { p[0] = 1; }',
    "invalid address space": """extern "C" __global__ void bad(int* p) {
        int local = p[0]; int* q = &local; asm volatile("" : "+l"(q) :: "memory");
        p[1] = atomicAdd(q, 1) + local; }""",
    "invalid pc": """extern "C" __global__ void bad(int* p) {
        void (*f)() = (void (*)())(size_t)(p[0] == 12345 ? 0 : 0x7654320); f(); }""",
    "stack overflow": """__device__ __noinline__ int deep(volatile int* p, int n) {
        volatile int a[64]; a[n & 63] = n; return n == 0 ? p[0] : deep(p, n - 1) + a[n & 63]; }
        extern "C" __global__ void bad(int* p) { p[1] = deep(p, 10000000); }""",
    "shared memory out of bounds": """extern "C" __global__ void bad(int* p) {
        extern __shared__ int s[]; ((volatile int*)s)[(1 << 24) + p[0] % 2] = 1; }""",
}


def calls(d, things):
    """Calls of every kind, by name, as they would be made after the error."""
    made = ctypes.c_void_p()
    number = ctypes.c_int()
    size = ctypes.c_size_t()
    address = ctypes.c_uint64()
    host = (ctypes.c_char * 64)()
    by = ctypes.byref
    return {
        "cuDriverGetVersion": lambda: d.call("cuDriverGetVersion", by(number)),
        "cuDeviceGetCount": lambda: d.call("cuDeviceGetCount", by(number)),
        "cuDeviceGetAttribute": lambda: d.call("cuDeviceGetAttribute", by(number), 16, 0),
        "cuCtxGetCurrent": lambda: d.call("cuCtxGetCurrent", by(made)),
        "cuCtxSetCurrent": lambda: d.call("cuCtxSetCurrent", things["context"]),
        "cuCtxGetDevice": lambda: d.call("cuCtxGetDevice", by(number)),
        "cuCtxSynchronize": lambda: d.call("cuCtxSynchronize"),
        "cuMemGetInfo": lambda: d.call("cuMemGetInfo", by(size), by(size)),
        "cuMemAlloc": lambda: d.call("cuMemAlloc", by(address), ctypes.c_size_t(64)),
        "cuMemFree": lambda: d.call("cuMemFree", things["spare"]),
        "cuMemAllocAsync": lambda: d.call(
            "cuMemAllocAsync", by(address), ctypes.c_size_t(64), things["stream"]
        ),
        "cuMemcpyHtoD": lambda: d.call("cuMemcpyHtoD", things["memory"], host, ctypes.c_size_t(64)),
        "cuMemcpyDtoH": lambda: d.call("cuMemcpyDtoH", host, things["memory"], ctypes.c_size_t(64)),
        "cuMemAllocHost": lambda: d.call("cuMemAllocHost", by(made), ctypes.c_size_t(64)),
        "cuStreamCreate": lambda: d.call("cuStreamCreate", by(made), 1),
        "cuStreamQuery": lambda: d.call("cuStreamQuery", things["stream"]),
        "cuStreamSynchronize": lambda: d.call("cuStreamSynchronize", things["stream"]),
        "cuEventCreate": lambda: d.call("cuEventCreate", by(made), 0),
        "cuEventQuery": lambda: d.call("cuEventQuery", things["event"]),
        "cuEventRecord": lambda: d.call("cuEventRecord", things["event"], things["stream"]),
        "cuModuleLoadData": lambda: d.call("cuModuleLoadData", by(made), things["image"]),
        "cuModuleGetFunction": lambda: d.call(
            "cuModuleGetFunction", by(made), things["module"], b"good"
        ),
        "cuLaunchKernel": lambda: d.launch(things["good"], things["memory"]),
        "cuEventDestroy": lambda: d.call("cuEventDestroy", things["event"]),
        "cuStreamDestroy": lambda: d.call("cuStreamDestroy", things["stream"]),
        "cuModuleUnload": lambda: d.call("cuModuleUnload", things["module"]),
    }


def works(d, image):
    """Whether a kernel runs in the current context and its result can be read."""
    memory = d.memory()
    function = d.function(image, "good")
    d.must("cuMemcpyHtoD", memory, bytes(64), ctypes.c_size_t(64))
    code = d.launch(function, memory) or d.call("cuCtxSynchronize")
    if code:
        return d.name(code)
    read = (ctypes.c_int * 1)()
    d.must("cuMemcpyDtoH", read, memory, ctypes.c_size_t(4))
    return "works" if read[0] == 42 else f"wrong result {read[0]}"


def attempt(call):
    try:
        return call()
    except (RuntimeError, Missing) as error:
        return str(error)


def provoke(path):
    """The child of one error: everything about the driver alone."""
    image = pathlib.Path(path).read_bytes()
    healthy = pathlib.Path(path + ".good").read_bytes()
    d = Driver()
    devices = d.count()
    others = []
    for device in range(1, devices):
        context = d.handle("cuDevicePrimaryCtxRetain", device)
        d.must("cuCtxSetCurrent", context)
        emit(f"before: device {device}", works(d, healthy))
        others.append((device, context))
    second = attempt(lambda: d.handle("cuCtxCreate", 0, 0))
    if isinstance(second, ctypes.c_void_p):
        emit("before: second context of the device", works(d, healthy))
    context = d.handle("cuDevicePrimaryCtxRetain", 0)
    d.must("cuCtxSetCurrent", context)
    emit("before: the device", works(d, healthy))
    things = {"context": context, "image": healthy, "memory": d.memory(), "spare": d.memory()}
    things["stream"] = d.handle("cuStreamCreate", 1)
    things["event"] = d.handle("cuEventCreate", 0)
    things["module"] = d.handle("cuModuleLoadData", healthy)
    things["good"] = d.handle("cuModuleGetFunction", things["module"], b"good")
    d.must("cuMemcpyHtoD", things["memory"], bytes(64), ctypes.c_size_t(64))
    bad = d.function(image, "bad")
    emit("launch", d.name(d.launch(bad, things["memory"])))
    code, took = timed(lambda: d.call("cuCtxSynchronize"))
    emit("error", d.name(code))
    emit("error after ms", took)
    for name, call in calls(d, things).items():
        code, took = timed(lambda call=call: attempt(call))
        emit(f"call {name}", [d.name(code) if isinstance(code, int) else code, took])
    if isinstance(second, ctypes.c_void_p):
        d.call("cuCtxSetCurrent", second)
        emit("after: second context of the device", attempt(lambda: works(d, healthy)))
        emit("after: destroying the second context", d.name(d.call("cuCtxDestroy", second)))
    for device, other in others:
        d.call("cuCtxSetCurrent", other)
        emit(f"after: device {device}", attempt(lambda: works(d, healthy)))
    d.call("cuCtxSetCurrent", None)
    code, took = timed(lambda: d.call("cuDevicePrimaryCtxReset", 0))
    emit("reset", [d.name(code), took])
    emit("release", d.name(d.call("cuDevicePrimaryCtxRelease", 0)))

    def retain():
        again = d.handle("cuDevicePrimaryCtxRetain", 0)
        d.must("cuCtxSetCurrent", again)
        return again.value == context.value

    same, took = timed(lambda: attempt(retain))
    emit("retain after reset", [same if isinstance(same, str) else "same handle" if same else
                                "new handle", took])  # fmt: skip
    emit("after reset: the device", attempt(lambda: works(d, healthy)))
    for device, other in others:
        d.call("cuCtxSetCurrent", other)
        emit(f"after reset: device {device}", attempt(lambda: works(d, healthy)))


def provoke_in_library(source):
    """The same error through the library: the exception, how quick it is later, and its reset."""
    import kernwright as kw

    device = kw.current_device()
    array = kw.zeros(16, dtype="int32")
    stream = kw.Stream()
    kernel = kw.kernel(source, "bad")

    def caught(call):
        try:
            call()
        except kw.Error as error:
            return f"{type(error).__name__}: {str(error).splitlines()[0]}"
        return "nothing raised"

    emit("launch", caught(lambda: kernel[1, 1](array)))
    emit("exception", caught(device.synchronize))
    emit("lost", device.lost)
    start = time.perf_counter()
    for _ in range(1000):
        caught(stream.synchronize)
    emit("later call, us", round((time.perf_counter() - start) * 1e3, 2))
    emit("later exception", caught(lambda: kw.zeros(4)).split(":")[0])
    text, took = timed(lambda: caught(device.reset))
    emit("reset", [text, took])
    emit("old array", caught(array.numpy).split(":")[0])

    def use():
        fresh = kw.zeros(4, dtype="int32")
        kw.kernel(PRELUDE, "good")[1, 1](fresh)
        if fresh.numpy()[0] != 42:
            raise kw.Error("wrong result")

    emit("after reset", caught(use))


def measure(timeout=12, only=None):
    """{error: {"driver": child, "library": child}} for every kind of sticky error."""
    import tempfile

    d = Driver()
    arch = f"sm_{d.attribute(75)}{d.attribute(76)}"
    findings = {}
    with tempfile.TemporaryDirectory() as folder:
        healthy = compile_image(PRELUDE, arch)
        for number, (name, text) in enumerate(BROKEN.items()):
            if only and name not in only:
                continue
            try:
                image = bytearray(compile_image(text, arch))
            except (RuntimeError, OSError) as error:
                findings[name] = {"error": str(error)[-300:]}
                continue
            if name == "illegal instruction":
                offset, size = text_section(image)
                image[offset : offset + size] = b"\xff" * size
            path = pathlib.Path(folder) / f"{number}.cubin"
            path.write_bytes(image)
            pathlib.Path(f"{path}.good").write_bytes(healthy)
            findings[name] = {"driver": collect([__file__, "--child", path], timeout)}
            if name not in ("illegal instruction", "stack overflow"):
                source = pathlib.Path(folder) / f"{number}.cu"
                source.write_text(text)
                findings[name]["library"] = collect(
                    [__file__, "--library", source], timeout, KERNWRIGHT_DEVICE=LIBRARY_DEVICE
                )
    return findings


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--only", action="append", help="one error; may be repeated")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--library", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        provoke(options.child)
    elif options.library:
        provoke_in_library(pathlib.Path(options.library).read_text())
    else:
        text = json.dumps(measure(only=options.only), indent=1)
        options.output.write_text(text + "\n") if options.output else print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
