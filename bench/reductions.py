"""Reductions and cumsum of many sizes, along each axis, beside torch and CuPy.

On the simulated device small sizes show that it runs and is right; its times say nothing of a GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import harness
import kernwright as kw

Call = Callable[[], Any]
NAMES = ("sum", "mean", "max", "argmax", "var", "cumsum")
# Shapes whose reduction runs along rows, columns, a middle axis, few long rows.
SHAPES_OF_GPU = {
    "rows": ((16384, 8192), 1),
    "columns": ((16384, 8192), 0),
    "middle": ((64, 4096, 512), 1),
    "short rows": ((1 << 22, 32), 1),
    "long rows": ((8, 1 << 24), 1),
    "long columns": ((1 << 24, 8), 0),
}
SHAPES_OF_SIM = {
    "rows": ((64, 300), 1),
    "columns": ((64, 300), 0),
    "middle": ((4, 33, 16), 1),
    "long rows": ((2, 9000), 1),
}


def ours(name: str, x: kw.Array, axis: int | None) -> Call:
    if name == "cumsum":
        return lambda: x.cumsum(axis)
    return lambda: getattr(kw, name)(x, axis=axis)


def in_torch(name: str, x: Any, axis: int | None) -> Call:
    import torch

    if name == "cumsum":
        return lambda: torch.cumsum(x, 0 if axis is None else axis)
    if name == "var":
        return lambda: torch.var(x, dim=axis, correction=0)
    if name == "max":
        return (lambda: torch.amax(x)) if axis is None else (lambda: torch.amax(x, dim=axis))
    call = getattr(torch, name)
    return (lambda: call(x)) if axis is None else (lambda: call(x, dim=axis))


def in_cupy(name: str, x: Any, axis: int | None) -> Call:
    import cupy

    call = getattr(cupy, name)
    return lambda: call(x, axis=axis)


def peers(name: str, values: np.ndarray[Any, Any], axis: int | None) -> dict[str, Call]:
    """Each peer on memory of its own; none where there is no GPU."""
    found: dict[str, Call] = {}
    if kw.current_device().is_simulated:
        return found
    try:
        import torch

        found["torch"] = in_torch(name, torch.asarray(values).cuda(), axis)
    except ImportError as error:
        print("no peer:", error, file=sys.stderr)
    try:
        import cupy

        found["cupy"] = in_cupy(name, cupy.asarray(values), axis)
    except ImportError as error:
        print("no peer:", error, file=sys.stderr)
    return found


def expected(name: str, values: np.ndarray[Any, Any], axis: int | None) -> np.ndarray[Any, Any]:
    wide = values if name in ("max", "argmax") else values.astype(np.float64)
    return np.asarray(getattr(np, name)(wide, axis=axis))


def is_right(name: str, result: kw.Array, wanted: np.ndarray[Any, Any]) -> bool:
    """By the norm of the difference: a sum near 0 has no digits of its own."""
    got = result.numpy()
    if name in ("max", "argmax"):
        return bool((got == wanted).all())
    scale = np.linalg.norm(wanted.ravel()) + np.sqrt(wanted.size)
    return bool(np.linalg.norm((got - wanted).ravel()) <= 1e-5 * scale)


def measure(name: str, values: np.ndarray[Any, Any], axis: int | None) -> dict[str, Any]:
    """Times of all subjects, what memory they move a second, and whether ours is right."""
    x = kw.asarray(values)
    call = ours(name, x, axis)
    subjects = {"kernwright": call, **peers(name, values, axis)}
    moved = values.nbytes * (2 if name == "cumsum" else 1)
    calls = max(1, min(200, (1 << 30) // moved)) if len(subjects) > 1 else 1
    times = harness.alternate(subjects, kw.synchronize, calls, rounds=7, reference="kernwright")
    return {
        "subject": name,
        "shape": list(values.shape),
        "axis": axis,
        "us": times,
        "GB/s": {who: round(moved / t["min"] / 1e3, 1) for who, t in times.items()},
        "correct": is_right(name, call(), expected(name, values, axis)),
    }


def main() -> None:
    options = harness.arguments(__doc__.splitlines()[0], "reductions")
    simulated = kw.current_device().is_simulated
    rng = np.random.default_rng(1)
    rows = []
    for log2 in (12, 14) if simulated else (12, 16, 20, 24, 26, 28, 30):
        values = rng.standard_normal(1 << log2, np.float32)
        rows += [measure(name, values, None) for name in NAMES]
    for shape, axis in (SHAPES_OF_SIM if simulated else SHAPES_OF_GPU).values():
        values = rng.standard_normal(shape, np.float32)
        rows += [measure(name, values, axis) for name in NAMES]
    document = {
        "subject": "reductions",
        "machine": harness.machine(),
        "simulated": simulated,
        "dtype": "float32",
        "rows": rows,
        "correct": all(row["correct"] for row in rows),
    }
    harness.write(options.output, document)


if __name__ == "__main__":
    main()
