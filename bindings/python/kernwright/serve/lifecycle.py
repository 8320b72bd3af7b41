"""A server from its start to its end: sockets, signals, the watch over the engines."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import uvicorn

from kernwright.errors import InvalidArgument
from kernwright.serve.http.http_protocol import protocol_of
from kernwright.serve.http.log import log
from kernwright.serve.server import Server

__all__ = ["Address", "http_server", "run_server"]

_LOOK = 0.05  # seconds between looks at signals and engines
_BACKLOG = 2048  # connections, as uvicorn has it
_LAST_BYTES = 5  # seconds for what is being sent when the server ends


class Address:
    """Where a server listens: a host and a port, with TLS if a certificate is given.

    Port 0 takes a free one. Raises InvalidArgument for a port that there is not and a certificate
    of no use, OSError for an address that is taken.
    """

    def __init__(
        self, host: str, port: int, *, certificate: str | None = None, key: str | None = None
    ) -> None:
        if (certificate is None) != (key is None):
            raise InvalidArgument("--tls-certificate and --tls-key are given together")
        if not 0 <= port <= 65535:
            raise InvalidArgument(f"--port is from 0 to 65535, got {port}")
        if certificate is not None:
            try:
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
            except (ssl.SSLError, OSError) as error:
                raise InvalidArgument(f"{certificate} with {key}: {error}") from None
        self.certificate, self.key = certificate, key
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self.socket.bind((host, port))
        except OSError as error:
            self.socket.close()
            raise OSError(error.errno, f"{host}:{port} cannot be had: {error.strerror}") from None

    def listen(self) -> None:
        """Clients may connect from now on: the first answers come when the server runs."""
        self.socket.listen(_BACKLOG)

    @property
    def url(self) -> str:
        """The address for clients."""
        host, port = self.socket.getsockname()[:2]
        scheme = "http" if self.certificate is None else "https"
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


class _Uvicorn(uvicorn.Server):
    """Signals are ours."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Life:
    """Decides when a server ends: at a signal, once the running calls have ended, or when an engine
    has."""

    def __init__(self, server: Server, http: uvicorn.Server) -> None:
        self._server, self._http = server, http
        self._signals: list[int] = []
        self.code = 0

    def signalled(self, number: int) -> None:
        """The first signal lets running calls end; a second one ends the process at once."""
        self._signals.append(number)
        if len(self._signals) > 1:
            log.warning("a second signal: ending at once")
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self._server.draining = True

    async def watch(self) -> None:
        """Returns when the server is to end."""
        while not self._signals and self._server.healthy and not self._http.should_exit:
            self._server.unload_idle()
            await asyncio.sleep(_LOOK)
        if not self._server.healthy:
            log.error("an engine has stopped: the server ends with exit code 1")
            self.code = 1
            self._server.draining = True
            await self._until_idle(_LAST_BYTES)
        elif self._signals:
            seconds = self._server.limits.drain_seconds
            log.info("signal %d: %d running requests have %g s to end", self._signals[0],
                     self._server.running, seconds)  # fmt: skip
            await self._until_idle(seconds)
        self._http.should_exit = True

    async def _until_idle(self, seconds: float) -> None:
        end = asyncio.get_running_loop().time() + seconds
        while self._server.running and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(_LOOK)
        if self._server.running:
            log.warning("%d requests had not ended and are cancelled", self._server.running)
        for task in list(self._server.tasks):
            task.cancel()


def http_server(app: Any, server: Server, address: Address) -> uvicorn.Server:
    """uvicorn for an application, without its signals and its log."""
    return _Uvicorn(
        uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="off", server_header=False,
            http=protocol_of(server.limits), ws="none", loop="uvloop", timeout_keep_alive=30,
            timeout_graceful_shutdown=_LAST_BYTES, ssl_certfile=address.certificate,
            ssl_keyfile=address.key,
        )
    )  # fmt: skip


def run_server(app: Any, server: Server, address: Address) -> int:
    """Serves until a signal or the end of an engine; the exit code. In the main thread, once."""
    http = http_server(app, server, address)
    life = _Life(server, http)

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, life.signalled, number)
        watch = asyncio.ensure_future(life.watch())
        try:
            await http.serve([address.socket])
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)

    factory = http.config.get_loop_factory() or asyncio.new_event_loop
    loop = factory()
    try:
        loop.run_until_complete(serve())
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()
        server.close()
    return life.code
