"""Token ids in, token ids out: the caches of a model, and the loop that runs its steps."""

from __future__ import annotations

import dataclasses
import functools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import kernwright as kw
from kernwright._core import Array, _EngineLoop
from kernwright.errors import Error
from kernwright.llm._adapters.adapters import AdapterPlace, Adapters
from kernwright.llm._alike import sums_alike
from kernwright.llm._caches import CacheFormat, made_caches, named_arrays, on_host, require_pages
from kernwright.llm._draft import Draft, require_no_draft
from kernwright.llm._draft_model import DraftModel
from kernwright.llm._drafting import drafter_of
from kernwright.llm._errors import ContextError, ModelError
from kernwright.llm._guide.worker import GuideWorker
from kernwright.llm._recording import DETAIL_WORDS, Recorder, TokenLogprobs, read_details
from kernwright.llm._sampling import Sampling
from kernwright.llm._step import Step
from kernwright.llm._submission import Turn, loop_options
from kernwright.llm._waits import wait_for_device
from kernwright.schedule._blocks import engine_steps

__all__ = ["BAD_LOGITS", "Generated", "TokenEngine", "TokenPiece", "TokenStream"]


BAD_LOGITS = (
    "the logits of a sequence are not finite: its text cannot go on. Numbers between layers, or "
    "caches, may pass the largest of their dtype: with float16 load the model with "
    'dtype="bfloat16", with caches of 8 bits without kv_dtype'
)


_LONG_SALT = 1 << 63  # as engine/sequence.h has it


@dataclasses.dataclass(frozen=True)
class Generated:
    """The new tokens of a sequence, why it ended, "stop" or "length", and log-probabilities where
    they were asked for. Comparisons leave out the cache and times."""

    tokens: list[int]
    finish_reason: str
    logprobs: list[TokenLogprobs] | None = None
    drafted: int = 0
    accepted: int = 0
    cached: int = dataclasses.field(default=0, compare=False)
    """Tokens of the prompt found in the prefix cache."""
    first: float | None = dataclasses.field(default=None, compare=False)
    """When its first token was there, of time.perf_counter()."""


class TokenPiece(NamedTuple):
    """A token of a sequence, or its end (then `token` may be None)."""

    choice: int
    token: int | None
    finish_reason: str | None
    logprobs: TokenLogprobs | None = None
    error: str = ""
    drafted: int = 0
    accepted: int = 0
    cached: int = 0


class TokenEvent(NamedTuple):
    """What happened to a choice of a request: a token, its end, or both."""

    request: int
    choice: int
    token: int | None
    finish_reason: str | None
    details: list[int] | None
    """What read_details() reads."""
    cached_tokens: int
    """Of its prompt, found in the prefix cache."""
    error: str
    """Why it failed."""
    drafted: int
    """Tokens of its text that were guessed and checked so far."""
    accepted: int
    """Of these, the right ones."""


class TokenEngine:
    """Generates tokens with a model, for many prompts at once.

    `model` is called with an llm.Step and returns logits, (rows, vocabulary) each; tokens from
    `sampled` on are padding, and never drawn. `cache_layers`
    has (kv_heads, head_dim) of each layer that attends. `max_rows` sequences run at a time, each of
    up to `capacity` tokens, and `pages` of `page_size` tokens hold their keys and values: all that
    these rows may need, unless said otherwise; `dtype` is theirs, or a CacheFormat. A step computes
    up to `max_tokens_per_step` tokens.
    With `deterministic` a sequence's tokens and log-probabilities have the same bits whatever else
    runs beside: a step of generation costs as much as one of `max_rows`, see sums_alike(). With
    `prefix_cache` pages of earlier texts stay as long as nobody else needs them, and texts that
    begin alike share them: a chat goes on without its past being computed again. `host_cache` bytes
    of page-locked memory keep copies of such pages when others need the device's. With a `draft`
    steps check guesses of the next tokens, by the model `drafter` if it has one. `adapters` are
    those that Sampling.adapter may name. With `short_length` texts of more tokens have other rotary
    positions: one that gets there is computed again, see Rotation. Steps are tasks of `scheduler`.
    Without `graphs` each step calls the model.

    One thread at a time: others wait. serve() instead runs requests of begin() until close(), and
    its events go to take(): these and cancel() and stats() may then be called from any thread.
    """

    def __init__(
        self, model: Callable[[Step], Array], *, vocabulary: int,
        cache_layers: Sequence[tuple[int, int]], capacity: int, max_rows: int = 64,
        page_size: int = 16, pages: int | None = None, max_tokens_per_step: int | None = None,
        dtype: Any = "bfloat16", deterministic: bool = False, prefix_cache: bool = True,
        queue_limit: int | None = None, host_cache: int | None = None,
        draft: Draft | None = None, drafter: DraftModel | None = None, device: Any = None,
        adapters: Adapters | None = None, sampled: int | None = None, short_length: int = 0,
        scheduler: Any = None, graphs: bool = True,
    ) -> None:  # fmt: skip
        self._scheduler = scheduler
        require_no_draft(draft, deterministic)
        self.any_rows: bool = deterministic and sums_alike(model, max_rows, device)
        each = -(-capacity // page_size)
        self._pages = max_rows * each if pages is None else pages
        self._capacity, self._sampled = capacity, vocabulary if sampled is None else sampled
        self._lock = threading.RLock()
        self._loop = _EngineLoop(
            max_rows=max_rows, capacity=capacity, page_size=page_size, pages=self._pages,
            max_tokens=max_tokens_per_step or max(2 * max_rows, 512), vocabulary=vocabulary,
            detail_words=DETAIL_WORDS, deterministic=deterministic, any_rows=self.any_rows,
            prefix_cache=prefix_cache, queue_limit=queue_limit or 0, short_length=short_length,
            graphs=graphs, device=device, **_draft_options(draft, drafter),
        )  # fmt: skip
        stream = self._loop.stream
        with stream:
            models = [(CacheFormat.of(dtype), cache_layers)]
            if drafter is not None:
                models.append((drafter.format, drafter.layers))
            caches, *more = made_caches(models, self._pages, page_size, capacity, stream.device)
            pool = None
            if drafter is not None and drafter.head is not None:
                width = drafter.head.width  # a row for tokens that pad a step, then the pages
                pool = kw.zeros((1 + self._pages * page_size, width), drafter.head.dtype)
        if host_cache is not None:
            paged = [array for _, array, is_paged in named_arrays(caches) if is_paged]
            if pool is not None:
                paged.append(pool[1:].reshape((self._pages, page_size, -1)))
            self._loop.use_host(paged, host_cache)
        wait_for_device(stream.device)  # the weights may come from other streams
        self._caches, self._page_size = caches, page_size
        self._record = Recorder(
            model, self._loop, caches, vocabulary, adapters, deterministic,
            drafter_of(drafter, self._loop, more[0] if more else [], self._sampled, pool),
            self._sampled, max_rows if self.any_rows else None, graphs,
        )  # fmt: skip
        self._adapters, self._deterministic = adapters, deterministic
        self._short_length = short_length
        if adapters is not None:
            adapters.join(self)
        self._guides = GuideWorker(self._loop, draft)
        self._thread: int | None = None  # that serve() runs in
        self._waiting: dict[int, deque[TokenPiece]] = {}
        self._left: dict[int, int] = {}  # choices of run_each() that have not ended
        self._first: dict[tuple[int, int], float] = {}  # when choices got their first tokens
        self._logprobs: dict[int, int] = {}  # how many the request wants of each token

    def run(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[list[Generated]]:
        """The choices of each prompt, all prompts as one batch.

        Raises ContextError for a prompt without place for a new token, InvalidArgument for tokens
        outside of the vocabulary and requests that the caches could never hold, ModelError for
        logits that are not finite. After any error, and after Ctrl-C, the engine can be used again.
        """
        return self.run_each([(prompt, sampling) for prompt in prompts])

    def run_each(self, requests: Sequence[tuple[Sequence[int], Sampling]]) -> list[list[Generated]]:
        """run() where each prompt goes on in its own way."""
        with self._lock:
            numbers: list[int] = []
            try:
                for prompt, sampling in requests:
                    numbers.append(self._submit(prompt, sampling))
                choices = [sampling.choices for _, sampling in requests]
                self._left = dict(zip(numbers, choices, strict=True))
                self._run()
                return [self._collected(*each) for each in zip(numbers, choices, strict=True)]
            finally:
                self._forget(numbers)
                self._left, self._first = {}, {}

    def _run(self) -> None:
        waiting = sum(self._left.values())  # for their first tokens, whose times are noted
        while len(self._first) < waiting and any(self._left.values()):
            self._advance()
        if self._guides.is_idle:
            with engine_steps(self._scheduler):
                events = self._loop.run(self._record)
            self._sort(events)
            return
        while any(self._left.values()):  # guides get the tokens in _sort()
            self._advance()

    def _advance(self) -> None:
        with engine_steps(self._scheduler):
            events = self._loop.advance(self._record)
        self._sort(events)

    def stream(self, prompt: Sequence[int], sampling: Sampling) -> TokenStream:
        """The tokens of a prompt's choices as they come. Several streams may be read in turn: their
        sequences run as one batch. Raises as run() does."""
        with self._lock:
            return TokenStream(self, self._submit(prompt, sampling), sampling.choices)

    def warm_up(self, rows: int = 1) -> None:
        """Compiles and records a step for so many sequences that generate."""
        with self._lock:
            self._loop.prepare(rows, self._record)

    def read_pages(self, tokens: Sequence[int], adapter: str | None = None) -> dict[str, Array]:
        """Copies of the full pages of a text: "layers.0.keys", "layers.0.values" and so on, and the
        scales of 8-bit elements, in page-locked memory of the host. What the prefix cache does not
        have is computed first. All copies have ended. Raises as run() does."""
        with self._lock:
            self.run([tokens], Sampling(max_tokens=1, adapter=adapter))
            count, made = self.kept_pages(tokens, adapter)
            assert count == len(tokens) // self._page_size * self._page_size
            return made

    def kept_pages(
        self, tokens: Sequence[int], adapter: str | None = None
    ) -> tuple[int, dict[str, Array]]:
        """read_pages() of the beginning of a text in the prefix cache, and its tokens. Nothing is
        computed."""
        with self._lock:
            pages = self._loop.cached_pages(tokens, self._salt(tokens, adapter))
            with self._loop.stream as stream:
                index = kw.asarray(np.asarray(pages, np.int32))
                with on_host(stream.device):
                    made = {
                        name: kw.take(array, index, axis=0) if is_paged else array.copy()
                        for name, array, is_paged in named_arrays(self._caches)
                    }
                stream.synchronize()
            return len(pages) * self._page_size, made

    def write_pages(
        self, tokens: Sequence[int], arrays: Mapping[str, Array], adapter: str | None = None,
        text: Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        """Brings what read_pages() gave, of a text of full pages, into the prefix cache. `text` is
        the whole text where `tokens` are the beginning of one. Raises ModelError for other arrays
        than those of these caches and for an unknown adapter, InvalidArgument where running
        sequences leave too few pages."""
        salt = self._salt(tokens if text is None else text, adapter)
        places = named_arrays(self._caches)
        require_pages(places, arrays, len(tokens) // self._page_size)

        def fill(first: int, pages: list[int]) -> None:
            index = kw.asarray(np.asarray(pages, np.int32))
            for name, array, is_paged in places:
                if is_paged:
                    array[index] = arrays[name][first:]

        with self._lock, self._loop.stream as stream:
            self._loop.restore_pages(tokens, fill, salt)
            stream.synchronize()

    def stats(self) -> dict[str, Any]:
        """Numbers of steps, tokens, sequences and pages; seconds in plans, and in launches."""
        return self._loop.stats()

    def begin(
        self, prompt: Sequence[int], sampling: Sampling, turn: Turn | None = None
    ) -> int | None:  # fmt: skip
        """Queues a request for serve(); its number, or None where `queue_limit` requests wait.
        Raises as run() does."""
        return self.prepared(prompt, sampling, turn)()

    def prepared(
        self, prompt: Sequence[int], sampling: Sampling, turn: Turn | None = None
    ) -> Callable[[], int | None]:  # fmt: skip
        """A function that does the rest of begin(), once. The call of it is short: the first masks
        of a guide are made here. Both raise as run() does."""
        if len(prompt) >= self._capacity:
            raise ContextError(
                f"a prompt of {len(prompt)} tokens leaves no place for a new one: the context has "
                f"{self._capacity}"
            )
        place = self._place(sampling.adapter)
        options = loop_options(sampling, turn or Turn(), place)
        submit: Callable[[], int] = functools.partial(self._loop.submit, prompt, **options)
        if sampling.guide is not None:
            submit = self._guides.prepared(sampling.guide, prompt, options)
        return lambda: self._begun(submit(), sampling.adapter, place)

    def _begun(self, request: int, adapter: str | None, place: AdapterPlace) -> int | None:
        """The number of a submitted request. Before it was submitted, the slot of its adapter might
        have gone to another one."""
        if request and adapter is not None:
            try:
                is_there = self._place(adapter) == place
            except ModelError:
                is_there = False
            if not is_there:
                self._loop.cancel(request)
                raise ModelError(f"the adapter {adapter!r:.80} was unloaded meanwhile")
        return request or None

    def _salt(self, tokens: Sequence[int], adapter: str | None) -> int:
        """That of the pages of a text: those of long ones have another."""
        is_long = 0 < self._short_length < len(tokens)
        return self._place(adapter).number | (_LONG_SALT if is_long else 0)

    def _place(self, adapter: str | None) -> AdapterPlace:
        if self._adapters is not None:
            return self._adapters.place(adapter)
        if adapter is not None:
            raise ModelError(f"this engine has no adapters, and none called {adapter!r:.80}")
        return AdapterPlace()

    def require_thread(self) -> None:
        """Raises Error in another thread than that of serve(), where that runs."""
        if self._thread not in (None, threading.get_ident()):
            raise Error(
                "an llm.Engine runs this model: its load_adapter() loads adapters between two steps"
            )

    def uses_adapter(self, slot: int) -> bool:
        """Whether a request that has not ended has the adapter of a slot. Between steps."""
        return self._loop.uses_adapter(slot)

    def drop_graphs(self) -> None:
        """Records steps with adapters again when they are needed next. Between steps."""
        self._loop.drop_graphs(self._deterministic)

    def cancel(self, request: int, choice: int = -1, stopped: bool = False) -> None:
        """Ends a request, or one of its choices, with the next step; `stopped`: by its text."""
        self._loop.cancel(request, choice=choice, stopped=stopped)

    def serve(self, between: Callable[[Any], object]) -> str:
        """Runs what is begun until close(): "", or the message of the loss of the device. After
        each interrupt() it calls `between` with its stream, between two steps."""
        self._thread = threading.get_ident()
        try:
            with engine_steps(self._scheduler):
                return self._loop.serve(self._record, lambda: between(self._loop.stream))
        finally:
            self._thread = None

    def interrupt(self) -> None:
        """Has serve() call its `between` before the next step. Any thread."""
        self._loop.interrupt()

    def take(self, seconds: float) -> list[TokenEvent] | None:
        """The events of serve(), waited for so long; None behind the last."""
        events = self._loop.take(seconds)
        if events is None:
            return None
        self._guides.follow(events)
        return [TokenEvent(*each) for each in events]

    def close(self) -> None:
        """Ends serve(). What is in it ends as cancelled."""
        self._loop.close()

    @property
    def step_age(self) -> float:
        """For how many seconds the step in the making has not ended; 0 between steps."""
        return self._loop.step_age

    def _next(self, request: int) -> TokenPiece:
        with self._lock:
            while not self._waiting[request]:
                self._advance()
            piece = self._waiting[request].popleft()
        _require_end(piece)
        return piece

    def _submit(self, prompt: Sequence[int], sampling: Sampling) -> int:
        request = self.begin(prompt, sampling)
        assert request is not None, "an engine of run() and stream() has no limit of its queue"
        self._waiting[request] = deque()
        if sampling.logprobs is not None:
            self._logprobs[request] = sampling.logprobs
        return request

    def _sort(self, events: list[Any]) -> None:
        self._guides.follow(events)
        now = time.perf_counter()
        for request, choice, token, reason, words, cached, error, drafted, accepted in events:
            pieces = self._waiting.get(request)
            if pieces is None:
                continue
            details = None
            if words is not None and request in self._logprobs:
                details = read_details(words, self._logprobs[request], self._sampled)
            pieces.append(
                TokenPiece(choice, token, reason, details, error, drafted, accepted, cached)
            )
            if request in self._left:
                self._first.setdefault((request, choice), now)
                self._left[request] -= reason is not None

    def _collected(self, request: int, choices: int) -> list[Generated]:
        tokens: list[list[int]] = [[] for _ in range(choices)]
        details: list[list[TokenLogprobs]] = [[] for _ in range(choices)]
        reasons, counts = [""] * choices, [(0, 0, 0)] * choices
        for piece in self._waiting[request]:
            _require_end(piece)
            if piece.token is not None:
                tokens[piece.choice].append(piece.token)
            if piece.logprobs is not None:
                details[piece.choice].append(piece.logprobs)
            reasons[piece.choice] = piece.finish_reason or ""
            counts[piece.choice] = piece.drafted, piece.accepted, piece.cached
        wanted = details if request in self._logprobs else [None] * choices
        firsts = [self._first.get((request, i)) if tokens[i] else None for i in range(choices)]
        return [
            Generated(tokens[i], reasons[i], wanted[i], *counts[i], firsts[i])
            for i in range(choices)
        ]

    def _forget(self, requests: Sequence[int]) -> None:
        """Ends what still runs of the requests. Takes no lock: it may run in a destructor."""
        for request in requests:
            self._logprobs.pop(request, None)
            if self._waiting.pop(request, None) is not None:
                self._loop.cancel(request)


class TokenStream(Iterator[TokenPiece]):
    """The tokens of a request. When it is closed, or gone, the request ends."""

    def __init__(self, engine: TokenEngine, request: int, choices: int) -> None:
        self._engine, self._request, self._left = engine, request, choices

    def __next__(self) -> TokenPiece:
        if self._left == 0:
            raise StopIteration
        try:
            piece = self._engine._next(self._request)
        except BaseException:
            self.close()
            raise
        self._left -= piece.finish_reason is not None
        if self._left == 0:
            self.close()
        return piece

    def stop(self, choice: int) -> None:
        """Ends one of the choices: it gets a last piece without a token, "stop"."""
        self._engine.cancel(self._request, choice, stopped=True)

    def close(self) -> None:
        """Ends the request, if it runs still."""
        self._left = 0
        self._engine._forget([self._request])

    def __del__(self) -> None:
        self.close()


def _draft_options(draft: Draft | None, drafter: DraftModel | None) -> dict[str, Any]:
    if draft is None:
        return {}
    names = ("tokens", "shortest", "longest", "always")
    found = {f"draft_{name}": getattr(draft, name) for name in names}
    found["draft_guesses"] = draft.kind == "jacobi"
    if drafter is not None:
        found |= {"draft_context": drafter.context, "draft_vocabulary": drafter.vocabulary}
        found["draft_head"] = drafter.head is not None
    return found


def _require_end(piece: TokenPiece) -> None:
    """Raises for an end that is none of a text."""
    if piece.finish_reason == "bad_logits":
        raise ModelError(BAD_LOGITS)
    if piece.finish_reason == "bad_guide":
        raise ModelError(piece.error)
    if piece.finish_reason == "failed":
        raise Error("a step failed while this sequence was running; its tokens are lost")
