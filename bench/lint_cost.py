"""Cost of lint() and of a compile, over the simulator's CUDA sources: milliseconds and their ratio.

Usage: python bench/lint_cost.py. Needs no GPU. Each compile has a new define, so no cache has it;
the better of three rounds counts.
"""

import os
import statistics
import sys
import time
from pathlib import Path

os.environ["KERNWRIGHT_CACHE"] = "off"

import kernwright as kw

SOURCES = Path(__file__).resolve().parents[1] / "tests" / "sim" / "sources"
LEFT_OUT = {"faults", "wide_integers"}  # wrong on purpose; needs an option of its own
ROUNDS = 3


def milliseconds(step, text):
    """The best of some rounds."""
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        step(text)
        times.append(time.perf_counter() - begin)
    return min(times) * 1e3


def compile_fresh(text):
    options = kw.ProgramOptions(arch="sm_80", defines={"KW_FRESH_": time.monotonic_ns()})
    kw.Program(text, options).compile("cubin")


def main():
    kw.lint("__global__ void first() {}")  # loads NVRTC
    texts = [path.read_text() for path in sorted(SOURCES.glob("*.cu")) if path.stem not in LEFT_OUT]
    plain = [text for text in texts if "#include" not in text]
    headers = [text for text in texts if "#include" in text]
    for title, group in (("no headers", plain), ("with headers", headers)):
        pairs = [[milliseconds(kw.lint, t), milliseconds(compile_fresh, t)] for t in group]
        lint, compiled = (sum(column) for column in zip(*pairs, strict=True))
        median = statistics.median(slow / quick for quick, slow in pairs)
        print(
            f"{title}: {len(group)} sources, lint {lint:.0f} ms, compile {compiled:.0f} ms, "
            f"{compiled / lint:.1f}x in all, {median:.1f}x the median"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
