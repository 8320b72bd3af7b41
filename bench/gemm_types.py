"""Operands, calls and peers of the products for gemm.py with `--types`."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any, NamedTuple

import deep_gemm_peer

import kernwright as kw
from kernwright import _core

Call = Callable[[], Any]
TYPES = ("fp8", "fp8_fast", "fp8_rows", "fp8_blocks", "int8", "tf32", "float32")
# Relative: int8 is exact, wgmma truncates operands of tf32 to 11 bits, float32 rounds.
TOLERANCES = {"int8": 0.0, "tf32": 1.5e-3, "float32": 1e-5}
# Columns and inner dimensions of DeepGEMM's lists, by rows.
DEEP_ROWS = (64, 128, 4096)
DEEP = [(2112, 7168), (24576, 1536), (32768, 512), (7168, 16384), (4096, 7168), (7168, 2048)]


class Subject(NamedTuple):
    run: Callable[..., kw.Array]  # takes options of the product: tile, splits
    left: kw.Array  # the numbers that the operands encode
    right: kw.Array
    peers: Callable[[Any], dict[str, Call]]  # by torch
    in_bytes: int
    promotes: bool
    tolerance: float
    block_scales: bool = False


def shapes() -> list[tuple[int, int, int]]:
    squares = [(n, n, n) for n in (2048, 4096, 8192)]
    return squares + [(m, n, k) for m in DEEP_ROWS for n, k in DEEP]


def subject(name: str, shape: tuple[int, int, int], seed: int = 1) -> Subject:
    m, n, k = shape
    a, b = kw.random.normal((m, k), seed=seed), kw.random.normal((n, k), seed=1000 + seed)
    if name in ("tf32", "float32"):
        return _singles(name, a, b)
    if name == "int8":
        return _integers(a, b)
    return _block_scales(a, b) if name == "fp8_blocks" else _line_scales(name, a, b)


def float8(torch: Any, x: kw.Array) -> Any:
    """DLPack of older versions has no float8."""
    return torch.from_dlpack(x.view("uint8")).view(torch.float8_e4m3fn)


def _line_scales(name: str, a: kw.Array, b: kw.Array) -> Subject:
    """Operands of eight bits with one scale each, or with one for each row and column."""
    scope = "row" if name == "fp8_rows" else "tensor"
    (x, x_scale), (w, w_scale) = (
        kw.nn.quantize_rows(y, "float8_e4m3fn", scope=scope) for y in (a, b)
    )
    fast = name == "fp8_fast"
    scales = x_scale.reshape((-1,)), w_scale.reshape((-1,))

    def run(**options: Any) -> kw.Array:
        return _core._gemm(x, w.T, line_scales=scales, dtype="bfloat16", fast_accum=fast, **options)

    def peers(torch: Any) -> dict[str, Call]:
        left, right = float8(torch, x), float8(torch, w).t()
        left_scale, right_scale = (torch.from_dlpack(scale) for scale in (x_scale, w_scale))
        if scope == "row":
            left_scale, right_scale = left_scale[:, None], right_scale[None]
        return {
            "torch": lambda: torch._scaled_mm(
                left, right, scale_a=left_scale, scale_b=right_scale, out_dtype=torch.bfloat16,
                use_fast_accum=fast,
            )
        }  # fmt: skip

    left, right = kw.nn.dequantize_rows(x, x_scale), kw.nn.dequantize_rows(w, w_scale).T
    return Subject(run, left, right, peers, 1, not fast, 3e-2 if fast else 5e-3)


def _block_scales(a: kw.Array, b: kw.Array) -> Subject:
    x, x_scale = kw.nn.quantize_blocks(a)
    w, w_scale = kw.nn.quant.quantize(b, "fp8_block")

    def run(**options: Any) -> kw.Array:
        return _core._gemm(x, w.T, block_scales=(x_scale, w_scale.T), dtype="bfloat16", **options)

    def peers(torch: Any) -> dict[str, Call]:
        left, right = float8(torch, x), float8(torch, w)
        left_scale, right_scale = torch.from_dlpack(x_scale), torch.from_dlpack(w_scale)
        found: dict[str, Call] = {
            "torch": lambda: torch._scaled_mm(
                left,
                right.t(),
                scale_a=left_scale,
                scale_b=right_scale.t(),
                out_dtype=torch.bfloat16,
            )
        }
        if importlib.util.find_spec("deep_gemm"):
            found["deep_gemm"] = deep_gemm_peer.product(
                torch, (left, left_scale), (right, right_scale)
            )
        return found

    left = kw.nn.quant.dequantize((x, x_scale), "fp8_block", block=(1, 128))
    right = kw.nn.quant.dequantize((w, w_scale), "fp8_block").T
    return Subject(run, left, right, peers, 1, True, 5e-3, block_scales=True)


def _integers(a: kw.Array, b: kw.Array) -> Subject:
    (x, _), (w, _) = kw.nn.quantize_rows(a), kw.nn.quantize_rows(b)

    def run(**options: Any) -> kw.Array:
        return _core._gemm(x, w.T, **options)

    def peers(torch: Any) -> dict[str, Call]:
        left, right = torch.from_dlpack(x), torch.from_dlpack(w).t()
        return {"torch": lambda: torch._int_mm(left, right)}

    return Subject(run, x, w.T, peers, 1, False, TOLERANCES["int8"])


def _singles(name: str, a: kw.Array, b: kw.Array) -> Subject:
    def run(**options: Any) -> kw.Array:
        if name == "float32":
            return kw.matmul(a, b.T)
        return _core._gemm(a, b.T, precision="tf32", **options)

    def peers(torch: Any) -> dict[str, Call]:
        torch.set_float32_matmul_precision("high" if name == "tf32" else "highest")
        left, right = torch.from_dlpack(a), torch.from_dlpack(b).t()
        return {"torch": lambda: torch.matmul(left, right)}

    return Subject(run, a, b.T, peers, 4, False, TOLERANCES[name])
