"""How many sequences, tokens and pages an engine has place for, and what that takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kernwright._support.sizes import size_in_bytes
from kernwright.errors import ArgumentError, InvalidArgument, OutOfMemory
from kernwright.llm._alike import PLANNED_ROWS
from kernwright.llm._draft import Draft
from kernwright.llm._draft_model import DraftModel
from kernwright.llm._engine import TokenEngine
from kernwright.llm._weights.available import available_bytes

if TYPE_CHECKING:
    from kernwright.llm._model import Model

__all__ = ["MOST_ROWS", "PAGE", "SAME_ROWS", "SHARE", "EngineSize", "host_bytes"]

MOST_ROWS = 256  # sequences that run at a time; others wait
PAGE = 16  # tokens
# Steps of a deterministic engine have one size, unless their kernels sum up rows alike: each costs
# as much as one of so many rows, and each part of a prompt as much as one of so many tokens.
SAME_ROWS, SAME_TOKENS = PLANNED_ROWS, 256
SHARE = 0.8  # of the free memory goes to keys and values at most: steps need some, too


class EngineSize(NamedTuple):
    """What an engine has place for: sequences at a time, tokens of each, pages of all."""

    rows: int
    capacity: int
    pages: int

    def holds(self, other: EngineSize) -> bool:
        """Whether the other one is no larger in anything."""
        return all(place >= wanted for place, wanted in zip(self, other, strict=True))

    @classmethod
    def of_memory(
        cls, model: Model, rows: int, kv_memory: int | str, draft: Draft | None = None
    ) -> EngineSize:
        """Full contexts, in pages of so many bytes; "auto": see llm.Engine. The model of a draft is
        loaded. Raises OutOfMemory when not a single page fits, ArgumentError, InvalidArgument."""
        free, device = available_bytes(model.device), model.device
        drafter = DraftModel.of(draft)
        token = token_bytes(model) + (0 if drafter is None else drafter.token_bytes)
        return cls.planned(model.config.max_length, token, rows, kv_memory, free, device)

    @classmethod
    def planned(
        cls, context: int, token: int, rows: int, kv_memory: int | str, free: int, device: Any
    ) -> EngineSize:
        """That of a model by its context and the bytes of a token, with so many bytes free. Raises
        as of_memory()."""
        if isinstance(rows, bool) or not isinstance(rows, int):
            raise ArgumentError(f"max_rows is an int, got {rows!r:.60}")
        if rows < 1:
            raise InvalidArgument(f"max_rows is 1 at least, got {rows}")
        page = PAGE * token
        most = rows * -(-context // PAGE)
        given: int | str | None = int(SHARE * free) if kv_memory == "auto" else kv_memory
        if isinstance(given, str):
            given = size_in_bytes(given)
        if not isinstance(given, int) or isinstance(given, bool):
            raise ArgumentError(
                f'kv_memory is a number of bytes, a text as "4GB", or "auto", got {kv_memory!r:.60}'
            )
        if page and given < page:
            raise OutOfMemory(
                f"kv_memory of {given:,} bytes holds no page of {PAGE} tokens, which takes "
                f"{page:,}; {free:,} bytes are free on {device.name}"
            )
        return cls(rows, context, min(most, given // page) if page else most)

    def engine(
        self, model: Model, *, deterministic: bool = False, prefix_cache: bool = True,
        max_tokens_per_step: int | None = None, queue_limit: int | None = None,
        draft: Draft | None = None, host_cache: int | None = None, scheduler: Any = None,
    ) -> TokenEngine:  # fmt: skip
        """An engine of this size; the model of a draft is loaded. Raises OutOfMemory, which tells
        what would fit."""
        usual = SAME_TOKENS if deterministic else max(2048, 2 * self.rows)
        return TokenEngine(
            model.module, vocabulary=model.config.vocab_size, sampled=model.sampled_tokens,
            cache_layers=model.cache_layers(),
            capacity=self.capacity, max_rows=self.rows, page_size=PAGE, pages=self.pages,
            dtype=model.cache_format, max_tokens_per_step=max_tokens_per_step or usual,
            deterministic=deterministic, prefix_cache=prefix_cache,
            queue_limit=queue_limit, host_cache=host_cache, draft=draft,
            drafter=DraftModel.of(draft), device=model.device, adapters=model._adapters,
            short_length=model.config.short_length(),
            scheduler=model.scheduler if scheduler is None else scheduler, graphs=model.graphs,
        )  # fmt: skip


def host_bytes(host_cache: int | str | None) -> int | None:
    """The bytes of host_cache. Raises ArgumentError, InvalidArgument."""
    found = size_in_bytes(host_cache) if isinstance(host_cache, str) else host_cache
    if host_cache is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int):
        raise ArgumentError(
            f"host_cache is a number of bytes, a text as '4GB', or None, got {host_cache!r:.60}"
        )
    if not 0 < found < 2**63:
        raise InvalidArgument(f"host_cache is above 0 bytes and below 2^63, got {host_cache}")
    return found


def token_bytes(model: Model) -> int:
    """Bytes of keys and values of one token in all layers."""
    return model.cache_format.token_bytes(model.cache_layers())
