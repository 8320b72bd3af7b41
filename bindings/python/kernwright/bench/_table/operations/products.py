"""Matrix products, products with few rows, attention and decoding."""

from __future__ import annotations

import math
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
    normal,
    places,
)

_ROWS = 8  # of a result that are compared
_COLUMNS = 512  # of a product, in each of some places
_HALVES = ("bfloat16", "float16")
_GROUP = 4  # heads that share keys when decoding, as in language models of 8 billion weights


def _some(rows: int) -> list[slice]:
    count = min(_ROWS, rows)
    return [slice(0, count), slice(rows - count, rows)]


def _product(shape: Shape, dtype: str) -> Work:
    rows, columns, inner = shape
    a, weights = normal((rows, inner), dtype), normal((columns, inner), dtype, 1)

    def expect() -> Iterator[Expected]:
        for side in places((columns,), min(columns, _COLUMNS)):
            turned = host(weights, side).T
            for part in _some(rows):
                yield Expected(0, (part, side), host(a, part) @ turned)

    return Work(
        [a, weights],
        lambda a, w: kw.matmul(a, w.T),
        a.nbytes + weights.nbytes + rows * columns * a.itemsize,
        expect,
        tolerance=2 * TOLERANCES[dtype],
        flops=2.0 * rows * columns * inner,
        peers={
            "torch": lambda torch, a, w: torch.matmul(a, w.T),
            "cupy": lambda cupy, a, w: cupy.matmul(a, w.T),
        },
    )


def _cube(n: int) -> Shape:
    """Of n multiplications."""
    return (max(1, round(n ** (1 / 3))),) * 3


def _heads(n: int) -> Shape:
    """Of sequences that are not longer than those of today's models."""
    length = min(max(1, n // 64), 4096)
    return (max(1, n // (64 * length)), length, 64)


def _few(rows: int) -> Callable[[Shape, str], Work]:
    def make(shape: Shape, dtype: str) -> Work:
        columns, inner = shape
        return _product((rows, columns, inner), dtype)

    return make


def _softmax(scores: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    power = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(power / power.sum(-1, keepdims=True))


def _attention(causal: bool) -> Callable[[Shape, str], Work]:
    def make(shape: Shape, dtype: str) -> Work:
        heads, length, size = shape
        q, k, v = (normal((1, heads, length, size), dtype, i) for i in range(3))
        scale = 1 / math.sqrt(size)

        def check(results: tuple[Any, ...]) -> float:
            """By the norm of some rows of the first and the last head."""
            off = total = 0.0
            for head in {0, heads - 1}:
                keys, values = host(k[0, head].copy()), host(v[0, head].copy())
                for part in _some(length):
                    scores = host(q[0, head, part].copy()) @ keys.T * scale
                    if causal:
                        order = np.arange(part.start, part.stop)[:, None]
                        scores = np.where(np.arange(length) <= order, scores, -np.inf)
                    right = _softmax(scores) @ values
                    piece = results[0][0, head, part]
                    got = host(piece.copy() if isinstance(piece, kw.Array) else piece)
                    off += float(((got - right) ** 2).sum())
                    total += float((right**2).sum())
            return math.sqrt(off / total) if math.isfinite(off) else math.inf

        return Work(
            [q, k, v],
            lambda q, k, v: kw.nn.attention(q, k, v, is_causal=causal),
            4.0 * q.nbytes,
            check=check,
            tolerance=2 * TOLERANCES[dtype],
            flops=4.0 * heads * length * length * size / (2 if causal else 1),
            peers={
                "torch": lambda torch, q, k, v: torch.nn.functional.scaled_dot_product_attention(
                    q, k, v, is_causal=causal
                )
            },
        )

    return make


def _decoding(shape: Shape, dtype: str) -> Work:
    batch, heads, length, size = shape
    q = normal((batch, heads * _GROUP, 1, size), dtype)
    k, v = (normal((batch, heads, length, size), dtype, i) for i in (1, 2))

    def expect() -> Iterator[Expected]:
        for part in _some(batch)[:1]:
            keys, values = (np.repeat(host(x, part), _GROUP, 1) for x in (k, v))
            scores = host(q, part) @ keys.swapaxes(-1, -2) / math.sqrt(size)
            yield Expected(0, part, _softmax(scores) @ values)

    return Work(
        [q, k, v],
        lambda q, k, v: kw.nn.decode_attention(q, k, v),
        float(k.nbytes + v.nbytes),
        expect,
        tolerance=2 * TOLERANCES[dtype],
        peers={
            "torch": lambda torch, q, k, v: torch.nn.functional.scaled_dot_product_attention(
                q, k, v, enable_gqa=True
            )
        },
    )


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "matmul", "gemm", _product,
        [(1024,) * 3, (2048,) * 3, (4096,) * 3, (8192,) * 3, (4095,) * 3, (4096, 14336, 4096)],
        (32, 48, 64), _cube, ("bfloat16", "float32"), (*_HALVES, "float32"),
    ),
    *(
        Operation(
            f"linear, {rows} row{'s' * (rows > 1)}", "gemv", _few(rows),
            [(4096, 4096), (14336, 4096), (4096, 14336), (128256, 4096)],
            (48, 64), lambda n: (max(1, math.isqrt(n)),) * 2, ("bfloat16",), _HALVES,
        )
        for rows in (1, 8, 64)
    ),
    *(
        Operation(
            name, "attention", _attention(causal),
            [(32, 512, 128), (32, 4096, 128), (16, 16384, 128), (32, 2048, 64)],
            (2, 40, 64), _heads, ("bfloat16",), _HALVES,
        )
        for name, causal in (("attention", False), ("attention, causal", True))
    ),
    Operation(
        "decode attention", "attention", _decoding,
        [(1, 8, 4096, 128), (1, 8, 32768, 128), (8, 8, 8192, 128), (32, 8, 4096, 128)],
        (2, 2, 50, 64), lambda n: (1, 8, max(1, n // 1024), 128), ("bfloat16",), _HALVES,
    ),
)  # fmt: skip
