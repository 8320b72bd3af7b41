"""The first call of library operations in a new process, and one compile of their text.

Cold: no cache is used, and NVRTC's own is off. For comparison, the bare compiler is called through
ctypes with the same text, headers, names and kind of code, and default options. Warm: code comes
from the disk cache. For comparison, the driver loads that code, and a later call is timed. Each
figure has its own process; NVRTC (cold) or the device (warm) is ready before. Subjects take turns.
Both processor time, which other programs disturb less, and elapsed time are given.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import json
import os
import pathlib
import statistics
import tempfile
import time

import harness

OPERATIONS = [
    *("add", "exp", "astype", "copy", "transpose", "sum", "sum_rows", "sum_columns", "var"),
    *("cumulative_sum", "argmax", "softmax", "softmax_backward", "rms_norm", "layer_norm"),
    *("rms_norm_backward", "gelu", "swiglu", "cross_entropy", "cross_entropy_grad", "mse_loss"),
    *("embedding", "take", "sort"),
]
SHAPE = (64, 4096)
ROUNDS = 5


def processor_ms():
    """Run time of the threads of this process and of its children, which do the compiles."""
    pid, total = str(os.getpid()), 0
    for folder in pathlib.Path("/proc").iterdir():
        try:
            if not folder.name.isdigit():
                continue
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            if pid in (folder.name, parent):
                for thread in (folder / "task").iterdir():
                    total += int((thread / "schedstat").read_text().split()[0])
        except OSError:  # the process has ended
            continue
    return total / 1e6


def timed(call):
    before, process_s, wall = processor_ms(), time.process_time(), time.perf_counter()
    call()
    wall, process_s = time.perf_counter() - wall, time.process_time() - process_s
    return {"ms": wall * 1e3, "own_ms": process_s * 1e3, "cpu_ms": processor_ms() - before}


def operation(name):
    import kernwright as kw
    from kernwright._jit.library import Prepared

    call = Prepared(name, "float32", SHAPE, kw.current_device()).make()
    return kw, call


def child_first(name, folder):
    """The first call. KERNWRIGHT_RECORD, if set, names a file that records its requests."""
    kw, call = operation(name)
    if os.environ["KERNWRIGHT_CACHE"] == "memory":
        kw.kernel('extern "C" __global__ void nothing(int n) {}').compile()
    first = timed(call)
    kw.synchronize()
    call()  # the second call, with work that later ones no longer have
    later = timed(call)
    return {**first, "later_ms": later["ms"], "later_own_ms": later["own_ms"]}


def requests(folder):
    lines = (pathlib.Path(folder) / "record.jsonl").read_text().splitlines()
    return [line for line in map(json.loads, lines) if line["options"]["headers"]]


def child_plain(name, folder):
    """NVRTC alone, on each text of the operation with all of its requested names."""
    from nvrtc_loop import library

    import kernwright as kw

    device = kw.current_device()
    major, minor = (8, 0) if device.is_simulated else device.compute_capability
    options = [f"--gpu-architecture=sm_{major}{minor}", "--std=c++17", "--no-cache"]
    options += ["-lineinfo"] if device.is_simulated else []
    nvrtc = library()
    texts: dict[str, tuple[str, dict[str, str], list[str]]] = {}
    for line in requests(folder):
        texts.setdefault(line["name"], (line["source"], line["options"]["headers"], []))[2].extend(
            line["names"]
        )

    def strings(values):
        return (ctypes.c_char_p * len(values))(*[value.encode() for value in values])

    def compile(text, headers, names):
        program = ctypes.c_void_p()
        made = nvrtc.nvrtcCreateProgram(
            ctypes.byref(program), text.encode(), b"k.cu", len(headers),
            strings(list(headers.values())), strings(list(headers)),
        )  # fmt: skip
        for each in names:
            made = made or nvrtc.nvrtcAddNameExpression(program, each.encode())
        made = made or nvrtc.nvrtcCompileProgram(program, len(options), strings(options))
        if made != 0:
            size = ctypes.c_size_t()
            nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            nvrtc.nvrtcGetProgramLog(program, log)
            said = log.value.decode(errors="replace")[:500]
            raise SystemExit(f"NVRTC answered {made}: {said}")
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))

    compile('extern "C" __global__ void nothing(int n) {}', {}, [])

    def all_texts():
        for text, headers, names in texts.values():
            compile(text, headers, names)

    return {**timed(all_texts), "texts": len(texts), "compiles": len(requests(folder))}


def child_load(name, folder):
    """The driver's load of the operation's code, and its other calls for a kernel."""
    import kernwright as kw

    device = kw.current_device()
    loads = []
    for number, line in enumerate(requests(folder)):
        path = pathlib.Path(folder) / f"code{number}"
        if path.exists():
            loads.append((kw.ObjectCode.load(path), line["names"][0]))
            continue
        options = kw.ProgramOptions(
            headers=line["options"]["headers"], lineinfo=device.is_simulated
        )
        kind = "ptx" if device.is_simulated else "cubin"
        kw.Program(line["source"], options).compile(kind, line["names"]).save(path)
    if not loads:
        return {"ms": 0.0, "own_ms": 0.0, "cpu_ms": 0.0}
    kw.kernel('extern "C" __global__ void nothing(int n) {}').compile()
    kw.empty(SHAPE, "float32")
    return timed(lambda: [code.kernel(name).compile(device) for code, name in loads])


CHILDREN = {"first": child_first, "plain": child_plain, "load": child_load}


run = functools.partial(harness.child, "first_call_parts")


def middle(rows, key):
    return round(statistics.median(row[key] for row in rows), 2)


def measure(name, rounds):
    with tempfile.TemporaryDirectory() as folder:
        cold = {"KERNWRIGHT_CACHE": "memory"}
        warm = {"KERNWRIGHT_CACHE": "disk", "KERNWRIGHT_CACHE_DIR": f"{folder}/cache"}
        run("first", name, folder, **warm, KERNWRIGHT_RECORD=f"{folder}/record.jsonl")
        if not (pathlib.Path(folder) / "record.jsonl").exists():
            return {"compiles": 0}  # the driver does it: a copy of contiguous elements
        run("load", name, folder, **cold)
        rows = {"first": [], "plain": [], "warm": [], "load": []}
        for _ in range(rounds):
            rows["first"].append(run("first", name, folder, **cold))
            rows["plain"].append(run("plain", name, folder, **cold))
            rows["warm"].append(run("first", name, folder, **warm))
            rows["load"].append(run("load", name, folder, **cold))
    plain, warm, load = rows["plain"], rows["warm"], rows["load"]

    def beyond(key):
        later = middle(warm, f"later_{key}")
        return round(middle(warm, key) - middle(load, key) - later, 2)

    return {
        "texts": plain[0]["texts"],
        "compiles": plain[0]["compiles"],
        "first call": middle(rows["first"], "ms"),
        "first call, processor": middle(rows["first"], "cpu_ms"),
        "NVRTC": middle(plain, "ms"),
        "NVRTC, processor": middle(plain, "cpu_ms"),
        "over NVRTC": round(middle(rows["first"], "cpu_ms") / middle(plain, "cpu_ms"), 3),
        "warm first call": middle(rows["warm"], "ms"),
        "load": middle(rows["load"], "ms"),
        "later call": middle(warm, "later_ms"),
        "warm, beyond load and call": beyond("ms"),
        "warm, beyond load and call, processor": beyond("own_ms"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=OPERATIONS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    output = harness.RESULTS / "first_call_parts.json"
    parser.add_argument("-o", "--output", type=pathlib.Path, default=output)
    options = parser.parse_args()
    results = {name: measure(name, options.rounds) for name in options.names}
    harness.write(
        options.output,
        {
            "subject": "first_call_parts",
            "unit": "ms",
            "machine": harness.machine(),
            "results": results,
        },
    )


if __name__ == "__main__":
    main()
