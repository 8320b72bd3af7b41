"""TimedProduct of the products that tables tell, by the name of their kind."""

from __future__ import annotations

import functools
from typing import Any

from kernwright import _core
from kernwright._measure.product_timer import TimedProduct
from kernwright.nn import quant, quantize_blocks, quantize_rows
from kernwright.random._real_functions import normal

WIDE = ("bfloat16", "float16", "float32")
# Weights of these are (n, k): the kernels read the inner dimension without gaps.
NARROW = ("float8_e4m3fn", "float8_e4m3fn.fast", "float8_e4m3fn.blocks", "int8", "tf32")
KINDS = WIDE + NARROW


def operands(
    kind: str, shape: tuple[int, int, int], turned: bool, device: Any, number: int = 0
) -> TimedProduct:
    """Random normal numbers of (rows, columns, inner), others for each `number` from 0; `turned`:
    b is a transposed view of (n, k), which those of NARROW always are. Raises ArgumentError for an
    unknown dtype."""
    m, n, k = shape
    first, second = 2 * number + 1, 2 * number + 2
    if kind not in NARROW:
        a = normal((m, k), kind, seed=first, device=device)
        b = normal((n, k) if turned else (k, n), kind, seed=second, device=device)
        b = b.T if turned else b
        return TimedProduct(a, b, functools.partial(_core._matmul, a, b))
    x = normal((m, k), "float32", seed=first, device=device)
    weights = normal((n, k), "float32", seed=second, device=device)
    if kind == "tf32":
        run = functools.partial(_core._gemm, x, weights.T, precision="tf32")
        return TimedProduct(x, weights.T, run, "float32", "tf32")
    if kind == "int8":
        a, b = (quantize_rows(y, "int8")[0] for y in (x, weights))
        return TimedProduct(a, b.T, functools.partial(_core._gemm, a, b.T, dtype="int32"), "int32")
    return _of_float8(kind, x, weights)


def _of_float8(kind: str, x: Any, weights: Any) -> TimedProduct:
    options: dict[str, Any] = {"dtype": "bfloat16"}
    if kind.endswith(".blocks"):
        (a, scales), (b, tiles) = quantize_blocks(x), quant.quantize(weights, "fp8_block")
        options["block_scales"] = scales, tiles.T
    else:
        a, b = (quantize_rows(y, "float8_e4m3fn")[0] for y in (x, weights))
        options["fast_accum"] = kind.endswith(".fast")
    accumulation = {"blocks": "blocks", "fast": "plain"}.get(kind.partition(".")[2], "promoted")
    return TimedProduct(
        a, b.T, functools.partial(_core._gemm, a, b.T, **options), "bfloat16", accumulation
    )
