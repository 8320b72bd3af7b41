"""Settings of the simulated device: a wrong one is an error that names it, at the first use."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.usefixtures("sim")

PROGRAM = """
import kernwright as kw
try:
    kw.zeros(1)
except kw.InvalidArgument as error:
    print(error)
"""


@pytest.mark.parametrize(
    "setting",
    [
        "CHECKS=rase",
        "SIM_BUDGET=-1",
        "SIM_CAPABILITY=7.5",
        "SIM_DEVICES=x",
        "SIM_ISA=sse",
        "SIM_MEMORY=1X",
        "SIM_SEED=abc",
        "SIM_THREADS=q",
    ],
)
def test_a_wrong_setting_is_an_invalid_argument(setting):
    name, value = ("KERNWRIGHT_" + setting).split("=")
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "KERNWRIGHT_DEVICE": "sim", name: value},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"{name}={value} is not understood; allowed is ")
