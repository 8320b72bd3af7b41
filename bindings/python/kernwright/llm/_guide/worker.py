"""Masks of guided sequences, computed by threads of their own while the device runs."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from kernwright._core import _EngineLoop
from kernwright.errors import InvalidArgument

__all__ = ["Guide", "GuideState", "GuideWorker"]

_THREADS = 4


class GuideState(Protocol):
    """Where a sequence is in its form."""

    def advance(self, token: int | None) -> bytes | None:
        """The bits of the tokens that may come behind `token` (None: as the first one), 32 in a
        word; None where the sequence is complete. What it raises ends the sequence."""


class Guide(Protocol):
    """The form of sequences."""

    def start(self) -> GuideState:
        """Of a new sequence."""


class GuideWorker:
    """Follows the tokens of guided sequences, and gives their masks to the loop. Thread-safe."""

    def __init__(self, loop: _EngineLoop) -> None:
        self._loop = loop
        self._lock = threading.Lock()  # held until a request that begins is known here
        self._states: dict[int, dict[int, GuideState]] = {}
        self._threads = ThreadPoolExecutor(_THREADS, "kernwright-guide")

    @property
    def is_idle(self) -> bool:
        """Whether no guided sequence is in the loop."""
        return not self._states

    def submit(self, guide: Guide, prompt: Sequence[int], options: dict[str, Any]) -> int:
        """Submits a guided request to the loop; its number, 0 where too many wait."""
        states = {choice: guide.start() for choice in range(options["choices"])}
        masks = [state.advance(None) for state in states.values()]
        if masks[0] is None:
            raise InvalidArgument("a guide allows only the empty sequence")
        with self._lock:
            request = self._loop.submit(prompt, mask=masks[0], **options)
            if request != 0:
                self._states[request] = states
        return request

    def follow(self, events: Iterable[Sequence[Any]]) -> None:
        """Takes the events of the loop, (request, choice, token, reason, ...) each. Returns at
        once: the threads do the work."""
        with self._lock:
            for request, choice, token, reason, *_ in events:
                states = self._states.get(request)
                if states is None or choice not in states:
                    continue
                if reason is None:
                    self._threads.submit(self._advance, request, choice, states[choice], token)
                    continue
                del states[choice]
                if not states:
                    del self._states[request]

    def _advance(self, request: int, choice: int, state: GuideState, token: int) -> None:
        try:
            mask = state.advance(token)
            if mask is None:
                self._loop.cancel(request, choice=choice, stopped=True)
            else:
                self._loop.set_mask(request, choice, mask)
        except Exception as error:
            self._loop.cancel(request, choice=choice, error=str(error) or repr(error))
