"""Every example runs and finds its own result right: Python ones, and the built C++ programs."""

import os
import pathlib
import subprocess
import sys

import pytest

from kernwright import _core

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = sorted((ROOT / "examples" / "python").glob("*.py"))
ARRAYS = (
    *("13_arrays", "14_train", "15_torch", "16_epilogue", "17_attention_torch"),
    *("18_hopper_product", "19_digits", "20_chat", "21_own_model", "22_serve"),
    "23_ray_serve",
    "24_schedule",
)  # Python's alone
CPP = ("10_schedule",)  # C++'s alone
SOURCES = sorted((ROOT / "examples" / "cpp").glob("*.cpp"))
BUILD = os.environ.get("KERNWRIGHT_TEST_BUILD")


def run(command, cwd, **variables):
    env = {**os.environ, **variables}
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300, env=env)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_both_languages_show_the_same_things():
    both = [p.stem for p in PYTHON if "_tune_" not in p.stem and p.stem not in ARRAYS]
    assert both == [p.stem for p in SOURCES if "_tune_" not in p.stem and p.stem not in CPP]
    assert len(both) == 8 and len(PYTHON) == 24


# Replicas of Ray Serve take most of a minute: see test_ray_serve.py.
@pytest.mark.parametrize(
    "path", [p for p in PYTHON if p.stem != "23_ray_serve"], ids=lambda p: p.stem
)
def test_python_example(path, tmp_path):
    assert run([sys.executable, str(path)], tmp_path)


# Only where the C++ build's folder was handed in (scripts/run_tests.py does).
@pytest.mark.parametrize("name", [p.stem for p in SOURCES] if BUILD else [])
def test_cpp_example(name, tmp_path):
    program = str(pathlib.Path(BUILD) / "examples" / name)
    # A C++ program knows nothing of Python's packages.
    path = os.pathsep.join([str(pathlib.Path(BUILD) / "bindings" / "worker"), os.environ["PATH"]])
    assert run([program], tmp_path, KERNWRIGHT_NVRTC=_core.nvrtc_status()["path"], PATH=path)


def run_ptx(*words):
    program = str(pathlib.Path(BUILD) / "examples" / "run_ptx")
    return subprocess.run([program, *map(str, words)], capture_output=True, text=True, timeout=60)


SAXPY = ROOT / "examples" / "ptx" / "saxpy.ptx"


@pytest.mark.skipif(not BUILD, reason="needs the C++ build's folder")
def test_a_ptx_file_runs_on_the_simulated_device_alone():
    result = run_ptx(SAXPY, "saxpy", 8, 128, "f:2.5", "x:1000", "x:1000", "i:1000")
    assert result.returncode == 0, result.stderr
    x, y = result.stdout.splitlines()
    assert x == "0 1 2 3 4 5 6 7 ..."
    assert y == " ".join(f"{2.5 * i + i:g}" for i in range(8)) + " ..."


@pytest.mark.skipif(not BUILD, reason="needs the C++ build's folder")
@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (
            (SAXPY, "saxpy", 8, 128, "f:2", "x:1000", "x:1000", "i:1001"),
            1,
            "past the end of the allocation",
        ),
        ((SAXPY, "saxpy", 8, 2048, "f:2", "x:8", "x:8", "i:8"), 1, "not allowed"),
        ((SAXPY, "sgemm", 1, 32), 1, "sgemm"),
        (("missing.ptx", "saxpy", 1, 32), 2, "cannot read missing.ptx"),
        ((SAXPY.with_suffix(".py"), "saxpy", 1, 32), 2, "cannot read"),
        ((SAXPY.parent / "run_ptx.cpp", "saxpy", 1, 32), 1, "line"),
        ((SAXPY, "saxpy", 1, 32, "q:1"), 2, "i:INTEGER, f:NUMBER or x:COUNT"),
        ((SAXPY, "saxpy", 1, 32, "i:many"), 2, "not a number"),
        ((SAXPY, "saxpy", -1, 32), 2, "not a number"),
        ((SAXPY, "saxpy", 1, 32, "x:99999999999"), 2, "too large"),
        ((SAXPY,), 2, "FILE KERNEL GRID BLOCK"),
    ],
)
def test_run_ptx_says_what_is_wrong(words, code, text):
    result = run_ptx(*words)
    assert result.returncode == code
    assert text in result.stderr
