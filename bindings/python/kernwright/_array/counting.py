"""Which elements are set, how often values are there, and how many lie in each bin."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from kernwright import _core
from kernwright._array.sorting import _operand, _whole
from kernwright._core import Array, _from_numpy
from kernwright.errors import ArgumentError, InvalidArgument

__all__ = ["argwhere", "bincount", "flatnonzero", "histogram", "nonzero"]


class Histogram(NamedTuple):
    """The number of elements in each bin, and the edges of the bins, one more."""

    hist: Array
    bin_edges: Array


def nonzero(x: Array, /) -> tuple[Array, ...]:
    """Where the elements of `x` are not 0: for each dimension the int64 indices, row-major order.

    Any dtype. As their number is known on the device only, the call waits for it, and raises
    CaptureError while the stream is being captured. InvalidArgument without dimensions.

    >>> kw.nonzero(kw.asarray([0, 3, 0, 4]))[0].numpy()
    array([1, 3])
    """
    return indices_of(x, "x", "nonzero()")


def indices_of(x: Array, name: str, call: str) -> tuple[Array, ...]:
    """nonzero() of the argument `name` of `call`."""
    x = _operand(x, name)
    if x.ndim == 0:
        raise InvalidArgument(
            f"{call} of an array without dimensions: it has no indices; reshape it to (1,)"
        )
    places = _core._nonzero(x, False)
    return tuple(places[d] for d in range(x.ndim))


def argwhere(x: Array, /) -> Array:
    """Where the elements of `x` are not 0: one row of indices each, int64 of shape (count, ndim).

    Waits for the count, as nonzero() does.

    >>> kw.argwhere(kw.asarray([[0, 5], [7, 0]])).numpy()
    array([[0, 1],
           [1, 0]])
    """
    return _core._nonzero(x, True)


def flatnonzero(x: Array, /) -> Array:
    """Where the elements of `x`, counted row-major, are not 0: int64, rising.

    Waits for the count, as nonzero() does.

    >>> kw.flatnonzero(kw.asarray([[0, 5], [7, 0]])).numpy()
    array([1, 2])
    """
    return _core._flatnonzero(x)


def bincount(x: Array, /, weights: Array | None = None, minlength: int = 0) -> Array:
    """How often each of 0, 1, ... is among the integers `x`, up to the largest of them: int64.

    At least `minlength` counts. With `weights`, one real number for each element, their sums by
    value in float64: always in the same order, so that equal calls give equal results. `x` has one
    dimension and holds nothing below 0. The call waits for the largest element, and raises
    CaptureError while the stream is being captured. InvalidArgument for negative values and wrong
    shapes, ArgumentError for other dtypes.

    >>> kw.bincount(kw.asarray([0, 2, 2])).numpy()
    array([1, 0, 2])
    """
    x = _operand(x, "x")
    if x.ndim != 1:
        raise InvalidArgument(f"bincount() counts in one dimension, got shape {x.shape}")
    if x.dtype.kind not in "iub":
        raise ArgumentError(
            f'bincount() counts integers, got {x.dtype}; cast it with .astype("int64")'
        )
    minlength = _whole(minlength, "minlength")
    if minlength < 0:
        raise InvalidArgument(f"minlength is {minlength}, and must not be negative")
    bins = minlength
    if x.size > 0:
        low, high = (int(value) for value in _core._extremes(x))
        if low < 0:
            raise InvalidArgument(f"bincount() needs values of at least 0, got {low}")
        bins = max(minlength, high + 1)
    return _core._bincount(x, bins, None if weights is None else _weights(weights, x))


def histogram(
    x: Array,
    /,
    bins: Any = 10,
    range: tuple[float, float] | None = None,
    density: bool = False,
    weights: Array | None = None,
) -> Histogram:
    """The number of elements of `x` in each bin, and the edges of the bins; NumPy's rules.

    `bins` is a number of bins of equal width over `range` (None: from the lowest to the highest
    element; the call waits for them), or their rising edges: numbers, or an array of the device,
    which is not looked at. Bin i holds edges[i] <= x < edges[i + 1], the last one its upper edge
    too; what lies outside, and NaN where `range` is given, counts nowhere. Counts are int64; with
    `weights`, of the shape of `x`, they are sums in the weights' dtype, added in float64 in the
    same order always; with `density` float64, scaled so that their integral is 1. InvalidArgument
    for falling edges, a range without finite ends, wrong shapes; ArgumentError for complex numbers.

    >>> kw.histogram(kw.asarray([0.0, 1.0, 1.5, 2.0]), bins=2)[0].numpy()
    array([1, 3])
    """
    x = _operand(x, "x")
    if x.dtype.kind == "c":
        raise ArgumentError("histogram() of complex numbers: they have no order")
    scale = 0.0
    if isinstance(bins, Array):
        shown = bins
        if shown.ndim != 1 or shown.size < 2:
            raise InvalidArgument(f"edges have one dimension and two or more of them: {bins.shape}")
        edges = shown.astype(np.float64, copy=False)
    elif isinstance(bins, str):
        raise ArgumentError(f"bins is {bins!r}: give a number of bins, or their edges")
    else:
        host, scale = _host_edges(x, bins, range)
        shown = _from_numpy(host, x.device)
        edges = _from_numpy(host.astype(np.float64), x.device)
    if weights is None:
        return Histogram(_core._histogram(x, edges, scale, None, bool(density)), shown)
    dtype = _operand(weights, "weights").dtype
    sums = _core._histogram(x, edges, scale, _weights(weights, x), bool(density))
    return Histogram(sums if density else sums.astype(dtype, copy=False), shown)


def _weights(weights: Any, x: Array) -> Array:
    given = _operand(weights, "weights")
    if given.dtype.kind == "c":
        raise ArgumentError("weights are real numbers, got complex ones")
    if given.shape != x.shape:
        raise InvalidArgument(
            f"Incompatible dimensions: weights of shape {given.shape} for an array of shape "
            f"{x.shape}"
        )
    return given.astype(np.float64, copy=False)


def _host_edges(
    x: Array, bins: Any, limits: tuple[float, float] | None
) -> tuple[np.ndarray[Any, Any], float]:
    """The edges, and how many bins there are in 1 where their widths are equal."""
    if np.ndim(bins) == 1:
        edges = np.asarray(bins)
        if edges.size < 2 or edges.dtype.kind not in "iuf" or bool(np.any(edges[:-1] > edges[1:])):
            raise InvalidArgument(
                f"edges of bins are two or more numbers that rise, got {bins!r:.60}"
            )
        return edges, 0.0
    count = _whole(bins, "bins")
    if not 1 <= count < 2**31:
        raise InvalidArgument(f"bins is {count}, and must be from 1 to 2^31 - 1")
    low, high = _limits(x, limits)
    edges = np.linspace(low, high, count + 1, dtype=_edge_dtype(x))
    if bool(np.any(edges[:-1] >= edges[1:])):
        raise InvalidArgument(
            f"{count} bins are too many for the range [{low}, {high}] in {edges.dtype}: edges of "
            "neighbours are equal"
        )
    width = float(edges[-1]) - float(edges[0])
    scale = count / width if width > 0 else math.inf
    return edges, scale if math.isfinite(scale) else 0.0


def _edge_dtype(x: Array) -> np.dtype[Any]:
    if x.dtype.kind == "f":
        return x.dtype
    return np.dtype(np.float64 if x.dtype.kind in "iub" else np.float32)


def _limits(x: Array, limits: tuple[float, float] | None) -> tuple[Any, Any]:
    """In the type of `x` where NumPy has it, so that the edges are NumPy's to the last bit."""
    low: Any
    high: Any
    if limits is not None:
        try:
            low, high = limits
            float(low), float(high)
        except (TypeError, ValueError):
            raise ArgumentError(f"range is (low, high), got {limits!r:.60}") from None
        if low > high:
            raise InvalidArgument(f"the range ({low}, {high}) falls: its first number is larger")
    elif x.size == 0:
        low, high = 0.0, 1.0
    else:
        low, high = _core._extremes(x)
        if x.dtype.kind not in "iuf":
            low, high = float(low), float(high)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise InvalidArgument(
            f"the range [{low}, {high}] of a histogram is not finite: give range=(low, high)"
        )
    return (low - 0.5, high + 0.5) if low == high else (low, high)
