"""Compiling in the background: futures and the threads behind them."""

from __future__ import annotations

import atexit
import concurrent.futures
import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from kernwright import _core
from kernwright._support.progress import Progress

_IDLE_SECONDS = 2.0


class CompileFuture(concurrent.futures.Future[Any]):
    """A kernel or module under compilation; result() is that object, ready to be launched.

    cancel() also stops a compile that runs already.
    """

    def __init__(self) -> None:
        super().__init__()
        self._stop = _core._Stop()
        self._is_running = False

    # A future of the library cannot be cancelled any more once it runs. This one is left pending
    # until the compile is over, so that all of its own machinery for cancelling applies.

    def running(self) -> bool:
        return self._is_running and not self.done()

    def cancel(self) -> bool:
        if not super().cancel():
            return False
        self._stop.stop()
        return True

    def _run(self, compile: Callable[[_core._Stop], Any]) -> None:
        self._is_running = True
        result, error = None, None
        if not self.cancelled():
            try:
                result = compile(self._stop)
            except BaseException as raised:
                error = raised
        if not self.set_running_or_notify_cancel():
            return
        if error is None:
            self.set_result(result)
        else:
            self.set_exception(error)


class _Workers:
    """Threads that wait for compiles; the compiles themselves run outside of Python."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.tasks: queue.SimpleQueue[tuple[CompileFuture, Any]] = queue.SimpleQueue()
        self.threads: set[threading.Thread] = set()
        self.futures: set[CompileFuture] = set()
        self.is_closed = False

    def submit(self, compile: Callable[[_core._Stop], Any]) -> CompileFuture:
        future = CompileFuture()
        with self.lock:
            if self.is_closed:
                raise RuntimeError("the interpreter is shutting down: nothing is compiled any more")
            self.futures.add(future)
            self.tasks.put((future, compile))
            # Each thread has one future at a time, also between taking it and running it.
            if len(self.threads) < min(len(self.futures), os.cpu_count() or 1):
                name = f"kernwright-compile-{len(self.threads)}"
                thread = threading.Thread(target=self._work, name=name, daemon=True)
                self.threads.add(thread)
                thread.start()
        return future

    def _work(self) -> None:
        while True:
            try:
                future, compile = self.tasks.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                with self.lock:
                    if self.tasks.empty() or self.is_closed:
                        self.threads.discard(threading.current_thread())
                        return
                continue
            future._run(compile)
            with self.lock:
                self.futures.discard(future)
            del future, compile

    def close(self) -> None:
        """Before the interpreter ends: no thread may come back from a compile after that."""
        with self.lock:
            self.is_closed = True
            futures = list(self.futures)
        for future in futures:
            future.cancel()
        end = time.monotonic() + 0.5
        while self.futures and time.monotonic() < end:
            time.sleep(0.005)


_workers = _Workers()


def _after_fork() -> None:
    global _workers
    _workers = _Workers()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(lambda: _workers.close())


def submit(compile: Callable[[_core._Stop], Any]) -> CompileFuture:
    """compile(stop) on a thread in the background; its future."""
    return _workers.submit(compile)


def compile_async(kernel: _core.Kernel, device: Any = None) -> CompileFuture:
    """Kernel.compile_async()."""
    chosen = _core.current_device() if device is None else device
    return submit(lambda stop: kernel._compile(chosen, None, stop))


def finish(futures: list[CompileFuture]) -> list[CompileFuture]:
    """Waits for all; after an error or an interrupt the rest is cancelled."""
    try:
        with Progress("compiling", len(futures)) as progress:
            for future in futures:
                future.result()
                progress.advance()
    except BaseException:
        for future in futures:
            future.cancel()
        raise
    return futures
