"""A layer: x times the weights, with all that follows in the same kernel where x has few rows.

>>> import numpy as np, kernwright as kw
>>> x = kw.asarray(np.array([[1.0, 2.0]], np.float32))
>>> w = kw.asarray(np.array([[3.0, 4.0], [-1.0, 0.0], [0.0, 1.0]], np.float32))
>>> kw.nn.linear(x, w, activation="relu").numpy().tolist()
[[11.0, 0.0, 2.0]]
"""

from __future__ import annotations

import math
from typing import Any, Literal

from kernwright._core import Array, _gemm, _linear, _linear_into, _packed_linear
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.nn._activations import Activation, product_activation
from kernwright.nn._packed_weight import PackedWeight

__all__ = ["linear"]


def linear(
    x: Any,
    weight: Any,
    bias: Any = None,
    *,
    activation: Activation | None = None,
    gate: Activation | None = None,
    residual: Any = None,
    scale: Any = None,
    precision: Literal["float32", "tf32"] | None = None,
    tune: bool = False,
    out: Array | None = None,
) -> Array:
    """activation(x @ weight.T + bias) + residual, of the shape (..., n) and the dtype of x.

    x has the shape (..., k), `weight` (n, k), `bias` (n,), `residual` (..., n); x is float16,
    bfloat16, float32 or float64, the others have its dtype. With `scale`, float32 with one number
    or n, `weight` is int8, float8_e4m3fn or float8_e5m2, as quantize_rows() makes it, and counts as
    weight * scale[:, None]. `activation` names a function of this module that takes x alone, as
    "silu", "gelu" or "relu2" (not relu6), or is "gelu_tanh", the other form of gelu().

    With `gate`, such a name, n is even, the result has n / 2 columns, and only a bias goes with it:
    y = x @ weight.T + bias, then gate(y[..., : n / 2]) * y[..., n / 2:]. "silu" makes SwiGLU of two
    products, whose weights are one above the other. x is no float64. On tensor cores it is one
    kernel.

    Up to 64 rows of x in all (float32: 16) take one kernel, which reads the weights once. It uses
    the tensor cores if 16-bit rows begin at multiples of 16 bytes. Sums are float32, rounded once
    at the end, in an order that the shapes decide: the same bits in each run. More rows take one
    kernel too for float32, and for large products of 16-bit floats, from compute capability 8.0 on.
    Otherwise they take a matmul(); its result is rounded before the next step. Weights (n, k) and
    views of (k, n) are read where they are. precision="tf32" allows a layer of float32 with more
    rows to round x and the weights to 11 bits for the tensor cores. `tune` is that of matmul().
    Raises InvalidArgument with the shapes or dtypes that do not fit.

    `weight` may also be a PackedWeight of nn.quant.pack(), without `scale`: up to 64 rows of
    float16 or bfloat16 then read the packed bytes once, and products of whole codes are summed in
    float32, a group of them times its scale. Up to 512 rows take the weights rounded to x's dtype,
    in registers. More rows, and float32, do so by way of memory, a slab of weights at a time.

    `out` takes the result, and is returned. It has the result's shape, dtype and device, any
    strides, and shares no memory with arguments, but that it may be the `residual` itself. One
    kernel writes the result there if `out` is contiguous from a multiple of 16 bytes on; what takes
    several steps, and other strides, is computed in new memory and copied.

    >>> x, w = kw.ones((2, 3)), kw.ones((4, 3))
    >>> kw.nn.linear(x, w, kw.ones(4)).numpy().tolist()
    [[4.0, 4.0, 4.0, 4.0], [4.0, 4.0, 4.0, 4.0]]
    """
    if activation is not None:
        product_activation("activation", activation)
    if gate is not None:
        if activation is not None or residual is not None or scale is not None or tune:
            raise ArgumentError(
                "a gate goes with a bias, not with activation, residual, scale, tune"
            )
        return _gated(x, weight, bias, gate, precision, out)
    if isinstance(weight, PackedWeight):
        if scale is not None:
            raise ArgumentError("packed weights have their scales: linear() takes no other")
        if tune:
            raise ArgumentError(
                "products with packed weights have no plans to tune: leave tune out"
            )
        if precision is not None:
            raise ArgumentError(
                "products with packed weights have one precision: leave precision out"
            )
        made = _packed_linear(
            x, weight._spec, weight._arrays, bias, residual, activation or "", [], out=out
        )
        return made if out is None else out
    arguments = (x, weight, bias, scale, residual, activation or "")
    if tune:
        from kernwright._measure.product_plans import tune_layer

        _linear(*arguments, precision)  # raises for arguments that do not fit
        tune_layer(x, weight, lambda: _linear(*arguments, precision), precision)
    if out is None:
        return _linear(*arguments, precision)
    _linear_into(out, *arguments, "", precision)
    return out


def normed_linear(
    x: Any, norm: Any, eps: float, weight: Any, bias: Any = None, *, scale: Any = None,
    residual: Any = None, activation: Activation | None = None, gate: Activation | None = None,
) -> Array:  # fmt: skip
    """linear() of rms_norm(x, norm, eps), without gradients; `norm` has the dtype of x.

    One row of x may take one kernel, which does not round the norm. A gate goes with a bias and a
    scale alone.
    """
    if isinstance(weight, PackedWeight):
        return _packed_linear(
            x, weight._spec, weight._arrays, bias, residual, activation or "", [], norm=norm,
            eps=eps, gate=gate or "",
        )  # fmt: skip
    act, gated = activation or "", gate or ""
    return _linear(x, weight, bias, scale, residual, act, None, norm, eps, gated)


def _gated(
    x: Any, weight: Any, bias: Any, gate: str, precision: str | None, out: Array | None
) -> Array:
    product_activation("gate", gate)
    if not isinstance(x, Array) or not isinstance(weight, Array):
        what = ", ".join(type(value).__name__ for value in (x, weight))
        raise ArgumentError(f"a gated layer takes arrays of kernwright, not {what}")
    if weight.ndim != 2 or x.ndim < 1 or x.shape[-1] != weight.shape[1]:
        raise InvalidArgument(
            f"Incompatible dimensions for linear(): x has shape {x.shape}, weight {weight.shape}; "
            "weight has 2 dimensions, and the last ones are equal"
        )
    if out is not None:
        _linear_into(out, x, weight, bias, None, None, "", gate, precision)
        return out
    rows = x.reshape((math.prod(x.shape[:-1]), x.shape[-1]))
    result = _gemm(rows, weight.T, bias=bias, gate=gate, precision=precision)
    return result.reshape((*x.shape[:-1], result.shape[-1]))
