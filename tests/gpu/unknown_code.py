"""Parts of measure_unknowns: damaged code, code of other versions, cancelled compiles."""

import ctypes
import os
import pathlib
import random
import tempfile
import time

from raw_driver import (
    MAIN,
    SAXPY,
    Driver,
    arch_of,
    collect,
    compile_image,
    emit,
    start,
    text_section,
)

BOMB = """template <int N, int M> struct B {
    static const long v = B<N - 1, 2 * M>::v + B<N - 1, 2 * M + 1>::v; };
template <int M> struct B<0, M> { static const long v = M; };
__global__ void k(long* x) { *x = B<15, 0>::v; }
"""
LONG = "\n".join(
    f"__global__ void k{i}(float* x) {{ for (int i = 0; i < x[0]; ++i) x[i] = sinf(x[i] * {i}) "
    f"+ powf(x[i + 1], {i}.5f) + cosf(x[i + 2]) + erff(x[i]); }}"
    for i in range(150)
)


# ---- damaged code: errors of loading and of launching


def damage(image):
    """(name, bytes) of cut and changed cubins, always the same ones."""
    rng = random.Random(1)
    for part in range(16):
        yield f"cut to {part}/16", image[: len(image) * part // 16]
    for size in (1, 4, 16, 63, 64, 65, 128, len(image) - 1):
        yield f"cut to {size} bytes", image[:size]
    offset, size = text_section(image)
    for number in range(60):
        for where, low, high in (
            ("header", 0, 64),
            ("code", offset, offset + size),
            ("anywhere", 64, len(image)),
        ):
            changed = bytearray(image)
            bit = rng.randrange(8 * low, 8 * high)
            changed[bit // 8] ^= 1 << bit % 8
            yield f"{where} bit {number}", bytes(changed)


def part_images(path, first):
    d, _ = start()
    for number, (name, image) in enumerate(damage(pathlib.Path(path).read_bytes())):
        if number < int(first):
            continue
        emit("at", number)
        # Behind the end lie zeros, not somebody else's memory: a driver may read on.
        padded = ctypes.create_string_buffer(image, len(image) + (1 << 16))
        module = ctypes.c_void_p()
        code = d.call("cuModuleLoadData", ctypes.byref(module), padded)
        emit(f"load {name}", d.name(code))
        if code:
            continue
        function = ctypes.c_void_p()
        code = d.call("cuModuleGetFunction", ctypes.byref(function), module, b"good")
        if code == 0 and not name.startswith("code"):
            code = d.launch(function, d.memory()) or d.call("cuCtxSynchronize")
        emit(f"use {name}", d.name(code))
        if d.call("cuCtxSynchronize"):
            emit("lost at", number)
            return
    emit("done", True)


def measure_images(budget=40):
    d = Driver()
    image = compile_image(SAXPY, arch_of(d))
    end = time.monotonic() + budget
    answers, crashes, lost, first, ended = {}, [], 0, 0, ""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(image)
        file.flush()
        while time.monotonic() < end:
            child = collect([MAIN, "--part", "images", file.name, first], 20)
            found = child["findings"]
            for key, value in found.items():
                if key.startswith(("load", "use")):
                    what, where = key.split(" ")[:2]
                    tally = answers.setdefault(f"{what}: {where}", {})
                    tally[value] = tally.get(value, 0) + 1
            if "done" in found:
                ended = "all"
                break
            if "at" not in found:
                ended = child.get("error", "no answer")
                break
            lost += "lost at" in found
            if "lost at" not in found:
                crashes.append([found["at"], child["ended"]])
            first = found["at"] + 1
    return {"answers": answers, "crashes": crashes, "contexts lost": lost, "ended": ended or "time"}


# ---- compiling: time of an end, files read


def part_cancel():
    import kernwright as kw

    os.environ["KERNWRIGHT_CACHE"] = "memory"
    for name, text in {"many kernels": LONG, "deep templates": BOMB}.items():
        begin = time.perf_counter()
        try:
            kw.Program(text).compile("cubin", timeout=0.3)
            answer = "compiled in time"
        except kw.Error as error:
            answer = type(error).__name__
        emit(f"{name}: timeout of 300 ms", [answer, round((time.perf_counter() - begin) * 1e3)])


def part_callback():
    """NVRTC by itself: how often it asks, and how quick it ends when told to."""
    import kernwright as kw

    status = kw._core.nvrtc_status()
    nvrtc = ctypes.CDLL(str(status["path"]))
    emit("nvrtc", str(status.get("version")))
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    for name, text in {"many kernels": LONG, "deep templates": BOMB}.items():
        state = {"asked": 0, "stop": None, "gap": 0.0, "last": time.perf_counter()}

        def callback(_payload, _reserved, state=state):
            now = time.perf_counter()
            state["gap"] = max(state["gap"], now - state["last"])
            state["last"] = now
            state["asked"] += 1
            if state["stop"] is None and now - state["begin"] > 0.2:
                state["stop"] = now
            return int(state["stop"] is not None)

        held = kind(callback)
        program = ctypes.c_void_p()
        nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"k.cu", 0, None, None)
        code = nvrtc.nvrtcSetFlowCallback(program, held, None)
        if code:
            emit(name, f"nvrtcSetFlowCallback: {code}")
            continue
        options = (ctypes.c_char_p * 1)(b"--gpu-architecture=sm_90")
        state["begin"] = state["last"] = time.perf_counter()
        code = nvrtc.nvrtcCompileProgram(program, 1, options)
        end = time.perf_counter()
        emit(name, {"result": code, "asked": state["asked"],
                    "longest silence, ms": round(state["gap"] * 1e3, 1),
                    "ended after yes, ms": state["stop"] and
                    round((end - state["stop"]) * 1e3, 1)})  # fmt: skip
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def part_includes(folder):
    import kernwright as kw

    os.environ["KERNWRIGHT_CACHE"] = "memory"
    secret = pathlib.Path(folder) / "secret.h"
    secret.write_text("do_not_tell_anybody 12345;\n")
    os.chdir(folder)
    (pathlib.Path(folder) / "stdint.h").write_text("#error hostile\n")
    for name, text in {
        "absolute path": f'#include "{secret}"\n__global__ void k() {{}}',
        "a header in the working folder": '#include "secret.h"\n__global__ void k() {}',
        "a standard header beside a hostile one": "#include <stdint.h>\n__global__ void k() {}",
        "cuda/std": "#include <cuda/std/cstdint>\n__global__ void k(cuda::std::uint8_t* p) {}",
    }.items():
        try:
            kw.Program(text).compile("ptx", timeout=20)
            answer = "compiles"
        except kw.CompileError as error:
            told = error.log + str(error)
            found = [word for word in ("do_not_tell", "hostile") if word in told]
            answer = "refused, without its text" if not found else "read and told"
        except kw.Error as error:
            answer = type(error).__name__
        emit(name, answer)


def measure_compiling():
    with tempfile.TemporaryDirectory() as folder:
        return {
            "library": collect([MAIN, "--part", "cancel"], 60),
            "NVRTC": collect([MAIN, "--part", "callback"], 30),
            "includes": collect([MAIN, "--part", "includes", folder], 40),
        }


# ---- versions: code too new or of another architecture


def part_versions(folder):
    d, _ = start()
    version = ctypes.c_int()
    d.must("cuDriverGetVersion", ctypes.byref(version))
    emit("driver", version.value)
    for path in sorted(pathlib.Path(folder).iterdir()):
        module = ctypes.c_void_p()
        emit(path.stem, d.name(d.call("cuModuleLoadData", ctypes.byref(module),
                                      path.read_bytes() + b"\0")))  # fmt: skip


def measure_versions():
    d = Driver()
    own = arch_of(d)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        images = {"PTX of a newer language": ("ptx", None), "PTX that is no PTX": ("ptx", None)}
        images |= {f"cubin for {a}": ("cubin", a) for a in ("sm_75", "sm_80", "sm_90", "sm_120")}
        images |= {f"PTX for compute_{a}": ("ptx", f"compute_{a}") for a in (80, 90, 100, 120)}
        for name, (kind, arch) in images.items():
            try:
                if arch is not None:
                    image = compile_image(SAXPY, arch, kind)
                else:
                    image = compile_image(SAXPY, own.replace("sm", "compute"), "ptx")
                    lines = image.split(b"\n")
                    at = next(i for i, line in enumerate(lines) if line.startswith(b".version"))
                    lines[at] = b".version 9.99" if "newer" in name else b".nonsense"
                    image = b"\n".join(lines)
            except (RuntimeError, OSError) as error:
                found[name] = f"not compiled: {str(error)[-120:]}"
                continue
            (pathlib.Path(folder) / f"{name}.image").write_bytes(image)
        found |= collect([MAIN, "--part", "versions", folder], 30)
    return found
