"""kernwright serve in figures: start, first tokens, a shared prefix, cost of HTTP, tokens a second.

Usage: python bench/serve.py [--model 8b] [--parts ready,health,http,first,prefix,load,bare]
[--in-flight 1,8,64,256] [--prompt 1024 --tokens 128] [-o FILE]. A model is a folder, or a shape of
llm.py with random weights; prompts are tokens, so that none needs a tokenizer. Counts of tokens are
checked. Each part has a server of its own; health needs a model with a tokenizer. "bare" is the
load without a server: the same requests go to an engine in this process, and after "load" the
document has the server's share of that engine's tokens a second. On the simulated device only
health and http mean something.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import pathlib
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from serve_clients import TINY, Served, served, stream

import harness

LARGE = 10 * 2**20  # bytes of a prompt that no context holds
LENGTHS = (512, 2048, 8192)
PREFIX, SHARERS = 4096, 64
TAIL = 17  # tokens after a prefix
REPEATS = 7
TURNS = 4  # of all requests at a time, after one that is not timed
PAGE = 16  # tokens
FEW = ("--kv-memory", "4G", "--max-rows", "8")  # beside an engine of this process
_seeds = itertools.count()


def prompt(tokens: int) -> list[int]:
    """Tokens that no other prompt begins with."""
    numbers = random.Random(next(_seeds))
    return [numbers.randrange(1, 250) for _ in range(tokens)]


def milliseconds(times: Sequence[float]) -> dict[str, float]:
    return {
        "median": round(1e3 * statistics.median(times), 3), "max": round(1e3 * max(times), 3),
    }  # fmt: skip


def ready(arguments: list[str]) -> dict[str, Any]:
    """Seconds from the start of a process until it takes requests; the second time with caches."""
    times = []
    for _ in range(3):
        with served(*arguments) as server:
            times.append(server.seconds)
    return {"first_seconds": round(times[0], 3), "warm_seconds": round(min(times[1:]), 3)}


def health(arguments: list[str]) -> dict[str, Any]:
    """Looks at /health while a prompt of 10 MB is read, tokenised and refused."""
    text = ("def f(x):\n    return x + 1  # a comment\n" * (LARGE // 38))[:LARGE]
    with served(*arguments) as server:
        found: list[tuple[int, bytes]] = []

        def send() -> None:
            found.append(server.ask("POST", "/v1/completions", {"prompt": text, "max_tokens": 1}))

        thread = threading.Thread(target=send)
        connection = server.connect()
        connection.request("GET", "/health")
        connection.getresponse().read()
        thread.start()
        times: list[float] = []
        while thread.is_alive() or not times:
            begin = time.perf_counter()
            connection.request("GET", "/health")
            assert connection.getresponse().read()
            times.append(time.perf_counter() - begin)
            time.sleep(0.002)
        thread.join()
    status, answer = found[0]
    assert status == 400, answer
    return {"looks": len(times), "milliseconds": milliseconds(times)}


def http(arguments: list[str], load: dict[str, Any]) -> dict[str, Any]:
    """A completion of one token by the server, and by the same engine in this process."""
    from kernwright import llm

    body = {"prompt": [1, 2, 3], "max_tokens": 1, "temperature": 0}
    with (
        served(*arguments, *FEW) as server,
        llm.Engine(llm.load(**load), max_rows=8, kv_memory=2**32) as engine,
    ):
        connection = server.connect()

        def over_http() -> None:
            connection.request("POST", "/v1/completions", json.dumps(body))
            assert connection.getresponse().read()

        def direct() -> None:
            engine.submit([1, 2, 3], max_tokens=1).result()

        times: dict[Any, list[float]] = {direct: [], over_http: []}
        for _ in range(60):
            for call, found in times.items():
                begin = time.perf_counter()
                call()
                found.append(time.perf_counter() - begin)
        connection.close()
    engine_ms, http_ms = (milliseconds(times[call][10:]) for call in (direct, over_http))
    more = round(http_ms["median"] - engine_ms["median"], 3)
    return {"engine_ms": engine_ms, "http_ms": http_ms, "more_ms": more}


def timed(server: Served, tokens: list[int]) -> tuple[float, int]:
    """Seconds until the first token of a prompt is here, and its tokens from the prefix cache."""
    begin = time.perf_counter()
    usage = server.complete(prompt=tokens, max_tokens=1, temperature=0)["usage"]
    seconds = time.perf_counter() - begin
    assert usage["prompt_tokens"] == len(tokens) and usage["completion_tokens"] == 1
    return seconds, usage["prompt_tokens_details"]["cached_tokens"]


def first(arguments: list[str]) -> dict[str, Any]:
    """The first token over HTTP, on an idle server, of prompts that are new to it."""
    made = {}
    with served(*arguments) as server:
        context = server.context
        for length in [each for each in LENGTHS if each < context] or [context // 2]:
            timed(server, prompt(length))
            found = [timed(server, prompt(length)) for _ in range(REPEATS)]
            assert all(cached == 0 for _, cached in found)
            made[str(length)] = milliseconds([seconds for seconds, _ in found])
    return made


def prefix(arguments: list[str]) -> dict[str, Any]:
    """First tokens of requests at a time that share a prefix, beside one alone. "recording_ms" are
    those of the first such requests: the server compiles and records steps of so many rows. As the
    requests of a turn share steps in several ways, later turns do that too: the fastest counts."""
    with served(*arguments) as server:
        length = min(PREFIX, (server.context - TAIL - 1) // PAGE * PAGE)
        shared = prompt(length)
        timed(server, shared + prompt(TAIL))
        alone = [timed(server, shared + prompt(TAIL)) for _ in range(REPEATS)]

        async def together() -> list[tuple[float, int]]:
            async def one() -> tuple[float, int]:
                begin = time.perf_counter()
                body = {"prompt": shared + prompt(TAIL), "max_tokens": 1, "temperature": 0}
                usage = await stream(server, body)
                return time.perf_counter() - begin, usage["prompt_tokens_details"]["cached_tokens"]

            return list(await asyncio.gather(*[one() for _ in range(SHARERS)]))

        recorded = asyncio.run(together())
        turns = [asyncio.run(together()) for _ in range(REPEATS)]
        found = min(turns, key=lambda turn: statistics.median(seconds for seconds, _ in turn))
    rate = sum(cached for _, cached in [*alone, *found]) / (length * (REPEATS + SHARERS))
    one, several, first = (
        milliseconds([seconds for seconds, _ in each]) for each in (alone, found, recorded)
    )
    return {
        "tokens": length, "requests": SHARERS, "hit_rate": round(rate, 4), "alone_ms": one,
        "together_ms": several, "recording_ms": first,
        "times": round(several["median"] / one["median"], 2),
    }  # fmt: skip


async def seconds_for(
    ask: Callable[[asyncio.Semaphore], Awaitable[int]], count: int, turns: int, new: int
) -> float:
    """Of `turns` times `count` requests, `count` at a time, with so many tokens each."""
    places = asyncio.Semaphore(count)
    begin = time.perf_counter()
    found = await asyncio.gather(*[ask(places) for _ in range(turns * count)])
    assert set(found) == {new}
    return time.perf_counter() - begin


def bare(loaded: dict[str, Any], counts: Sequence[int], tokens: int, new: int) -> dict[str, Any]:
    """Output tokens a second of an engine in this process, with so many requests at a time."""
    from kernwright import llm

    made = {}
    with llm.Engine(llm.load(**loaded)) as engine:

        async def ask(places: asyncio.Semaphore) -> int:
            async with places:
                found = await engine.submit(prompt(tokens), max_tokens=new, ignore_eos=True)
                return len(found.tokens)

        for count in counts:
            asyncio.run(seconds_for(ask, count, 1, new))
            seconds = asyncio.run(seconds_for(ask, count, TURNS, new))
            made[str(count)] = {"tokens_per_second": round(TURNS * count * new / seconds, 1)}
    return made


def load(arguments: list[str], counts: Sequence[int], tokens: int, new: int) -> dict[str, Any]:
    """Output tokens a second, and first tokens as the server counts them, with so many requests
    at a time."""
    made: dict[str, Any] = {}
    with served(*arguments) as server:

        async def ask(places: asyncio.Semaphore) -> int:
            async with places:
                body = {"prompt": prompt(tokens), "max_tokens": new, "ignore_eos": True,
                        "temperature": 0}  # fmt: skip
                return int((await stream(server, body))["completion_tokens"])

        for count in counts:
            asyncio.run(seconds_for(ask, count, 1, new))
            before = server.metrics()
            seconds = asyncio.run(seconds_for(ask, count, TURNS, new))
            after = server.metrics()
            total, events = (
                after[f"vllm:time_to_first_token_seconds_{name}"]
                - before[f"vllm:time_to_first_token_seconds_{name}"]
                for name in ("sum", "count")
            )
            made[str(count)] = {
                "tokens_per_second": round(TURNS * count * new / seconds, 1),
                "first_token_mean_ms": round(1e3 * total / events, 2),
            }
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=str(TINY), help="a folder, or a shape of llm.py")
    parser.add_argument("--parts", default="ready,health,http,first,prefix,load,bare")
    parser.add_argument("--in-flight", default="1,8", help="numbers with commas between them")
    parser.add_argument("--prompt", type=int, default=128, help="tokens of a prompt")
    parser.add_argument("--tokens", type=int, default=32, help="tokens of an answer")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=harness.RESULTS / "serve.json")
    options = parser.parse_args()
    counts = [int(each) for each in options.in_flight.split(",")]
    document: dict[str, Any] = {
        "machine": harness.machine(), "model": options.model, "prompt": options.prompt,
        "tokens": options.tokens,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        arguments, loaded = [options.model], {"path": options.model}
        if not pathlib.Path(options.model).exists():
            from llm import CONFIGS

            config = pathlib.Path(folder) / "config.json"
            config.write_text(json.dumps(CONFIGS[options.model]))
            arguments, loaded = ["--random", str(config)], {"random": str(config)}
        for name in options.parts.split(","):
            if name == "http":
                document[name] = http(arguments, loaded)
            elif name == "load":
                document[name] = load(arguments, counts, options.prompt, options.tokens)
            elif name == "bare":
                document[name] = bare(loaded, counts, options.prompt, options.tokens)
                document["share_of_bare"] = {
                    count: round(found["tokens_per_second"]
                                 / document[name][count]["tokens_per_second"], 4)
                    for count, found in document.get("load", {}).items()
                }  # fmt: skip
                print("share_of_bare", json.dumps(document["share_of_bare"]), flush=True)
            else:
                document[name] = {"ready": ready, "health": health, "first": first,
                                  "prefix": prefix}[name](arguments)  # fmt: skip
            print(name, json.dumps(document[name]), flush=True)
            harness.save(options.output, document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
