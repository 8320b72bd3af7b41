"""Products of 8-bit numbers times the scales that quantisation left beside them."""

from __future__ import annotations

from typing import Any

from kernwright._core import Array, _scaled_matmul

__all__ = ["scaled_matmul"]


def scaled_matmul(
    a: Array,
    b: Array,
    scale_a: Array,
    scale_b: Array,
    *,
    bias: Array | None = None,
    dtype: Any = "bfloat16",
    use_fast_accum: bool = False,
) -> Array:
    """(a * scale_a) @ (b * scale_b) + bias: (..., m, k) times (k, n), of `dtype`.

    a and b are float8_e4m3fn or float8_e5m2 (they may differ), or both int8. Scales are float32:

    - one number each for all of a and all of b, or one for each row of a, (..., m) or (..., m, 1),
      and for each column of b, (n,) or (1, n), in any combination, as quantize_rows() makes them:
      they multiply the accumulators;
    - of blocks, for float8: (..., m, k / 128) as quantize_blocks() makes them, beside (k / 128, n /
      128), for tiles of 128 by 128 of the weights, both rounded up. They multiply the
      accumulators of 128 products; these are then added in float32.

    `bias` is (n,), float16, bfloat16 or float32; the result float16, bfloat16 or float32, rounded
    once. Accumulators of int8 are exact. Accumulators of float8 are float32; on compute capability
    9.0, whose tensor cores keep about 14 bits of them, they are added in float32 after every 128
    products, unless `use_fast_accum` leaves them there. Fastest where k is dense in both: b is the
    transpose of weights (n, k), and rows begin at multiples of 16 bytes; others are copied first.

    Any float8 below 8.9, and float8 of two types but on 9.0, becomes bfloat16 first: exactly, but
    with blocks after their scales, rounded. The same bits in each run. Raises InvalidArgument and
    ArgumentError with the shapes and dtypes that do not fit.

    >>> x, w = kw.ones((3, 256)), kw.ones((128, 256))
    >>> q, scale = kw.nn.quantize_blocks(x)
    >>> weights, tiles = kw.nn.quant.quantize(w, "fp8_block")
    >>> y = kw.nn.scaled_matmul(q, weights.T, scale, tiles.T, dtype="float32")
    >>> y.shape, round(float(y.numpy()[0, 0]), 3)
    ((3, 128), 256.0)
    """
    return _scaled_matmul(a, b, scale_a, scale_b, bias, dtype, bool(use_fast_accum))
