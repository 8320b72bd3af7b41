"""A step of the engine: new tokens of many sequences over caches in pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import kernwright as kw
from kernwright._core import Array
from kernwright.llm._step import Rotation, Step

__all__ = ["LayerCache", "PagedStep"]


class LayerCache(NamedTuple):
    """The pages of a layer: (pages, page size, kv_heads, head_dim) each, as
    kw.nn.decode_attention() takes them, and the scales of 8-bit elements."""

    keys: Array
    values: Array
    key_scale: Array | None = None
    value_scale: Array | None = None


class _Places(NamedTuple):
    """For each token: the pages of its sequence, its place there, its sequence's length with it,
    and its position."""

    table: Array
    places: Array
    lengths: Array
    positions: Array | None


class PagedStep(Step):
    """New tokens of any numbers of sequences, packed. Keys and values are kept in pages.

    `arrays` are those of a step of the engine: tokens, positions, token_rows, lengths, last and
    page_table. With as many tokens as rows each row has one. Rows and tokens that pad the step have
    no page: what is computed of them goes nowhere.
    """

    def __init__(self, arrays: Mapping[str, Array], caches: Sequence[LayerCache]) -> None:
        self.tokens, self.positions = arrays["tokens"], arrays["positions"]
        self._arrays, self._caches = arrays, caches
        self._is_decoding = self.tokens.shape == arrays["lengths"].shape
        self._found: _Places | None = None

    def attend(
        self, layer: int, q: Array, k: Array, v: Array, *, rope: Rotation | None = None,
        q_norm: Array | None = None, k_norm: Array | None = None, eps: float = 1e-6,
        scale: float | None = None, window: int | None = None, soft_cap: float | None = None,
        sinks: Array | None = None,
    ) -> Array:  # fmt: skip
        cache, at = self._caches[layer], self._places()
        cos, sin, interleaved = rope if rope is not None else (None, None, False)
        # Each token is a sequence of its own here, with the pages of the one that it belongs to.
        queries = kw.nn.append_qkv(
            (q[:, None], k[:, None], v[:, None]), cache.keys, cache.values, at.places, cos, sin,
            q_weight=q_norm, k_weight=k_norm, eps=eps, interleaved=interleaved,
            rope_positions=at.positions, page_table=at.table, key_scale=cache.key_scale,
            value_scale=cache.value_scale,
        )  # fmt: skip
        made = kw.nn.decode_attention(
            queries, cache.keys, cache.values, at.lengths, page_table=at.table, scale=scale,
            window=window, soft_cap=soft_cap, sinks=sinks, key_scale=cache.key_scale,
            value_scale=cache.value_scale,
        )  # fmt: skip
        return made[:, :, 0]  # type: ignore[no-any-return]

    def select(self, x: Array) -> Array:
        return x if self._is_decoding else kw.take(x, self._arrays["last"], axis=0)

    def _places(self) -> _Places:
        if self._found is None:
            arrays = self._arrays
            table, lengths = arrays["page_table"], arrays["lengths"]
            if self._is_decoding:
                self._found = _Places(table, self.positions, lengths, None)
            else:
                rows = arrays["token_rows"]
                places = kw.where(rows < 0, -1, self.positions)
                table = kw.take(table, kw.maximum(rows, 0), axis=0)
                positions = self.positions.reshape(-1, 1)
                self._found = _Places(table, places, places + 1, positions)
        return self._found
