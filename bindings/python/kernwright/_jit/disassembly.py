"""SASS of a cubin through NVIDIA's disassembler, where one is found."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from kernwright.errors import Error

_INSTALL = (
    "pip install nvidia-cuda-nvdisasm (or nvidia-cuda-cuobjdump), or set KERNWRIGHT_NVDISASM to "
    "the program"
)


class DisassemblerNotFound(Error, ImportError):
    """Neither nvdisasm nor cuobjdump was found; the message says what to install."""


def sass(cubin: bytes) -> str:
    """The machine code of a cubin as text. Raises DisassemblerNotFound, Error."""
    program = find_disassembler()
    listing = ["-sass"] if "cuobjdump" in os.path.basename(program) else ["--print-code"]
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        try:
            result = subprocess.run(
                [program, *listing, file.name], capture_output=True, timeout=120, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Error(f"{program} could not be run: {error}") from error
    if result.returncode != 0:
        said = result.stderr.decode(errors="replace").strip()
        raise Error(f"{program} ended with exit code {result.returncode}: {said}")
    return result.stdout.decode(errors="replace")


def find_disassembler() -> str:
    """nvdisasm or cuobjdump.

    Looks at KERNWRIGHT_NVDISASM, PATH, the nvidia-* packages, toolkits, then asks cuda-pathfinder.
    """
    chosen = os.environ.get("KERNWRIGHT_NVDISASM")
    if chosen:
        if os.access(chosen, os.X_OK) and os.path.isfile(chosen):
            return chosen
        raise DisassemblerNotFound(f"KERNWRIGHT_NVDISASM={chosen} is no program that can be run")
    for name in ("nvdisasm", "cuobjdump"):
        found = shutil.which(name)
        if found:
            return found
        for folder in _folders():
            path = os.path.join(folder, name)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return path
    found = _from_pathfinder()
    if found:
        return found
    raise DisassemblerNotFound(
        "SASS needs nvdisasm or cuobjdump, and neither is on PATH, in an nvidia-* package or in a "
        f"CUDA toolkit: {_INSTALL}"
    )


def _from_pathfinder() -> str | None:
    """What NVIDIA's cuda-pathfinder knows of conda and of toolkits, where it is installed."""
    try:
        from cuda.pathfinder import find_nvidia_binary_utility
    except ImportError:
        return None
    found = map(find_nvidia_binary_utility, ("nvdisasm", "cuobjdump"))
    return next((str(path) for path in found if path), None)


def _folders() -> Iterator[str]:
    for entry in sys.path:
        base = os.path.join(entry, "nvidia")
        if os.path.isdir(base):
            for package in sorted(os.listdir(base), reverse=True):
                yield os.path.join(base, package, "bin")
    for root in (os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda"):
        if root:
            yield os.path.join(root, "bin")
