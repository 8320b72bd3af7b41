"""The host's work for a step of the engine with many sequences: plans, and calls of the driver.

Usage: python bench/engine_step.py [--rows 256]. Every row generates one token a step, so that the
numbers are those of decoding; every 16th step of a row takes a page. The model has no weights. The
simulated device runs kernels in the calling thread: there only the time of plans means something.
"""

from __future__ import annotations

import argparse
import sys

import kernwright as kw
from kernwright.llm import Step
from kernwright.llm._engine import TokenEngine
from kernwright.llm._sampling import Sampling

VOCABULARY, STEPS, ROUNDS = 61, 64, 5


def model(step: Step) -> kw.Array:
    last = step.select(step.tokens).reshape(-1, 1)
    wanted = (last * 31 + 7) % VOCABULARY
    return (kw.arange(VOCABULARY, dtype="int32").reshape(1, -1) == wanted).astype("float32")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=256)
    rows = parser.parse_args().rows
    engine = TokenEngine(
        model, vocabulary=VOCABULARY, cache_layers=[], capacity=1024, max_rows=rows,
        max_tokens_per_step=16 * rows, prefix_cache=False,
    )  # fmt: skip
    prompts = [[row % VOCABULARY] * 9 for row in range(rows)]
    engine.run(prompts, Sampling(max_tokens=2))
    best = {"plan_seconds": float("inf"), "launch_seconds": float("inf")}
    for _ in range(ROUNDS):
        before = engine.stats()
        made = engine.run(prompts, Sampling(max_tokens=STEPS))
        after = engine.stats()
        assert all(len(each.tokens) == STEPS for (each,) in made)
        steps = after["steps"] - before["steps"]
        for name, least in best.items():
            best[name] = min(least, (after[name] - before[name]) / steps)
    print(
        f"{rows} rows: {best['plan_seconds'] * 1e6:.0f} us of plans a step, "
        f"{best['launch_seconds'] * 1e6:.0f} us in the driver ({kw.current_device().name})"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
