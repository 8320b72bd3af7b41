"""sort, argsort and topk. Of long rows, what is expected is told by counts, not by a sort."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import kernwright as kw
from kernwright.bench._table.operations.reductions import chunks
from kernwright.bench._table.work import Operation, Shape, Work, flat, host, matrix, places, whole

_TAKES = ("float32", "float16", "float64", "int32", "int64")
_RANKS = 3  # positions of a long row whose element is looked up
_LONG = 1 << 21  # elements of a row that is not sorted on the host


def _rank_error(x: kw.Array, element: Any, rank: int) -> float:
    """0 where as many elements are below `element` as its place says."""
    below = at_most = 0
    for chunk in chunks(x):
        below += int(np.count_nonzero(chunk < element))
        at_most += int(np.count_nonzero(chunk <= element))
    return 0.0 if below <= rank < at_most else 1.0


def _wrong_order(values: Any, indices: Any = None) -> float:
    """0 where the values ascend, and the indices of equal ones do."""
    wrong = values[:-1] > values[1:]
    if indices is not None:
        wrong |= (values[:-1] == values[1:]) & (indices[:-1] >= indices[1:])
    return float(wrong.any())


def _check_long(x: kw.Array, argsort: bool) -> Callable[[tuple[Any, ...]], float]:
    def check(results: tuple[Any, ...]) -> float:
        found = results[0]
        worst = 0.0
        for part in places(x.shape):
            indices = host(found, part) if argsort else None
            if indices is not None:
                values = np.concatenate([host(x, slice(i, i + 1)) for i in indices[:256].tolist()])
                worst = max(worst, _wrong_order(values, indices[:256]))
            else:
                worst = max(worst, _wrong_order(host(found, part)))
        for rank in np.linspace(0, x.shape[0] - 1, _RANKS, dtype=np.int64).tolist():
            at = host(found, slice(rank, rank + 1))
            element = host(x, slice(int(at[0]), int(at[0]) + 1)) if argsort else at
            worst = max(worst, _rank_error(x, element[0], rank))
        return worst

    return check


def _check_rows(x: kw.Array, argsort: bool) -> Callable[[tuple[Any, ...]], float]:
    def check(results: tuple[Any, ...]) -> float:
        parts = [None] if x.ndim == 1 else places(x.shape)
        sort: Any = np.argsort if argsort else np.sort
        for part in parts:
            if not np.array_equal(host(results[0], part), sort(host(x, part), kind="stable")):
                return 1.0
        return 0.0

    return check


def _sort(argsort: bool) -> Callable[[Shape, str], Work]:
    def make(shape: Shape, dtype: str) -> Work:
        x = whole(shape, dtype)
        ours: Any = kw.argsort if argsort else kw.sort
        long = x.ndim == 1 and x.shape[0] >= _LONG

        def in_torch(torch: Any, x: Any) -> Any:
            values, indices = torch.sort(x, stable=True)
            return indices if argsort else values

        return Work(
            [x],
            ours,
            x.nbytes + x.size * (8 if argsort else x.itemsize),
            check=_check_long(x, argsort) if long else _check_rows(x, argsort),
            peers={
                "torch": in_torch,
                "cupy": lambda cupy, x: (cupy.argsort if argsort else cupy.sort)(x),
            },
        )

    return make


def _topk(shape: Shape, dtype: str, k: int) -> Work:
    x = whole(shape, dtype)
    count = min(k, shape[-1])

    def check(results: tuple[Any, ...]) -> float:
        for part in places(shape, 1 << 17):
            rows = host(x, part)
            order = np.argsort(-rows, axis=-1, kind="stable")[:, :count]
            values = np.take_along_axis(rows, order, -1)
            if not np.array_equal(host(results[0], part), values):
                return 1.0
            # Peers give equal elements in any order: their places hold these values.
            found = np.take_along_axis(rows, host(results[1], part).astype(np.int64), -1)
            ours = isinstance(results[1], kw.Array)
            if not np.array_equal(found, values):
                return 1.0
            if ours and not np.array_equal(host(results[1], part), order):
                return 1.0
        return 0.0

    return Work(
        [x],
        lambda x: kw.topk(x, count),
        x.nbytes,
        check=check,
        peers={"torch": lambda torch, x: torch.topk(x, count)},
    )


def _ordered(argsort: bool, shapes: Any, small: Shape, *dtypes: str) -> Operation:
    return Operation("argsort" if argsort else "sort", "ordering", _sort(argsort), shapes, small,
                     flat, dtypes, _TAKES if dtypes == ("float32",) else dtypes)  # fmt: skip


def _top(k: int, shapes: Any) -> Operation:
    return Operation(f"top {k}", "ordering", lambda shape, dtype: _topk(shape, dtype, k), shapes,
                     (4, 600), matrix, takes=("float32", "float16", "float64"))  # fmt: skip


OPERATIONS = [
    _ordered(False, ((1 << 24,), (4096, 2048)), (1 << 12,), "float32"),
    _ordered(False, ((1 << 24,),), (1 << 11,), "int64"),
    _ordered(False, ((65536, 128),), (8, 128), "float16"),
    _ordered(True, ((1 << 22,), (1024, 4096)), (1 << 12,), "float32"),
    _ordered(True, ((1 << 22,),), (1 << 11,), "int32"),
    _top(50, ((1, 128256), (128, 128256))),
    _top(8, ((8192, 128),)),
    _top(512, ((4, 65536),)),
]
