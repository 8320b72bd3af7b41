"""Parts of measure_unknowns: launches, captures, thousands of modules and streams, our checks."""

import ctypes
import mmap
import os
import pathlib
import resource
import tempfile
import time

from raw_driver import (
    LIBRARY_DEVICE,
    MAIN,
    SAXPY,
    Driver,
    Missing,
    arch_of,
    collect,
    compile_image,
    emit,
    start,
)

# ---- launch dimensions: our checks beside the driver's


def launches(d):
    """(name, grid, block, shared bytes)"""
    shared = d.attribute(97)  # the most for a block with opting in
    one = (1, 1, 1)
    for name, grid in {
        "grid x 0": (0, 1, 1),
        "grid y 0": (1, 0, 1),
        "grid z 0": (1, 1, 0),
        "grid x 2^31": (2**31, 1, 1),
        "grid y 65535": (1, 65535, 1),
        "grid y 65536": (1, 65536, 1),
        "grid z 65535": (1, 1, 65535),
        "grid z 65536": (1, 1, 65536),
    }.items():
        yield name, grid, one, 0
    for name, block in {
        "block x 0": (0, 1, 1),
        "block y 0": (1, 0, 1),
        "block z 0": (1, 1, 0),
        "block x 1024": (1024, 1, 1),
        "block x 1025": (1025, 1, 1),
        "block y 1024": (1, 1024, 1),
        "block y 1025": (1, 1025, 1),
        "block z 64": (1, 1, 64),
        "block z 65": (1, 1, 65),
        "block 32 x 32": (32, 32, 1),
        "block 33 x 32": (33, 32, 1),
    }.items():
        yield name, one, block, 0
    for name, size in {
        "shared memory 48 KB": 48 << 10,
        "shared memory 48 KB + 1": (48 << 10) + 1,
        "shared memory, the most": shared,
        "shared memory, the most + 1": shared + 1,
    }.items():
        yield name, one, one, size


def part_launches(path):
    import kernwright as kw

    d, _ = start()
    image = pathlib.Path(path).read_bytes()
    function = d.function(image, "shared")
    memory = d.memory()
    ours = kw.kernel(SAXPY, "shared")
    target = kw.zeros(16, dtype="int32")
    for name, grid, block, shared in launches(d):
        opted = "not needed"
        if shared > 48 << 10:
            opted = d.name(d.call("cuFuncSetAttribute", function, 8, shared))
        code = d.launch(function, memory, grid=grid, block=block, shared=shared)
        code = code or d.call("cuCtxSynchronize")
        try:
            ours[grid, block, None, shared](target)
            kw.current_device().synchronize()
            answer = "launched"
        except kw.Error as error:
            answer = type(error).__name__
        emit(name, [d.name(code), answer, opted])


def measure_launches():
    d = Driver()
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compile_image(SAXPY, arch_of(d)))
        file.flush()
        child = collect(
            [MAIN, "--part", "launches", file.name], 40, KERNWRIGHT_DEVICE=LIBRARY_DEVICE
        )
    child["differ"] = [
        name
        for name, (driver, ours, _) in child["findings"].items()
        if (driver.endswith("(0)")) != (ours == "launched")
    ]
    return child


# ---- captures: refused calls, and calls that end the capture


def capture_calls(d, t):
    number, size, made = ctypes.c_int(), ctypes.c_size_t(), ctypes.c_void_p()
    address, host = ctypes.c_uint64(), (ctypes.c_char * 64)()
    by, n = ctypes.byref, ctypes.c_size_t(64)
    return {
        "cuStreamSynchronize": lambda: d.call("cuStreamSynchronize", t["stream"]),
        "cuStreamQuery": lambda: d.call("cuStreamQuery", t["stream"]),
        "cuStreamSynchronize, another": lambda: d.call("cuStreamSynchronize", t["other"]),
        "cuStreamSynchronize, legacy": lambda: d.call("cuStreamSynchronize", None),
        "cuCtxSynchronize": lambda: d.call("cuCtxSynchronize"),
        "cuEventRecord": lambda: d.call("cuEventRecord", t["event"], t["stream"]),
        "cuEventQuery, of before": lambda: d.call("cuEventQuery", t["old"]),
        "cuEventSynchronize, of before": lambda: d.call("cuEventSynchronize", t["old"]),
        "cuEventSynchronize, captured": lambda: (
            d.call("cuEventRecord", t["event"], t["stream"]),
            d.call("cuEventSynchronize", t["event"]),
        )[1],
        "cuStreamWaitEvent, of before": lambda: d.call(
            "cuStreamWaitEvent", t["stream"], t["old"], 0
        ),
        "cuMemAlloc": lambda: d.call("cuMemAlloc", by(address), n),
        "cuMemFree": lambda: d.call("cuMemFree", d.spare),
        "cuMemAllocAsync": lambda: d.call("cuMemAllocAsync", by(address), n, t["stream"]),
        "cuMemAllocHost": lambda: d.call("cuMemAllocHost", by(made), n),
        "cuMemHostRegister": lambda: d.call("cuMemHostRegister", t["page"], n, 0),
        "cuMemAllocManaged": lambda: d.call("cuMemAllocManaged", by(address), n, 1),
        "cuMemGetInfo": lambda: d.call("cuMemGetInfo", by(size), by(size)),
        "cuModuleLoadData": lambda: d.call("cuModuleLoadData", by(made), t["image"]),
        "cuModuleUnload": lambda: d.call("cuModuleUnload", t["spare module"]),
        "cuStreamCreate": lambda: d.call("cuStreamCreate", by(made), 1),
        "cuStreamDestroy, another": lambda: d.call("cuStreamDestroy", t["other"]),
        "cuEventCreate": lambda: d.call("cuEventCreate", by(made), 0),
        "cuEventDestroy": lambda: d.call("cuEventDestroy", t["event"]),
        "cuLaunchKernel": lambda: d.launch(t["good"], t["memory"], stream=t["stream"]),
        "cuLaunchKernel, legacy": lambda: d.launch(t["good"], t["memory"]),
        "cuLaunchKernel, another stream": lambda: d.launch(
            t["good"], t["memory"], stream=t["other"]
        ),
        "cuMemcpyHtoD": lambda: d.call("cuMemcpyHtoD", t["memory"], host, n),
        "cuMemcpyDtoH": lambda: d.call("cuMemcpyDtoH", host, t["memory"], n),
        "cuMemcpyHtoDAsync, pageable": lambda: d.call(
            "cuMemcpyHtoDAsync", t["memory"], host, n, t["stream"]
        ),
        "cuMemcpyDtoHAsync, pageable": lambda: d.call(
            "cuMemcpyDtoHAsync", host, t["memory"], n, t["stream"]
        ),
        "cuMemcpyDtoD": lambda: d.call("cuMemcpyDtoD", t["memory"], d.spare, n),
        "cuMemsetD8": lambda: d.call("cuMemsetD8", t["memory"], 0, n),
        "cuMemsetD32": lambda: d.call("cuMemsetD32", t["memory"], 0, ctypes.c_size_t(16)),
        "cuMemsetD8Async": lambda: d.call("cuMemsetD8Async", t["memory"], 0, n, t["stream"]),
        "cuFuncGetAttribute": lambda: d.call("cuFuncGetAttribute", by(number), 0, t["good"]),
        "cuFuncSetAttribute": lambda: d.call("cuFuncSetAttribute", t["good"], 8, 1024),
        "cuCtxSetLimit": lambda: d.call("cuCtxSetLimit", 1, ctypes.c_size_t(2 << 20)),
        "cuDeviceGetAttribute": lambda: d.call("cuDeviceGetAttribute", by(number), 16, 0),
        "cuStreamIsCapturing": lambda: d.call("cuStreamIsCapturing", t["stream"], by(number)),
        "cuStreamIsCapturing, legacy": lambda: d.call("cuStreamIsCapturing", None, by(number)),
        "cuStreamBeginCapture, again": lambda: d.call("cuStreamBeginCapture", t["stream"], 2),
    }


# Objects destroyed by a successful call.
DESTROYS = {"cuStreamDestroy, another": "other", "cuModuleUnload": "spare module"}


def part_captures(path):
    d, _ = start()
    image = pathlib.Path(path).read_bytes()
    # Mode and flags of the stream: 1 means non-blocking.
    modes = {"global": (0, 1), "thread": (1, 1), "relaxed": (2, 1), "global, blocking": (0, 0)}
    names = list(capture_calls(d, {}))
    for mode, (value, flags) in modes.items():
        for name in names:
            t = {"image": image, "memory": d.memory()}
            t["page"] = (ctypes.c_char * 64).from_buffer(mmap.mmap(-1, mmap.PAGESIZE))
            d.spare = d.memory()
            t["module"] = d.handle("cuModuleLoadData", image)
            t["spare module"] = d.handle("cuModuleLoadData", image)
            t["good"] = d.handle("cuModuleGetFunction", t["module"], b"good")
            t["event"] = d.handle("cuEventCreate", 0)
            t["old"] = d.handle("cuEventCreate", 0)
            t["stream"] = d.handle("cuStreamCreate", flags)
            t["other"] = d.handle("cuStreamCreate", 1)
            d.must("cuEventRecord", t["old"], t["other"])
            d.must("cuCtxSynchronize")
            d.must("cuStreamBeginCapture", t["stream"], value)
            d.must("cuMemsetD8Async", t["memory"], 0, ctypes.c_size_t(64), t["stream"])
            try:
                code = d.name(capture_calls(d, t)[name]())
            except Missing:
                code = "no such function"
            graph = ctypes.c_void_p()
            ended = d.call("cuStreamEndCapture", t["stream"], ctypes.byref(graph))
            emit(f"{mode}: {name}", [code, d.name(ended)])
            if code == d.name(0):  # a driver crashes where a handle is destroyed twice
                t.pop(DESTROYS.get(name), None)
            for thing in t.keys() & {"stream", "other"}:
                d.call("cuStreamDestroy", t[thing])
            for thing in t.keys() & {"module", "spare module"}:
                d.call("cuModuleUnload", t[thing])
            d.call("cuCtxSynchronize")


def measure_captures():
    d = Driver()
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compile_image(SAXPY, arch_of(d)))
        file.flush()
        return collect([MAIN, "--part", "captures", file.name], 30)


# ---- thousands of modules and streams: memory left behind


def rss():
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def open_files():
    return len(os.listdir("/proc/self/fd"))


def slope(d, make, count, seconds):
    """Growth per thousand over up to `count` rounds of `make`, after a tenth of them to warm up."""
    begin = time.monotonic()
    done = 0
    marks = []
    while done < count and time.monotonic() - begin < seconds:
        make()
        done += 1
        if done == count // 10:
            marks.append((done, d.free_bytes(), rss(), open_files()))
    if not marks:
        return {"rounds": done, "error": "too slow to measure"}
    d.must("cuCtxSynchronize")
    first, end = marks[0], (done, d.free_bytes(), rss(), open_files())
    thousands = max(1e-9, (end[0] - first[0]) / 1000)
    return {
        "rounds": done,
        "us each": round((time.monotonic() - begin) / done * 1e6, 2),
        "device bytes per 1000": round((first[1] - end[1]) / thousands),
        "host bytes per 1000": round((end[2] - first[2]) / thousands),
        "open files": end[3] - first[3],
    }


def part_churn(path, what, count, seconds):
    d, _ = start()
    image = pathlib.Path(path).read_bytes()
    memory = d.memory()

    def module():
        loaded = d.handle("cuModuleLoadData", image)
        function = d.handle("cuModuleGetFunction", loaded, b"good")
        d.launch(function, memory)
        d.must("cuModuleUnload", loaded)

    def stream():
        d.must("cuStreamDestroy", d.handle("cuStreamCreate", 1))

    def event():
        d.must("cuEventDestroy", d.handle("cuEventCreate", 0))

    emit("churn", slope(d, {"module": module, "stream": stream, "event": event}[what], int(count),
                        float(seconds)))  # fmt: skip
    if what == "module":
        before, host = d.free_bytes(), rss()
        kept = [d.handle("cuModuleLoadData", image) for _ in range(500)]
        for loaded in kept:
            d.launch(d.handle("cuModuleGetFunction", loaded, b"good"), memory)
        d.must("cuCtxSynchronize")
        emit("each of 500 kept", {"device bytes": (before - d.free_bytes()) // 500,
                                  "host bytes": (rss() - host) // 500})  # fmt: skip


def measure_churn():
    d = Driver()
    found = {}
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compile_image(SAXPY, arch_of(d)))
        file.flush()
        for mode in ("LAZY", "EAGER"):
            arguments = [MAIN, "--part", "churn", file.name, "module", 10000, 15]
            found[f"modules, {mode.lower()}"] = collect(arguments, 30, CUDA_MODULE_LOADING=mode)
        for what in ("stream", "event"):
            arguments = [MAIN, "--part", "churn", file.name, what, 100000, 8]
            found[f"{what}s"] = collect(arguments, 20)
    return found


# ---- our own cost


def part_checks():
    import statistics

    import kernwright as kw

    kernel = kw.kernel(SAXPY, "saxpy")
    x, y = kw.zeros(1024), kw.zeros(1024)
    device = kw.current_device()
    bound = kernel[4, 256]

    def launch():
        samples = []
        for _ in range(9):
            begin = time.perf_counter()
            for _ in range(1500):
                bound(2.0, x, y, 1024)
            samples.append((time.perf_counter() - begin) / 1500 * 1e9)
            device.synchronize()
        return round(statistics.median(samples))

    launch()
    emit("a launch of 4 arguments, ns", launch())
    if hasattr(kw, "checked"):
        with kw.checked(False):
            launch()
            emit("without argument checks, ns", launch())
    d, _ = start()
    function = d.function(compile_image(SAXPY, arch_of(d)), "good")
    memory = d.memory()
    begin = time.perf_counter()
    for _ in range(5000):
        d.launch(function, memory)
    emit("cuLaunchKernel through ctypes, ns", round((time.perf_counter() - begin) / 5000 * 1e9))
    d.must("cuCtxSynchronize")


def measure_checks():
    return collect([MAIN, "--part", "checks"], 40, KERNWRIGHT_DEVICE=LIBRARY_DEVICE)
