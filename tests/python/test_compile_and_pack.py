"""Commands compile, cache and pack, kw.cache and kw.pack, and the SASS of a kernel."""

import json
import os
import stat
import subprocess
import sys
import types

import numpy as np
import pytest

import kernwright as kw

SCALE = """
template <typename T> __global__ void scale(T* x, T a) { x[threadIdx.x] *= a; }
__global__ void one(int* x) { *x = 1; }
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "k.cu").write_text(SCALE)
    return tmp_path


@pytest.fixture
def run(folder):
    def command(*arguments, **environment):
        return subprocess.run(
            [sys.executable, "-m", "kernwright", *arguments],
            cwd=folder,
            capture_output=True,
            timeout=300,
            env={
                **os.environ,
                "KERNWRIGHT_DEVICE": "sim",
                "KERNWRIGHT_CACHE_DIR": str(folder / "cache"),
                **environment,
            },
        )

    return command


def check(result, code=0):
    assert result.returncode == code, (result.stdout + result.stderr).decode()
    assert b"Traceback" not in result.stderr
    return result.stdout.decode()


def test_compile_writes_a_cubin_for_the_device(run, folder):
    assert check(run("compile", "k.cu")) == "wrote k.cubin\n"
    assert (folder / "k.cubin").read_bytes()[:4] == b"\x7fELF"


def test_compile_writes_ptx_to_stdout(run):
    text = check(run("compile", "k.cu", "--emit", "ptx", "--arch", "compute_90", "-o", "-"))
    assert ".target sm_90" in text and "_Z3onePi" in text


def test_compile_takes_names_and_several_architectures(run, folder):
    rows = json.loads(
        check(run("compile", "k.cu", "--arch", "sm_80,sm_90", "--name", "scale<float>", "--json"))
    )
    assert [row["file"] for row in rows] == ["k.sm_80.cubin", "k.sm_90.cubin"]
    assert [kernel["name"] for kernel in rows[0]["kernels"]] == ["scale<float>"]
    assert (folder / "k.sm_90.cubin").stat().st_size == rows[1]["bytes"]


def test_compile_reports_registers_by_kernel(run):
    (row,) = json.loads(check(run("compile", "k.cu", "--report", "--json", "--arch", "sm_80")))
    (kernel,) = row["kernels"]
    assert kernel["name"] == "one" and kernel["lowered"] == "_Z3onePi"
    assert 1 < kernel["registers"] < 64 and kernel["spill_bytes"] == 0
    assert row["compile_ms"] > 0
    table = check(run("compile", "k.cu", "--report", "--arch", "sm_80"))
    assert "registers" in table and table.rstrip().endswith("one")


def test_compile_for_the_device_prints_what_report_tells(run):
    text = check(run("compile", "k.cu", "--report", "--name", "scale<float>"))
    assert "occupancy" in text and "CUDA C++ Frontend" in text
    (row,) = json.loads(check(run("compile", "k.cu", "--report", "--json")))
    (report,) = row["reports"]
    assert report["name"] == "one" and report["phases"] and report["registers"] > 0


def test_compile_shows_errors_and_fails(run, folder):
    (folder / "bad.cu").write_text("__global__ void k(int* x) { *x = y; }\n")
    result = run("compile", "bad.cu")
    assert check(result, 1) == ""
    assert b"bad.cu:1:34" in result.stderr
    assert not (folder / "bad.cubin").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("compile",),
        ("compile", "nowhere.cu"),
        ("compile", "k.cu", "--arch", "sm_80", "--arch", "sm_90", "-o", "x"),
        ("compile", "k.cu", "--emit", "sass"),
        ("cache",),
        ("cache", "dance"),
        ("cache", "trim"),
        ("cache", "trim", "many"),
        ("pack",),
        ("pack", "k.cu"),
        ("pack", "k.cu", "-o", "p"),
        ("pack", "nowhere.cu", "-o", "p", "--arch", "sm_80"),
    ],
)
def test_wrong_use_exits_with_2(run, arguments):
    result = run(*arguments)
    assert check(result, 2) == ""
    assert result.stderr


@pytest.mark.parametrize("command", ["compile", "lint", "cache", "pack"])
def test_every_command_has_help(run, command):
    assert "usage:" in check(run(command, "--help"))


def test_cache_commands_see_what_a_compile_left(run, folder):
    check(run("compile", "k.cu", "--arch", "sm_80"))
    info = json.loads(check(run("cache", "info", "--json")))
    assert info["path"].startswith(str(folder / "cache")) and info["state"] == "on"
    assert info["entries"] == 1
    (row,) = json.loads(check(run("cache", "list", "--json")))
    assert row["kernels"] == ["one"] and row["arch"] == "sm_80" and row["bytes"] > 0
    assert "one" in check(run("cache", "list"))
    assert json.loads(check(run("cache", "verify", "--json")))["checked"] == 1
    entry = next((folder / "cache").rglob(row["key"] + "*"))
    damaged = bytearray(entry.read_bytes())
    damaged[-1] ^= 1
    entry.write_bytes(damaged)
    assert "1 damaged" in check(run("cache", "verify", "--keep"), 1)
    assert "1 damaged" in check(run("cache", "verify"), 1)
    assert "0 damaged" in check(run("cache", "verify"))
    check(run("compile", "k.cu", "--arch", "sm_80"))
    assert json.loads(check(run("cache", "trim", "1M", "--json")))["entries"] == 0
    assert json.loads(check(run("cache", "clear", "--json")))["entries"] == 1
    assert check(run("cache", "list")) == ""


def test_cache_functions_count_what_this_process_did():
    before = kw.cache.info()["process"]
    kernel = kw.kernel("__global__ void counted(int* x) { *x = 7; }").compile()
    after = kw.cache.info()["process"]
    answered = ("memory_hits", "disk_hits", "compiles")
    assert sum(after[n] for n in answered) == sum(before[n] for n in answered) + 1
    assert kernel.name == "counted"
    for _ in range(2):
        last = kw.kernel("__global__ void again(int* x) { *x = 8; }")
    assert kw.cache.info()["process"]["memory_hits"] == after["memory_hits"] + 1
    assert last.name == "again"
    with pytest.raises(kw.ArgumentError):
        kw.cache.trim("1G")


def test_a_pack_serves_a_process_that_has_no_compiler(run, folder):
    script = folder / "use.py"
    script.write_text(
        "import numpy as np, kernwright as kw, pathlib\n"
        "kw.use_pack('k.kwpack')\n"
        "x = np.zeros(1, np.int32)\n"
        "kw.kernel(pathlib.Path('k.cu'), 'one')[1, 1](kw.Out(x))\n"
        "assert x[0] == 1\n"
        "print(kw.cache.info()['process']['pack_hits'])\n"
    )
    check(run("pack", "k.cu", "--arch", "sim", "--arch", "sm_80", "-o", "k.kwpack"))
    rows = json.loads(check(run("pack", "--list", "k.kwpack", "--json")))
    assert {row["arch"] for row in rows} == {"compute_80", "sm_80"}
    environment = {
        **os.environ,
        "KERNWRIGHT_DEVICE": "sim",
        "KERNWRIGHT_CACHE": "off",
        "KERNWRIGHT_NVRTC": str(folder / "nothing.so"),
    }
    result = subprocess.run(
        [sys.executable, str(script)], cwd=folder, capture_output=True, env=environment
    )
    assert check(result).strip() == "1"


def test_equal_inputs_make_equal_packs(run, folder):
    for name in ("a.kwpack", "b.kwpack"):
        check(run("pack", "k.cu", "--arch", "sm_80", "-o", name))
    assert (folder / "a.kwpack").read_bytes() == (folder / "b.kwpack").read_bytes()


def test_a_manifest_names_sources_instances_and_architectures(run, folder):
    (folder / "m.json").write_text(
        json.dumps(
            {
                "archs": ["sm_80", "sm_90"],
                "items": [{"file": "k.cu", "names": ["scale<float>"], "options": {"std": "c++20"}}],
            }
        )
    )
    rows = json.loads(check(run("pack", "m.json", "-o", "m.kwpack", "--json")))
    assert {row["arch"] for row in rows} == {"sm_80", "sm_90"}
    assert any("scale<float>" in row["kernels"] for row in rows)
    (folder / "m.json").write_text('{"items": [{"file": "k.cu", "what": 1}]}')
    assert check(run("pack", "m.json", "-o", "m.kwpack", "--arch", "sm_80"), 2) == ""


def test_a_damaged_pack_is_refused(run, folder):
    check(run("pack", "k.cu", "--arch", "sm_80", "-o", "k.kwpack"))
    damaged = bytearray((folder / "k.kwpack").read_bytes())
    damaged[len(damaged) // 2] ^= 4
    (folder / "k.kwpack").write_bytes(damaged)
    with pytest.raises(kw.Error, match=r"k\.kwpack"):
        kw.use_pack(folder / "k.kwpack")


def test_pack_takes_kernels_modules_and_texts(tmp_path):
    module = kw.module(SCALE)
    kernels = [module["scale<double>"], module, "__global__ void two(int* x) { *x = 2; }"]
    rows = kw.pack(tmp_path / "p.kwpack", kernels, archs=["sm_80"])
    names = {name for row in rows for name in row["kernels"]}
    assert {"scale<double>", "one", "two"} <= names
    with pytest.raises(kw.ArgumentError, match="list of str"):
        kw.pack(tmp_path / "p.kwpack", kernels, archs="sm_80")
    with pytest.raises(kw.ArgumentError, match="ndarray"):
        kw.pack(tmp_path / "p.kwpack", [np.zeros(1)], archs=["sm_80"])


def test_ptx_and_cubin_are_there_on_the_simulated_device_too(sim):
    kernel = kw.kernel("__global__ void both(int* x) { *x = 3; }")
    assert ".entry" in kernel.ptx
    assert kernel.cubin[:4] == b"\x7fELF"


def program(path, text):
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_sass_comes_from_the_program_that_the_variable_names(tmp_path, monkeypatch):
    shown = program(tmp_path / "nvdisasm", '#!/bin/sh\n[ -s "$2" ] && echo "$1 MOV R1"\n')
    monkeypatch.setenv("KERNWRIGHT_NVDISASM", shown)
    kernel = kw.kernel("__global__ void shown(int* x) { *x = 3; }")
    assert kernel.sass == "--print-code MOV R1\n"
    failing = program(tmp_path / "cuobjdump", "#!/bin/sh\necho no such thing >&2\nexit 3\n")
    monkeypatch.setenv("KERNWRIGHT_NVDISASM", failing)
    with pytest.raises(kw.Error, match="exit code 3: no such thing"):
        _ = kernel.sass


def test_sass_without_a_disassembler_says_what_to_install(tmp_path, monkeypatch):
    from kernwright._jit import disassembly as _disassembly

    kernel = kw.kernel("__global__ void hidden(int* x) { *x = 3; }")
    monkeypatch.setenv("KERNWRIGHT_NVDISASM", str(tmp_path / "nothing"))
    with pytest.raises(kw.Error, match="KERNWRIGHT_NVDISASM"):
        _ = kernel.sass
    monkeypatch.delenv("KERNWRIGHT_NVDISASM")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(_disassembly, "_folders", lambda: iter(()))
    monkeypatch.setattr(_disassembly, "_from_pathfinder", lambda: None)
    with pytest.raises(ImportError, match="pip install nvidia-cuda-nvdisasm"):
        _ = kernel.sass


def test_a_disassembler_that_only_pathfinder_knows_is_taken(tmp_path, monkeypatch):
    from kernwright._jit import disassembly as _disassembly

    monkeypatch.delenv("KERNWRIGHT_NVDISASM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(_disassembly, "_folders", lambda: iter(()))
    pathfinder = types.ModuleType("cuda.pathfinder")
    known = {"nvdisasm": None, "cuobjdump": "/opt/somewhere/cuobjdump"}
    pathfinder.find_nvidia_binary_utility = known.get
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", pathfinder)
    assert _disassembly.find_disassembler() == "/opt/somewhere/cuobjdump"
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", None)  # not installed
    with pytest.raises(_disassembly.DisassemblerNotFound):
        _disassembly.find_disassembler()
