"""A kernel with two parameters, and rows as a session leaves them for it."""

import itertools
import json

import numpy as np

import kernwright as kw
from kernwright.tune._store import kernel_key

SCALE = """
#ifndef BLOCK
#define BLOCK 32
#endif
#ifndef V
#define V 1
#endif
__global__ void scale(const float* x, float* y, float a, int n) {
    int first = (blockIdx.x * BLOCK + threadIdx.x) * V;
    for (int i = first; i < first + V && i < n; ++i) y[i] = a * x[i];
}
"""
GRID = "-(-n // (BLOCK * V))"
_numbers = itertools.count()


def result_row(kernel, config, **changes):
    """A result for the current device; `changes` replace members, None leaves one out."""
    problem = changes.pop("problem", {"n": 4096})
    key = kernel_key(kernel, list(config), problem=problem, policy="counts")
    row = {
        "v": 1,
        "kind": "result",
        "session": f"s{next(_numbers)}",
        **key,
        "space": "0123",
        "nvrtc": kernel._facts(None)["nvrtc_version"],
        "config": config,
        "median_ms": 1.0,
        "grid": GRID,
        "block": "BLOCK",
        "default": {"BLOCK": 32, "V": 1},
        **changes,
    }
    return {name: value for name, value in row.items() if value is not None}


def write_rows(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def run(tuned, n):
    """Launches tuned(x, y, a, n) and checks what it computed."""
    x = np.arange(n, dtype=np.float32)
    y = kw.zeros(n, dtype="float32")
    tuned(kw.asarray(x), y, 3.0, n)
    np.testing.assert_array_equal(y.numpy(), 3 * x)
