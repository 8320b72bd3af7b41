"""A request in an engine: its pieces on their way to threads and to event loops."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from kernwright.errors import Error, Timeout
from kernwright.llm._choice import Choice, Completion, Piece
from kernwright.llm._engine import BAD_LOGITS, TokenEvent
from kernwright.llm._errors import ModelError
from kernwright.llm._recording import read_details

if TYPE_CHECKING:
    import asyncio

    from kernwright.llm._batching.engine import Engine

__all__ = ["Request"]

Wake = Callable[[], None]
Waker: TypeAlias = "tuple[asyncio.AbstractEventLoop | None, Wake]"
"""What to call once something happened, and the event loop to call it in; None: any thread."""


def wake_all(wakers: Iterable[Waker]) -> None:
    """Wakes each event loop once."""
    loops: dict[asyncio.AbstractEventLoop, list[Wake]] = {}
    for loop, wake in wakers:
        if loop is None:
            wake()
        else:
            loops.setdefault(loop, []).append(wake)
    for loop, wakes in loops.items():
        try:
            loop.call_soon_threadsafe(_call_each, wakes)
        except RuntimeError:  # the loop was closed: nobody waits there
            continue


def _call_each(calls: Sequence[Wake]) -> None:
    for call in calls:
        call()


class Progress:
    """What came of a request so far. One thread adds events, any threads read."""

    def __init__(
        self, choices: Sequence[Choice], prompt_tokens: int, logprobs: int | None, vocabulary: int
    ) -> None:
        self.prompt_tokens, self.cached_tokens = prompt_tokens, 0
        self._began, self._seconds = time.perf_counter(), 0.0
        for each in choices:
            each.began = self._began
        self._choices, self._left = choices, {each.number for each in choices}
        self._logprobs, self._vocabulary = logprobs, vocabulary
        self._lock = threading.Lock()
        self._pieces: deque[Piece] = deque()
        self._error: tuple[type[Error], str] | None = None
        self._is_ended = False
        self._at_piece: list[Waker] = []
        self._at_end: list[Waker] = []

    # ---- for the thread that adds

    def add(self, event: TokenEvent) -> tuple[list[Waker], bool]:
        """Whom to wake, and whether a stop string ended the choice: its sequence still runs."""
        self.cached_tokens = max(self.cached_tokens, event.cached_tokens)
        if event.finish_reason == "failed":
            return self.fail(Error, f"a step of this request failed: {event.error}"), False
        if event.finish_reason == "bad_guide":
            return self.fail(ModelError, event.error), False
        if event.finish_reason == "bad_logits":
            return self.fail(ModelError, BAD_LOGITS), False
        details = None
        if event.details is not None and self._logprobs is not None:
            details = read_details(event.details, self._logprobs, self._vocabulary)
        choice = self._choices[event.choice]
        choice.drafts = event.drafted, event.accepted
        choice.cached_tokens = event.cached_tokens
        piece = choice.add(event.token, event.finish_reason, details)
        if piece is not None and not self._is_ended:
            return self._show(piece), choice.is_stopped_by_text and event.finish_reason is None
        return [], False

    def _show(self, piece: Piece) -> list[Waker]:
        if piece.finish_reason is not None:
            self._left.discard(piece.choice)
        with self._lock:
            self._pieces.append(piece)
            wakers, self._at_piece = self._at_piece, []
            return wakers if self._left else wakers + self._end()

    def _end(self) -> list[Waker]:
        self._seconds = time.perf_counter() - self._began
        self._is_ended = True
        wakers = self._at_end + self._at_piece
        self._at_end, self._at_piece = [], []
        return wakers

    def fail(self, kind: type[Error], message: str) -> list[Waker]:
        """Ends it with an error. Whom to wake."""
        with self._lock:
            if self._is_ended:
                return []
            self._error = (kind, message)
            return self._end()

    # ---- for those that read

    @property
    def has_failed(self) -> bool:
        """Whether it ended with an error."""
        return self._error is not None

    @property
    def is_ended(self) -> bool:
        """Whether all texts have ended; pieces may still wait to be read."""
        return self._is_ended

    def next_piece(self, waker: Waker) -> tuple[Piece | None, bool]:
        """The next piece, or whether there will be another: then the waker is called once."""
        with self._lock:
            if self._pieces:
                return self._pieces.popleft(), True
            if not self._is_ended:
                self._at_piece.append(waker)
                return None, True
        self.require_success()
        return None, False

    def wakes_at_end(self, waker: Waker) -> bool:
        """False when it has ended already."""
        with self._lock:
            if not self._is_ended:
                self._at_end.append(waker)
            return not self._is_ended

    def require_success(self) -> None:
        """Raises the error that it ended with."""
        if self._error is not None:
            kind, message = self._error
            raise kind(message)

    def completions(self) -> list[Completion]:
        """Of all choices, once it has ended."""
        self.require_success()
        return [each.completion(self.prompt_tokens, self._seconds) for each in self._choices]

    def reasons(self) -> list[str]:
        """Why each choice ended."""
        if self._error is not None:
            return ["error" for _ in self._choices]
        return [each.reason for each in self._choices]


def _thread_waker() -> tuple[threading.Lock, Waker]:
    """A lock to acquire, and what lets it go."""
    lock = threading.Lock()
    lock.acquire()
    return lock, (None, lock.release)


def _task_waker() -> tuple[asyncio.Future[None], Waker]:
    """A future to await, and what completes it."""
    import asyncio  # it takes 50 ms, and a loop runs by now: it is there

    loop = asyncio.get_running_loop()
    future = loop.create_future()
    return future, (loop, lambda: None if future.done() else future.set_result(None))


class Request(Iterator[Piece], AsyncIterator[Piece]):
    """A request of llm.Engine.submit(): iterated it gives llm.Piece as they come, in a thread or,
    with `async for`, in any event loop.

    result() or `await` give the llm.Completion, or a list of n. They may be called beside the
    iteration and from several threads; each piece is given once. The iteration and both raise
    ModelError for logits that are not finite, llm.EngineClosed when the engine's thread has ended,
    Error when a step failed: each message names the cause. A request that nobody refers to any more
    is cancelled.

    >>> from kernwright import llm
    >>> model = llm.load(random={
    ...     "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
    ...     "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
    ...     "dtype": "float32", "max_position_embeddings": 64,
    ... })
    >>> with llm.Engine(model, max_rows=2) as engine:
    ...     request = engine.submit([1, 2, 3], max_tokens=4)
    ...     [piece.finish_reason for piece in request], request.prompt_tokens
    ([None, None, None, 'length'], 3)
    """

    def __init__(self, number: int, progress: Progress, engine: Engine) -> None:
        # An engine does not end while somebody waits for one of its requests.
        self._number, self._progress, self._engine = number, progress, engine

    @property
    def id(self) -> int:
        """The number of the request, counted from 1 in each engine."""
        return self._number

    @property
    def prompt_tokens(self) -> int:
        """How many tokens the prompt has."""
        return self._progress.prompt_tokens

    @property
    def cached_tokens(self) -> int:
        """How many tokens of the prompt were found in the prefix cache; 0 until it runs."""
        return self._progress.cached_tokens

    @property
    def finish_reason(self) -> str | list[str] | None:
        """Why the text ended: "stop", "length", "cancelled", "timeout", or "error" where result()
        raises. With n texts a list. None until all have ended."""
        if not self._progress.is_ended:
            return None
        reasons = self._progress.reasons()
        return reasons[0] if len(reasons) == 1 else reasons

    def cancel(self) -> None:
        """Ends the texts that still go on, as "cancelled", with what they have by then."""
        if not self._progress.is_ended:
            self._engine._cancel(self._number)

    def result(self, timeout: float | None = None) -> Any:
        """Waits for the end: an llm.Completion, or a list of n. Raises kw.errors.Timeout after
        `timeout` seconds; the request goes on then."""
        lock, waker = _thread_waker()
        if self._progress.wakes_at_end(waker) and not lock.acquire(
            timeout=-1 if timeout is None else max(timeout, 0)
        ):
            raise Timeout(f"request {self._number} has not ended within {timeout} s; it goes on")
        return self._found()

    def _found(self) -> Any:
        made = self._progress.completions()
        return made[0] if len(made) == 1 else made

    def __next__(self) -> Piece:
        lock, waker = _thread_waker()
        while True:
            piece, goes_on = self._progress.next_piece(waker)
            if piece is not None:
                return piece
            if not goes_on:
                raise StopIteration
            lock.acquire()

    def __aiter__(self) -> Request:
        return self

    async def __anext__(self) -> Piece:
        while True:
            future, waker = _task_waker()
            piece, goes_on = self._progress.next_piece(waker)
            if piece is not None:
                return piece
            if not goes_on:
                raise StopAsyncIteration
            await future

    def stop(self, choice: int = 0) -> None:
        """Ends one of the n texts, as a stop string does: "stop". The others go on."""
        if not self._progress.is_ended:
            self._engine._cancel(self._number, choice, stopped=True)

    async def _ended(self) -> Any:
        future, waker = _task_waker()
        if self._progress.wakes_at_end(waker):
            await future
        return self._found()

    def __await__(self) -> Generator[Any, None, Any]:
        return self._ended().__await__()

    def __repr__(self) -> str:
        reason = self.finish_reason
        return f"<llm.Request {self._number}, {'running' if reason is None else reason}>"

    def __del__(self) -> None:
        if hasattr(self, "_engine"):  # it was made whole
            self.cancel()
