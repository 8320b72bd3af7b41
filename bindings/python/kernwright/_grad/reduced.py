"""Handlers of reductions, scans, softmax, decompositions: with `out`, and as methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import kernwright as kw
from kernwright import _core
from kernwright._core import Array, _unrecorded
from kernwright._grad.calls import Handler, Rule
from kernwright._grad.recording import Pairs, is_traced, note, note_joint
from kernwright._grad.table import linear, reductions
from kernwright._grad.writes import written


def reduce(
    name: str, x: Any, axis: Any, keepdims: bool = False, dtype: Any = None,
    parameter: float = 0.0, out: Any = None,
) -> Any:  # fmt: skip
    """The handler of reductions with `out`."""
    made = _core._reduce(name, x, axis, keepdims, dtype, parameter)
    return made if out is None else written(out, made, f"kw.{name}(out=...)")


def scan(
    name: str, x: Any, axis: Any, dtype: Any = None, initial: bool = False, out: Any = None
) -> Any:
    """The handler of scans with `out`."""
    made = _core._scan(name, x, axis, dtype, initial)
    return made if out is None else written(out, made, f"kw.{name}(out=...)")


def sum_method(name: str) -> Rule:
    def handler(
        x: Array, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> Any:
        return reduce(name, x, axis, keepdims, dtype, 0.0, out)

    rule = reductions.SUMS.get(name) or _method_rule(name)
    return Rule(rule, f"{name}()", False, handler, "out", 3)


def extreme_method(name: str) -> Rule:
    def handler(x: Array, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        return reduce(name, x, axis, keepdims, None, 0.0, out)

    return Rule(_method_rule(name), f"{name}()", False, handler, "out", 2)


def _method_rule(name: str) -> Callable[..., Pairs]:
    def rule(y: Any, x: Array, axis: Any = None, *others: Any, **options: Any) -> Pairs:
        return reductions.reduce(y, name, x, axis)

    return rule


def spread_method(name: str) -> Handler:
    plain = getattr(Array, name)

    def handler(
        x: Array, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0.0,
        keepdims: bool = False, *, correction: float = 0.0,
    ) -> Any:  # fmt: skip
        if ddof != 0 and correction != 0:  # it says so
            return _unrecorded(plain, x, axis, dtype, out, ddof, keepdims, correction=correction)
        return reduce(name, x, axis, keepdims, dtype, ddof + correction, out)

    return handler


def scan_method(name: str) -> Handler:
    def handler(x: Array, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        if axis is None and x.ndim != 1:
            x, axis = x.reshape(-1), 0
        return scan(name, x, axis, dtype, False, out)

    return handler


def softmax(x: Any, axis: int, scale: float, mask: Any, dtype: Any, out: Any, log: bool) -> Any:
    """The handler of softmax() with `out`."""
    made = _core._softmax(x, axis, scale, mask, dtype, None, log)
    return written(out, made, "softmax(out=...)")


def bincount(x: Any, bins: int, weights: Any) -> Any:
    """Counts are constants; sums of weights are linear in the weights."""
    made = _unrecorded(_core._bincount, x, bins, weights)
    if is_traced(weights):
        note("bincount()", [(weights, lambda g: kw.take(g, x))], made)
    return made


def histogram(x: Any, edges: Any, scale: float, weights: Any, density: bool) -> Any:
    if not is_traced(weights):
        return _unrecorded(_core._histogram, x, edges, scale, weights, density)
    made = _unrecorded(_core._histogram, x, edges, scale, weights, False)
    note("histogram()", [(weights, lambda g: _of_bins(g, x, edges))], made)
    return made / (kw.sum(made) * kw.diff(edges)) if density else made


def _of_bins(g: Array, x: Array, edges: Array) -> Array:
    """For each element of x the gradient of its bin. The last bin has its upper edge, too."""
    wide = x.astype(edges.dtype)
    places = kw.searchsorted(edges, wide, side="right") - 1
    places = kw.where(wide == edges[-1], g.size - 1, places)
    is_inside = (places >= 0) & (places < g.size)
    made: Array = kw.where(is_inside, kw.take(g, kw.where(is_inside, places, 0)), 0)
    return made


def eigen(x: Any, hermitian: bool, vectors: bool) -> Any:
    """Eigenvalues alone are recorded with the vectors, which their gradient needs."""
    if not is_traced(x):
        return _unrecorded(_core._eigen, x, hermitian, vectors)
    result = _unrecorded(_core._eigen, x, hermitian, True)
    note_joint("eigh()" if hermitian else "eig()", *linear.eigen(result, x, hermitian, True))
    return result


def svd(x: Any, vectors: bool, full: bool) -> Any:
    if not is_traced(x):
        return _unrecorded(_core._svd, x, vectors, full)
    result = _unrecorded(_core._svd, x, True, full and vectors)
    note_joint("svd()", *linear.svd(result, x, True, full and vectors))
    return result
