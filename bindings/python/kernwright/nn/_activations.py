"""Activations: functions of every element of an array of real floats, of any shape and strides.

The result is a new row-major array of the same shape and dtype. float16, bfloat16 and the 8-bit
floats are computed in float32, float64 in float64. Other dtypes raise ArgumentError. The gradients
are in the functions of the same name with `_backward`.

>>> import numpy as np, kernwright as kw
>>> kw.nn.relu(kw.asarray(np.array([-1.0, 2.0], np.float32))).numpy().tolist()
[0.0, 2.0]
"""

from __future__ import annotations

from typing import Any, Literal

from kernwright._core import Array, _activate
from kernwright.errors import ArgumentError, InvalidArgument

__all__ = [
    "celu",
    "elu",
    "gelu",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "log_sigmoid",
    "mish",
    "quick_gelu",
    "relu",
    "relu2",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softplus",
    "softsign",
    "tanh",
]

GeluForm = Literal["none", "tanh"]


def gelu_kind(approximate: str) -> str:
    """The name of that form of gelu among the kernels."""
    kinds = {"none": "gelu", "tanh": "gelu_tanh"}
    if approximate not in kinds:
        raise ArgumentError(f'approximate is {approximate!r}, and must be "none" or "tanh"')
    return kinds[approximate]


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


def relu2(x: Any) -> Array:
    """max(x, 0) squared.

    >>> kw.nn.relu2(kw.asarray([-2.0, 3.0])).numpy()
    array([0., 9.], dtype=float32)
    """
    return _activate("relu2", x, 1.0, 1.0)


def relu6(x: Any) -> Array:
    """x, at least 0 and at most 6.

    >>> kw.nn.relu6(kw.asarray([-2.0, 3.0, 9.0])).numpy()
    array([0., 3., 6.], dtype=float32)
    """
    return _activate("hardtanh", x, 0.0, 6.0)


def hardtanh(x: Any, low: float = -1.0, high: float = 1.0) -> Array:
    """x, at least `low` and at most `high`. InvalidArgument unless low <= high.

    >>> kw.nn.hardtanh(kw.asarray([-2.0, 0.5, 3.0])).numpy()
    array([-1. ,  0.5,  1. ], dtype=float32)
    """
    return _activate("hardtanh", x, *hardtanh_bounds(low, high))


def leaky_relu(x: Any, slope: float = 0.01) -> Array:
    """x above 0, slope * x below.

    >>> kw.nn.leaky_relu(kw.asarray([-2.0, 3.0]), 0.5).numpy()
    array([-1.,  3.], dtype=float32)
    """
    return _activate("leaky_relu", x, slope, 1.0)


def elu(x: Any, alpha: float = 1.0) -> Array:
    """x above 0, alpha * (exp(x) - 1) below.

    >>> kw.nn.elu(kw.asarray([-100.0, 3.0])).numpy()
    array([-1.,  3.], dtype=float32)
    """
    return _activate("elu", x, alpha, 1.0)


def celu(x: Any, alpha: float = 1.0) -> Array:
    """x above 0, alpha * (exp(x / alpha) - 1) below.

    >>> kw.nn.celu(kw.asarray([-100.0, 3.0])).numpy()
    array([-1.,  3.], dtype=float32)
    """
    return _activate("elu", x, alpha, alpha)


def selu(x: Any) -> Array:
    """1.0507 * elu(x, 1.67326), the constants of self-normalising networks.

    >>> kw.nn.selu(kw.asarray([0.0, 1.0])).numpy().round(4)
    array([0.    , 1.0507], dtype=float32)
    """
    return _activate("selu", x, 1.0, 1.0)


def sigmoid(x: Any) -> Array:
    """1 / (1 + exp(-x)).

    >>> kw.nn.sigmoid(kw.asarray([-100.0, 0.0, 100.0])).numpy().round(4)
    array([0. , 0.5, 1. ], dtype=float32)
    """
    return _activate("sigmoid", x, 1.0, 1.0)


def log_sigmoid(x: Any) -> Array:
    """log(sigmoid(x)), without its underflow.

    >>> kw.nn.log_sigmoid(kw.asarray([0.0])).numpy().round(4)
    array([-0.6931], dtype=float32)
    """
    return _activate("log_sigmoid", x, 1.0, 1.0)


def tanh(x: Any) -> Array:
    """tanh(x).

    >>> kw.nn.tanh(kw.asarray([-100.0, 0.0, 100.0])).numpy()
    array([-1.,  0.,  1.], dtype=float32)
    """
    return _activate("tanh", x, 1.0, 1.0)


def silu(x: Any) -> Array:
    """x * sigmoid(x), also called swish.

    >>> kw.nn.silu(kw.asarray([0.0, 100.0])).numpy()
    array([  0., 100.], dtype=float32)
    """
    return _activate("silu", x, 1.0, 1.0)


def gelu(x: Any, approximate: GeluForm = "none") -> Array:
    """x times the chance that a standard normal variable is below x.

    `approximate="tanh"`: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) in its place.

    >>> kw.nn.gelu(kw.asarray([-1.0, 0.0, 1.0])).numpy().round(4)
    array([-0.1587,  0.    ,  0.8413], dtype=float32)
    """
    return _activate(gelu_kind(approximate), x, 1.0, 1.0)


def quick_gelu(x: Any) -> Array:
    """x * sigmoid(1.702 x).

    >>> kw.nn.quick_gelu(kw.asarray([0.0, 100.0])).numpy()
    array([  0., 100.], dtype=float32)
    """
    return _activate("quick_gelu", x, 1.0, 1.0)


def softplus(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Array:
    """log(1 + exp(beta x)) / beta; x itself where beta x is above `threshold`.

    >>> kw.nn.softplus(kw.asarray([0.0, 100.0])).numpy().round(4)
    array([  0.6931, 100.    ], dtype=float32)
    """
    return _activate("softplus", x, beta, threshold)


def softsign(x: Any) -> Array:
    """x / (1 + abs(x)).

    >>> kw.nn.softsign(kw.asarray([-1.0, 3.0])).numpy()
    array([-0.5 ,  0.75], dtype=float32)
    """
    return _activate("softsign", x, 1.0, 1.0)


def mish(x: Any) -> Array:
    """x * tanh(softplus(x)).

    >>> kw.nn.mish(kw.asarray([0.0, 100.0])).numpy()
    array([  0., 100.], dtype=float32)
    """
    return _activate("mish", x, 1.0, 1.0)


def hardswish(x: Any) -> Array:
    """x * clip(x + 3, 0, 6) / 6.

    >>> kw.nn.hardswish(kw.asarray([-4.0, 0.0, 4.0])).numpy()
    array([0., 0., 4.], dtype=float32)
    """
    return _activate("hardswish", x, 1.0, 1.0)


def hardsigmoid(x: Any) -> Array:
    """clip(x + 3, 0, 6) / 6.

    >>> kw.nn.hardsigmoid(kw.asarray([-4.0, 0.0, 4.0])).numpy()
    array([0. , 0.5, 1. ], dtype=float32)
    """
    return _activate("hardsigmoid", x, 1.0, 1.0)
