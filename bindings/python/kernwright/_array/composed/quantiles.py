"""Order statistics: medians, quantiles, percentiles, along any axes.

`axis` is an int, a tuple of ints, or None for all axes. With `keepdims` the axes stay with an
extent of 1. Results have the dtype of `x` where that is floating, else float64.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from kernwright._array.composed.weighted_quantiles import weighted, weights_of
from kernwright._array.creation import asarray, full
from kernwright._array.operands import axes_of, device_array, stored
from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument, OutOfBounds

__all__ = [
    "median",
    "nanmedian",
    "nanpercentile",
    "nanquantile",
    "percentile",
    "quantile",
]


def median(
    x: Any, axis: Any = None, out: Array | None = None, overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:  # fmt: skip
    """The middle element in order, or the mean of the two in the middle; NaN where there is a NaN,
    and of no elements. `overwrite_input` is NumPy's, and changes nothing. ArgumentError for complex
    numbers.

    >>> kw.median(kw.asarray([3.0, 1.0, 2.0, 10.0])).item()
    2.5
    """
    import kernwright as kw

    rows, axes, ndim = _rows(x, axis, "median")
    count = rows.shape[-1]
    if count == 0:
        return _finished(kw.mean(rows, axis=-1), axes, ndim, keepdims, out)
    ordered = kw.sort(rows)
    middle = kw.mean(ordered[..., (count - 1) // 2 : count // 2 + 1], axis=-1)
    if rows.dtype.kind not in "iub":
        last = ordered[..., -1]
        middle = kw.where(kw.isnan(last), last, middle)
    return _finished(middle, axes, ndim, keepdims, out)


def nanmedian(
    x: Any, axis: Any = None, out: Array | None = None, overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:  # fmt: skip
    """The median of the elements that are not NaN; NaN where there is none.

    >>> kw.nanmedian(kw.asarray([3.0, float("nan"), 1.0])).item()
    2.0
    """
    return _quantile(x, 0.5, axis, out, "linear", keepdims, True, "nanmedian")


def quantile(
    x: Any, q: Any, axis: Any = None, out: Array | None = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: bool = False, *, weights: Any = None,
) -> Array:  # fmt: skip
    """The values below which a share `q` in [0, 1] of the elements lies; NaN where there is a NaN.
    OutOfBounds, an IndexError, where there are no elements, as in NumPy.

    `q`: a number, or several, whose shape comes first in that of the result. On the host they are
    checked; on the device a share outside gives NaN. `method` says what stands between two
    elements, by NumPy's names: "linear", "lower", "higher", "nearest", "midpoint", "inverted_cdf",
    "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull",
    "median_unbiased", "normal_unbiased". `weights`, with "inverted_cdf" alone, are of the shape of
    `x`, or a vector along `axis`. `x` stays as it is, also with `overwrite_input`. InvalidArgument
    for other methods and shares outside, ArgumentError for complex numbers.

    >>> kw.quantile(kw.asarray([1.0, 2.0, 3.0, 5.0]), [0.25, 0.5]).numpy()
    array([1.75, 2.5 ], dtype=float32)
    """
    return _quantile(x, q, axis, out, method, keepdims, False, "quantile", weights)


def nanquantile(
    x: Any, q: Any, axis: Any = None, out: Array | None = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: bool = False, *, weights: Any = None,
) -> Array:  # fmt: skip
    """quantile() of the elements that are not NaN; NaN where there is none.

    >>> kw.nanquantile(kw.asarray([1.0, float("nan"), 3.0]), 0.25).item()
    1.5
    """
    return _quantile(x, q, axis, out, method, keepdims, True, "nanquantile", weights)


def percentile(
    x: Any, q: Any, axis: Any = None, out: Array | None = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: bool = False, *, weights: Any = None,
) -> Array:  # fmt: skip
    """quantile() with shares in percent, from 0 to 100.

    >>> kw.percentile(kw.asarray([1.0, 2.0, 3.0]), 50).item()
    2.0
    """
    return _quantile(x, _shares(q, 100), axis, out, method, keepdims, False, "percentile", weights)


def nanpercentile(
    x: Any, q: Any, axis: Any = None, out: Array | None = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: bool = False, *, weights: Any = None,
) -> Array:  # fmt: skip
    """nanquantile() with shares in percent, from 0 to 100.

    >>> kw.nanpercentile(kw.asarray([1.0, float("nan"), 3.0]), 100).item()
    3.0
    """
    return _quantile(
        x, _shares(q, 100), axis, out, method, keepdims, True, "nanpercentile", weights
    )


# ---- Rows of elements in order


def _rows(x: Any, axis: Any, name: str) -> tuple[Array, tuple[int, ...], int]:
    """The reduced axes as one, the last."""
    array: Array = device_array(x)
    if array.dtype.kind == "c":
        raise ArgumentError(f"{name}() of complex numbers: they have no order")
    axes = tuple(range(array.ndim)) if axis is None else axes_of(axis, array.ndim)
    kept = [at for at in range(array.ndim) if at not in axes]
    order = [*kept, *sorted(axes)]
    moved = array.transpose(order) if order else array
    shape = tuple(array.shape[at] for at in kept)
    count = int(np.prod([array.shape[at] for at in axes], dtype=np.int64))
    return moved.reshape((*shape, count)), axes, array.ndim


def _finished(
    made: Array, axes: tuple[int, ...], ndim: int, keepdims: bool, out: Array | None, front: int = 0
) -> Array:
    """With axes of extent 1, and in `out`; `front` axes stand before those of the array."""

    if keepdims:
        every = (*(slice(None),) * front, *(None if at in axes else slice(None)
                                            for at in range(ndim)))  # fmt: skip
        made = made[every]
    return made if out is None else stored(made, out)


def _shares(q: Any, whole: int) -> Any:
    if isinstance(q, Array):
        return q / whole
    return np.asarray(q, np.float64) / whole


def _quantile(
    x: Any, q: Any, axis: Any, out: Array | None, method: str, keepdims: bool, skip_nan: bool,
    name: str, weights: Any = None,
) -> Array:  # fmt: skip
    import kernwright as kw

    if method not in _METHODS:
        raise InvalidArgument(f"method={method!r}: {', '.join(_METHODS)}")
    rows, axes, ndim = _rows(x, axis, name)
    shares, shape = _checked_shares(q, rows, name)
    floating = rows.dtype.kind not in "iub"
    dtype = rows.dtype if floating else np.dtype(np.float64)
    takes_elements = method in _ELEMENTS and weights is None and not isinstance(q, Array)
    if takes_elements and rows.shape[-1] > 0:
        dtype = rows.dtype
    if rows.shape[-1] == 0:
        if math.prod(rows.shape[:-1]) > 0 and not skip_nan:
            raise OutOfBounds(f"{name}(): an array of shape {x.shape} has no element along {axis=}")
        made = full((*shape, *rows.shape[:-1]), np.nan, dtype, device=rows.device)
        return _finished(made, axes, ndim, keepdims, out, len(shape))
    ordered = kw.sort(rows)
    count: Any = rows.shape[-1]
    if skip_nan and floating:
        count = kw.sum(kw.logical_not(kw.isnan(ordered)), axis=-1, keepdims=True)
    if weights is None:
        values = _between(ordered, count, shares, method)
    else:
        each = _rows(weights_of(weights, device_array(x), axis, method), axis, name)[0]
        values = weighted(rows, each, shares, skip_nan)
    if floating:
        values = kw.where(kw.isnan(shares), np.nan, values)
        if not skip_nan:
            last = ordered[..., -1:]
            values = kw.where(kw.isnan(last), last, values)
    made = kw.moveaxis(values, -1, 0).reshape((*shape, *rows.shape[:-1])).astype(dtype, copy=False)
    return _finished(made, axes, ndim, keepdims, out, len(shape))


def _checked_shares(q: Any, rows: Array, name: str) -> tuple[Array, tuple[int, ...]]:
    """One axis of float64 on the device, and the shape of what was given."""
    import kernwright as kw

    if isinstance(q, Array):
        flat = q.reshape(-1).astype(np.float64, copy=False)
        inside = kw.logical_and(flat >= 0, flat <= 1)
        return kw.where(inside, flat, np.nan), q.shape
    values = np.asarray(q, np.float64)
    if values.size and not bool(np.all((values >= 0) & (values <= 1))):
        most = "100" if "percentile" in name else "1"
        raise InvalidArgument(f"{name}(): q lies between 0 and {most}")
    if values.ndim == 0:
        return full((1,), float(values), np.float64, device=rows.device), ()
    return asarray(values.reshape(-1), device=rows.device), values.shape


def _between(ordered: Array, count: Any, shares: Array, method: str) -> Array:
    """[rows, shares]: what stands at the shares of `count` ordered elements."""
    import kernwright as kw

    place, rule = _METHODS[method]
    at = place(count, shares)
    if at.ndim < ordered.ndim:
        at = at.reshape((1,) * (ordered.ndim - 1) + (-1,))
    below = kw.floor(at)
    share = rule(at - below, below)
    if method in _ELEMENTS and share is not None:  # one of the two, without a line between
        below, share = kw.where(share > 0, below + 1, below), None
    low, high = (
        kw.maximum(kw.minimum(index, count - 1), 0).astype(np.int64) for index in (below, below + 1)
    )
    first = kw.take_along_axis(ordered, low, -1)
    if share is None:
        return first
    dtype = np.float64 if ordered.dtype.kind in "iub" or ordered.itemsize == 8 else np.float32
    first = first.astype(dtype, copy=False)
    second = kw.take_along_axis(ordered, high, -1).astype(dtype, copy=False)
    made: Array = _blend()(a=first, b=second, t=share.astype(dtype, copy=False))
    return made


@functools.cache
def _blend() -> Any:
    """From the nearer end; exact at both, beside infinities too."""
    from kernwright._fuse.elementwise import elementwise

    inner = "where(t >= 0.5, b - (b - a) * (1 - t), a + (b - a) * t)"
    return elementwise(f"y = where(t == 0, a, where(t == 1, b, {inner}))", name="blend")


def _continuous(alpha: float, beta: float) -> Callable[[Any, Array], Array]:
    return lambda n, q: n * q + (alpha + q * (1 - alpha - beta)) - 1


def _linear(n: Any, q: Any) -> Any:
    return (n - 1) * q


def _step(offset: float) -> Callable[[Any, Array], Array]:
    return lambda n, q: n * q - offset


def _as_is(share: Array, below: Array) -> Array:
    return share


def _none(share: Array, below: Array) -> None:
    return None


def _half(share: Array, below: Array) -> Array:
    import kernwright as kw

    return kw.where(share == 0, 0.0, kw.full_like(share, 0.5))


def _up(share: Array, below: Array) -> Array:
    return (share > 0).astype(np.float64)


def _up_or_half(share: Array, below: Array) -> Array:
    import kernwright as kw

    return kw.where(share == 0, 0.5, kw.full_like(share, 1.0))


def _up_unless_even(share: Array, below: Array) -> Array:
    import kernwright as kw

    stays = kw.logical_and(share == 0, kw.remainder(below, 2) == 1)
    return kw.where(stays, 0.0, kw.full_like(share, 1.0))


def _rounded(operation: str) -> Callable[[Any, Array], Array]:
    import kernwright as kw

    return lambda n, q: getattr(kw, operation)((n - 1) * q)


# Methods whose result is one of the elements.
_ELEMENTS = ("lower", "higher", "nearest", "inverted_cdf", "closest_observation")

# Name -> the place among the ordered elements, and how far it is from the lower to the upper one.
_METHODS: dict[str, tuple[Any, Any]] = {
    "linear": (_linear, _as_is),
    "lower": (_rounded("floor"), _none),
    "higher": (_rounded("ceil"), _none),
    "nearest": (_rounded("round"), _none),
    "midpoint": (_linear, _half),
    "inverted_cdf": (_step(1.0), _up),
    "averaged_inverted_cdf": (_step(1.0), _up_or_half),
    "closest_observation": (_step(1.5), _up_unless_even),
    "interpolated_inverted_cdf": (_continuous(0, 1), _as_is),
    "hazen": (_continuous(0.5, 0.5), _as_is),
    "weibull": (_continuous(0, 0), _as_is),
    "median_unbiased": (_continuous(1 / 3, 1 / 3), _as_is),
    "normal_unbiased": (_continuous(3 / 8, 3 / 8), _as_is),
}
