"""Cases, operands and calls of the products of groups of float8 rows, for grouped_float8.py.

torch has scales of rows alone: `torch._scaled_grouped_mm`, and `torch._scaled_mm` for each group.
Both are measured with both kinds of accumulation: results that leave the tensor cores after every
128 products, and accumulators of the tensor cores alone ("fast sums").
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import deep_gemm_peer
import grouped
import numpy as np
from gemm_types import float8

import kernwright as kw
from kernwright import _core

SOURCE = "DeepGEMM, README at a6d97a1 (first release), H800"
FAST = ", fast sums"


class Case(NamedTuple):
    """Groups of these sizes times matrices of n x k; TFLOP/s that DeepGEMM published."""

    title: str
    sizes: tuple[int, ...]
    n: int
    k: int
    published: int | None = None

    @property
    def is_masked(self) -> bool:
        return self.title == "masked"


def cases() -> list[Case]:
    tables = [
        ("contiguous", 4, 8192, 4096, 7168, 1297),
        ("contiguous", 4, 8192, 7168, 2048, 1099),
        ("contiguous", 8, 4096, 4096, 7168, 1288),
        ("contiguous", 8, 4096, 7168, 2048, 1093),
        ("masked", 1, 1024, 4096, 7168, 1233),
        ("masked", 1, 1024, 7168, 2048, 925),
        ("masked", 2, 512, 4096, 7168, 1040),
        ("masked", 2, 512, 7168, 2048, 916),
        ("masked", 4, 256, 4096, 7168, 932),
        ("masked", 4, 256, 7168, 2048, 815),
    ]
    all_cases = [
        Case(title, (rows,) * groups, n, k, published)
        for title, groups, rows, n, k, published in tables
    ]
    for number, tokens in ((2, 128), (2, 4096), (3, 4096)):
        layer = grouped.LAYERS[number]
        sizes = grouped.group_sizes(layer, tokens, skewed=True).tolist()
        title = f"{layer.title}, {tokens} tokens, skewed"
        all_cases.append(Case(title, tuple(sizes), layer.n, layer.k))
    return all_cases


TINY = [
    Case("contiguous", (70, 0, 3, 130), 136, 272),
    Case("masked", (16, 16), 128, 256),
]


class Operands(NamedTuple):
    """Rows and matrices, with scales of blocks, the same with scales of rows, and in bfloat16."""

    blocks: tuple[kw.Array, kw.Array, kw.Array, kw.Array]  # x, weights, scale_a, scale_b
    lines: tuple[kw.Array, kw.Array, kw.Array, kw.Array]
    wide: tuple[kw.Array, kw.Array]
    numbers: kw.Array  # counts of a masked case, else the ends


def operands(case: Case, seed: int = 0) -> Operands:
    groups, rows = len(case.sizes), sum(case.sizes)
    first = 1 + seed * (groups + 1)
    x = kw.random.normal((rows, case.k), seed=first).astype("bfloat16")
    weights = kw.empty((groups, case.n, case.k), "bfloat16")
    for group in range(groups):
        weights[group] = kw.random.normal((case.n, case.k), seed=first + 1 + group).astype(
            "bfloat16"
        )
    q, x_scale = kw.nn.quantize_blocks(x)
    codes, w_scale = kw.nn.quant.quantize(weights, "fp8_block")
    q_rows, lines_x = kw.nn.quantize_rows(x, "float8_e4m3fn")
    codes_rows, lines_w = kw.nn.quantize_rows(weights, "float8_e4m3fn")
    numbers = np.array(case.sizes, np.int32)
    return Operands(
        (q, codes, x_scale, w_scale),
        (q_rows, codes_rows, lines_x, lines_w),
        (x, weights),
        kw.asarray(numbers if case.is_masked else np.cumsum(numbers).astype(np.int32)),
    )


def ours(case: Case, arrays: Operands, **more: Any) -> Callable[[], kw.Array]:
    """With the scales of blocks."""
    return _product(case, arrays.blocks, arrays.numbers, **more)


def _product(
    case: Case, operands: tuple[kw.Array, ...], numbers: kw.Array, **more: Any
) -> Callable[[], kw.Array]:
    """Rows of a masked case are groups that lie apart."""
    x, weights, scale_a, scale_b = operands
    if case.is_masked:
        shape = (len(case.sizes), case.sizes[0])
        x, scale_a = x.reshape(*shape, case.k), scale_a.reshape(*shape, -1)
    kind = "counts" if case.is_masked else "ends"
    options = {"scale_a": scale_a, "scale_b": scale_b, **more}
    return lambda: _core._grouped_product(x, weights, numbers, kind, **options)


def runs(case: Case, arrays: Operands, torch: Any) -> dict[str, Callable[[], Any]]:
    """All that is measured. Groups follow each other, but in ours of a masked case."""
    ends = kw.asarray(np.cumsum(case.sizes).astype(np.int32))
    subjects: dict[str, Callable[[], Any]] = {
        "ours": ours(case, arrays),
        "ours, scales of rows": _product(case, arrays.lines, arrays.numbers),
        "ours, scales of rows" + FAST: _product(
            case, arrays.lines, arrays.numbers, fast_accum=True
        ),
        "ours with SwiGLU": ours(case, arrays, gate="silu"),
        "ours, bfloat16": lambda: _core._grouped_product(*arrays.wide, ends, "ends"),
    }
    if torch:
        subjects |= torch_runs(case, arrays, ends, torch)
        if importlib.util.find_spec("deep_gemm"):
            subjects["DeepGEMM"] = deep_gemm_run(case, arrays, torch)
    return subjects


def deep_gemm_run(case: Case, arrays: Operands, torch: Any) -> Callable[[], Any]:
    x, weights = (float8(torch, array) for array in arrays.blocks[:2])
    x_scale, w_scale = (torch.from_dlpack(array) for array in arrays.blocks[2:])
    if case.is_masked:
        shape = (len(case.sizes), case.sizes[0])
        x, x_scale = x.reshape(*shape, -1), x_scale.reshape(*shape, -1)
        return deep_gemm_peer.masked(torch, (x, x_scale), (weights, w_scale), case.sizes)
    return deep_gemm_peer.groups(torch, (x, x_scale), (weights, w_scale), case.sizes)


def torch_runs(
    case: Case, arrays: Operands, ends: kw.Array, torch: Any
) -> dict[str, Callable[[], Any]]:
    x, weights = (float8(torch, array) for array in arrays.lines[:2])
    x_scale, w_scale = (torch.from_dlpack(array) for array in arrays.lines[2:])
    offsets = torch.from_dlpack(ends)
    edges = [0, *np.cumsum(case.sizes).tolist()]

    def loop(**options: Any) -> list[Any]:
        """The host knows the ends."""
        return [
            torch._scaled_mm(
                x[begin:end], weights[g].T, x_scale[begin:end, None], w_scale[g][None], **options
            )
            for g, (begin, end) in enumerate(itertools.pairwise(edges))
            if end > begin
        ]

    found: dict[str, Callable[[], Any]] = {}
    for fast, ending in ((False, ""), (True, FAST)):
        options = {"out_dtype": torch.bfloat16, "use_fast_accum": fast}
        found["torch._scaled_mm, group by group" + ending] = functools.partial(loop, **options)
        if hasattr(torch, "_scaled_grouped_mm"):
            found["torch._scaled_grouped_mm" + ending] = functools.partial(
                torch._scaled_grouped_mm, x, weights.mT, x_scale, w_scale, offs=offsets, **options
            )
    return found


def candidates(case: Case, arrays: Operands) -> dict[str, Callable[[], Any]]:
    """Measures every tile."""
    subjects = {"ours": ours(case, arrays)}
    for tile in _core._gemm_tiles(True, True):
        if tile[0] <= 128:
            rows, columns, stages, groups, _, cluster = tile
            title = f"{rows}x{columns} {stages} stages {groups} groups cluster {cluster}"
            subjects[title] = ours(case, arrays, tile=tile)
    return subjects
