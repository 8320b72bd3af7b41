"""The disk cache among short processes: its limit, and the headers of the code in it."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import kernwright as kw
from kernwright import _core

STORE = (
    "import kernwright as kw; kw.Program('__global__ void z(int* a) {{ a[0] = {i}; }}').compile()"
)
VALUE = """
import sys
import kernwright as kw
o = kw.zeros(1, "int32")
kw.kernel(sys.argv[1] + "__global__ void k(int* o) { o[0] = V; }", include_dirs=[sys.argv[2]])[
    1, 1
](o)
print(o.numpy()[0], kw.cache.info()["process"]["disk_hits"])
"""


def run(cache, code, *arguments, **environment):
    result = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, "KERNWRIGHT_CACHE_DIR": str(cache), **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def sizes_after_processes(folder, limit):
    """Bytes of a cache of twice its limit after each process that stores one entry and ends at
    once, until they fit the limit, for 12 processes at most."""
    leave = "; import os; os._exit(0)"  # as workers of pools do: no handler of an exit runs
    run(folder, STORE.format(i=0))
    objects = folder / "objects"
    for i in range(6000):
        path = objects / f"{i:064x}.kwc"
        path.write_bytes(b"x" * 500)
        path.chmod(0o600)
        os.utime(path, (1e9 + i, 1e9 + i))
    sizes = []
    for i in range(1, 13):
        run(folder, STORE.format(i=i) + leave, KERNWRIGHT_CACHE_LIMIT=str(limit))
        sizes.append(sum(file.stat().st_size for file in objects.iterdir()))
        if sizes[-1] <= limit:
            break
    return sizes


def test_processes_that_end_at_once_keep_the_limit(tmp_path):
    # A process removes entries for 40 ms; a machine with other work may not run it for so long.
    limit, tries = 1 << 20, []
    while len(tries) < 3 and (not tries or tries[-1][-1] > limit):
        folder = tmp_path / str(len(tries))
        tries.append(sizes_after_processes(folder, limit))
    assert tries[-1][-1] <= limit, tries
    # The last stored entry is still there.
    line = STORE.format(i=len(tries[-1])) + "; print(kw.cache.info()['process']['compiles'])"
    assert run(folder, line) == "0\n"


@pytest.mark.parametrize(
    "line",
    [
        '# /* c */ include "v.h"\n',
        '%:include "v.h"\n',
        '#inc\\\nlude "v.h"\n',
        '#define H "v.h"\n#include H\n',
        "#include_next <v.h>\n",
        "#define HAS(x) __has_include(x)\n#if HAS(<v.h>)\n#include <v.h>\n#endif\n",
    ],
)
def test_a_header_that_changed_is_noticed_however_it_is_included(tmp_path, line):
    for value, hits in ((1, 0), (1, 1), (2, 0)):
        (tmp_path / "v.h").write_text(f"#define V {value}\n")
        assert run(tmp_path / "cache", VALUE, line, tmp_path) == (f"{value} {hits}\n")


def has_bundle():
    return "bundle" in str(_core.headers_status())


def test_headers_that_a_cleaner_removed_come_back(tmp_path):
    if not has_bundle():
        pytest.skip("this NVRTC carries no headers")
    code = (
        "import kernwright as kw, sys\n"
        "kw.Program('#include <cuda/std/array>\\n__global__ void k(int* o) { o[0] = %s; }' "
        "% sys.argv[1]).compile()"
    )
    run(tmp_path, code, 1)
    (folder,) = tmp_path.glob("headers-*")
    (folder / "cccl/cuda/std/array").unlink()
    run(tmp_path, code, 2)
    assert (folder / "cccl/cuda/std/array").is_file()
    show = "import kernwright as kw; i = kw.cache.info(); print(i['header_bytes'] > 10**6)"
    assert run(tmp_path, show) == "True\n"
    clear = "import kernwright as kw; print(kw.cache.clear()['bytes'] > 10**6)"
    assert run(tmp_path, clear) == "True\n"
    assert not folder.exists()
    run(tmp_path, code, 3)


@pytest.fixture
def two_folders(tmp_path, monkeypatch):
    for name, value in (("a", 4), ("b", 77)):
        (tmp_path / name / "inc").mkdir(parents=True)
        (tmp_path / name / "inc" / "v.h").write_text(f"#define V {value}\n")
    monkeypatch.chdir(tmp_path / "a")
    return tmp_path


TEMPLATE = "#include <v.h>\ntemplate <class T> __global__ void f(T* o) { o[0] = V; }"


def value_of(module, name, dtype):
    out = kw.zeros(1, dtype)
    module[f"f<{name}>"][1, 1](out)
    return out.numpy()[0]


def test_relative_folders_are_those_of_the_moment_they_are_given(two_folders):
    options = kw.ProgramOptions(include_dirs=["inc"])
    module = kw.module(TEMPLATE, include_dirs=["inc"])
    assert value_of(module, "float", "float32") == 4
    stored = pickle.dumps((module, options))
    os.chdir(two_folders / "b")
    assert value_of(module, "double", "float64") == 4
    assert value_of(kw.module(TEMPLATE, options=options), "int", "int32") == 4
    unpickled, same_options = pickle.loads(stored)
    assert value_of(unpickled, "short", "int16") == 4
    assert same_options == options
    assert value_of(kw.module(TEMPLATE, options=options.replace(lineinfo=True)), "int", "i4") == 4
    assert value_of(kw.module(TEMPLATE, include_dirs=[Path("inc")]), "int", "int32") == 77


def test_relative_folders_in_the_background_and_of_files(two_folders):
    Path("k.cu").write_text('#include "inc/v.h"\n__global__ void g(int* o) { o[0] = V; }')
    kernel = kw.kernel(Path("k.cu"))
    module = kw.module(
        TEMPLATE.replace("template <class T>", "").replace("T*", "int*"), include_dirs=["inc"]
    )
    os.chdir(two_folders / "b")
    future = module.compile_async()
    for each in (kernel, future.result()["f"]):
        out = kw.zeros(1, "int32")
        each[1, 1](out)
        assert out.numpy()[0] == 4


@pytest.mark.parametrize(
    "option",
    [["-Iinc"], ["--include-path=inc"], ["-I", "inc"], ["-Xcudafe", "--preinclude=inc/v.h"]],
)
def test_folders_are_given_by_their_option_alone(two_folders, option):
    with pytest.raises(kw.InvalidArgument, match="refused"):
        kw.ProgramOptions(extra=option) and kw.module(TEMPLATE, extra=option)


def test_a_current_folder_that_is_gone_is_told(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(kw.InvalidArgument, match="current folder"):
        kw.ProgramOptions(include_dirs=["inc"])
    assert kw.ProgramOptions(include_dirs=["/inc"]).include_dirs == ["/inc"]


@pytest.mark.parametrize(
    "text",
    [
        '#include "../../../../../../../../etc/hostname"\n',
        '#include "/etc/hostname"\n',
        '#define H "/etc/hostname"\n#include H\n',
        "#define S(x) #x\n#include S(/etc/hostname)\n",
        '#if __has_include("/etc/passwd")\n#error there\n#endif\n',
        '#if __has_include("/no/such/file")\n#error there\n#endif\n',
    ],
)
def test_a_text_reaches_no_file_outside_the_folders_of_headers(text):
    with pytest.raises(kw.InvalidArgument, match="is refused") as caught:
        kw.kernel(text + "__global__ void k(int* o) {}").compile()
    hostname = Path("/etc/hostname")
    if hostname.exists() and len(hostname.read_text().strip()) > 3:
        assert hostname.read_text().strip() not in str(caught.value)


def test_an_unknown_variable_is_warned_about_once():
    code = "import kernwright as kw; kw.zeros(1); kw.zeros(1); print(len(kw.devices()))"
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "KERNWRIGHT_SIM_THREAD": "4", "KERNWRIGHT_LOG": "warning"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("KERNWRIGHT_SIM_THREADS?") == 1
    imported = subprocess.run(
        [sys.executable, "-c", "import kernwright"],
        env={**os.environ, "KERNWRIGHT_SIM_THREAD": "4"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert imported.stderr == ""
