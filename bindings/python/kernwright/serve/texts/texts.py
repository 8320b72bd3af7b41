"""The texts of a call: requests in the engine's queue, and their pieces as they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, Protocol, TypeVar

from kernwright import llm
from kernwright.serve.calls import Call

__all__ = ["Texts"]

_AHEAD = 64  # pieces that wait between requests and their reader
Shown = TypeVar("Shown", covariant=True)


class Text(Protocol[Shown]):
    """One text of a call in the form of its endpoint."""

    finish_reason: str | None

    def push(self, piece: llm.Piece) -> Shown:
        """The text of a piece for clients."""


Made = TypeVar("Made", bound=Text[Any])


class Texts:
    """The requests of a call, and the end of each of their texts.

    Texts are numbered over all requests: `choices` of the first, then those of the next. A text
    ends by its own last piece, or by end().
    """

    def __init__(self, call: Call, requests: Sequence[Any], choices: int) -> None:
        self._call, self._requests, self._choices = call, list(requests), choices
        self.open = set(range(len(self._requests) * choices))
        """Numbers of running texts."""

    def end(self, number: int, reason: str) -> None:
        """Ends a text: what still comes of it is dropped."""
        if number in self.open:
            self.open.discard(number)
            self._call.ended(1, reason)
            self._requests[number // self._choices].stop(number % self._choices)

    def cancel(self, reason: str) -> None:
        """Ends all of them."""
        for request in self._requests:
            request.cancel()
        if self.open:
            self._call.ended(len(self.open), reason)
            self.open.clear()

    async def pushed(self, texts: Sequence[Made]) -> AsyncIterator[tuple[int, Made, Any]]:
        """Pushes each piece to its text in a list of all: the number of the text, the text, and
        what push() returned. Texts end by their finish_reason."""
        async for number, piece in self._pieces():
            text = texts[number]
            shown = text.push(piece)
            if text.finish_reason is not None:
                self.end(number, text.finish_reason)
            yield number, text, shown

    async def _pieces(self) -> AsyncIterator[tuple[int, llm.Piece]]:
        """The number of a text and its next piece, until all have ended."""
        if len(self._requests) == 1:
            async for piece in self._requests[0]:
                if piece.choice in self.open:
                    yield piece.choice, self._seen(piece.choice, piece)
                    if not self.open:
                        break
        else:
            async for number, piece in self._merged():
                if number in self.open:
                    yield number, self._seen(number, piece)
                    if not self.open:
                        break
        self._call.cached_tokens = self.cached_tokens
        if self.open:
            raise RuntimeError(f"a request has ended, and {len(self.open)} of its texts have not")

    @property
    def cached_tokens(self) -> int:
        """Tokens of the prompts that the prefix cache had."""
        return sum(each.cached_tokens or 0 for each in self._requests)

    @property
    def prompt_tokens(self) -> int:
        """Tokens of all prompts."""
        return sum(each.prompt_tokens for each in self._requests)

    def _seen(self, number: int, piece: llm.Piece) -> llm.Piece:
        if piece.token is not None:
            self._call.token(number)
        return piece

    async def _merged(self) -> AsyncIterator[tuple[int, llm.Piece]]:
        """The pieces of several requests as they come."""
        queue: asyncio.Queue[Any] = asyncio.Queue(_AHEAD)

        async def read(first: int, request: Any) -> None:
            try:
                async for piece in request:
                    await queue.put((first + piece.choice, piece))
            except Exception as error:
                await queue.put(error)
            else:
                await queue.put(None)

        readers = [
            asyncio.ensure_future(read(i * self._choices, request))
            for i, request in enumerate(self._requests)
        ]
        try:
            left = len(readers)
            while left:
                found = await queue.get()
                if isinstance(found, Exception):
                    raise found
                if found is None:
                    left -= 1
                else:
                    yield found
        finally:
            for each in readers:
                each.cancel()
