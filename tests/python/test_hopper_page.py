"""docs/hopper_product.md quotes the example's text and its output."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "hopper_product.md").read_text()
EXAMPLE = ROOT / "examples" / "python" / "18_hopper_product.py"


def blocks(language):
    every = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return [text for of, text in every if of == language]


def test_its_code_is_the_examples():
    text = EXAMPLE.read_text()
    quoted = blocks("cuda")
    assert len(quoted) == 6 and all(block in text for block in quoted)


def test_its_output_is_the_examples():
    env = {**os.environ, "KERNWRIGHT_SIM_CAPABILITY": "9.0"}
    ran = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, env=env)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    plain = [re.sub(r"%f\d+", "%f", each) for each in (ran.stdout, *blocks(""))]
    assert len(plain) == 6
    for block in plain[1:]:
        assert block in plain[0]
