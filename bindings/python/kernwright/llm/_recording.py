"""Graphs of whole steps: what the engine replays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

import kernwright as kw
from kernwright._core import Array, _EngineLoop
from kernwright._core import _compile_only as compile_only
from kernwright._core import _with_planned_rows as with_planned_rows
from kernwright.llm._adapters.adapters import Adapters
from kernwright.llm._drafting import Drafter
from kernwright.llm._paged_step import LayerCache, PagedStep
from kernwright.llm._registry import is_built_in
from kernwright.llm._step import Step
from kernwright.llm._weights.streaming import graph_pool, is_streamed

__all__ = ["DETAIL_WORDS", "MOST_LOGPROBS", "Recorder", "TokenLogprobs", "read_details"]


class Recorder:
    """Records steps of a model: called with numbers of rows, tokens and drafts of a row, it gives
    a graph. Of a draft model it has the drafts of steps, and steps in which that catches up.

    The kernels are compiled before a graph is recorded: those of a model of this package at the
    same time, in a call without launches; those of others by doing the work once, with an empty
    plan. All graphs share one pool of memory. With `planned_rows` the kernels of all steps sum up a
    row in the order that suits so many rows. Without `graphs` a call does the work of a step, and
    the graph is empty.
    """

    def __init__(
        self, model: Callable[[Step], Array], loop: _EngineLoop, caches: Sequence[LayerCache],
        vocabulary: int, adapters: Adapters | None = None, deterministic: bool = False,
        drafter: Drafter | None = None, sampled: int | None = None,
        planned_rows: int | None = None, graphs: bool = True,
    ) -> None:  # fmt: skip
        self._drafter, self._planned_rows, self._graphs = drafter, planned_rows, graphs
        self._model, self._loop, self._caches = model, loop, caches
        self._vocabulary = vocabulary
        self._sampled = vocabulary if sampled is None else sampled  # the tokens behind are padding
        self._adapters, self._deterministic = adapters, deterministic
        self._pool = graph_pool(model, loop.stream.device)
        self._empty = kw.Graph(pool=self._pool)

    def __call__(
        self, rows: int, tokens: int, random: bool, penalties: bool, details: bool, masks: bool,
        adapters: bool = False, drafts: int = 0, catches_up: bool = False,
    ) -> kw.Graph:  # fmt: skip
        def made() -> None:
            if catches_up:
                assert self._drafter is not None
                self._drafter.catch_up(rows, tokens)
            else:
                self._step(rows, tokens, random, penalties, details, masks, adapters, drafts)

        def step() -> None:
            if self._planned_rows is None:
                made()
            else:
                with_planned_rows(self._planned_rows, made)

        stream = self._loop.stream
        if not self._graphs:
            with stream:
                step()
            return self._empty
        with stream:
            # Without launches, arrays stay empty that a user's layer makes once and keeps.
            plain = not (catches_up or drafts or adapters or is_streamed(self._model))
            if plain and is_built_in(self._model):
                compile_only(step)
            else:
                step()
            graph = kw.Graph(pool=self._pool)
            with graph.capture(stream):
                step()
        return graph

    def _step(
        self, rows: int, tokens: int, random: bool, penalties: bool, details: bool, masks: bool,
        adapters: bool, drafts: int,
    ) -> None:  # fmt: skip
        if drafts and self._drafter is not None:
            self._drafter.draft(rows, drafts, random)
        elif drafts:
            self._loop.draft(rows)
        self._loop.begin(rows, tokens, drafts)
        arrays = self._loop.arrays(rows, tokens, drafts)
        # Rows that pad a table of tokens are never sampled.
        drafter = self._drafter
        watched = () if drafter is None else drafter.watched
        paged = PagedStep(arrays, self._caches, watched, self._deterministic)
        logits = self._logits(paged, arrays["adapters"], adapters)
        if drafter is not None and watched:
            drafter.keep(paged, arrays["slots"])
        logits = logits[:, : self._vocabulary]
        if logits.dtype != "float32":
            logits = logits.astype("float32")
        if self._sampled < self._vocabulary:
            logits[:, self._sampled :] = -np.inf
        chances = kw.nn.log_softmax(logits) if details else None  # as the model has them
        if penalties:
            self._loop.penalize(logits, rows)
        if masks:
            self._loop.mask(logits, rows)
        sampled = kw.empty((logits.shape[0],), "int32", device=logits.device)
        if random:
            # A token's random numbers depend on the seed of its sequence and its place alone.
            kw.nn.sample(
                logits, temperature=arrays["temperature"], top_k=arrays["top_k"],
                top_p=arrays["top_p"], min_p=arrays["min_p"], seed=arrays["seeds"],
                step=arrays["places"], out=sampled,
            )  # fmt: skip
        else:
            kw.nn.greedy(logits, out=sampled)
        found = None if chances is None else _details(chances, sampled)
        self._loop.end(sampled, rows, logits, found)

    def _logits(self, step: Step, slots: Array, wanted: bool) -> Array:
        """Of a deterministic engine all steps have the products of adapters, so that a token gets
        the same bits beside any others."""
        adapters = self._adapters
        if adapters is None or not (wanted or (self._deterministic and adapters.has_layers)):
            return self._model(step)
        with adapters.within(step, slots):
            return self._model(step)


class TokenLogprobs(NamedTuple):
    """The log-probability of a token, and the tokens of the highest ones with theirs, of the logits
    as the model gave them: before penalties, biases, masks, temperature and the like."""

    logprob: float
    top: list[tuple[int, float]]


MOST_LOGPROBS = 20
"""Of the tokens beside the sampled one."""
DETAIL_WORDS = 1 + 2 * MOST_LOGPROBS


def _details(chances: Array, sampled: Array) -> Array:
    """(outputs, words) int32: the sampled token's log-probability, the highest ones, their
    tokens."""
    best = kw.topk(chances, min(MOST_LOGPROBS, chances.shape[1]))
    own = kw.take_along_axis(chances, sampled.astype("int64").reshape(-1, 1), axis=1)
    numbers = kw.concat([own, best.values], axis=1).view("int32")
    return kw.concat([numbers, best.indices.astype("int32")], axis=1)


def read_details(words: Sequence[int], count: int, vocabulary: int) -> TokenLogprobs:
    """The `count` highest of what _details() made for a token."""
    most = min(MOST_LOGPROBS, vocabulary)
    numbers = np.array(words[: 1 + most], np.int32).view(np.float32).tolist()
    tokens = words[1 + most : 1 + most + count]
    return TokenLogprobs(numbers[0], list(zip(tokens, numbers[1:], strict=False)))
