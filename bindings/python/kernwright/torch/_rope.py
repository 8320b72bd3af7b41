"""Rotary embedding for torch."""

from __future__ import annotations

from typing import Any

import torch

from kernwright import _core
from kernwright.errors import InvalidArgument
from kernwright.torch._operators import call, define, differentiate, empty

__all__ = ["rope", "rope_tables"]


def rope_tables(
    length: int, dim: int, *, base: float = 10000.0, device: Any = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines of position / base^(2 i / dim), each (length, dim / 2) of float32.

    The angles are computed in float64. Tables with a scaling of the frequencies are
    torch.from_dlpack() of those of kernwright.nn.rope_tables(), on a GPU.

    >>> import torch, kernwright.torch as kt
    >>> cos, sin = kt.rope_tables(16, 8)
    >>> cos.shape, cos[0].tolist()
    (torch.Size([16, 4]), [1.0, 1.0, 1.0, 1.0])
    """
    if dim < 2 or dim % 2 or length < 0:
        raise InvalidArgument(
            f"tables have an even number of columns, and rows: got length {length}, dim {dim}"
        )
    powers = torch.arange(0, dim, 2, dtype=torch.float64, device=device) / dim
    positions = torch.arange(length, dtype=torch.float64, device=device)
    angles = positions[:, None] * base**-powers
    return angles.cos().float(), angles.sin().float()


def rope(
    q: torch.Tensor,
    k: torch.Tensor | None,
    cos: torch.Tensor,
    sin: torch.Tensor,
    *,
    positions: torch.Tensor | None = None,
    offset: int = 0,
    interleaved: bool = False,
    heads_first: bool = False,
) -> Any:
    """q and k with their pairs (a, b) turned: (a cos - b sin, b cos + a sin); one launch.

    q: (batch, tokens, heads, head_dim), or with `heads_first` (batch, heads, tokens, head_dim), as
    scaled_dot_product_attention() takes it; the batch may be missing. k: the same with other heads,
    or None. Real floats, any strides. Pairs are elements i and i + r / 2 of a head, with
    `interleaved` 2 i and 2 i + 1; r / 2 is the last extent of the tables (rope_tables(), float32).
    What follows the first r elements stays as it is.

    The row of the tables is `offset` plus the number of the token, or plus `positions` of int32 or
    int64, (tokens,) or (batch, tokens). Returns the turned q and k, or q alone where k is None. The
    tables get no gradient. Errors are those of kernwright.nn.rope().

    >>> import torch, kernwright.torch as kt
    >>> q, k = torch.ones(16, 8, 4), torch.ones(16, 2, 4)
    >>> [tuple(each.shape) for each in kt.rope(q, k, *kt.rope_tables(16, 4))]
    [(16, 8, 4), (16, 2, 4)]
    """
    if k is None:
        return _one(q, cos, sin, positions, offset, interleaved, heads_first, False)
    return _two(q, k, cos, sin, positions, offset, interleaved, heads_first, False)


def _run_one(
    q: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    positions: torch.Tensor | None,
    offset: int,
    interleaved: bool,
    heads_first: bool,
    backward: bool,
) -> torch.Tensor:
    def run(q: Any, cos: Any, sin: Any, positions: Any) -> Any:
        return _core._rope(
            q, None, cos, sin, positions, offset, interleaved, heads_first, False, backward
        )

    return call(run, q, q, cos, sin, positions)


def _run_two(
    q: torch.Tensor,
    k: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    positions: torch.Tensor | None,
    offset: int,
    interleaved: bool,
    heads_first: bool,
    backward: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    def run(q: Any, k: Any, cos: Any, sin: Any, positions: Any) -> Any:
        return _core._rope(
            q, k, cos, sin, positions, offset, interleaved, heads_first, False, backward
        )

    return call(run, q, q, k, cos, sin, positions)


def _setup(ctx: Any, inputs: Any, output: Any) -> None:
    *tensors, ctx.offset, ctx.interleaved, ctx.heads_first, ctx.backward = inputs
    ctx.save_for_backward(*tensors[-3:])


def _turned_back(ctx: Any, operator: Any, *gradients: torch.Tensor) -> Any:
    flags = ctx.offset, ctx.interleaved, ctx.heads_first
    made = operator(*gradients, *ctx.saved_tensors, *flags, not ctx.backward)
    made = made if isinstance(made, (tuple, list)) else (made,)
    return (*made, *(None for _ in range(7)))


_one = define("rope", _run_one, lambda q, *_: empty(q))
_two = define("rope_pair", _run_two, lambda q, k, *_: (empty(q), empty(k)))
differentiate("rope", lambda ctx, dq: _turned_back(ctx, _one, dq), _setup)
differentiate("rope_pair", lambda ctx, dq, dk: _turned_back(ctx, _two, dq, dk), _setup)
