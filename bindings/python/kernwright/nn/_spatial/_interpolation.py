"""Interpolation along axes of space, and its gradient."""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple

from kernwright import _core
from kernwright._array.operands import device_array
from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.nn._spatial._pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
)

__all__ = ["interpolate", "interpolate_backward"]

# The axes of space that a mode takes, and its number in the extension.
_MODES = {
    "nearest": ((1, 2, 3), 0), "nearest-exact": ((1, 2, 3), 1), "linear": ((1,), 2),
    "bilinear": ((2,), 2), "trilinear": ((3,), 2), "bicubic": ((2,), 3),
}  # fmt: skip
_AREA = {1: adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}


class _Pass(NamedTuple):
    """The interpolation along one axis: from so many elements to so many."""

    axis: int
    before: int
    after: int
    scale: float


def interpolate(
    x: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool | None = None, *, recompute_scale_factor: bool | None = None,
) -> Array:  # fmt: skip
    """An array (N, C, axes of space) with `size` elements along its axes of space, or floor(n *
    scale_factor): an int (a number), or one for each axis.

    `mode`: "nearest", "nearest-exact", "area" of one to three axes, "linear" of one, "bilinear" and
    "bicubic" of two, "trilinear" of three, with torch's places and weights. With `align_corners`
    the elements at the corners lie on each other. A `scale_factor` also gives the distance of
    places, unless `recompute_scale_factor`. Axes are interpolated one after the other, in float32
    between them (float64 of float64). `x` is float16, bfloat16, float32 or float64. Raises
    InvalidArgument.

    >>> x = kw.asarray([[[0.0, 2.0]]])
    >>> kw.nn.interpolate(x, 4, mode="linear").numpy().tolist()
    [[[0.0, 0.5, 1.5, 2.0]]]
    >>> kw.nn.interpolate(x, scale_factor=2).numpy().tolist()
    [[[0.0, 0.0, 2.0, 2.0]]]
    """
    array = device_array(x, "x")
    passes, number = _passes(
        array.shape, size, scale_factor, mode, align_corners, recompute_scale_factor
    )
    if mode == "area":
        return _AREA[array.ndim - 2](array, [each.after for each in passes])
    # What grows least comes first, so that the arrays in between are small.
    order = sorted(passes, key=lambda each: each.after / max(each.before, 1))
    return _through(
        array, [(p.axis, p.after, p.scale) for p in order], number, align_corners, False
    )


def interpolate_backward(
    dy: Any, shape: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool | None = None, *, recompute_scale_factor: bool | None = None,
) -> Array:  # fmt: skip
    """dx of `shape` for the gradient `dy` of interpolate(x, ...), in a fixed order of sums.

    >>> kw.nn.interpolate_backward(kw.ones((1, 1, 4)), (1, 1, 2), 4, mode="linear").numpy().tolist()
    [[[2.0, 2.0]]]
    """
    gradient = device_array(dy, "dy")
    try:
        extents = tuple(operator.index(extent) for extent in shape)
    except TypeError:
        raise ArgumentError(f"shape is that of the input, ints, got {shape!r:.60}") from None
    passes, number = _passes(
        extents, size, scale_factor, mode, align_corners, recompute_scale_factor
    )
    expected = (*extents[:2], *(each.after for each in passes))
    if gradient.shape != expected:
        raise InvalidArgument(
            f"the gradient of an input {extents} has shape {expected}, got {gradient.shape}"
        )
    if mode == "area":
        from kernwright.nn._spatial import _pooling_backward

        axes = len(extents) - 2
        backward = getattr(_pooling_backward, f"adaptive_avg_pool{axes}d_backward")
        made: Array = backward(gradient, extents)
        return made
    order = sorted(passes, key=lambda each: each.before / max(each.after, 1))
    steps = [(p.axis, p.before, p.scale) for p in order]
    return _through(gradient, steps, number, align_corners, True)


def _through(
    array: Array, steps: list[tuple[int, int, float]], mode: int, align: bool | None, backward: bool
) -> Array:
    between = "float64" if array.dtype.name == "float64" else "float32"
    made = array
    for i, (axis, extent, scale) in enumerate(steps):
        dtype = array.dtype if i == len(steps) - 1 else between
        made = _core._resample(made, axis, extent, mode, scale, bool(align), dtype, backward)
    return made


def _passes(
    shape: tuple[int, ...], size: Any, factor: Any, mode: str, align: bool | None,
    recompute: bool | None,
) -> tuple[list[_Pass], int]:  # fmt: skip
    axes, number = ((1, 2, 3), 0) if mode == "area" else _MODES.get(mode, ((), 0))
    if not axes:
        raise InvalidArgument(f"mode is one of {', '.join([*_MODES, 'area'])}, got {mode!r:.40}")
    if len(shape) - 2 not in axes:
        wanted = " or ".join(str(each + 2) for each in axes)
        raise InvalidArgument(f"mode {mode!r} takes arrays of {wanted} axes, got shape {shape}")
    if align is not None and number < 2:
        raise InvalidArgument(f"align_corners is for linear and cubic modes, not {mode!r}")
    if (size is None) == (factor is None):
        raise InvalidArgument("pass either size or scale_factor")
    space = shape[2:]
    if 0 in space:
        raise InvalidArgument(f"there is nothing to interpolate in an array of shape {shape}")
    extents, factors = _extents(space, size, factor)
    if recompute or factor is None:
        factors = [None] * len(space)
    return [
        _Pass(i + 2, n, m, _scale(n, m, f, bool(align)))
        for i, (n, m, f) in enumerate(zip(space, extents, factors, strict=True))
    ], number


def _extents(
    space: tuple[int, ...], size: Any, factor: Any
) -> tuple[list[int], list[float | None]]:
    given = factor if size is None else size
    name = "scale_factor" if size is None else "size"
    each = list(given) if isinstance(given, (list, tuple)) else [given] * len(space)
    factors: list[float | None] = [None] * len(each)
    try:
        if size is not None:
            made = [operator.index(n) for n in each]
        else:
            made = [math.floor(n * float(f)) for n, f in zip(space, each, strict=False)]
            factors = [float(f) for f in each]
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"{name} is a number or one for each axis, got {given!r:.60}") from None
    if len(each) != len(space) or min(made) < 1 or max(made) >= 2**29:
        raise InvalidArgument(f"{name} {given!r:.60} gives no array of {len(space)} axes of space")
    return made, factors


def _scale(before: int, after: int, factor: float | None, align: bool) -> float:
    """The distance on the input of two neighbours of the output."""
    if align:
        return (before - 1) / (after - 1) if after > 1 else 0.0
    return 1 / factor if factor is not None else before / after
