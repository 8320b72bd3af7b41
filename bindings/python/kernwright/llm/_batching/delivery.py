"""The threads of an engine: one runs its steps, one brings tokens to requests."""

from __future__ import annotations

import threading
from typing import Any

from kernwright.errors import Error
from kernwright.llm._batching.request import Progress, Waker, wake_all
from kernwright.llm._engine import TokenEngine, TokenEvent
from kernwright.llm._errors import EngineClosed
from kernwright.llm._sampling import Sampling

__all__ = ["Delivery"]

_WAIT = 1.0  # seconds between looks at the engine when nothing happens


class Delivery:
    """Runs an engine, and brings its events to the requests that they belong to.

    The threads refer to this object and not to its owner, so that an owner that is gone ends them.
    """

    def __init__(self, engine: TokenEngine) -> None:
        self._engine: TokenEngine | None = engine
        self._stats: dict[str, Any] = {}
        # Held from begin() until the request is known here: its events wait for that.
        self._lock = threading.Lock()
        self._requests: dict[int, Progress] = {}
        self._all_ended = threading.Condition(self._lock)
        self._cause: str | None = None
        self._is_open = True
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

    def submit(self, progress: Progress, prompt: list[int], sampling: Sampling) -> int:
        """The number of the request. Raises EngineClosed, and what TokenEngine.begin() raises."""
        with self._lock:
            number = self._require_open().begin(prompt, sampling)
            self._requests[number] = progress
        return number

    def cancel(self, number: int) -> None:
        """Takes no lock: it may run in a destructor."""
        if (engine := self._engine) is not None:
            engine.cancel(number)

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
                self._all_ended.wait_for(lambda: not self._requests, timeout)
        self.end()
        if threading.current_thread() in (self._steps, self._events):
            return  # a destructor that runs there by chance
        self._steps.join()
        self._events.join()

    def _require_open(self) -> TokenEngine:
        engine = self._engine
        if not self._is_open or engine is None:
            raise EngineClosed(f"the engine takes no requests: {self._cause or 'it was closed'}")
        return engine

    def _serve(self, engine: TokenEngine) -> None:
        try:
            cause = engine.serve()
        except Exception as error:
            cause = str(error)
        if cause:
            self._is_open, self._cause = False, f"its thread has ended: {cause}"

    def _deliver(self, engine: TokenEngine) -> None:
        try:
            while (events := engine.take(_WAIT)) is not None:
                if events:
                    wake_all(self._sorted(engine, events))
        except Exception as error:
            self._is_open, self._cause = False, f"its texts cannot go on: {error!r}"
            engine.close()
        self._steps.join()
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
            except Exception as error:  # of the text alone: the neighbours go on
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
                self._requests.pop(number, None)
            if not self._requests:
                self._all_ended.notify_all()
        return wakers

    def _fail_all(self) -> None:
        message = f"the engine ended while this request was in it: {self._cause or 'it was closed'}"
        with self._lock:
            left, self._requests = list(self._requests.values()), {}
            self._all_ended.notify_all()
        wake_all([waker for each in left for waker in each.fail(EngineClosed, message)])
