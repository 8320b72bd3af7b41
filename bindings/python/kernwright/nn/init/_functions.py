"""The initialisers of kw.nn.init."""

from __future__ import annotations

import math
from typing import Any, Literal

import kernwright
from kernwright._array.operands import extents_of
from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument

__all__ = [
    "gain",
    "kaiming_normal",
    "kaiming_uniform",
    "normal",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "xavier_normal",
    "xavier_uniform",
]

Mode = Literal["fan_in", "fan_out"]
_GAINS = {
    "linear": 1.0, "sigmoid": 1.0, "tanh": 5.0 / 3.0, "relu": math.sqrt(2.0), "selu": 0.75,
}  # fmt: skip


def normal(
    shape: Any, mean: float = 0.0, std: float = 1.0, *, dtype: Any = None, seed: int | None = None,
    device: Any = None,
) -> Array:  # fmt: skip
    """Normal numbers of this mean and standard deviation.

    >>> kw.nn.init.normal((2, 3), std=0.02, seed=1).shape
    (2, 3)
    """
    return kernwright.random.normal(shape, dtype, mean=mean, std=std, seed=seed, device=device)


def uniform(
    shape: Any, low: float = 0.0, high: float = 1.0, *, dtype: Any = None, seed: int | None = None,
    device: Any = None,
) -> Array:  # fmt: skip
    """Numbers from `low` up to and without `high`.

    >>> bool((kw.nn.init.uniform(9, -1, 1, seed=1) >= -1).all())
    True
    """
    return kernwright.random.uniform(shape, dtype, low=low, high=high, seed=seed, device=device)


def truncated_normal(
    shape: Any, mean: float = 0.0, std: float = 1.0, low: float = -2.0, high: float = 2.0, *,
    dtype: Any = None, seed: int | None = None, device: Any = None,
) -> Array:  # fmt: skip
    """Normal numbers, given that they lie between the values `low` and `high`.

    >>> bool((kw.abs(kw.nn.init.truncated_normal(99, seed=1)) <= 2).all())
    True
    """
    return kernwright.random.truncated_normal(
        shape, dtype, mean=mean, std=std, low=low, high=high, seed=seed, device=device
    )


def xavier_uniform(
    shape: Any, gain: float = 1.0, *, dtype: Any = None, seed: int | None = None,
    device: Any = None,
) -> Array:  # fmt: skip
    """Uniform numbers within gain * sqrt(6 / (fan_in + fan_out)) (X. Glorot and Y. Bengio,
    "Understanding the difficulty of training deep feedforward neural networks", 2010).

    >>> bool((kw.abs(kw.nn.init.xavier_uniform((4, 2), seed=1)) <= 1).all())
    True
    """
    bound = gain * math.sqrt(6.0 / sum(_fans(shape)))
    return uniform(shape, -bound, bound, dtype=dtype, seed=seed, device=device)


def xavier_normal(
    shape: Any, gain: float = 1.0, *, dtype: Any = None, seed: int | None = None,
    device: Any = None,
) -> Array:  # fmt: skip
    """Normal numbers of the standard deviation gain * sqrt(2 / (fan_in + fan_out)).

    >>> kw.nn.init.xavier_normal((4, 2), seed=1).shape
    (4, 2)
    """
    std = gain * math.sqrt(2.0 / sum(_fans(shape)))
    return normal(shape, 0.0, std, dtype=dtype, seed=seed, device=device)


def kaiming_uniform(
    shape: Any, a: float = 0.0, mode: Mode = "fan_in", nonlinearity: str = "leaky_relu", *,
    dtype: Any = None, seed: int | None = None, device: Any = None,
) -> Array:  # fmt: skip
    """Uniform numbers within gain(nonlinearity, a) * sqrt(3 / fan) (K. He et al., "Delving deep
    into rectifiers", 2015).

    >>> kw.nn.init.kaiming_uniform((4, 2), nonlinearity="relu", seed=1).shape
    (4, 2)
    """
    bound = math.sqrt(3.0) * gain(nonlinearity, a) / math.sqrt(_fan(shape, mode))
    return uniform(shape, -bound, bound, dtype=dtype, seed=seed, device=device)


def kaiming_normal(
    shape: Any, a: float = 0.0, mode: Mode = "fan_in", nonlinearity: str = "leaky_relu", *,
    dtype: Any = None, seed: int | None = None, device: Any = None,
) -> Array:  # fmt: skip
    """Normal numbers of the standard deviation gain(nonlinearity, a) / sqrt(fan).

    >>> kw.nn.init.kaiming_normal((4, 2), nonlinearity="relu", seed=1).shape
    (4, 2)
    """
    std = gain(nonlinearity, a) / math.sqrt(_fan(shape, mode))
    return normal(shape, 0.0, std, dtype=dtype, seed=seed, device=device)


def orthogonal(
    shape: Any, gain: float = 1.0, *, dtype: Any = None, seed: int | None = None,
    device: Any = None,
) -> Array:  # fmt: skip
    """A matrix (shape[0], the product of the rest) times `gain`, whose rows are orthonormal, or its
    columns if there are more rows: the Q of normal numbers, its signs those of R's diagonal
    (A. Saxe et al., "Exact solutions to the nonlinear dynamics of learning", 2013).

    >>> q = kw.nn.init.orthogonal((3, 5), seed=1)
    >>> kw.round(q @ q.T, 3).numpy() + 0.0
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    extents = extents_of(shape)
    if len(extents) < 2:
        raise InvalidArgument(f"an orthogonal array has two axes at least, got {extents}")
    rows, columns = extents[0], math.prod(extents[1:])
    wide = "float64" if dtype == "float64" else "float32"
    drawn = normal((max(rows, columns), min(rows, columns)), dtype=wide, seed=seed, device=device)
    q, r = kernwright.linalg.qr(drawn)
    signs = kernwright.where(kernwright.linalg.diagonal(r) < 0, -1.0, 1.0).astype(wide)
    q = q * signs * gain
    made = (q if rows >= columns else q.T).reshape(extents)
    return made.astype(dtype or kernwright.float32)


def gain(nonlinearity: str, param: float | None = None) -> float:
    """How much larger weights are in front of a nonlinearity: 1 for "linear" and "sigmoid", 5/3 for
    "tanh", sqrt(2) for "relu", 3/4 for "selu", sqrt(2 / (1 + param^2)) for "leaky_relu" of this
    slope (0.01).

    >>> kw.nn.init.gain("linear")
    1.0
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else float(param)
        return math.sqrt(2.0 / (1.0 + slope * slope))
    if nonlinearity not in _GAINS:
        names = ", ".join(map(repr, (*_GAINS, "leaky_relu")))
        raise ArgumentError(f"nonlinearity is one of {names}, got {nonlinearity!r:.60}")
    return _GAINS[nonlinearity]


def _fans(shape: Any) -> tuple[int, int]:
    """fan_in and fan_out."""
    extents = extents_of(shape)
    if len(extents) < 2:
        raise InvalidArgument(f"fan_in and fan_out take two axes at least, got {extents}")
    field = math.prod(extents[2:])
    if 0 in extents:
        raise InvalidArgument(f"there are no weights in {extents} to draw")
    return extents[1] * field, extents[0] * field


def _fan(shape: Any, mode: Mode) -> int:
    if mode not in ("fan_in", "fan_out"):
        raise ArgumentError(f'mode is "fan_in" or "fan_out", got {mode!r:.60}')
    return _fans(shape)[mode == "fan_out"]
