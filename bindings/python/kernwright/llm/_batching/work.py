"""Functions of other threads that the thread of an engine calls between two steps."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from typing import Any

__all__ = ["WorkQueue"]

_Work = tuple[Callable[[], Any], "Future[Any]"]


class WorkQueue:
    """Keeps functions until they are called, first in, first out. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[_Work] = deque()
        self._running: Future[Any] | None = None
        self._began = 0.0

    def __len__(self) -> int:
        """How many functions wait or run."""
        with self._lock:
            return len(self._waiting) + (self._running is not None)

    @property
    def age(self) -> float:
        """For how many seconds the function that runs has not ended; 0 without one."""
        with self._lock:
            return 0.0 if self._running is None else time.monotonic() - self._began

    def add(self, function: Callable[[], Any]) -> Future[Any]:
        """The result of the function, once run_one() has called it."""
        future: Future[Any] = Future()
        with self._lock:
            self._waiting.append((function, future))
        return future

    def run_one(self, stream: Any) -> None:
        """Calls the first function with the stream as the current one, and waits for the stream.
        What the function raises goes to its future alone."""
        with self._lock:
            if not self._waiting:
                return
            function, future = self._waiting.popleft()
            if not future.set_running_or_notify_cancel():
                return
            self._running, self._began = future, time.monotonic()
        try:
            with stream:
                made = function()
            stream.synchronize()
        except BaseException as error:
            _end(future, error=error)
        else:
            _end(future, made)
        finally:
            with self._lock:
                self._running = None
            del function, future  # else an error would keep them by its traceback

    def fail(self, error: Exception) -> None:
        """Ends all functions with an error, also one that runs and may never end."""
        with self._lock:
            futures = [future for _, future in self._waiting if not future.cancelled()]
            self._waiting.clear()
            running = self._running
        for future in futures:
            if future.set_running_or_notify_cancel():
                _end(future, error=error)
        if running is not None:
            _end(running, error=error)


def _end(future: Future[Any], made: Any = None, error: BaseException | None = None) -> None:
    """Sets what came first: fail() may have ended a function that runs."""
    with contextlib.suppress(InvalidStateError):
        if error is None:
            future.set_result(made)
        else:
            future.set_exception(error)
