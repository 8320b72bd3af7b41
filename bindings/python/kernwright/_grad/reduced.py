"""Handlers of reductions, scans, softmax, decompositions: with `out`, and as methods."""

from __future__ import annotations

from typing import Any

from kernwright import _core
from kernwright._core import Array, _unrecorded
from kernwright._grad.calls import Handler
from kernwright._grad.recording import is_traced, note, note_joint
from kernwright._grad.table import linear, nn, reductions
from kernwright._grad.writes import written
from kernwright.errors import ArgumentError


def reduce(
    name: str, x: Any, axis: Any, keepdims: bool = False, dtype: Any = None,
    parameter: float = 0.0, out: Any = None,
) -> Any:  # fmt: skip
    if out is not None:
        made = reduce(name, x, axis, keepdims, dtype, parameter)
        return written(out, made, f"kw.{name}(out=...)")
    result = _unrecorded(_core._reduce, name, x, axis, keepdims, dtype, parameter)
    if name not in reductions.CONSTANT and isinstance(x, Array):
        note(
            f"{name}()",
            reductions.reduce(result, name, x, axis, keepdims, dtype, parameter),
            result,
        )
    return result


def scan(
    name: str, x: Any, axis: Any, dtype: Any = None, initial: bool = False, out: Any = None
) -> Any:
    if out is not None:
        return written(out, scan(name, x, axis, dtype, initial), f"kw.{name}(out=...)")
    result = _unrecorded(_core._scan, name, x, axis, dtype, initial)
    if isinstance(x, Array):
        note(f"{name}()", reductions.scan(result, name, x, axis, dtype, initial), result)
    return result


def sum_method(name: str) -> Handler:
    def handler(
        x: Array, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> Any:
        return reduce(name, x, axis, keepdims, dtype, 0.0, out)

    return handler


def extreme_method(name: str) -> Handler:
    def handler(x: Array, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        return reduce(name, x, axis, keepdims, None, 0.0, out)

    return handler


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
    if out is not None:
        made = softmax(x, axis, scale, mask, dtype, None, log)
        return written(out, made, "softmax(out=...)")
    result = _unrecorded(_core._softmax, x, axis, scale, mask, dtype, None, log)
    note("softmax()", nn.softmax(result, x, axis, scale, mask, dtype, None, log), result)
    return result


def bincount(x: Any, bins: int, weights: Any) -> Any:
    return _sorted_into_bins("bincount()", weights, _core._bincount, x, bins, weights)


def histogram(x: Any, edges: Any, scale: float, weights: Any, density: bool) -> Any:
    call = (_core._histogram, x, edges, scale, weights, density)
    return _sorted_into_bins("histogram()", weights, *call)


def _sorted_into_bins(name: str, weights: Any, *call: Any) -> Any:
    """Counts are constants, sums of weights are none."""
    if is_traced(weights):
        raise ArgumentError(f"{name} has no gradient of its weights: kw.stop_gradient(weights)")
    return _unrecorded(*call)


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
