"""What one run of the tests leaves to the next: compiled kernels and Python's bytecode."""

import hashlib
import os
import pathlib
import shutil

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Entries of the cache are found by text and options of a kernel, not by the code that compiled it.
COMPILING = ("jit", "worker", "runtime/base", "runtime/driver")
KEPT_FOLDERS = 3  # branches side by side share a build folder
LIMIT = "4G"  # about 100 kB for each of the tests' kernels


def compiler_hash(root=ROOT):
    """Names the state of everything between a kernel's text and its entry in the cache."""
    result = hashlib.sha256()
    for folder in COMPILING:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in {".h", ".cpp", ".def", ".inc"}:
                content = path.read_bytes()
                result.update(f"{path.relative_to(root)} {len(content)}\n".encode() + content)
    return result.hexdigest()[:16]


def use(environment, build=ROOT / "build"):
    """Sets the cache of the tests unless the environment names one; returns its folder.

    The folder belongs to the present state of `COMPILING`: a changed compiler path starts cold.
    """
    if "KERNWRIGHT_CACHE_DIR" not in environment:
        folder = pathlib.Path(build) / "test-cache" / compiler_hash()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.utime(folder)
        environment["KERNWRIGHT_CACHE_DIR"] = str(folder.resolve())
        environment.setdefault("KERNWRIGHT_CACHE_LIMIT", LIMIT)
    return pathlib.Path(environment["KERNWRIGHT_CACHE_DIR"])


def keep_bytecode(environment, build=ROOT / "build"):
    """Lets the processes of the tests share the bytecode of every module; returns its folder.

    Packages may come without bytecode, and the environment may forbid to write it beside the
    modules: then each of some thousand processes would compile all that it imports.
    """
    folder = pathlib.Path(build).resolve() / "test-bytecode"
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment.setdefault("PYTHONPYCACHEPREFIX", str(folder))
    return pathlib.Path(environment["PYTHONPYCACHEPREFIX"])


def remove_old(build=ROOT / "build"):
    """Keeps the folders used last. For a time when no test runs."""
    folders = sorted((pathlib.Path(build) / "test-cache").glob("*"), key=os.path.getmtime)
    for folder in folders[:-KEPT_FOLDERS]:
        shutil.rmtree(folder, ignore_errors=True)
