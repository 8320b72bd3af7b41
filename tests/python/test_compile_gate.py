"""The compile gate on a few sources; `make compile-gate` runs it whole."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def gate(*arguments):
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "compile_gate.py"), *arguments],
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, "KERNWRIGHT_DEVICE": "sim"},
    )


def test_the_examples_compile_for_the_oldest_and_a_new_architecture():
    result = gate("--arch", "sm_75", "--arch", "sm_90a", "--only", "examples/")
    assert result.returncode == 0, result.stdout + result.stderr
    passed = int(re.search(r"(\d+) passed, 0 failed", result.stdout)[1])
    assert passed >= 20


def test_the_library_compiles():
    result = gate("--arch", "sm_80", "--only", "kernels_src/copy")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "3 passed, 0 failed" in result.stdout


def test_kernels_for_clusters_compile_where_clusters_are():
    older = gate("--arch", "sm_80", "--only", "/softmax.cu for 9.0")
    assert re.search(r"\b0 passed, 0 failed", older.stdout)
    result = gate("--arch", "sm_90a", "--only", "/softmax.cu for 9.0")
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.search(r"\b1 passed, 0 failed", result.stdout)


def test_an_architecture_that_nvrtc_lacks_is_named_and_nothing_tested_is_a_failure():
    result = gate("--arch", "sm_35")
    assert result.returncode == 1
    assert "not sm_35" in result.stdout
