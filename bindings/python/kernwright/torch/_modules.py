"""Modules of torch whose forward runs on kernwright: subclasses, so parameters and names agree."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

import kernwright as kw
from kernwright.errors import InvalidArgument
from kernwright.torch import _embedding, _gates, _linear, _loss, _norm, _rope, _softmax

__all__ = [
    "GELU",
    "CrossEntropyLoss",
    "Embedding",
    "GatedMLP",
    "GroupNorm",
    "LayerNorm",
    "Linear",
    "LogSoftmax",
    "RMSNorm",
    "Rope",
    "SiLU",
    "Softmax",
]

_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def fits(x: torch.Tensor) -> bool:
    """Whether kernels take x: of a GPU, or of the host where the simulated device is all there is.
    Elsewhere a module runs as torch's own."""
    place = x.device.type
    is_here = place == "cuda" or (place == "cpu" and _is_simulated())
    return is_here and x.dtype in _DTYPES and x.ndim > 0


@torch.compiler.assume_constant_result
def _is_simulated() -> bool:
    return kw.current_device().is_simulated


class RMSNorm(nn.RMSNorm):
    """torch.nn.RMSNorm by rms_norm(); with a `residual` (result, input + residual)."""

    def forward(self, x: torch.Tensor, residual: torch.Tensor | None = None) -> Any:
        if residual is None and not fits(x):
            return super().forward(x)
        return _norm.rms_norm(x, self.normalized_shape, self.weight, self.eps, residual=residual)


class LayerNorm(nn.LayerNorm):
    """torch.nn.LayerNorm by layer_norm(); with a `residual` (result, input + residual)."""

    def forward(self, input: torch.Tensor, residual: torch.Tensor | None = None) -> Any:
        if residual is None and not fits(input):
            return super().forward(input)
        shape = self.normalized_shape
        return _norm.layer_norm(input, shape, self.weight, self.bias, self.eps, residual=residual)


class GroupNorm(nn.GroupNorm):
    """torch.nn.GroupNorm by group_norm()."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if not fits(input):
            return super().forward(input)
        return _norm.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


class Linear(nn.Linear):
    """torch.nn.Linear by linear() where few rows meet the weights and no gradient is recorded: up
    to 64 rows of float16 or bfloat16, 16 of float32. Everything else is torch's own."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return (
            _linear.linear(input, self.weight, self.bias)
            if self._is_small(input)
            else super().forward(input)
        )

    def _is_small(self, x: torch.Tensor) -> bool:
        weight, bias = self.weight, self.bias
        if x.dtype != weight.dtype or x.dtype == torch.float64 or not fits(x) or x.numel() == 0:
            return False
        if torch.is_autocast_enabled(x.device.type) or x.device != weight.device:
            return False
        tensors = (x, weight) if bias is None else (x, weight, bias)
        if torch.is_grad_enabled() and any(each.requires_grad for each in tensors):
            return False
        most = 16 if x.dtype == torch.float32 else 64
        return x.shape[-1] == self.in_features and x.numel() <= most * x.shape[-1]


class Softmax(nn.Softmax):
    """torch.nn.Softmax by softmax()."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if self.dim is None or not fits(input):
            return super().forward(input)
        return _softmax.softmax(input, self.dim)


class LogSoftmax(nn.LogSoftmax):
    """torch.nn.LogSoftmax by log_softmax()."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if self.dim is None or not fits(input):
            return super().forward(input)
        return _softmax.log_softmax(input, self.dim)


class SiLU(nn.SiLU):
    """torch.nn.SiLU by silu(); never in place."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return _gates.silu(input) if fits(input) else super().forward(input)


class GELU(nn.GELU):
    """torch.nn.GELU by gelu()."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if not fits(input):
            return super().forward(input)
        return _gates.gelu(input, self.approximate)


class Embedding(nn.Embedding):
    """torch.nn.Embedding by embedding(): without max_norm, scale_grad_by_freq and sparse."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        plain = self.max_norm is None and not self.scale_grad_by_freq and not self.sparse
        if not plain or not fits(self.weight):
            return super().forward(input)
        return _embedding.embedding(input, self.weight, self.padding_idx)


class CrossEntropyLoss(nn.CrossEntropyLoss):
    """torch.nn.CrossEntropyLoss by cross_entropy(); targets that are probabilities go to torch's.
    The loss is of float32 for half precision too.

    `one_pass`, an attribute that is False until it is set, is that of cross_entropy(): the gradient
    is made while the logits are read for the loss, and backward() runs once.
    """

    one_pass = False

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        if target.is_floating_point() or not fits(input):
            return super().forward(input, target)
        return _loss.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
            one_pass=self.one_pass,
        )


class GatedMLP(nn.Module):
    """down(swiglu(gate_up(x))): one Linear makes gate and up, one kernel joins them.

    `activation` is "silu", "gelu", "gelu_tanh", "relu" or "sigmoid".
    """

    def __init__(
        self,
        features: int,
        hidden: int,
        activation: str = "silu",
        bias: bool = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        known = ("silu", "gelu", "gelu_tanh", "relu", "sigmoid")
        if activation not in known:
            raise InvalidArgument(f"activation is one of {', '.join(known)}, got {activation!r}")
        self.activation = activation
        self.gate_up = nn.Linear(features, 2 * hidden, bias, device, dtype)
        self.down = nn.Linear(hidden, features, bias, device, dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.down(_gates._gate(self.gate_up(x), None, self.activation))
        return made


class Rope(nn.Module):
    """rope() with its tables: Rope(dim, length)(q, k, positions=None, offset=0)."""

    cos: torch.Tensor
    sin: torch.Tensor

    def __init__(
        self,
        dim: int,
        length: int,
        base: float = 10000.0,
        *,
        interleaved: bool = False,
        heads_first: bool = False,
        device: Any = None,
    ) -> None:
        super().__init__()
        self.interleaved, self.heads_first = interleaved, heads_first
        cos, sin = _rope.rope_tables(length, dim, base=base, device=device)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """The tables go along to another device, and stay of float32 in model.half()."""
        cos, sin = self.cos, self.sin
        super()._apply(fn, recurse)
        self.cos, self.sin = cos.to(self.cos.device), sin.to(self.sin.device)
        return self

    def forward(
        self,
        q: torch.Tensor,
        k: torch.Tensor | None = None,
        positions: torch.Tensor | None = None,
        offset: int = 0,
    ) -> Any:
        return _rope.rope(
            q,
            k,
            self.cos,
            self.sin,
            positions=positions,
            offset=offset,
            interleaved=self.interleaved,
            heads_first=self.heads_first,
        )
