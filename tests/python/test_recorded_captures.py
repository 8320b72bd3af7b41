"""Calls during captures: the simulated device says what an H200's driver said.

tests/gpu/measure_unknowns.py makes the calls, there and here; here its driver is the simulated
device's libcuda.so.1.
"""

import json
import os
import pathlib
import subprocess
import sys

import kernwright as kw

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORDED = ROOT / "bench/results/driver_behaviour.json"


def captures(document):
    return json.loads(document.read_text())["parts"]["captures"]


def test_calls_during_captures_are_answered_as_a_gpu_s_driver_does(tmp_path):
    library = pathlib.Path(kw.libcuda_path(), "libcuda.so.1")
    output = tmp_path / "captures.json"
    script = ROOT / "tests/gpu/measure_unknowns.py"
    run = subprocess.run(
        [sys.executable, str(script), "--only", "captures", "-o", str(output)],
        env={**os.environ, "KERNWRIGHT_TEST_LIBCUDA": str(library), "KERNWRIGHT_DEVICE": "sim"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    here, there = captures(output), captures(RECORDED)
    assert (here["ended"], there["ended"]) == (0, 0)
    assert len(there["findings"]) == 164  # 41 calls in three modes and on a blocking stream
    assert here["findings"] == there["findings"]
