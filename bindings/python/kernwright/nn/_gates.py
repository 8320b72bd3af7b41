"""Gated units, bias and activation in one pass, dropout; forward and backward.

>>> import numpy as np, kernwright as kw
>>> gate = kw.asarray(np.array([[0.0, 100.0]], np.float32))
>>> kw.nn.swiglu(gate, kw.ones((1, 2))).numpy().tolist()
[[0.0, 100.0]]
"""

from __future__ import annotations

from typing import Any

from kernwright._core import (
    Array,
    _bias_activate,
    _bias_activate_backward,
    _dropout,
    _gate,
    _gate_backward,
)
from kernwright.nn._activations import GeluForm, gelu_kind

__all__ = [
    "bias_activation",
    "bias_activation_backward",
    "bias_gelu",
    "bias_gelu_backward",
    "dropout",
    "dropout_backward",
    "geglu",
    "geglu_backward",
    "glu",
    "glu_backward",
    "reglu",
    "reglu_backward",
    "swiglu",
    "swiglu_backward",
]

Gradients = Any  # an Array, or a tuple of two where gate and up were two arrays


def swiglu(gate: Any, up: Any = None) -> Array:
    """silu(gate) * up, of the shape and dtype of `gate`.

    Without `up`, `gate` of shape (..., 2 n) holds both: the gate in its first half, `up` in the
    second; the result has shape (..., n). Halves and slices of rows are read where they are. Raises
    InvalidArgument when the shapes or dtypes differ, ArgumentError for what is no real float.

    >>> kw.nn.swiglu(kw.asarray([[0.0, 100.0]]), kw.ones((1, 2))).numpy()
    array([[  0., 100.]], dtype=float32)
    """
    return _gate("silu", gate, up)


def swiglu_backward(grad: Any, gate: Any, up: Any = None) -> Gradients:
    """The gradients of `gate` and `up`; of the one array where there is no `up`.

    >>> gate, up = kw.asarray([[0.0, 100.0]]), kw.asarray([[4.0, 3.0]])
    >>> dgate, dup = kw.nn.swiglu_backward(kw.ones((1, 2)), gate, up)
    >>> dgate.numpy(), dup.numpy()
    (array([[2., 3.]], dtype=float32), array([[  0., 100.]], dtype=float32))
    """
    return _gate_backward("silu", grad, gate, up)


def geglu(gate: Any, up: Any = None, approximate: GeluForm = "tanh") -> Array:
    """gelu(gate, approximate) * up; see swiglu().

    >>> kw.nn.geglu(kw.asarray([[0.0, 100.0]]), kw.ones((1, 2))).numpy()
    array([[  0., 100.]], dtype=float32)
    """
    return _gate(gelu_kind(approximate), gate, up)


def geglu_backward(
    grad: Any, gate: Any, up: Any = None, approximate: GeluForm = "tanh"
) -> Gradients:
    """The gradients of `gate` and `up`; of the one array where there is no `up`.

    >>> gate, up = kw.asarray([[0.0, 100.0]]), kw.asarray([[4.0, 3.0]])
    >>> dgate, dup = kw.nn.geglu_backward(kw.ones((1, 2)), gate, up)
    >>> dgate.numpy(), dup.numpy()
    (array([[2., 3.]], dtype=float32), array([[  0., 100.]], dtype=float32))
    """
    return _gate_backward(gelu_kind(approximate), grad, gate, up)


def reglu(gate: Any, up: Any = None) -> Array:
    """relu(gate) * up; see swiglu().

    >>> kw.nn.reglu(kw.asarray([[-2.0, 3.0]]), kw.asarray([[5.0, 5.0]])).numpy()
    array([[ 0., 15.]], dtype=float32)
    """
    return _gate("relu", gate, up)


def reglu_backward(grad: Any, gate: Any, up: Any = None) -> Gradients:
    """The gradients of `gate` and `up`; of the one array where there is no `up`.

    >>> gate, up = kw.asarray([[-2.0, 5.0]]), kw.asarray([[4.0, 3.0]])
    >>> dgate, dup = kw.nn.reglu_backward(kw.ones((1, 2)), gate, up)
    >>> dgate.numpy(), dup.numpy()
    (array([[0., 3.]], dtype=float32), array([[0., 5.]], dtype=float32))
    """
    return _gate_backward("relu", grad, gate, up)


def glu(gate: Any, up: Any = None) -> Array:
    """sigmoid(gate) * up; see swiglu(). torch's glu has the gate in the second half.

    >>> kw.nn.glu(kw.asarray([[0.0, 100.0]]), kw.ones((1, 2))).numpy()
    array([[0.5, 1. ]], dtype=float32)
    """
    return _gate("sigmoid", gate, up)


def glu_backward(grad: Any, gate: Any, up: Any = None) -> Gradients:
    """The gradients of `gate` and `up`; of the one array where there is no `up`.

    >>> gate, up = kw.asarray([[0.0, 100.0]]), kw.asarray([[4.0, 3.0]])
    >>> dgate, dup = kw.nn.glu_backward(kw.ones((1, 2)), gate, up)
    >>> dgate.numpy(), dup.numpy()
    (array([[1., 0.]], dtype=float32), array([[0.5, 1. ]], dtype=float32))
    """
    return _gate_backward("sigmoid", grad, gate, up)


def bias_activation(
    x: Any, bias: Any, activation: str = "gelu", *, a: float = 1.0, b: float = 1.0
) -> Array:
    """activation(x + bias) in one pass; `bias` of shape (x.shape[-1],), both of one dtype.

    `activation` names one of kw.nn (not celu, relu6), or is "gelu_tanh". `a` and `b` are numbers
    that some take, in the order of their functions; elu takes alpha and 1. Raises InvalidArgument
    when the bias does not fit, ArgumentError with a list of the names for an unknown one.

    >>> kw.nn.bias_activation(kw.asarray([[-2.0, 3.0]]), kw.ones(2), "relu").numpy()
    array([[0., 4.]], dtype=float32)
    """
    return _bias_activate(activation, x, bias, a, b)


def bias_activation_backward(
    grad: Any, x: Any, bias: Any, activation: str = "gelu", *, a: float = 1.0, b: float = 1.0
) -> tuple[Array, Array]:
    """The gradients of `x` and of `bias`; the latter is a sum over rows in a fixed order.

    >>> x, bias = kw.asarray([[-2.0, 3.0]]), kw.ones(2)
    >>> dx, dbias = kw.nn.bias_activation_backward(kw.ones((1, 2)), x, bias, "relu")
    >>> dx.numpy()
    array([[0., 1.]], dtype=float32)
    """
    return _bias_activate_backward(activation, grad, x, bias, a, b)


def bias_gelu(x: Any, bias: Any, approximate: GeluForm = "none") -> Array:
    """gelu(x + bias, approximate) in one pass; see bias_activation().

    >>> kw.nn.bias_gelu(kw.asarray([[-1.0, 99.0]]), kw.ones(2)).numpy()
    array([[  0., 100.]], dtype=float32)
    """
    return _bias_activate(gelu_kind(approximate), x, bias, 1.0, 1.0)


def bias_gelu_backward(
    grad: Any, x: Any, bias: Any, approximate: GeluForm = "none"
) -> tuple[Array, Array]:
    """The gradients of `x` and of `bias`; see bias_activation_backward().

    >>> x, bias = kw.asarray([[-1.0, 99.0]]), kw.ones(2)
    >>> dx, dbias = kw.nn.bias_gelu_backward(kw.ones((1, 2)), x, bias)
    >>> dbias.numpy()
    array([0.5, 1. ], dtype=float32)
    """
    return _bias_activate_backward(gelu_kind(approximate), grad, x, bias, 1.0, 1.0)


def dropout(
    x: Any, p: float = 0.5, *, seed: int, offset: int = 0, counter: Array | None = None
) -> Array:
    """Every element is 0 with chance `p`, else multiplied by 1 / (1 - p).

    Which ones stay depends on their place, `seed` and `offset` alone (Philox4x32-10): the same on
    every device, for every dtype. Take another `offset` for each layer and step. `counter`, one
    uint64 on the device, is added to the offset when the kernel runs, and is not changed: a graph
    that moves it on (``counter += 1``) has another mask at each launch. Raises InvalidArgument for
    p outside [0, 1] and for another counter, ArgumentError for what is no real float.

    >>> kw.unique(kw.nn.dropout(kw.ones(100), 0.5, seed=7)).numpy()
    array([0., 2.], dtype=float32)
    """
    return _dropout(x, p, seed, offset, counter)


def dropout_backward(
    grad: Any, p: float = 0.5, *, seed: int, offset: int = 0, counter: Array | None = None
) -> Array:
    """The gradient through dropout() of the same `p`, `seed`, `offset` and counter: the same mask,
    made again rather than stored. The counter must still hold what it held then.

    >>> x = kw.ones(100)
    >>> y, dx = kw.nn.dropout(x, seed=7), kw.nn.dropout_backward(x, seed=7)
    >>> kw.all(y == dx).item()
    True
    """
    return _dropout(grad, p, seed, offset, counter)
