"""Rows of a table, for torch."""

from __future__ import annotations

from typing import Any

import torch

from kernwright import _core
from kernwright.errors import InvalidArgument
from kernwright.torch._operators import call, define, differentiate, empty

__all__ = ["embedding"]


def embedding(
    input: torch.Tensor,
    weight: torch.Tensor,
    padding_idx: int | None = None,
    *,
    scale: float = 1.0,
) -> torch.Tensor:
    """scale * weight[input]: shape input.shape + (D,), the dtype of the weight (V, D), real floats.

    torch.nn.functional.embedding(). `input` is of int32 or int64; a number outside of [0, V) gives
    zeros, which costs no wait for the device. Row `padding_idx` gets no gradient. The gradient is a
    sum in a fixed order, in float32 (float64 for float64): the same in every run.

    >>> import torch, kernwright.torch as kt
    >>> kt.embedding(torch.tensor([1, 0]), torch.tensor([[0.0, 1.0], [2.0, 3.0]])).tolist()
    [[2.0, 3.0], [0.0, 1.0]]
    """
    if padding_idx is not None:
        rows = weight.shape[0]
        if not -rows <= padding_idx < rows:
            raise InvalidArgument(f"padding_idx is {padding_idx}, and the weight has {rows} rows")
        padding_idx %= rows
    return _forward(input, weight, padding_idx, scale)


def _run(ids: torch.Tensor, table: torch.Tensor, padding: int | None, scale: float) -> torch.Tensor:
    return call(_core._embedding, table, ids, table, scale, False)


def _run_backward(
    dy: torch.Tensor,
    ids: torch.Tensor,
    rows: int | torch.SymInt,
    padding: int | None,
    scale: float,
) -> torch.Tensor:
    return call(_core._embedding_backward, dy, dy, ids, rows, padding, scale)


def _setup(ctx: Any, inputs: Any, output: Any) -> None:
    ids, table, ctx.padding, ctx.scale = inputs
    ctx.rows = table.shape[0]
    ctx.save_for_backward(ids)


def _gradient(ctx: Any, dy: torch.Tensor) -> Any:
    (ids,) = ctx.saved_tensors
    return None, _backward(dy, ids, ctx.rows, ctx.padding, ctx.scale), None, None


_forward = define(
    "embedding",
    _run,
    lambda ids, table, padding, scale: empty(table, (*ids.shape, table.shape[1])),
)
_backward = define(
    "embedding_backward",
    _run_backward,
    lambda dy, ids, rows, padding, scale: empty(dy, (rows, dy.shape[-1])),
)
differentiate("embedding", _gradient, _setup)
