"""Checks wheels: size, system libraries of the extension, required files.

Usage: python scripts/check_wheel.py WHEEL... Exit code 1 when a wheel fails a check.
       python scripts/check_wheel.py --tag WHEEL prints the tag for the wheel's files, or nothing
       where they need a newer glibc than the project promises.
"""

import os
import platform
import re
import subprocess
import sys
import tempfile
import zipfile

MAX_WHEEL_BYTES = 5_000_000
MAX_EXTENSION_BYTES = 10_000_000  # stripped; users download the whole wheel
LIBCUDA = "kernwright/libcuda/libcuda.so.1"  # ours; it uses the extension's code
MAX_LIBCUDA_BYTES = 150_000
WORKER = "kernwright/kernwright-worker"  # a program that uses the extension's code
MAX_WORKER_BYTES = 100_000
PROMISED = "2.28"  # the oldest glibc that wheels support, if the build system can reach it
NEEDED = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libpthread.so.0", "libdl.so.2"}
LOADER = re.compile(r"ld-linux.*\.so\.\d")
FILES = (
    "kernwright/__init__.py",
    "kernwright/__init__.pyi",
    "kernwright/_core.pyi",
    "kernwright/py.typed",
    "kernwright/cli/__init__.py",
    "kernwright/cli/demo.cu",
    LIBCUDA,
    WORKER,
)


def readelf(option, binary):
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        file.write(binary)
        file.flush()
        command = ["readelf", "-W", option, file.name]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def needed_libraries(extension):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d", extension))


def numbers(version):
    return tuple(int(part) for part in version.split("."))


def newest_glibc(binary):
    """The newest version of glibc that a linked file needs, as "2.28"."""
    found = set(re.findall(r"Name: GLIBC_([\d.]+)", readelf("-V", binary)))
    return max(found, key=numbers, default="0")


def promised_glibc(name):
    """The version of glibc in a wheel's file name, or None."""
    match = re.search(r"manylinux_(\d+)_(\d+)_\w+\.whl$", name)
    return f"{match[1]}.{match[2]}" if match else None


def promised_tag(linked, machine=None):
    """The platform tag for a wheel with these linked files: for the promised glibc, or ""."""
    if all(newest_glibc(binary) == "0" for binary in linked.values()):
        return ""  # linked with another C library
    tag = f"manylinux_{PROMISED.replace('.', '_')}_{machine or platform.machine()}"
    return "" if any(version_problems(f"kernwright-{tag}.whl", linked)) else tag


def linked_files(wheel):
    """The files of a wheel that the dynamic linker loads, by name."""
    names = wheel.namelist()
    found = [n for n in names if re.fullmatch(r"kernwright/_core\..*\.so", n)]
    return {n: wheel.read(n) for n in (*found, LIBCUDA, WORKER) if n in names}


def version_problems(name, linked):
    promised = promised_glibc(name)
    if promised is None:
        yield "its name promises no version of glibc"
    for file, binary in linked.items():
        newest = newest_glibc(binary)
        if promised and numbers(newest) > numbers(promised):
            yield f"{file} needs glibc {newest}; the wheel's name promises {promised}"
        if re.search(r"Name: GLIBC_ABI_", readelf("-V", binary)):
            yield f"{file} has packed relocations, which glibc before 2.36 refuses"
        if re.search(r"Name: (GLIBCXX|CXXABI)_", readelf("-V", binary)):
            yield f"{file} needs the C++ library of the system"


def wheel_problems(path):
    size = os.path.getsize(path)
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        extensions = [n for n in names if re.fullmatch(r"kernwright/_core\..*\.so", n)]
        if len(extensions) != 1:
            yield f"holds {len(extensions)} extensions"
            return
        extension = wheel.read(extensions[0])
        linked = linked_files(wheel)
        libcuda = wheel.getinfo(LIBCUDA).file_size if LIBCUDA in names else 0
        worker = wheel.getinfo(WORKER) if WORKER in names else None
        metadata = next(n for n in names if n.endswith(".dist-info/METADATA"))
        requirements = re.findall(r"^Requires-Dist: (\S+)", wheel.read(metadata).decode(), re.M)
    libraries = needed_libraries(extension)
    print(f"{os.path.basename(path)}: {size / 1e6:.2f} MB, unpacked {len(extension) / 1e6:.2f} MB")
    print(f"  needs {', '.join(libraries)}")
    for file, binary in linked.items():
        print(f"  {file}: glibc {newest_glibc(binary)}")
    yield from version_problems(os.path.basename(path), linked)
    if size > MAX_WHEEL_BYTES:
        yield f"it has {size} bytes; the limit is {MAX_WHEEL_BYTES}"
    if len(extension) > MAX_EXTENSION_BYTES:
        yield f"the extension has {len(extension)} bytes; the limit is {MAX_EXTENSION_BYTES}"
    if libcuda > MAX_LIBCUDA_BYTES:
        yield f"{LIBCUDA} has {libcuda} bytes; the limit is {MAX_LIBCUDA_BYTES}"
    if worker and worker.file_size > MAX_WORKER_BYTES:
        yield f"{WORKER} has {worker.file_size} bytes; the limit is {MAX_WORKER_BYTES}"
    if worker and not worker.external_attr >> 16 & 0o111:
        yield f"{WORKER} may not be executed"
    for name in libraries:
        if name not in NEEDED and not LOADER.fullmatch(name):
            yield f"the extension needs {name}"
    if b"\0.symtab\0" in extension:
        yield "the extension is not stripped"
    for name in FILES:
        if name not in names:
            yield f"{name} is missing"
    if not any(name.startswith("cuda-toolkit[nvrtc]") for name in requirements):
        yield "NVRTC is no dependency"
    for name in names:
        if name == LIBCUDA:
            continue
        if ".libs/" in name or re.search(r"lib(cuda|nvrtc|fmt|cudart)[^/]*\.so", name):
            yield f"a foreign library came along: {name}"


def main():
    if sys.argv[1:2] == ["--tag"]:
        with zipfile.ZipFile(sys.argv[2]) as wheel:
            print(promised_tag(linked_files(wheel)))
        return 0
    failed = False
    for path in sys.argv[1:]:
        for problem in wheel_problems(path):
            print(f"{path}: {problem}", file=sys.stderr)
            failed = True
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
