"""kernwright serve with failing calls of the driver: each request ends, and the server goes on.

Usage: python bench/serve_faults.py [--model FOLDER] [--rounds 40] [-o FILE]. In a round a random
call of the driver fails while requests run, or it and all calls behind it. Each request has an
answer or an error, /health tells the truth, and afterwards a text is as it was. Should a server
end, then with exit code 1 and an error for all that ran, and the next one starts. Every request
has a line in the log with the reason of its end. Runs on the simulated device; fails with a message
otherwise.

`python bench/serve_faults.py --serve ARGUMENT ...` is the server; a line "FUNCTION CODE CALL FORM"
of its standard input makes that call from now on fail, FORM is "once" or "sticky", and a line
"none" takes this back. An empty FUNCTION is any. After a line "lost" all calls fail with an
illegal address, and the engine's thread ends as with a GPU that is lost.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import contextlib
import http.client
import json
import pathlib
import random
import sys
import threading
import time
from collections.abc import Callable

from serve_clients import TINY, Log, Served, served
from serve_soak import check_flat, resources

import harness

ARGUMENTS = ("--max-rows", "4", "--log-format", "json", "--timeout", "120", "--step-limit", "60")
FUNCTIONS = (
    *("cuGraphLaunch", "cuLaunchKernelEx", "cuEventRecord", "cuEventSynchronize"),
    *("cuMemAllocAsync", "cuMemcpyAsync", "cuStreamWaitEvent", "cuEventQuery", ""),
)
CODES = (1, 2, 400, 999)  # invalid value, out of memory, invalid handle, unknown
PROGRAM = (str(pathlib.Path(__file__).resolve()), "--serve")
AT_A_TIME = 6
GROWTH_ROUNDS = 12  # memory settles before
SHORT = {"prompt": [9] * 30, "max_tokens": 6, "temperature": 0}


def serve(arguments: list[str]) -> int:
    """The server, with faults by lines of the standard input."""
    from kernwright._core import _faults
    from kernwright.cli import main as command
    from kernwright.llm._engine import TokenEngine

    _faults.install("sim")
    engines: list[TokenEngine] = []
    run = TokenEngine.serve

    def serve_until_lost(engine: TokenEngine, between: Callable[[], None]) -> str:
        engines.append(engine)
        return run(engine, between) or ("the device is lost" if lost.is_set() else "")

    def arm() -> None:
        for line in sys.stdin:
            word = line.strip()
            if word == "none":
                _faults.disarm()
            elif word == "lost":
                lost.set()
                _faults.arm("", 700, sticky=True)
                for each in engines:
                    each.close()
            else:
                function, code, call, form = line.rstrip("\n").split(" ")
                _faults.arm(function, int(code), int(call), sticky=form == "sticky")

    lost = threading.Event()
    TokenEngine.serve = serve_until_lost  # type: ignore[method-assign]
    threading.Thread(target=arm, daemon=True).start()
    return command(["serve", *arguments])


def tell(server: Served, line: str) -> None:
    """A fault for the server."""
    assert server.process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        server.process.stdin.write(line + "\n")
        server.process.stdin.flush()


def outcome(server: Served, number: int) -> str:
    """How a request ended: "finished", or the status or the code of its error."""
    body = {"prompt": [number % 200 + 1] * 20, "max_tokens": 30, "ignore_eos": True,
            "seed": number, "stream": number % 2 == 0}  # fmt: skip
    connection = server.connect(timeout=120)
    try:
        connection.request("POST", "/v1/completions", json.dumps(body))
        answer = connection.getresponse()
        content = answer.read()
    except ConnectionRefusedError:
        return "not there"  # the server has ended before
    finally:
        connection.close()
    if answer.status != 200:
        assert json.loads(content)["error"]["message"], content
        return f"status {answer.status}"
    if not body["stream"]:
        assert json.loads(content)["choices"][0]["finish_reason"] == "length", content
        return "finished"
    events = content.decode().split("\n\n")[:-1]
    assert events[-1] == "data: [DONE]", content
    last = json.loads(events[-2].removeprefix("data: "))
    if "error" in last:
        return f"event {last['error']['code']}"
    assert last["choices"][0]["finish_reason"] == "length", content
    return "finished"


def run_round(server: Served, number: int, fault: str) -> collections.Counter[str]:
    """How requests ended during which a call failed."""
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        first = number * AT_A_TIME
        asked = [pool.submit(outcome, server, first + i) for i in range(AT_A_TIME)]
        tell(server, fault)
        return collections.Counter(each.result() for each in asked)


def text(server: Served) -> str:
    """The choices of a request that nothing disturbs. Faults that are taken back may still be met
    by it: then it is asked again."""
    for _ in range(20):
        status, content = server.ask("POST", "/v1/completions", SHORT)
        if status == 200:
            return json.dumps(json.loads(content)["choices"])
        time.sleep(0.05)
    raise AssertionError(f"no text after a fault: {content!r:.300}")


def choose_fault(number: int) -> str:
    numbers = random.Random(number)
    function, code = numbers.choice(FUNCTIONS), numbers.choice(CODES)
    form = "sticky" if numbers.random() < 0.25 else "once"
    return f"{function} {code} {numbers.randrange(1, 60)} {form}"


def is_healthy(server: Served) -> bool:
    with contextlib.suppress(OSError, http.client.HTTPException):
        return server.ask("GET", "/health")[0] == 200
    return False


def main() -> int:
    if sys.argv[1:2] == ["--serve"]:
        return serve(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=str(TINY))
    parser.add_argument("--rounds", type=int, default=40, help="at least")
    parser.add_argument("--seconds", type=float, default=0, help="go on for so long")
    parser.add_argument(
        "-o", "--output", type=pathlib.Path, default=harness.RESULTS / "serve_faults.json"
    )
    options = parser.parse_args()
    ends: collections.Counter[str] = collections.Counter()
    starts, number, expected, log = 0, 0, "", Log()
    end = time.monotonic() + options.seconds
    held: list[dict[str, int]] = []

    def goes_on() -> bool:
        return bool(number < options.rounds or time.monotonic() < end)

    while goes_on():
        starts += 1
        held.clear()
        with served(options.model, *ARGUMENTS, see=log.see, program=PROGRAM, ends=(1,)) as server:
            expected = expected or text(server)
            while goes_on() and server.process.poll() is None:
                fault = choose_fault(number)
                found = run_round(server, number, fault)
                tell(server, "none")
                ends += found
                number += 1
                print(fault, dict(found), flush=True)
                if is_healthy(server):
                    assert text(server) == expected, f"after {fault} the text is another one"
                    held.append(resources(server))
                else:
                    assert server.process.wait(60) == 1, fault
    assert "None" not in log.reasons and "" not in log.reasons, log.reasons
    assert sum(log.reasons.values()) >= AT_A_TIME * number - ends["not there"], log.reasons
    growth = check_flat(held) if len(held) >= GROWTH_ROUNDS else None
    harness.write(
        options.output,
        {"machine": harness.machine(), "rounds": number, "starts": starts,
         "growth_bytes": growth, "ends": dict(ends),
         "reasons": dict(log.reasons)},
    )  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
