"""sort, argsort and topk beside torch and CuPy, in one run; each result is checked against NumPy.

On a GPU the subjects queue their work in turn, and a round ends with a synchronisation:
microseconds per call with the device busy. On the simulated device the shapes are small and the
times mean nothing; the checks do, and the launches of each call are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import harness
import kernwright as kw

# What, rows, elements of a row, k, dtype
SHAPES = [
    ("topk", 1, 128_256, 50, "float32"),
    ("topk", 128, 128_256, 50, "float32"),
    ("topk", 8192, 128, 8, "float32"),
    ("topk", 4, 65_536, 512, "float32"),
    ("sort", 1, 1 << 24, 0, "float32"),
    ("sort", 1, 1 << 24, 0, "int64"),
    ("sort", 4096, 2048, 0, "float32"),
    ("sort", 65_536, 128, 0, "float16"),
    ("argsort", 1, 1 << 22, 0, "int32"),
    ("argsort", 1024, 4096, 0, "float32"),
]
SMALL = [
    ("topk", 1, 20_000, 50, "float32"),
    ("topk", 64, 128, 8, "float32"),
    ("sort", 1, 20_000, 0, "float32"),
    ("sort", 8, 2048, 0, "float32"),
    ("argsort", 64, 128, 0, "float16"),
]


def values(rows: int, n: int, dtype: str) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(0)
    if dtype.startswith("int"):
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, (rows, n), dtype=dtype)
    return rng.standard_normal((rows, n)).astype(dtype)


def ours(what: str, host: np.ndarray[Any, Any], k: int) -> Callable[[], Any]:
    x = kw.asarray(host)
    return {
        "sort": lambda: kw.sort(x),
        "argsort": lambda: kw.argsort(x),
        "topk": lambda: kw.topk(x, k),
    }[what]


def torch_call(what: str, host: np.ndarray[Any, Any], k: int) -> Callable[[], Any]:
    import torch

    x = torch.from_numpy(host).cuda()
    return {
        "sort": lambda: torch.sort(x, stable=True)[0],
        "argsort": lambda: torch.argsort(x, stable=True),
        "topk": lambda: torch.topk(x, k),
    }[what]


def cupy_call(what: str, host: np.ndarray[Any, Any], k: int) -> Callable[[], Any]:
    import cupy as cp

    x = cp.asarray(host)
    if what == "topk":

        def select() -> Any:
            found = cp.argpartition(x, -k, axis=-1)[:, -k:]
            return cp.take_along_axis(x, found, -1)

        return select
    return {"sort": lambda: cp.sort(x), "argsort": lambda: cp.argsort(x)}[what]


def is_right(what: str, host: np.ndarray[Any, Any], k: int, result: Any) -> bool:
    if what == "sort":
        return bool((result.numpy() == np.sort(host)).all())
    order = np.argsort(host if what == "argsort" else -host, axis=-1, kind="stable")
    if what == "argsort":
        return bool((result.numpy() == order).all())
    return bool((result.indices.numpy() == order[:, :k]).all())


def launches(call: Callable[[], Any]) -> int:
    graph = kw.Graph()
    with graph.capture():
        call()
    return sum(1 for node in graph.nodes if node.name)


def measure(what: str, rows: int, n: int, k: int, dtype: str) -> dict[str, Any]:
    host = values(rows, n, dtype)
    mine = ours(what, host, k)
    right = is_right(what, host, k, mine())
    subjects = {"kernwright": mine}
    absent = {}
    for name, make in (("torch", torch_call), ("CuPy", cupy_call)):
        try:
            call = make(what, host, k)
            call()
        except (ImportError, OSError, RuntimeError, AssertionError) as error:
            absent[name] = f"{type(error).__name__}: {error}".splitlines()[0]
            continue
        subjects[name] = call
    simulated = kw.current_device().is_simulated
    calls = 1 if simulated else max(5, min(200, (1 << 26) // host.size))
    times = harness.alternate(
        subjects, settle(), calls=calls, rounds=3 if simulated else 9, reference="kernwright"
    )
    return {
        "what": what,
        "rows": rows,
        "elements": n,
        "k": k,
        "dtype": dtype,
        "right": right,
        "launches": launches(mine),
        "us": times,
        "absent": absent,
        "GB/s of one read": round(host.nbytes / times["kernwright"]["median"] / 1e3, 1),
    }


def settle() -> Callable[[], Any]:
    """Waits for all work of the device, other libraries' too."""
    return kw.current_device().synchronize


def main() -> None:
    options = harness.arguments(__doc__ or "", "sorting")
    simulated = kw.current_device().is_simulated
    rows = [measure(*shape) for shape in (SMALL if simulated else SHAPES)]
    harness.write(
        options.output,
        {"machine": harness.machine(), "simulated": simulated, "rows": rows},
    )
    if not all(row["right"] for row in rows):
        raise SystemExit("a result is wrong")


if __name__ == "__main__":
    main()
