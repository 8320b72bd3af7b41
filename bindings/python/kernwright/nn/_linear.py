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

    - x (..., k), `weight` (n, k), `bias` (n,), `residual` (..., n), of one dtype: float16,
      bfloat16, float32 or float64. A weight may be a view of (k, n).
    - `scale`, float32 with one number or n, for a weight of int8, float8_e4m3fn or float8_e5m2 as
      quantize_rows() makes it: the weight counts as weight * scale[:, None].
    - `weight` may be a PackedWeight of nn.quant.pack(), without `scale`. With up to 64 rows of x
      most formats are multiplied without rounding; with more rows weights are rounded to x's dtype.
    - `activation`: "silu", "gelu", "gelu_tanh", "relu2" or another function of this module for one
      array (not relu6).
    - `gate`, such a name: the result has n / 2 columns, gate(y[..., : n / 2]) * y[..., n / 2:] for
      y = x @ weight.T + bias; "silu" is SwiGLU. Not with float64, activation, residual, scale,
      tune or a PackedWeight.
    - precision="tf32": float32 with many rows may be rounded to 11 bits for tensor cores.
    - `tune`: as in matmul(). `out`: takes the result, and is returned; any strides; it shares no
      memory with arguments, except that it may be the `residual`.

    Accumulators are float32 (float64 for float64), rounded once at the end with up to 64 rows of x.
    More rows may be rounded once more before bias and activation. The same call gives the same
    bits. Raises InvalidArgument with the shapes or dtypes that do not fit, ArgumentError for names
    and for arguments that do not go together.

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
    if isinstance(weight, PackedWeight):
        raise ArgumentError(
            f"gate={gate!r} goes with a weight in an array, not with a PackedWeight: call linear() "
            "without a gate, and kw.nn.swiglu() or another gate for the result"
        )
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
