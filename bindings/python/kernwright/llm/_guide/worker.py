"""Masks of guided sequences, computed by threads of their own while the device runs."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from kernwright._core import _EngineLoop
from kernwright.errors import InvalidArgument
from kernwright.llm._draft import Draft
from kernwright.llm._guide.guesses import following

__all__ = ["Guide", "GuideState", "GuideWorker"]

_THREADS = 4


class GuideState(Protocol):
    """Where a sequence is in its form."""

    def advance(self, token: int | None) -> bytes | None:
        """The bits of the tokens that may come behind `token` (None: as the first one), 32 in a
        word; None where the sequence is complete. What it raises ends the sequence."""

    def rollback(self, count: int) -> None:
        """Takes the last `count` tokens back."""

    def forced(self) -> list[int]:
        """The next tokens where the form leaves no other text, else none."""


class Guide(Protocol):
    """The form of sequences."""

    def start(self) -> GuideState:
        """Of a new sequence."""


class Follower:
    """A guided sequence: its tokens, its place in its form, and guesses of what comes next."""

    def __init__(self, guide: Guide, prompt: array[int], draft: Draft | None) -> None:
        self._state, self._draft = guide.start(), draft
        self._text, self._prompt = prompt[:], len(prompt)
        self.arrived: list[int] = []
        """Tokens for the next advance(); the lock of the worker guards them."""
        self.is_busy = False

    @property
    def produced(self) -> int:
        """Tokens behind the prompt."""
        return len(self._text) - self._prompt

    def advance(self, tokens: Iterable[int | None]) -> bytes | None:
        """The mask behind the tokens, None where the text is complete."""
        mask = None
        for token in tokens:
            mask = self._state.advance(token)
            if token is not None:
                self._text.append(token)
        return mask

    def guesses(self, mask: bytes) -> tuple[list[int], list[bytes]]:
        """Tokens that may come next, and the masks from `mask` on: in front of each and behind the
        last one. The form goes along them and is rolled back."""
        draft = self._draft
        if draft is None or draft.tokens is None:
            return [], [mask]
        tokens = self._state.forced()[: draft.tokens]
        left = draft.tokens - len(tokens)
        if left:
            text = self._text + array("i", tokens)
            tokens += following(text, left, draft.shortest, draft.longest)
        masks, taken = [mask], 0
        for token in tokens:
            if not masks[-1][token // 8] >> token % 8 & 1:
                break
            taken += 1
            behind = self._state.advance(token)
            if behind is None:  # the text would end there: no draft, but a token of the step
                break
            masks.append(behind)
        if taken:
            self._state.rollback(taken)
        return tokens[: len(masks) - 1], masks


class GuideWorker:
    """Follows the tokens of guided sequences, and gives their masks to the loop. With a `draft`
    they get guesses, too, with a mask behind each. Thread-safe."""

    def __init__(self, loop: _EngineLoop, draft: Draft | None = None) -> None:
        self._loop, self._draft = loop, draft
        self._lock = threading.Lock()  # held until a request that begins is known here
        self._followers: dict[int, dict[int, Follower]] = {}
        self._threads = ThreadPoolExecutor(_THREADS, "kernwright-guide")

    @property
    def is_idle(self) -> bool:
        """Whether no guided sequence is in the loop."""
        return not self._followers

    def prepared(
        self, guide: Guide, prompt: Sequence[int], options: dict[str, Any]
    ) -> Callable[[], int]:
        """A function that submits a guided request to the loop, once; its number, 0 where too many
        wait. The first masks are made here."""
        text = array("i", prompt)
        followers = {i: Follower(guide, text, self._draft) for i in range(options["choices"])}
        masks = [follower.advance([None]) for follower in followers.values()]
        if masks[0] is None:
            raise InvalidArgument("a guide allows only the empty sequence")

        def submit() -> int:
            with self._lock:
                request = self._loop.submit(prompt, mask=masks[0], **options)
                if request != 0:
                    self._followers[request] = followers
            return request

        return submit

    def follow(self, events: Iterable[Sequence[Any]]) -> None:
        """Takes the events of the loop, (request, choice, token, reason, ...) each. Returns at
        once: the threads do the work."""
        with self._lock:
            for request, choice, token, reason, *_ in events:
                followers = self._followers.get(request)
                if followers is None or choice not in followers:
                    continue
                if reason is None:
                    follower = followers[choice]
                    follower.arrived.append(token)
                    if not follower.is_busy:
                        follower.is_busy = True
                        self._threads.submit(self._advance, request, choice, follower)
                    continue
                del followers[choice]
                if not followers:
                    del self._followers[request]

    def _advance(self, request: int, choice: int, follower: Follower) -> None:
        """A step with drafts brings several tokens. The loop leaves masks out that come late."""
        while True:
            with self._lock:
                tokens, follower.arrived = follower.arrived, []
                follower.is_busy = bool(tokens)
            if not tokens:
                return
            try:
                mask = follower.advance(tokens)
                if mask is None:
                    self._loop.cancel(request, choice=choice, stopped=True)
                    continue
                drafts, masks = follower.guesses(mask)
                self._loop.set_mask(request, choice, masks, follower.produced, drafts)
            except Exception as error:
                self._loop.cancel(request, choice=choice, error=str(error) or repr(error))
