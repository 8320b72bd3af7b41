"""HTTP/1.1 of uvicorn, with bounds for the size and the time of headers."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from kernwright.serve.http.limits import Limits

__all__ = ["protocol_of"]

_ANSWER = (
    b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
    b"connection: close\r\n\r\n%s"
)
_BODY = b'{"error":{"message":"%s","type":"invalid_request_error","param":null,"code":"%s"}}'


class _Protocol(HttpToolsProtocol):
    """Ends a connection whose headers or trailers are too large, or whose headers do not come."""

    limits: Limits
    _header_bytes = 0
    _bytes_beside_body = 0  # since the last byte of a body: trailers, extensions of chunks
    _in_headers = True
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._in_headers:
            self._header_bytes += len(data)
            if self._late is None:  # the next request of a connection
                self._expect_headers()
        else:
            self._bytes_beside_body += len(data)
        super().data_received(data)
        if max(self._header_bytes, self._bytes_beside_body) > self.limits.headers:
            self._refuse(
                b"431 Request Header Fields Too Large",
                b"a request has %d bytes of headers at most" % self.limits.headers,
                b"headers_too_large",
            )  # fmt: skip

    def on_headers_complete(self) -> None:
        self._in_headers, self._header_bytes, self._bytes_beside_body = False, 0, 0
        self._forget_timer()
        super().on_headers_complete()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_headers:  # nobody reads trailers
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        self._bytes_beside_body = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_headers, self._bytes_beside_body = True, 0
        super().on_message_complete()

    def _expect_headers(self) -> None:
        self._late = self.loop.call_later(self.limits.read_seconds, self._too_late)

    def _forget_timer(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _too_late(self) -> None:
        self._late = None
        if self._is_answering():  # what came is no request yet: the answer goes on
            self._expect_headers()
            return
        self._refuse(
            b"408 Request Timeout",
            b"the headers did not come within %g s" % self.limits.read_seconds, b"timeout",
        )  # fmt: skip

    def send_400_response(self, msg: str) -> None:
        self._refuse(b"400 Bad Request", b"the bytes are no HTTP/1.1", b"invalid_http")

    def _is_answering(self, *, begun: bool = False) -> bool:
        cycle = self.cycle
        if cycle is None or cycle.response_complete:
            return False
        return bool(cycle.response_started) if begun else True

    def _refuse(self, status: bytes, message: bytes, code: bytes) -> None:
        if self._is_answering(begun=True):  # no second answer within the first one
            self.transport.close()
        elif not self.transport.is_closing():
            body = _BODY % (message, code)
            self.transport.write(_ANSWER % (status, len(body), body))
            self.transport.close()


def protocol_of(limits: Limits) -> type[HttpToolsProtocol]:
    """The protocol's class for these bounds."""
    return type("Protocol", (_Protocol,), {"limits": limits})
