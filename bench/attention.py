"""Attention and torch's scaled_dot_product_attention with each backend: forward, backward and
decoding.

Subjects take turns on one stream and start with a cold L2; decoding, and a forward pass of less
than 50 us, are graphs of launches over rotating operands (replays.py). Forward is in TFLOP/s (half
of the operations if causal), backward with five products to the forward pass's two, decoding in
TB/s of keys and values. `--kernel` names the kernel of the forward and backward pass.
`--candidates` measures all their tiles for Hopper, the other kernel and torch. The simulated device
checks only the results, with small shapes and no timing.
"""

from __future__ import annotations

import argparse
import functools
import json
import pathlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import replays
from attention_backward import measure_backward
from attention_shared import (
    TOLERANCE,
    Shape,
    Subjects,
    error_of,
    max_of,
    operands,
    peers,
    rates,
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
]
DECODE = [
    Shape(1, 32, 8, 1, 4096),
    Shape(1, 32, 8, 1, 32768),
    Shape(8, 32, 8, 1, 8192),
    Shape(32, 32, 8, 1, 4096),
    Shape(32, 32, 32, 1, 2048),
    Shape(8, 32, 8, 4, 8192),
]
SMALL = [Shape(1, 4, 2, 70, 70, 64, True), Shape(2, 2, 2, 70, 70, 64, False)]
SMALL_DECODE = [Shape(2, 4, 2, 1, 150, 64)]


def measure_forward(shape: Shape, timed: bool) -> dict[str, Any]:
    grouped = shape.heads != shape.kv_heads

    def subjects_of(arrays: tuple[kw.Array, ...]) -> Subjects:
        def ours() -> kw.Array:
            return nn.attention(*arrays, is_causal=shape.causal, enable_gqa=grouped)

        return {"ours": ours, **dict(peers(shape, arrays, False))}

    arrays = operands(shape)
    subjects = subjects_of(arrays)
    row: dict[str, Any] = {"subject": "forward", **shape._asdict()}
    row["error"] = error_of(shape, arrays, subjects["ours"](), False)
    row["correct"] = row["error"] <= TOLERANCE
    if timed:
        times = time_in_turn(subjects)
        if times["ours"] < SHORT:
            times = replayed(shape, subjects_of)
        row |= rates(times, lambda us: {"TFLOP/s": round(shape.flops() / us / 1e6, 1)})
    return row


def paged(cache: kw.Array, page: int) -> tuple[kw.Array, kw.Array]:
    """A cache cut into pages in random order, and its table."""
    batch, heads, keys, dim = cache.shape
    each = keys // page
    order = np.random.default_rng(0).permutation(batch * each).astype(np.int32)
    pages = kw.permute_dims(cache, (0, 2, 1, 3)).reshape((batch * each, page, heads, dim))
    place = np.empty_like(order)
    place[order] = np.arange(batch * each, dtype=np.int32)
    return kw.take(pages, kw.asarray(order), axis=0), kw.asarray(place.reshape(batch, each))


def variants(shape: Shape, arrays: tuple[kw.Array, ...]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Ours over pages and over caches of 8 bits, and with other numbers of splits."""
    query, key, value = arrays
    if shape.keys % 16 == 0:
        (key_pages, table), (value_pages, _) = paged(key, 16), paged(value, 16)
        yield (
            "ours, pages of 16",
            lambda: nn.decode_attention(query, key_pages, value_pages, page_table=table),
        )
    small = [x.astype("float8_e4m3fn") for x in (key, value)]
    yield "ours, float8", lambda: nn.decode_attention(query, *small)
    whole = [(x.astype("float32") * np.float32(30)).astype("int8") for x in (key, value)]
    yield "ours, int8", lambda: nn.decode_attention(query, *whole)
    for splits in (1, 2, 4, 8, 16, 32, 64):
        yield (
            f"ours, {splits} splits",
            functools.partial(nn.decode_attention, *arrays, splits=splits),
        )


def measure_decode(shape: Shape, timed: bool) -> dict[str, Any]:
    def subjects_of(arrays: tuple[kw.Array, ...]) -> Subjects:
        ours = {"ours": lambda: nn.decode_attention(*arrays)}
        return {**ours, **dict(variants(shape, arrays)), **dict(peers(shape, arrays, True))}

    arrays = operands(shape)
    subjects = subjects_of(arrays)
    row: dict[str, Any] = {"subject": "decode", **shape._asdict()}
    row["error"] = error_of(shape, arrays, subjects["ours"](), True)
    if "ours, pages of 16" in subjects:
        error = error_of(shape, arrays, subjects["ours, pages of 16"](), True)
        row["error"] = max_of([row["error"], error])
    row["correct"] = row["error"] <= TOLERANCE
    if timed:
        moved = {title: shape.cache_bytes(1) for title in ("ours, float8", "ours, int8")}
        for title, taken in replayed(shape, subjects_of).items():
            row[title] = replays.with_rate(taken, moved.get(title, shape.cache_bytes()))
    return row


def title_of(tile: tuple[int, int, int, bool]) -> str:
    keys, stages, groups, persistent = tile
    text = f"ours, {64 * groups} queries, {keys} keys, {stages} stages"
    return text if persistent else text + ", new blocks"


def measure_candidates(shape: Shape, timed: bool) -> dict[str, Any]:
    """All tiles of the Hopper kernel that fit in shared memory, the best first."""
    arrays = operands(shape)
    grouped = shape.heads != shape.kv_heads

    def by(kernel: str, tile: tuple[int, int, int, bool] | None = None) -> kw.Array:
        _core._force_attention(kernel, tile)
        try:
            return nn.attention(*arrays, is_causal=shape.causal, enable_gqa=grouped)
        finally:
            _core._force_attention("auto")

    row: dict[str, Any] = {"subject": "candidates", **shape._asdict(), "wrong": [], "left out": {}}
    runs: dict[str, Callable[[], Any]] = {"ours, rule": lambda: by("auto")}
    runs["ours, mma"] = lambda: by("mma")
    for tile in _core._attention_tiles():
        runs[title_of(tile)] = functools.partial(by, "hopper", tile)
    for title, run in list(runs.items()):
        try:
            right = error_of(shape, arrays, run(), False) <= TOLERANCE
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


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    default = harness.RESULTS / "attention.json"
    parser.add_argument("-o", "--output", type=pathlib.Path, default=default)
    parser.add_argument("--kernel", choices=("auto", "mma", "hopper"), default="auto")
    parser.add_argument("--candidates", action="store_true", help="measure every tile")
    parser.add_argument("--forward", action="store_true", help="the forward pass alone")
    parser.add_argument("--backward", action="store_true", help="the backward pass alone")
    parser.add_argument("--decode", action="store_true", help="decoding alone")
    parser.add_argument("--queries", type=int, nargs="*", help="shapes of so many queries alone")
    options = parser.parse_args()
    timed = not kw.current_device().is_simulated
    forward = measure_candidates if options.candidates else measure_forward
    backward = functools.partial(
        measure_backward, kernel=options.kernel, candidates=options.candidates
    )
    shapes: list[tuple[Callable[[Shape, bool], dict[str, Any]], Shape]] = []
    every = not (options.forward or options.backward or options.decode)
    if options.forward or every:
        shapes += [(forward, shape) for shape in (FORWARD if timed else SMALL)]
    if options.backward or every:
        shapes += [(backward, shape) for shape in (BACKWARD if timed else SMALL)]
    if options.decode or (every and not options.candidates):
        shapes += [(measure_decode, shape) for shape in (DECODE if timed else SMALL_DECODE)]
    if options.queries and timed:
        shapes = [each for each in shapes if each[1].queries in options.queries]
    rows: list[dict[str, Any]] = []
    document = {"subject": "attention", "machine": harness.machine(), "kernel": options.kernel}
    for measure, shape in shapes:
        _core._force_attention(options.kernel if measure is measure_forward else "auto")
        rows.append(measure(shape, timed))
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
        document |= {"rows": rows, "correct": all(row["correct"] for row in rows)}
        harness.save(options.output, document)  # a time limit loses none
    harness.write(options.output, document)


if __name__ == "__main__":
    main()
