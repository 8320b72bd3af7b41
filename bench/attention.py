"""Attention and torch's scaled_dot_product_attention with each backend, forward and backward.

Subjects take turns on one stream and start with a cold L2; a forward pass of less than 50 us is a
graph of launches over rotating operands (replays.py). Rates are TFLOP/s (half of the operations if
causal), of the backward pass with five products to the forward pass's two. `--kernel` names the
kernel. `--candidates` measures all tiles for Hopper, the other kernel and torch. The simulated
device checks only the results, with small shapes and no timing. decode_attention.py measures
decoding.
"""

from __future__ import annotations

import argparse
import functools
import json
import pathlib
import sys
from collections.abc import Callable
from typing import Any

from attention_backward import measure_backward
from attention_shared import (
    TOLERANCE,
    Shape,
    Subjects,
    operands,
    peers,
    rates,
    relative_error,
    replayed,
    time_in_turn,
)

import harness
import kernwright as kw
from kernwright import _core, nn

SHORT = 50.0  # us

FORWARD = [
    *(
        Shape(max(1, 16384 // s), 16, 16, s, s, 128, causal)
        for causal in (False, True)
        for s in (512, 1024, 2048, 4096, 8192, 16384)
    ),
    Shape(2, 32, 8, 4096, 4096, 128, True),
    Shape(1, 64, 8, 8192, 8192, 128, True),
    Shape(4, 32, 32, 4096, 4096, 64, True),
    Shape(2, 16, 16, 4096, 4096, 256, True),
    # Too few rows for all multiprocessors.
    Shape(1, 16, 16, 512, 512),
    Shape(1, 8, 8, 1024, 1024),
    Shape(1, 32, 8, 64, 16384),
    Shape(1, 8, 8, 128, 8192),
    Shape(1, 16, 16, 256, 4096),
]
BACKWARD = [
    *(
        Shape(max(1, 16384 // s), 16, 16, s, s, 128, causal)
        for causal in (False, True)
        for s in (512, 1024, 2048, 4096, 8192, 16384)
    ),
    Shape(2, 32, 8, 4096, 4096, 128, True),
    Shape(1, 64, 8, 8192, 8192, 128, True),
    Shape(4, 32, 32, 4096, 4096, 64, False),
    Shape(4, 32, 32, 4096, 4096, 64, True),
    Shape(4, 16, 16, 4096, 4096, 96, True),
    Shape(2, 16, 16, 2048, 2048, 192, False),
    Shape(2, 16, 16, 2048, 2048, 192, True),
    Shape(4, 8, 8, 2048, 2048, 256, True),
    Shape(4, 8, 4, 2048, 2048, 256, True),
    Shape(2, 16, 16, 4096, 4096, 256, True),
]
SMALL = [Shape(1, 4, 2, 70, 70, 64, True), Shape(2, 2, 2, 70, 70, 64, False)]


def measure_forward(shape: Shape, timed: bool) -> dict[str, Any]:
    grouped = shape.heads != shape.kv_heads

    def make_subjects(arrays: tuple[kw.Array, ...]) -> Subjects:
        def ours() -> kw.Array:
            return nn.attention(*arrays, is_causal=shape.causal, enable_gqa=grouped)

        return {"ours": ours, **dict(peers(shape, arrays, False))}

    arrays = operands(shape)
    subjects = make_subjects(arrays)
    row: dict[str, Any] = {"subject": "forward", **shape._asdict()}
    row["error"] = relative_error(shape, arrays, subjects["ours"](), False)
    row["correct"] = row["error"] <= TOLERANCE
    if timed:
        times = time_in_turn(subjects)
        if times["ours"] < SHORT:
            times = replayed(shape, make_subjects)
        row |= rates(times, lambda us: {"TFLOP/s": round(shape.flops() / us / 1e6, 1)})
    return row


def make_title(tile: tuple[int, int, int]) -> str:
    keys, stages, groups = tile
    return f"ours, {64 * groups} queries, {keys} keys, {stages} stages"


def measure_candidates(shape: Shape, timed: bool) -> dict[str, Any]:
    """All tiles of the Hopper kernel that fit in shared memory, the best first."""
    arrays = operands(shape)
    grouped = shape.heads != shape.kv_heads

    def by(kernel: str, tile: tuple[int, int, int] | None = None) -> kw.Array:
        with _core._AttentionPlan(kernel, tile):
            return nn.attention(*arrays, is_causal=shape.causal, enable_gqa=grouped)

    row: dict[str, Any] = {"subject": "candidates", **shape._asdict(), "wrong": [], "left out": {}}
    runs: dict[str, Callable[[], Any]] = {"ours, rule": lambda: by("auto")}
    runs["ours, mma"] = lambda: by("mma")
    for tile in _core._attention_tiles():
        runs[make_title(tile)] = functools.partial(by, "hopper", tile)
    for title, run in list(runs.items()):
        try:
            right = relative_error(shape, arrays, run(), False) <= TOLERANCE
        except kw.Error as error:  # no room for the tile, or no Hopper
            row["left out"][title] = str(error)[:120]
        else:
            if not right:
                row["wrong"].append(title)
        if title in row["left out"] or title in row["wrong"]:
            del runs[title]
    row["correct"] = not row["wrong"]
    if timed:
        taken = time_in_turn({**runs, **dict(peers(shape, arrays, False))})
        found = rates(taken, lambda us: {"TFLOP/s": round(shape.flops() / us / 1e6, 1)})
        row |= dict(sorted(found.items(), key=lambda item: -item[1].get("TFLOP/s", 0)))
    return row


# What tells rows apart.
SAME = ("subject", "batch", "heads", "kv_heads", "queries", "keys", "dim", "causal")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    default = harness.RESULTS / "attention.json"
    parser.add_argument("-o", "--output", type=pathlib.Path, default=default)
    parser.add_argument("--kernel", choices=("auto", "mma", "hopper"), default="auto")
    parser.add_argument("--candidates", action="store_true", help="measure every tile")
    parser.add_argument("--forward", action="store_true", help="the forward pass alone")
    parser.add_argument("--backward", action="store_true", help="the backward pass alone")
    parser.add_argument("--queries", type=int, nargs="*", help="shapes of so many queries alone")
    parser.add_argument("--dims", type=int, nargs="*", help="shapes with heads of such sizes alone")
    parser.add_argument("--keep", action="store_true", help="the output's rows of other shapes")
    options = parser.parse_args()
    timed = not kw.current_device().is_simulated
    forward = measure_candidates if options.candidates else measure_forward
    backward = functools.partial(
        measure_backward, kernel=options.kernel, candidates=options.candidates
    )
    shapes: list[tuple[Callable[[Shape, bool], dict[str, Any]], Shape]] = []
    both = options.forward == options.backward
    if options.forward or both:
        shapes += [(forward, shape) for shape in (FORWARD if timed else SMALL)]
    if options.backward or both:
        shapes += [(backward, shape) for shape in (BACKWARD if timed else SMALL)]
    if options.queries and timed:
        shapes = [each for each in shapes if each[1].queries in options.queries]
    if options.dims and timed:
        shapes = [each for each in shapes if each[1].dim in options.dims]
    rows: list[dict[str, Any]] = []
    document = {"subject": "attention", "machine": harness.machine(), "kernel": options.kernel}
    if options.keep and options.output.exists():
        earlier = json.loads(options.output.read_text())
        if earlier["machine"]["device"] == document["machine"]["device"]:
            rows = earlier["rows"]
    for measure, shape in shapes:
        with _core._AttentionPlan(options.kernel if measure is measure_forward else "auto"):
            made = measure(shape, timed)
        rows = [each for each in rows if any(each[key] != made[key] for key in SAME)] + [made]
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
        document |= {"rows": rows, "correct": all(row["correct"] for row in rows)}
        harness.save(options.output, document)  # a time limit loses none
    harness.write(options.output, document)


if __name__ == "__main__":
    main()
