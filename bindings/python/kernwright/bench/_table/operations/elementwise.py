"""Copy, arithmetic, functions, a choice and casts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import kernwright as kw
from kernwright.bench._table.work import (
    FLOATS,
    TOLERANCES,
    Operation,
    Shape,
    Work,
    by_rows,
    bytes_of,
    flat,
    normal,
)

_SHAPES = ((1 << 14,), (1 << 20,), (1 << 24,), (1 << 28,))
_SOME = ((1 << 24,), (1 << 28,))


_erf = np.vectorize(math.erf, otypes=[np.float64])


def _copy(shape: Shape, dtype: str) -> Work:
    x = normal(shape, dtype)
    return Work(
        [x],
        lambda x: x.copy(),
        2 * x.nbytes,
        by_rows(lambda x: x, [x]),
        peers={"torch": lambda torch, x: x.clone(), "cupy": lambda cupy, x: x.copy()},
    )


def _add(shape: Shape, dtype: str) -> Work:
    x, y = normal(shape, dtype), normal(shape, dtype, 1)
    return Work(
        [x, y],
        lambda x, y: x + y,
        3 * x.nbytes,
        by_rows(np.add, [x, y]),
        tolerance=TOLERANCES[dtype],
        peers={
            "torch": lambda torch, x, y: x + y,
            "cupy": lambda cupy, x, y: x + y,
            "triton": lambda kernels, x, y: kernels.add(x, y),
        },
    )


def _unary(
    ours: Callable[[Any], Any], reference: Callable[[Any], Any], **peers: Callable[..., Any]
) -> Callable[[Shape, str], Work]:
    def make(shape: Shape, dtype: str) -> Work:
        x = normal(shape, dtype)
        return Work([x], ours, 2 * x.nbytes, by_rows(reference, [x]),
                    tolerance=TOLERANCES[dtype], peers=peers)  # fmt: skip

    return make


def _where(shape: Shape, dtype: str) -> Work:
    x, y = normal(shape, dtype), normal(shape, dtype, 1)
    mask = normal(shape, "float32", 2) > 0
    arrays = [mask, x, y]
    return Work(
        arrays,
        lambda mask, x, y: kw.where(mask, x, y),
        bytes_of(mask, x, y, x),
        by_rows(np.where, arrays),
        peers={
            "torch": lambda torch, mask, x, y: torch.where(mask, x, y),
            "cupy": lambda cupy, mask, x, y: cupy.where(mask, x, y),
        },
    )


def _cast(target: str) -> Callable[[Shape, str], Work]:
    def make(shape: Shape, dtype: str) -> Work:
        x = normal(shape, dtype)
        size = np.dtype(kw.empty(0, target).dtype).itemsize
        return Work(
            [x],
            lambda x: x.astype(target),
            x.nbytes + x.size * size,
            by_rows(lambda x: x, [x]),
            tolerance=max(TOLERANCES[target], TOLERANCES[dtype]),
            peers={"torch": lambda torch, x: x.to(getattr(torch, target))},
        )

    return make


def _operation(name: str, make: Any, shapes: Any = _SOME, dtypes: Any = ("float32",)) -> Operation:
    return Operation(name, "elementwise", make, shapes, (1 << 12,), flat, dtypes, FLOATS)


OPERATIONS = [
    _operation("copy", _copy, _SHAPES),
    _operation("add", _add, _SHAPES, ("float32", "bfloat16")),
    _operation(
        "exp",
        _unary(
            kw.exp, np.exp,
            torch=lambda torch, x: torch.exp(x), cupy=lambda cupy, x: cupy.exp(x),
        ),
    ),
    _operation(
        "gelu",
        _unary(
            lambda x: kw.nn.gelu(x),
            lambda x: 0.5 * x * (1 + _erf(x / np.sqrt(2))),
            torch=lambda torch, x: torch.nn.functional.gelu(x),
        ),
        dtypes=("float32", "bfloat16"),
    ),
    _operation("where", _where),
    Operation("cast to bfloat16", "elementwise", _cast("bfloat16"), _SOME, (1 << 12,), flat,
              ("float32",), ("float32", "float16", "float64")),
    Operation("cast to float32", "elementwise", _cast("float32"), _SOME, (1 << 12,), flat,
              ("bfloat16",), ("bfloat16", "float16", "float64")),
]  # fmt: skip
