"""Modules of torch whose forward runs on kernwright: subclasses, so parameters and names agree."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

import kernwright as kw
from kernwright.nn._activations import product_activation
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
    """torch.nn.RMSNorm by rms_norm(); with a `residual` (result, input + residual).

    >>> import torch, kernwright.torch as kt
    >>> kt.RMSNorm(2, eps=0.0)(torch.tensor([[3.0, -3.0]])).tolist()
    [[1.0, -1.0]]
    """

    def forward(self, x: torch.Tensor, residual: torch.Tensor | None = None) -> Any:
        """rms_norm() of x, (..., *normalized_shape) of float16, bfloat16, float32 or float64.

        The result has the shape and dtype of x. `residual` has them too, and the result is then the
        pair (norm of the sum, sum).
        """
        if residual is None and not fits(x):
            return super().forward(x)
        return _norm.rms_norm(x, self.normalized_shape, self.weight, self.eps, residual=residual)


class LayerNorm(nn.LayerNorm):
    """torch.nn.LayerNorm by layer_norm(); with a `residual` (result, input + residual).

    >>> import torch, kernwright.torch as kt
    >>> kt.LayerNorm(2, eps=0.0)(torch.tensor([[1.0, 3.0]])).tolist()
    [[-1.0, 1.0]]
    """

    def forward(self, input: torch.Tensor, residual: torch.Tensor | None = None) -> Any:
        """layer_norm() of an input (..., *normalized_shape) of float16, bfloat16, float32 or
        float64.

        The result has the input's shape and dtype. `residual` has them too, and the result is then
        the pair (norm of the sum, sum).
        """
        if residual is None and not fits(input):
            return super().forward(input)
        shape = self.normalized_shape
        return _norm.layer_norm(input, shape, self.weight, self.bias, self.eps, residual=residual)


class GroupNorm(nn.GroupNorm):
    """torch.nn.GroupNorm by group_norm().

    >>> import torch, kernwright.torch as kt
    >>> kt.GroupNorm(2, 4, eps=0.0)(torch.tensor([[1.0, 3.0, 5.0, 9.0]])).tolist()
    [[-1.0, 1.0, -1.0, 1.0]]
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """group_norm() of an input (batch, num_channels, ...) of float16, bfloat16, float32 or
        float64; the result has its shape and dtype."""
        if not fits(input):
            return super().forward(input)
        return _norm.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


class Linear(nn.Linear):
    """torch.nn.Linear by linear() where few rows meet the weights and no gradient is recorded: up
    to 64 rows of float16 or bfloat16, 16 of float32. Everything else is torch's own.

    >>> import torch, kernwright.torch as kt
    >>> layer = kt.Linear(64, 16, dtype=torch.float16)
    >>> with torch.no_grad():
    ...     layer(torch.ones(3, 64, dtype=torch.float16)).shape
    torch.Size([3, 16])
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """input @ weight.T + bias: (..., in_features) becomes (..., out_features) of the same
        dtype."""
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
    """torch.nn.Softmax by softmax().

    >>> import torch, kernwright.torch as kt
    >>> kt.Softmax(dim=-1)(torch.tensor([1.0, 1.0])).tolist()
    [0.5, 0.5]
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """softmax() along `dim` of an input of any shape, of float16, bfloat16, float32 or float64;
        the result has its shape and dtype."""
        if self.dim is None or not fits(input):
            return super().forward(input)
        return _softmax.softmax(input, self.dim)


class LogSoftmax(nn.LogSoftmax):
    """torch.nn.LogSoftmax by log_softmax().

    >>> import torch, kernwright.torch as kt
    >>> kt.LogSoftmax(dim=-1)(torch.tensor([0.0, -1000.0])).tolist()
    [0.0, -1000.0]
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """log_softmax() along `dim` of an input of any shape, of float16, bfloat16, float32 or
        float64; the result has its shape and dtype."""
        if self.dim is None or not fits(input):
            return super().forward(input)
        return _softmax.log_softmax(input, self.dim)


class SiLU(nn.SiLU):
    """torch.nn.SiLU by silu(); never in place.

    >>> import torch, kernwright.torch as kt
    >>> kt.SiLU()(torch.tensor([0.0, 100.0])).tolist()
    [0.0, 100.0]
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """silu() of an input of any shape, of float16, bfloat16, float32 or float64; the result has
        its shape and dtype."""
        return _gates.silu(input) if fits(input) else super().forward(input)


class GELU(nn.GELU):
    """torch.nn.GELU by gelu().

    >>> import torch, kernwright.torch as kt
    >>> kt.GELU()(torch.tensor([0.0, 100.0])).tolist()
    [0.0, 100.0]
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """gelu() of an input of any shape, of float16, bfloat16, float32 or float64; the result has
        its shape and dtype."""
        if not fits(input):
            return super().forward(input)
        return _gates.gelu(input, self.approximate)


class Embedding(nn.Embedding):
    """torch.nn.Embedding by embedding(): without max_norm, scale_grad_by_freq and sparse.

    >>> import torch, kernwright.torch as kt
    >>> kt.Embedding(10, 4)(torch.tensor([[1, 2, 3]])).shape
    torch.Size([1, 3, 4])
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """embedding() of numbers of int32 or int64, any shape: input.shape + (embedding_dim,), of
        the weight's dtype."""
        plain = self.max_norm is None and not self.scale_grad_by_freq and not self.sparse
        if not plain or not fits(self.weight):
            return super().forward(input)
        return _embedding.embedding(input, self.weight, self.padding_idx)


class CrossEntropyLoss(nn.CrossEntropyLoss):
    """torch.nn.CrossEntropyLoss by cross_entropy(); targets that are probabilities go to torch's.
    The loss is of float32 for half precision too.

    The attribute `one_pass`, at first False, is that of cross_entropy(): the gradient is made while
    the logits are read for the loss, and backward() runs once.

    >>> import torch, kernwright.torch as kt
    >>> logits = torch.tensor([[100.0, 0.0], [0.0, 100.0]])
    >>> kt.CrossEntropyLoss()(logits, torch.tensor([0, 0])).item()
    50.0
    """

    one_pass = False

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """cross_entropy() of logits (batch, classes, ...) or (classes,), with a target of their
        shape without the classes: a number, or with reduction="none" one for each target."""
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

    `activation` is a name that kernwright.nn.linear() takes: "silu", "gelu", "gelu_tanh", ...

    >>> import torch, kernwright.torch as kt
    >>> kt.GatedMLP(8, 32)(torch.ones(2, 5, 8)).shape
    torch.Size([2, 5, 8])
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
        self.activation = product_activation("activation", activation)
        self.gate_up = nn.Linear(features, 2 * hidden, bias, device, dtype)
        self.down = nn.Linear(hidden, features, bias, device, dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The layer of x: (..., features) of float16, bfloat16, float32 or float64 becomes a tensor
        of the same shape and dtype."""
        made: torch.Tensor = self.down(_gates._gate(self.gate_up(x), None, self.activation))
        return made


class Rope(nn.Module):
    """rope() with its tables: Rope(dim, length)(q, k, positions=None, offset=0).

    >>> import torch, kernwright.torch as kt
    >>> rope = kt.Rope(8, 16)
    >>> q, k = rope(torch.ones(1, 5, 4, 8), torch.ones(1, 5, 2, 8))
    >>> q.shape, k.shape
    (torch.Size([1, 5, 4, 8]), torch.Size([1, 5, 2, 8]))
    """

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
        """rope() of q and k, (batch, tokens, heads, head_dim), or (batch, heads, tokens, head_dim)
        with `heads_first`; of float16, bfloat16, float32 or float64. Both turned, or q alone
        without k."""
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
