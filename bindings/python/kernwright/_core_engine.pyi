"""The part of the extension module that runs language models step by step."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

from kernwright._core_array import Array

_Record = Callable[[int, int, bool, bool, bool, bool, bool, int, bool], Any]

def _count_valid_tokens(tokens: list[int], vocabulary: int) -> int:
    """How many tokens at the begin of a list are ints from 0 on and below `vocabulary`: no bool,
    and no number of another type."""

@final
class _EngineLoop:
    """Requests in, tokens out. `record(rows, tokens, random, penalties, details, masks, adapters,
    drafts, catches_up)` gives the graph of a step of that size that does these things. With
    `drafts` each row may have so many: a step has `outputs`, rows * (1 + drafts). With `catches_up`
    it is the work of a draft model alone, which has `draft_context` positions. Without `graphs`
    it is called in each step and queues that work on `stream`."""

    def __init__(
        self,
        *,
        max_rows: int,
        capacity: int,
        page_size: int,
        pages: int,
        max_tokens: int,
        vocabulary: int,
        detail_words: int = 0,
        deterministic: bool = False,
        any_rows: bool = False,
        prefix_cache: bool = False,
        queue_limit: int = 0,
        draft_tokens: int = 0,
        draft_shortest: int = 1,
        draft_longest: int = 1,
        draft_always: bool = False,
        draft_context: int = 0,
        draft_vocabulary: int = 0,
        draft_head: bool = False,
        draft_guesses: bool = False,
        short_length: int = 0,
        graphs: bool = True,
        device: Any = None,
    ) -> None: ...
    @property
    def stream(self) -> Any:
        """The stream of all steps."""

    @property
    def has_work(self) -> bool:
        """Whether a sequence runs or waits, or an event was not returned."""

    def submit(
        self,
        prompt: Sequence[int],
        *,
        max_tokens: int,
        min_tokens: int = 0,
        stop_tokens: Sequence[int] = (),
        choices: int = 1,
        sampling: Mapping[str, float] = {},
        top_k: int = 0,
        seed: int = 0,
        details: bool = False,
        logit_bias: Mapping[int, float] = {},
        allowed_tokens: Sequence[int] | None = None,
        bad_tokens: Sequence[int] = (),
        priority: int = 0,
        user: str = "",
        timeout: float | None = None,
        mask: bytes | None = None,
        adapter: int = -1,
        salt: int = 0,
    ) -> int:
        """Queues a request; its number, or 0 where queue_limit requests wait (0: any number
        may). With `mask`, the bits of the tokens that may come first, each further token waits for
        set_mask(). `adapter` is the slot of one; texts share pages with those of the same salt."""

    def set_mask(
        self, request: int, choice: int, masks: Sequence[bytes], produced: int,
        drafts: Sequence[int] = (),
    ) -> None:  # fmt: skip
        """The bits of the tokens that may come behind the first `produced` ones, 32 in a word.
        With `drafts`, guesses of the next tokens, there is a mask behind each, too. It changes
        nothing where another number of tokens is known. Any thread."""

    def cancel(
        self, request: int, *, choice: int = -1, stopped: bool = False, error: str = ""
    ) -> None:
        """Ends the sequences of a request, or that of one choice, with the next advance(): as
        cancelled, as stopped by their text, or with the error of what gives their masks."""

    def advance(self, record: _Record, /) -> list[Any]:
        """One step. (request, choice, token or None, reason of the end or None, details or None,
        tokens of the prompt found in the prefix cache, error or "", drafts checked so far, accepted
        ones) for each event."""

    def run(self, record: _Record, /) -> list[Any]:
        """Advances until nothing is left; all events."""

    def serve(self, record: _Record, between: Callable[[], object], /) -> str:
        """Advances while there is work and waits while there is none, until close(), or until the
        device is lost: then what ended it. Its events go to take(). `between` is called between two
        steps after each interrupt(). For one thread, once."""

    def interrupt(self) -> None:
        """Has serve() call its `between` before the next step."""

    def take(self, seconds: float, /) -> list[Any] | None:
        """The events of serve(), waited for so long; None once it has ended and all were taken."""

    def close(self) -> None:
        """Ends serve(); all requests in it end as cancelled."""

    @property
    def step_age(self) -> float:
        """For how many seconds the step in the making has not ended; 0 between steps, and while
        one is recorded."""

    def prepare(self, rows: int, record: _Record, /) -> None:
        """Records a step of so many rows that generate."""

    def uses_adapter(self, slot: int, /) -> bool:
        """Whether a request that has not ended has the adapter of this slot. Between steps."""

    def drop_graphs(self, all: bool, /) -> None:
        """Drops the graphs of steps with adapters, or all. Between steps."""

    def cached_pages(self, tokens: Sequence[int], salt: int, /) -> list[int]:
        """The pages that the prefix cache has of the beginning of a text of this salt, until the
        next call."""

    def restore_pages(
        self, tokens: Sequence[int], fill: Callable[[int, list[int]], object], salt: int, /
    ) -> None:
        """Adds the full pages of a text to the prefix cache, once `fill(first, pages)` has queued
        the writes of those from number `first` on into these pages."""

    def use_host(self, caches: list[Array], bytes: int, /) -> None:
        """Keeps copies of pages of the prefix cache in so much page-locked memory of the host."""

    def arrays(self, rows: int, tokens: int, drafts: int = 0) -> dict[str, Array]:
        """What a step of that size reads."""

    def draft(self, rows: int, /) -> None:
        """Queues the search for drafts on the current stream, before begin()."""

    def feed_draft(self, rows: int, number: int, sampled: Array | None = None) -> None:
        """Queues what a draft model reads of each row: with `number` 0 its last known token, else
        draft `number`, the token of `sampled` (rows,), which becomes part of its text."""

    def begin_catch_up(self, rows: int, tokens: int, extends: bool = False) -> None:
        """Queues the begin of a step in which a draft model computes tokens that it lacks.
        `extends`: a head adds the entries that it writes drafts behind."""

    def end_catch_up(self, rows: int, /) -> None:
        """Queues the end of such a step: the tokens count as computed by the draft model."""

    def begin(self, rows: int, tokens: int, drafts: int = 0) -> None:
        """Queues the begin of a step on the current stream."""

    def penalize(self, logits: Array, rows: int, /) -> None:
        """Lowers logits by the penalties of their rows, in place, on the current stream."""

    def mask(self, logits: Array, rows: int, /) -> None:
        """Adds the biases of rows to logits and hides masked tokens, in place, on the current
        stream."""

    def end(
        self,
        sampled: Array,
        rows: int,
        logits: Array | None = None,
        details: Array | None = None,
    ) -> None:
        """Queues the end of a step on the current stream."""

    def stats(self) -> dict[str, Any]:
        """Numbers of steps, tokens, sequences and pages."""
