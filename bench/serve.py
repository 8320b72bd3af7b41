"""kernwright serve under load: answers to /health while 10 MB are tokenised, the cost of HTTP, and
output tokens a second.

Usage: python bench/serve.py [--model FOLDER] [--in-flight 1,8,64] [--prompt 128 --tokens 32]. The
server is a process of its own, as are the clients of the load. Texts are checked: streamed tokens
are as many as were asked for. On the simulated device only the first two parts mean something.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import json
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

TINY = pathlib.Path(__file__).resolve().parents[1] / "tests" / "data" / "tiny_llama"
LARGE = 10 * 2**20  # bytes of a prompt that no context holds


@contextlib.contextmanager
def served(*arguments: str) -> Iterator[int]:
    """A server in a process of its own, and its port."""
    command = [sys.executable, "-m", "kernwright", "serve", *arguments, "--port", "0"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        while not (found := re.search(r"served at http://.*:(\d+)", server.stderr.readline())):
            assert server.poll() is None, "the server did not start"
        drain = threading.Thread(target=server.stderr.read, daemon=True)
        drain.start()
        yield int(found[1])
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
    finally:
        server.kill()


def ask(port: int, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request(method, path, None if body is None else json.dumps(body))
    answer = connection.getresponse()
    return answer.status, answer.read()


def health_beside_a_large_prompt(port: int) -> list[float]:
    """Seconds of each look at /health while a prompt of 10 MB is read, tokenised and refused."""
    text = ("def f(x):\n    return x + 1  # a comment\n" * (LARGE // 38))[:LARGE]
    found: list[int] = []

    def send() -> None:
        status, answer = ask(port, "POST", "/v1/completions", {"prompt": text, "max_tokens": 1})
        assert status == 400 and b"tokens" in answer
        found.append(status)

    thread = threading.Thread(target=send)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/health")
    connection.getresponse().read()
    thread.start()
    times = []
    while thread.is_alive():
        begin = time.perf_counter()
        connection.request("GET", "/health")
        assert connection.getresponse().read()
        times.append(time.perf_counter() - begin)
        time.sleep(0.002)
    thread.join()
    assert found
    return times


def cost_of_http(port: int, model: str) -> tuple[float, float]:
    """Seconds of a completion of one token, over HTTP and by the engine in this process."""
    from kernwright import llm

    body = {"prompt": [1, 2, 3], "max_tokens": 1, "temperature": 0}
    with llm.Engine(llm.load(model), max_rows=8) as engine:

        def direct() -> None:
            engine.submit([1, 2, 3], max_tokens=1).result()

        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

        def served() -> None:
            connection.request("POST", "/v1/completions", json.dumps(body))
            assert connection.getresponse().read()

        times: dict[Any, list[float]] = {direct: [], served: []}
        for _ in range(60):
            for call, found in times.items():
                begin = time.perf_counter()
                call()
                found.append(time.perf_counter() - begin)
    return statistics.median(times[direct][10:]), statistics.median(times[served][10:])


async def stream(port: int, body: Any) -> tuple[float, int]:
    """Seconds until the first event of a stream, and its tokens."""
    begin, first = time.perf_counter(), 0.0
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    data = json.dumps(body).encode()
    writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
                 b"Content-Length: %d\r\n\r\n%s" % (len(data), data))  # fmt: skip
    tokens = 0
    async for line in reader:
        if line.startswith(b"data: {"):
            first = first or time.perf_counter() - begin
            usage = json.loads(line[6:])["usage"]
            tokens = usage["completion_tokens"] if usage else tokens
    writer.close()
    return first, tokens


async def load(port: int, in_flight: int, prompt: int, tokens: int) -> tuple[float, float]:
    """The median time of first tokens, and output tokens a second, with so many at a time."""
    places = asyncio.Semaphore(in_flight)

    async def one(number: int) -> tuple[float, int]:
        async with places:
            body = {
                "prompt": [1, *(2 + (7 * number + i) % 200 for i in range(prompt - 1))],
                "max_tokens": tokens, "ignore_eos": True, "temperature": 0, "stream": True,
                "stream_options": {"include_usage": True},
            }  # fmt: skip
            return await stream(port, body)

    begin = time.perf_counter()
    found = await asyncio.gather(*[one(i) for i in range(4 * in_flight)])
    seconds = time.perf_counter() - begin
    assert all(count == tokens for _, count in found)
    return statistics.median(each for each, _ in found), 4 * in_flight * tokens / seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=str(TINY))
    parser.add_argument("--in-flight", default="1,8", help="numbers with commas between them")
    parser.add_argument("--prompt", type=int, default=128, help="tokens of a prompt")
    parser.add_argument("--tokens", type=int, default=32, help="tokens of an answer")
    arguments = parser.parse_args()
    with served(arguments.model) as port:
        times = sorted(health_beside_a_large_prompt(port))
        print(
            f"/health while 10 MB are tokenised: {len(times)} looks, median "
            f"{1e3 * statistics.median(times):.1f} ms, longest {1e3 * times[-1]:.1f} ms"
        )
        direct, over_http = cost_of_http(port, arguments.model)
        print(
            f"one token: {1e3 * direct:.2f} ms by the engine, {1e3 * over_http:.2f} ms over HTTP: "
            f"{1e3 * (over_http - direct):.2f} ms more"
        )
        for count in map(int, arguments.in_flight.split(",")):
            first, rate = asyncio.run(load(port, count, arguments.prompt, arguments.tokens))
            print(
                f"{count} in flight: first token {1e3 * first:.0f} ms, {rate:.0f} output tokens/s"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
