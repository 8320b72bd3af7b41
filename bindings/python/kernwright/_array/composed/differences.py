"""Differences, gradients, integrals and interpolation along an axis."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from kernwright._array.creation import HOST_TYPES
from kernwright._array.operands import axes_of, axis_of, device_array
from kernwright._core import Array, _from_numpy
from kernwright.errors import ArgumentError, InvalidArgument

__all__ = ["ediff1d", "gradient", "interp", "trapezoid", "unwrap"]


def ediff1d(x: Any, to_end: Any = None, to_begin: Any = None) -> Array:
    """The differences of neighbours of all elements, row by row, with `to_begin` in front and
    `to_end` behind: arrays, or numbers of the host.

    >>> kw.ediff1d(kw.asarray([1, 4, 9])).numpy()
    array([3, 5])
    """
    import kernwright as kw
    from kernwright._array.composed.joining import _beside

    flat = _numbers(device_array(x), "ediff1d").reshape(-1)
    parts = [kw.diff(flat)]
    for values, at in ((to_begin, 0), (to_end, len(parts) + 1)):
        if values is not None:
            parts.insert(at, _beside(values, flat).reshape(-1).astype(flat.dtype, copy=False))
    return parts[0] if len(parts) == 1 else kw.concat(parts)


def _numbers(x: Array, name: str) -> Array:
    if x.dtype.kind == "b":
        raise ArgumentError(f"{name}() of bools: they have no differences; convert with astype()")
    return x


def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Array:
    """The integral along `axis` by the trapezoidal rule, over places `x` (of the shape of `y`, or a
    vector) or with distances `dx`. Integers are computed in float64.

    >>> kw.trapezoid(kw.asarray([1.0, 2.0, 4.0])).item()
    4.5
    """
    import kernwright as kw

    values: Array = device_array(y, "y")
    at = axis_of(axis, values.ndim)
    front = (slice(None),) * at
    if values.dtype.kind in "iub":
        values = values.astype(np.float64)
    middle = values[(*front, slice(1, None))] + values[(*front, slice(None, -1))]
    if x is None:
        return kw.sum(middle, at) * (dx / 2)
    places: Array = device_array(x)
    if places.ndim == 1:
        steps = kw.diff(places).reshape((-1,) + (1,) * (values.ndim - at - 1))
    else:
        steps = kw.diff(places, axis=at)
    return kw.sum(middle * steps, at) / 2


@functools.cache
def _wrapped() -> Any:
    from kernwright._fuse.elementwise import elementwise

    text = "low = -(period / 2.0); rest = remainder(d - low, period) + low; "
    text += "up = where((rest == low) & (d > 0), -low, rest); "
    return elementwise(text + "y = where(abs(d) < discont, 0 * d, up - d)", name="unwrap")


def unwrap(
    p: Any, discont: float | None = None, axis: int = -1, *, period: float = 2 * np.pi
) -> Array:
    """`p` with multiples of `period` added along `axis`, so that neighbours are never farther apart
    than half of it (or than `discont`, where that is more). Integers stay integers where `period`
    is one.

    >>> kw.unwrap(kw.asarray([0, 3, 6, 1, 4]), period=7).numpy()
    array([ 0,  3,  6,  8, 11])
    """
    import kernwright as kw

    values: Array = device_array(p, "p")
    at = axis_of(axis, values.ndim)
    whole = values.dtype.kind in "iu" and isinstance(period, (int, np.integer))
    if values.dtype.kind in "iub" and not whole:
        values = values.astype(np.float64)
    front = (slice(None),) * at
    first, rest = values[(*front, slice(1))], values[(*front, slice(1, None))]
    if rest.size == 0:
        return values.copy()
    steps = rest - values[(*front, slice(None, -1))]
    most = period / 2 if discont is None else discont
    corrections = _wrapped_steps(steps, most, period, whole)
    moved = rest + kw.cumulative_sum(corrections, axis=at, dtype=corrections.dtype)
    return kw.concat([first, moved], axis=at).astype(values.dtype, copy=False)


def _wrapped_steps(steps: Array, most: float, period: Any, whole: bool) -> Array:
    """Multiples of the period."""
    if not whole:
        made: Array = _wrapped()(d=steps, period=float(period), discont=float(most))
        return made
    import kernwright as kw

    half, odd = divmod(int(period), 2)
    wrapped = kw.remainder(steps + half, int(period)) - half
    if not odd:
        edge = kw.logical_and(wrapped == -half, steps > 0)
        wrapped = kw.where(edge, half, wrapped)
    return kw.where(kw.abs(steps) < most, 0, wrapped - steps)


# ---- Gradients


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """The slope along each axis, or those of `axis`: central differences inside, of one side at the
    ends, by polynomials of degree `edge_order` (1 or 2). An array for one axis, else a tuple.

    `varargs`: nothing, a distance for all axes, or one for each: a number, or the places along it,
    a vector of the host or of the device. Integers are computed in float64. InvalidArgument for
    axes shorter than edge_order + 1 and for wrong distances.

    >>> kw.gradient(kw.asarray([1.0, 2.0, 4.0, 7.0])).numpy()
    array([1. , 1.5, 2.5, 3. ], dtype=float32)
    """
    values = _numbers(device_array(f, "f"), "gradient")
    axes = tuple(range(values.ndim)) if axis is None else axes_of(axis, values.ndim)
    if edge_order not in (1, 2):
        raise InvalidArgument(f"edge_order is 1 or 2, got {edge_order}")
    if len(varargs) > 1 and len(varargs) != len(axes):
        raise InvalidArgument(f"{len(varargs)} distances for {len(axes)} axes")
    distances = list(varargs) or [1.0]
    distances = distances * len(axes) if len(distances) == 1 else distances
    if values.dtype.kind in "iub":
        values = values.astype(np.float64)
    made = [_slope(values, at, distance, edge_order)
            for at, distance in zip(axes, distances, strict=True)]  # fmt: skip
    return made[0] if len(made) == 1 else tuple(made)


def _slope(f: Array, at: int, distance: Any, edge_order: int) -> Array:
    extent = f.shape[at]
    if extent < edge_order + 1:
        raise InvalidArgument(
            f"gradient() of edge_order {edge_order} needs {edge_order + 1} elements or more along "
            f"axis {at}, got {extent}"
        )
    from kernwright._array.creation import empty_like

    def part(start: int | None, stop: int | None) -> Array:
        return f[(*(slice(None),) * at, slice(start, stop))]

    result = empty_like(f)
    front = (slice(None),) * at
    steps = _steps(distance, f, at)
    if extent > 2:
        result[(*front, slice(1, -1))] = _inner(part, steps)
    for end in (0, -1):
        result[(*front, slice(end, end + 1 or None))] = _end(part, steps, end, edge_order)
    return result


def _steps(distance: Any, f: Array, at: int) -> Any:
    """A number, or the distances of neighbours, to be broadcast with `f`."""
    import kernwright as kw

    if not isinstance(distance, Array):
        host = np.asarray(distance)
        if host.ndim == 0 and host.dtype.kind in "iufb":
            return float(host)
        if host.dtype.kind not in "iuf":
            raise ArgumentError(f"a distance is a number or a vector of places: {distance!r:.60}")
        distance = _from_numpy(host, f.device)
    if distance.ndim == 0:
        return distance
    if distance.ndim != 1 or distance.size != f.shape[at]:
        raise InvalidArgument(
            f"Incompatible dimensions: places of shape {distance.shape} along axis {at} with "
            f"{f.shape[at]} elements"
        )
    return kw.diff(distance).reshape((-1,) + (1,) * (f.ndim - at - 1))


def _inner(part: Any, steps: Any) -> Array:
    ahead, here, behind = part(2, None), part(1, -1), part(None, -2)
    if not isinstance(steps, Array) or steps.ndim == 0:
        return (ahead - behind) / (steps * 2)  # type: ignore[no-any-return]
    before, after = steps[:-1], steps[1:]
    both = before + after
    a, c = -after / (before * both), before / (after * both)
    b = (after - before) / (before * after)
    return a * behind + b * here + c * ahead  # type: ignore[no-any-return]


def _end(part: Any, steps: Any, end: int, edge_order: int) -> Array:
    """The slope at the first (0) or last (-1) element."""
    single = not isinstance(steps, Array) or steps.ndim == 0
    first = end == 0
    if edge_order == 1:
        step = steps if single else (steps[:1] if first else steps[-1:])
        ahead, behind = (part(1, 2), part(0, 1)) if first else (part(-1, None), part(-2, -1))
        return (ahead - behind) / step  # type: ignore[no-any-return]
    three = [part(0, 1), part(1, 2), part(2, 3)] if first else [
        part(-3, -2), part(-2, -1), part(-1, None)
    ]  # fmt: skip
    if single:
        weights = (-1.5, 2.0, -0.5) if first else (0.5, -2.0, 1.5)
        a, b, c = (weight / steps for weight in weights)
    else:
        before, after = (steps[:1], steps[1:2]) if first else (steps[-2:-1], steps[-1:])
        both = before + after
        if first:
            a = -(2.0 * before + after) / (before * both)
            b, c = both / (before * after), -before / (after * both)
        else:
            a, b = after / (before * both), -both / (before * after)
            c = (2.0 * after + before) / (after * both)
    return three[0] * a + three[1] * b + three[2] * c  # type: ignore[no-any-return]


# ---- Interpolation

_INTERP = """
Real r;
const Real here = x;
const Int64 points = xp.size();
if (here != here) {
  r = here;
} else if (here > Real(xp[points - 1])) {
  r = ends[Int64(1)];
} else if (here < Real(xp[Int64(0)])) {
  r = ends[Int64(0)];
} else {
  Int64 low = 0, high = points;
  while (low < high) {
    const Int64 middle = (low + high) / 2;
    if (Real(xp[middle]) <= here) low = middle + 1; else high = middle;
  }
  const Int64 j = low - 1;
  if (j == points - 1 || Real(xp[j]) == here) {
    r = Real(fp[j]);
  } else {
    const Real f0 = fp[j], f1 = fp[j + 1], x0 = xp[j], x1 = xp[j + 1];
    const Real slope = (f1 - f0) / (x1 - x0);
    r = slope * (here - x0) + f0;
    if (r != r) {
      r = slope * (here - x1) + f1;
      if (r != r && f0 == f1) r = f0;
    }
  }
}
y = r;
"""


@functools.cache
def _interpolation(dtype: str) -> Any:
    from kernwright._fuse.elementwise import ElementwiseKernel

    code = _INTERP.replace("Real", "double" if dtype == "float64" else "float")
    return ElementwiseKernel("T x, raw T xp, raw T fp, raw T ends", "T y", code, "interp")


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: float | None = None
) -> Array:
    """The values at `x` of the lines between the points (xp, fp), in one kernel. Below the first
    point `left` (None: its value), above the last one `right`. With `period` places repeat, and
    the points may come in any order; else `xp` rises, and is not looked at.

    `x` may be on the host, and `xp` and `fp` lists: numbers of Python have the type that they have
    beside the points. The dtype is that of all three together, float64 of integers; `fp` may be
    complex.
    InvalidArgument for no points and for vectors of different lengths.

    >>> kw.interp(kw.asarray([1.5, 9.0]), kw.asarray([1.0, 2.0]), kw.asarray([10.0, 20.0])).numpy()
    array([15., 20.], dtype=float32)
    """
    import kernwright as kw

    near = next((one for one in (xp, fp, x) if isinstance(one, Array)), None)
    places, values = _listed(xp, "xp", near), _listed(fp, "fp", near)
    points = _points(x, places)
    if places.ndim != 1 or places.shape != values.shape or places.size == 0:
        raise InvalidArgument(
            f"Incompatible dimensions: xp of shape {places.shape} and fp of shape {values.shape} "
            "are vectors of one length, which is not 0"
        )
    if points.dtype.kind == "c" or places.dtype.kind == "c":
        raise ArgumentError("interp() of complex places: they have no order")
    dtype = kw.result_type(points, places, values)
    if dtype.kind == "c":
        real, imaginary = (
            interp(x, xp, part(fp), _part_of(left, number), _part_of(right, number), period)
            for part, number in ((kw.real, "real"), (kw.imag, "imag"))
        )
        parts = [real, imaginary]
        return kw.stack(parts, axis=-1).view(dtype).reshape(points.shape)
    if dtype.kind in "iub":
        dtype = np.dtype(np.float64)
    points, places, values = (array.astype(dtype, copy=False) for array in (points, places, values))
    if period is not None:
        points, places, values = _periodic(points, places, values, float(period))
        left = right = None
    ends = kw.concat([_end_value(left, values[:1]), _end_value(right, values[-1:])])
    made: Array = _interpolation(dtype.name)(
        points, *(one if one.is_contiguous else one.copy() for one in (places, values)), ends
    )
    return made


def _listed(points: Any, name: str, near: Array | None) -> Array:
    """An array of the device; lists are copied to that of `near`, as float64 beside float64."""
    import kernwright as kw

    if not isinstance(points, (list, tuple)):
        return device_array(points, name)
    if near is None:
        return kw.asarray(points)
    host = np.asarray(points)
    wide = host.dtype.kind == "f" and near.dtype == "float64"
    return kw.asarray(host if wide else points, device=near.device)


def _points(x: Any, near: Array) -> Array:
    """Where to interpolate, on the device of `near`."""
    import kernwright as kw

    if not isinstance(x, HOST_TYPES):
        return device_array(x)
    host = np.asarray(x)
    if host.dtype.kind not in "biuf":
        raise ArgumentError(f"interp() takes real numbers, got {x!r:.60}")
    if not isinstance(x, (np.ndarray, np.generic)):
        host = host.astype(kw.result_type(0.0 if host.dtype.kind == "f" else 0, near))
    return _from_numpy(host, near.device)


def _part_of(value: Any, name: str) -> Any:
    return None if value is None else getattr(complex(value), name)


def _end_value(given: Any, value: Array) -> Array:
    import kernwright as kw

    return value if given is None else kw.full_like(value, float(given))


def _periodic(x: Array, xp: Array, fp: Array, period: float) -> tuple[Array, Array, Array]:
    """All places inside one period, with a point of the neighbours at both ends."""
    import kernwright as kw

    if period == 0:
        raise InvalidArgument("a period is not 0")
    period = abs(period)
    xp = kw.remainder(xp, period)
    order = kw.argsort(xp)
    xp, fp = kw.take(xp, order), kw.take(fp, order)
    xp = kw.concat([xp[-1:] - period, xp, xp[:1] + period])
    fp = kw.concat([fp[-1:], fp, fp[:1]])
    return kw.remainder(x, period), xp, fp
