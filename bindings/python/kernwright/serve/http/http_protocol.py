"""HTTP/1.1 of uvicorn, with bounds for the size and the time of headers."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from kernwright.serve.http.limits import Limits

__all__ = ["protocol_of"]

_ANSWER = (
    b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
    b"connection: close\r\n\r\n%s"
)
# The server reads and drops the rest of a refused body, up to this many times the bound of a body:
# a client that sends a whole body before it reads would find a reset otherwise, not the answer.
_DROPPED = 4
_PROBE = 0.05  # seconds between the first two probes of a connection
_BODY = b'{"error":{"message":"%s","type":"invalid_request_error","param":null,"code":"%s"}}'


class _Protocol(HttpToolsProtocol):
    """HTTP/1.0 and 1.1 with bounds: for headers and trailers, for the time of headers, for the rest
    of a body behind its answer. Upgrades are ignored, as RFC 9110 lets servers do."""

    limits: Limits
    _header_bytes = 0
    _bytes_beside_body = 0  # since the last byte of a body: trailers, extensions of chunks
    _bytes_behind_answer = 0  # of a body, dropped
    _in_headers = True
    _is_refused = False
    _late: asyncio.TimerHandle | None = None
    _probing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_timer()
        if self._probing is not None:
            self._probing.cancel()
        super().connection_lost(exc)

    def eof_received(self) -> bool | None:  # type: ignore[override]  # as asyncio has it
        """True lets the answer go on, for a client that has ended its sending alone. One that has
        closed the connection looks the same, but answers bytes by a reset: see _probe()."""
        cycle = self.cycle
        is_whole = self._is_answering() and not cycle.more_body
        if not is_whole or self.scheme == "https" or cycle.scope["http_version"] != "1.1":
            return None
        cycle.keep_alive = False
        self._probe(_PROBE)
        return True

    def _probe(self, seconds: float) -> None:
        """Writes an interim response, again and again at growing distances. Clients skip it, and a
        closed connection is lost by it. Clients of HTTP/1.0 know none."""
        if self.transport.is_closing() or not self._is_answering():
            return
        if not self.pipeline and not self.cycle.response_started:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._probing = self.loop.call_later(seconds, self._probe, 2 * seconds)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        if self._in_headers:
            self._header_bytes += len(data)
            if self._late is None:  # the next request of a connection
                self._expect_headers()
        else:
            self._bytes_beside_body += len(data)
        self._unset_keepalive_if_required()
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self.send_400_response("")
        if max(self._header_bytes, self._bytes_beside_body) > self.limits.headers:
            self._refuse_headers()

    def _feed(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest and not self._is_refused:
            try:
                self.parser.feed_data(rest)
                return
            except httptools.HttpParserUpgrade as upgrade:
                rest = rest[upgrade.args[0] :]
            if self.parser.get_method() == b"CONNECT":
                self.send_400_response("")
                return
            head = self._head_without_upgrade()
            self.parser = httptools.HttpRequestParser(self)
            with contextlib.suppress(AttributeError):  # as uvicorn has it
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            self.parser.feed_data(head)

    def _head_without_upgrade(self) -> bytes:
        """The head of the request once more: the parser takes what follows an upgrade for another
        protocol."""
        lines = [b"%s %s HTTP/1.1" % (self.parser.get_method(), self.url)]
        for name, value in self.headers:
            if name == b"connection":
                tokens = (each.strip() for each in value.split(b","))
                value = b", ".join(each for each in tokens if each.lower() != b"upgrade")
            if name != b"upgrade":
                lines.append(b"%s: %s" % (name, value))
        return b"\r\n".join(lines) + b"\r\n\r\n"

    def on_headers_complete(self) -> None:
        if self._is_refused or self.parser.should_upgrade():
            return
        self._in_headers, self._header_bytes, self._bytes_beside_body = False, 0, 0
        self._forget_timer()
        sizes = (len(name) + len(value) + 4 for name, value in self.headers)
        if len(self.url) + sum(sizes) > self.limits.headers:
            self._refuse_headers()
        elif self.parser.get_http_version() not in ("1.0", "1.1"):
            self._refuse(
                b"505 HTTP Version Not Supported", b"the server speaks HTTP/1.1 and 1.0",
                b"http_version",
            )  # fmt: skip
        else:
            super().on_headers_complete()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_headers:  # nobody reads trailers
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        if self._is_refused:
            return
        self._bytes_beside_body = 0
        if self.cycle.response_complete:
            self._bytes_behind_answer += len(body)
            if self._bytes_behind_answer > _DROPPED * self.limits.body:
                self.transport.close()
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._is_refused or self.parser.should_upgrade():
            return
        self._in_headers, self._bytes_beside_body, self._bytes_behind_answer = True, 0, 0
        self._forget_timer()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._in_headers and not self.transport.is_closing():
            # The rest of a body is dropped, for some time.
            self._late = self.loop.call_later(self.limits.read_seconds, self.transport.close)

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

    def _refuse_headers(self) -> None:
        self._refuse(
            b"431 Request Header Fields Too Large",
            b"a request has %d bytes of headers at most" % self.limits.headers,
            b"headers_too_large",
        )  # fmt: skip

    def send_400_response(self, msg: str) -> None:
        self._refuse(b"400 Bad Request", b"the bytes are no HTTP/1.1", b"invalid_http")

    def _is_answering(self, *, begun: bool = False) -> bool:
        cycle = self.cycle
        if cycle is None or cycle.response_complete:
            return False
        return bool(cycle.response_started) if begun else True

    def _refuse(self, status: bytes, message: bytes, code: bytes) -> None:
        self._is_refused = True
        if self._is_answering(begun=True):  # no second answer within the first one
            self.transport.close()
        elif not self.transport.is_closing():
            body = _BODY % (message, code)
            self.transport.write(_ANSWER % (status, len(body), body))
            self.transport.close()


def protocol_of(limits: Limits) -> type[HttpToolsProtocol]:
    """The protocol's class for these bounds."""
    return type("Protocol", (_Protocol,), {"limits": limits})
