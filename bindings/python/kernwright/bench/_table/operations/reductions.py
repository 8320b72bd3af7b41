"""Sums and their kin over everything, rows and columns; running sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import kernwright as kw
from kernwright.bench._table.work import (
    Expected,
    Operation,
    Shape,
    Work,
    by_rows,
    flat,
    host,
    matrix,
    normal,
    places,
)

_TAKES = ("float32", "bfloat16", "float16", "float64")
_TOLERANCES = {"float64": 1e-12, "float32": 2e-5, "float16": 2e-3, "bfloat16": 1e-2}
_CHUNK = 1 << 24  # elements that the host works on at a time
_COLUMNS = 64  # that are looked at in a place

Reference = Callable[..., Any]
_facts: dict[Any, float] = {}


def chunks(x: kw.Array) -> Iterator[np.ndarray[Any, Any]]:
    for at in range(0, x.shape[0], _CHUNK):
        yield host(x, slice(at, at + _CHUNK))


def _fact(name: str, x: kw.Array) -> float:
    """Of all of normal(x.shape, x.dtype), in float64, found once."""
    key = (name, x.shape, x.dtype.name)
    if key not in _facts:
        _facts[key] = float(_found(name, x))
    return _facts[key]


def _found(name: str, x: kw.Array) -> float:
    if name == "sum":
        return sum(float(c.sum()) for c in chunks(x))
    if name == "mean":
        return _fact("sum", x) / x.size
    if name == "var":
        mean = _fact("mean", x)
        return sum(float(((c - mean) ** 2).sum()) for c in chunks(x)) / x.size
    if name == "max":
        return max(float(c.max()) for c in chunks(x))
    best = [(float(c.max()), -i * _CHUNK - int(c.argmax())) for i, c in enumerate(chunks(x))]
    return -max(best)[1]


def _close(name: str, x: kw.Array) -> Callable[[tuple[Any, ...]], float]:
    known = _fact(name, x)
    # A sum near 0 has no digits of its own: errors are told beside a sum's usual size.
    usual = {"sum": x.size**0.5, "mean": x.size**-0.5}.get(name, 0.0)

    def check(results: tuple[Any, ...]) -> float:
        off = abs(float(host(results[0])) - known) / max(usual, abs(known), 1e-300)
        return off if off < float("inf") else float("inf")

    return check


def _of_columns(name: str, x: kw.Array) -> Callable[[], Iterator[Expected]]:
    def expect() -> Iterator[Expected]:
        for part in places((x.shape[1],), _COLUMNS):
            block = host(x, (slice(None), part))
            yield Expected(0, part, np.asarray(getattr(np, name)(block, axis=0)))

    return expect


def _torch(name: str, axis: int | None) -> Callable[..., Any]:
    def call(torch: Any, x: Any) -> Any:
        if name == "var":
            return torch.var(x, dim=axis, correction=0)
        if name == "max":
            return torch.amax(x) if axis is None else torch.amax(x, dim=axis)
        function = getattr(torch, name)
        return function(x) if axis is None else function(x, dim=axis)

    return call


def _reduction(name: str, axis: int | None = None) -> Callable[[Shape, str], Work]:
    def make(shape: Shape, dtype: str) -> Work:
        x = normal(shape, dtype)
        exact = name in ("max", "argmax")
        work = Work(
            [x],
            lambda x: getattr(kw, name)(x, axis=axis),
            x.nbytes,
            tolerance=0.0 if exact else _TOLERANCES[dtype],
            peers={
                "torch": _torch(name, axis),
                "cupy": lambda cupy, x: getattr(cupy, name)(x, axis=axis),
            },
        )
        if axis is None:
            work.check = _close(name, x)
        elif axis == 0:
            work.expect = _of_columns(name, x)
        else:
            work.expect = by_rows(lambda x: getattr(np, name)(x, axis=1), [x])
        return work

    return make


def _cumsum(shape: Shape, dtype: str) -> Work:
    x = normal(shape, dtype)

    def expect() -> Iterator[Expected]:
        before = np.cumsum([0.0, *(float(c.sum()) for c in chunks(x))])
        for part in places(shape):
            first = part.start // _CHUNK
            base = before[first] + float(host(x, slice(first * _CHUNK, part.start)).sum())
            yield Expected(0, part, base + np.cumsum(host(x, part)))

    return Work(
        [x],
        lambda x: kw.cumulative_sum(x, axis=0),
        2 * x.nbytes,
        expect,
        tolerance=_TOLERANCES[dtype],
        peers={
            "torch": lambda torch, x: torch.cumsum(x, 0),
            "cupy": lambda cupy, x: cupy.cumsum(x),
        },
    )


def _all(name: str, shapes: Any) -> Operation:
    return Operation(name, "reductions", _reduction(name), shapes, (1 << 12,), flat, takes=_TAKES)


def _layers(n: int) -> Shape:
    """Of three axes."""
    return (max(1, n >> 16), 128, 512) if n >= 1 << 16 else (2, 16, max(1, n // 32))


def _along(name: str, axis: int, shapes: Any) -> Operation:
    title = f"{name} of {'columns' if axis == 0 else 'rows'}"
    return Operation(title, "reductions", _reduction(name, axis), shapes, (33, 100), matrix,
                     takes=_TAKES)  # fmt: skip


_MATRIX = ((16384, 8192),)
OPERATIONS = [
    _all("sum", ((1 << 14,), (1 << 20,), (1 << 26,), (1 << 30,))),
    _all("mean", ((1 << 26,),)),
    _all("max", ((1 << 26,),)),
    _all("argmax", ((1 << 26,),)),
    _all("var", ((1 << 26,),)),
    _along("sum", 1, ((16384, 8192), (1 << 22, 32), (8, 1 << 24))),
    _along("sum", 0, ((16384, 8192), (1 << 24, 8))),
    Operation("sum of middle axis", "reductions", _reduction("sum", 1), ((64, 4096, 512),),
              (4, 33, 16), _layers, takes=_TAKES),
    _along("max", 1, _MATRIX),
    _along("argmax", 1, _MATRIX),
    _along("var", 1, _MATRIX),
    Operation("cumsum", "reductions", _cumsum, ((1 << 20,), (1 << 24,), (1 << 28,)), (1 << 12,),
              flat, takes=("float32", "float64")),
]  # fmt: skip
