"""Wrong uses of the command line: one sentence each and 2; failures: 1; a traceback: never."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass

import pytest
from children import kernwright

import kernwright as kw
from kernwright._support.words import counted
from kernwright.cli import COMMANDS, main

KERNEL = 'extern "C" __global__ void f(float* o) { o[0] = 1; }\n'
TEMPLATE = "template <class T> __global__ void g(T* o) { o[0] = 1; }\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("use")
    (path / "a.cu").write_text(KERNEL)
    (path / "t.cu").write_text(TEMPLATE)
    (path / "both.cu").write_text(KERNEL + TEMPLATE)
    (path / "instance.cu").write_text(TEMPLATE + "template __global__ void g<float>(float*);\n")
    (path / "wrong.cu").write_text("__global__ void f() { x = 1; }\n")
    (path / "variable.cu").write_text("__device__ int x;\n")
    (path / "empty.cu").write_text("")
    (path / "binary.cu").write_bytes(b"\xff\xfe\x00")
    (path / "empty.json").write_text("")
    (path / "folder").mkdir()
    return path


@dataclass
class Command:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def here(capfd, monkeypatch):
    """Runs a command in this process: a process for each would take most of the time."""

    def run(*arguments, cwd="."):
        monkeypatch.chdir(cwd)
        try:
            code = main(list(arguments))
        except SystemExit as ended:  # of argparse
            code = ended.code
        return Command(code, *capfd.readouterr())

    return run


WRONG = {  # arguments -> words of the message
    ("compile", "nowhere.cu"): "there is no file 'nowhere.cu'",
    ("compile", "folder"): "'folder' is a folder",
    ("compile", "empty.cu"): "empty.cu is empty",
    ("compile", "binary.cu"): "not UTF-8",
    ("compile", "a.cu", "--arch", "foo"): 'architecture "foo" is not understood',
    ("compile", "a.cu", "--arch", "sm_10"): "sm_10 is unknown",
    ("compile", "a.cu", "--arch", "sm_90,foo"): 'architecture "foo"',
    ("compile", "a.cu", "--arch", ""): "--arch names no architecture",
    ("compile", "a.cu", "--arch", "sm_90,"): "--arch names no architecture",
    ("compile", "a.cu", "--arch", "sm_80,sm_90", "-o", "x"): "-o names one file",
    ("compile", "a.cu", "--arch", "sm_90", "-o", "/proc/missing/y.cubin"): "there is no folder",
    ("compile", "a.cu", "--arch", "sm_90", "-o", "folder"): "'folder' is a folder",
    ("compile", "a.cu", "--arch", "sm_90", "-o", "-", "--json"): "leave out --report and --json",
    ("compile", "a.cu", "--arch", "sm_90", "--name", "nosuch"): "there is: f",
    ("compile", "a.cu", "--arch", "sm_90", "--std", "c++99"): "c++99",
    ("compile", "a.cu", "--arch", "sm_90", "-D", "1x"): "no macro name",
    ("compile", "t.cu", "--arch", "sm_90"): "--name 'g<...>'",
    ("compile", "t.cu", "--arch", "sm_90", "--emit", "ptx"): "--name 'g<...>'",
    ("lint", "nowhere.cu"): "there is no file",
    ("lint", "a.cu", "--arch", "foo"): 'architecture "foo"',
    ("pack",): "nothing to pack",
    ("pack", "a.cu"): "-o PACK is missing",
    ("pack", "a.cu", "-o", "x.kwpack"): "--arch is missing",
    ("pack", "a.cu", "--arch", "foo", "-o", "x.kwpack"): 'architecture "foo"',
    ("pack", "a.cu", "--arch", "sm_90", "-o", "/proc/missing/x.kwpack"): "there is no folder",
    ("pack", "a.cu", "--arch", "sm_90", "-o", "folder"): "is a folder",
    ("pack", "a.cu", "--arch", "sm_90", "-o", "/dev/null"): "no regular file",
    ("pack", "t.cu", "--arch", "sm_90", "-o", "x.kwpack"): "no kernel that is not a template",
    ("pack", "nowhere.cu", "--arch", "sm_90", "-o", "x.kwpack"): "there is no file",
    ("pack", "empty.json", "--arch", "sm_90", "-o", "x.kwpack"): "is no manifest",
    ("pack", "--record", "nowhere", "--arch", "sm_90", "-o", "x.kwpack"): "there is no file",
    ("pack", "--list", "folder"): "is a folder",
    ("pack", "--list", "nowhere"): "there is no file",
    ("cache", "trim", "abc"): "no number of bytes",
    ("demo", "folder"): "is a folder",
    ("demo", "-o", "/proc/missing/a.png"): "there is no folder",
}


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_a_wrong_use_is_one_sentence_and_2(folder, here, arguments):
    before = sorted(os.listdir(folder))
    result = here(*arguments, cwd=folder)
    assert result.returncode == 2, result.stdout + result.stderr
    said = result.stderr.splitlines()[-1]
    assert said.startswith(f"kernwright {arguments[0]}: ")
    assert WRONG[arguments] in said
    assert "Traceback" not in result.stderr
    assert sorted(os.listdir(folder)) == before  # nothing was made


@pytest.mark.parametrize("arguments", list(WRONG)[:2], ids=" ".join)
def test_a_process_ends_with_the_same_sentence(folder, here, arguments):
    ended, wanted = kernwright(*arguments, cwd=folder), here(*arguments, cwd=folder)
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, wanted.stdout, wanted.stderr)


FAILURES = {
    ("compile", "wrong.cu", "--arch", "sm_90"): "wrong.cu:1",
    ("compile", "a.cu", "--arch", "sm_90", "-o", "/dev/full"): "No space left",
    ("pack", "wrong.cu", "--arch", "sm_90", "-o", "x.kwpack"): "wrong.cu:1",
    ("pack", "--list", "a.cu"): "cannot be used",
    ("pack", "--list", "empty.cu"): "cannot be used",
    ("pack", "--record", "a.cu", "--arch", "sm_90", "-o", "x.kwpack"): "no compile request",
    ("lint", "wrong.cu"): "wrong.cu:1",
}


@pytest.mark.parametrize("arguments", FAILURES, ids=" ".join)
def test_a_failure_is_1(folder, here, arguments):
    before = sorted(os.listdir(folder))
    result = here(*arguments, cwd=folder)
    assert result.returncode == 1, result.stdout + result.stderr
    assert FAILURES[arguments] in result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    assert sorted(os.listdir(folder)) == before


MANIFESTS = {
    "[1": "is no manifest",
    "[]": "the manifest is a JSON object",
    "{}": "needs a key 'items'",
    '{"items": 5}': "items is a list",
    '{"items": [5]}': "items is a list",
    '{"items": [{}]}': "needs a key 'file'",
    '{"items": [{"file": 5}]}': "file and store are strings",
    '{"items": [{"file": "a.cu", "name": "f"}]}': "unknown keys name",
    '{"items": [{"file": "a.cu", "names": "f"}]}': "names is a list of strings",
    '{"items": [{"file": "a.cu", "options": []}]}': "options is a JSON object",
    '{"items": [{"file": "a.cu", "options": {"nope": 1}}]}': "no option nope",
    '{"items": [{"file": "no.cu"}]}': "there is no file",
    '{"items": [{"file": "a.cu"}], "archs": "sm_90"}': "archs is a list of strings",
    '{"items": [{"file": "a.cu"}], "archs": ["foo"]}': 'architecture "foo"',
    '{"items": [{"file": "a.cu"}], "more": 1}': "unknown keys more",
}


@pytest.mark.parametrize("text", MANIFESTS)
def test_a_manifest_that_is_none_says_why(here, tmp_path, text):
    (tmp_path / "a.cu").write_text(KERNEL)
    (tmp_path / "m.json").write_text(text)
    result = here("pack", "m.json", "--arch", "sm_90", "-o", "x.kwpack", cwd=tmp_path)
    assert result.returncode == 2, result.stdout + result.stderr
    assert MANIFESTS[text] in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "x.kwpack").exists()


def test_a_manifest_names_instances_of_templates(folder, tmp_path):
    (tmp_path / "t.cu").write_text(TEMPLATE)
    manifest = {"archs": ["sm_90"], "items": [{"file": "t.cu", "names": ["g<float>"]}]}
    (tmp_path / "m.json").write_text(json.dumps(manifest))
    result = kernwright("pack", "m.json", "-o", "x.kwpack", "--json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert [row["kernels"] for row in json.loads(result.stdout)] == [["g<float>"]]
    assert sorted(os.listdir(tmp_path)) == ["m.json", "t.cu", "x.kwpack"]


def test_templates_that_are_left_out_are_told(folder, tmp_path):
    result = kernwright(
        "compile", str(folder / "both.cu"), "--arch", "sm_90", "-o", "b.cubin", cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
    assert "note: a template is compiled when --name names it: g" in result.stderr
    result = kernwright(
        "compile", str(folder / "variable.cu"), "--arch", "sm_90", "-o", "v.cubin", cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
    assert "warning: there is no kernel in it" in result.stderr
    result = kernwright(
        "compile", str(folder / "instance.cu"), "--arch", "sm_90", "-o", "i.cubin", cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "b.cubin").read_bytes()[:4] == b"\x7fELF"


@pytest.mark.skipif(os.geteuid() == 0, reason="permissions do not bind root")
def test_what_permissions_forbid_is_wrong_use(tmp_path):
    (tmp_path / "a.cu").write_text(KERNEL)
    os.chmod(tmp_path, 0o500)
    try:
        result = kernwright("compile", "a.cu", "--arch", "sm_90", cwd=tmp_path)
        assert result.returncode == 2
        assert "cannot be written" in result.stderr
    finally:
        os.chmod(tmp_path, 0o700)


def test_version():
    result = kernwright("--version")
    assert (result.returncode, result.stdout) == (0, f"kernwright {kw.__version__}\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_refuses_unknown_options(here, command):
    run = kernwright if command == "libcuda" else here  # it becomes another program
    result = run(command, "--help")
    assert result.returncode == 0
    assert f"usage: kernwright {command}" in result.stdout
    result = run(command, "--nonsense")
    assert result.returncode == 2 or command == "libcuda"
    assert "Traceback" not in result.stderr


def test_a_reader_that_is_gone_is_no_traceback():
    process = subprocess.Popen(
        [sys.executable, "-m", "kernwright", "doctor"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdout.close()
    errors = process.stderr.read()
    assert process.wait(timeout=300) == 1
    assert "Traceback" not in errors and "Exception" not in errors
    process.stderr.close()


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion_names_every_command(shell):
    pytest.importorskip("shtab")
    result = kernwright("--print-completion", shell)
    assert result.returncode == 0, result.stderr
    for command in COMMANDS:
        assert command in result.stdout
    assert "--arch" in result.stdout or shell == "tcsh"


def test_completion_without_shtab_says_what_to_install(tmp_path):
    (tmp_path / "shtab.py").write_text("raise ImportError('hidden')\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    result = kernwright("--print-completion", "bash", PYTHONPATH=path)
    assert result.returncode == 2
    assert "pip install 'kernwright[completion]'" in result.stderr


def test_bash_accepts_the_completion(tmp_path):
    pytest.importorskip("shtab")
    script = kernwright("--print-completion", "bash").stdout
    complete = 'COMP_WORDS=(kernwright co); COMP_CWORD=1; _shtab_kernwright; echo "${COMPREPLY[@]}"'
    result = subprocess.run(
        ["bash", "-c", f"{script}\n{complete}"], capture_output=True, text=True, timeout=60
    )
    assert result.stdout.split() == ["compile"], result.stderr


def test_numbers_of_things():
    assert [counted(n, "kernel") for n in (0, 1, 2)] == ["0 kernels", "1 kernel", "2 kernels"]
    assert counted(1, "entry", "entries") == "1 entry"
    assert counted(3, "entry", "entries") == "3 entries"


def test_lint_counts_one_as_one(folder):
    result = kernwright("lint", "a.cu", cwd=folder)
    assert result.stderr.splitlines()[-1] == "1 file, 0 errors, 0 warnings"
    result = kernwright("lint", "wrong.cu", "a.cu", cwd=folder)
    assert result.stderr.splitlines()[-1].startswith("2 files, 1 error, 0 warnings")


def test_cache_counts_one_as_one(folder, tmp_path):
    environment = {"KERNWRIGHT_CACHE": "disk", "KERNWRIGHT_CACHE_DIR": str(tmp_path / "cache")}
    assert kernwright("cache", "clear", **environment).stdout == "removed 0 entries, 0 B\n"
    made = kernwright(
        "compile", "a.cu", "--arch", "sm_90", "-o", str(tmp_path / "a"), cwd=folder, **environment
    )
    assert made.returncode == 0, made.stderr
    assert kernwright("cache", "verify", **environment).stdout == "1 entry read, 0 damaged\n"
    assert kernwright("cache", "clear", **environment).stdout.startswith("removed 1 entry, ")


def test_doctor_says_each_place_once_and_ends_with_a_verdict(tmp_path):
    nothing = str(tmp_path / "nothing.so")
    result = kernwright("doctor", KERNWRIGHT_NVRTC=nothing)
    lines = result.stdout.splitlines()
    assert lines[-1].startswith("verdict    no kernel runs here")
    told = [line for line in lines if nothing in line and not line.startswith("variable")]
    assert len(told) == 2  # the mistake, and the place with its reason
    assert "see nvrtc above" in result.stdout

    result = kernwright("doctor", KERNWRIGHT_CACHE="nonsense")
    assert result.stdout.count("KERNWRIGHT_CACHE=nonsense is not understood") == 1
    assert result.returncode == 1

    result = kernwright("doctor")
    assert result.stdout.splitlines()[-1].startswith("verdict    kernels run")
    assert "\n           partitions of at least 4 multiprocessors" in result.stdout
    told = [line for line in result.stdout.splitlines() if line.startswith("  ") and ": " in line]
    places = [line.split(": ")[1] for line in told]
    assert len(places) == len(set(places))
    assert json.loads(kernwright("doctor", "--json").stdout)["verdict"].startswith("kernels run")
