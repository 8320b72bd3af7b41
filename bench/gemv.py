"""Products with few rows, ours and torch's: graphs of launches over rotating weights, the L2 cold.

A graph goes through several copies of the weights, together much larger than the L2. Figures are
the time of one launch, and the weights' bytes divided by it. `--candidates` times parameters of the
kernels instead of peers and prints the best of each product. `--formats` uses packed weights, of
all formats or of the named ones. The simulated device checks only the results, with small shapes
and no timing.
"""

from __future__ import annotations

import argparse
import itertools
import pathlib
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gemv_formats
import numpy as np
import replays
from replays import Maker, Ours, Theirs

import harness
import kernwright as kw

SHAPES = [(4096, 4096), (14336, 4096), (4096, 14336), (128256, 4096), (6144, 4096), (1024, 4096)]
ROWS = [1, 2, 4, 8, 16, 32, 64]
WEIGHTS = ["bfloat16", "float16", "float8_e4m3fn", "int8"]
BLOCK = 1 << 22
TOLERANCE = 1e-2
PARAMETERS = ("kernel", "warps", "rows", "unroll", "hint", "splits", "ahead", "stages")
TILES, DOT, STAGED, RING, ROW = 1, 2, 5, 6, 8


class Product(NamedTuple):
    """(m, k) times copies of (n, k) transposed."""

    x: kw.Array
    weights: list[kw.Array]
    scale: kw.Array | None

    def run(self, plan: tuple[int, ...] = ()) -> list[Callable[[], Any]]:
        """linear() as users call it, or the kernels of few rows by a plan."""
        if not plan:
            layer = kw.nn.linear
            return [lambda w=w: layer(self.x, w, scale=self.scale) for w in self.weights]
        one = kw._core._skinny_product
        return [lambda w=w: one(self.x, w, scale=self.scale, plan=list(plan)) for w in self.weights]


def filled(shape: tuple[int, int], dtype: str, seed: int) -> kw.Array:
    """Random numbers, because kernels run faster on zeros; one block, repeated on the device."""
    size = shape[0] * shape[1]
    generator = np.random.default_rng(seed)
    if dtype == "int8":
        block = kw.asarray(generator.integers(-127, 128, min(BLOCK, size)).astype(np.int8))
    else:
        block = kw.asarray(generator.standard_normal(min(BLOCK, size), "f4")).astype(dtype)
    flat = kw.empty(size, dtype=dtype)
    for start in range(0, size, BLOCK):
        part = min(BLOCK, size - start)
        flat[start : start + part] = block[:part]
    return flat.reshape(shape)


def make(m: int, n: int, k: int, dtype: str, copies: int) -> Product:
    narrow = dtype in ("int8", "float8_e4m3fn")
    weights = [filled((n, k), dtype, seed) for seed in range(copies)]
    scale = kw.asarray(np.full(n, 0.01, np.float32)) if narrow else None
    return Product(filled((m, k), "bfloat16" if narrow else dtype, 99), weights, scale)


def copy_count(n: int, k: int, dtype: str) -> int:
    return replays.copy_count(n * k * kw.empty(0, dtype=dtype).itemsize)


def relative_error(product: Product, result: kw.Array) -> float:
    """||result - expected|| / ||expected|| of the first and the last rows of the weights, in
    float64."""
    rows = np.r_[0:256, -256:0] if result.shape[1] > 512 else np.arange(result.shape[1])
    weights, x = product.weights[0], np.asarray(product.x.numpy(), np.float64)
    picked = np.concatenate(
        [weights[:256].numpy(), weights[-256:].numpy()]
        if result.shape[1] > 512
        else [weights.numpy()]
    ).astype(np.float64)
    expected = x @ picked.T * (1 if product.scale is None else 0.01)
    off = np.linalg.norm(np.asarray(result.numpy(), np.float64)[:, rows] - expected)
    return float(off / np.linalg.norm(expected))


def peers(product: Product) -> Iterator[tuple[str, Maker]]:
    try:
        import torch
    except ImportError as error:
        print("no peer:", error, file=sys.stderr)
        return
    x, weights = torch.from_dlpack(product.x), [torch.from_dlpack(w) for w in product.weights]
    bias = torch.zeros(weights[0].shape[0], dtype=x.dtype, device=x.device)
    linear = torch.nn.functional.linear
    yield "torch linear", lambda: Theirs(torch, [lambda w=w: linear(x, w) for w in weights])
    yield (
        "torch addmm",
        lambda: Theirs(torch, [lambda w=w: torch.addmm(bias, x, w.t()) for w in weights]),
    )


def rates(product: Product, makers: dict[str, Maker], rounds: int = 7) -> dict[str, Any]:
    """Microseconds, and the weights' bytes divided by them."""
    size = product.weights[0].nbytes
    found = replays.figures(makers, rounds)
    return {title: replays.add_rate(taken, size) for title, taken in found.items()}


def compare(product: Product) -> dict[str, Any]:
    makers: dict[str, Maker] = {"ours": lambda: Ours(product.run())}
    if product.scale is None:
        makers |= dict(peers(product))
    return rates(product, makers)


# -------------------------------------------------------------------------------- candidates


def rank_plans(product: Product, plans: list[tuple[int, ...]]) -> list[dict[str, Any]]:
    """All plans that ran, the fastest first."""
    made = []
    for plan in plans:
        found = rates(product, {"ours": lambda plan=plan: Ours(product.run(plan))}, 5)["ours"]
        made.append({"plan": plan, **found})
        if "error" in found:
            print(plan, found["error"], file=sys.stderr)
    return sorted(made, key=lambda row: row.get("us", 1e9))


def candidates(product: Product) -> dict[str, Any]:
    """First tries splits of a block, then hints and prefetch distances for the best of these."""
    m = product.x.shape[0]
    plans = []
    if m <= 16:
        tiles = itertools.product([TILES], [4, 8, 16], [1, 2], [1, 2, 4, 8])
        plans += [plan for plan in tiles if plan[2] * plan[3] * max(1, m // 8) <= 8]
        ring = itertools.product([RING], [4, 8], [1, 2], [1, 2, 4], [0], [1], [0], [3, 4, 6, 8])
        plans += [plan for plan in ring if 16 <= plan[1] * plan[2] * plan[3] * plan[7] <= 72]
    if m == 1 and product.weights[0].dtype.itemsize == 1:
        plans += [(ROW, warps, 0, 0) for warps in (4, 8, 14, 16)]
    if m <= 2:
        plans += itertools.product([DOT], [4, 8], [1, 2, 4], [2, 4, 8])
    if m > 4:
        blocks = [(2, 2), (4, 1), (4, 2), (8, 1)]
        plans += [
            (STAGED, warps, rows, stages, 0, splits)
            for (warps, rows), stages, splits in itertools.product(blocks, [3, 4, 6], [1, 2, 4, 8])
        ]
    first = rank_plans(product, plans)
    second: list[dict[str, Any]] = []
    for kernel in sorted({row["plan"][0] for row in first}):
        best = next(row["plan"] for row in first if row["plan"][0] == kernel)
        second += rank_plans(
            product,
            [
                (*best[:4], hint, best[5] if len(best) > 5 else 1, ahead, *best[7:])
                for hint in ((0,) if kernel in (STAGED, RING, ROW) else (0, 1, 2))
                for ahead in (0, 2, 4, 8, 16)
            ],
        )
    rows = sorted([*first, *second], key=lambda row: row.get("us", 1e9))
    return {
        "best": rows[:8],
        "first": first[:6],
        "chosen": rates(product, {"ours": lambda: Ours(product.run())})["ours"],
    }


# -------------------------------------------------------------------------------------- main


def measure(m: int, n: int, k: int, dtype: str, options: argparse.Namespace) -> dict[str, Any]:
    simulated = kw.current_device().is_simulated
    product = make(m, n, k, dtype, 1 if simulated else copy_count(n, k, dtype))
    row: dict[str, Any] = {"m": m, "n": n, "k": k, "weights": dtype}
    row["error"] = relative_error(product, product.run()[0]())
    row["correct"] = row["error"] <= TOLERANCE
    if not simulated:
        row |= candidates(product) if options.candidates else compare(product)
    print(row, file=sys.stderr, flush=True)
    return row


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-o", "--output", type=pathlib.Path, default=None)
    parser.add_argument("--candidates", action="store_true", help="time parameters of the kernels")
    parser.add_argument("--rows", type=int, nargs="*", default=None, help="rows of x")
    parser.add_argument("--weights", nargs="*", default=None, help="dtypes of the weights")
    parser.add_argument("--shapes", type=int, default=None, help="how many of the shapes")
    parser.add_argument("--formats", nargs="*", default=None, help="packed weights, by format")
    options = parser.parse_args()
    few = options.candidates  # many plans, each with one timing
    every = ROWS if options.formats is None else gemv_formats.ROWS
    options.rows = options.rows or ([1, 8, 16, every[-1]] if few else every)
    options.weights = options.weights or (["bfloat16", "float8_e4m3fn"] if few else WEIGHTS)
    options.shapes = options.shapes or (4 if few else len(SHAPES))
    return options


def measure_formats(options: argparse.Namespace) -> None:
    rows: list[dict[str, Any]] = []
    names = options.formats or gemv_formats.FORMATS
    for row in gemv_formats.measured(names, options.rows, options.candidates):
        rows.append(row)
        document = {
            "subject": "gemv_formats",
            "machine": harness.machine(),
            "parameters": gemv_formats.PARAMETERS,
            "rows": rows,
            "correct": all(each["correct"] for each in rows),
        }
        path = options.output or harness.RESULTS / "gemv_formats.json"
        harness.save(path, document)


def main() -> None:
    options = arguments()
    if options.formats is not None:
        measure_formats(options)
        return
    shapes = SHAPES[: options.shapes]
    if kw.current_device().is_simulated:
        shapes = [(70, 256), (33, 512)]
    rows = [
        measure(m, n, k, dtype, options)
        for dtype in options.weights
        for n, k in shapes
        for m in options.rows
    ]
    name = "gemv_candidates.json" if options.candidates else "gemv.json"
    harness.write(
        options.output or harness.RESULTS / name,
        {
            "subject": "gemv",
            "machine": harness.machine(),
            "parameters": PARAMETERS,
            "rows": rows,
            "correct": all(row["correct"] for row in rows),
        },
    )


if __name__ == "__main__":
    main()
