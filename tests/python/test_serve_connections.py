"""Connections as raw bytes: upgrades, half-closed ones, endless bodies, heads at their bound."""

import json
import socket
import threading
import time

import pytest
from serving import TINY, WritingEngine, serving, wait_for
from test_serve_guard import ASK, CHAT, exchange, stream_request, written

from kernwright import llm
from kernwright.serve.http.limits import Limits

BODY = json.dumps(ASK).encode()
SIZE = len(BODY)
H2C = (b"Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\n"
       b"HTTP2-Settings: AAMAAABkAAQAAP__\r\n")  # fmt: skip


@pytest.fixture(scope="module")
def model():
    return llm.load(TINY)


def head(*headers, line=b"POST /v1/chat/completions HTTP/1.1", size=SIZE):
    lines = [line, b"Host: a", *headers]
    if size is not None:
        lines.append(b"Content-Length: %d" % size)
    return b"\r\n".join(lines) + b"\r\n\r\n"


@pytest.mark.parametrize("cut", [0, 1, 20, 90, 160])
def test_an_upgrade_is_ignored_and_the_body_is_read(model, cut):
    engine = WritingEngine(model, "an answer")
    with serving(engine) as c:
        upgrade = H2C.rstrip(b"\r\n")
        whole = head(upgrade) + BODY
        with socket.create_connection(("127.0.0.1", c.port), timeout=20) as s:
            for part in (whole[:cut], whole[cut:-7], whole[-7:]):
                s.sendall(part)
                time.sleep(0.02)
            answer = b""
            while part := s.recv(65536):
                answer += part
        assert answer.startswith(b"HTTP/1.1 200 ") and b"an answer" in answer
        chunked = head(upgrade, b"Transfer-Encoding: chunked", size=None)
        chunked += b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
        assert exchange(c.port, chunked).startswith(b"HTTP/1.1 200 ")
        twice = head(upgrade.replace(b", close", b"")) + BODY + head(upgrade) + BODY
        assert exchange(c.port, twice).count(b"HTTP/1.1 200 ") == 2
        refused = exchange(c.port, b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n")
        assert refused.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("stream", [False, True])
def test_a_half_closed_client_gets_its_answer(model, stream):
    engine = WritingEngine(model, "word " * 6, seconds=0.05)
    request = stream_request(closes=False) if stream else head() + BODY
    with serving(engine) as c:
        with socket.create_connection(("127.0.0.1", c.port), timeout=20) as s:
            s.sendall(request)
            s.shutdown(socket.SHUT_WR)
            answer = b""
            while part := s.recv(65536):
                answer += part
        interim, answer = (
            answer[: answer.index(b"HTTP/1.1 200")],
            answer[answer.index(b"HTTP/1.1 200") :],
        )
        assert interim.replace(b"HTTP/1.1 100 Continue\r\n\r\n", b"") == b""
        if stream:
            assert written(answer) == (engine.text, True)
        else:
            body = json.loads(answer.split(b"\r\n\r\n", 1)[1])
            assert body["choices"][0]["message"]["content"] == engine.text
        wait_for(lambda: engine.running == 0 and c.server.running == 0)


def test_two_requests_of_a_half_closed_connection(model):
    engine = WritingEngine(model, "word " * 4, seconds=0.02)
    with serving(engine) as c, socket.create_connection(("127.0.0.1", c.port), timeout=20) as s:
        s.sendall((head() + BODY) * 2)
        s.shutdown(socket.SHUT_WR)
        answer = b""
        while part := s.recv(65536):
            answer += part
        assert answer.count(b"HTTP/1.1 200 ") == answer.count(b"word word word word") == 2


def test_a_client_that_leaves_after_half_closing_ends_its_request(model):
    engine = WritingEngine(model, "word " * 80, seconds=0.05)
    with serving(engine) as c:
        for line, wait in ((b"HTTP/1.1", 0.3), (b"HTTP/1.1", 0), (b"HTTP/1.0", 0)):
            s = socket.create_connection(("127.0.0.1", c.port), timeout=20)
            s.sendall(head(line=b"POST /v1/chat/completions " + line) + BODY)
            wait_for(lambda: engine.running == 1)
            s.shutdown(socket.SHUT_WR)
            time.sleep(wait)
            begin = time.monotonic()
            s.close()
            wait_for(lambda: engine.running == 0)
            assert time.monotonic() - begin < 1.5
            wait_for(lambda: c.server.running == 0)
        with socket.create_connection(("127.0.0.1", c.port), timeout=20) as s:
            s.sendall(head() + BODY[:9])  # never whole
            s.shutdown(socket.SHUT_WR)
            assert s.recv(100) == b""


def test_heads_are_bound_exactly(model):
    most = 4096
    with serving(WritingEngine(model, "x"), limits=Limits(headers=most)) as c:
        line, rest = b"GET /health HTTP/1.1", b"\r\nConnection: close\r\n\r\n"
        beside = len(b"/health") + len(b"Connection: close\r\n") + len(b"a: \r\n")
        for count, status in ((most - beside, b"200"), (most - beside + 1, b"431")):
            answer = exchange(c.port, line + b"\r\na: " + b"b" * count + rest)
            assert answer.startswith(b"HTTP/1.1 " + status), (count, answer)
    with serving(WritingEngine(model, "x")) as c:
        large = head(b"a: " + b"b" * 70_000, line=b"GET /health HTTP/1.1", size=None)
        assert exchange(c.port, large).startswith(b"HTTP/1.1 431 ")
        path = b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n"
        assert exchange(c.port, path).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("version", [b"HTTP/2.0", b"HTTP/0.9"])
def test_other_versions_are_refused(model, version):
    with serving(WritingEngine(model, "x")) as c:
        for body in (b"", BODY):
            line = (b"POST /v1/chat/completions " if body else b"GET /health ") + version
            answer = exchange(c.port, head(line=line, size=len(body)) + body)
            assert answer.startswith((b"HTTP/1.1 505 ", b"HTTP/1.1 400 "))
            assert answer.count(b"content-length") == 1


def test_a_body_without_end_is_not_read_on(model):
    with serving(WritingEngine(model, "x"), limits=Limits(body=100_000, read_seconds=0.5)) as c:
        line = b"GET /health HTTP/1.1"
        chunk = b"8000\r\n" + b"a" * 0x8000 + b"\r\n"
        with socket.create_connection(("127.0.0.1", c.port), timeout=20) as s:
            s.sendall(head(b"Transfer-Encoding: chunked", line=line, size=None))
            assert s.recv(65536).startswith(b"HTTP/1.1 200 ")
            with pytest.raises(OSError):
                for _ in range(2000):  # 64 MB
                    s.sendall(chunk)
        with socket.create_connection(("127.0.0.1", c.port), timeout=20) as s:
            s.sendall(head(line=line, size=1000))
            assert s.recv(65536).startswith(b"HTTP/1.1 200 ")
            begin = time.monotonic()
            with pytest.raises(OSError):
                while time.monotonic() - begin < 10:  # a byte at a time
                    s.sendall(b"a")
                    time.sleep(0.05)
            assert time.monotonic() - begin < 5
        two = head(line=line, size=5) + b"abcde" + head(b"Connection: close", line=line, size=0)
        assert exchange(c.port, two).count(b"HTTP/1.1 200 ") == 2


def test_encodings_of_bodies_are_refused(model):
    with serving(WritingEngine(model, "x")) as c:
        for encoding, status in (("gzip", 415), ("identity", 200), ("br, gzip", 415)):
            found, _, body = c.ask("POST", CHAT, ASK, {"Content-Encoding": encoding})
            assert found == status and (status == 200 or encoding.encode() in body)


def test_floods_of_wrong_connections_leave_others_alone(model):
    engine = WritingEngine(model, "an answer")
    with serving(engine, limits=Limits(headers=4096)) as c:
        heads = [head(b"Upgrade: x", b"Connection: upgrade") * 50, b"GET / HTTP/2.0\r\n\r\n" * 50,
                 b"\x00" * 500, head(b"a: " + b"b" * 5000)]  # fmt: skip
        threads = [threading.Thread(target=exchange, args=(c.port, each)) for each in heads * 3]
        for each in threads:
            each.start()
        assert c.post(CHAT, ASK)[0] == 200
        for each in threads:
            each.join(20)
        assert c.post(CHAT, ASK)[0] == 200 and engine.running == 0
