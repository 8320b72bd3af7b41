"""Compiles every source of the corpus with every installed NVRTC, for each architecture below
Hopper with each option that changes the output, and for Hopper. check_ptx loads the results.

An NVRTC comes from the packages nvidia-cuda-nvrtc(-cu12) of an interpreter, from a toolkit, or from
KERNWRIGHT_PROBE_NVRTC (LIBRARY[:INCLUDE...], several separated by spaces). Exit code 77 (skipped)
where there is none.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "record"))
from compile_sources import NOT_STORED, SIM, Nvrtc

SKIPPED = 77
OPTIONS = {
    "": [],
    "_debug": ["-G"],
    "_fast": ["-use_fast_math"],
    "_lineinfo": ["-lineinfo"],
    "_registers": ["--maxrregcount=32"],
    "_rounded": ["--fmad=false"],
}
VARIANTS = {
    f"{capability}{name}": [f"-arch=compute_{capability}", *options]
    for capability in (75, 80, 86, 89)
    for name, options in OPTIONS.items()
}
VARIANTS["90a"] = ["-arch=compute_90a"]
# No findings here: headers missing on a machine or older than the source, and faults of a compiler
# itself, by its version, the options, the source, and words of its log.
NOT_THERE = ("cannot open source file", 'identifier "htanh" is undefined')
# The least architecture of sources with newer features.
NEEDS = {"bfloat16_math": 80, "hopper_gemm": 90, "probe_tiles": 80, "votes": 80}
KNOWN_FAULTS = {
    ("13.5", "debug", "probe_integers.cu"): "unsupported operation",
}


def installed() -> list[str]:
    """LIBRARY[:INCLUDE...] of every NVRTC at hand."""
    found = os.environ.get("KERNWRIGHT_PROBE_NVRTC", "").split()
    packages = Path(sysconfig.get_paths()["purelib"]) / "nvidia"
    includes = [packages / part / "include" for part in ("cuda_runtime", "cuda_cccl", "cuda_nvcc")]
    for library in sorted(packages.glob("cu*/lib/libnvrtc.so.*")):
        if "builtins" in library.name:
            continue
        roots = [*includes, library.parent.parent / "include"]
        folders = [root for root in roots if (root / "cuda_fp16.h").exists()]
        folders += [root / "cccl" for root in roots if (root / "cccl").is_dir()]
        found.append(":".join(map(str, [library, *folders])))
    toolkit = Path(os.environ.get("CUDA_PATH", "/usr/local/cuda"))
    library = toolkit / "lib64" / "libnvrtc.so"
    if library.exists():
        found.append(f"{library}:{toolkit}/include:{toolkit}/include/cccl")
    return found


def is_usable(text: str) -> bool:
    """Whether there are headers for this NVRTC; says so where there are none."""
    library, *folders = text.split(":")
    try:
        Nvrtc(Path(library), [Path(folder) for folder in folders])
    except SystemExit as error:
        print(f"left out: {library}: {error}")
        return False
    return True


def is_known(version: str, variant: str, source: str, log: str) -> bool:
    known = KNOWN_FAULTS.get((version, variant.partition("_")[2], source))
    lacks = any(text in log for text in NOT_THERE)
    return lacks or (known is not None and known in log)


def plan(sources: list[Path], variants: list[str], rotating: int) -> list[tuple[str, list[Path]]]:
    """Which sources each variant compiles: the named ones all, of the others each
    small source `rotating` in turn, so that together they see every variant."""
    others = [name for name in VARIANTS if name not in variants]
    result = {name: list(sources) for name in variants}
    small = [source for source in sources if source.stem not in NOT_STORED]
    for i, source in enumerate(small):
        for k in range(min(rotating, len(others))):
            result.setdefault(others[(i * rotating + k) % len(others)], []).append(source)
    for name, some in result.items():
        capability = int(name.partition("_")[0].removesuffix("a"))
        result[name] = [source for source in some if NEEDS.get(source.stem, 0) <= capability]
    return list(result.items())


def compile_all(job: tuple[str, str, list[Path], str]) -> list[tuple[bool, str]]:
    """One NVRTC and one variant; returns the sources that did not compile: is it known, the log."""
    text, variant, sources, out = job
    library, *folders = text.split(":")
    nvrtc = Nvrtc(Path(library), [Path(folder) for folder in folders])
    failures = []
    for source in sources:
        try:
            ptx = nvrtc.compile(source.read_text(), source.name, VARIANTS[variant])
        except SystemExit as error:
            known = is_known(nvrtc.version, variant, source.name, str(error))
            failures.append((known, f"{nvrtc.version} {variant} {source.name}: {error}"))
            continue
        (Path(out) / f"{source.stem}.nvrtc{nvrtc.version}.{variant}.ptx").write_text(ptx)
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("check_ptx", type=Path, help="the program that loads the results")
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--sources", default="*.cu", help="a pattern of file names")
    parser.add_argument(
        "--rotate", type=int, default=0, help="of the other variants, so many for each source"
    )
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    compilers = [text for text in installed() if is_usable(text)]
    if not compilers:
        print("no NVRTC with headers is installed")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="ptx_probe_") as out:
        sources = sorted((SIM / "sources").glob(arguments.sources))
        work = plan(sources, arguments.variants.split(","), arguments.rotate)
        jobs = [(text, name, some, out) for text in compilers for name, some in work]
        with multiprocessing.get_context("spawn").Pool(arguments.jobs) as pool:
            failures = [line for lines in pool.map(compile_all, jobs, 1) for line in lines]
        files = sorted(str(path) for path in Path(out).glob("*.ptx"))
        for known, log in failures:
            print("not compiled:", log.split("\n")[0] if known else log)
        if not files:
            print("nothing was compiled")
            return 1
        refused = subprocess.run([str(arguments.check_ptx), *files], check=False).returncode
        if not all(known for known, _ in failures):
            print("a source that should compile did not")
            return 1
        return refused


if __name__ == "__main__":
    sys.exit(main())
