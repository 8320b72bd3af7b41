"""The server with the trained tiny model: completions, log-probabilities, clients that leave."""

import base64
import json
import math
import pathlib
import random
import shutil
import threading

import jsonschema
import numpy as np
import pytest
from serving import TINY, WritingEngine, serving, wait_for
from test_serve_wrong import RIGHT, WRONG

import kernwright as kw
from kernwright import llm
from kernwright.serve.http.limits import Limits

PROMPT = "def f(x):"
GREEDY = {"temperature": 0, "max_tokens": 12}


@pytest.fixture(scope="module")
def engine():
    with llm.Engine(llm.load(TINY), max_rows=8) as engine:
        yield engine


@pytest.fixture(scope="module")
def client(engine):
    with serving(engine) as client:
        yield client


@pytest.fixture(scope="module")
def expected():
    """What the model writes by itself, without a server."""
    return llm.load(TINY).generate(PROMPT, max_tokens=12, logprobs=2)


def is_empty(engine):
    stats = engine.stats()
    ended = stats["finished"] + stats["aborted"] + stats["failed"]
    return stats["running"] + stats["waiting"] + stats["used_pages"] == 0 and (
        stats["started"] == ended
    )


def test_completions_write_what_the_model_writes(client, engine, expected):
    status, whole = client.post("/v1/completions", {"prompt": PROMPT, **GREEDY})
    assert status == 200
    assert whole["choices"] == [
        {"index": 0, "text": expected.text, "logprobs": None, "finish_reason": "length",
         "stop_reason": None}
    ]  # fmt: skip
    usage = whole["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (expected.prompt_tokens, 12)
    *events, done = client.events("/v1/completions", {"prompt": PROMPT, **GREEDY})
    assert "".join(e["choices"][0]["text"] for e in events) == expected.text and done == "[DONE]"
    reasons = [event["choices"][0]["finish_reason"] for event in events]
    assert reasons == [None] * 11 + ["length"]  # an event for each token
    wait_for(lambda: is_empty(engine))


def test_prompts_are_texts_tokens_or_lists_of_them(client, engine, expected):
    tokens = engine.model.tokenizer.encode(PROMPT)
    for prompt, count in (
        (tokens, 1), ([PROMPT], 1), ([tokens, tokens], 2), ([PROMPT, "import re"], 2),
    ):  # fmt: skip
        status, whole = client.post("/v1/completions", {"prompt": prompt, **GREEDY})
        assert status == 200 and whole["choices"][0]["text"] == expected.text
        assert [each["index"] for each in whole["choices"]] == list(range(count))
    texts = {0: "", 1: ""}
    *events, _ = client.events("/v1/completions", {"prompt": [PROMPT, "import re"], **GREEDY})
    for event in events:
        texts[event["choices"][0]["index"]] += event["choices"][0]["text"]
    assert texts == {0: expected.text, 1: whole["choices"][1]["text"]}


def test_logprobs_are_those_of_the_model(client, engine, expected):
    body = {"prompt": PROMPT, **GREEDY, "logprobs": 2}
    _, whole = client.post("/v1/completions", body)
    found = whole["choices"][0]["logprobs"]
    assert np.allclose(found["token_logprobs"], [each.logprob for each in expected.logprobs], 1e-4)
    assert "".join(found["tokens"]) == expected.text
    for top, each in zip(found["top_logprobs"], expected.logprobs, strict=True):
        assert np.allclose(sorted(top.values()), sorted(p for _, p in each.top), atol=1e-4)
    text = whole["choices"][0]["text"]
    for token, at in zip(found["tokens"], found["text_offset"], strict=True):
        assert text[at : at + len(token)] == token
    *events, _ = client.events("/v1/completions", body)
    streamed = [each for e in events for each in e["choices"][0]["logprobs"]["tokens"]]
    assert streamed == found["tokens"]


def test_an_echo_has_the_prompt_and_its_logprobs(client, engine):
    """The reference is NumPy in float64 on the logits of the model."""
    text = "import os, sys"
    tokens = engine.model.tokenizer.encode(text)
    logits = llm.load(TINY).logits(tokens).numpy().astype(np.float64)
    chances = logits - np.log(np.exp(logits - logits.max(1, keepdims=True)).sum(1, keepdims=True))
    chances -= logits.max(1, keepdims=True)
    expected = [chances[i, token] for i, token in enumerate(tokens[1:])]
    body = {"prompt": text, "echo": True, "max_tokens": 0, "logprobs": 1}
    status, whole = client.post("/v1/completions", body)
    choice = whole["choices"][0]
    assert status == 200 and choice["text"] == text and choice["finish_reason"] == "length"
    found = choice["logprobs"]["token_logprobs"]
    assert found[0] is None and np.allclose(found[1:], expected, atol=1e-3)
    best = [max(top.values()) for top in choice["logprobs"]["top_logprobs"][1:]]
    assert np.allclose(best, chances[:-1].max(1), atol=1e-3)
    assert whole["usage"]["completion_tokens"] == 0
    _, more = client.post("/v1/completions", {**body, "max_tokens": 3, "temperature": 0})
    assert more["choices"][0]["text"].startswith(text)
    assert len(more["choices"][0]["logprobs"]["tokens"]) == len(tokens) + 3
    *events, _ = client.events("/v1/completions", {**body, "max_tokens": 3, "temperature": 0})
    assert "".join(e["choices"][0]["text"] for e in events) == more["choices"][0]["text"]


def test_best_of_gives_the_likeliest(client):
    body = {"prompt": PROMPT, "max_tokens": 6, "temperature": 1.5, "seed": 3, "logprobs": 0}
    _, everything = client.post("/v1/completions", {**body, "n": 5})
    _, best = client.post("/v1/completions", {**body, "n": 1, "best_of": 5})
    means = [np.mean(each["logprobs"]["token_logprobs"]) for each in everything["choices"]]
    assert math.isclose(
        np.mean(best["choices"][0]["logprobs"]["token_logprobs"]), max(means), abs_tol=1e-5
    )


def test_what_the_context_does_not_hold_is_refused(client):
    status, answer = client.post("/v1/completions", {"prompt": "a", "max_tokens": 512})
    assert status == 400 and answer["error"]["code"] == "context_length_exceeded"
    words = "this model's maximum context length is"  # what litellm looks for
    assert words in answer["error"]["message"]
    assert "512" in answer["error"]["message"] and answer["error"]["param"] == "max_tokens"
    messages = [{"role": "user", "content": "Hi"}]
    for path, body, field in (
        ("/v1/chat/completions", {"messages": messages}, "max_completion_tokens"),
        ("/v1/responses", {"input": messages}, "max_output_tokens"),
        ("/v1/messages", {"messages": messages}, "max_tokens"),
    ):
        status, answer = client.post(path, {**body, field: 512})
        assert status == 400 and answer["error"]["param"] == field, answer
        assert answer["error"]["message"].startswith(f"{field}: the prompt"), answer


def test_embeddings_are_those_of_the_model(client, engine):
    texts = ["import os", "def f(x):"]
    expected = llm.load(TINY).embed(texts).numpy()
    status, found = client.post("/v1/embeddings", {"input": texts})
    assert status == 200
    assert np.allclose([each["embedding"] for each in found["data"]], expected, atol=1e-5)
    assert found["usage"]["prompt_tokens"] == sum(
        len(engine.model.tokenizer.encode(each)) for each in texts
    )
    tokens = engine.model.tokenizer.encode(texts[0])
    _, coded = client.post("/v1/embeddings", {"input": tokens, "encoding_format": "base64"})
    data = np.frombuffer(base64.b64decode(coded["data"][0]["embedding"]), "<f4")
    assert np.allclose(data, expected[0], atol=1e-5)
    body = {"input": "import os\n" * 600}
    status, refused = client.post("/v1/embeddings", body)
    assert status == 400 and refused["error"]["code"] == "context_length_exceeded"
    for given, count in ((-1, 512), (3, 3)):
        status, cut = client.post("/v1/embeddings", {**body, "truncate_prompt_tokens": given})
        assert status == 200 and cut["usage"]["prompt_tokens"] == count
    last = engine.model.tokenizer.encode(body["input"])[-3:]
    wanted = llm.load(TINY).embed(last).numpy()
    assert np.allclose(cut["data"][0]["embedding"], wanted, atol=1e-5)


def test_tokenize_and_detokenize_are_inverse(client, engine):
    text = "def f(x):\n    return x"
    _, found = client.post("/tokenize", {"prompt": text, "return_token_strs": True})
    assert found["tokens"] == engine.model.tokenizer.encode(text)
    assert len(found["token_strs"]) == found["count"] and found["max_model_len"] == 512
    _, bare = client.post("/tokenize", {"prompt": text, "add_special_tokens": False})
    assert client.post("/detokenize", {"tokens": bare["tokens"]}) == (200, {"prompt": text})


def test_a_full_queue_refuses(engine):
    body = {"prompt": PROMPT, "max_tokens": 400, "ignore_eos": True, "stream": True}
    with llm.Engine(engine.model, max_rows=1, queue_limit=1) as small, serving(small) as client:
        connections = [client.connect() for _ in range(2)]
        for number, connection in enumerate(connections):
            connection.request("POST", "/v1/completions", json.dumps(body))
            wait_for(lambda number=number: small.stats()["waiting"] == number)
            wait_for(lambda: small.stats()["running"] > 0)
        status, headers, content = client.ask("POST", "/v1/completions", body)
        assert status == 429 and int(headers["retry-after"]) >= 1
        assert json.loads(content)["error"]["code"] == "queue_full"
        for connection in connections:
            connection.close()
        wait_for(lambda: is_empty(small))


def test_fifty_clients_that_leave_leave_nothing(client, engine, expected):
    """Streams and whole answers, at any moment; a neighbour's text is the same with and without."""
    numbers = random.Random(5)
    texts = []

    def neighbour():
        for _ in range(4):
            body = {"prompt": PROMPT, **GREEDY}
            texts.append(client.post("/v1/completions", body)[1]["choices"][0]["text"])
            client.post("/v1/completions", {"prompt": PROMPT, "max_tokens": -1})

    thread = threading.Thread(target=neighbour)
    thread.start()
    for i in range(50):
        connection = client.connect()
        body = {"prompt": PROMPT, "max_tokens": 400, "ignore_eos": True, "stream": i % 3 != 0}
        connection.request("POST", "/v1/completions", json.dumps(body))
        if body["stream"]:
            answer = connection.getresponse()
            for _ in range(numbers.randrange(4)):
                answer.readline()
        elif numbers.random() < 0.5:
            wait_for(lambda: engine.stats()["running"] > 0)
        connection.close()
    thread.join(60)
    assert texts == [expected.text] * 4
    wait_for(lambda: is_empty(engine))
    assert engine.stats()["aborted"] >= 40
    text = client.ask("GET", "/metrics")[2].decode()
    found = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert (
        float(found['vllm:request_success_total{finished_reason="abort",model_name="tiny"}']) >= 40
    )
    assert float(found['vllm:num_requests_running{model_name="tiny"}']) == 0
    begun, *ended = (
        float(found[f'kernwright:engine_requests_{name}_total{{model_name="tiny"}}'])
        for name in ("started", "finished", "aborted", "failed")
    )
    assert begun == sum(ended)
    assert kw.current_device().is_simulated or begun > 50


SCHEMA = {
    "type": "object", "required": ["river", "km"], "additionalProperties": False,
    "properties": {"river": {"enum": ["Rhine", "Po"]}, "km": {"type": "integer", "minimum": 1}},
}  # fmt: skip


def test_wrong_requests_leave_a_neighbours_tokens_as_they_are(engine):
    """Ids, texts and log-probabilities of a stream, byte for byte."""
    body = {"prompt": PROMPT, **GREEDY, "logprobs": 2, "return_token_ids": True}
    found = []

    def send(client):
        for path, fields, status, *_ in WRONG:
            sent = fields if isinstance(fields, bytes) else {**RIGHT.get(path, {}), **fields}
            found.append((client.post(path, sent)[0], status))

    with serving(engine, limits=Limits(body=100_000, messages=20)) as client:
        alone = choices_of(client, body)
        thread = threading.Thread(target=send, args=(client,))
        thread.start()
        beside = [choices_of(client, body)]
        while thread.is_alive():
            beside.append(choices_of(client, body))
    assert len(found) == len(WRONG) and all(made == wanted for made, wanted in found)
    assert len(alone) == 12 and all(each == alone for each in beside)
    wait_for(lambda: is_empty(engine))


def choices_of(client, body):
    *events, done = client.events("/v1/completions", body)
    assert done == "[DONE]"
    return [event["choices"] for event in events]


def test_answers_have_the_schema_that_was_asked_for(client, engine):
    form = {"type": "json_schema", "json_schema": {"name": "river", "schema": SCHEMA}}
    body = {
        "messages": [{"role": "user", "content": "A river"}], "max_tokens": 100,
        "response_format": form,
    }  # fmt: skip
    status, whole = client.post("/v1/chat/completions", body)
    choice = whole["choices"][0]
    assert status == 200 and choice["finish_reason"] in ("stop", "length")
    if choice["finish_reason"] == "stop":
        jsonschema.validate(json.loads(choice["message"]["content"]), SCHEMA)
    else:
        assert choice["message"]["content"].lstrip().startswith("{")
    *events, _ = client.events("/v1/chat/completions", {**body, "seed": 1, "temperature": 0})
    text = "".join(e["choices"][0]["delta"].get("content") or "" for e in events)
    assert text.lstrip().startswith("{") and '"river"' in text
    status, found = client.post(
        "/v1/responses",
        {"input": "A river", "max_output_tokens": 100, "text": {"format": {**form["json_schema"],
         "type": "json_schema"}}},
    )  # fmt: skip
    assert status == 200 and found["output"][0]["content"][0]["text"].lstrip().startswith("{")
    form["json_schema"]["schema"] = {"type": "object", "minProperties": "many"}
    status, answer = client.post("/v1/chat/completions", body)
    assert status == 400 and answer["error"]["param"] == "response_format"
    wait_for(lambda: is_empty(engine))


def test_a_model_without_a_tokenizer_takes_and_gives_tokens(tmp_path, expected, engine):
    for name in ("config.json", "model.safetensors"):
        shutil.copy(pathlib.Path(TINY) / name, tmp_path)
    tokens = engine.model.tokenizer.encode(PROMPT)
    with llm.Engine(llm.load(tmp_path), max_rows=2) as bare, serving(bare) as client:
        body = {"prompt": tokens, "return_token_ids": True, **GREEDY}
        status, answer = client.post("/v1/completions", body)
        assert (status, answer["choices"][0]["token_ids"]) == (200, expected.tokens)
        for path, more, field in (
            ("/v1/completions", {"prompt": "a"}, "prompt"),
            ("/v1/completions", {"prompt": tokens, "stop": "a"}, "stop"),
            ("/v1/completions", {"prompt": tokens, "bad_words": ["a"]}, "bad_words"),
            ("/v1/completions", {"prompt": tokens, "guided_regex": "a"}, "guided_regex"),
            ("/tokenize", {"prompt": "a"}, "prompt"),
        ):
            status, answer = client.post(path, more)
            error = answer["error"]
            assert (status, error["param"]) == (400, field) and "tokenizer" in error["message"]


def test_short_bodies_wake_no_thread(engine):
    """Each wake of a thread costs more than to read a short body and to queue its request."""
    writer, sizes = WritingEngine(engine.model, "x"), []
    with serving(writer) as client:
        in_thread = client.server.in_thread

        def counted(size, work):
            sizes.append(size)
            return in_thread(size, work)

        client.server.in_thread = counted
        chat = {"messages": [{"role": "user", "content": "Hi"}]}
        for path, body, wakes in (
            ("/v1/completions", {"prompt": [1, 2, 3]}, 0), ("/v1/chat/completions", chat, 0),
            ("/v1/completions", {"prompt": "a", "stream": True}, 0),
            ("/v1/completions", {"prompt": [[1], [2]]}, 1),
            ("/v1/completions", {"prompt": ["a", "b"]}, 1),
            ("/v1/completions", {"prompt": [1], "n": 2}, 1),
            ("/v1/completions", {"prompt": [1, 2] * 200}, 1),
            ("/v1/completions", {"prompt": "a", "echo": True}, 1),
            ("/v1/chat/completions", {**chat, "return_token_ids": True, "n": 2}, 1),
            ("/v1/completions", {"prompt": "a", "user": "u" * 40_000}, 2),
        ):  # fmt: skip
            sizes.clear()
            status, _, content = client.ask("POST", path, {**body, "max_tokens": 4})
            assert (status, len(sizes)) == (200, wakes), (body, content)
