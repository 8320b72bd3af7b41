"""Quantiles of elements that have weights."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from kernwright._array.operands import axis_of, device_array
from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument

__all__ = ["weighted", "weights_of"]


def weights_of(weights: Any, x: Array, axis: Any, method: str) -> Array:
    """A weight for each element of `x`: given as such, or as a vector along `axis`."""
    if method != "inverted_cdf":
        raise InvalidArgument(f'weights need method="inverted_cdf", got {method!r}')
    array: Array = device_array(weights, "weights")
    if array.dtype.kind == "c":
        raise ArgumentError(f"weights are real numbers, got {array.dtype}")
    if array.shape == x.shape:
        return array
    if axis is None or isinstance(axis, tuple) or array.ndim != 1:
        raise InvalidArgument(
            f"Incompatible dimensions: weights of shape {array.shape} for an array of shape "
            f"{x.shape}: give one for each element, or a vector along one axis"
        )
    at = axis_of(operator.index(axis), x.ndim)
    if array.size != x.shape[at]:
        raise InvalidArgument(
            f"Incompatible dimensions: {array.size} weights along axis {at} of shape {x.shape}"
        )
    return array.reshape((-1,) + (1,) * (x.ndim - at - 1))._broadcast(x.shape)


def weighted(rows: Array, weights: Array, shares: Array, skip_nan: bool) -> Array:
    """[rows, shares]: the first element in order up to which the weights are a share of all."""
    import kernwright as kw

    wide = weights.astype(np.float64, copy=False)
    if skip_nan and rows.dtype.kind not in "iub":
        wide = kw.where(kw.isnan(rows), 0.0, wide)
    order = kw.argsort(rows)
    sums = kw.cumulative_sum(kw.take_along_axis(wide, order, -1), axis=-1)
    parts = sums / sums[..., -1:]
    parts = kw.where(parts == 0, -1.0, parts)  # an element of weight 0 in front is never taken
    places = kw.sum(parts[..., None] < shares, axis=-2)
    places = kw.minimum(places, rows.shape[-1] - 1)
    return kw.take_along_axis(kw.take_along_axis(rows, order, -1), places, -1)
