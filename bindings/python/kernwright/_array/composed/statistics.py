"""Weighted averages, covariances and ranges of values.

`axis` is an int, a tuple of ints, or None for all axes. With `keepdims` the axes stay with an
extent of 1. Results have the dtype of `x` where that is floating, else float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernwright._array.creation import full
from kernwright._array.operands import axes_of, device_array, holds_somewhere
from kernwright._core import Array, _dtype
from kernwright.errors import ArgumentError, DivisionByZero, InvalidArgument

__all__ = ["average", "corrcoef", "cov", "ptp"]


def ptp(x: Any, axis: Any = None, out: Array | None = None, keepdims: bool = False) -> Array:
    """The largest element minus the smallest one. InvalidArgument of no elements.

    >>> kw.ptp(kw.asarray([3, 9, 5])).item()
    6
    """
    import kernwright as kw

    high, low = kw.max(x, axis, keepdims=keepdims), kw.min(x, axis, keepdims=keepdims)
    return kw.subtract(high, low, out=out)


def average(
    x: Any, axis: Any = None, weights: Any = None, returned: bool = False, *,
    keepdims: bool = False,
) -> Any:  # fmt: skip
    """The mean with weights: sum(x * weights) / sum(weights), and with `returned` also the sums of
    the weights, in a tuple.

    `weights` has the shape of `x`, or the extents of `axis`; InvalidArgument for other shapes.
    DivisionByZero if weights sum to 0: the call waits for their sums. A capture cannot wait, and
    its replays give NaN or inf there.

    >>> kw.average(kw.asarray([1.0, 2.0, 4.0]), weights=kw.asarray([1, 1, 2])).item()
    2.75
    """
    import kernwright as kw

    array: Array = device_array(x)
    axes = tuple(range(array.ndim)) if axis is None else axes_of(axis, array.ndim)
    if weights is None:
        mean = kw.mean(array, axes, keepdims=keepdims)
        if not returned:
            return mean
        count = int(np.prod([array.shape[at] for at in axes], dtype=np.int64))
        return mean, full(mean.shape, count, mean.dtype, device=mean.device)
    given = _weights_of(weights, array, axes)
    dtype = kw.result_type(array, given)
    if dtype.kind in "iub":
        dtype = np.dtype(np.float64)
    total = kw.sum(given, axes, dtype=dtype, keepdims=keepdims)
    if holds_somewhere(total, lambda: total == 0):
        raise DivisionByZero("average() with weights that sum to zero")
    product = kw.multiply(array.astype(dtype, copy=False), given)
    mean = kw.sum(product, axes, keepdims=keepdims) / total
    return (mean, total) if returned else mean


def _weights_of(weights: Any, x: Array, axes: tuple[int, ...]) -> Array:
    """Broadcast to the shape of `x`."""
    given: Array = device_array(weights, "weights")
    if given.shape == x.shape:
        return given
    if given.shape != tuple(x.shape[at] for at in axes):
        raise InvalidArgument(
            f"Incompatible dimensions: weights of shape {given.shape} for axes {axes} of an array "
            f"of shape {x.shape}"
        )
    order = sorted(range(len(axes)), key=lambda i: axes[i])
    shape = tuple(extent if at in axes else 1 for at, extent in enumerate(x.shape))
    return given.transpose(order).reshape(shape)._broadcast(x.shape)


def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None,
    fweights: Any = None, aweights: Any = None, *, dtype: Any = None,
) -> Array:  # fmt: skip
    """The covariances of the rows of `m` (columns unless `rowvar`), and of `y` below them.

    Normalised by N - ddof; ddof is 1, or 0 with `bias`. `fweights` counts observations, `aweights`
    weights them. Floating types stay as they are, others are computed in float64. InvalidArgument
    for more than two axes.

    >>> kw.cov(kw.asarray([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])).numpy()
    array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    import kernwright as kw

    rows = _variables(m, rowvar, "m")
    if y is not None:
        rows = kw.concat([rows, _variables(y, rowvar, "y")])
    if dtype is not None:
        if np.dtype(_dtype(dtype)).kind in "iub":
            raise InvalidArgument(f"covariances are floating or complex numbers, not {dtype}")
        rows = rows.astype(dtype, copy=False)
    elif rows.dtype.kind in "iub":
        rows = rows.astype(np.float64)
    free = (0 if bias else 1) if ddof is None else int(ddof)
    weights = _observation_weights(rows, fweights, aweights)
    if weights is None:
        centred = rows - kw.mean(rows, 1, keepdims=True)
        product = kw.matmul(centred, kw.conj(kw.matrix_transpose(centred)))
        return kw.squeeze(product / max(rows.shape[1] - free, 0))
    total = kw.sum(weights)
    centred = rows - kw.sum(rows * weights, 1, keepdims=True) / total
    factor = total - free
    if aweights is not None and free:
        factor = total - free * kw.sum(weights * device_array(aweights)) / total
    product = kw.matmul(centred * weights, kw.conj(kw.matrix_transpose(centred)))
    return kw.squeeze(product / kw.maximum(factor, 0))


def _variables(m: Any, rowvar: bool, name: str) -> Array:
    array: Array = device_array(m, name)
    if array.ndim > 2:
        raise InvalidArgument(f"{name} has {array.ndim} axes, and may have 2 at most")
    if array.ndim < 2:
        return array.reshape(1, -1)
    return array if rowvar else array.T


def _observation_weights(rows: Array, fweights: Any, aweights: Any) -> Array | None:
    product: Array | None = None
    for given, name in ((fweights, "fweights"), (aweights, "aweights")):
        if given is None:
            continue
        weights: Array = device_array(given, name)
        if weights.shape != rows.shape[1:]:
            raise InvalidArgument(
                f"Incompatible dimensions: {name} of shape {weights.shape} for {rows.shape[1]} "
                "observations"
            )
        if name == "fweights" and weights.dtype.kind not in "iub":
            raise ArgumentError(f"fweights are integers, got {weights.dtype}")
        real = np.dtype(f"f{rows.itemsize // 2}") if rows.dtype.kind == "c" else rows.dtype
        weights = weights.astype(real, copy=False)
        product = weights if product is None else product * weights
    return product


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Array:
    """The correlations of the rows of `x` (columns unless `rowvar`), and of `y` below them: cov()
    divided by the standard deviations.

    >>> kw.corrcoef(kw.asarray([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])).numpy()
    array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    import kernwright as kw

    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    deviation = kw.sqrt(kw.real(kw.linalg.diagonal(c)))
    c = c / deviation[:, None] / deviation[None, :]
    if c.dtype.kind == "c":
        return kw.clip(kw.real(c), -1, 1) + kw.clip(kw.imag(c), -1, 1) * 1j
    return kw.clip(c, -1, 1)
