"""The threads of an engine: one runs its steps, one brings tokens to requests."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from kernwright.errors import Error
from kernwright.llm._batching.request import Progress, Waker, wake_all
from kernwright.llm._batching.work import WorkQueue
from kernwright.llm._engine import TokenEngine, TokenEvent
from kernwright.llm._errors import EngineClosed, QueueFull
from kernwright.llm._sampling import Sampling
from kernwright.llm._submission import Turn

__all__ = ["Delivery"]

_WAIT = 1.0  # seconds between looks at the engine when nothing happens
_ENDS = 32  # of the latest requests: they tell how often one ends
_LONGEST_RETRY = 60.0  # seconds


class Delivery:
    """Runs an engine, and brings its events to the requests that they belong to.

    The threads refer to this object and not to its owner, so that an owner that is gone ends them.
    """

    def __init__(
        self, engine: TokenEngine, queue_limit: int | None, step_limit: float | None
    ) -> None:
        self._engine: TokenEngine | None = engine
        self._queue_limit, self._step_limit = queue_limit, step_limit
        self._ends: deque[float] = deque(maxlen=_ENDS)
        self._stats: dict[str, Any] = {}
        # Held from begin() until the request is known here: its events wait for that.
        self._lock = threading.Lock()
        self._requests: dict[int, Progress] = {}
        self._all_ended = threading.Condition(self._lock)
        self._work = WorkQueue()
        self._cause: str | None = None
        self._is_open, self._hangs = True, False
        self._steps = threading.Thread(
            target=self._serve, args=(engine,), name="kernwright-engine", daemon=True
        )
        self._events = threading.Thread(
            target=self._deliver, args=(engine,), name="kernwright-text", daemon=True
        )
        self._steps.start()
        self._events.start()

    @property
    def is_open(self) -> bool:
        """Whether it takes requests."""
        return self._is_open

    def submit(self, progress: Progress, prompt: list[int], sampling: Sampling, turn: Turn) -> int:
        """The number of the request. Raises EngineClosed, QueueFull, and what TokenEngine.begin()
        raises."""
        begin = self._require_open().prepared(prompt, sampling, turn)  # it may take long
        with self._lock:
            self._require_open()
            number = begin()
            if number is not None:
                self._requests[number] = progress
                return number
            wait = self._seconds_to_end()
        raise QueueFull(
            f"{self._queue_limit} requests wait already, the queue_limit of this engine: try again "
            f"in {wait:.0f} s",
            wait,
        )

    def _seconds_to_end(self) -> float:
        """How long a request took to end lately, on the average: then another one leaves the
        queue."""
        if len(self._ends) < 2:
            return 1.0
        mean = (time.monotonic() - self._ends[0]) / len(self._ends)
        return min(max(mean, 1.0), _LONGEST_RETRY)

    def cancel(self, number: int, choice: int = -1, stopped: bool = False) -> None:
        """See TokenEngine.cancel(). Takes no lock: it may run in a destructor."""
        if (engine := self._engine) is not None:
            engine.cancel(number, choice, stopped)

    def call(self, function: Callable[[], Any]) -> Future[Any]:
        """See Engine.between_steps()."""
        with self._lock:
            engine = self._require_open()
            future = self._work.add(function)
        engine.interrupt()
        return future

    def stats(self) -> dict[str, Any]:
        """See Engine.stats()."""
        engine = self._engine
        return dict(self._stats) if engine is None else engine.stats()

    def end(self) -> None:
        """Ends both threads, and waits for neither. Takes no lock."""
        self._is_open = False
        if (engine := self._engine) is not None:
            engine.close()

    def close(self, timeout: float | None) -> None:
        """See Engine.close()."""
        with self._lock:
            if self._is_open:
                self._is_open, self._cause = False, "it was closed"
            if timeout is not None:
                self._all_ended.wait_for(lambda: not (self._requests or self._work), timeout)
        self.end()
        if threading.current_thread() in (self._steps, self._events):
            return  # a destructor that runs there by chance
        self._events.join()
        if not self._hangs:
            self._steps.join()

    def _require_open(self) -> TokenEngine:
        engine = self._engine
        if not self._is_open or engine is None:
            raise EngineClosed(f"the engine takes no requests: {self._cause or 'it was closed'}")
        return engine

    def _is_hung(self, engine: TokenEngine) -> bool:
        """Whether a step takes too long. Then nothing is expected of its thread any more."""
        if self._step_limit is None or (max(engine.step_age, self._work.age) < self._step_limit):
            return False
        self._is_open, self._hangs = False, True
        self._cause = (
            f"a step, or a function between two, has not ended within {self._step_limit} s, its "
            "step_limit: the device hangs, or the limit is too short"
        )
        return True

    def _serve(self, engine: TokenEngine) -> None:
        try:
            cause = engine.serve(lambda stream: self._run_work(engine, stream))
        except Exception as error:
            cause = str(error)
        if cause:
            self._is_open, self._cause = False, f"its thread has ended: {cause}"

    def _run_work(self, engine: TokenEngine, stream: Any) -> None:
        """One function; a step of the requests may come before the next one."""
        self._work.run_one(stream)
        if self._work:
            engine.interrupt()
            return
        with self._lock:
            self._all_ended.notify_all()

    def _deliver(self, engine: TokenEngine) -> None:
        try:
            while (events := engine.take(_WAIT)) is not None and not self._is_hung(engine):
                wake_all(self._sorted(engine, events))
                if not events and not self._steps.is_alive():
                    break
            if not self._hangs:
                self._steps.join()
        except Exception as error:
            self._is_open, self._cause = False, f"its texts cannot go on: {error!r}"
        engine.close()
        self._fail_all()
        self._stats, self._engine = engine.stats(), None  # its caches are given back

    def _sorted(self, engine: TokenEngine, events: list[TokenEvent]) -> list[Waker]:
        """Brings events to their requests. Whom to wake."""
        with self._lock:
            known = {event.request: self._requests.get(event.request) for event in events}
        wakers: list[Waker] = []
        ended = []
        for event in events:
            progress = known[event.request]
            if progress is None:
                continue
            try:
                woken, is_stopped = progress.add(event)
            except Exception as error:  # this text cannot be made: its neighbours go on
                woken, is_stopped = progress.fail(Error, f"the text of it ended: {error!r}"), False
            wakers += woken
            if progress.is_ended:
                ended.append(event.request)
            if progress.has_failed:
                engine.cancel(event.request)
            elif is_stopped:
                engine.cancel(event.request, event.choice, stopped=True)
        with self._lock:
            for number in ended:
                if self._requests.pop(number, None) is not None:
                    self._ends.append(time.monotonic())
            if not self._requests:
                self._all_ended.notify_all()
        return wakers

    def _fail_all(self) -> None:
        cause = self._cause or "it was closed"
        message = f"the engine ended while this request was in it: {cause}"
        self._work.fail(EngineClosed(f"the engine ended before this function did: {cause}"))
        with self._lock:
            left, self._requests = list(self._requests.values()), {}
            self._all_ended.notify_all()
        wake_all([waker for each in left for waker in each.fail(EngineClosed, message)])
