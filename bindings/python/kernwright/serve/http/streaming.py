"""Server-sent events, and the clients that leave before the last one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import msgspec

from kernwright.errors import Error
from kernwright.serve.http.errors import ApiError, as_api_error
from kernwright.serve.http.log import log

__all__ = ["ClientGone", "EventStream", "event", "while_connected"]

_DONE = b"data: [DONE]\n\n"
_LOOK = 1.0  # seconds between looks at the clock
_encode = msgspec.json.Encoder().encode
Result = TypeVar("Result")


class ClientGone(Exception):
    """The client has closed the connection, or takes nothing any more."""


def event(value: Any, name: str | None = None) -> bytes:
    """A server-sent event."""
    head = b"" if name is None else b"event: %s\n" % name.encode()
    return b"%sdata: %s\n\n" % (head, _encode(value))


async def _left(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def while_connected(
    receive: Any, work: Awaitable[Result], cancel: Callable[[str], None], seconds: float
) -> Result:
    """The result of some work. If the client leaves before it is done, or `seconds` pass, cancel()
    is called with the reason, and ClientGone or ApiError raised."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_left(receive))
    try:
        await asyncio.wait({task, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        if gone.done():
            cancel("disconnected")
            raise ClientGone
        cancel("timeout")
        raise _too_long(seconds)
    except asyncio.CancelledError:
        cancel("cancelled")
        raise
    except Exception:
        cancel("error")  # after another reason it changes nothing
        raise
    finally:
        await _stopped(task, gone)


def _too_long(seconds: float) -> ApiError:
    return ApiError(504, f"the request took more than {seconds:g} s, and was ended", code="timeout")


async def _stopped(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class EventStream:
    """An ASGI response of events, each bytes of its own.

    The status is sent with the first event: what fails before it is an answer with a status of its
    own. What fails later is an event with the error. `done` ends the stream with ``[DONE]``.
    cancel(reason) is called where the events end before their last one: the client leaves, or takes
    nothing for `write_seconds`, or all takes longer than `seconds`. The events since ended() is
    true are one write with the end of the stream.
    """

    def __init__(
        self, events: AsyncIterator[bytes], cancel: Callable[[str], None], *, seconds: float,
        write_seconds: float, ended: Callable[[], bool], done: bool = True,
        failure: Callable[[ApiError], bytes] | None = None,
    ) -> None:  # fmt: skip
        self._events, self._cancel, self._ended = events, cancel, ended
        self._done = _DONE if done else b""
        self._seconds, self._write_seconds = seconds, write_seconds
        self._failure = failure or (lambda error: event(error.body()))
        self._writing_since: float | None = None
        self._begun = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        pump = asyncio.ensure_future(self._pump(send))
        gone = asyncio.ensure_future(_left(receive))
        end = time.monotonic() + self._seconds
        try:
            while not pump.done():
                await asyncio.wait({pump, gone}, timeout=_LOOK, return_when="FIRST_COMPLETED")
                if pump.done():
                    break
                now, since = time.monotonic(), self._writing_since
                if gone.done():
                    self._cancel("disconnected")
                    raise ClientGone
                if since is not None and now - since > self._write_seconds:
                    self._cancel("slow_reader")
                    raise ClientGone
                if now > end:
                    await self._end_late(pump, send)
                    return
            pump.result()
        except BaseException:
            self._cancel("cancelled")  # after another reason it changes nothing
            raise
        finally:
            await _stopped(pump, gone)

    async def _end_late(self, pump: asyncio.Future[None], send: Any) -> None:
        """Ends a stream that takes too long."""
        self._cancel("timeout")
        await _stopped(pump)
        error = _too_long(self._seconds)
        if not self._begun:
            raise error
        await self._write(send, self._failure(error) + self._done, False)

    async def _pump(self, send: Any) -> None:
        last: list[bytes] = []
        try:
            async for each in self._events:
                if self._ended():
                    last.append(each)
                else:
                    await self._write(send, each, True)
        except Exception as error:
            self._cancel("error")
            if not self._begun:
                raise
            if not isinstance(error, (ApiError, Error)):
                log.error("a stream failed", exc_info=error)
            last.append(self._failure(as_api_error(error)))
        await self._write(send, b"".join([*last, self._done]), False)

    async def _write(self, send: Any, data: bytes, more: bool) -> None:
        self._writing_since = time.monotonic()
        if not self._begun:
            self._begun = True
            headers = [(b"content-type", b"text/event-stream; charset=utf-8"),
                       (b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no")]  # fmt: skip
            await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": data, "more_body": more})
        self._writing_since = None
