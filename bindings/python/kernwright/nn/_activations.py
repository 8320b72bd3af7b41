"""Activations: functions of every element of an array of real floats, of any shape and strides.

The result is a new row-major array of the same shape and dtype. float16, bfloat16 and the 8-bit
floats are computed in float32, float64 in float64. Other dtypes raise ArgumentError.

A gradient, `name_backward(grad, x)`, is `grad` times the derivative at `x`: `grad` is the gradient
of the result, `x` the argument of the activation, both of one shape, dtype and device, else
InvalidArgument.

>>> import numpy as np, kernwright as kw
>>> x = kw.asarray(np.array([-1.0, 2.0], np.float32))
>>> kw.nn.relu(x).numpy().tolist(), kw.nn.relu2_backward(kw.ones(2), x).numpy().tolist()
([0.0, 2.0], [0.0, 4.0])
"""

from __future__ import annotations

from typing import Any, Literal

from kernwright._core import Array, _activate, _activate_backward, _activations
from kernwright.errors import ArgumentError, InvalidArgument

__all__ = [
    "celu",
    "celu_backward",
    "elu",
    "elu_backward",
    "gelu",
    "gelu_backward",
    "hardsigmoid",
    "hardsigmoid_backward",
    "hardswish",
    "hardswish_backward",
    "hardtanh",
    "hardtanh_backward",
    "leaky_relu",
    "leaky_relu_backward",
    "log_sigmoid",
    "log_sigmoid_backward",
    "mish",
    "mish_backward",
    "quick_gelu",
    "quick_gelu_backward",
    "relu",
    "relu2",
    "relu2_backward",
    "relu6",
    "relu6_backward",
    "relu_backward",
    "selu",
    "selu_backward",
    "sigmoid",
    "sigmoid_backward",
    "silu",
    "silu_backward",
    "softplus",
    "softplus_backward",
    "softsign",
    "softsign_backward",
    "tanh",
    "tanh_backward",
]

GeluForm = Literal["none", "tanh"]
# Names that linear() takes, for type checkers; grouped_linear() takes most.
Activation = Literal[
    "relu", "relu2", "selu", "sigmoid", "log_sigmoid", "tanh", "silu", "gelu", "gelu_tanh",
    "quick_gelu", "softsign", "mish", "hardswish", "hardsigmoid",
]  # fmt: skip
_KERNELS = _activations()  # by name, 1 if layers take it, 2 if products of groups do, too


def gelu_kind(approximate: str) -> str:
    """The name of that form of gelu among the kernels."""
    kinds = {"none": "gelu", "tanh": "gelu_tanh"}
    if approximate not in kinds:
        raise ArgumentError(f'approximate is {approximate!r}, and must be "none" or "tanh"')
    return kinds[approximate]


def product_activation(argument: str, value: Any, grouped: bool = False) -> Any:
    """`value` if products take the activation of that name, or products of groups do."""
    known = [name for name, takers in _KERNELS.items() if takers > grouped]
    if value not in known:
        names = ", ".join(known)
        raise ArgumentError(f"{argument} is {value!r:.60}, but {argument} is one of {names}")
    return value


def hardtanh_bounds(low: Any, high: Any) -> tuple[float, float]:
    """Both as numbers, in order. InvalidArgument unless low <= high, which NaN is not."""
    for name, value in (("low", low), ("high", high)):
        if not hasattr(value, "__float__"):
            raise ArgumentError(f"{name} is {value!r:.60}, and must be a number")
    if not float(low) <= float(high):
        raise InvalidArgument(
            f"hardtanh() between low={low} and high={high}: low must be at most high, without NaN"
        )
    return float(low), float(high)


def relu(x: Any) -> Array:
    """max(x, 0).

    >>> kw.nn.relu(kw.asarray([-2.0, 3.0])).numpy()
    array([0., 3.], dtype=float32)
    """
    return _activate("relu", x, 1.0, 1.0)


def relu_backward(grad: Any, x: Any) -> Array:
    """The gradient through relu().

    >>> kw.nn.relu_backward(kw.ones(2), kw.asarray([-2.0, 3.0])).numpy()
    array([0., 1.], dtype=float32)
    """
    return _activate_backward("relu", grad, x, 1.0, 1.0)


def relu2(x: Any) -> Array:
    """max(x, 0) squared.

    >>> kw.nn.relu2(kw.asarray([-2.0, 3.0])).numpy()
    array([0., 9.], dtype=float32)
    """
    return _activate("relu2", x, 1.0, 1.0)


def relu2_backward(grad: Any, x: Any) -> Array:
    """The gradient through relu2().

    >>> kw.nn.relu2_backward(kw.ones(2), kw.asarray([-2.0, 3.0])).numpy()
    array([0., 6.], dtype=float32)
    """
    return _activate_backward("relu2", grad, x, 1.0, 1.0)


def relu6(x: Any) -> Array:
    """x, at least 0 and at most 6.

    >>> kw.nn.relu6(kw.asarray([-2.0, 3.0, 9.0])).numpy()
    array([0., 3., 6.], dtype=float32)
    """
    return _activate("hardtanh", x, 0.0, 6.0)


def relu6_backward(grad: Any, x: Any) -> Array:
    """The gradient through relu6().

    >>> kw.nn.relu6_backward(kw.ones(3), kw.asarray([-2.0, 3.0, 9.0])).numpy()
    array([0., 1., 0.], dtype=float32)
    """
    return _activate_backward("hardtanh", grad, x, 0.0, 6.0)


def hardtanh(x: Any, low: float = -1.0, high: float = 1.0) -> Array:
    """x, at least `low` and at most `high`. InvalidArgument unless low <= high.

    >>> kw.nn.hardtanh(kw.asarray([-2.0, 0.5, 3.0])).numpy()
    array([-1. ,  0.5,  1. ], dtype=float32)
    """
    return _activate("hardtanh", x, *hardtanh_bounds(low, high))


def hardtanh_backward(grad: Any, x: Any, low: float = -1.0, high: float = 1.0) -> Array:
    """The gradient through hardtanh(), with the same errors.

    >>> kw.nn.hardtanh_backward(kw.ones(2), kw.asarray([0.5, 3.0])).numpy()
    array([1., 0.], dtype=float32)
    """
    return _activate_backward("hardtanh", grad, x, *hardtanh_bounds(low, high))


def leaky_relu(x: Any, slope: float = 0.01) -> Array:
    """x above 0, slope * x below.

    >>> kw.nn.leaky_relu(kw.asarray([-2.0, 3.0]), 0.5).numpy()
    array([-1.,  3.], dtype=float32)
    """
    return _activate("leaky_relu", x, slope, 1.0)


def leaky_relu_backward(grad: Any, x: Any, slope: float = 0.01) -> Array:
    """The gradient through leaky_relu().

    >>> kw.nn.leaky_relu_backward(kw.ones(2), kw.asarray([-2.0, 3.0]), 0.5).numpy()
    array([0.5, 1. ], dtype=float32)
    """
    return _activate_backward("leaky_relu", grad, x, slope, 1.0)


def elu(x: Any, alpha: float = 1.0) -> Array:
    """x above 0, alpha * (exp(x) - 1) below.

    >>> kw.nn.elu(kw.asarray([-100.0, 3.0])).numpy()
    array([-1.,  3.], dtype=float32)
    """
    return _activate("elu", x, alpha, 1.0)


def elu_backward(grad: Any, x: Any, alpha: float = 1.0) -> Array:
    """The gradient through elu().

    >>> kw.nn.elu_backward(kw.ones(2), kw.asarray([-100.0, 3.0])).numpy().round(4)
    array([0., 1.], dtype=float32)
    """
    return _activate_backward("elu", grad, x, alpha, 1.0)


def celu(x: Any, alpha: float = 1.0) -> Array:
    """x above 0, alpha * (exp(x / alpha) - 1) below.

    >>> kw.nn.celu(kw.asarray([-100.0, 3.0])).numpy()
    array([-1.,  3.], dtype=float32)
    """
    return _activate("elu", x, alpha, alpha)


def celu_backward(grad: Any, x: Any, alpha: float = 1.0) -> Array:
    """The gradient through celu().

    >>> kw.nn.celu_backward(kw.ones(2), kw.asarray([-100.0, 3.0])).numpy().round(4)
    array([0., 1.], dtype=float32)
    """
    return _activate_backward("elu", grad, x, alpha, alpha)


def selu(x: Any) -> Array:
    """1.0507 * elu(x, 1.67326), the constants of self-normalising networks.

    >>> kw.nn.selu(kw.asarray([0.0, 1.0])).numpy().round(4)
    array([0.    , 1.0507], dtype=float32)
    """
    return _activate("selu", x, 1.0, 1.0)


def selu_backward(grad: Any, x: Any) -> Array:
    """The gradient through selu().

    >>> kw.nn.selu_backward(kw.ones(1), kw.asarray([1.0])).numpy().round(4)
    array([1.0507], dtype=float32)
    """
    return _activate_backward("selu", grad, x, 1.0, 1.0)


def sigmoid(x: Any) -> Array:
    """1 / (1 + exp(-x)).

    >>> kw.nn.sigmoid(kw.asarray([-100.0, 0.0, 100.0])).numpy().round(4)
    array([0. , 0.5, 1. ], dtype=float32)
    """
    return _activate("sigmoid", x, 1.0, 1.0)


def sigmoid_backward(grad: Any, x: Any) -> Array:
    """The gradient through sigmoid().

    >>> kw.nn.sigmoid_backward(kw.ones(1), kw.zeros(1)).numpy()
    array([0.25], dtype=float32)
    """
    return _activate_backward("sigmoid", grad, x, 1.0, 1.0)


def log_sigmoid(x: Any) -> Array:
    """log(sigmoid(x)), without its underflow.

    >>> kw.nn.log_sigmoid(kw.asarray([0.0])).numpy().round(4)
    array([-0.6931], dtype=float32)
    """
    return _activate("log_sigmoid", x, 1.0, 1.0)


def log_sigmoid_backward(grad: Any, x: Any) -> Array:
    """The gradient through log_sigmoid().

    >>> kw.nn.log_sigmoid_backward(kw.ones(1), kw.zeros(1)).numpy()
    array([0.5], dtype=float32)
    """
    return _activate_backward("log_sigmoid", grad, x, 1.0, 1.0)


def tanh(x: Any) -> Array:
    """tanh(x).

    >>> kw.nn.tanh(kw.asarray([-100.0, 0.0, 100.0])).numpy()
    array([-1.,  0.,  1.], dtype=float32)
    """
    return _activate("tanh", x, 1.0, 1.0)


def tanh_backward(grad: Any, x: Any) -> Array:
    """The gradient through tanh().

    >>> kw.nn.tanh_backward(kw.ones(1), kw.zeros(1)).numpy()
    array([1.], dtype=float32)
    """
    return _activate_backward("tanh", grad, x, 1.0, 1.0)


def silu(x: Any) -> Array:
    """x * sigmoid(x), also called swish.

    >>> kw.nn.silu(kw.asarray([0.0, 100.0])).numpy()
    array([  0., 100.], dtype=float32)
    """
    return _activate("silu", x, 1.0, 1.0)


def silu_backward(grad: Any, x: Any) -> Array:
    """The gradient through silu().

    >>> kw.nn.silu_backward(kw.ones(1), kw.zeros(1)).numpy()
    array([0.5], dtype=float32)
    """
    return _activate_backward("silu", grad, x, 1.0, 1.0)


def gelu(x: Any, approximate: GeluForm = "none") -> Array:
    """x times the chance that a standard normal variable is below x.

    `approximate="tanh"`: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) in its place.

    >>> kw.nn.gelu(kw.asarray([-1.0, 0.0, 1.0])).numpy().round(4)
    array([-0.1587,  0.    ,  0.8413], dtype=float32)
    """
    return _activate(gelu_kind(approximate), x, 1.0, 1.0)


def gelu_backward(grad: Any, x: Any, approximate: GeluForm = "none") -> Array:
    """The gradient through gelu().

    >>> kw.nn.gelu_backward(kw.ones(1), kw.zeros(1)).numpy()
    array([0.5], dtype=float32)
    """
    return _activate_backward(gelu_kind(approximate), grad, x, 1.0, 1.0)


def quick_gelu(x: Any) -> Array:
    """x * sigmoid(1.702 x).

    >>> kw.nn.quick_gelu(kw.asarray([0.0, 100.0])).numpy()
    array([  0., 100.], dtype=float32)
    """
    return _activate("quick_gelu", x, 1.0, 1.0)


def quick_gelu_backward(grad: Any, x: Any) -> Array:
    """The gradient through quick_gelu().

    >>> kw.nn.quick_gelu_backward(kw.ones(1), kw.zeros(1)).numpy()
    array([0.5], dtype=float32)
    """
    return _activate_backward("quick_gelu", grad, x, 1.0, 1.0)


def softplus(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Array:
    """log(1 + exp(beta x)) / beta; x itself where beta x is above `threshold`.

    >>> kw.nn.softplus(kw.asarray([0.0, 100.0])).numpy().round(4)
    array([  0.6931, 100.    ], dtype=float32)
    """
    return _activate("softplus", x, beta, threshold)


def softplus_backward(grad: Any, x: Any, beta: float = 1.0, threshold: float = 20.0) -> Array:
    """The gradient through softplus().

    >>> kw.nn.softplus_backward(kw.ones(1), kw.zeros(1)).numpy()
    array([0.5], dtype=float32)
    """
    return _activate_backward("softplus", grad, x, beta, threshold)


def softsign(x: Any) -> Array:
    """x / (1 + abs(x)).

    >>> kw.nn.softsign(kw.asarray([-1.0, 3.0])).numpy()
    array([-0.5 ,  0.75], dtype=float32)
    """
    return _activate("softsign", x, 1.0, 1.0)


def softsign_backward(grad: Any, x: Any) -> Array:
    """The gradient through softsign().

    >>> kw.nn.softsign_backward(kw.ones(1), kw.asarray([-1.0])).numpy()
    array([0.25], dtype=float32)
    """
    return _activate_backward("softsign", grad, x, 1.0, 1.0)


def mish(x: Any) -> Array:
    """x * tanh(softplus(x)).

    >>> kw.nn.mish(kw.asarray([0.0, 100.0])).numpy()
    array([  0., 100.], dtype=float32)
    """
    return _activate("mish", x, 1.0, 1.0)


def mish_backward(grad: Any, x: Any) -> Array:
    """The gradient through mish().

    >>> kw.nn.mish_backward(kw.ones(1), kw.zeros(1)).numpy().round(4)
    array([0.6], dtype=float32)
    """
    return _activate_backward("mish", grad, x, 1.0, 1.0)


def hardswish(x: Any) -> Array:
    """x * clip(x + 3, 0, 6) / 6.

    >>> kw.nn.hardswish(kw.asarray([-4.0, 0.0, 4.0])).numpy()
    array([0., 0., 4.], dtype=float32)
    """
    return _activate("hardswish", x, 1.0, 1.0)


def hardswish_backward(grad: Any, x: Any) -> Array:
    """The gradient through hardswish().

    >>> kw.nn.hardswish_backward(kw.ones(3), kw.asarray([-4.0, 0.0, 4.0])).numpy()
    array([0. , 0.5, 1. ], dtype=float32)
    """
    return _activate_backward("hardswish", grad, x, 1.0, 1.0)


def hardsigmoid(x: Any) -> Array:
    """clip(x + 3, 0, 6) / 6.

    >>> kw.nn.hardsigmoid(kw.asarray([-4.0, 0.0, 4.0])).numpy()
    array([0. , 0.5, 1. ], dtype=float32)
    """
    return _activate("hardsigmoid", x, 1.0, 1.0)


def hardsigmoid_backward(grad: Any, x: Any) -> Array:
    """The gradient through hardsigmoid().

    >>> kw.nn.hardsigmoid_backward(kw.ones(2), kw.asarray([0.0, 4.0])).numpy().round(4)
    array([0.1667, 0.    ], dtype=float32)
    """
    return _activate_backward("hardsigmoid", grad, x, 1.0, 1.0)
