"""A model by its name: loaded when a request needs it, and unloaded while nobody does."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import time
from collections.abc import Callable
from typing import Any

import kernwright as kw
from kernwright.errors import Error, OutOfMemory
from kernwright.serve.http.errors import ApiError
from kernwright.serve.http.log import log
from kernwright.serve.served import Served

__all__ = ["COUNTERS", "ModelSlot"]

COUNTERS = ("steps", "prompt_tokens", "shared_tokens", "preemptions", "drafts", "drafted_tokens",
            "accepted_tokens", "started", "finished", "aborted", "failed", "saved_pages",
            "loaded_pages")  # fmt: skip
_GAUGES = ("running", "waiting", "used_pages", "free_pages", "cached_pages", "host_pages")
_RETRY = 5.0  # seconds


class ModelSlot:
    """A place for a model and its engine. For one event loop.

    load() runs in a thread. `context` is that of the model, known before it is loaded.
    """

    def __init__(self, name: str, load: Callable[[], Served], context: int) -> None:
        self.name, self.context, self.created = name, context, int(time.time())
        self.loads = 0
        """How often it was loaded."""
        self._load = load
        self._served: Served | None = None
        self._loading: asyncio.Future[Served] | None = None
        self._users = 0
        self._idle_since = 0.0
        self._past = dict.fromkeys(COUNTERS, 0)  # of closed engines

    @classmethod
    def filled(cls, served: Served, load: Callable[[], Served] | None = None) -> ModelSlot:
        """A slot with a loaded model. Without load() the model cannot be loaded again."""
        made = cls(served.name, load or (lambda: served), served.context)
        made._fill(served)
        return made

    def _fill(self, served: Served) -> None:
        self._served, self.loads = served, self.loads + 1
        self._idle_since = time.monotonic()

    @property
    def state(self) -> str:
        """ "loaded", "loading" or "unloaded"."""
        if self._served is not None:
            return "loaded"
        return "unloaded" if self._loading is None else "loading"

    @property
    def healthy(self) -> bool:
        """Whether its engine runs, if it is loaded."""
        return self._served is None or bool(self._served.engine.healthy)

    def acquire(self) -> Served | None:
        """The model, loaded until release() at least; None while it is not loaded."""
        if self._served is not None:
            self._users += 1
        return self._served

    def release(self) -> None:
        """Gives back the model of an acquire()."""
        self._users -= 1
        self._idle_since = time.monotonic()

    async def wait(self, pool: concurrent.futures.Executor, seconds: float) -> None:
        """Returns once it is loaded, and has the pool load it if nobody did. Raises ApiError."""
        if self._loading is None:
            log.info("%s is loaded", self.name)
            self._loading = asyncio.get_running_loop().run_in_executor(pool, self._load)
            self._loading.add_done_callback(self._loaded)
        try:
            await asyncio.wait_for(asyncio.shield(self._loading), seconds)
        except asyncio.TimeoutError:
            raise ApiError(
                503, f"{self.name} is still being loaded after {seconds:g} s: try again",
                code="model_loading", retry_after=_RETRY,
            ) from None  # fmt: skip
        except OutOfMemory as error:
            raise ApiError(
                503, f"{self.name} does not fit into memory now: {error}",
                code="model_does_not_fit", retry_after=_RETRY,
            ) from None  # fmt: skip
        except Exception as error:
            reason = error if isinstance(error, Error) else f"{type(error).__name__}, see the log"
            raise ApiError(
                500, f"{self.name} cannot be loaded: {reason}", code="model_not_loaded"
            ) from None

    def _loaded(self, loading: asyncio.Future[Served]) -> None:
        self._loading = None
        if loading.cancelled():
            return
        if (error := loading.exception()) is not None:
            log.error("%s cannot be loaded", self.name, exc_info=error)
            return
        self._fill(loading.result())
        log.info("%s runs", self.name)

    def unload_if_idle(self, pool: concurrent.futures.Executor, seconds: float) -> None:
        """Has the pool close the engine of a model after so many seconds without a caller."""
        if self._served is None or self._users or not self.healthy:
            return
        if time.monotonic() - self._idle_since >= seconds:
            log.info("%s is unloaded after %g s without a request", self.name, seconds)
            stats = self._served.engine.stats()
            self._past = {key: self._past[key] + stats[key] for key in COUNTERS}
            held, self._served = [self._served], None
            pool.submit(_close, held)

    def stats(self) -> dict[str, Any]:
        """Those of its engine; counters go on over all its engines."""
        found = dict.fromkeys(_GAUGES, 0) if self._served is None else self._served.engine.stats()
        return {**found, **{key: self._past[key] + found.get(key, 0) for key in COUNTERS}}

    def close(self) -> None:
        """Ends its engine."""
        if self._served is not None:
            self._served.engine.close(0)


def _close(held: list[Served]) -> None:
    """Ends an engine and gives back its memory. Takes the model out of the list: the pool keeps
    its arguments."""
    try:
        served = held.pop()
        served.engine.close()
        device = served.model.device
        del served
        gc.collect()  # a model and its generator refer to each other
        kw.memory.trim(device)
    except Exception as error:
        log.error("a model was not unloaded as it should be", exc_info=error)
