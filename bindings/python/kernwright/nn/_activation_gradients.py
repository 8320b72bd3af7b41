"""Gradients through activations: `grad` times the derivative at `x`.

`grad` is the gradient of the result, `x` what the activation was called with: the same shape, dtype
and device, else InvalidArgument. The result is a new row-major array of that shape and dtype.

>>> import numpy as np, kernwright as kw
>>> x = kw.asarray(np.array([-1.0, 2.0], np.float32))
>>> kw.nn.relu2_backward(kw.ones(2), x).numpy().tolist()
[0.0, 4.0]
"""

from __future__ import annotations

from typing import Any

from kernwright._core import Array, _activate_backward
from kernwright.nn._activations import GeluForm, gelu_kind, hardtanh_bounds

__all__ = [
    "celu_backward",
    "elu_backward",
    "gelu_backward",
    "hardsigmoid_backward",
    "hardswish_backward",
    "hardtanh_backward",
    "leaky_relu_backward",
    "log_sigmoid_backward",
    "mish_backward",
    "quick_gelu_backward",
    "relu2_backward",
    "relu6_backward",
    "relu_backward",
    "selu_backward",
    "sigmoid_backward",
    "silu_backward",
    "softplus_backward",
    "softsign_backward",
    "tanh_backward",
]


def relu_backward(grad: Any, x: Any) -> Array:
    """The gradient through relu().

    >>> kw.nn.relu_backward(kw.ones(2), kw.asarray([-2.0, 3.0])).numpy()
    array([0., 1.], dtype=float32)
    """
    return _activate_backward("relu", grad, x, 1.0, 1.0)


def relu2_backward(grad: Any, x: Any) -> Array:
    """The gradient through relu2().

    >>> kw.nn.relu2_backward(kw.ones(2), kw.asarray([-2.0, 3.0])).numpy()
    array([0., 6.], dtype=float32)
    """
    return _activate_backward("relu2", grad, x, 1.0, 1.0)


def relu6_backward(grad: Any, x: Any) -> Array:
    """The gradient through relu6().

    >>> kw.nn.relu6_backward(kw.ones(3), kw.asarray([-2.0, 3.0, 9.0])).numpy()
    array([0., 1., 0.], dtype=float32)
    """
    return _activate_backward("hardtanh", grad, x, 0.0, 6.0)


def hardtanh_backward(grad: Any, x: Any, low: float = -1.0, high: float = 1.0) -> Array:
    """The gradient through hardtanh(), with the same errors.

    >>> kw.nn.hardtanh_backward(kw.ones(2), kw.asarray([0.5, 3.0])).numpy()
    array([1., 0.], dtype=float32)
    """
    return _activate_backward("hardtanh", grad, x, *hardtanh_bounds(low, high))


def leaky_relu_backward(grad: Any, x: Any, slope: float = 0.01) -> Array:
    """The gradient through leaky_relu().

    >>> kw.nn.leaky_relu_backward(kw.ones(2), kw.asarray([-2.0, 3.0]), 0.5).numpy()
    array([0.5, 1. ], dtype=float32)
    """
    return _activate_backward("leaky_relu", grad, x, slope, 1.0)


def elu_backward(grad: Any, x: Any, alpha: float = 1.0) -> Array:
    """The gradient through elu().

    >>> kw.nn.elu_backward(kw.ones(2), kw.asarray([-100.0, 3.0])).numpy().round(4)
    array([0., 1.], dtype=float32)
    """
    return _activate_backward("elu", grad, x, alpha, 1.0)


def celu_backward(grad: Any, x: Any, alpha: float = 1.0) -> Array:
    """The gradient through celu().

    >>> kw.nn.celu_backward(kw.ones(2), kw.asarray([-100.0, 3.0])).numpy().round(4)
    array([0., 1.], dtype=float32)
    """
    return _activate_backward("elu", grad, x, alpha, alpha)


def selu_backward(grad: Any, x: Any) -> Array:
    """The gradient through selu().

    >>> kw.nn.selu_backward(kw.ones(1), kw.asarray([1.0])).numpy().round(4)
    array([1.0507], dtype=float32)
    """
    return _activate_backward("selu", grad, x, 1.0, 1.0)


def sigmoid_backward(grad: Any, x: Any) -> Array:
    """The gradient through sigmoid().

    >>> kw.nn.sigmoid_backward(kw.ones(1), kw.zeros(1)).numpy()
    array([0.25], dtype=float32)
    """
    return _activate_backward("sigmoid", grad, x, 1.0, 1.0)


def log_sigmoid_backward(grad: Any, x: Any) -> Array:
    """The gradient through log_sigmoid().

    >>> kw.nn.log_sigmoid_backward(kw.ones(1), kw.zeros(1)).numpy()
    array([0.5], dtype=float32)
    """
    return _activate_backward("log_sigmoid", grad, x, 1.0, 1.0)


def tanh_backward(grad: Any, x: Any) -> Array:
    """The gradient through tanh().

    >>> kw.nn.tanh_backward(kw.ones(1), kw.zeros(1)).numpy()
    array([1.], dtype=float32)
    """
    return _activate_backward("tanh", grad, x, 1.0, 1.0)


def silu_backward(grad: Any, x: Any) -> Array:
    """The gradient through silu().

    >>> kw.nn.silu_backward(kw.ones(1), kw.zeros(1)).numpy()
    array([0.5], dtype=float32)
    """
    return _activate_backward("silu", grad, x, 1.0, 1.0)


def gelu_backward(grad: Any, x: Any, approximate: GeluForm = "none") -> Array:
    """The gradient through gelu().

    >>> kw.nn.gelu_backward(kw.ones(1), kw.zeros(1)).numpy()
    array([0.5], dtype=float32)
    """
    return _activate_backward(gelu_kind(approximate), grad, x, 1.0, 1.0)


def quick_gelu_backward(grad: Any, x: Any) -> Array:
    """The gradient through quick_gelu().

    >>> kw.nn.quick_gelu_backward(kw.ones(1), kw.zeros(1)).numpy()
    array([0.5], dtype=float32)
    """
    return _activate_backward("quick_gelu", grad, x, 1.0, 1.0)


def softplus_backward(grad: Any, x: Any, beta: float = 1.0, threshold: float = 20.0) -> Array:
    """The gradient through softplus().

    >>> kw.nn.softplus_backward(kw.ones(1), kw.zeros(1)).numpy()
    array([0.5], dtype=float32)
    """
    return _activate_backward("softplus", grad, x, beta, threshold)


def softsign_backward(grad: Any, x: Any) -> Array:
    """The gradient through softsign().

    >>> kw.nn.softsign_backward(kw.ones(1), kw.asarray([-1.0])).numpy()
    array([0.25], dtype=float32)
    """
    return _activate_backward("softsign", grad, x, 1.0, 1.0)


def mish_backward(grad: Any, x: Any) -> Array:
    """The gradient through mish().

    >>> kw.nn.mish_backward(kw.ones(1), kw.zeros(1)).numpy().round(4)
    array([0.6], dtype=float32)
    """
    return _activate_backward("mish", grad, x, 1.0, 1.0)


def hardswish_backward(grad: Any, x: Any) -> Array:
    """The gradient through hardswish().

    >>> kw.nn.hardswish_backward(kw.ones(3), kw.asarray([-4.0, 0.0, 4.0])).numpy()
    array([0. , 0.5, 1. ], dtype=float32)
    """
    return _activate_backward("hardswish", grad, x, 1.0, 1.0)


def hardsigmoid_backward(grad: Any, x: Any) -> Array:
    """The gradient through hardsigmoid().

    >>> kw.nn.hardsigmoid_backward(kw.ones(2), kw.asarray([0.0, 4.0])).numpy().round(4)
    array([0.1667, 0.    ], dtype=float32)
    """
    return _activate_backward("hardsigmoid", grad, x, 1.0, 1.0)
