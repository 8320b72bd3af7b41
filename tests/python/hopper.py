"""For tests of kernels that are for devices of 9.0 alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import kernwright as kw

HOPPER = kw.current_device().compute_capability == (9, 0)
hopper_alone = pytest.mark.skipif(not HOPPER, reason="the kernel is for devices of 9.0")
simulated_elsewhere = pytest.mark.skipif(
    not kw.current_device().is_simulated or HOPPER, reason="this is the device"
)


def run_at_9_0(file, *options):
    """Runs the tests of the file in a process whose simulated device is one of 9.0."""
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", file, *options],
        env={**os.environ, "KERNWRIGHT_DEVICE": "sim", "KERNWRIGHT_SIM_CAPABILITY": "9.0"},
        capture_output=True,
        text=True,
        timeout=500,
        cwd=Path(file).parent,
    )
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-2000:]
