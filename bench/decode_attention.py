"""Decoding attention, and torch's scaled_dot_product_attention with each backend.

Caches are whole, of pages, of float8 and of int8. Subjects are graphs of launches over rotating
operands (replays.py), in turns. Rates are TB/s of keys and values. The simulated device checks only
the results, with small shapes and no timing.
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
from attention_shared import (
    TOLERANCE,
    Shape,
    Subjects,
    largest_error,
    operands,
    peers,
    relative_error,
    replayed,
)

import harness
import kernwright as kw
from kernwright import nn

DECODE = [
    Shape(1, 32, 8, 1, 4096),
    Shape(1, 32, 8, 1, 32768),
    Shape(8, 32, 8, 1, 8192),
    Shape(32, 32, 8, 1, 4096),
    Shape(32, 32, 32, 1, 2048),
    Shape(8, 32, 8, 4, 8192),
]
SMALL = [Shape(2, 4, 2, 1, 150, 64)]


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
    def make_subjects(arrays: tuple[kw.Array, ...]) -> Subjects:
        ours = {"ours": lambda: nn.decode_attention(*arrays)}
        return {**ours, **dict(variants(shape, arrays)), **dict(peers(shape, arrays, True))}

    arrays = operands(shape)
    subjects = make_subjects(arrays)
    row: dict[str, Any] = {"subject": "decode", **shape._asdict()}
    row["error"] = relative_error(shape, arrays, subjects["ours"](), True)
    if "ours, pages of 16" in subjects:
        error = relative_error(shape, arrays, subjects["ours, pages of 16"](), True)
        row["error"] = largest_error([row["error"], error])
    row["correct"] = row["error"] <= TOLERANCE
    if timed:
        moved = {title: shape.cache_bytes(1) for title in ("ours, float8", "ours, int8")}
        for title, taken in replayed(shape, make_subjects).items():
            row[title] = replays.add_rate(taken, moved.get(title, shape.cache_bytes()))
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    default = harness.RESULTS / "decode_attention.json"
    parser.add_argument("-o", "--output", type=pathlib.Path, default=default)
    options = parser.parse_args()
    timed = not kw.current_device().is_simulated
    rows: list[dict[str, Any]] = []
    document = {"subject": "decode attention", "machine": harness.machine()}
    for shape in DECODE if timed else SMALL:
        rows.append(measure_decode(shape, timed))
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
        document |= {"rows": rows, "correct": all(row["correct"] for row in rows)}
        harness.save(options.output, document)  # a time limit loses none
    harness.write(options.output, document)


if __name__ == "__main__":
    main()
