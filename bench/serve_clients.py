"""Shared by benchmarks of kernwright serve: a server in a process of its own, and its clients."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import http.client
import json
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

TINY = pathlib.Path(__file__).resolve().parents[1] / "tests" / "data" / "tiny_llama"


@dataclasses.dataclass
class Served:
    """A server that takes requests."""

    port: int
    process: subprocess.Popen[str]
    seconds: float
    """From the start of its process until it was ready."""

    def connect(self, timeout: float = 600) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """The status and the bytes of an answer."""
        connection = self.connect()
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def complete(self, **body: Any) -> dict[str, Any]:
        """The answer of /v1/completions."""
        status, content = self.ask("POST", "/v1/completions", body)
        assert status == 200, content
        found: dict[str, Any] = json.loads(content)
        return found

    @property
    def context(self) -> int:
        """Tokens of a prompt and its answer."""
        return int(json.loads(self.ask("GET", "/v1/models")[1])["data"][0]["max_model_len"])

    def metrics(self) -> dict[str, float]:
        """The sum over all labels of each number of /metrics."""
        found: dict[str, float] = {}
        for line in self.ask("GET", "/metrics")[1].decode().splitlines():
            if not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                name = name.partition("{")[0]
                found[name] = found.get(name, 0.0) + float(value)
        return found


class Log:
    """The lines of requests in a server's log."""

    def __init__(self) -> None:
        self.reasons: collections.Counter[str] = collections.Counter()
        self.errors: list[str] = []

    def see(self, line: str) -> None:
        with contextlib.suppress(ValueError):
            found = json.loads(line)
            if found.get("message") != "request":
                self.errors += [line] if found["level"] == "error" else []
            elif found["method"] == "POST":
                self.reasons[str(found.get("reason"))] += 1


@contextlib.contextmanager
def served(
    *arguments: str, see: Callable[[str], None] = lambda line: None,
    program: Sequence[str] = ("-m", "kernwright", "serve"), ends: Sequence[int] = (),
) -> Iterator[Served]:  # fmt: skip
    """A server that is ready; see() gets the lines of its log in a thread. It ends with code 0, or
    by itself with one of `ends`."""
    begin = time.perf_counter()
    command = [sys.executable, *program, *arguments, "--port", "0"]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None and server.stdin is not None
    try:
        while not (found := re.search(r"served at http://.*?:(\d+)", server.stderr.readline())):
            assert server.poll() is None, "the server did not start"
        log = threading.Thread(target=lambda: [see(line) for line in server.stderr or ()])
        log.start()
        made = Served(int(found[1]), server, 0.0)
        while not _is_ready(made):
            assert server.poll() is None, "the server did not become ready"
            time.sleep(0.005)
        made.seconds = time.perf_counter() - begin
        yield made
        if server.poll() is None:
            server.send_signal(signal.SIGTERM)
        code = server.wait(120)
        assert code == 0 or code in ends, f"the server ended with code {code}"
        log.join()
    finally:
        server.kill()
        with contextlib.suppress(BrokenPipeError):
            server.stdin.close()


def _is_ready(server: Served) -> bool:
    with contextlib.suppress(OSError):
        return server.ask("GET", "/health/ready")[0] == 200
    return False


async def stream(server: Served, body: Any) -> dict[str, Any]:
    """The usage of a streamed completion."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    asked = {**body, "stream": True, "stream_options": {"include_usage": True}}
    data = json.dumps(asked).encode()
    writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
                 b"Content-Length: %d\r\n\r\n%s" % (len(data), data))  # fmt: skip
    usage: dict[str, Any] = {}
    async for line in reader:
        if line.startswith(b"data: {") and b'"usage":{' in line:
            usage = json.loads(line[6:])["usage"]
    writer.close()
    return usage
