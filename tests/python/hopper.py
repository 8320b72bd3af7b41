"""For tests of kernels that are for devices of 9.0 alone."""

import os
import subprocess
import sys
from pathlib import Path

import at_9_0
import pytest

import kernwright as kw

HOPPER = kw.current_device().compute_capability == (9, 0)
hopper_alone = pytest.mark.skipif(not HOPPER, reason="the kernel is for devices of 9.0")
simulated_elsewhere = pytest.mark.skipif(
    not kw.current_device().is_simulated or HOPPER or at_9_0.APART in os.environ,
    reason="this is the device, or the tests of 9.0 are a suite of their own",
)


def run_at_9_0(file, *others):
    """Runs the tests of the file in a process whose simulated device is one of 9.0."""
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "at_9_0"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *options, file, *others],
        env={
            **os.environ,
            "KERNWRIGHT_DEVICE": "sim",
            "KERNWRIGHT_SIM_CAPABILITY": "9.0",
            "PYTHONPATH": os.pathsep.join(
                [str(Path(file).parent), os.environ.get("PYTHONPATH", "")]
            ),
        },
        capture_output=True,
        text=True,
        timeout=570,
        cwd=Path(file).parent,
    )
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-2000:]
