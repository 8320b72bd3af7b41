"""pad(): more elements around an array, by all of NumPy's modes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kernwright._array.manipulation import concat
from kernwright._array.operands import axis_of, device_array, values_like
from kernwright._core import Array, _from_numpy, _take_at, empty
from kernwright.errors import ArgumentError, InvalidArgument

__all__ = ["pad"]

_STATISTICS = {"maximum": "max", "mean": "mean", "median": "median", "minimum": "min"}
_MODES = (
    *("constant", "edge", "empty", "linear_ramp", "maximum", "mean", "median", "minimum"),
    *("reflect", "symmetric", "wrap"),
)


def pad(
    x: Any, /, pad_width: Any, mode: str | Callable[..., Any] = "constant", *,
    constant_values: Any = 0, end_values: Any = 0, stat_length: Any = None,
    reflect_type: str = "even", **options: Any,
) -> Array:  # fmt: skip
    """A copy with more elements around: NumPy's pad().

    pad_width: an int, (before, after) for all axes, such a pair for each axis, or a dict from axes
    to them. mode: "constant": `constant_values`, given like widths; "edge": the nearest element;
    "empty": anything; "linear_ramp": on the line to `end_values`, given like widths; "reflect":
    mirrored at the edge element, "symmetric": at the edge, with reflect_type="odd" subtracted from
    twice the edge element; "wrap": from the other end; "maximum", "mean", "median", "minimum": of
    the `stat_length` elements next to the edge, given like widths, or of all. ValueError for wrong
    widths, and for continuing an axis without elements.

    mode may be a function, as in NumPy: f(vector, (before, after), axis, options) changes each
    vector along each axis in turn in place; it is an array of the device with zeros around. Further
    keyword arguments are `options`. It is called once for a vector: prefer the other modes.

    >>> kw.pad(kw.asarray([1, 2]), (1, 2), "edge").numpy()
    array([1, 1, 2, 2, 2])
    """
    array: Array = device_array(x)
    widths = _widths(pad_width, array.ndim)
    if callable(mode):
        return _by_function(array, widths, mode, options)
    if options:
        raise ArgumentError(f"pad() got an unexpected keyword argument {next(iter(options))!r}")
    if mode not in _MODES:
        raise InvalidArgument(f"mode is one of {', '.join(_MODES)}, got {mode!r}")
    if reflect_type not in ("even", "odd"):
        raise InvalidArgument(f'reflect_type is "even" or "odd", got {reflect_type!r}')
    if mode in ("constant", "empty"):
        return _bordered(array, widths, _values(constant_values, array), mode == "empty")
    extra: Any = None
    if mode == "linear_ramp":
        extra = _values(end_values, array)
    elif mode in _STATISTICS:
        extra = [(None, None)] * array.ndim
        if stat_length is not None:
            extra = _widths(stat_length, array.ndim, "stat_length")
    made = array
    for axis, (before, after) in enumerate(widths):
        if before + after == 0:
            continue
        if made.shape[axis] == 0:
            raise InvalidArgument(f"axis {axis} of shape {made.shape} has no element to continue")
        if extra is not None:
            made = _valued(made, axis, (before, after), mode, extra[axis])
        elif reflect_type == "odd" and mode in ("reflect", "symmetric"):
            made = _odd(made, axis, before, after, mode)
        else:
            made = _continued(made, axis, before, after, mode)
    return made if made is not array else array.copy()


def _by_function(
    x: Array, widths: list[tuple[int, int]], f: Callable[..., Any], options: dict[str, Any]
) -> Array:
    made = _bordered(x, widths, [(0, 0)] * x.ndim, False)
    for axis, width in enumerate(widths):
        others = [range(n) for at, n in enumerate(made.shape) if at != axis]
        for place in itertools.product(*others):
            f(made[(*place[:axis], slice(None), *place[axis:])], width, axis, options)
    return made


def _widths(pad_width: Any, ndim: int, name: str = "pad_width") -> list[tuple[int, int]]:
    if isinstance(pad_width, dict):
        named = {axis_of(axis, ndim): width for axis, width in pad_width.items()}
        pad_width = [np.broadcast_to(named.get(axis, 0), 2).tolist() for axis in range(ndim)]
    try:
        widths = np.broadcast_to(np.asarray(pad_width), (ndim, 2))
    except ValueError as error:
        raise InvalidArgument(
            f"{name} {pad_width} is no int and has no (before, after) for each of {ndim} axes"
        ) from error
    least = 1 if name == "stat_length" else 0
    if (widths.dtype.kind not in "iu" and ndim) or (widths.size and widths.min() < least):
        raise InvalidArgument(f"{name} {pad_width} is not made of ints of {least} and more")
    return [(int(before), int(after)) for before, after in widths]


def _values(given: Any, x: Array) -> list[tuple[Any, Any]]:
    """Numbers before and after each axis."""
    if isinstance(given, Array):
        if given.ndim == 0:
            return [(given, given)] * x.ndim
        given = given.numpy()
    try:
        pairs = np.broadcast_to(np.asarray(given), (x.ndim, 2))
    except ValueError as error:
        raise InvalidArgument(
            f"{given!r:.60} is no number and has no (before, after) for each of {x.ndim} axes"
        ) from error
    if pairs.dtype.kind not in "biufc":
        raise ArgumentError(f"values around an array are numbers, got {given!r:.60}")
    return [(before.item(), after.item()) for before, after in pairs]


def _bordered(
    x: Array, widths: list[tuple[int, int]], values: list[tuple[Any, Any]], is_empty: bool
) -> Array:
    """Each element is written once."""
    shape = tuple(n + sum(width) for n, width in zip(x.shape, widths, strict=True))
    result = empty(shape, x.dtype, device=x.device)
    inner = [slice(None)] * x.ndim
    for axis in reversed(range(x.ndim)):  # corners belong to the last axis
        before, after = widths[axis]
        stop = before + x.shape[axis]
        parts = ((slice(before), before), (slice(stop, None), after))
        for (part, size), value in zip(parts, values[axis], strict=True):
            if size and not is_empty:
                border = [*inner]
                border[axis] = part
                result[tuple(border)] = values_like(value, x)
        inner[axis] = slice(before, stop)
    result[tuple(inner)] = x
    return result


def _part(x: Array, axis: int, part: slice) -> Array:
    return x[(*(slice(None),) * axis, part)]


def _continued(x: Array, axis: int, before: int, after: int, mode: str) -> Array:
    """Padded along one axis from its own elements."""
    extent = x.shape[axis]
    if max(before, after) > extent - (mode == "reflect") and mode != "edge":
        kind: Any = mode
        positions = np.pad(np.arange(extent), (before, after), mode=kind)
        return _take_at(x, [axis], [_from_numpy(positions, x.device)], axis)
    shape = (*x.shape[:axis], before + extent + after, *x.shape[axis + 1 :])
    result = empty(shape, x.dtype, device=x.device)
    front = (slice(None),) * axis
    result[(*front, slice(before, before + extent))] = x
    left, right = _borders(extent, before, after, mode)
    if before:
        result[(*front, slice(before))] = x[(*front, left)]
    if after:
        result[(*front, slice(before + extent, None))] = x[(*front, right)]
    return result


def _borders(extent: int, before: int, after: int, mode: str) -> Sequence[slice]:
    """What of an axis is continued before and after it."""
    if mode == "edge":
        return slice(1), slice(extent - 1, None)
    if mode == "wrap":
        return slice(extent - before, None), slice(after)
    skipped = 1 if mode == "reflect" else 0
    first, last = before - 1 + skipped, extent - 1 - skipped
    stop = last - after
    ends = None if skipped == 0 else 0
    return slice(first, ends, -1), slice(last, None if stop < 0 else stop, -1)


def _odd(x: Array, axis: int, before: int, after: int, mode: str) -> Array:
    """Mirrored at a point: as often as the widths need it."""
    period = x.shape[axis] - (mode == "reflect")
    while before + after > 0:
        if period == 0:  # one element, and no neighbour of it
            return _continued(x, axis, before, after, "edge")
        extent = x.shape[axis]
        near = (min(before, period), min(after, period))
        left, right = _borders(extent, *near, mode)
        parts = [x]
        if near[0]:
            edge = _part(x, axis, slice(1))
            parts.insert(0, edge + edge - _part(x, axis, left))
        if near[1]:
            edge = _part(x, axis, slice(extent - 1, None))
            parts.append(edge + edge - _part(x, axis, right))
        x = concat(parts, axis=axis)
        before, after = before - near[0], after - near[1]
    return x


def _valued(x: Array, axis: int, widths: tuple[int, int], mode: str, extra: Any) -> Array:
    """Padded along one axis with numbers that are computed from it."""
    parts = [x]
    for side, width in enumerate(widths):
        if width == 0:
            continue
        if mode == "linear_ramp":
            made = _ramp(x, axis, width, extra[side], bool(side))
        else:
            made = _statistic(x, axis, extra[side], mode, bool(side))
            made = made._broadcast((*x.shape[:axis], width, *x.shape[axis + 1 :]))
        parts.insert(len(parts) if side else 0, made.astype(x.dtype, copy=False))
    return concat(parts, axis=axis)


def _statistic(x: Array, axis: int, length: int | None, mode: str, behind: bool) -> Array:
    import kernwright as kw

    extent = x.shape[axis]
    count = extent if length is None else min(length, extent)
    part = _part(x, axis, slice(extent - count, None) if behind else slice(count))
    made: Array = getattr(kw, _STATISTICS[mode])(part, axis=axis, keepdims=True)
    return kw.round(made) if x.dtype.kind in "iu" else made


def _ramp(x: Array, axis: int, width: int, end: Any, behind: bool) -> Array:
    """From `end` to the edge element, which is left out."""
    import kernwright as kw

    extent = x.shape[axis]
    edge = _part(x, axis, slice(extent - 1, None) if behind else slice(1))
    whole = x.dtype.kind in "iub"
    edge = edge.astype(np.float64) if whole else edge
    shares = kw.linspace(0, 1, width, dtype="float64", endpoint=False, device=x.device)
    shares = (kw.flip(shares) if behind else shares).reshape(
        tuple(width if at == axis else 1 for at in range(x.ndim))
    )
    if x.dtype.kind not in "iubc":
        shares = shares.astype(x.dtype, copy=False)
    made = (edge - end) * shares + end
    return kw.floor(made) if whole else made
