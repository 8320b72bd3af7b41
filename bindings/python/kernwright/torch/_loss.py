"""Cross-entropy for torch."""

from __future__ import annotations

from typing import Any, Literal

import torch

from kernwright import _core
from kernwright.errors import InvalidArgument
from kernwright.torch._operators import call, define, differentiate, empty

__all__ = ["cross_entropy"]

Reduction = Literal["none", "mean", "sum"]


def cross_entropy(
    input: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    label_smoothing: float = 0.0,
    *,
    z_loss: float = 0.0,
    one_pass: bool = False,
) -> torch.Tensor:
    """The cross-entropy of logits (N, V), (V,) or (N, V, ...) with classes (N,), () or (N, ...).

    torch.nn.functional.cross_entropy() of classes of int32 or int64. With s = log(sum(exp(x))) of
    logits x, a target t and e = label_smoothing: (1 - e) (s - x[t]) + e (s - mean(x)) + z_loss s^2,
    in float32 whatever the logits (float64 for float64): no copy of them in float32 is made.
    A target outside of [0, V) gives NaN. `weight`, (V,) of a floating dtype, has the classes'
    weights, and gets no gradient, as in torch; "mean" divides by those of the targets.

    Forward reads the logits once, backward() reads them again, and writes their gradient. With
    `one_pass` forward writes the gradient too; backward() multiplies it in place by the gradient of
    the loss. If that is 1, as in loss.backward(), nothing is read. The gradient then exists from
    the forward pass on, and backward() runs once. Not for "none", and not inside of torch.compile,
    which run as if it were False.

    Raises InvalidArgument for shapes that do not fit, and for probabilities as targets: those are
    torch's own.

    >>> import torch, kernwright.torch as kt
    >>> kt.cross_entropy(torch.tensor([[0.0, 100.0]]), torch.tensor([0])).item()
    100.0
    """
    if target.is_floating_point():
        raise InvalidArgument(
            "cross_entropy() takes classes: for targets that are probabilities, call "
            "torch.nn.functional.cross_entropy()"
        )
    if input.ndim > 2:
        input = input.movedim(1, -1)
    options = reduction, label_smoothing, z_loss, ignore_index
    wanted = one_pass and reduction != "none" and torch.is_grad_enabled() and input.requires_grad
    if wanted and not torch.compiler.is_compiling():
        return _OnePass.apply(input, target, weight, *options)
    return _forward(input, target, weight, *options)


def _loss(
    logits: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None,
    reduction: str,
    smoothing: float,
    z_loss: float,
    ignored: int,
    gradient: bool,
    upstream: torch.Tensor | None,
) -> Any:
    options = reduction, smoothing, z_loss, ignored, gradient, False

    def run(logits: Any, target: Any, upstream: Any, weight: Any) -> Any:
        return _core._cross_entropy(logits, target, *options, upstream, weight)

    return call(run, logits, logits, target, upstream, weight)


class _OnePass(torch.autograd.Function):
    """Loss and gradient by one kernel. Eager only: its backward writes over what forward made."""

    @staticmethod
    def forward(
        ctx: Any,
        logits: torch.Tensor,
        target: torch.Tensor,
        weight: torch.Tensor | None,
        reduction: str,
        smoothing: float,
        z_loss: float,
        ignored: int,
    ) -> Any:
        options = reduction, smoothing, z_loss, ignored
        loss, ctx.gradient = _loss(logits, target, weight, *options, True, None)
        return loss

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, above: torch.Tensor) -> Any:
        gradient, ctx.gradient = ctx.gradient, None
        if gradient is None:
            raise RuntimeError(
                "cross_entropy(..., one_pass=True) is differentiated once: its gradient was given "
                "away; take one_pass=False for several backward passes"
            )
        return scaled(gradient, above), *(None,) * 6


def scaled(gradient: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    """`gradient` multiplied in place; the kernel leaves at once where the factor is 1."""
    if gradient.device.type == "cpu" or gradient.dtype == torch.float64:
        return gradient.mul_(factor)
    call(_core._scale_tensors, gradient, [gradient], factor.float())
    return gradient


def _run(
    logits: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None,
    reduction: str,
    smoothing: float,
    z_loss: float,
    ignored: int,
) -> torch.Tensor:
    return _loss(logits, target, weight, reduction, smoothing, z_loss, ignored, False, None)[0]


def _run_backward(
    above: torch.Tensor,
    logits: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None,
    reduction: str,
    smoothing: float,
    z_loss: float,
    ignored: int,
) -> torch.Tensor:
    return _loss(logits, target, weight, reduction, smoothing, z_loss, ignored, True, above)[1]


def _fake(logits: Any, target: Any, weight: Any, reduction: str, *_: Any) -> torch.Tensor:
    dtype = torch.float64 if logits.dtype == torch.float64 else torch.float32
    return empty(logits, target.shape if reduction == "none" else (), dtype)


def _setup(ctx: Any, inputs: Any, output: Any) -> None:
    logits, target, weight, *ctx.options = inputs
    ctx.save_for_backward(logits, target, weight)


def _gradient(ctx: Any, above: torch.Tensor) -> Any:
    return _backward(above, *ctx.saved_tensors, *ctx.options), *(None,) * 6


_forward = define("cross_entropy", _run, _fake)
_backward = define(
    "cross_entropy_backward",
    _run_backward,
    lambda above, logits, *_: empty(logits),
)
differentiate("cross_entropy", _gradient, _setup)
