"""The work of a draft model in the recorded steps of an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import kernwright as kw
from kernwright._core import Array, _EngineLoop
from kernwright.llm._draft_model import DraftModel
from kernwright.llm._paged_step import LayerCache, PagedStep

__all__ = ["Drafter"]


class Drafter:
    """Queues what a draft model does for steps: it writes drafts, and catches up with texts.

    Its caches have the pages of the engine, with keys and values of its own. Where its own rotary
    positions depend on the length of a text, those of long texts serve for all.
    """

    def __init__(
        self, model: DraftModel, loop: _EngineLoop, caches: Sequence[LayerCache], vocabulary: int
    ) -> None:
        self._model, self._loop, self._caches = model, loop, caches
        self._vocabulary = min(vocabulary, model.vocabulary)

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
