"""The backward pass of attention beside torch's autograd, for attention.py."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from attention_shared import (
    BACKENDS,
    TOLERANCE,
    Shape,
    distance,
    largest_error,
    normal,
    operands,
    rates,
    time_in_turn,
    torch_names,
)

import kernwright as kw
from kernwright import _core, nn


class Backward:
    """The operands of the backward pass, with the results of the forward pass."""

    def __init__(self, shape: Shape) -> None:
        self.shape, self.grouped = shape, shape.heads != shape.kv_heads
        self.arrays = operands(shape)
        self.grad = normal(shape.batch, shape.heads, shape.queries, shape.dim, seed=4)
        self.out, self.lse = nn.attention(
            *self.arrays, is_causal=shape.causal, enable_gqa=self.grouped, return_lse=True
        )

    def by(self, kernel: str, heads: int | None = None) -> Any:
        with _core._AttentionBackwardPlan(kernel, heads):
            return nn.attention_backward(
                self.grad,
                *self.arrays,
                self.out,
                self.lse,
                is_causal=self.shape.causal,
                enable_gqa=self.grouped,
            )

    def peers(self) -> Iterator[tuple[str, Any]]:
        """torch's autograd alone; it uses the backend of its forward pass."""
        torch = torch_names()
        if torch is None:
            return
        from torch.nn.attention import SDPBackend, sdpa_kernel

        attention = torch.nn.functional.scaled_dot_product_attention
        given = [torch.from_dlpack(x).detach().requires_grad_() for x in self.arrays]
        grad = torch.from_dlpack(self.grad)
        for name in BACKENDS:
            backend = getattr(SDPBackend, name, None)
            if backend is None:
                continue
            title = f"torch {name.split('_')[0].lower()}"
            try:
                with sdpa_kernel([backend]):
                    out = attention(*given, is_causal=self.shape.causal, enable_gqa=self.grouped)
            except Exception as error:  # the other subjects still get figures
                print(title, "cannot run:", str(error)[:200], file=sys.stderr)
                continue
            yield (
                title,
                functools.partial(torch.autograd.grad, out, given, grad, retain_graph=True),
            )

    def head(self, array: kw.Array, batch: int, head: int) -> np.ndarray:
        return array[batch, head].numpy().astype(np.float64)

    def changes(
        self,
        query: np.ndarray,
        grad: np.ndarray,
        lse: np.ndarray,
        delta: np.ndarray,
        key: np.ndarray,
        value: np.ndarray,
        rows: Any,
        columns: Any,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Weights of some queries and keys of a head, and the gradients of their products."""
        scale = self.shape.dim**-0.5
        score = query[rows] @ key[columns].T * scale - lse[rows, None]
        if self.shape.causal:
            score[np.asarray(columns)[None] > np.asarray(rows)[:, None]] = -np.inf
        weight = np.exp(score)
        return weight, weight * (grad[rows] @ value[columns].T - delta[rows, None]) * scale

    def relative_error(self, made: tuple[kw.Array, ...]) -> float:
        """The largest error of rows of each gradient, of the first and the last head, against
        float64 from the result and the logarithms of the forward pass."""
        errors = []
        shape = self.shape
        rows = sorted({0, shape.queries // 2, shape.queries - 1})
        columns = sorted({0, shape.keys // 2, shape.keys - 1})
        group = shape.heads // shape.kv_heads
        for batch, kv_head in ((0, 0), (shape.batch - 1, shape.kv_heads - 1)):
            key, value = (self.head(x, batch, kv_head) for x in self.arrays[1:])
            wanted_keys, wanted_values = np.zeros((2, len(columns), shape.dim))
            for head in range(kv_head * group, (kv_head + 1) * group):
                query, grad, out = (
                    self.head(x, batch, head) for x in (self.arrays[0], self.grad, self.out)
                )
                lse, delta = self.head(self.lse, batch, head), (grad * out).sum(-1)
                changes = functools.partial(self.changes, query, grad, lse, delta, key, value)
                weight, change = changes(np.arange(shape.queries), columns)
                wanted_keys += change.T @ query
                wanted_values += weight.T @ grad
                row_gradient = changes(rows, np.arange(shape.keys))[1] @ key
                errors.append(distance(self.head(made[0], batch, head)[rows], row_gradient))
            for array, wanted in zip(made[1:], (wanted_keys, wanted_values), strict=True):
                errors.append(distance(self.head(array, batch, kv_head)[columns], wanted))
        return largest_error(errors)


def measure_backward(
    shape: Shape, timed: bool, kernel: str = "auto", candidates: bool = False
) -> dict[str, Any]:
    """With `candidates` also the other kernel and more orders of blocks, the best first."""
    backward = Backward(shape)
    row: dict[str, Any] = {"subject": "backward", **shape._asdict(), "wrong": [], "left out": {}}
    runs: dict[str, Callable[[], Any]] = {"ours": lambda: backward.by(kernel)}
    if candidates:
        runs["ours, mma"] = lambda: backward.by("mma")
        for heads in (1, 2, 4, 8, 16, 1 << 20):
            runs[f"ours, {heads} heads at a time"] = functools.partial(backward.by, "hopper", heads)
    for title, run in list(runs.items()):
        try:
            found = backward.relative_error(run())
        except kw.Error as error:  # no room for the tile, or no Hopper
            row["left out"][title] = str(error)[:120]
        else:
            if title == "ours":
                row["error"] = found
            if not found <= TOLERANCE:
                row["wrong"].append(title)
        if title in row["left out"] or title in row["wrong"]:
            del runs[title]
    row["correct"] = not row["wrong"] and "ours" in runs
    if timed:
        taken = time_in_turn({**runs, **dict(backward.peers())})
        found = rates(taken, lambda us: {"TFLOP/s": round(2.5 * shape.flops() / us / 1e6, 1)})
        row |= dict(sorted(found.items(), key=lambda item: -item[1].get("TFLOP/s", 0)))
    return row
