"""Servers in a thread of the test, and engines that write what a test says."""

import asyncio
import concurrent.futures
import contextlib
import http.client
import json
import pathlib
import threading
import time

from kernwright import llm
from kernwright.serve.app import make_app
from kernwright.serve.lifecycle import Address, http_server
from kernwright.serve.model_slot import ModelSlot
from kernwright.serve.served import Served
from kernwright.serve.server import Server

TINY = str(pathlib.Path(__file__).parents[1] / "data" / "tiny_llama")
PROMPTS = [
    "import os\nimport sys\n",
    "class Point:\n    def __init__(self, x",
    "def main(",
    "for i",
]


class WrittenRequest:
    """A request whose pieces are known before; `seconds` lie between them."""

    def __init__(self, engine, number, prompt, pieces):
        self.engine, self.id, self.prompt_tokens, self.cached_tokens = engine, number, prompt, 0
        self.cancelled = False
        self._open = {piece.choice for piece in pieces}
        self._pieces = iter(pieces)
        engine.running += 1

    def cancel(self):
        if not self.cancelled:
            self.cancelled = True
            self.engine.running -= 1

    def stop(self, choice=0):
        self._open.discard(choice)
        if not self._open:
            self.cancel()

    def __aiter__(self):
        return self

    async def __anext__(self):
        if self.engine.seconds:
            await asyncio.sleep(self.engine.seconds)
        if self.engine.error is not None:
            raise self.engine.error
        if self.cancelled:
            raise StopAsyncIteration
        piece = next(self._pieces, None)
        if piece is None:
            raise StopAsyncIteration
        return piece


class WritingEngine:
    """Writes one text for every prompt, as llm.Engine would."""

    def __init__(self, model, text="", seconds=0.0):
        self.model, self.text, self.seconds = model, text, seconds
        self.healthy, self.error, self.refusal = True, None, None
        self.running, self.requests, self.options = 0, 0, []
        self.users = set()

    def submit(self, prompt, *, user=None, **options):
        if self.refusal is not None:
            raise self.refusal
        self.options.append(options)
        self.users.add(user)
        self.requests += 1
        tokenizer = self.model.tokenizer
        tokens = tokenizer.encode(self.text, add_special_tokens=False)
        ended = len(tokens) + 1 <= options["max_tokens"]
        tokens = [*tokens, self.model.eos[0]] if ended else tokens[: options["max_tokens"]]
        streams = [tokenizer.stream(prompt) for _ in range(options.get("n", 1))]
        pieces = []
        for i, token in enumerate(tokens):
            reason = None if i + 1 < len(tokens) else "stop" if ended else "length"
            for choice, stream in enumerate(streams):
                text = "" if reason == "stop" else stream.push(token)
                pieces.append(llm.Piece(text, token, choice, reason))
        return WrittenRequest(self, self.requests, len(prompt), pieces)

    def stats(self):
        zero = ("waiting", "used_pages", "free_pages", "cached_pages", "shared_tokens", "steps",
                "prompt_tokens", "preemptions", "drafts", "drafted_tokens", "accepted_tokens",
                "started", "finished", "aborted", "failed", "host_pages", "saved_pages",
                "loaded_pages")  # fmt: skip
        return {"running": self.running, **dict.fromkeys(zero, 0)}

    def between_steps(self, function):
        made = concurrent.futures.Future()
        made.set_result(function())
        return made

    def close(self, timeout=None):
        self.healthy = False


@contextlib.contextmanager
def serving(engine, *, chat_format="hermes", name="tiny", **more):
    """A server of an engine's model at 127.0.0.1; `more` is that of serving_slots()."""
    served = Served(name, engine.model, engine, chat_format)
    with serving_slots({name: ModelSlot.filled(served)}, **more) as client:
        yield client


@contextlib.contextmanager
def serving_slots(slots, *, cors=(), address=None, **fields):
    """A server of models at 127.0.0.1; `fields` are those of serve.server.Server."""
    server = Server(slots, **fields)
    address = Address("127.0.0.1", 0) if address is None else address
    http_part = http_server(make_app(server, cors=cors), server, address)
    loop = http_part.config.get_loop_factory()()
    thread = threading.Thread(
        target=lambda: loop.run_until_complete(http_part.serve([address.socket])), daemon=True
    )
    thread.start()
    wait_for(lambda: http_part.started)
    try:
        yield Client(address.socket.getsockname()[1], server, loop)
    finally:
        http_part.should_exit = True
        thread.join(20)
        loop.close()
        assert not thread.is_alive()


def wait_for(condition, seconds=20.0):
    """Waits until something is so; a failure after some seconds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it does not become so"
        time.sleep(0.005)


class Client:
    """What a test asks a server; `port`, `server` and `loop` are those of it."""

    def __init__(self, port, server, loop):
        self.port, self.server, self.loop = port, server, loop

    def in_loop(self, function):
        """What a function returns that the thread of the server calls."""

        async def call():
            return function()

        return asyncio.run_coroutine_threadsafe(call(), self.loop).result(20)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/v1"

    def connect(self, timeout=30):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def ask(self, method, path, body=None, headers=()):
        """Status, headers and bytes of an answer. A body that is not bytes becomes JSON."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection = self.connect()
        try:
            connection.request(method, path, data, dict(headers))
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def post(self, path, body, headers=()):
        """The status and the JSON of an answer."""
        status, _, content = self.ask("POST", path, body, headers)
        return status, json.loads(content)

    def events(self, path, body):
        """The events of a stream: JSON, and "[DONE]"."""
        status, headers, content = self.ask("POST", path, {**body, "stream": True})
        assert status == 200, content
        assert headers["content-type"].startswith("text/event-stream")
        made = []
        for block in content.decode().split("\n\n")[:-1]:
            line = block.removeprefix("data: ")
            assert line != block and "\n" not in line
            made.append(line if line == "[DONE]" else json.loads(line))
        return made
