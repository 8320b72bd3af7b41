"""kernel.tuned() and kernel[grid, block] bound once: the cost of the choice by size in a launch."""

from __future__ import annotations

import json
import pathlib
import sys
import tempfile

import harness

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests" / "python"))

from tuning import SCALE, result_row

import kernwright as kw

N = 1024


def main() -> None:
    options = harness.arguments(__doc__.splitlines()[0], "tuned_dispatch")
    kernel = kw.kernel(SCALE)
    with tempfile.TemporaryDirectory() as folder:
        store = pathlib.Path(folder) / "store.jsonl"
        row = result_row(kernel, {"BLOCK": 64, "V": 2}, problem={"n": N})
        store.write_text(json.dumps(row) + "\n")
        fast = kernel.tuned(store)
        x, y = kw.ones(N, dtype="float32"), kw.zeros(N, dtype="float32")
        fast(x, y, 2.0, N)
        assert (y.numpy() == 2).all() and fast.choices[0].from_store
        nothing = kernel.forall(0)  # launches nothing, so only the choice takes time
        empty = kernel.tuned(store)
        empty._resolve = lambda arguments: (nothing, -1, False)
        names = {"x": x, "y": y, "n": N, "plain": fast.for_problem(n=N), "fast": fast,
                 "nothing": nothing, "empty": empty}  # fmt: skip
        subjects = {
            "launch": harness.statement("plain(x, y, 2.0, n)", names),
            "tuned launch": harness.statement("fast(x, y, 2.0, n)", names),
            "no launch": harness.statement("nothing(x, y, 2.0, n)", names),
            "tuned, no launch": harness.statement("empty(x, y, 2.0, n)", names),
        }
        results = harness.alternate(subjects, kw.synchronize, rounds=21)
    added = results["tuned, no launch"]["median"] - results["no launch"]["median"]
    harness.write(
        options.output,
        {
            "subject": "tuned_dispatch",
            "unit": "us per call",
            "machine": harness.machine(),
            "results": results,
            "added": round(added, 3),
        },
    )


if __name__ == "__main__":
    main()
