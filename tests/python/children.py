"""Python programs in processes of their own, with a deadline, for tests of ends and faults."""

import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass


@dataclass
class Ended:
    code: int
    out: str
    err: str


def run_child(code, timeout=60, options=(), **environment):
    """Runs a program to its end. A hang is a failure with the output until then."""
    env = {**os.environ, "PYTHONUNBUFFERED": "1", **environment}
    # Python 3.12 and newer warn of every fork of a process with threads; drivers start some.
    options = (*options, "-W", "ignore:This process:DeprecationWarning")
    command = [sys.executable, *options, "-c", textwrap.dedent(code)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    ) as child:
        try:
            out, err = child.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            child.kill()
            out, err = child.communicate()
            raise AssertionError(f"still running after {timeout} s\n{out}\n{err}") from None
    return Ended(child.returncode, out, err)


def kernwright(*arguments, cwd=None, **environment):
    """Runs the command of that name to its end."""
    return subprocess.run(
        [sys.executable, "-m", "kernwright", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **environment},
    )
