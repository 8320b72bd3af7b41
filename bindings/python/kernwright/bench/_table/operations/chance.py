"""AdamW, sampling and random numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import kernwright as kw
from kernwright import nn
from kernwright.bench._table.work import (
    Expected,
    Operation,
    Shape,
    Work,
    flat,
    host,
    matrix,
    normal,
    places,
)

_RATE, _BETA1, _BETA2, _EPSILON, _DECAY, _STEP = 1e-3, 0.9, 0.999, 1e-8, 1e-2, 3
_TOP = 50


def _adamw_reference(p: Any, g: Any, m: Any, v: Any) -> tuple[Any, Any, Any]:
    p = p * (1 - _RATE * _DECAY)
    m = _BETA1 * m + (1 - _BETA1) * g
    v = _BETA2 * v + (1 - _BETA2) * g * g
    root = np.sqrt(v / (1 - _BETA2**_STEP)) + _EPSILON
    return p - _RATE / (1 - _BETA1**_STEP) * m / root, m, v


def _adamw(shape: Shape, dtype: str) -> Work:
    """The third step."""
    p, g, m = (normal(shape, "float32", i) for i in range(3))
    v = m * m
    step = kw.full(1, float(_STEP))

    def ours(p: Any, g: Any, m: Any, v: Any, _: Any) -> Any:
        kw.optim.adamw([p], [g], [m], [v], step=_STEP, lr=_RATE, betas=(_BETA1, _BETA2),
                       eps=_EPSILON, weight_decay=_DECAY)  # fmt: skip
        return p, m, v

    def in_torch(torch: Any, p: Any, g: Any, m: Any, v: Any, step: Any) -> Any:
        torch._fused_adamw_(
            [p], [g], [m], [v], [], [step.reshape(())], amsgrad=False, lr=_RATE, beta1=_BETA1,
            beta2=_BETA2, weight_decay=_DECAY, eps=_EPSILON, maximize=False,
        )  # fmt: skip
        return p, m, v

    def expect() -> Iterator[Expected]:
        for part in places(shape):
            found = _adamw_reference(*(host(a, part) for a in (p, g, m, v)))
            for i, values in enumerate(found):
                yield Expected(i, part, values)

    return Work(
        [p, g, m, v, step],
        ours,
        7 * p.nbytes,
        expect,
        tolerance=1e-5,
        peers={"torch": in_torch},
        inplace=True,
    )


def _logits(shape: Shape, dtype: str) -> kw.Array:
    return kw.random.normal(shape, dtype, std=2.0, seed=1)


def _sample(shape: Shape, dtype: str, top_p: float = 1.0) -> Work:
    """A token of the 50 most probable ones of each row, of those that together have `top_p`."""
    logits, out = _logits(shape, dtype), kw.full(shape[0], -1, "int64")

    def in_torch(torch: Any, logits: Any, _: Any) -> Any:
        values, indices = torch.topk(logits, _TOP)
        drawn = torch.multinomial(torch.softmax(values.float(), -1), 1)
        return torch.gather(indices, -1, drawn)[:, 0]

    def check(results: tuple[Any, ...]) -> float:
        for part in places(shape, 1 << 18):
            rows, drawn = host(logits, part), host(results[0], part).astype(np.int64)
            if (drawn < 0).any() or (drawn >= shape[1]).any():
                return 1.0
            least = np.sort(rows, -1)[:, -_TOP]
            if (rows[np.arange(len(rows)), drawn] < least).any():
                return 1.0
        return 0.0

    return Work(
        [logits, out],
        lambda logits, out: nn.sample(logits, top_k=_TOP, top_p=top_p, seed=1, out=out),
        logits.nbytes,
        check=check,
        peers={"torch": in_torch} if top_p == 1.0 else {},
    )


def _greedy(shape: Shape, dtype: str) -> Work:
    logits = _logits(shape, dtype)

    def expect() -> Iterator[Expected]:
        for part in places(shape, 1 << 18):
            yield Expected(0, part, host(logits, part).argmax(-1))

    return Work(
        [logits],
        nn.greedy,
        logits.nbytes,
        expect,
        peers={"torch": lambda torch, logits: torch.argmax(logits, -1)},
    )


def _random_normal(shape: Shape, dtype: str) -> Work:
    x = kw.full(shape, float("nan"), dtype)
    generator = kw.random.Generator(1)

    def check(results: tuple[Any, ...]) -> float:
        """Mean and deviation, in their own standard errors; 0 where both are within 5."""
        z = np.concatenate([host(results[0], part) for part in places(shape)])
        errors = abs(z.mean()) * z.size**0.5, abs(z.std() - 1) * (2 * z.size) ** 0.5
        return 0.0 if max(errors) < 5 else 1.0

    return Work(
        [x],
        lambda x: generator.normal(out=x),
        x.nbytes,
        check=check,
        peers={
            "torch": lambda torch, x: x.normal_(),
            "cupy": lambda cupy, x: cupy.random.standard_normal(x.size, dtype=x.dtype),
        },
        inplace=True,
    )


_LOGITS = ("float32", "bfloat16", "float16")
_SHAPES = ((1, 128256), (8, 128256), (128, 128256))
OPERATIONS = [
    Operation("adamw", "training", _adamw, ((250_000_000,), (1 << 24,)), (3001,), flat),
    Operation("sample of top 50", "sampling", _sample, _SHAPES, (3, 301), matrix, takes=_LOGITS),
    Operation("sample of top 50 and p 0.9", "sampling",
              lambda shape, dtype: _sample(shape, dtype, 0.9),
              _SHAPES[-1:], (3, 301), matrix, takes=_LOGITS),
    Operation("greedy", "sampling", _greedy, ((1, 128256), (128, 128256)), (3, 301), matrix,
              takes=_LOGITS),
    Operation("random normal", "random", _random_normal, ((1 << 20,), (1 << 28,)), (1 << 12,), flat,
              takes=("float32", "float64", "float16", "bfloat16")),
]  # fmt: skip
