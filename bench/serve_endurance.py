"""kernwright serve under all that goes wrong at once, for a long time: 20 minutes by default.

Usage: python bench/serve_endurance.py [--seconds 1200] [--disconnects 40] [-o FILE]. In each round
calls of the driver fail at random moments, and meanwhile clients leave, ten times as many requests
come as the queue holds, bodies and headers are damaged, and a client is killed. A neighbour asks
for one text again and again: it gets this text, or an error. After a round every request has ended
and no page is in use. In every LOSS-th round the device is lost: the server ends with exit code 1,
and another one starts. Memory, threads and files stay as they are in each life of a server, and
each request has a line in the log with the reason of its end. Runs on the simulated device; fails
with a message otherwise.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import http.client
import json
import pathlib
import random
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from serve_clients import TINY, Log, Served, served
from serve_faults import PROGRAM, choose_fault, tell, text
from serve_soak import (
    ARGUMENTS,
    SHORT,
    check_flat,
    damaged,
    ended,
    kill_a_client,
    leave,
    overload,
    resources,
)

import harness

LOSS = 60  # rounds
CONNECTIONS = 3  # clients that leave, at a time
FAULT_STATUSES = (200, 429, 500, 503)
GROWTH_ROUNDS = 12  # memory settles before
GONE = (OSError, http.client.HTTPException)


class Counts:
    """What clients sent and got, over all rounds. Its calls are safe from any thread."""

    def __init__(self) -> None:
        self.found: collections.Counter[str] = collections.Counter()
        self._lock = threading.Lock()

    def add(self, name: str, count: int = 1) -> None:
        with self._lock:
            self.found[name] += count


def try_it(server: Served, call: Callable[[], Any]) -> Any:
    """What a client gets, None if the server ends meanwhile."""
    try:
        return call()
    except GONE:
        server.process.wait(60)  # a running server closes no connection like this
        return None


def faults(server: Served, numbers: random.Random, stop: threading.Event, counts: Counts) -> None:
    """Calls of the driver fail until `stop`, most times one of them, at times all of one function
    for a moment."""
    while not stop.wait(numbers.random() * 0.4):
        tell(server, choose_fault(numbers.randrange(2**32)))
        counts.add("faults")
        stop.wait(numbers.random() * 0.2)
        tell(server, "none")


def neighbour(server: Served, stop: threading.Event, expected: str, counts: Counts) -> None:
    """One text again and again: it is this text, or an error."""
    while not stop.is_set():
        answer = try_it(server, lambda: server.ask("POST", "/v1/completions", SHORT))
        if answer is None:
            return
        status, content = answer
        assert status in FAULT_STATUSES, (status, content)
        if status == 200:
            found = json.dumps(json.loads(content)["choices"])
            assert found == expected, f"the neighbour's text changed: {found}, not {expected}"
        else:
            assert json.loads(content)["error"]["message"], content
            time.sleep(0.02)
        counts.add("answers")
        counts.add("neighbour got its text" if status == 200 else "neighbour got an error")


def wrong_clients(server: Served, numbers: random.Random, disconnects: int, counts: Counts) -> None:
    with concurrent.futures.ThreadPoolExecutor(CONNECTIONS) as pool:
        seeds = [numbers.random() for _ in range(disconnects)]
        list(pool.map(lambda s: try_it(server, lambda: leave(server, random.Random(s))), seeds))
    counts.add("disconnects", disconnects)
    statuses = try_it(server, lambda: overload(server, FAULT_STATUSES))
    counts.add("answers", sum(statuses.values()) if statuses else 0)
    counts.add("over the limit of the queue", statuses[429] if statuses else 0)
    for _ in range(disconnects // 4):
        try_it(server, lambda: damaged(server, numbers, 504))
    counts.add("damaged bodies", disconnects // 4)
    try_it(server, lambda: kill_a_client(server))
    counts.add("killed clients")


def run_round(server: Served, number: int, disconnects: int, expected: str, counts: Counts) -> None:
    """All at once. In a round of loss the device is lost in the middle."""
    numbers, stop = random.Random(number), threading.Event()
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        beside = [
            pool.submit(neighbour, server, stop, expected, counts),
            pool.submit(faults, server, random.Random(-number), stop, counts),
        ]
        try:
            wrong = pool.submit(wrong_clients, server, numbers, disconnects, counts)
            if number % LOSS == LOSS - 1:
                time.sleep(0.5)
                stop.set()
                beside.pop().result()
                tell(server, "lost")
                counts.add("losses of the device")
            wrong.result()
        finally:
            stop.set()
        for each in beside:
            each.result()


def life(
    options: argparse.Namespace, first: int, end: float, log: Log, counts: Counts
) -> tuple[int, list[dict[str, Any]]]:
    """The next round, and what the server of these rounds held after each."""
    held: list[dict[str, Any]] = []
    number = first
    with served(options.model, *ARGUMENTS, see=log.see, program=PROGRAM, ends=(1,)) as server:
        expected = text(server)
        while time.monotonic() < end or number < options.first + options.rounds:
            run_round(server, number, options.disconnects, expected, counts)
            number += 1
            if number % LOSS == 0:
                try_it(server, lambda: server.ask("POST", "/v1/completions", SHORT))
                assert server.process.wait(60) == 1, "the server outlives its device"
                break
            tell(server, "none")
            assert text(server) == expected, "the text is another one after a round"
            held.append({**ended(server), **resources(server)})
            print(json.dumps(held[-1]), flush=True)
    return number, held


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=str(TINY))
    parser.add_argument("--seconds", type=float, default=1200)
    parser.add_argument("--rounds", type=int, default=1, help="at least")
    parser.add_argument("--disconnects", type=int, default=40, help="clients that leave, a round")
    parser.add_argument("--first", type=int, default=0, help="the number of the first round")
    parser.add_argument(
        "-o", "--output", type=pathlib.Path, default=harness.RESULTS / "serve_endurance.json"
    )
    options = parser.parse_args()
    log, counts, growths = Log(), Counts(), list[int]()
    begin, number, starts = time.monotonic(), options.first, 0
    held: list[dict[str, Any]] = []
    end = begin + options.seconds
    while time.monotonic() < end or number < options.first + options.rounds:
        number, held = life(options, number, end, log, counts)
        starts += 1
        if len(held) >= GROWTH_ROUNDS:
            growths.append(check_flat(held))
    assert "None" not in log.reasons and "" not in log.reasons, log.reasons
    assert sum(log.reasons.values()) >= counts.found["answers"], (log.reasons, counts.found)
    assert log.reasons["disconnected"] > 0, log.reasons
    harness.write(
        options.output,
        {"machine": harness.machine(), "seconds": round(time.monotonic() - begin, 1),
         "rounds": number - options.first, "starts": starts, "clients": dict(counts.found),
         "growth_bytes": growths, "reasons": dict(log.reasons), "last": held[-1] if held else None},
    )  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
