"""A step of the engine: new tokens of many sequences over caches in pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import kernwright as kw
from kernwright._core import Array
from kernwright.llm._step import Rotation, Step

__all__ = ["LayerCache", "PagedStep"]

_WIDEST_VALUES = 256  # elements in one call of attention
_LONG_CHUNK = 64  # new tokens of a row


class LayerCache(NamedTuple):
    """The pages of a layer: (pages, page size, kv_heads, head_dim) each, as
    kw.nn.decode_attention() takes them, and the scales of 8-bit elements. Of latent attention
    (pages, page size, 1, rank + turned elements) alone: `values` is None."""

    keys: Array
    values: Array | None
    key_scale: Array | None = None
    value_scale: Array | None = None


class PagedStep(Step):
    """New tokens of any numbers of sequences, packed. Keys and values are kept in pages.

    `arrays` are those of a step of the engine: tokens, positions, token_rows, lengths, last and
    page_table. With as many tokens as rows each row has one. Rows and tokens that pad the step have
    no page: what is computed of them goes nowhere. With drafts a row has several logits.
    """

    def __init__(
        self, arrays: Mapping[str, Array], caches: Sequence[LayerCache],
        watched: Sequence[int] = (), deterministic: bool = False,
    ) -> None:  # fmt: skip
        self.tokens, self.positions = arrays["tokens"], arrays["positions"]
        self._watched = watched
        self.states: dict[int, Array] = {}
        """The hidden states of the watched layers, as observe() has them."""
        self.arrays, self._caches = arrays, caches
        if caches:
            pages, page = caches[0].keys.shape[:2]
            self.longest = page * min(pages, arrays["page_table"].shape[1])
        self._is_decoding = self.tokens.shape == arrays["lengths"].shape
        self._deterministic = deterministic
        self._earlier: Array | None = None  # lengths without the new tokens
        self._rotations: dict[int, Array | None] = {0: None}

    def attend(
        self, layer: int, q: Array, k: Array, v: Array, *, rope: Rotation | None = None,
        q_norm: Array | None = None, k_norm: Array | None = None, eps: float = 1e-6,
        scale: float | None = None, window: int | None = None, soft_cap: float | None = None,
        sinks: Array | None = None,
    ) -> Array:  # fmt: skip
        cache, arrays = self._caches[layer], self.arrays
        cos, sin, interleaved, short = rope if rope is not None else (None, None, False, 0)
        scales = {"key_scale": cache.key_scale, "value_scale": cache.value_scale}
        append: dict[str, Any] = {
            "q_weight": q_norm, "k_weight": k_norm, "eps": eps, "interleaved": interleaved,
            "page_table": arrays["page_table"], "rope_positions": self._rows_of(short), **scales,
        }  # fmt: skip
        attend: dict[str, Any] = {
            "scale": scale, "window": window, "soft_cap": soft_cap, "sinks": sinks, **scales
        }  # fmt: skip
        if self._is_decoding:  # each row has one token
            queries = kw.nn.append_qkv(
                (q[:, None], k[:, None], v[:, None]), cache.keys, cache.values, self.positions,
                cos, sin, **append,
            )  # fmt: skip
            made = kw.nn.decode_attention(
                queries, cache.keys, cache.values, arrays["lengths"],
                page_table=arrays["page_table"], **attend,
            )  # fmt: skip
            return made[:, :, 0]  # type: ignore[no-any-return]
        queries = kw.nn.append_qkv(
            (q, k, v), cache.keys, cache.values, self.positions, cos, sin,
            token_rows=arrays["token_rows"], **append,
        )  # fmt: skip
        return kw.nn.paged_attention(  # type: ignore[no-any-return]
            queries, cache.keys, cache.values, arrays["page_table"], arrays["lengths"],
            arrays["query_starts"], **attend,
        )  # fmt: skip

    def keeps_latent(self, layer: int) -> bool:
        """Whether a layer of latent attention has one vector of each token in its pages."""
        return self._caches[layer].values is None

    @property
    def has_long_chunks(self) -> bool:
        """Whether most new tokens are parts of prompts, so that keys and values of all heads pay
        among them. Never in deterministic steps: their results do not depend on such parts."""
        rows = self.arrays["lengths"].shape[0]
        return not self._deterministic and self.tokens.shape[0] >= _LONG_CHUNK * rows

    def keep_latent(self, layer: int, latent: Array, turned: Array) -> None:
        """Writes the vectors of new tokens, latent (tokens, rank) and turned (tokens, r), to the
        pages."""
        keys, rank = self._caches[layer].keys, latent.shape[1]
        new_latent, new_turned = (
            x[:, None, None] if self._is_decoding else x[:, None] for x in (latent, turned)
        )
        kw.nn.append_cache(
            new_latent, new_turned, keys[..., :rank], keys[..., rank:], self.positions,
            page_table=self.arrays["page_table"],
            token_rows=None if self._is_decoding else self.arrays["token_rows"],
        )  # fmt: skip

    def attend_latent(self, layer: int, q: Array, rank: int, *, scale: float) -> Array:
        """Attention with one key for all heads, the kept vectors, and their first `rank` elements
        as values. q (tokens, heads, rank + r), the result is (tokens, heads, rank)."""
        keys, arrays = self._caches[layer].keys, self.arrays
        table, lengths = arrays["page_table"], arrays["lengths"]
        if not self._is_decoding:
            starts = arrays["query_starts"]
            return _joined([
                kw.nn.paged_attention(q, keys, each, table, lengths, starts, scale=scale)
                for each in _value_parts(keys, rank)
            ])  # fmt: skip
        return _joined([
            kw.nn.decode_attention(
                q[:, :, None], keys, each, lengths, page_table=table, scale=scale
            )[:, :, 0]
            for each in _value_parts(keys, rank)
        ])  # fmt: skip

    def attend_earlier(
        self, layer: int, q: Array, rank: int, *, scale: float
    ) -> tuple[Array, Array]:
        """attend_latent() of the tokens in front of the new ones alone, and the logarithms of the
        sums, (heads, tokens)."""
        keys, arrays = self._caches[layer].keys, self.arrays
        starts = arrays["query_starts"]
        if self._earlier is None:
            self._earlier = arrays["lengths"] - (starts[1:] - starts[:-1])
        made, sums = [], None
        for each in _value_parts(keys, rank):
            part, sums = kw.nn.paged_attention(
                q, keys, each, arrays["page_table"], self._earlier, starts, scale=scale,
                is_causal=False, return_lse=True,
            )  # fmt: skip
            made.append(part)
        assert sums is not None
        return _joined(made), sums

    def observe(self, layer: int, x: Array) -> None:
        if layer in self._watched:
            self.states[layer] = x

    def _rows_of(self, short_length: int) -> Array | None:
        """The rows of tables of rotary positions that each token takes; None for its position. A
        draft model takes those of long texts for all."""
        if short_length not in self._rotations:
            long = self.arrays.get("long_texts")
            offset = short_length if long is None else long * short_length
            rows = self.positions + offset
            self._rotations[short_length] = rows.reshape((-1, 1)) if self._is_decoding else rows
        return self._rotations[short_length]

    def select(self, x: Array) -> Array:
        self._has_selected = True
        return x if self._is_decoding else kw.take(x, self.arrays["last"], axis=0)


def _value_parts(keys: Array, rank: int) -> list[Array]:
    """The first `rank` elements of keys, in parts that one call gives."""
    return [
        keys[..., begin : min(begin + _WIDEST_VALUES, rank)]
        for begin in range(0, rank, _WIDEST_VALUES)
    ]


def _joined(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else kw.concat(parts, axis=-1)
