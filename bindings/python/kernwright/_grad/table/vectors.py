"""Gradients of convolutions, polynomials, interpolation: kernels with one text, taken apart."""

from __future__ import annotations

from typing import Any

import kernwright as kw
from kernwright._array.composed.convolution import part_of
from kernwright._core import Array, _unrecorded
from kernwright._grad.recording import is_traced, note
from kernwright._grad.table.arrays import placed
from kernwright.errors import ArgumentError


def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    """The handler: each gradient is a convolution of the other operand, turned round."""
    plain = kw.convolve
    made = _unrecorded(plain, a, v, mode)
    if not (is_traced(a) or is_traced(v)):
        return made
    n, m = a.size, v.size
    start, _ = part_of(max(n, m), min(n, m), mode, False)

    def of(other: Array) -> Any:
        def pull(g: Array) -> Any:
            wide = placed(g, (n + m - 1,), slice(start, start + g.size))
            return kw.convolve(wide, kw.flip(other), "valid")

        return pull

    note("convolve()", ((a, of(v)), (v, of(a))), made)
    return made


def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    """The handler: a convolution with `v` turned round, of which a part is taken."""
    if not (is_traced(a) or is_traced(v)):
        return _unrecorded(kw.correlate, a, v, mode)
    turned = kw.flip(kw.conj(v) if v.dtype.kind == "c" else v)
    longer, shorter = max(a.size, v.size), min(a.size, v.size)
    start, count = part_of(longer, shorter, mode, v.size > a.size)
    return kw.convolve(a, turned)[start : start + count]


def polyval(p: Any, x: Any) -> Any:
    """The handler: Horner's scheme, step by step."""
    if not (is_traced(p) or is_traced(x)):
        return _unrecorded(kw.polyval, p, x)
    made = kw.zeros_like(_unrecorded(kw.polyval, p, x))
    for k in range(len(p)):
        made = made * x + p[k]
    return made


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: float | None = None
) -> Any:
    """The handler: the line between two points, which are found first."""
    if not any(is_traced(each) for each in (x, xp, fp)):
        return _unrecorded(kw.interp, x, xp, fp, left, right, period)
    if period is not None:
        raise ArgumentError("interp() with a period has no gradient: kw.stop_gradient()")
    if xp.size == 1:
        line = fp[0] + 0 * x
    else:
        place = kw.clip(kw.searchsorted(xp, x, side="right") - 1, 0, xp.size - 2)
        x0, x1, y0, y1 = (kw.take(a, place + i) for a in (xp, fp) for i in (0, 1))
        line = y0 + (y1 - y0) * ((x - x0) / (x1 - x0))
    line = kw.where(x < xp[0], fp[0] if left is None else left, line)
    return kw.where(x > xp[-1], fp[-1] if right is None else right, line)
