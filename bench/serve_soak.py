"""kernwright serve under clients that do wrong things, and nothing is left of them.

Usage: python bench/serve_soak.py [--model FOLDER] [--rounds 10] [--seconds 0] [--disconnects 100]
[-o FILE]. A round has clients that leave at a random moment, ten times as many requests as the
queue holds, bodies and headers with damaged bytes, and a client that is killed, while a neighbour
asks for one text again and again. After a round the engine is empty and no page is in use; over the
rounds, memory, files and threads stay as they are. Every request has a line in the log with the
reason of its end. Fails with a message otherwise.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import contextlib
import json
import pathlib
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

from serve_clients import TINY, Log, Served, served

import harness

ROWS, QUEUE = 4, 16
ARGUMENTS = (
    *("--max-rows", str(ROWS), "--queue-limit", str(QUEUE), "--log-format", "json"),
    *("--read-timeout", "2", "--timeout", "120", "--deterministic"),
)
LONG = {"prompt": [7] * 40, "max_tokens": 200, "ignore_eos": True}
SHORT = {"prompt": [9] * 30, "max_tokens": 6, "temperature": 0}
KILLED = (
    "import http.client, json, sys\n"
    "c = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]))\n"
    "c.request('POST', '/v1/completions', sys.argv[2])\n"
    "c.getresponse().readline()\n"
    "print('reading', flush=True)\n"
    "sys.stdin.read()\n"
)
GROWTH = 8 * 2**20  # bytes of the host that may come with the rounds after the first ones


def leave(server: Served, numbers: random.Random) -> None:
    """Asks, and closes the connection at a random moment."""
    connection = server.connect()
    body = {**LONG, "stream": numbers.random() < 0.7}
    connection.request("POST", "/v1/completions", json.dumps(body))
    if body["stream"] and numbers.random() < 0.5:
        answer = connection.getresponse()
        for _ in range(numbers.randrange(4)):
            answer.readline()
    else:
        time.sleep(numbers.random() * 0.02)
    connection.close()


def overload(server: Served, statuses: Sequence[int] = (200, 429)) -> collections.Counter[int]:
    """Ten times as many requests as the queue holds: how many got which status, of `statuses`."""

    def one(_: int) -> int:
        connection = server.connect()
        connection.request("POST", "/v1/completions", json.dumps({**SHORT, "temperature": 1}))
        answer = connection.getresponse()
        answer.read()
        assert answer.status in statuses, answer.status
        assert answer.status in (200, 500) or int(answer.headers["Retry-After"]) >= 1
        connection.close()
        return answer.status

    with concurrent.futures.ThreadPoolExecutor(10 * QUEUE) as pool:
        return collections.Counter(pool.map(one, range(10 * QUEUE)))


def damaged(server: Served, numbers: random.Random, below: int = 500) -> int:
    """The status for a request with damaged bytes, 0 where the connection was closed."""
    body = bytearray(json.dumps({**SHORT, "max_tokens": 2}).encode())
    head = b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
    data = bytearray(b"%sContent-Length: %d\r\n\r\n%s" % (head, len(body), body))
    begin = 0 if numbers.random() < 0.2 else len(data) - len(body)
    for _ in range(numbers.randrange(1, 6)):
        data[numbers.randrange(begin, len(data))] = numbers.randrange(256)
    is_cut = numbers.random() < 0.2
    if is_cut:
        del data[numbers.randrange(len(data)) :]
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(data)
        if is_cut:
            connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            found = re.match(rb"HTTP/1.1 (\d+)", connection.makefile("rb").readline())
            status = int(found[1]) if found else 0
            assert status < below, (status, bytes(data))
            return status
    return 0


def kill_a_client(server: Served) -> None:
    """A process that reads a stream is killed."""
    asked = json.dumps({**LONG, "stream": True})
    client = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(server.port), asked],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert client.stdout is not None and client.stdin is not None
    client.stdout.readline()
    client.send_signal(signal.SIGKILL)
    client.wait()
    client.stdin.close()
    client.stdout.close()


def ended(server: Served) -> dict[str, float]:
    """The numbers of a server once all requests have ended."""
    for _ in range(2000):
        found = server.metrics()
        engine = {
            name: found[f"kernwright:engine_requests_{name}_total"]
            for name in ("started", "finished", "aborted", "failed")
        }
        busy = found["vllm:num_requests_running"] + found["vllm:num_requests_waiting"]
        if busy == 0 and engine["started"] == sum(engine.values()) - engine["started"]:
            assert found["vllm:kv_cache_usage_perc"] == 0, "pages stay in use"
            return engine
        time.sleep(0.01)
    raise AssertionError(f"requests do not end: {engine}, {busy} running or waiting")


def resources(server: Served) -> dict[str, int]:
    """What the process of a server holds: bytes of memory, threads, open files."""
    process = pathlib.Path("/proc") / str(server.process.pid)
    status = dict(re.findall(r"^(\w+):\s+(\d+)", (process / "status").read_text(), re.MULTILINE))
    return {
        "bytes": 1024 * int(status["VmRSS"]), "threads": int(status["Threads"]),
        "files": len(list((process / "fd").iterdir())),
    }  # fmt: skip


def run_round(server: Served, number: int, disconnects: int) -> dict[str, Any]:
    """One round of wrong clients."""
    numbers = random.Random(number)
    texts: set[str] = set()
    stop = threading.Event()

    def neighbour() -> None:
        while not stop.is_set():
            status, content = server.ask("POST", "/v1/completions", SHORT)
            if status == 200:
                texts.add(json.dumps(json.loads(content)["choices"]))
            else:  # 429: the queue is full
                time.sleep(0.02)

    thread = threading.Thread(target=neighbour)
    thread.start()
    try:
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            seeds = [numbers.random() for _ in range(disconnects)]
            list(pool.map(lambda seed: leave(server, random.Random(seed)), seeds))
        refused = overload(server)[429]
        statuses = collections.Counter(damaged(server, numbers) for _ in range(disconnects // 4))
        kill_a_client(server)
    finally:
        stop.set()
        thread.join()
    assert len(texts) <= 1, f"the neighbour's text changed: {texts}"
    return {"refused": refused, "damaged": dict(statuses), **ended(server), **resources(server)}


def check_flat(rounds: list[dict[str, Any]]) -> int:
    """By how many bytes the memory has grown after the first rounds. Raises AssertionError."""
    begin = len(rounds) // 3
    early, late = (
        statistics.median(each["bytes"] for each in part)
        for part in (rounds[begin : 2 * begin + 1], rounds[2 * begin :])
    )
    assert late - early < GROWTH, f"memory grew from {early} to {late} bytes"
    for name in ("threads", "files"):
        counts = [each[name] for each in rounds]
        assert counts[-1] <= max(counts[: begin + 1]) + 4, f"{name} grow: {counts}"
    return int(late - early)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=str(TINY))
    parser.add_argument("--rounds", type=int, default=10, help="at least")
    parser.add_argument("--seconds", type=float, default=0, help="go on for so long")
    parser.add_argument("--disconnects", type=int, default=100, help="clients that leave, a round")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=harness.RESULTS / "soak.json")
    options = parser.parse_args()
    log, rounds = Log(), list[dict[str, Any]]()
    begin = time.monotonic()
    with served(options.model, *ARGUMENTS, see=log.see) as server:
        while len(rounds) < options.rounds or time.monotonic() - begin < options.seconds:
            rounds.append(run_round(server, len(rounds), options.disconnects))
            print(json.dumps(rounds[-1]), flush=True)
    growth = check_flat(rounds)
    assert not log.errors, log.errors[:3]
    assert "None" not in log.reasons and "" not in log.reasons, log.reasons
    assert log.reasons["disconnected"] >= rounds[-1]["aborted"] > 0, log.reasons
    harness.write(
        options.output,
        {"machine": harness.machine(), "seconds": round(time.monotonic() - begin, 1),
         "rounds": len(rounds), "growth_bytes": growth, "reasons": dict(log.reasons),
         "last": rounds[-1]},
    )  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
