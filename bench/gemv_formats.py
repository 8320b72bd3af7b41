"""Products of few rows and of more rows with packed weights, for gemv.py with `--formats`.

The subject "numbers" is unpack() to bfloat16 and linear(), the path for more than 512 rows.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import replays
from replays import Maker, Ours, Theirs

import kernwright as kw

FORMATS = ["int4", "nf4", "nf4 double", "q4_k", "q4_0", "q8_0", "q6_k", "mxfp4", "nvfp4"]
FORMATS += ["fp8_block", "q5_k"]
SHAPES = [(14336, 4096), (8192, 8192), (4096, 4096), (4096, 14336)]
ROWS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
FEW = 64  # most rows of the kernel for few rows
GROUP = 128
PARAMETERS = ("warps", "rows", "columns", "unroll", "splits", "stages", "kernel")
WGMMA_KERNEL = 7  # by warpgroups
RING_ROWS = 16  # of x, that rings of copies take


class Packed(NamedTuple):
    """(m, k) times copies of packed weights (n, k)."""

    x: kw.Array
    weights: list[Any]

    def run(self, plan: tuple[int, ...] = ()) -> list[Callable[[], Any]]:
        one = kw._core._packed_linear
        return [
            lambda w=w: one(self.x, w._spec, w._arrays, None, None, "", list(plan))
            for w in self.weights
        ]

    def by_numbers(self) -> list[Callable[[], Any]]:
        unpack, linear = kw.nn.quant.unpack, kw.nn.linear
        return [lambda w=w: linear(self.x, unpack(w, dtype="bfloat16")) for w in self.weights]


def packed(name: str, n: int, k: int) -> Any:
    """Random weights, or random codes for formats that can only be read."""
    generator = np.random.default_rng(n + k)
    if name == "int4":
        words = generator.integers(-(2**31), 2**31, (k // 8, n)).astype(np.int32)
        zeros = generator.integers(-(2**31), 2**31, (k // GROUP, n // 8)).astype(np.int32)
        scales = (generator.random((k // GROUP, n)) * 0.01).astype(np.float16)
        return kw.nn.quant.pack(tuple(kw.asarray(a) for a in (words, zeros, scales)), "gptq_v2")
    kind, _, double = name.partition(" ")
    numbers = kw.asarray(generator.standard_normal((n, k), np.float32) * np.float32(0.02))
    options = {"double": True} if double else {}
    blocks = kw.nn.quant.quantize(numbers, kind, **options)
    return kw.nn.quant.pack(blocks, kind, shape=(n, k))


def copies(weight: Any, count: int) -> list[Any]:
    arrays = [
        tuple(None if part is None else part.copy() for part in weight.arrays)
        for _ in range(count - 1)
    ]
    options = {"group": weight.group, "tile": weight.tile}
    made = kw.nn.quant.PackedWeight
    return [weight, *(made(weight.format, weight.shape, parts, **options) for parts in arrays)]


def relative_error(product: Packed) -> float:
    """||result - expected|| / ||expected||, with the unpacked weights in float64."""
    weight = kw.nn.quant.unpack(product.weights[0])
    got = np.asarray(product.run()[0]().numpy(), np.float64)
    if weight.shape[0] > 512:
        picked = np.concatenate([weight[:256].numpy(), weight[-256:].numpy()])
        got = np.concatenate([got[:, :256], got[:, -256:]], axis=1)
    else:
        picked = weight.numpy()
    expected = np.asarray(product.x.numpy(), np.float64) @ picked.T.astype(np.float64)
    return float(np.linalg.norm(got - expected) / np.linalg.norm(expected))


def peers(product: Packed, name: str) -> Iterator[tuple[str, int, Maker]]:
    """Names, the bytes of their weights, and graphs."""
    if product.x.shape[0] > FEW:
        yield "numbers", product.weights[0].nbytes, lambda: Ours(product.by_numbers())
    try:
        import torch
    except ImportError as error:
        print("no peer:", error, file=sys.stderr)
        return
    n, k = product.weights[0].shape
    x = torch.from_dlpack(product.x)
    count = max(2, len(product.weights) // 4)
    linear = torch.nn.functional.linear

    def plain() -> Theirs:
        numbers = kw.nn.quant.unpack(product.weights[0], dtype="bfloat16")
        kept = [torch.from_dlpack(numbers.copy()) for _ in range(count)]
        return Theirs(torch, [lambda w=w: linear(x, w) for w in kept])

    yield "torch linear bfloat16", 2 * n * k, plain
    if name != "int4":
        return

    def tinygemm() -> Theirs:
        ops = torch.ops.aten
        codes = torch.randint(0, 256, (n, k // 2), dtype=torch.uint8, device=x.device)
        one = ops._convert_weight_to_int4pack(codes, 8)
        scales = torch.rand(k // GROUP, n, 2, dtype=torch.bfloat16, device=x.device)
        kept = [one.clone() for _ in product.weights]
        return Theirs(
            torch, [lambda w=w: ops._weight_int4pack_mm(x, w, GROUP, scales) for w in kept]
        )

    yield "torch _weight_int4pack_mm", n * k // 2 + n * k // GROUP * 4, tinygemm


def figures(product: Packed, makers: dict[str, Maker], sizes: dict[str, int]) -> dict[str, Any]:
    """Microseconds, and bytes of weights divided by them."""
    packed_bytes = product.weights[0].nbytes
    found = replays.figures(makers)
    return {
        title: replays.add_rate(taken, sizes.get(title, packed_bytes))
        for title, taken in found.items()
    }


def plans(m: int) -> Iterator[tuple[int, ...]]:
    if m > FEW:
        yield from itertools.product([4, 8], [1, 2], [8, 16], [2, 3], [1, 2, 4])
        return
    if m <= RING_ROWS:
        yield from itertools.product([8, 16], [0], [0], [0], [0], [1, 2, 3, 4, 5])
    if m > 8:
        teams = [(4, 2), (8, 1), (8, 2), (16, 1)]
        for (warps, unroll), splits in itertools.product(teams, [1, 2, 3, 4, 6]):
            yield warps, 0, 0, unroll, splits, 0, WGMMA_KERNEL
    tiles = 1
    while tiles * 8 < m:
        tiles *= 2
    for warps, rows, unroll, splits in itertools.product([2, 4, 8, 16], [1, 2], [1, 2, 4], [1, 2]):
        if rows * tiles * unroll <= 8:
            yield warps, rows, tiles, unroll, splits


def candidates(product: Packed) -> list[dict[str, Any]]:
    """Parameters of the kernel, the fastest first."""
    made = []
    for plan in plans(product.x.shape[0]):
        found = figures(product, {"ours": lambda plan=plan: Ours(product.run(plan))}, {})
        made.append({"plan": plan, **found["ours"]})
    return sorted(made, key=lambda row: row.get("us", 1e9))[:8]


def measure(
    name: str,
    shape: tuple[int, int],
    m: int,
    weights: list[Any],
    tune: bool,
) -> dict[str, Any]:
    """One row: figures on a GPU, and whether the result is right."""
    n, k = shape
    x = np.random.default_rng(m).standard_normal((m, k)).astype(np.float32)
    product = Packed(kw.asarray(x).astype("bfloat16"), weights)
    size = weights[0].nbytes
    row: dict[str, Any] = {"m": m, "n": n, "k": k, "weights": name, "bytes": size}
    row["error"] = relative_error(product)
    row["correct"] = row["error"] <= 4e-3
    if not kw.current_device().is_simulated:
        makers: dict[str, Maker] = {"ours": lambda: Ours(product.run())}
        sizes: dict[str, int] = {}
        if tune:
            row["best"] = candidates(product)
        else:
            for peer, nbytes, maker in peers(product, name):
                makers[peer], sizes[peer] = maker, nbytes
        row |= figures(product, makers, sizes)
    print(row, file=sys.stderr, flush=True)
    return row


def measured(
    names: list[str],
    rows: list[int],
    tune: bool,
) -> Iterator[dict[str, Any]]:
    """Yields the rows as they are measured."""
    simulated = kw.current_device().is_simulated
    for name, (n, k) in itertools.product(names, [(48, 512)] if simulated else SHAPES):
        try:
            weight = packed(name, n, k)
            count = 1 if simulated else replays.copy_count(weight.nbytes)
            weights = copies(weight, count)
        except kw.Error as error:
            print(name, n, k, error, file=sys.stderr, flush=True)
            yield {"n": n, "k": k, "weights": name, "error": str(error)[:300], "correct": False}
            continue
        for m in rows:
            yield measure(name, (n, k), m, weights, tune)
