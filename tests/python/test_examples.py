"""Every example runs and finds its own result right: Python ones, and the built C++ programs."""

import os
import pathlib
import subprocess
import sys

import pytest

from kernwright import _core

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = sorted((ROOT / "examples" / "python").glob("*.py"))
SOURCES = sorted((ROOT / "examples" / "cpp").glob("*.cpp"))
BUILD = os.environ.get("KERNWRIGHT_TEST_BUILD")


def run(command, cwd, **variables):
    env = {**os.environ, **variables}
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300, env=env)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_both_languages_show_the_same_things():
    assert [p.stem for p in PYTHON] == [p.stem for p in SOURCES]
    assert len(PYTHON) == 7


@pytest.mark.parametrize("path", PYTHON, ids=lambda p: p.stem)
def test_python_example(path, tmp_path):
    assert run([sys.executable, str(path)], tmp_path)


# Only where the C++ build's folder was handed in (scripts/run_tests.py does).
@pytest.mark.parametrize("name", [p.stem for p in SOURCES] if BUILD else [])
def test_cpp_example(name, tmp_path):
    program = str(pathlib.Path(BUILD) / "examples" / name)
    # A C++ program knows nothing of Python's packages.
    assert run([program], tmp_path, KERNWRIGHT_NVRTC=_core.nvrtc_status()["path"])
