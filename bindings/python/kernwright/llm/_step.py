"""What a model is called with: new tokens, their positions, and attention over what came before.

>>> import kernwright as kw
>>> from kernwright import llm
>>> step = llm.WholeStep([[5, 6, 7], [8]])
>>> step.positions.numpy().tolist()
[0, 1, 2, 0]
>>> step.select(kw.ones((4, 16))).shape
(2, 16)
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import kernwright as kw
from kernwright._core import Array
from kernwright.llm._errors import ModelError

__all__ = ["Rotation", "Step", "WholeStep"]


class Rotation(NamedTuple):
    """Tables of rotary positions, as kw.nn.rope_tables() makes them, and how pairs are formed.

    With `short_length` above 0 ("longrope") texts of up to so many tokens have the rows in front,
    and longer ones, from their first token on, the rows from `short_length` on.

    >>> from kernwright import llm
    >>> llm.Rotation(*kw.nn.rope_tables(16, 8)).cos.shape
    (16, 4)
    """

    cos: Array
    sin: Array
    interleaved: bool = False
    short_length: int = 0


class Step(abc.ABC):
    """New tokens of one or more sequences, packed one behind the other.

    A model is a kw.nn.Module that is called with a Step and returns logits of select()'s rows. The
    same code then serves whole prompts, chunks of prompts and single tokens, alone or in a batch.

    >>> from kernwright import llm
    >>> class Uniform(kw.nn.Module):  # gives all tokens the same chances
    ...     def __call__(self, step: llm.Step):
    ...         return step.select(kw.zeros((step.tokens.shape[0], 48)))
    >>> Uniform()(llm.WholeStep([[1, 2, 3], [4]])).shape
    (2, 48)
    """

    tokens: Array
    """(tokens,) int32: the numbers of the new tokens."""
    positions: Array
    """(tokens,) int32: the place of each in its sequence."""
    longest: int | None = None
    """No sequence has more tokens, so that tables of positions need no more rows; None where only
    the model's context bounds them."""
    _has_selected = False

    @abc.abstractmethod
    def attend(
        self, layer: int, q: Array, k: Array, v: Array, *, rope: Rotation | None = None,
        q_norm: Array | None = None, k_norm: Array | None = None, eps: float = 1e-6,
        scale: float | None = None, window: int | None = None, soft_cap: float | None = None,
        sinks: Array | None = None,
    ) -> Array:  # fmt: skip
        """Attention of the new tokens over their sequences up to themselves.

        q (tokens, heads, head_dim), k and v (tokens, kv_heads, head_dim), any strides: views of one
        product go in as they are. In this order: with `q_norm` and `k_norm`, (head_dim,), each head
        is normalised as by kw.nn.rms_norm(); with `rope`, queries and keys turn by the tokens'
        positions; keys and values are kept as those of `layer`, counted from 0; softmax(scale q k)
        v, where a token sees the last `window` tokens up to itself. scale, soft_cap and sinks are
        those of kw.nn.attention(). The result is (tokens, heads, head_dim).
        """

    def observe(self, layer: int, x: Array) -> None:  # noqa: B027
        """Takes the hidden states (tokens, ...) in front of a layer, and those behind the last one
        with the number of layers: heads write drafts from them. A model without heads need not call
        it."""

    @abc.abstractmethod
    def select(self, x: Array) -> Array:
        """The rows of x (tokens, ...) whose logits are wanted: the last new token of each sequence,
        or all."""


class WholeStep(Step):
    """Whole sequences, from their first token on; nothing is kept.

    `sequences`: lists of token numbers, none empty. select() takes the last token of each, or all
    with `select="all"`.

    >>> from kernwright import llm
    >>> llm.WholeStep([[5, 6, 7], [8]]).positions.numpy().tolist()
    [0, 1, 2, 0]
    """

    def __init__(
        self, sequences: Sequence[Sequence[int]], *, select: str = "last", device: Any = None
    ) -> None:
        if select not in ("last", "all"):
            raise ModelError(f'select is "last" or "all", got {select!r:.60}')
        lengths = [len(each) for each in sequences]
        if not lengths or min(lengths) == 0:
            raise ModelError("a step takes sequences of one token at least, got an empty one")
        starts = np.cumsum([0, *lengths]).astype(np.int32)
        numbers = np.concatenate([np.asarray(each, np.int32) for each in sequences])
        places = np.concatenate([np.arange(length, dtype=np.int32) for length in lengths])
        self.tokens = kw.asarray(numbers, device=device)
        self.positions = kw.asarray(places, device=device)
        self._starts = kw.asarray(starts, device=device)
        self.longest, self._lengths, self._places = max(lengths), lengths, places
        self._rotations: dict[int, Array] = {0: self.positions}
        self._last = None if select == "all" else kw.asarray(starts[1:] - 1, device=device)

    def attend(
        self, layer: int, q: Array, k: Array, v: Array, *, rope: Rotation | None = None,
        q_norm: Array | None = None, k_norm: Array | None = None, eps: float = 1e-6,
        scale: float | None = None, window: int | None = None, soft_cap: float | None = None,
        sinks: Array | None = None,
    ) -> Array:  # fmt: skip
        """See Step.attend(); keys and values are kept nowhere."""
        if q_norm is not None:
            q = kw.nn.rms_norm(q, q_norm, eps)
        if k_norm is not None:
            k = kw.nn.rms_norm(k, k_norm, eps)
        if rope is not None:
            q, k = kw.nn.rope(
                q, k, rope.cos, rope.sin, positions=self._rows_of(rope.short_length),
                interleaved=rope.interleaved,
            )  # fmt: skip
        return kw.nn.attention(  # type: ignore[no-any-return]
            q, k, v, is_causal=True, scale=scale, enable_gqa=True, window=window,
            soft_cap=soft_cap, sinks=sinks, cu_seqlens_q=self._starts, cu_seqlens_k=self._starts,
            max_seqlen_q=self.longest,
        )  # fmt: skip

    def _rows_of(self, short_length: int) -> Array:
        """The rows of tables of rotary positions that each token takes."""
        if short_length not in self._rotations:
            long = np.asarray(self._lengths) > short_length
            offsets = np.repeat(np.where(long, short_length, 0), self._lengths)
            rows = (self._places + offsets).astype(np.int32)
            self._rotations[short_length] = kw.asarray(rows, device=self.positions.device)
        return self._rotations[short_length]

    def select(self, x: Array) -> Array:
        """The rows of x of the last tokens, or x."""
        return x if self._last is None else kw.take(x, self._last, axis=0)
