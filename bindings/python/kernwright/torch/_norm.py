"""RMS, layer and group norm for torch, with the addition of a residual in the same kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from kernwright import _core
from kernwright.errors import InvalidArgument
from kernwright.torch._operators import call, define, differentiate, empty

__all__ = ["group_norm", "layer_norm", "rms_norm"]


def rms_norm(
    input: torch.Tensor,
    normalized_shape: int | Sequence[int],
    weight: torch.Tensor | None = None,
    eps: float | None = None,
    *,
    residual: torch.Tensor | None = None,
) -> Any:
    """input / sqrt(mean(input * input) + eps) * weight, over the axes of `normalized_shape`.

    torch.nn.functional.rms_norm(). With a `residual` of the shape of `input` the sum input +
    residual is rounded to their dtype and normalised, and returned too: (result, sum). `eps` is
    the distance from 1 to the next number of the input's dtype unless told otherwise.

    The input is of float16, bfloat16, float32 or float64, computed in float32 (float64 in float64);
    the result has its shape and dtype. `weight` may be of another of these dtypes, as in autocast.
    Raises InvalidArgument for other dtypes, and shapes that do not match.

    >>> import torch, kernwright.torch as kt
    >>> x = torch.tensor([[1.0, -1.0]])
    >>> [each.tolist() for each in kt.rms_norm(x, 2, eps=0.0, residual=x)]
    [[[1.0, -1.0]], [[2.0, -2.0]]]
    """
    if eps is None:
        eps = torch.finfo(input.dtype).eps
    return _norm("rms", input, normalized_shape, weight, None, eps, residual)


def layer_norm(
    input: torch.Tensor,
    normalized_shape: int | Sequence[int],
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
    *,
    residual: torch.Tensor | None = None,
) -> Any:
    """(input - mean) / sqrt(variance + eps) * weight + bias, over the axes of `normalized_shape`.

    torch.nn.functional.layer_norm(); the variance is the mean of (input - mean)**2. Dtypes,
    `residual` and errors are those of rms_norm(); weight and bias have one dtype.

    >>> import torch, kernwright.torch as kt
    >>> kt.layer_norm(torch.tensor([[1.0, 3.0]]), 2, eps=0.0).tolist()
    [[-1.0, 1.0]]
    """
    return _norm("layer", input, normalized_shape, weight, bias, eps, residual)


def group_norm(
    input: torch.Tensor,
    num_groups: int,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
) -> torch.Tensor:
    """layer_norm() of `num_groups` groups of the channels of `input`: (batch, channels, ...).

    torch.nn.functional.group_norm(); weight and bias have an element for each channel.

    >>> import torch, kernwright.torch as kt
    >>> kt.group_norm(torch.tensor([[1.0, 3.0, 5.0, 9.0]]), 2, eps=0.0).tolist()
    [[-1.0, 1.0, -1.0, 1.0]]
    """
    if num_groups < 1:
        raise InvalidArgument(f"the number of groups must be at least 1, got {num_groups}")
    if weight is None and bias is not None:
        weight = torch.ones_like(bias)
    return _forward(input, weight, bias, "layer", eps, num_groups)


def _norm(
    kind: str,
    x: torch.Tensor,
    normalized_shape: int | Sequence[int],
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    eps: float,
    residual: torch.Tensor | None,
) -> Any:
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    for name, given in (("the last axes of the input", x.shape[x.ndim - len(shape) :]),
                        ("the weight", None if weight is None else weight.shape),
                        ("the bias", None if bias is None else bias.shape)):  # fmt: skip
        if given is not None and tuple(given) != shape:
            raise InvalidArgument(
                f"normalized_shape is {shape}, but {name} {tuple(given)}: they must be the same"
            )
    if weight is None and bias is not None:
        weight = torch.ones_like(bias)
    whole = x.shape
    if weight is None and len(shape) > 1:  # kernels take the axes from the weight, or the last
        x = x.flatten(-len(shape))
        residual = residual if residual is None else residual.flatten(-len(shape))
    if residual is None:
        return _forward(x, weight, bias, kind, eps, None).view(whole)
    if residual.dtype != x.dtype:
        common = torch.promote_types(residual.dtype, x.dtype)
        residual, x = residual.to(common), x.to(common)
    y, total = _add_forward(x, residual, weight, bias, kind, eps)
    return y.view(whole), total.view(whole)


def _run(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    kind: str,
    eps: float,
    groups: int | None,
) -> torch.Tensor:
    def run(x: Any, weight: Any, bias: Any) -> Any:
        return _core._norm(kind, x, weight, bias, eps, None, None, groups)[0]

    return call(run, x, x, weight, bias)


def _run_add(
    x: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    kind: str,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    def run(x: Any, residual: Any, weight: Any, bias: Any) -> Any:
        return _core._norm(kind, x, weight, bias, eps, residual, None, None)[::2]

    return call(run, x, x, residual, weight, bias)


def _run_backward(
    dy: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor | None,
    kind: str,
    eps: float,
    bias: bool,
    groups: int | None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    def run(dy: Any, x: Any, weight: Any) -> Any:
        return _core._norm_backward(kind, dy, x, weight, eps, bias, groups)[:3]

    dx, dweight, dbias = call(run, x, dy, x, weight)
    nothing = [empty(x, (0,)) for each in (dweight, dbias) if each is None]
    return (
        dx,
        nothing.pop() if dweight is None else dweight,
        nothing.pop() if dbias is None else dbias,
    )


def _fake_backward(
    dy: torch.Tensor, x: torch.Tensor, weight: Any, kind: str, eps: float, bias: bool, groups: Any
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    dweight = empty(x, (0,)) if weight is None else empty(weight)
    return empty(x), dweight, empty(weight) if bias else empty(x, (0,))


def _setup(ctx: Any, inputs: Any, output: Any) -> None:
    x, weight, bias, ctx.kind, ctx.eps, ctx.groups = inputs
    ctx.bias = bias is not None
    ctx.save_for_backward(x, weight)


def _gradient(ctx: Any, dy: torch.Tensor) -> Any:
    x, weight = ctx.saved_tensors
    dx, dweight, dbias = _backward(dy, x, weight, ctx.kind, ctx.eps, ctx.bias, ctx.groups)
    return (
        dx,
        None if weight is None else dweight,
        dbias if ctx.bias else None,
        None,
        None,
        None,
    )


def _setup_add(ctx: Any, inputs: Any, output: Any) -> None:
    _, _, weight, bias, ctx.kind, ctx.eps = inputs
    ctx.bias = bias is not None
    ctx.save_for_backward(output[1], weight)


def _gradient_add(ctx: Any, dy: torch.Tensor, dsum: torch.Tensor) -> Any:
    total, weight = ctx.saved_tensors
    dx, dweight, dbias = _backward(dy, total, weight, ctx.kind, ctx.eps, ctx.bias, None)
    dx = dx + dsum
    return (
        dx,
        dx,
        None if weight is None else dweight,
        dbias if ctx.bias else None,
        None,
        None,
    )


_forward = define(
    "norm",
    _run,
    lambda x, weight, bias, kind, eps, groups: empty(x),
)
_add_forward = define(
    "add_norm",
    _run_add,
    lambda x, residual, weight, bias, kind, eps: (empty(x), empty(x)),
)
_backward = define(
    "norm_backward",
    _run_backward,
    _fake_backward,
)
differentiate("norm", _gradient, _setup)
differentiate("add_norm", _gradient_add, _setup_add)
