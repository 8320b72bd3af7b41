"""Bins: their edges, the bin of each element, and counts in two dimensions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kernwright import _core
from kernwright._array.counting import _host_edges, _weights
from kernwright._array.operands import device_array, holds_somewhere
from kernwright._array.sorting import searchsorted
from kernwright._core import Array, _from_numpy
from kernwright.errors import ArgumentError, InvalidArgument

__all__ = ["digitize", "histogram2d", "histogram_bin_edges"]


class Histogram2d(NamedTuple):
    """The number of points in each bin, and the edges of both axes."""

    hist: Array
    x_edges: Array
    y_edges: Array


def digitize(x: Any, bins: Any, right: bool = False) -> Array:
    """The bin of each element: i with bins[i - 1] <= x < bins[i], with `right` i with
    bins[i - 1] < x <= bins[i]; 0 below all, len(bins) above. int64 of the shape of `x`. Of bins
    that fall, i with bins[i - 1] > x >= bins[i], and with `right` bins[i - 1] >= x > bins[i].

    InvalidArgument for bins without an order; of an array of the device the call waits for that
    answer. A capture cannot wait: its replays compare the ends of the bins alone.

    >>> kw.digitize(kw.asarray([0.5, 2.0, 9.0]), [1.0, 2.0, 3.0]).numpy()
    array([0, 2, 3])
    """
    import kernwright as kw

    array: Array = device_array(x)
    if array.dtype.kind == "c":
        raise ArgumentError("digitize() of complex numbers: they have no order")
    side = "left" if right else "right"
    if isinstance(bins, Array):
        edges = _one_axis(bins, bins.ndim)
        if edges.size < 2:
            return searchsorted(edges, array, side=side)
        if holds_somewhere(edges, lambda: _unordered(edges)):
            raise InvalidArgument("bins rise or fall, and these do both or hold NaN")
        falls = (edges[0] > edges[-1]) | ((edges[0] != edges[0]) & (edges[-1] == edges[-1]))
        found = searchsorted(kw.where(falls, kw.flip(edges), edges), array, side=side)
        return kw.where(falls, edges.size - found, found)
    host = np.asarray(bins)
    _one_axis(host, host.ndim)
    if host.dtype.kind not in "iufb" or not (_rises(host) or _rises(host[::-1])):
        raise InvalidArgument(f"bins rise or fall, got {bins!r:.60}")
    if not _rises(host):
        edges = _from_numpy(np.ascontiguousarray(host[::-1]), array.device)
        return host.size - searchsorted(edges, array, side=side)
    return searchsorted(_from_numpy(host, array.device), array, side=side)


def _rises(host: np.ndarray[Any, Any]) -> bool:
    return bool(np.all((host[:-1] <= host[1:]) | (host[1:] != host[1:])))


def _unordered(edges: Array) -> Array:
    import kernwright as kw

    before, after = edges[:-1], edges[1:]
    rises, falls = before <= after, before >= after
    if edges.dtype.kind == "f":  # NaN is sorted behind all numbers
        rises, falls = rises | kw.isnan(after), falls | kw.isnan(before)
    return ~(kw.all(rises) | kw.all(falls))


def _one_axis(bins: Any, ndim: int) -> Any:
    if ndim != 1:
        raise InvalidArgument(f"bins have one dimension, got {ndim}")
    return bins


def histogram_bin_edges(
    x: Any, bins: Any = 10, range: tuple[float, float] | None = None, weights: Any = None
) -> Array:
    """The edges that histogram() would count with; `weights` change nothing. Without `range` the
    call waits for the lowest and the highest element.

    >>> kw.histogram_bin_edges(kw.asarray([0.0, 2.0]), bins=2).numpy()
    array([0., 1., 2.], dtype=float32)
    """
    array: Array = device_array(x)
    if array.dtype.kind == "c":
        raise ArgumentError("histogram_bin_edges() of complex numbers: they have no order")
    if isinstance(bins, Array):
        return _one_axis(bins, bins.ndim)  # type: ignore[no-any-return]
    return _from_numpy(_host_edges(array, bins, range)[0], array.device)


def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None
) -> Histogram2d:
    """How many of the points (x, y) lie in each bin, float64 of shape (bins of x, bins of y), and
    the edges of both axes.

    `bins`: a number for both axes, a pair of numbers or of edges, or the edges of both; `range`:
    ((low, high), (low, high)), else from the lowest to the highest element: the call waits for
    them. Edges, `weights` and `density` as for histogram(). InvalidArgument for points of other
    shapes than (n,).

    >>> x, y = kw.asarray([0.0, 1.0, 1.0]), kw.asarray([0.0, 0.0, 1.0])
    >>> kw.histogram2d(x, y, bins=2).hist.numpy()
    array([[1., 0.],
           [1., 1.]])
    """
    points = [device_array(x), device_array(y, "y")]
    if points[0].ndim != 1 or points[0].shape != points[1].shape:
        raise InvalidArgument(
            f"Incompatible dimensions: histogram2d() of shapes {points[0].shape} and "
            f"{points[1].shape}; both are (n,)"
        )
    wanted = _each(bins)
    limits = (None, None) if range is None else tuple(range)
    edges = [_edges(*each) for each in zip(points, wanted, limits, strict=True)]
    return _counted(points, edges, bool(density), weights)


def _each(bins: Any) -> list[Any]:
    """For each of two axes."""
    if isinstance(bins, (Array, int, np.integer)):
        return [bins, bins]
    given = list(bins)
    return given if len(given) == 2 else [bins, bins]


def _edges(x: Array, bins: Any, limits: Any) -> Array:
    if isinstance(bins, Array):
        return _one_axis(bins, bins.ndim)  # type: ignore[no-any-return]
    return _from_numpy(_host_edges(x, bins, limits)[0].astype(np.float64), x.device)


def _counted(points: list[Array], edges: list[Array], density: bool, weights: Any) -> Histogram2d:
    import kernwright as kw

    columns = edges[1].size - 1
    count = (edges[0].size - 1) * columns
    places, inside = [], None
    for x, edge in zip(points, edges, strict=True):
        at = searchsorted(edge, x, side="right") - kw.equal(x, edge[-1]).astype(np.int64)
        within = kw.logical_and(at > 0, at < edge.size)
        inside = within if inside is None else kw.logical_and(inside, within)
        places.append(at - 1)
    # Points outside of all bins are counted in one more, behind the last.
    flat = kw.where(inside, places[0] * columns + places[1], count)
    given = None if weights is None else _weights(weights, points[0])
    sums = _core._bincount(flat, count + 1, given)[:count].astype(np.float64)
    hist = sums.reshape(-1, columns)
    if density:
        areas = kw.diff(edges[0])[:, None] * kw.diff(edges[1])[None, :]
        hist = hist / areas / kw.sum(hist)
    return Histogram2d(hist, edges[0], edges[1])
