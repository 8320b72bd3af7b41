"""Graphs of whole steps: what the engine replays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import kernwright as kw
from kernwright._core import Array, _EngineLoop
from kernwright.llm._paged_step import LayerCache, PagedStep
from kernwright.llm._step import Step

__all__ = ["Recorder"]


class Recorder:
    """Records steps of a model: called with numbers of rows and tokens, it gives a graph.

    The work is done once outside of a graph first, with an empty plan, so that its kernels are
    compiled. All graphs share one pool of memory.
    """

    def __init__(
        self, model: Callable[[Step], Array], loop: _EngineLoop, caches: Sequence[LayerCache],
        vocabulary: int,
    ) -> None:  # fmt: skip
        self._model, self._loop, self._caches = model, loop, caches
        self._vocabulary = vocabulary
        self._pool = kw.GraphPool(device=loop.stream.device)

    def __call__(self, rows: int, tokens: int) -> kw.Graph:
        stream = self._loop.stream
        with stream:
            self._step(rows, tokens)
            graph = kw.Graph(pool=self._pool)
            with graph.capture(stream):
                self._step(rows, tokens)
        return graph

    def _step(self, rows: int, tokens: int) -> None:
        self._loop.begin(rows, tokens)
        arrays = self._loop.arrays(rows, tokens)
        # Rows that pad a table of tokens are never sampled.
        logits = self._model(PagedStep(arrays, self._caches))[:, : self._vocabulary]
        if logits.dtype != "float32":
            logits = logits.astype("float32")
        # A token's random numbers depend on the seed of its sequence and its position alone.
        sampled = kw.nn.sample(
            logits, temperature=arrays["temperature"], top_k=arrays["top_k"],
            top_p=arrays["top_p"], min_p=arrays["min_p"], seed=arrays["seeds"],
            step=arrays["lengths"], out=kw.empty((rows,), "int32", device=logits.device),
        )  # fmt: skip
        self._loop.end(sampled, logits)
