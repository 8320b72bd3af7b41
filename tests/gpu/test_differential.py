"""The same kernels with the same inputs on the simulated device and on a GPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "sim"))
import corpus

import kernwright as kw

CASES = corpus.load_cases()
BUILD = os.environ.get("KERNWRIGHT_TEST_BUILD")


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_both_devices_agree(case):
    if package := corpus.missing_headers(case):
        pytest.skip(f"needs the headers of {package}")
    on_gpu = corpus.run(case, kw.Device("cuda"))
    corpus.check(case, corpus.run(case, kw.Device("sim")), on_gpu)


# Only where the C++ build's folder was handed in (scripts/run_tests.py does).
@pytest.mark.parametrize("build", [BUILD] if BUILD else [])
def test_the_same_ptx_gives_the_same_results(build):
    program = Path(build) / "tests" / "sim" / "compare_with_gpu"
    result = subprocess.run([program], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{len(CASES)} cases, 0 arrays differ" in result.stdout
