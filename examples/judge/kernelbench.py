"""A task file in the style of KernelBench, for kw.judge.

    python kernelbench.py softmax_task.py softmax.cu [more.cu ...]

A KernelBench task defines `Model` (a torch module, or any class with `forward`), `get_inputs()` and
`get_init_inputs()`. A submission is the kernel alone. Its parameters are the addresses of the
inputs, the address of the output, then the sizes of the first input. `to_task()` makes a kw.Task
from such a file. It seeds torch and NumPy for new inputs in each case; `CUTS` in the file gives the
sizes of the cases.
"""

from __future__ import annotations

import importlib.util
import pathlib
import random
import sys
from types import ModuleType
from typing import Any

import numpy as np

import kernwright as kw


def load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("kernelbench_task", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def as_array(value: Any) -> Any:
    """A NumPy array from a tensor or an array."""
    return value.detach().cpu().numpy() if hasattr(value, "detach") else np.asarray(value)


def seed_all(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


def to_task(module: ModuleType) -> kw.Task:
    model = module.Model(*module.get_init_inputs())

    def forward(arrays: list[Any]) -> Any:
        return as_array(model.forward(*arrays))

    def inputs(seed: int, case: int) -> tuple[Any, ...]:
        seed_all((seed + case) % 2**32)
        # Case 0 has the file's full size; others are cut to sizes around the edges of tiles.
        arrays = [as_array(value) for value in module.get_inputs()]
        sizes = getattr(module, "CUTS", [None])
        cut = sizes[case % len(sizes)]
        if cut is not None:
            arrays = [np.ascontiguousarray(array[tuple(slice(n) for n in cut)]) for array in arrays]
        out = np.zeros_like(forward(arrays), dtype=arrays[0].dtype)
        return (*arrays, out, *arrays[0].shape)

    def reference(*values: Any) -> tuple[Any, ...]:
        arrays = [value for value in values[:-1] if isinstance(value, np.ndarray)][:-1]
        expected = forward([array.astype(np.float64) for array in arrays])
        return tuple(expected if i == len(arrays) else None for i in range(len(values)))

    return kw.Task(
        entry=module.ENTRY,
        signature=module.SIGNATURE,
        inputs=inputs,
        reference=reference,
        grid=getattr(module, "GRID", None),
        block=getattr(module, "BLOCK", None),
        rtol=1e-4,
        atol=1e-4,
    )


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__)
        return 2
    task = to_task(load(sys.argv[1]))
    right = 0
    with kw.Judge() as judge:
        verdicts = [(path, judge.submit(pathlib.Path(path), task)) for path in sys.argv[2:]]
        for path, future in verdicts:
            verdict = future.result()
            right += verdict.accepted
            print(f"{path}: {verdict}\n")
    return 0 if right == len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
