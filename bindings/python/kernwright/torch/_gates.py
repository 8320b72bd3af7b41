"""Activations, gated units, bias and activation in one pass, for torch."""

from __future__ import annotations

from typing import Any, Literal

import torch

from kernwright import _core
from kernwright.errors import InvalidArgument
from kernwright.nn._activations import gelu_kind
from kernwright.torch._operators import call, define, differentiate, empty

__all__ = [
    "bias_activation",
    "geglu",
    "gelu",
    "glu",
    "mish",
    "quick_gelu",
    "reglu",
    "relu2",
    "silu",
    "swiglu",
]

GeluForm = Literal["none", "tanh"]


def silu(input: torch.Tensor) -> torch.Tensor:
    """input * sigmoid(input). As all of these a tensor of real floats of any shape and strides,
    computed in float32 (float64 in float64); the result is row-major, of its shape and dtype.

    >>> import torch, kernwright.torch as kt
    >>> kt.silu(torch.tensor([0.0, 100.0])).tolist()
    [0.0, 100.0]
    """
    return _activate(input, "silu", 1.0, 1.0)


def gelu(input: torch.Tensor, approximate: GeluForm = "none") -> torch.Tensor:
    """input times the chance that a standard normal variable is below it, or "tanh" for
    0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))): torch.nn.functional.gelu().

    >>> import torch, kernwright.torch as kt
    >>> kt.gelu(torch.tensor([0.0, 100.0])).tolist()
    [0.0, 100.0]
    """
    return _activate(input, gelu_kind(approximate), 1.0, 1.0)


def quick_gelu(input: torch.Tensor) -> torch.Tensor:
    """input * sigmoid(1.702 input).

    >>> import torch, kernwright.torch as kt
    >>> kt.quick_gelu(torch.tensor([0.0, 100.0])).tolist()
    [0.0, 100.0]
    """
    return _activate(input, "quick_gelu", 1.0, 1.0)


def mish(input: torch.Tensor) -> torch.Tensor:
    """input * tanh(log(1 + exp(input))).

    >>> import torch, kernwright.torch as kt
    >>> kt.mish(torch.tensor([0.0, 100.0])).tolist()
    [0.0, 100.0]
    """
    return _activate(input, "mish", 1.0, 1.0)


def relu2(input: torch.Tensor) -> torch.Tensor:
    """max(input, 0) squared.

    >>> import torch, kernwright.torch as kt
    >>> kt.relu2(torch.tensor([-2.0, 3.0])).tolist()
    [0.0, 9.0]
    """
    return _activate(input, "relu2", 1.0, 1.0)


def swiglu(gate: torch.Tensor, up: torch.Tensor | None = None) -> torch.Tensor:
    """silu(gate) * up in one pass, of the shape and dtype of `gate`.

    Without `up`, `gate` of shape (..., 2 n) holds both, the gate in its first half: what one Linear
    makes of both projections. Halves and slices are read where they are. Raises InvalidArgument
    when shapes or dtypes differ.

    >>> import torch, kernwright.torch as kt
    >>> kt.swiglu(torch.tensor([0.0, 100.0, 1.0, 2.0])).tolist()
    [0.0, 200.0]
    """
    return _gate(gate, up, "silu")


def geglu(
    gate: torch.Tensor, up: torch.Tensor | None = None, approximate: GeluForm = "tanh"
) -> torch.Tensor:
    """gelu(gate, approximate) * up; see swiglu().

    >>> import torch, kernwright.torch as kt
    >>> kt.geglu(torch.tensor([0.0, 100.0]), torch.tensor([5.0, 2.0])).tolist()
    [0.0, 200.0]
    """
    return _gate(gate, up, gelu_kind(approximate))


def reglu(gate: torch.Tensor, up: torch.Tensor | None = None) -> torch.Tensor:
    """max(gate, 0) * up; see swiglu().

    >>> import torch, kernwright.torch as kt
    >>> kt.reglu(torch.tensor([-2.0, 3.0]), torch.tensor([5.0, 5.0])).tolist()
    [0.0, 15.0]
    """
    return _gate(gate, up, "relu")


def glu(gate: torch.Tensor, up: torch.Tensor | None = None) -> torch.Tensor:
    """sigmoid(gate) * up; see swiglu(). torch.nn.functional.glu() has the gate in the second
    half: that is glu(*reversed(x.chunk(2, -1))).

    >>> import torch, kernwright.torch as kt
    >>> kt.glu(torch.tensor([0.0, 100.0]), torch.tensor([4.0, 2.0])).tolist()
    [2.0, 2.0]
    """
    return _gate(gate, up, "sigmoid")


def bias_activation(
    input: torch.Tensor,
    bias: torch.Tensor,
    activation: str = "gelu",
    *,
    a: float = 1.0,
    b: float = 1.0,
) -> torch.Tensor:
    """activation(input + bias) in one pass; the bias of shape (input.shape[-1],) and its dtype.

    `activation` and its numbers `a` and `b` are those of kernwright.nn.bias_activation():
    "gelu", "gelu_tanh", "silu", "relu", ...

    >>> import torch, kernwright.torch as kt
    >>> kt.bias_activation(torch.tensor([[1.0, -3.0]]), torch.tensor([1.0, 1.0]), "relu").tolist()
    [[2.0, 0.0]]
    """
    return _bias_activate(input, bias, activation, a, b)


def _gate(gate: torch.Tensor, up: torch.Tensor | None, name: str) -> torch.Tensor:
    if up is not None:
        return _pair(gate, up, name)
    if gate.ndim == 0 or gate.shape[-1] % 2:
        raise InvalidArgument(
            f"gate and up in one have a last extent that is even, got shape {tuple(gate.shape)}"
        )
    return _packed(gate, name)


def _setup(ctx: Any, inputs: Any, output: Any) -> None:
    """Tensors first, plain values behind them."""
    tensors = [each for each in inputs if isinstance(each, torch.Tensor)]
    ctx.save_for_backward(*tensors)
    ctx.values = inputs[len(tensors) :]


def _gradients_by(name: str) -> Any:
    """A backward function that calls kernwright::`name` with gradient, tensors and values."""

    def gradient(ctx: Any, dy: torch.Tensor) -> Any:
        made = getattr(torch.ops.kernwright, name)(dy, *ctx.saved_tensors, *ctx.values)
        made = made if isinstance(made, (tuple, list)) else (made,)
        return (*made, *(None for _ in ctx.values))

    return gradient


def _half(x: torch.Tensor) -> torch.Tensor:
    return empty(x, (*x.shape[:-1], x.shape[-1] // 2))


def _run_activation(x: torch.Tensor, name: str, a: float, b: float) -> torch.Tensor:
    return call(_core._activate, x, name, x, a, b)


def _run_activation_backward(
    dy: torch.Tensor, x: torch.Tensor, name: str, a: float, b: float
) -> torch.Tensor:
    return call(_core._activate_backward, x, name, dy, x, a, b)


def _run_gate(gate: torch.Tensor, up: torch.Tensor, name: str) -> torch.Tensor:
    return call(_core._gate, gate, name, gate, up)


def _run_gate_backward(
    dy: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, name: str
) -> tuple[torch.Tensor, torch.Tensor]:
    return call(_core._gate_backward, gate, name, dy, gate, up)


def _run_packed_gate(gate_up: torch.Tensor, name: str) -> torch.Tensor:
    return call(_core._gate, gate_up, name, gate_up, None)


def _run_packed_gate_backward(dy: torch.Tensor, gate_up: torch.Tensor, name: str) -> torch.Tensor:
    return call(_core._gate_backward, gate_up, name, dy, gate_up, None)


def _run_bias_activation(
    x: torch.Tensor, bias: torch.Tensor, name: str, a: float, b: float
) -> torch.Tensor:
    return call(_core._bias_activate, x, name, x, bias, a, b)


def _run_bias_activation_backward(
    dy: torch.Tensor, x: torch.Tensor, bias: torch.Tensor, name: str, a: float, b: float
) -> tuple[torch.Tensor, torch.Tensor]:
    return call(_core._bias_activate_backward, x, name, dy, x, bias, a, b)


_activate = define("activation", _run_activation, lambda x, name, a, b: empty(x))
define("activation_backward", _run_activation_backward, lambda dy, x, name, a, b: empty(x))
_pair = define("gate", _run_gate, lambda gate, up, name: empty(gate))
define("gate_backward", _run_gate_backward, lambda dy, gate, up, name: (empty(gate), empty(up)))
_packed = define("packed_gate", _run_packed_gate, lambda gate_up, name: _half(gate_up))
define("packed_gate_backward", _run_packed_gate_backward, lambda dy, gate_up, name: empty(gate_up))
_bias_activate = define(
    "bias_activation", _run_bias_activation, lambda x, bias, name, a, b: empty(x)
)
define(
    "bias_activation_backward",
    _run_bias_activation_backward,
    lambda dy, x, bias, name, a, b: (empty(x), empty(bias)),
)
for _name in ("activation", "gate", "packed_gate", "bias_activation"):
    differentiate(_name, _gradients_by(f"{_name}_backward"), _setup)
