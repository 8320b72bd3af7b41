"""The products of LoRA adapters: kernels with a group of eight tokens beside those on tensor cores.

Usage: python bench/adapter_products.py [-o FILE]. Microseconds of both products of a layer by
kw.time(), and the base product beside them; tokens have one slot each, in runs. On the simulated
device the shapes are small and the times mean nothing; results are compared everywhere.
"""

from __future__ import annotations

import itertools
import sys
from typing import Any

import numpy as np

import harness
import kernwright as kw
from kernwright.llm._adapters.products import expand, shrink
from kernwright.llm._adapters.tensor_products import expand_tiles, shrink_tiles

SLOTS = 4
LAYERS = {"qkv": (4096, [4096, 1024, 1024]), "down": (14336, [4096])}  # inputs, parts
SMALL = {"qkv": (64, [64, 32, 32])}
TOKENS, RANKS, RUNS = (32, 64, 128, 512, 2048, 8192), (16, 64, 256), (1, 512)
TOLERANCE = 1e-2


def numbers(*shape: int) -> kw.Array:
    values = np.random.default_rng(len(shape)).normal(0, 0.05, (1 << 16,)).astype(np.float32)
    count = int(np.prod(shape))
    flat = kw.asarray(np.resize(values, count)).astype("bfloat16")
    return flat.reshape(shape)


def measured(inputs: int, widths: list[int], tokens: int, rank: int, run: int) -> dict[str, Any]:
    """Microseconds by kernels. Raises AssertionError where their results differ."""
    ends = kw.asarray(np.cumsum(widths).astype(np.int32))
    outputs = sum(widths)
    x, weight = numbers(tokens, inputs), numbers(outputs, inputs)
    down, up = numbers(SLOTS, len(widths), rank, inputs), numbers(SLOTS, rank, outputs)
    numbered = np.arange(tokens) // run % SLOTS
    slots = kw.asarray(numbered.astype(np.int32))
    used = kw.asarray(np.full(SLOTS, rank, np.int32))
    kernels = {"groups": (shrink, expand), "tiles": (shrink_tiles, expand_tiles)}
    made, times = {}, {}
    for name, (shrinking, expanding) in kernels.items():
        y = kw.zeros((tokens, outputs), "bfloat16")

        def both(y: kw.Array = y, shrinking: Any = shrinking, expanding: Any = expanding) -> None:
            expanding(shrinking(x, down, slots, used), up, slots, used, ends, y)

        both()
        made[name] = y.astype("float32").numpy()
        if not kw.current_device().is_simulated:
            times[name] = round(1e3 * kw.time(both).median, 2)
    distance = np.abs(made["groups"] - made["tiles"]).max() / np.abs(made["groups"]).max()
    assert distance < TOLERANCE, distance
    if times:
        times["base"] = round(1e3 * kw.time(kw.nn.linear, x, weight).median, 2)
    return times


def main() -> int:
    options = harness.arguments(__doc__ or "", "adapter_products")
    simulated = kw.current_device().is_simulated
    document: dict[str, Any] = {"machine": harness.machine()}
    layers, tokens, ranks = (SMALL, (70,), (16,)) if simulated else (LAYERS, TOKENS, RANKS)
    for layer, count, rank, run in itertools.product(layers, tokens, ranks, RUNS):
        name = f"{layer}, {count} tokens, rank {rank}, runs of {run}"
        document[name] = measured(*layers[layer], count, rank, run)
        print(name, document[name], flush=True)
        harness.save(options.output, document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
