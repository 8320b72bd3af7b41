"""Compiles every source of the corpus with every installed NVRTC, for each architecture below
Hopper with each option that changes the output, and for Hopper. check_ptx loads the results.

With --kept FOLDER, PTX texts stay there for the next run, and a run whose inputs have not changed
since the last one passed does nothing: sources, options, compilers, these scripts, check_ptx.

An NVRTC comes from the packages nvidia-cuda-nvrtc(-cu12) of an interpreter, from a toolkit, or from
KERNWRIGHT_PROBE_NVRTC (LIBRARY[:INCLUDE...], several separated by spaces). Exit code 77 (skipped)
where there is none.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
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


def digest(*parts: bytes | str) -> str:
    result = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        result.update(f"{len(content)}:".encode() + content)
    return result.hexdigest()


def scripts() -> bytes:
    return Path(__file__).read_bytes() + Path(sys.modules["compile_sources"].__file__).read_bytes()


def identity(text: str) -> str:
    """Of a compiler by its library's file, without opening it."""
    library = Path(text.split(":")[0]).resolve()
    status = library.stat()
    return f"{text} {library} {status.st_size} {status.st_mtime_ns}"


class Compiler:
    """An NVRTC that is opened for the first text without a kept result."""

    def __init__(self, text: str, kept: Path | None) -> None:
        self.text, self.kept, self.nvrtc = text, kept, None

    def open(self) -> Nvrtc:
        if self.nvrtc is None:
            library, *folders = self.text.split(":")
            self.nvrtc = Nvrtc(Path(library), [Path(folder) for folder in folders])
        return self.nvrtc

    def ptx(self, source: Path, variant: str) -> str:
        if self.kept is None:
            return self.open().compile(source.read_text(), source.name, VARIANTS[variant])
        key = digest(identity(self.text), scripts(), variant, source.read_bytes())
        file = self.kept / f"{source.stem}.{variant}.{key[:32]}.ptx"
        if not file.exists():
            text = self.open().compile(source.read_text(), source.name, VARIANTS[variant])
            unfinished = file.with_suffix(f".{os.getpid()}")
            unfinished.write_text(text)
            unfinished.replace(file)
        os.utime(file)
        return file.read_text()


def compile_all(job: tuple[str, str, list[Path], str, Path | None]) -> list[tuple[bool, str]]:
    """One NVRTC and one variant; returns the sources that did not compile: is it known, the log."""
    text, variant, sources, out, kept = job
    compiler = Compiler(text, kept)
    failures = []
    for source in sources:
        try:
            ptx = compiler.ptx(source, variant)
        except SystemExit as error:
            version = compiler.open().version
            known = is_known(version, variant, source.name, str(error))
            failures.append((known, f"{version} {variant} {source.name}: {error}"))
            continue
        library = digest(text)[:8]
        (Path(out) / f"{source.stem}.nvrtc-{library}.{variant}.ptx").write_text(ptx)
    return failures


def remove_unused(kept: Path, since: float) -> None:
    """PTX of earlier sources and compilers."""
    for file in kept.glob("*.ptx"):
        if file.stat().st_mtime < since:
            file.unlink()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("check_ptx", type=Path, help="the program that loads the results")
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--sources", default="*.cu", help="a pattern of file names")
    parser.add_argument(
        "--rotate", type=int, default=0, help="of the other variants, so many for each source"
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kept", type=Path, help="a folder for results, which the next run finds")
    arguments = parser.parse_args()
    sources = sorted((SIM / "sources").glob(arguments.sources))
    found = [identity(text) for text in installed()]
    inputs = digest(
        repr((arguments, found)),
        scripts(),
        arguments.check_ptx.read_bytes(),
        *(source.read_bytes() for source in sources),
    )
    passed = arguments.kept / "passed" if arguments.kept else None
    if passed and passed.exists() and passed.read_text() == inputs:
        print("sources, options, compilers and the simulated device are those that passed before")
        return 0
    result = run(arguments, sources)
    if passed and result == 0:
        passed.write_text(inputs)
    return result


def run(arguments: argparse.Namespace, sources: list[Path]) -> int:
    compilers = [text for text in installed() if is_usable(text)]
    if not compilers:
        print("no NVRTC with headers is installed")
        return SKIPPED
    kept, begin = arguments.kept, time.time() - 1
    if kept:
        kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ptx_probe_") as out:
        work = plan(sources, arguments.variants.split(","), arguments.rotate)
        jobs = [(text, name, some, out, kept) for text in compilers for name, some in work]
        with multiprocessing.get_context("spawn").Pool(arguments.jobs) as pool:
            failures = [line for lines in pool.map(compile_all, jobs, 1) for line in lines]
        files = sorted(str(path) for path in Path(out).glob("*.ptx"))
        if kept:
            remove_unused(kept, begin)
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
