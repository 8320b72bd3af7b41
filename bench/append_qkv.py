"""New tokens before decode attention: one launch, the separate functions, and torch.

Packed rows are split, queries and keys are normalised and rotated, keys and values go to the cache.
Figures are device time with a cold L2, and the necessary bytes divided by it. Subjects take turns
on one stream. The simulated device checks only the results, with small shapes and no timing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from attention_shared import time_in_turn

import harness
import kernwright as kw
from kernwright import nn

EPS = 1e-6
TOLERANCE = 1e-2  # for bfloat16, because torch rounds in another order


class Shape(NamedTuple):
    batch: int
    tokens: int
    heads: int
    kv_heads: int
    dim: int

    def bytes(self) -> int:
        """Bytes of the rows read, and of the queries, keys and values written."""
        every = (self.heads + 2 * self.kv_heads) * self.dim
        return 2 * 2 * self.batch * self.tokens * every


SHAPES = [Shape(b, t, 32, 8, 128) for b, t in ((1, 1), (32, 1), (256, 1), (1, 2048), (4, 8192))]
SHAPES += [Shape(64, 1, 64, 8, 64), Shape(8, 512, 16, 16, 256)]
SMALL = [Shape(2, 3, 4, 2, 64), Shape(3, 1, 2, 2, 32)]


class Inputs:
    """Arrays of one shape; `places` are the positions of the first tokens."""

    def __init__(self, shape: Shape) -> None:
        self.shape, places = shape, shape.tokens + 64
        width = (shape.heads + 2 * shape.kv_heads) * shape.dim
        self.qkv = kw.random.normal((shape.batch, shape.tokens, width), seed=1).astype("bfloat16")
        self.weights = [
            kw.random.normal(shape.dim, seed=seed).astype("bfloat16") for seed in (2, 3)
        ]
        self.tables = nn.rope_tables(places, shape.dim)
        self.places = kw.asarray(np.arange(shape.batch, dtype=np.int32) % 64)
        self.rope_positions = self.places.reshape((-1, 1)) + kw.arange(shape.tokens, dtype="int32")

    def caches(self) -> list[kw.Array]:
        shape = self.shape
        cache = (shape.batch, shape.kv_heads, shape.tokens + 64, shape.dim)
        return [kw.zeros(cache, "bfloat16") for _ in range(2)]

    def fused(self, caches: list[kw.Array]) -> kw.Array:
        q_weight, k_weight = self.weights
        return nn.append_qkv(
            self.qkv, *caches, self.places, *self.tables, q_weight=q_weight, k_weight=k_weight
        )

    def one_by_one(self, caches: list[kw.Array]) -> kw.Array:
        q, k, v = nn.split_qkv(self.qkv, self.shape.heads, self.shape.kv_heads)
        q, k = (nn.rms_norm(x, w, EPS) for x, w in zip((q, k), self.weights, strict=True))
        q, k = nn.rope(q, k, *self.tables, positions=self.rope_positions)
        q, k, v = (kw.permute_dims(x, (0, 2, 1, 3)) for x in (q, k, v))
        nn.append_cache(k, v, *caches, self.places)
        return q


def peers(inputs: Inputs, made: list[Any]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """torch, eager and compiled; `made` gets the caches that it wrote."""
    try:
        import torch
    except ImportError as error:
        print("no peer:", error, file=sys.stderr)
        return
    if kw.current_device().is_simulated:
        return
    shape, functional = inputs.shape, torch.nn.functional
    qkv, cos, sin, rope_positions, *weights = (
        torch.from_dlpack(x)
        for x in (inputs.qkv, *inputs.tables, inputs.rope_positions, *inputs.weights)
    )
    made += [torch.from_dlpack(x) for x in inputs.caches()]
    sequence = torch.arange(shape.batch, device=qkv.device)[:, None]

    def turned(x: Any, c: Any, s: Any) -> Any:
        a, b = x.float().chunk(2, -1)
        return torch.cat([a * c - b * s, b * c + a * s], -1).to(x.dtype)

    def step(key_cache: Any, value_cache: Any) -> Any:
        heads = qkv.unflatten(-1, (-1, shape.dim))
        q, k, v = heads.split([shape.heads, shape.kv_heads, shape.kv_heads], 2)
        q, k = (functional.rms_norm(x, (shape.dim,), w, EPS)
                for x, w in zip((q, k), weights, strict=True))  # fmt: skip
        c, s = cos[rope_positions][:, :, None], sin[rope_positions][:, :, None]
        q, k = turned(q, c, s), turned(k, c, s)
        key_cache[sequence, :, rope_positions], value_cache[sequence, :, rope_positions] = k, v
        return q.transpose(1, 2)

    yield "torch", lambda: step(*made)
    compiled = torch.compile(step, dynamic=False)
    yield "torch.compile", lambda: compiled(*made)


def difference(got: Any, wanted: Any) -> float:
    got, wanted = (np.asarray(x.numpy(), np.float64) for x in (got, wanted))
    return float(np.linalg.norm(got - wanted) / np.linalg.norm(wanted))


def measure(shape: Shape, timed: bool) -> dict[str, Any]:
    inputs, row = Inputs(shape), dict(shape._asdict())
    ours, apart = inputs.caches(), inputs.caches()
    pairs = [(inputs.fused(ours), inputs.one_by_one(apart)), *zip(ours, apart, strict=True)]
    row["error"] = max(difference(*pair) for pair in pairs)
    row["correct"] = row["error"] <= TOLERANCE
    if not timed:
        return row
    theirs: list[Any] = []
    subjects: dict[str, Callable[[], Any]] = {
        "ours": lambda: inputs.fused(ours),
        "ours, one by one": lambda: inputs.one_by_one(apart),
        **dict(peers(inputs, theirs)),
    }
    times = time_in_turn(subjects)
    for name, taken in times.items():
        if isinstance(taken, dict):
            row[name] = taken
        else:
            row[name] = {"us": round(taken, 2), "GB/s": round(shape.bytes() / taken / 1e3, 1)}
    if theirs and "us" in row["torch"]:
        row["error beside torch"] = difference(kw.from_dlpack(theirs[0]), ours[0])
        row["correct"] &= row["error beside torch"] <= TOLERANCE
    return row


def main() -> None:
    options = harness.arguments(__doc__.splitlines()[0], "append_qkv")
    timed = not kw.current_device().is_simulated
    document: dict[str, Any] = {"subject": "append_qkv", "machine": harness.machine(), "rows": []}
    for shape in SHAPES if timed else SMALL:
        row = measure(shape, timed)
        print(row, file=sys.stderr, flush=True)
        document["rows"].append(row)
        document["correct"] = all(each["correct"] for each in document["rows"])
        harness.save(options.output, document)  # keeps the finished rows if time runs out
    harness.write(options.output, document)


if __name__ == "__main__":
    main()
