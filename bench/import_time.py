"""Whole processes that import one package, in turn: seconds beyond bare Python with NumPy."""

from __future__ import annotations

import importlib.util
import statistics
import subprocess
import sys
import time

import harness

BASE = "import numpy"
SUBJECTS = {
    "numpy": BASE,
    "kernwright": BASE + "; import kernwright",
    "cupy": BASE + "; import cupy",
    "cuda.core": BASE + "; import cuda.core",
    "numba.cuda": BASE + "; import numba.cuda",
    "torch": BASE + "; import torch",
}


def installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def main() -> None:
    options = harness.arguments(__doc__.splitlines()[0], "import_time")
    present = {name: code for name, code in SUBJECTS.items() if installed(name)}
    samples: dict[str, list[float]] = {name: [] for name in present}
    for _ in range(11):
        for name, code in present.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            samples[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(v[1:]) for name, v in samples.items()}
    results = {
        name: {"whole": round(median, 4), "beyond_numpy": round(median - medians["numpy"], 4)}
        for name, median in medians.items()
    }
    harness.write(
        options.output,
        {"subject": "import_time", "unit": "s", "machine": harness.machine(), "results": results},
    )


if __name__ == "__main__":
    main()
