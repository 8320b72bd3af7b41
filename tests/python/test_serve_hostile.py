"""What an attacker sends: numbers out of any range, odd texts, templates in messages, equal ids."""

import json
import threading

import pytest
from serving import TINY, WritingEngine, serving

from kernwright import llm
from kernwright.serve.http.limits import Limits
from kernwright.serve.protocol import (
    ChatBody,
    CompletionBody,
    EmbeddingBody,
    MessagesBody,
    ResponsesBody,
)

HI = [{"role": "user", "content": "Hi"}]
PATHS = {
    "/v1/chat/completions": (ChatBody, {"messages": HI}),
    "/v1/completions": (CompletionBody, {"prompt": "a"}),
    "/v1/responses": (ResponsesBody, {"input": "a"}),
    "/v1/messages": (MessagesBody, {"messages": HI, "max_tokens": 5}),
    "/v1/embeddings": (EmbeddingBody, {"input": "a"}),
}
ODD = (
    "NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1" + "0" * 400, "-1" + "0" * 30,
    "9223372036854775808", "-9223372036854775809", "18446744073709551616", "4294967296", "-1",
    "1e308", "-1e308", "5e-324", "-0.0", "1.5", "true", '"1"', "[]", "[1]", "{}", '{"a": NaN}',
)  # fmt: skip
TEXTS = (
    "\x00", "a\x00b", "\ufffe\uffff", "\u202e\u200d\u0301" * 50, "\U0001f468\u200d\U0001f469",
    "\U0010ffff", "\r\n\t\x0b\x7f\x85", "<|begin|><|end|>", "{{ 7 * 7 }}{% for x in range(9) %}x",
    "' OR 1=1 --", "../../etc/passwd", "%s%n%x",
)  # fmt: skip


@pytest.fixture(scope="module")
def writer():
    return WritingEngine(llm.load(TINY), "x")


@pytest.fixture(scope="module")
def client(writer):
    with serving(writer, limits=Limits(priorities=True)) as client:
        yield client


@pytest.mark.parametrize("path", PATHS)
def test_odd_numbers_in_any_field_are_answered(client, path):
    """With 400 and the name of the field, or as what they say; never with 500."""
    kind, right = PATHS[path]
    refused = 0
    for field in kind.__struct_fields__:
        for odd in ODD:
            rest = json.dumps({name: value for name, value in right.items() if name != field})
            body = f'{rest[:-1]}{", " if rest != "{}" else ""}"{field}": {odd}}}'.encode()
            status, _, content = client.ask("POST", path, body)
            assert status in (200, 400, 404), (status, body, content)
            if status != 200:
                error = json.loads(content)["error"]
                refused += 1
                assert error["code"] == "invalid_json" or error["param"], (body, error)
    assert refused > 100
    assert client.ask("GET", "/health")[0] == 200


def test_odd_texts_come_back_as_they_are(client, writer):
    tokenizer = writer.model.tokenizer
    for text in TEXTS:
        _, found = client.post("/tokenize", {"prompt": text, "add_special_tokens": False})
        assert client.post("/detokenize", {"tokens": found["tokens"]})[1]["prompt"] == text
        messages = [{"role": "user", "content": text}]
        status, found = client.post("/tokenize", {"messages": messages})
        assert status == 200  # what a message says is no template
        assert text.strip() in tokenizer.decode(found["tokens"], skip_special_tokens=False)
        assert client.post("/v1/chat/completions", {"messages": messages})[0] == 200
        body = {"prompt": text, "stop": text, "user": text, "cache_salt": text}
        assert client.post("/v1/completions", body)[0] == 200
        for body in ({"messages": HI, "model": text}, {"messages": HI, text: 1},
                     {"messages": [{"role": text, "content": ""}]}):  # fmt: skip
            status, answer = client.post("/v1/chat/completions", body)
            assert status in (400, 404) and len(answer["error"]["message"]) < 400


def test_names_of_fields_may_come_twice_and_lists_be_long(client):
    twice = b'{"prompt": "a", "prompt": "b", "max_tokens": 0, "max_tokens": 2}'
    assert client.ask("POST", "/v1/completions", twice)[0] == 200
    many = {f"field_{i}": i for i in range(50_000)}
    status, answer = client.post("/v1/completions", {"prompt": "a", **many})
    assert status == 400 and answer["error"]["param"] == "field_0"
    for field, value in (("stop", [""] * 17), ("logit_bias", {str(i): 0 for i in range(50_000)}),
                         ("stop_token_ids", [1] * 100_000),
                         ("guided_choice", ["a" * 30] * 20_000)):  # fmt: skip
        status, answer = client.post("/v1/completions", {"prompt": "a", field: value})
        assert status == 400 and answer["error"]["param"] == field, answer


def test_requests_of_equal_ids_are_all_answered(client):
    found = []
    threads = [
        threading.Thread(
            target=lambda: found.append(
                client.ask("POST", "/v1/completions", {"prompt": "a"}, {"X-Request-Id": "same"})
            )
        )
        for _ in range(8)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert [(status, headers["x-request-id"]) for status, headers, _ in found] == [
        (200, "same")
    ] * 8
