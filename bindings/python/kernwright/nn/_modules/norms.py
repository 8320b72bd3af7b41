"""Norms with their weights, named and shaped as torch's."""

from __future__ import annotations

import math
from typing import Any

import kernwright
from kernwright._core import Array
from kernwright.errors import InvalidArgument
from kernwright.nn import _norm
from kernwright.nn._modules import settings
from kernwright.nn._modules.module import Module

__all__ = ["GroupNorm", "LayerNorm", "RMSNorm"]


class RMSNorm(Module):
    """x / sqrt(mean(x * x) + eps) * weight over the last axes of `normalized_shape`; the weight
    begins as ones. Raises InvalidArgument for an `eps` that is not above 0.

    >>> kw.nn.RMSNorm(8)(kw.ones((5, 8))).shape
    (5, 8)
    """

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-6, elementwise_affine: bool = True, *,
        dtype: Any = None, device: Any = None,
    ) -> None:  # fmt: skip
        self.normalized_shape = settings.extents(normalized_shape, "normalized_shape")
        self.eps = settings.positive(eps, "eps")
        ones = settings.require_float(kernwright.ones(self.normalized_shape, dtype, device=device))
        self.weight = ones if settings.flag(elementwise_affine, "elementwise_affine") else None

    def __call__(self, x: Any) -> Array:
        rows = _rows_of(x, self.normalized_shape, type(self).__name__)
        made: Array = _norm.rms_norm(rows, _flat(self.weight), self.eps)
        return made.reshape(x.shape)

    def extra_repr(self) -> str:
        """The extents and settings that repr() shows."""
        return f"{self.normalized_shape}, eps={self.eps}, affine={self.weight is not None}"


class LayerNorm(Module):
    """(x - mean(x)) / sqrt(var(x) + eps) * weight + bias over the last axes of `normalized_shape`.
    Raises InvalidArgument for an `eps` that is not above 0.

    >>> kw.nn.LayerNorm(8)(kw.ones((5, 8))).shape
    (5, 8)
    """

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True,
        bias: bool = True, *, dtype: Any = None, device: Any = None,
    ) -> None:  # fmt: skip
        self.normalized_shape = settings.extents(normalized_shape, "normalized_shape")
        self.eps = settings.positive(eps, "eps")
        has_weight = settings.flag(elementwise_affine, "elementwise_affine")
        has_bias = settings.flag(bias, "bias") and has_weight
        ones = settings.require_float(kernwright.ones(self.normalized_shape, dtype, device=device))
        self.weight = ones if has_weight else None
        self.bias = kernwright.zeros_like(ones) if has_bias else None

    def __call__(self, x: Any) -> Array:
        rows = _rows_of(x, self.normalized_shape, type(self).__name__)
        made: Array = _norm.layer_norm(rows, _flat(self.weight), _flat(self.bias), self.eps)
        return made.reshape(x.shape)

    def extra_repr(self) -> str:
        """The extents and settings that repr() shows."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, affine={self.weight is not None}, "
            f"bias={self.bias is not None}"
        )


class GroupNorm(Module):
    """The same over groups of channels of (batch, channels, ...), with a weight and a bias for each
    channel. Raises InvalidArgument for an `eps` that is not above 0.

    >>> kw.nn.GroupNorm(2, 4)(kw.ones((1, 4, 3))).shape
    (1, 4, 3)
    """

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, *,
        dtype: Any = None, device: Any = None,
    ) -> None:  # fmt: skip
        channels = settings.extent(num_channels, "num_channels")
        self.num_groups = settings.extent(num_groups, "num_groups")
        if channels % self.num_groups != 0:
            raise InvalidArgument(
                f"num_groups divides num_channels, got {num_groups} and {num_channels}"
            )
        self.eps = settings.positive(eps, "eps")
        is_affine = settings.flag(affine, "affine")
        ones = settings.require_float(kernwright.ones(channels, dtype, device=device))
        self.weight = ones if is_affine else None
        self.bias = kernwright.zeros_like(ones) if is_affine else None

    def __call__(self, x: Any) -> Array:
        return _norm.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The extents and settings that repr() shows."""
        return f"{self.num_groups}, eps={self.eps}, affine={self.weight is not None}"


def _rows_of(x: Array, shape: tuple[int, ...], name: str) -> Array:
    """x with its normalised axes as one."""
    if tuple(x.shape[x.ndim - len(shape) :]) != shape or x.ndim < len(shape):
        raise InvalidArgument(f"{name} of {shape} takes such last axes, got {x.shape}")
    if len(shape) == 1:
        return x
    return x.reshape((*x.shape[: x.ndim - len(shape)], math.prod(shape)))


def _flat(weight: Array | None) -> Array | None:
    return weight if weight is None or weight.ndim == 1 else weight.reshape(-1)
