"""Softmax and its logarithm for torch."""

from __future__ import annotations

from typing import Any

import torch

from kernwright import _core
from kernwright.errors import InvalidArgument
from kernwright.torch._operators import call, define, differentiate, empty

__all__ = ["log_softmax", "softmax"]


def softmax(
    input: torch.Tensor,
    dim: int = -1,
    dtype: torch.dtype | None = None,
    *,
    scale: float = 1.0,
    mask: torch.Tensor | None = None,
) -> torch.Tensor:
    """exp(s - max(s)) / sum(exp(s - max(s))) along `dim`, where s = input * scale + mask.

    torch.nn.functional.softmax() with a factor and a mask, which is broadcast to the shape of
    `input`: where a bool mask is False an element counts as -inf, a mask of numbers is added and
    gets no gradient. The input is of float16, bfloat16, float32 or float64 and computed in float32
    (float64 in float64); the result has its shape, and its dtype unless `dtype` names another.

    Raises InvalidArgument as kernwright.nn.softmax() does, and for a mask that requires a gradient.

    >>> import torch, kernwright.torch as kt
    >>> kt.softmax(torch.tensor([1.0, 1.0, 3.0]), mask=torch.tensor([True, True, False])).tolist()
    [0.5, 0.5, 0.0]
    """
    return _softmax(input, dim, dtype, scale, mask, False)


def log_softmax(
    input: torch.Tensor,
    dim: int = -1,
    dtype: torch.dtype | None = None,
    *,
    scale: float = 1.0,
    mask: torch.Tensor | None = None,
) -> torch.Tensor:
    """s - max(s) - log(sum(exp(s - max(s)))) along `dim`; everything else as in softmax().

    >>> import torch, kernwright.torch as kt
    >>> kt.log_softmax(torch.tensor([0.0, -1000.0])).tolist()
    [0.0, -1000.0]
    """
    return _softmax(input, dim, dtype, scale, mask, True)


def _softmax(
    x: torch.Tensor,
    dim: int,
    dtype: torch.dtype | None,
    scale: float,
    mask: torch.Tensor | None,
    logarithm: bool,
) -> torch.Tensor:
    if mask is not None and mask.requires_grad:
        raise InvalidArgument(
            "the mask requires a gradient, which the softmax of kernwright.torch does not compute: "
            "pass input * scale + mask as the input, or mask.detach() if the mask is not trained"
        )
    return _forward(x, dim, logarithm, dtype, scale, mask)


def _run(
    x: torch.Tensor,
    dim: int,
    logarithm: bool,
    dtype: torch.dtype | None,
    scale: float,
    mask: torch.Tensor | None,
) -> torch.Tensor:
    name = None if dtype is None else str(dtype).removeprefix("torch.")

    def run(x: Any, mask: Any) -> Any:
        return _core._softmax(x, dim, scale, mask, name, None, logarithm)

    return call(run, x, x, mask)


def _run_backward(
    dy: torch.Tensor, y: torch.Tensor, dim: int, logarithm: bool, scale: float
) -> torch.Tensor:
    return call(_core._softmax_backward, y, dy, y, dim, scale, logarithm)


def _setup(ctx: Any, inputs: Any, output: torch.Tensor) -> None:
    x, ctx.dim, ctx.logarithm, _, ctx.scale, _ = inputs
    ctx.dtype = x.dtype
    ctx.save_for_backward(output)


def _gradient(ctx: Any, dy: torch.Tensor) -> Any:
    (y,) = ctx.saved_tensors
    dx = _backward(dy, y, ctx.dim, ctx.logarithm, ctx.scale).to(ctx.dtype)
    return dx, None, None, None, None, None


_forward = define(
    "softmax",
    _run,
    lambda x, dim, logarithm, dtype, scale, mask: empty(x, dtype=dtype),
)
_backward = define(
    "softmax_backward",
    _run_backward,
    lambda dy, y, dim, logarithm, scale: empty(y),
)
differentiate("softmax", _gradient, _setup)
