"""A linear layer for torch: one kernel that reads the weights once where there are few rows."""

from __future__ import annotations

from typing import Any

import torch

import kernwright as kw
from kernwright.torch._operators import call, define, differentiate, empty

__all__ = ["linear"]


def linear(
    input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """input @ weight.T + bias: torch.nn.functional.linear(), for weights (n, k) and a bias (n,).

    All of one dtype, float16, bfloat16, float32 (without TF32) or float64. Up to 64 rows (float32:
    16) are one kernel of few rows, more are a product of matrices: see kernwright.nn.linear(). The
    gradient consists of torch's own products. Raises InvalidArgument for shapes and dtypes that do
    not go together.

    >>> import torch, kernwright.torch as kt
    >>> kt.linear(torch.ones(2, 3), torch.ones(4, 3), torch.ones(4)).tolist()
    [[4.0, 4.0, 4.0, 4.0], [4.0, 4.0, 4.0, 4.0]]
    """
    made: torch.Tensor = _forward(input, weight, bias)
    return made


def _run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    return call(kw.nn.linear, x, x, weight, bias)


def _setup(ctx: Any, inputs: Any, output: Any) -> None:
    x, weight, bias = inputs
    ctx.has_bias = bias is not None
    ctx.save_for_backward(x, weight)


def _gradient(ctx: Any, dy: torch.Tensor) -> Any:
    x, weight = ctx.saved_tensors
    rows = dy.reshape(-1, dy.shape[-1])
    dx = dy @ weight if ctx.needs_input_grad[0] else None
    dweight = rows.T @ x.reshape(-1, x.shape[-1]) if ctx.needs_input_grad[1] else None
    dbias = rows.sum(0) if ctx.has_bias and ctx.needs_input_grad[2] else None
    return dx, dweight, dbias


_forward = define(
    "linear",
    _run,
    lambda x, weight, bias: empty(x, (*x.shape[:-1], weight.shape[0])),
)
differentiate("linear", _gradient, _setup)
