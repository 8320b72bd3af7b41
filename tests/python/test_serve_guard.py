"""Keys, bounds of time and size, clients that are slow, the log."""

import contextlib
import importlib
import io
import json
import logging
import os
import re
import socket
import ssl
import threading
import time

import pytest
import trustme
from serving import TINY, WritingEngine, serving, wait_for

from kernwright import _core, llm
from kernwright.cli import main
from kernwright.errors import InvalidArgument
from kernwright.serve.http.keys import Keys
from kernwright.serve.http.limits import Limits
from kernwright.serve.http.log import log_lines
from kernwright.serve.lifecycle import Address

CHAT = "/v1/chat/completions"
ASK = {"messages": [{"role": "user", "content": "a secret prompt"}]}
LONG = "word " * 80


@pytest.fixture(scope="module")
def model():
    return llm.load(TINY)


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


def test_everything_but_health_and_the_page_needs_a_key(model):
    engine = WritingEngine(model, "x")
    with serving(engine, keys=Keys({"a": "first-key", "b": "other-key"})) as c:
        for path in ("/", "/health", "/health/live", "/health/ready"):
            assert c.ask("GET", path)[0] == 200
        for method, path in (
            ("GET", "/v1/models"), ("GET", "/metrics"), ("POST", CHAT), ("POST", "/tokenize"),
            ("GET", "/nothing"), ("POST", "/detokenize"), ("POST", "/v1/embeddings"),
        ):  # fmt: skip
            status, headers, body = c.ask(method, path)
            assert status == 401 and headers["www-authenticate"] == "Bearer"
            assert json.loads(body)["error"]["code"] == "missing_api_key"
        for headers in (bearer("first-key"), bearer("other-key"), {"X-Api-Key": "other-key"}):
            assert c.post(CHAT, ASK, headers)[0] == 200
        assert engine.users == {"a", "b"}  # each has a share of its own
        for wrong in ("", "first-ke", "first-key1", "FIRST-KEY", "a:first-key"):
            status, answer = c.post(CHAT, ASK, bearer(wrong))
            assert status == 401 and answer["error"]["code"] == "invalid_api_key"


def test_keys_of_files(tmp_path):
    path = tmp_path / "keys"
    path.write_text("# of the team\nann: ann-s-key\n\nbob-s-key\n")
    keys = Keys.of(["one-more-key"], [str(path)])
    names = [
        keys.user([(b"authorization", b"Bearer " + key)])
        for key in (b"ann-s-key", b"bob-s-key", b"one-more-key")
    ]
    assert names == ["ann", "key3", "key1"] and keys and not Keys({})
    path.write_text("# none\n")
    with pytest.raises(InvalidArgument, match="has no key"):
        Keys.of([], [str(path)])
    with pytest.raises(InvalidArgument, match="8 characters at least, got 5"):
        Keys.of(["short"], [])
    with pytest.raises(FileNotFoundError):
        Keys.of([], ["/none"])


def test_pages_of_other_origins_need_cors(model):
    ask = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST"}
    with serving(WritingEngine(model, "x")) as c:
        assert c.ask("OPTIONS", CHAT, headers=ask)[0] == 405
    keys = Keys({"a": "first-key"})
    with serving(WritingEngine(model, "x"), cors=["https://a.example"], keys=keys) as c:
        status, headers, _ = c.ask("OPTIONS", CHAT, headers=ask)
        assert status == 200
        assert headers["access-control-allow-origin"] == "https://a.example"
        _, headers, _ = c.ask("POST", CHAT, ASK, {"Origin": "https://a.example"})
        assert headers["access-control-allow-origin"] == "https://a.example"  # of a 401, too
        _, headers, _ = c.ask("POST", CHAT, ASK, {"Origin": "https://b.example"})
        assert headers["access-control-allow-origin"] is None


def test_too_many_calls_and_calls_while_draining(model):
    engine = WritingEngine(model, LONG, seconds=0.02)
    with serving(engine, limits=Limits(concurrent=2)) as c:
        threads = [threading.Thread(target=c.post, args=(CHAT, ASK)) for _ in range(2)]
        for each in threads:
            each.start()
        wait_for(lambda: c.server.running == 2)
        status, headers, body = c.ask("POST", CHAT, ASK)
        assert status == 429 and headers["retry-after"] == "1"
        assert "2 requests run, and 2 may" in json.loads(body)["error"]["message"]
        assert c.ask("GET", "/health")[0] == 200
        c.server.draining = True
        status, headers, body = c.ask("POST", CHAT, ASK)
        assert status == 503 and headers["retry-after"] is not None
        assert c.ask("GET", "/health/ready")[0] == 503
        assert c.ask("GET", "/health/live")[0] == c.ask("GET", "/health")[0] == 200
        for each in threads:
            each.join(30)
        assert engine.running == 0 and c.server.running == 0


def test_a_dead_engine_is_told(model):
    engine = WritingEngine(model, "x")
    with serving(engine) as c:
        engine.healthy = False
        for path in ("/health", "/health/live", "/health/ready"):
            assert c.ask("GET", path)[0] == 500
        assert c.post(CHAT, ASK)[1]["error"]["code"] == "engine_stopped"


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_that_takes_too_long_ends(model, stream):
    engine = WritingEngine(model, LONG, seconds=0.05)
    with serving(engine, limits=Limits(seconds=0.3)) as c:
        if stream:
            *_, error, done = c.events(CHAT, ASK)
            assert "more than 0.3 s" in error["error"]["message"] and done == "[DONE]"
        else:
            status, answer = c.post(CHAT, ASK)
            assert status == 504 and answer["error"]["code"] == "timeout"
        wait_for(lambda: engine.running == 0)


def exchange(port, data, seconds=10):
    """What the server answers to bytes until it closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as s:
        s.sendall(data)
        found = b""
        while part := s.recv(65536):
            found += part
        return found


def test_slow_and_large_heads_and_bodies(model):
    with serving(
        WritingEngine(model, "x"), limits=Limits(read_seconds=0.3, body=1000, headers=4096)
    ) as c:
        assert exchange(c.port, b"").startswith(b"HTTP/1.1 408 ")
        assert exchange(c.port, b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n").startswith(
            b"HTTP/1.1 408 "
        )
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
        slow = exchange(c.port, head + b"Content-Length: 50\r\n\r\n{")
        assert slow.startswith(b"HTTP/1.1 408 ") and b"the body did not come" in slow
        chunked = head + b"Transfer-Encoding: chunked\r\n\r\n" + b"400\r\n" + b"a" * 0x400 + b"\r\n"
        assert exchange(c.port, chunked).startswith(b"HTTP/1.1 413 ")
        assert exchange(c.port, head + b"Content-Length: 9999999\r\n\r\n").startswith(
            b"HTTP/1.1 413 "
        )
        flood = b"GET /health HTTP/1.1\r\n" + b"".join(b"a%d: b\r\n" % i for i in range(500))
        assert exchange(c.port, flood).startswith(b"HTTP/1.1 431 ")
        no_http = exchange(c.port, b"\x16\x03\x01 no HTTP\r\n\r\n")
        assert no_http.startswith(b"HTTP/1.1 400 ")
        assert json.loads(no_http.split(b"\r\n\r\n")[1])["error"]["code"] == "invalid_http"
        assert c.ask("GET", "/health")[0] == 200
        two = b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n"
        assert exchange(c.port, two + two.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))


def test_a_client_that_sends_all_before_it_reads_gets_the_refusal(model):
    """Of a body several times as large as the bound and as the buffers of connections."""
    head = b"POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"
    size = 24 * 2**20
    with serving(WritingEngine(model, "x"), limits=Limits(body=size // 3)) as c:
        with socket.create_connection(("127.0.0.1", c.port), timeout=30) as s:
            s.sendall(head % (CHAT.encode(), size) + b"a" * size)
            assert s.recv(65536).startswith(b"HTTP/1.1 413 ")
            s.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")  # the connection goes on
            assert s.recv(65536).startswith(b"HTTP/1.1 200 ")


def written(answer):
    """The content of a streamed answer, and whether it has its end."""
    events = re.findall(rb"data: (\{.*\})\n", answer)
    deltas = [json.loads(each)["choices"][0]["delta"] for each in events]
    return "".join(each.get("content", "") for each in deltas), b"data: [DONE]" in answer


def stream_request(*, closes):
    body = json.dumps({**ASK, "stream": True}).encode()
    close = b"Connection: close\r\n" if closes else b""
    return b"POST %s HTTP/1.1\r\nHost: a\r\n%sContent-Length: %d\r\n\r\n%s" % (
        CHAT.encode(), close, len(body), body)  # fmt: skip


@pytest.mark.parametrize(
    "flood", [b"0\r\na: " + b"b" * 9000, b"0\r\n" + b"a: b\r\n" * 2000, b"0;" + b"a" * 9000]
)
def test_bytes_beside_a_chunked_body_are_bounded(model, flood):
    """Trailers, and extensions of chunks: nobody reads them."""
    head = b"POST %s HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n" % CHAT.encode()
    with serving(WritingEngine(model, "x"), limits=Limits(headers=4096)) as c:
        with socket.create_connection(("127.0.0.1", c.port), timeout=30) as s:
            s.sendall(head + b"Expect: 100-continue\r\n\r\n")
            assert s.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
            s.sendall(flood)
            refusals = b"HTTP/1.1 431 ", b"HTTP/1.1 400 "  # of llhttp, for extensions
            assert s.recv(65536).startswith(refusals)
        chunks = b"".join(b"1;x=y\r\n%c\r\n" % each for each in json.dumps(ASK).encode())
        head += b"Connection: close\r\n\r\n"
        assert exchange(c.port, head + chunks + b"0\r\nX-Sum: 1\r\n\r\n", 30).startswith(
            b"HTTP/1.1 200 "
        )


def test_bytes_behind_a_request_leave_its_answer_alone(model):
    """Some clients send a line break behind a body, which begins no request that could be late."""
    engine = WritingEngine(model, "word " * 12, seconds=0.05)
    with serving(engine, limits=Limits(read_seconds=0.2, headers=4096)) as c:
        for behind in (b"\r\n", b"GET /health HT"):
            answer = exchange(c.port, stream_request(closes=True) + behind, 30)
            assert written(answer) == (engine.text, True) and answer.count(b"HTTP/1.1 ") == 1
        for behind in (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 2000, b"\x16\x03\x01\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", c.port), timeout=30) as s:
                s.sendall(stream_request(closes=False))
                answer = s.recv(65536)
                s.sendall(behind)
                with contextlib.suppress(ConnectionResetError):
                    while part := s.recv(65536):
                        answer += part
            assert answer.count(b"HTTP/1.1 ") == 1  # the answer ends, and has no other one in it


def test_a_reader_that_takes_nothing_is_left(model):
    """The buffers of both sides fill up, then the request ends."""
    engine = WritingEngine(model, LONG)
    body = json.dumps({**ASK, "stream": True, "n": 16, "logprobs": False}).encode()
    engine.text = "word " * 400
    with serving(engine, limits=Limits(write_seconds=0.2)) as c:
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            s.settimeout(20)
            s.connect(("127.0.0.1", c.port))
            s.sendall(b"POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s" % (
                CHAT.encode(), len(body), body))  # fmt: skip
            wait_for(lambda: engine.running == 1)
            wait_for(lambda: engine.running == 0)
        assert c.ask("GET", "/health")[0] == 200


def test_logs_have_no_prompts(model):
    out = io.StringIO()
    engine = WritingEngine(model, "an answer")
    with log_lines("json", stream=out), serving(engine, keys=Keys({"ann": "first-key"})) as c:
        c.post(CHAT, ASK, bearer("first-key"))
        c.post(CHAT, {**ASK, "temperature": 9}, bearer("first-key"))
        c.post("/detokenize", {"tokens": [10**6]}, bearer("first-key"))
        c.post(CHAT, ASK)
        engine.refusal = RuntimeError("broken")
        c.post(CHAT, ASK, bearer("first-key"))
        engine.refusal = None
        c.ask("GET", "/health")
        c.ask("GET", "/v1/models", headers=bearer("first-key"))
        c.server.draining = True
        c.ask("GET", "/health/ready")
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [each.get("status") for each in lines] == [200, 400, 400, 401, None, 500, 200, 503]
    reasons = [each["reason"] for each in lines if each["message"] == "request"]
    wanted = "stop out_of_range invalid_request_error missing_api_key error answered draining"
    assert reasons == wanted.split()
    first = lines[0]
    assert first["key"] == "ann" and first["model"] == "tiny" and first["reason"] == "stop"
    assert first["prompt_tokens"] > 0 and first["completion_tokens"] > 0 and first["id"]
    assert first["first_token_seconds"] <= first["seconds"]
    assert "broken" in lines[4]["exception"]
    assert "secret" not in out.getvalue() and "an answer" not in out.getvalue()


def test_metrics_that_fail_leave_streams_alone(model, monkeypatch):
    def broken():
        raise RuntimeError("a secret")

    engine = WritingEngine(model, "an answer")
    with serving(engine) as c:
        monkeypatch.setattr(engine, "stats", broken)
        status, _, content = c.ask("GET", "/metrics")
        assert status == 500 and b"RuntimeError" in content and b"a secret" not in content
        *_, last, done = c.events(CHAT, ASK)
        assert last["choices"][0]["finish_reason"] == "stop" and done == "[DONE]"
        assert c.ask("GET", "/health")[0] == 200
        monkeypatch.undo()
        assert c.ask("GET", "/metrics")[0] == 200


def test_the_log_has_the_lines_of_the_library_and_of_the_start(monkeypatch, capsys):
    """Each line is JSON from the first one on, and afterwards loggers are as they were."""
    handlers = logging.getLogger("kernwright").handlers

    def plan(*_, **__):
        _core._log_warning("of the library")
        raise InvalidArgument("the plan of a test")

    monkeypatch.setattr(importlib.import_module("kernwright.llm._load"), "plan", plan)
    main(["serve", TINY, "--check", "--log-format", "json"])
    first, second, *rest = capsys.readouterr().err.splitlines()
    assert json.loads(first)["message"].startswith("on ")
    if not os.environ.get("KERNWRIGHT_LOG"):
        found = json.loads(second)
        assert (found["level"], found["message"]) == ("warning", "of the library")
    assert "the plan of a test" in rest[-1]
    assert logging.getLogger("kernwright").handlers is handlers


def test_tls(model, tmp_path):
    ca = trustme.CA()
    files = [str(tmp_path / name) for name in ("certificate", "key")]
    issued = ca.issue_cert("localhost")
    issued.cert_chain_pems[0].write_to_path(files[0])
    issued.private_key_pem.write_to_path(files[1])
    address = Address("127.0.0.1", 0, certificate=files[0], key=files[1])
    assert address.url.startswith("https://127.0.0.1:")
    with serving(WritingEngine(model, "x"), address=address) as c:
        context = ssl.create_default_context()
        ca.configure_trust(context)
        with socket.create_connection(("127.0.0.1", c.port), timeout=10) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as s:
                s.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                assert s.recv(100).startswith(b"HTTP/1.1 200 ")
    with pytest.raises(InvalidArgument, match="given together"):
        Address("127.0.0.1", 0, certificate=files[0])
    with pytest.raises(InvalidArgument):
        Address("127.0.0.1", 0, certificate=files[1], key=files[0])


def test_an_address_that_is_taken():
    taken = Address("127.0.0.1", 0)
    taken.socket.listen()
    with pytest.raises(OSError, match=r"127\.0\.0\.1:\d+ cannot be had"):
        Address("127.0.0.1", taken.socket.getsockname()[1])
    taken.socket.close()


def test_clients_that_leave_end_their_requests(model):
    engine = WritingEngine(model, LONG, seconds=0.02)
    with serving(engine) as c:
        for stream in (False, True):
            connection = c.connect()
            connection.request("POST", CHAT, json.dumps({**ASK, "stream": stream}))
            wait_for(lambda: engine.running == 1)
            begin = time.monotonic()
            connection.close()
            wait_for(lambda: engine.running == 0)
            assert time.monotonic() - begin < 1.0
            wait_for(lambda: c.server.running == 0)


def test_the_page_needs_no_other_host(model):
    with serving(WritingEngine(model, "x")) as c:
        status, headers, body = c.ask("GET", "/")
    assert status == 200 and headers["content-type"].startswith("text/html")
    assert b"v1/chat/completions" in body and b"://" not in body


def test_health_answers_while_a_prompt_is_tokenised(model, monkeypatch):
    begun, ends = threading.Event(), threading.Event()
    encode = llm.Tokenizer.encode

    def slow(self, text, **options):
        if text.startswith("slow"):
            begun.set()
            assert ends.wait(30)
        return encode(self, text, **options)

    monkeypatch.setattr(llm.Tokenizer, "encode", slow)
    with serving(WritingEngine(model, "word")) as client:
        statuses = []
        body = {"prompt": "slow " + "a" * 300_000, "max_tokens": 1}
        thread = threading.Thread(
            target=lambda: statuses.append(client.post("/v1/completions", body)[0])
        )
        thread.start()
        assert begun.wait(20)
        for path in ("/health", "/health/ready", "/metrics", "/v1/models"):
            assert client.ask("GET", path)[0] == 200
        assert client.post(CHAT, ASK)[0] == 200 and not statuses
        ends.set()
        thread.join(30)
        assert statuses == [400]  # the context does not hold it
