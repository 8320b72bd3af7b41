"""Programs with endless compiles, and the processes that compile for them."""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

# NVRTC instantiates templates for some seconds and listens to nobody meanwhile.
BOMB = """
template <int N, int M> struct Bomb {
  static const long value = Bomb<N - 1, 2 * M>::value + Bomb<N - 1, 2 * M + 1>::value;
};
template <int M> struct Bomb<0, M> { static const long value = M; };
__global__ void bomb(long* x) { *x = Bomb<DEPTH, 0>::value; }
"""


def workers():
    """The processes that compile for this one, and the ticks of processor time of each."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        try:
            for pid in (task / "children").read_text().split():
                command = Path(f"/proc/{pid}/cmdline").read_text()
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                if "kernwright" in command and fields[0] != "Z":
                    found[int(pid)] = int(fields[11]) + int(fields[12])
        except OSError:
            pass  # it ended meanwhile
    return found


def are_working():
    """Whether one of them has a running or ready thread, however busy the machine is."""
    for pid in workers():
        for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
            try:
                if stat.read_text().rpartition(")")[2].split()[0] in "RD":
                    return True
            except OSError:
                pass  # it ended meanwhile
    return False


def at_rest():
    """Whether none of them works. On a busy machine it takes a while until killed ones are gone and
    a new one is ready."""
    end = time.monotonic() + 1.5
    quiet = 0
    while quiet < 10 and time.monotonic() < end:
        quiet = 0 if are_working() else quiet + 1
        time.sleep(0.02)
    return quiet == 10


def child(code, **environment):
    """A Python with the code and the text above, for five minutes at most."""
    prelude = "import faulthandler, os, signal, sys, threading, time\n"
    prelude += "faulthandler.dump_traceback_later(280, exit=True)\n"
    prelude += f"sys.path.insert(0, {os.path.dirname(__file__)!r})\n"
    prelude += "import kernwright as kw\nfrom compile_children import BOMB, at_rest, workers\n"
    # A test run started in the background ignores SIGINT, and so would its children.
    prelude += "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    return subprocess.Popen(
        # Python 3.12 and newer warn of every fork of a process with threads.
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", prelude + textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


UNENDING = """
    kw.kernel("__global__ void a() {}").compile()
    # Half a minute and 3 GiB, if it were let.
    unending = kw.kernel(BOMB, defines={"DEPTH": 17})

    def check(number):
        x = kw.zeros(1, dtype="int32")
        kw.kernel(f"__global__ void b(int* x) {{ *x = {number}; }}")[1, 1](x)
        assert x.item() == number
"""


def run_child(code, **environment):
    """Its output."""
    with child(UNENDING + code, KERNWRIGHT_CACHE="off", **environment) as process:
        try:
            out, err = process.communicate(timeout=300)
        finally:
            process.kill()
    assert (process.returncode, err) == (0, "")
    return out.split()
