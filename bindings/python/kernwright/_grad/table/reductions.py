"""Gradients of reductions and scans."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import kernwright as kw
from kernwright._core import Array
from kernwright._grad.recording import Pairs
from kernwright._grad.table.arrays import scattered

Spread = Callable[[Array], Array]


def _axes(ndim: int, axis: Any) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    return tuple(int(each) % ndim for each in given)


class _Reduced:
    """What a rule needs to know of a reduction: `spread` lays a result along the axes again."""

    def __init__(self, x: Array, axis: Any) -> None:
        self.x, self.axes, self.shape = x, _axes(x.ndim, axis), x.shape
        self.kept = tuple(1 if i in self.axes else n for i, n in enumerate(x.shape))
        self.count = math.prod(x.shape[i] for i in self.axes)

    def spread(self, y: Array) -> Array:
        return y.reshape(self.kept)

    def sum(self, values: Any) -> Array:
        made: Array = kw.sum(values, axis=self.axes, keepdims=True)
        return made


def reduce(
    y: Array, name: str, x: Any, axis: Any, keepdims: bool = False, dtype: Any = None,
    parameter: float = 0.0, out: Any = None,
) -> Pairs:  # fmt: skip
    if name in SUMS:
        return SUMS[name](y, x, axis)
    if name in CONSTANT or not isinstance(x, Array):
        return ()
    rule, axes = RULES[name], tuple(axis) if isinstance(axis, list) else axis
    return ((x, lambda g: rule(_Reduced(x, axes), x, y, g, parameter)),)


def sum_(
    y: Array, x: Array, axis: Any = None, dtype: Any = None, out: Any = None,
    keepdims: bool = False,
) -> Pairs:  # fmt: skip
    """It keeps no values."""
    shape, axes = x.shape, tuple(axis) if isinstance(axis, list) else axis
    return ((x, lambda g: _spread(g, shape, axes)),)


def mean(
    y: Array, x: Array, axis: Any = None, dtype: Any = None, out: Any = None,
    keepdims: bool = False,
) -> Pairs:  # fmt: skip
    shape, axes = x.shape, tuple(axis) if isinstance(axis, list) else axis

    def pull(g: Array) -> Array:
        count = math.prod(shape[i] for i in _axes(len(shape), axes))
        return _spread(g if count == 1 else g * (1.0 / max(count, 1)), shape, axes)

    return ((x, pull),)


def _spread(g: Array, shape: tuple[int, ...], axis: Any) -> Array:
    axes = _axes(len(shape), axis)
    kept = tuple(1 if i in axes else n for i, n in enumerate(shape))
    made: Array = kw.broadcast_to(g.reshape(kept), shape)
    return made


SUMS: dict[str, Callable[..., Pairs]] = {"mean": mean, "sum": sum_}


def _prod(r: _Reduced, x: Array, y: Array, g: Array, p: float) -> Any:
    """y / x; where one element alone is 0, the product of the others."""
    is_zero = x == 0
    safe = kw.where(is_zero, 1, x)
    others = kw.prod(safe, axis=r.axes, keepdims=True)
    zeros = kw.count_nonzero(is_zero, axis=r.axes, keepdims=True)
    part = kw.where(
        is_zero, kw.where(zeros == 1, others, 0), kw.where(zeros == 0, others / safe, 0)
    )
    return r.spread(g) * part


def _extreme(r: _Reduced, x: Array, y: Array, g: Array, p: float) -> Any:
    """Equal ones share."""
    chosen = x == r.spread(y)
    return kw.where(chosen, r.spread(g) / r.sum(chosen.astype(g.dtype)), 0)


def _var(r: _Reduced, x: Array, y: Array, g: Array, p: float) -> Any:
    centred = x - kw.mean(x, axis=r.axes, keepdims=True)
    return (
        r.spread(g) * centred * (2.0 / max(r.count - p, 0)) if r.count > p else centred * math.nan
    )


def _std(r: _Reduced, x: Array, y: Array, g: Array, p: float) -> Any:
    return _var(r, x, y, kw.where(y == 0, 0, g / kw.where(y == 0, 1, 2 * y)), p)


def _norm_one(r: _Reduced, x: Array, y: Array, g: Array, p: float) -> Any:
    return r.spread(g) * kw.sign(x)


def _norm_two(r: _Reduced, x: Array, y: Array, g: Array, p: float) -> Any:
    return r.spread(kw.where(y == 0, 0, g / kw.where(y == 0, 1, y))) * x


def _norm_any(r: _Reduced, x: Array, y: Array, g: Array, p: float) -> Any:
    """sign(x) (|x| / y)**(p - 1)."""
    length = r.spread(kw.where(y == 0, 1, y))
    part = kw.where(x == 0, 0, kw.pow(kw.where(x == 0, 1, kw.abs(x)) / length, p - 1))
    return r.spread(g) * part * kw.sign(x)


def _norm_extreme(r: _Reduced, x: Array, y: Array, g: Array, p: float) -> Any:
    return _extreme(r, kw.abs(x), y, g, p) * kw.sign(x)


def _logsumexp(r: _Reduced, x: Array, y: Array, g: Array, p: float) -> Any:
    top = r.spread(kw.where(kw.isfinite(y), y, 0))
    return r.spread(g) * kw.exp(x - top)


def _of_numbers(rule: Any, neutral: float) -> Any:
    """Of what is left without NaN."""

    def pull(r: _Reduced, x: Array, y: Array, g: Array, p: float) -> Any:
        lost = kw.isnan(x)
        clean = kw.where(lost, neutral, x)
        return kw.where(lost, 0, rule(r, clean, y, g, p))

    return pull


def _nanmean(r: _Reduced, x: Array, y: Array, g: Array, p: float) -> Any:
    there = ~kw.isnan(x)
    return kw.where(there, r.spread(g) / r.sum(there.astype(g.dtype)), 0)


def _nanvar(r: _Reduced, x: Array, y: Array, g: Array, p: float) -> Any:
    there = ~kw.isnan(x)
    count = r.sum(there.astype(g.dtype))
    clean = kw.where(there, x, 0)
    centred = kw.where(there, clean - r.sum(clean) / count, 0)
    return r.spread(g) * centred * (2 / (count - p))


def _nanstd(r: _Reduced, x: Array, y: Array, g: Array, p: float) -> Any:
    return _nanvar(r, x, y, kw.where(y == 0, 0, g / kw.where(y == 0, 1, 2 * y)), p)


RULES: dict[str, Callable[..., Any]] = {
    "logsumexp": _logsumexp,
    "max": _extreme,
    "min": _extreme,
    "nanmax": _extreme,
    "nanmean": _nanmean,
    "nanmin": _extreme,
    "nanprod": _of_numbers(_prod, 1.0),
    "nanstd": _nanstd,
    "nansum": _of_numbers(lambda r, x, y, g, p: kw.broadcast_to(r.spread(g), r.shape), 0.0),
    "nanvar": _nanvar,
    "norm_any": _norm_any,
    "norm_largest": _norm_extreme,
    "norm_one": _norm_one,
    "norm_smallest": _norm_extreme,
    "norm_two": _norm_two,
    "prod": _prod,
    "std": _std,
    "var": _var,
}
CONSTANT = frozenset({"all", "any", "argmax", "argmin", "count_nonzero", "norm_zero"})


def _backwards(values: Any, axis: int) -> Array:
    """Running sums from the end."""
    made: Array = kw.flip(kw.cumulative_sum(kw.flip(values, axis=axis), axis=axis), axis=axis)
    return made


def scan(
    y: Array, name: str, x: Any, axis: Any, dtype: Any = None, initial: bool = False,
    out: Any = None,
) -> Pairs:  # fmt: skip
    if not isinstance(x, Array):
        return ()
    shape = x.shape
    at = 0 if axis is None else int(axis) % x.ndim
    flat = x.reshape(-1) if axis is None else x
    later = (*(slice(None),) * at, slice(1, None)) if initial else ...
    if name in ("cumulative_sum", "cumsum"):
        return ((x, lambda g: _backwards(g[later], at).reshape(shape)),)
    rule = _cumulative_prod if name in ("cumulative_prod", "cumprod") else _cumulative_extreme
    return ((x, lambda g: rule(flat, y[later], g[later], at).reshape(shape)),)


def _cumulative_prod(x: Array, y: Array, g: Array, axis: int) -> Array:
    """Sums of g y from the end, over x. From the first 0 of a row on, y is 0: the slope of that 0
    takes the products without it, and what comes later has none."""
    zeros = kw.cumulative_sum((x == 0).astype("int64"), axis=axis)
    first = (x == 0) & (zeros == 1)
    products = kw.cumulative_prod(kw.where(first, 1, x), axis=axis)
    before = _backwards(g * y, axis) / kw.where(x == 0, 1, x)
    made: Array = kw.where(first, _backwards(g * products, axis), kw.where(zeros > 0, 0, before))
    return made


def _cumulative_extreme(x: Array, y: Array, g: Array, axis: int) -> Array:
    """To the last of the equal extremes so far, as torch has it."""
    shape = [1] * x.ndim
    shape[axis] = x.shape[axis]
    places = kw.arange(x.shape[axis], device=x.device).reshape(tuple(shape))
    index = kw.cumulative_max(kw.where(x == y, places, 0), axis=axis)
    return scattered(g, x.shape, axis, index)
