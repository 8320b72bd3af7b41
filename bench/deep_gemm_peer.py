"""Calls of DeepGEMM for the benchmarks of float8 products; its package is not a requirement.

Scales lie as its kernels read them before the first call: columns of a multiple of 16 bytes. It has
no kernel for groups of any size that follow each other: their rows are copied ahead to places with
a distance of its alignment, as its users do, and rows between have the group -1.
"""

from __future__ import annotations

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


def groups(torch: Any, x: Operand, weights: Operand, sizes: Sequence[int]) -> Callable[[], Any]:
    """Rows of groups of `sizes` in one array, with matrices (groups, n, k)."""
    import deep_gemm

    step = deep_gemm.get_mk_alignment_for_contiguous_layout()
    places = [-(-size // step) * step for size in sizes]
    rows, of_rows = (torch.zeros((sum(places), y.shape[1]), dtype=y.dtype, device="cuda") for y in x)
    group_of = torch.full((sum(places),), -1, dtype=torch.int32, device="cuda")
    begin = place = 0
    for group, (size, room) in enumerate(zip(sizes, places, strict=True)):
        rows[place : place + size] = x[0][begin : begin + size]
        of_rows[place : place + size] = x[1][begin : begin + size]
        group_of[place : place + size] = group
        begin, place = begin + size, place + room
    left = _columns(deep_gemm, (rows, of_rows))
    out = torch.empty((sum(places), weights[0].shape[1]), dtype=torch.bfloat16, device="cuda")

    def run() -> Any:
        deep_gemm.m_grouped_fp8_gemm_nt_contiguous(left, weights, out, group_of)
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
        deep_gemm.m_grouped_fp8_gemm_nt_masked(left, weights, out, counts, expected)
        return out

    return run
