"""The work of a draft model in the recorded steps of an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import kernwright as kw
from kernwright._core import Array, _EngineLoop
from kernwright.llm._draft_model import DraftModel
from kernwright.llm._errors import ModelError
from kernwright.llm._heads import Head
from kernwright.llm._paged_step import LayerCache, PagedStep

__all__ = ["Drafter", "HeadDrafter", "drafter_of"]


class Drafter:
    """Queues what a draft model does for steps: it writes drafts, and catches up with texts.

    Its caches have the pages of the engine, with keys and values of its own. Where its own rotary
    positions depend on the length of a text, those of long texts serve for all.
    """

    watched: Sequence[int] = ()
    """The layers of the model with hidden states for keep()."""

    def __init__(
        self, model: DraftModel, loop: _EngineLoop, caches: Sequence[LayerCache], vocabulary: int
    ) -> None:
        self._model, self._loop, self._caches = model, loop, caches
        self._vocabulary = min(vocabulary, model.vocabulary)

    def keep(self, step: PagedStep, slots: Array) -> None:
        """Keeps hidden states of a step of the model, of a head alone."""

    def draft(self, rows: int, drafts: int, random: bool) -> None:
        """Writes drafts behind the texts of rows, before the step begins that checks them. Of the
        last one only keys and values are computed."""
        arrays = self._arrays(rows, rows)
        sampled = kw.empty((rows,), "int32", device=self._loop.stream.device)
        for number in range(drafts):
            self._loop.feed_draft(rows, number, sampled if number else None)
            logits = self._model.module(PagedStep(arrays, self._caches))[:, : self._vocabulary]
            self._draw(logits, arrays, random, sampled)
        self._loop.feed_draft(rows, drafts, sampled)
        self._compute(PagedStep(arrays, self._caches))

    def _draw(
        self, logits: Array, arrays: Mapping[str, Array], random: bool, sampled: Array
    ) -> None:
        """The model draws its token with the same random number: equal chances give equal
        tokens."""
        if logits.dtype != "float32":
            logits = logits.astype("float32")
        if not random:
            kw.nn.greedy(logits, out=sampled)
            return
        kw.nn.sample(
            logits, temperature=arrays["temperature"], top_k=arrays["top_k"],
            top_p=arrays["top_p"], min_p=arrays["min_p"], seed=arrays["seeds"],
            step=arrays["places"], out=sampled,
        )  # fmt: skip

    def catch_up(self, rows: int, tokens: int) -> None:
        """Computes tokens that the model has computed already."""
        self._loop.begin_catch_up(rows, tokens)
        self._compute(PagedStep(self._arrays(rows, tokens), self._caches))
        self._loop.end_catch_up(rows)

    def _arrays(self, rows: int, tokens: int) -> dict[str, Array]:
        arrays = self._loop.arrays(rows, tokens)
        return {name: each for name, each in arrays.items() if name != "long_texts"}

    def _compute(self, step: PagedStep) -> None:
        """Keys and values, without logits where the model has a way to leave them out."""
        hidden: Any = getattr(self._model.module, "hidden", self._model.module)
        hidden(step)


class HeadDrafter(Drafter):
    """The same of a head, which has an entry for each token but the last known one: made of the
    hidden states before the token behind it, and of that token's embedding.

    `pool`, (1 + tokens, width), has the hidden states of all tokens in pages, behind a row for
    tokens that pad a step. Behind the last entry the head goes on with states of its own.
    """

    def __init__(
        self, model: DraftModel, loop: _EngineLoop, caches: Sequence[LayerCache], vocabulary: int,
        pool: Array,
    ) -> None:  # fmt: skip
        super().__init__(model, loop, caches, vocabulary)
        assert model.head is not None
        self._head, self._pool = model.head, pool
        self.watched = model.head.states
        self._columns = _columns(model.head, self._vocabulary)

    def keep(self, step: PagedStep, slots: Array) -> None:
        missing = [layer for layer in self.watched if layer not in step.states]
        if missing:
            raise ModelError(
                f"the model has not called step.observe({missing[0]}, x), which the head "
                f"{self._head.config.source} reads"
            )
        states = kw.concat([step.states[layer] for layer in self.watched], axis=1)
        self._pool[slots] = states

    def draft(self, rows: int, drafts: int, random: bool) -> None:
        """Adds the entries that the head lacks, then one for each draft but the last."""
        tokens, module = rows * (1 + drafts), self._head.module
        self._loop.begin_catch_up(rows, tokens, True)
        arrays = self._arrays(rows, tokens)
        step = PagedStep(arrays, self._caches)
        states = step.select(module.layer(self._mixed(arrays), step))
        sampled = kw.empty((rows,), "int32", device=states.device)
        self._draw(module.logits(states), arrays, random, sampled)
        arrays = self._arrays(rows, rows)
        for number in range(1, drafts):
            self._loop.feed_draft(rows, number, sampled)
            states = module.layer(states, PagedStep(arrays, self._caches))
            self._draw(module.logits(states), arrays, random, sampled)
        self._loop.feed_draft(rows, drafts, sampled)

    def _draw(
        self, logits: Array, arrays: Mapping[str, Array], random: bool, sampled: Array
    ) -> None:
        if self._columns is None:
            super()._draw(logits[:, : self._vocabulary], arrays, random, sampled)
        elif random:  # the random number of a token is that of its logit's place
            missing = kw.full((logits.shape[0], 1), -np.inf, logits.dtype, device=logits.device)
            wide = kw.take(kw.concat([logits, missing], axis=1), self._columns, axis=1)
            super()._draw(wide, arrays, random, sampled)
        else:
            super()._draw(logits, arrays, random, sampled)
            sampled[...] = self._head.token_of(sampled)

    def _mixed(self, arrays: Mapping[str, Array]) -> Array:
        return self._head.module.mix(kw.take(self._pool, arrays["slots"], axis=0))

    def _compute(self, step: PagedStep) -> None:
        self._head.module.layer(self._mixed(step.arrays), step)


def _columns(head: Head, vocabulary: int) -> Array | None:
    """(vocabulary,) int32: the logit of each token, or the one behind all; None where logits are
    those of all tokens."""
    if head.tokens is None:
        return None
    tokens = head.tokens.numpy()
    made = np.full(max(vocabulary, head.config.vocab_size), tokens.size, np.int32)
    made[tokens] = np.arange(tokens.size, dtype=np.int32)
    return kw.asarray(made[:vocabulary], device=head.device)


def drafter_of(
    model: DraftModel | None, loop: _EngineLoop, caches: Sequence[LayerCache], vocabulary: int,
    pool: Array | None,
) -> Drafter | None:  # fmt: skip
    """The work of a draft model or a head; `pool` is that of a head."""
    if model is None:
        return None
    if pool is None:
        return Drafter(model, loop, caches, vocabulary)
    return HeadDrafter(model, loop, caches, vocabulary, pool)
