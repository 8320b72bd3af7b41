"""Transposes, joining, rows taken and scattered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import kernwright as kw
from kernwright.bench._table.work import (
    TOLERANCES,
    Expected,
    Operation,
    Shape,
    Work,
    host,
    matrix,
    normal,
    places,
    square,
    whole,
)

_TAKES = ("float32", "bfloat16", "float16", "float64")
_PARTS = 4  # arrays that are joined


def _permuted(order: tuple[int, ...]) -> Callable[[Shape, str], Work]:
    def make(shape: Shape, dtype: str) -> Work:
        x = whole(shape, dtype)
        made = tuple(shape[axis] for axis in order)

        def expect() -> Iterator[Expected]:
            for part in places(made, 4096):
                key: list[Any] = [slice(None)] * len(shape)
                key[order[0]] = part
                block = x[tuple(key)]
                yield Expected(0, part, host(block.copy()).transpose(order))

        return Work(
            [x],
            lambda x: x.transpose(order).copy(),
            2 * x.nbytes,
            expect,
            peers={
                "torch": lambda torch, x: x.permute(order).contiguous(),
                "cupy": lambda cupy, x: cupy.ascontiguousarray(x.transpose(order)),
            },
        )

    return make


def _concat(axis: int) -> Callable[[Shape, str], Work]:
    def make(shape: Shape, dtype: str) -> Work:
        rows, columns = shape
        parts = [normal((rows, columns), dtype, i) for i in range(_PARTS)]
        made = (rows * _PARTS, columns) if axis == 0 else (rows, columns * _PARTS)

        def expect() -> Iterator[Expected]:
            for part in places(made):
                if axis == 1:
                    block = np.concatenate([host(p, part) for p in parts], 1)
                else:
                    picked = [divmod(i, rows) for i in range(part.start, part.stop)]
                    block = np.concatenate([host(parts[p], slice(r, r + 1)) for p, r in picked])
                yield Expected(0, part, block)

        return Work(
            parts,
            lambda *parts: kw.concat(parts, axis=axis),
            2 * _PARTS * parts[0].nbytes,
            expect,
            peers={
                "torch": lambda torch, *parts: torch.cat(parts, axis),
                "cupy": lambda cupy, *parts: cupy.concatenate(parts, axis),
            },
        )

    return make


def _rows(shape: Shape, dtype: str) -> tuple[kw.Array, kw.Array]:
    """Rows, and a random order of them."""
    return normal(shape, dtype), kw.random.permutation(shape[0], seed=1)


def _take(shape: Shape, dtype: str) -> Work:
    x, order = _rows(shape, dtype)

    def expect() -> Iterator[Expected]:
        for part in places(shape, 16 * shape[1]):
            rows = [host(x, slice(i, i + 1)) for i in host(order, part).tolist()]
            yield Expected(0, part, np.concatenate(rows))

    return Work(
        [x, order],
        lambda x, order: kw.take(x, order, axis=0),
        2 * x.nbytes + order.nbytes,
        expect,
        peers={
            "torch": lambda torch, x, order: torch.index_select(x, 0, order),
            "cupy": lambda cupy, x, order: cupy.take(x, order, axis=0),
        },
    )


def _scatter(adds: bool, distinct: bool = False) -> Callable[[Shape, str], Work]:
    def make(shape: Shape, dtype: str) -> Work:
        x, order = _rows(shape, dtype)
        y = normal(shape, dtype, 1)

        def ours(x: Any, y: Any, order: Any) -> Any:
            kw.put(y, order, x, axis=0, reduce="add" if adds else None, unique_indices=distinct)
            return y

        def in_torch(torch: Any, x: Any, y: Any, order: Any) -> Any:
            return y.index_add_(0, order, x) if adds else y.index_copy_(0, order, x)

        def in_cupy(cupy: Any, x: Any, y: Any, order: Any) -> Any:
            if adds:
                cupy.add.at(y, order, x)
            else:
                y[order] = x
            return y

        def expect() -> Iterator[Expected]:
            known = host(order)
            for part in places(shape, 16 * shape[1]):
                where = np.flatnonzero((known >= part.start) & (known < part.stop))
                where = where[np.argsort(known[where])]
                block = np.concatenate([host(x, slice(i, i + 1)) for i in where.tolist()])
                yield Expected(0, part, block + host(y, part) if adds else block)

        moved = (3 if adds else 2) * x.nbytes + order.nbytes
        return Work(
            [x, y, order],
            ours,
            moved,
            expect,
            tolerance=TOLERANCES[dtype] if adds else 0.0,
            peers={"torch": in_torch, "cupy": in_cupy},
            inplace=True,
        )

    return make


def _operation(
    name: str, make: Any, shapes: Any, small: Any, of: Any, dtypes: Any = ("float32",),
    takes: Any = _TAKES,
) -> Operation:  # fmt: skip
    return Operation(name, "movement", make, shapes, small, of, dtypes, takes)


def cube(n: int) -> Shape:
    side = max(1, round(n ** (1 / 3)))
    return (side, side, side)


def tokens(n: int) -> Shape:
    """Of four axes, as heads of an attention."""
    return (max(1, n >> 18), 64, 16, 256) if n >= 1 << 18 else (2, 4, 4, max(1, n // 32))


def _transpose(order: tuple[int, ...], shape: Shape) -> Operation:
    small, of_size = ((5, 33, 17), cube) if len(order) == 3 else ((2, 5, 3, 8), tokens)
    name = " ".join(map(str, order))
    return _operation(f"transpose {name}", _permuted(order), (shape,), small, of_size)


_ROWS = ((131072, 1024), (2097152, 64), (1 << 26, 1))
OPERATIONS = [
    _operation("transpose", _permuted((1, 0)), ((8192, 8192), (8193, 8191)), (65, 33), square,
               ("float32", "bfloat16", "uint8"), (*_TAKES, "uint8")),
    _transpose((0, 2, 1), (64, 1024, 2048)),
    _transpose((2, 1, 0), (512, 512, 512)),
    _transpose((1, 0, 2), (1024, 64, 2048)),
    _transpose((0, 3, 1, 2), (16, 128, 256, 256)),
    _transpose((0, 2, 1, 3), (16, 2048, 32, 128)),
    _transpose((3, 2, 1, 0), (64, 128, 128, 128)),
    _operation("concat of rows", _concat(0), ((8192, 4096),), (7, 33),
               lambda n: matrix(-(-n // _PARTS))),
    _operation("concat of columns", _concat(1), ((8192, 4096),), (7, 33),
               lambda n: matrix(-(-n // _PARTS))),
    _operation("take rows", _take, _ROWS, (33, 65), matrix),
    _operation("scatter rows", _scatter(False), _ROWS, (33, 65), matrix),
    _operation("scatter distinct rows", _scatter(False, True), _ROWS, (33, 65), matrix),
    _operation("scatter-add rows", _scatter(True), _ROWS[:1], (33, 65), matrix),
]  # fmt: skip
