"""Calls of DeepGEMM for the benchmarks of products; its package is not a requirement. The results
have figures of sgl-deep-gemm 0.1.5, which runs with torch 2.11.

Scales lie as its kernels read them before the first call: columns of a multiple of 16 bytes. It has
no kernel for groups of any size that follow each other: their rows are copied ahead to places with
a distance of its alignment, as its users do, and rows between have the group -1.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

Operand = tuple[Any, Any]  # of torch: float8 and float32


def _columns(deep_gemm: Any, x: Operand) -> Operand:
    return x[0], deep_gemm.get_mn_major_tma_aligned_tensor(x[1].contiguous())


def product(torch: Any, left: Operand, right: Operand) -> Callable[[], Any]:
    """(m, k) with scales (m, k / 128) times (n, k) with scales (n / 128, k / 128)."""
    import deep_gemm

    left = _columns(deep_gemm, left)
    out = torch.empty((left[0].shape[0], right[0].shape[0]), dtype=torch.bfloat16, device="cuda")

    def run() -> Any:
        deep_gemm.fp8_gemm_nt(left, right, out)
        return out

    return run


class Places:
    """Where rows of groups of `sizes` lie for it, and the group of each row."""

    def __init__(self, torch: Any, sizes: Sequence[int]) -> None:
        import deep_gemm

        step = deep_gemm.get_mk_alignment_for_contiguous_layout()
        rooms = [-(-size // step) * step for size in sizes]
        self.torch, self.sizes, self.ends = torch, sizes, [*itertools.accumulate(rooms, initial=0)]
        self.row_groups = torch.full((sum(rooms),), -1, dtype=torch.int32, device="cuda")
        for group, (size, place) in enumerate(zip(sizes, self.ends, strict=False)):
            self.row_groups[place : place + size] = group

    def spread(self, rows: Any) -> Any:
        """A copy of rows that follow each other."""
        out = self.torch.zeros((self.ends[-1], rows.shape[1]), dtype=rows.dtype, device="cuda")
        begin = 0
        for size, place in zip(self.sizes, self.ends, strict=False):
            out[place : place + size] = rows[begin : begin + size]
            begin += size
        return out

    def empty(self, columns: int) -> Any:
        shape = (self.ends[-1], columns)
        return self.torch.empty(shape, dtype=self.torch.bfloat16, device="cuda")


def groups(torch: Any, x: Operand, weights: Operand, sizes: Sequence[int]) -> Callable[[], Any]:
    """Rows of groups of `sizes` in one array, with matrices (groups, n, k)."""
    import deep_gemm

    places = Places(torch, sizes)
    left = _columns(deep_gemm, (places.spread(x[0]), places.spread(x[1])))
    out = places.empty(weights[0].shape[1])

    def run() -> Any:
        deep_gemm.m_grouped_fp8_gemm_nt_contiguous(left, weights, out, places.row_groups)
        return out

    return run


def bfloat16_groups(torch: Any, x: Any, weights: Any, sizes: Sequence[int]) -> Callable[[], Any]:
    """The same of bfloat16."""
    import deep_gemm

    places = Places(torch, sizes)
    rows, out = places.spread(x), places.empty(weights.shape[1])

    def run() -> Any:
        deep_gemm.m_grouped_bf16_gemm_nt_contiguous(rows, weights, out, places.row_groups)
        return out

    return run


def masked(torch: Any, x: Operand, weights: Operand, sizes: Sequence[int]) -> Callable[[], Any]:
    """(groups, rows, k) of which each group has the first of `sizes`."""
    import deep_gemm

    counts = torch.tensor(sizes, dtype=torch.int32, device="cuda")
    left = _columns(deep_gemm, x)
    shape = (*x[0].shape[:2], weights[0].shape[1])
    out = torch.empty(shape, dtype=torch.bfloat16, device="cuda")
    expected = sum(sizes) // len(sizes)

    def run() -> Any:
        deep_gemm.fp8_m_grouped_gemm_nt_masked(left, weights, out, counts, expected)
        return out

    return run
