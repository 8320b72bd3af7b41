"""Kernels for Triton, as its tutorials have them. Imported only where Triton is installed."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl


@triton.jit
def _add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = place < n
    x = tl.load(x_ptr + place, mask=mask)
    y = tl.load(y_ptr + place, mask=mask)
    tl.store(out_ptr + place, x + y, mask=mask)


@triton.jit
def _softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    place = tl.arange(0, BLOCK)
    mask = place < columns
    x = tl.load(x_ptr + row + place, mask=mask, other=-float("inf")).to(tl.float32)
    power = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + row + place, power / tl.sum(power, 0), mask=mask)


@triton.jit
def _rms_norm(x_ptr, w_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    place = tl.arange(0, BLOCK)
    mask = place < columns
    x = tl.load(x_ptr + row + place, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + place, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, 0) / columns + eps)
    tl.store(out_ptr + row + place, x * scale * w, mask=mask)


def _warps(block: int) -> int:
    return min(16, max(4, block // 512))


def add(x: Any, y: Any) -> Any:
    out = torch.empty_like(x)
    _add[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out


def softmax(x: Any) -> Any:
    out = torch.empty_like(x)
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    _softmax[(rows,)](x, out, columns, BLOCK=block, num_warps=_warps(block))
    return out


def rms_norm(x: Any, weight: Any, eps: float) -> Any:
    out = torch.empty_like(x)
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    _rms_norm[(rows,)](x, weight, out, columns, eps, BLOCK=block, num_warps=_warps(block))
    return out
