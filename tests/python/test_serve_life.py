"""The command from its start to its end: signals, an engine that dies, wrong arguments."""

import contextlib
import http.client
import importlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from serving import TINY

from kernwright.cli import main

HERE = pathlib.Path(__file__).parent
LONG = {"prompt": "def f(x):", "max_tokens": 60, "ignore_eos": True, "stream": True}
# A server in the main thread of a process, with an engine that writes slowly.
SLOW = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
from serving import TINY, WritingEngine
from kernwright import llm
from kernwright.serve.app import make_app
from kernwright.serve.lifecycle import Address, run_server
from kernwright.serve.http.limits import Limits
from kernwright.serve.http.log import log, log_lines
from kernwright.serve.model_slot import ModelSlot
from kernwright.serve.served import Served
from kernwright.serve.server import Server

class Mortal(WritingEngine):
    def submit(self, prompt, **options):
        if options.get("seed") == 13:
            self.healthy, self.error = False, llm.EngineClosed("its thread has ended: a test")
        return super().submit(prompt, **options)

engine = Mortal(llm.load(TINY), "word " * 100, seconds=0.05)
slot = ModelSlot.filled(Served("tiny", engine.model, engine))
server = Server({{"tiny": slot}}, limits=Limits(drain_seconds=1))
address = Address("127.0.0.1", 0)
with log_lines("text"):
    log.info("served at %s", address.url)
    sys.exit(run_server(make_app(server), server, address))
"""

# One whose device is lost in the step of the request with seed 13: the driver's calls fail from
# then on, and the thread of the engine ends with the cause. (The thread itself is tested in C++: a
# simulated device that runs kernels is never lost.)
LOST = f"""
import sys, threading, time
sys.path.insert(0, {str(HERE)!r})
from kernwright._core import _faults as faults
faults.install("sim")
from serving import TINY
from kernwright import llm
from kernwright.llm._engine import TokenEngine
from kernwright.serve.app import make_app
from kernwright.serve.lifecycle import Address, run_server
from kernwright.serve.http.log import log, log_lines
from kernwright.serve.model_slot import ModelSlot
from kernwright.serve.served import Served
from kernwright.serve.server import Server

serve = TokenEngine.serve
def losing(self, between_steps):
    return serve(self, between_steps) or "cuda:0 is lost: CUDA_ERROR_ILLEGAL_ADDRESS"
TokenEngine.serve = losing

class Fragile(llm.Engine):
    def submit(self, prompt, **options):
        if options.get("seed") != 13:
            return super().submit(prompt, **options)
        faults.arm("", 700, sticky=True)
        request = super().submit(prompt, **options)
        threading.Thread(target=self.lose).start()
        return request

    def lose(self):
        while self.stats()["running"] or self.stats()["waiting"]:
            time.sleep(0.001)
        self._delivery._engine.close()

engine = Fragile(llm.load(TINY), max_rows=16)
engine.submit([1, 2], max_tokens=2).result()
server = Server({{"tiny": ModelSlot.filled(Served("tiny", engine.model, engine))}})
address = Address("127.0.0.1", 0)
with log_lines("text"):
    log.info("served at %s", address.url)
    sys.exit(run_server(make_app(server), server, address))
"""

# One whose device hangs in the step of the request with seed 13, longer than a step may take.
HUNG = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
from kernwright._core import _faults as faults
faults.install("sim")
from serving import TINY
from kernwright import llm
from kernwright.serve.app import make_app
from kernwright.serve.lifecycle import Address, run_server
from kernwright.serve.http.log import log, log_lines
from kernwright.serve.model_slot import ModelSlot
from kernwright.serve.served import Served
from kernwright.serve.server import Server

class Hanging(llm.Engine):
    def submit(self, prompt, **options):
        request = super().submit(prompt, **options)
        if options.get("seed") == 13:
            faults.arm("cuEventSynchronize", 0, delay=300.0, after=True)
        return request

engine = Hanging(llm.load(TINY), max_rows=2, step_limit=2)
engine.submit([1, 2], max_tokens=2).result()
server = Server({{"tiny": ModelSlot.filled(Served("tiny", engine.model, engine))}})
address = Address("127.0.0.1", 0)
with log_lines("text"):
    log.info("served at %s", address.url)
    sys.exit(run_server(make_app(server), server, address))
"""


@contextlib.contextmanager
def running(*command):
    """A process and the port that it serves at. It has ended afterwards."""
    child = subprocess.Popen(
        [sys.executable, *command], stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        assert child.stderr is not None
        lines = []
        while not (found := re.search(r"at http://127\.0\.0\.1:(\d+)", "".join(lines))):
            line = child.stderr.readline()
            assert line, lines
            lines.append(line)
        port = int(found[1])
        drain = threading.Thread(
            target=child.stderr.read, daemon=True
        )  # a full pipe would block it
        drain.start()
        wait_until_ready(port)
        yield child, port
        assert child.poll() is not None
    finally:
        child.kill()
        child.wait()


def wait_until_ready(port):
    for _ in range(200):
        with contextlib.suppress(OSError):
            return get(port, "/health/ready")
        time.sleep(0.05)
    raise AssertionError("it does not answer")


def get(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def begin_stream(port, body):
    """An answer whose first line has come."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("POST", "/v1/completions", json.dumps(body))
    answer = connection.getresponse()
    assert answer.status == 200 and answer.readline().startswith(b"data: ")
    return answer


def test_a_signal_lets_running_requests_end():
    with running("-m", "kernwright", "serve", TINY, "--port", "0", "--max-rows", "4") as (
        child,
        port,
    ):
        answer = begin_stream(port, LONG)
        child.send_signal(signal.SIGTERM)
        while (status := get(port, "/health/ready")) == 200:
            pass
        assert status == 503
        rest = answer.read().decode()
        assert '"finish_reason":"length"' in rest and rest.endswith("data: [DONE]\n\n")
        assert child.wait(20) == 0


def test_a_signal_under_load_lets_all_streams_end():
    with running("-c", SLOW.replace("drain_seconds=1", "drain_seconds=60")) as (child, port):
        connections = [
            http.client.HTTPConnection("127.0.0.1", port, timeout=60) for _ in range(100)
        ]
        for each in connections:
            each.request("POST", "/v1/completions", json.dumps({**LONG, "max_tokens": 90}))
        answers = [each.getresponse() for each in connections]
        assert all(answer.readline().startswith(b"data: ") for answer in answers)
        child.send_signal(signal.SIGTERM)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        while get(port, "/health/ready") == 200:
            pass
        with contextlib.suppress(OSError):  # the others may have ended by now
            connection.request("POST", "/v1/completions", json.dumps({"prompt": "a"}))
            assert connection.getresponse().status == 503
        connection.close()
        for answer in answers:
            rest = answer.read().decode()
            assert '"finish_reason":"length"' in rest and rest.endswith("data: [DONE]\n\n")
        assert child.wait(60) == 0


def test_a_second_signal_ends_at_once_and_a_limit_ends_the_drain():
    with running("-c", SLOW) as (child, port):
        answer = begin_stream(port, LONG)
        child.send_signal(signal.SIGTERM)
        while get(port, "/health/ready") == 200:
            pass
        child.send_signal(signal.SIGTERM)
        assert child.wait(5) == -signal.SIGTERM
        answer.close()
    with running("-c", SLOW) as (child, port):
        answer = begin_stream(port, LONG)
        child.send_signal(signal.SIGINT)
        assert child.wait(20) == 0  # 60 tokens take 3 s, and 1 s is the limit
        with pytest.raises(http.client.IncompleteRead):  # the stream is cut, not ended
            answer.read()


def test_an_engine_that_dies_ends_the_server():
    with running("-c", SLOW) as (child, port):
        answer = begin_stream(port, LONG)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("POST", "/v1/completions", json.dumps({"prompt": "a", "seed": 13}))
        failed = connection.getresponse()
        assert failed.status == 500 and b"its thread has ended" in failed.read()
        connection.close()
        assert '"code":"engine_stopped"' in answer.read().decode()
        assert child.wait(20) == 1


def test_a_device_that_is_lost_under_load_ends_the_server():
    """16 streams fail with an event each, a request that waits with its status; health is false
    while a last client holds the server, and the process ends soon."""
    body = {**LONG, "max_tokens": 480}
    with running("-c", LOST) as (child, port):
        connections = [http.client.HTTPConnection("127.0.0.1", port, timeout=60) for _ in range(16)]
        for each in connections:
            each.request("POST", "/v1/completions", json.dumps(body))
        answers = [each.getresponse() for each in connections]
        assert all(each.status == 200 for each in answers)
        assert all(each.readline().startswith(b"data: ") for each in answers)
        held = socket.create_connection(("127.0.0.1", port), 20)
        held.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n")
        trigger = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        trigger.request("POST", "/v1/completions", json.dumps({"prompt": "a", "seed": 13}))
        failed = trigger.getresponse()
        began = time.monotonic()
        text = failed.read().decode()
        assert failed.status == 500 and "CUDA_ERROR_ILLEGAL_ADDRESS" in text and ".py" not in text
        for answer in answers:
            text = answer.read().decode()
            assert '"error":{' in text and "CUDA_ERROR_ILLEGAL_ADDRESS" in text
            assert '"finish_reason":"' not in text and text.endswith("data: [DONE]\n\n")
            assert ".py" not in text  # where this code lies is nobody's business
        while (status := get(port, "/health")) == 200:
            pass
        assert status == 500 and get(port, "/health/ready") in (500, 503)
        assert child.wait(30) == 1 and time.monotonic() - began < 30
        for each in (held, *connections, trigger):
            each.close()


def ended_by_a_request(program, most):
    """The error of the request with seed 13 and the rest of a stream beside it, of a server that
    ends with exit code 1 by that request."""
    with running("-c", program) as (child, port):
        answer = begin_stream(port, {**LONG, "max_tokens": most})
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("POST", "/v1/completions", json.dumps({"prompt": "a", "seed": 13}))
        failed = connection.getresponse()
        assert failed.status == 500
        error = failed.read().decode()
        connection.close()
        rest = answer.read().decode()
        assert '"finish_reason":"' not in rest
        assert child.wait(60) == 1
    return error, rest


def test_a_device_that_is_lost_ends_the_server():
    error, rest = ended_by_a_request(LOST, 300)
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in error
    assert '"error":{' in rest and "CUDA_ERROR_ILLEGAL_ADDRESS" in rest


def test_a_step_that_hangs_ends_the_server():
    """Although the thread within the driver never comes back."""
    error, rest = ended_by_a_request(HUNG, 400)
    assert "has not ended within 2 s" in error
    assert '"code":"engine_stopped"' in rest


def test_clients_connect_once_the_log_tells_the_address(monkeypatch, capsys):
    def connecting(app, server, address):
        told = re.search(r"at http://127\.0\.0\.1:(\d+)", capsys.readouterr().err)
        socket.create_connection(("127.0.0.1", int(told[1])), timeout=20).close()
        address.socket.close()
        server.close()
        return 7

    starting = importlib.import_module("kernwright.serve.start")
    monkeypatch.setattr(starting, "run_server", connecting)
    assert main(["serve", TINY, "--port", "0", "--lazy"]) == 7


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "give a MODEL, or --random CONFIG"),
        (["/none"], 1, "/none does not exist"),
        ([TINY, "--api-key", "short"], 2, "8 characters at least"),
        ([TINY, "--api-key-file", "/none"], 1, "/none"),
        ([TINY, "--tls-key", "/none"], 2, "given together"),
        ([TINY, "--max-body", "16X"], 2, "--max-body is a number of bytes"),
        ([TINY, "--idle-unload", "-1"], 2, "--idle-unload is 0 s or more"),
        ([TINY, "--load-timeout", "nan"], 2, "--load-timeout is 0 s or more"),
        ([TINY, "--kv-memory", "all"], 2, "--kv-memory is a number of bytes"),
        ([TINY, "--max-requests", "0"], 2, "--max-requests is 1 at least"),
        ([TINY, "--timeout", "-1"], 2, "--timeout is 0 s or more"),
        ([TINY, "--timeout", "0"], 2, "--timeout is above 0 s"),
        ([TINY, "--port", "65536"], 2, "--port is from 0 to 65535, got 65536"),
        ([TINY, "--port", "-1"], 2, "--port is from 0 to 65535, got -1"),
        ([TINY, "--temperature", "-1"], 2, "temperature is 0 or more"),
        ([TINY, "--chat-format", "xml"], 2, "--chat-format is auto, none"),
        ([TINY, "--max-rows", "0"], 2, "max_rows"),
        ([""], 1, "the path of the model is empty"),
        ([TINY, "--queue-limit", "0"], 2, "queue_limit"),
        ([TINY, "--step-limit", "-1"], 2, "step_limit"),
        ([TINY, "--also", "/none"], 2, "--also is NAME=PATH"),
        ([TINY, "--also", f"tiny_llama={TINY}"], 2, "a name of its own"),
    ],
)
def test_wrong_arguments(arguments, code, message, capsys):
    assert main(["serve", "--port", "0", *arguments]) == code
    assert message in capsys.readouterr().err
