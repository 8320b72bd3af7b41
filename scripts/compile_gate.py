"""Compiles every kernel of the library, examples and simulator tests for every architecture.

Needs no GPU. Every compile must succeed without warnings. Architectures unknown to the installed
NVRTC are named and left out. Ends with "N passed, N failed".
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

os.environ["KERNWRIGHT_CACHE"] = "off"

from kernel_instances import CLUSTER_INSTANCES, INSTANCES

import kernwright as kw
from kernwright import _core
from kernwright._jit.literals import find_literals

ROOT = Path(__file__).resolve().parents[1]
ARCHS = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121a"]
RAW_STRING = re.compile(r'R"(\w*)\((.*?)\)\1"', re.DOTALL)
TEMPLATE_ID = re.compile(r'"(\w+<[^">]+>)"')

# Macros and names that an example's program defines.
DEFINES = {"02_shared_sgemm.py": {"TILE": 16}, "demo.cu": {"RADIUS": 6, "TILE": 256}}
NAMES = {"03_template.py": ["scale<float, 3>", "scale<double, 3>", "scale<int, 3>"]}
# Special needs of a source: NVRTC options, and the oldest architecture.
EXTRA = {
    "barriers.cu": ["--diag-suppress=20054"],  # a call constructs cuda::barrier in shared memory
    "recursion.cu": ["--ptxas-options=--suppress-stack-size-warning"],
    "wide_integers.cu": ["--device-int128"],
}
FROM_AMPERE = (
    *("async_copy", "bfloat16_math", "mma_half", "mma_types", "votes", "wmma_types"),
    *("attention", "attention_backward", "decode_attention"),
    *("skinny", "skinny_columns", "skinny_row", "skinny_staged", "mma_gemm", "fma_gemm"),
    *("packed_gemm", "packed_product", "repack"),
)
OLDEST = {f"{name}.cu": 80 for name in FROM_AMPERE}
OLDEST |= {"08_tensor_maps.py": 90, "08_tensor_maps.cpp": 90}
OLDEST |= {"packed_one.cu": 90, "packed_ring.cu": 90, "packed_whole.cu": 90}
# Sources with wgmma, for compute capability 9.0 alone.
HOPPER_ALONE = (
    *(
        f"kernels_src/attention/{name}.cu"
        for name in ("float8_attention", "hopper_attention", "hopper_backward", "wide_backward")
    ),
    *(f"kernels_src/gemm/{name}.cu" for name in ("gemm", "promoted_gemm")),
    *(f"kernels_src/gemv/{name}.cu" for name in ("skinny_bytes", "skinny_wgmma")),
    "kernels_src/packed/packed_wgmma.cu",
    "tests/sim/sources/hopper_gemm.cu",
)


class Job(NamedTuple):
    title: str
    text: str
    names: list[str] | None
    options: dict[str, Any]
    oldest: int


def library() -> Iterator[Job]:
    folder = ROOT / "kernels_src"
    headers = {f"kernwright/{path.name}": path.read_text() for path in folder.rglob("*.cuh")}
    for path in sorted(folder.rglob("*.cu")):
        names = INSTANCES.get(path.name)
        title, oldest = str(path.relative_to(ROOT)), OLDEST.get(path.name, 0)
        yield Job(title, path.read_text(), names, {"headers": headers}, oldest)
        if names := CLUSTER_INSTANCES.get(path.name):
            yield Job(f"{title} for 9.0", path.read_text(), names, {"headers": headers}, 90)


def examples() -> Iterator[Job]:
    for path in sorted([*(ROOT / "examples").rglob("*.py"), *(ROOT / "bindings").rglob("demo.py")]):
        source = path.read_text()
        for literal in find_literals(source, str(path)):
            if not literal.skipped:
                title = f"{path.relative_to(ROOT)}:{literal.line}"
                yield make_job(title, literal.text, source, literal.options)
    for path in sorted((ROOT / "examples").rglob("*.cpp")):
        source = path.read_text()
        for match in RAW_STRING.finditer(source):
            if "__global__" in match[2]:
                defines = dict(re.findall(r'\{"(\w+)", "(\w+)"\}', source))
                line = source.count("\n", 0, match.start()) + 1
                title = f"{path.relative_to(ROOT)}:{line}"
                yield make_job(title, match[2], source, {"defines": defines})
    for path in sorted([*(ROOT / "examples").rglob("*.cu"), *(ROOT / "bindings").rglob("*.cu")]):
        yield make_job(str(path.relative_to(ROOT)), path.read_text(), "", {})


def make_job(title: str, text: str, source: str, options: dict[str, Any]) -> Job:
    """The template instances to compile: those named by the file around the kernel."""
    declared = kw.Program(text).names
    file = re.sub(r":\d+$", "", title).rsplit("/", 1)[-1]
    names = [name for name in TEMPLATE_ID.findall(source) if name.split("<")[0] in declared]
    names = NAMES.get(file) or list(dict.fromkeys(names)) or None
    options = {**options, "defines": {**options.get("defines", {}), **DEFINES.get(file, {})}}
    return Job(title, text, names, options, OLDEST.get(file, 0))


def simulator_sources() -> Iterator[Job]:
    folder = ROOT / "tests" / "sim"
    cases = json.loads((folder / "cases.json").read_text())["cases"]
    for path in sorted((folder / "sources").glob("*.cu")):
        selected = [case for case in cases if case.get("source", case["name"]) == path.stem]
        names = [case["expression"] for case in selected if "expression" in case] or None
        options = {"extra": EXTRA.get(path.name, [])}
        title = str(path.relative_to(ROOT))
        yield Job(title, path.read_text(), names, options, OLDEST.get(path.name, 0))


def arch_number(arch: str) -> int:
    return int(re.sub(r"\D", "", arch))


def is_for(job: Job, arch: str) -> bool:
    return arch == "sm_90a" if job.title in HOPPER_ALONE else arch_number(arch) >= job.oldest


def check(job: Job, arch: str) -> str:
    """The messages of a failed or warning compile; empty when there are none."""
    try:
        code = kw.Program(job.text, kw.ProgramOptions(arch=arch, **job.options)).compile(
            "cubin", job.names
        )
    except kw.Error as error:
        return f"{job.title} for {arch}: {error}"
    if code.diagnostics:
        first = code.diagnostics[0]
        return f"{job.title} for {arch}: line {first.line}: {first.severity}: {first.message}"
    if not code.code or not code.kernels:
        return f"{job.title} for {arch}: no kernel came out"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", action="append", help="only these architectures")
    parser.add_argument("--only", default="", help="only sources whose title contains this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    status = _core.nvrtc_status()
    if not status["found"]:
        sys.exit(status["error"])
    wanted = arguments.arch or ARCHS
    archs = [arch for arch in wanted if arch_number(arch) in status["archs"]]
    left_out = ", ".join(arch for arch in wanted if arch not in archs)
    print(f"NVRTC {status['version']}: {', '.join(archs)}" + (left_out and f"; not {left_out}"))
    jobs = [
        job
        for group in (library(), examples(), simulator_sources())
        for job in group
        if arguments.only in job.title
    ]
    pairs = [(job, arch) for arch in archs for job in jobs if is_for(job, arch)]
    begin = time.monotonic()
    with ThreadPoolExecutor(arguments.jobs) as pool:
        problems = [said for said in pool.map(lambda pair: check(*pair), pairs) if said]
    for problem in problems:
        print(f"FAILED {problem}")
    seconds = time.monotonic() - begin
    sources = f"{len(jobs)} source{'' if len(jobs) == 1 else 's'}"
    print(f"{sources}, {len(archs)} architecture{'' if len(archs) == 1 else 's'}, {seconds:.0f} s")
    print(f"{len(pairs) - len(problems)} passed, {len(problems)} failed")
    return 1 if problems or not pairs else 0


if __name__ == "__main__":
    sys.exit(main())
