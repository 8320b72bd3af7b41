"""Gates, rotary embedding, embedding and cross-entropy: the other pieces of a network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import kernwright as kw
from kernwright import nn
from kernwright.bench._table.work import (
    FLOATS,
    TOLERANCES,
    Expected,
    Operation,
    Shape,
    Work,
    by_rows,
    host,
    matrix,
    normal,
    places,
)

_HEAD = 128
_VOCABULARY = 128256


def _swiglu(shape: Shape, dtype: str) -> Work:
    arrays = [normal(shape, dtype), normal(shape, dtype, 1)]

    def peer(torch: Any, gate: Any, up: Any) -> Any:
        return torch.nn.functional.silu(gate) * up

    return Work(
        arrays,
        nn.swiglu,
        3 * arrays[0].nbytes,
        by_rows(lambda g, u: g / (1 + np.exp(-g)) * u, arrays),
        tolerance=TOLERANCES[dtype],
        peers={"torch": peer, "compile": peer},
    )


def _bias_gelu(shape: Shape, dtype: str) -> Work:
    x, bias = arrays = [normal(shape, dtype), normal(shape[-1:], dtype, 1)]

    def reference(x: Any, bias: Any) -> Any:
        s = x + bias
        return 0.5 * s * (1 + np.tanh(np.sqrt(2 / np.pi) * (s + 0.044715 * s**3)))

    def peer(torch: Any, x: Any, bias: Any) -> Any:
        return torch.nn.functional.gelu(x + bias, approximate="tanh")

    return Work(
        arrays,
        lambda x, bias: nn.bias_gelu(x, bias, "tanh"),
        2 * x.nbytes + bias.nbytes,
        by_rows(reference, arrays, shared=[1]),
        tolerance=TOLERANCES[dtype],
        peers={"torch": peer, "compile": peer},
    )


def _rope_peer(torch: Any, q: Any, k: Any, cos: Any, sin: Any) -> Any:
    """As transformers has it: the tables hold both halves."""
    c = torch.cat([cos, cos], -1)[None, :, None].to(q.dtype)
    s = torch.cat([sin, sin], -1)[None, :, None].to(q.dtype)
    middle = q.shape[-1] // 2

    def half(x: Any) -> Any:
        return torch.cat([-x[..., middle:], x[..., :middle]], -1)

    return q * c + half(q) * s, k * c + half(k) * s


def _rope(shape: Shape, dtype: str) -> Work:
    """q of `shape` (batch, tokens, heads), and k with a quarter of the heads."""
    batch, tokens, heads = shape
    q = normal((batch, tokens, heads, _HEAD), dtype)
    k = normal((batch, tokens, max(1, heads // 4), _HEAD), dtype, 1)
    cos, sin = nn.rope_tables(tokens, _HEAD)
    middle = _HEAD // 2

    def expect() -> Iterator[Expected]:
        c, s = (host(table)[:, None] for table in (cos, sin))
        for i, x in enumerate((q, k)):
            for row in sorted({0, batch - 1}):
                for part in places((tokens, *x.shape[2:])):
                    own = host(x, (row, part))
                    a, b = own[..., :middle], own[..., middle:]
                    turned = [a * c[part] - b * s[part], b * c[part] + a * s[part]]
                    yield Expected(i, (row, part), np.concatenate(turned, -1))

    return Work(
        [q, k, cos, sin],
        nn.rope,
        2 * (q.nbytes + k.nbytes),
        expect,
        tolerance=TOLERANCES[dtype],
        peers={"torch": _rope_peer, "compile": _rope_peer},
    )


def _rope_of(n: int) -> Shape:
    """So many elements of q: 32 heads, of as many tokens."""
    heads = 32 if n >= 1 << 16 else 4
    return (1, max(1, n // (heads * _HEAD)), heads)


def _embedding(shape: Shape, dtype: str) -> Work:
    count, columns = shape
    vocabulary = _VOCABULARY if count > 1000 else 300
    ids = kw.random.integers(vocabulary, shape=count, seed=1)
    table = normal((vocabulary, columns), dtype, 1)

    def expect() -> Iterator[Expected]:
        known = host(ids)
        for part in places(shape, 8 * columns):
            rows = [host(table, slice(i, i + 1)) for i in known[part].tolist()]
            yield Expected(0, part, np.concatenate(rows))

    return Work(
        [ids, table],
        nn.embedding,
        2 * count * columns * table.itemsize + ids.nbytes,
        expect,
        peers={
            "torch": lambda torch, ids, table: torch.nn.functional.embedding(ids, table),
            "cupy": lambda cupy, ids, table: cupy.take(table, ids, axis=0),
        },
    )


def _embedding_backward(shape: Shape, dtype: str) -> Work:
    count, columns = shape
    vocabulary = _VOCABULARY if count > 1000 else 300
    ids, dy = kw.random.integers(vocabulary, shape=count, seed=1), normal(shape, dtype)

    def expect() -> Iterator[Expected]:
        known = host(ids)
        for part in places((vocabulary, columns), 4 * columns):
            rows = np.zeros((part.stop - part.start, columns))
            for row in range(part.start, part.stop):
                for i in np.flatnonzero(known == row).tolist():
                    rows[row - part.start] += host(dy, slice(i, i + 1))[0]
            yield Expected(0, part, rows)

    def peer(torch: Any, dy: Any, ids: Any) -> Any:
        return torch.ops.aten.embedding_dense_backward(dy, ids, vocabulary, -1, False)

    return Work(
        [dy, ids],
        lambda dy, ids: nn.embedding_backward(dy, ids, vocabulary),
        dy.nbytes + ids.nbytes + vocabulary * columns * dy.itemsize,
        expect,
        tolerance=TOLERANCES[dtype],
        peers={"torch": peer},
    )


def _cross_entropy(shape: Shape, dtype: str) -> Work:
    """The loss and the gradient of the logits."""
    rows, classes = shape
    logits = normal(shape, dtype)
    target = kw.random.integers(classes, shape=rows, seed=1)

    def reference(x: Any, t: Any) -> Any:
        power = np.exp(x - x.max(-1, keepdims=True))
        power /= power.sum(-1, keepdims=True)
        power[np.arange(len(t)), t] -= 1
        return power / rows

    def peer(torch: Any, x: Any, t: Any) -> Any:
        aten = torch.ops.aten
        log = aten._log_softmax(x.float() if x.itemsize < 4 else x, -1, False)
        loss, weight = aten.nll_loss_forward(log, t, None, 1, -100)
        grad = aten.nll_loss_backward(torch.ones_like(loss), log, t, None, 1, -100, weight)
        return aten._log_softmax_backward_data(grad, log, -1, log.dtype).to(x.dtype), loss

    return Work(
        [logits, target],
        lambda x, t: nn.cross_entropy_grad(x, t)[::-1],
        2 * logits.nbytes + target.nbytes,
        by_rows(reference, [logits, target]),
        tolerance=TOLERANCES[dtype],
        peers={"torch": peer, "compile": peer},
    )


def _operation(
    name: str, make: Any, shapes: Any, small: Any, dtypes: Any = ("bfloat16",), of: Any = matrix
) -> Operation:
    return Operation(name, "network", make, shapes, small, of, dtypes, FLOATS)


OPERATIONS = [
    _operation("swiglu", _swiglu, ((8192, 14336), (2048, 8192)), (8, 96)),
    _operation("bias_gelu", _bias_gelu, ((8192, 16384),), (8, 96)),
    _operation("rope", _rope, ((4, 4096, 32), (1, 8192, 64)), (2, 3, 4), of=_rope_of),
    _operation("embedding", _embedding, ((16384, 4096),), (50, 64)),
    _operation("embedding backward", _embedding_backward, ((16384, 4096),), (50, 64)),
    _operation("cross_entropy + gradient", _cross_entropy, ((8192, 128256), (8192, 32000)),
               (4, 3001)),
]  # fmt: skip
