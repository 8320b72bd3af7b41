"""Attention of float8 operands: as they are, widened before, and bfloat16 beside torch's cuDNN.

Subjects take turns on one stream. Forward alone, in TFLOP/s (half of the operations if causal). The
simulated device checks only the results, with small shapes and no timing.
"""

from __future__ import annotations

import argparse
import functools
import json
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import attention_shared
from attention_shared import Shape

import harness
import kernwright as kw
from kernwright import nn

TOLERANCE = 3.2e-2  # by the norm of the sampled rows: weights are float8, too
SHAPES = [
    *(
        Shape(max(1, 16384 // s), 16, 16, s, s, 128, causal)
        for causal in (False, True)
        for s in (512, 1024, 2048, 4096, 8192, 16384)
    ),
    *(Shape(4, 8, 8, 4096, 4096, 256, causal) for causal in (False, True)),
    *(Shape(1, 64, 8, s, s, 128, True) for s in (2048, 8192)),
    Shape(4, 32, 32, 4096, 4096, 64, True),
]
SMALL = [Shape(1, 2, 1, 140, 600, 128, True), Shape(1, 1, 1, 140, 530, 96)]


def measure(shape: Shape, timed: bool) -> dict[str, Any]:
    bytes_ = tuple(x.astype("float8_e4m3fn") for x in attention_shared.operands(shape))
    wide = tuple(x.astype("bfloat16") for x in bytes_)
    call = functools.partial(
        nn.attention, is_causal=shape.causal, enable_gqa=shape.heads != shape.kv_heads
    )
    row: dict[str, Any] = {"subject": "float8", **shape._asdict()}
    row["error"] = attention_shared.relative_error(shape, wide, call(*bytes_), False)
    row["correct"] = row["error"] <= TOLERANCE
    if timed:
        subjects: dict[str, Callable[[], Any]] = {
            "ours": lambda: call(*bytes_),
            "ours, widened": lambda: call(*(x.astype("bfloat16") for x in bytes_)),
            "ours, bfloat16": lambda: call(*wide),
        }
        peers = dict(attention_shared.peers(shape, wide, False))
        if "torch cudnn" in peers:
            subjects["torch cudnn, bfloat16"] = peers["torch cudnn"]
        row |= attention_shared.rates(
            attention_shared.time_in_turn(subjects),
            lambda us: {"TFLOP/s": round(shape.flops() / us / 1e6, 1)},
        )
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    default = harness.RESULTS / "float8_attention_shared.json"
    parser.add_argument("-o", "--output", type=pathlib.Path, default=default)
    options = parser.parse_args()
    timed = not kw.current_device().is_simulated
    rows: list[dict[str, Any]] = []
    for shape in SHAPES if timed else SMALL:
        rows.append(measure(shape, timed))
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    document = {"subject": "float8 attention", "machine": harness.machine(), "rows": rows}
    document["correct"] = all(row["correct"] for row in rows)
    harness.write(options.output, document)


if __name__ == "__main__":
    main()
