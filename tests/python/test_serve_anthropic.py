"""Anthropic's interface, by its published form of bodies and events, and as its client sees it."""

import json

import pytest
from serving import TINY, WritingEngine, serving

from kernwright import llm

ASK = {"model": "tiny", "max_tokens": 300, "messages": [{"role": "user", "content": "Hi"}]}
CALL = '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>'
TOOL = {"name": "add", "description": "adds", "input_schema": {"type": "object"}}


@pytest.fixture(scope="module")
def engine():
    return WritingEngine(llm.load(TINY))


@pytest.fixture(scope="module")
def client(engine):
    with serving(engine) as client:
        yield client


def events_of(client, body):
    """Names and data of the events of a stream."""
    status, _, content = client.ask("POST", "/v1/messages", {**body, "stream": True})
    assert status == 200
    made = []
    for block in content.decode().split("\n\n")[:-1]:
        name, data = block.split("\n")
        made.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {made[-1]['type']}"
    return made


@pytest.mark.parametrize(
    ("text", "content", "reason"),
    [
        ("Hello", [{"type": "text", "text": "Hello"}], "end_turn"),
        (
            f"<think>so</think>On it.{CALL}",
            [
                {"type": "thinking", "thinking": "so", "signature": ""},
                {"type": "text", "text": "On it."},
                {"type": "tool_use", "name": "add", "input": {"a": 1}},
            ],
            "tool_use",
        ),
        ("", [], "end_turn"),
    ],
)
def test_messages(client, engine, text, content, reason):
    engine.text = text
    body = {**ASK, "tools": [TOOL]}
    status, whole = client.post("/v1/messages", body)
    assert status == 200 and whole["stop_reason"] == reason and whole["role"] == "assistant"
    for block in whole["content"]:
        block.pop("id", None)
    assert whole["content"] == content

    first, *events, delta, last = events_of(client, body)
    assert first["type"] == "message_start" and first["message"]["content"] == []
    assert first["message"]["usage"]["input_tokens"] == whole["usage"]["input_tokens"]
    assert delta["delta"]["stop_reason"] == reason and last == {"type": "message_stop"}
    assert delta["usage"]["output_tokens"] == whole["usage"]["output_tokens"]
    texts, ended = {}, []
    for event in events:
        if event["type"] == "content_block_start":
            assert event["index"] == len(texts)
            texts[event["index"]] = ""
        elif event["type"] == "content_block_delta":
            kind, *values = event["delta"].values()
            assert kind in ("text_delta", "thinking_delta", "input_json_delta")
            texts[event["index"]] += values[0]
        else:
            ended.append(event["index"])
    found = [
        each.get("text") or each.get("thinking") or json.dumps(each["input"]) for each in content
    ]
    assert list(texts.values()) == found and ended == list(range(len(content)))


def test_stops_and_limits(client, engine):
    engine.text = "one two three"
    _, whole = client.post("/v1/messages", {**ASK, "stop_sequences": ["two"]})
    assert whole["stop_reason"] == "stop_sequence" and whole["stop_sequence"] == "two"
    assert whole["content"] == [{"type": "text", "text": "one "}]
    _, whole = client.post("/v1/messages", {**ASK, "max_tokens": 2})
    assert whole["stop_reason"] == "max_tokens" and whole["usage"]["output_tokens"] == 2


def test_blocks_become_messages(client, engine):
    engine.text = "x"
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"},
                                          {"type": "text", "text": "Well"}]},
    ]  # fmt: skip
    body = {**ASK, "messages": messages, "system": [{"type": "text", "text": "Be brief"}]}
    status, whole = client.post("/v1/messages", body)
    plain = [
        {"role": "system", "content": "Be brief"}, {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Well"},
    ]  # fmt: skip
    _, found = client.post("/tokenize", {"messages": plain})
    assert status == 200 and whole["usage"]["input_tokens"] == found["count"]


def test_tokens_are_counted(client, engine):
    engine.text = "x"
    before = engine.requests
    status, counted = client.post(
        "/v1/messages/count_tokens", {"model": "tiny", "messages": ASK["messages"], "system": "s"}
    )
    assert status == 200 and engine.requests == before
    _, whole = client.post("/v1/messages", {**ASK, "system": "s"})
    assert counted == {"input_tokens": whole["usage"]["input_tokens"]}
    status, wrong = client.post("/v1/messages/count_tokens", {"max_tokens": 3, **ASK})
    assert status == 400 and wrong["error"]["param"] == "max_tokens"


def test_errors_have_the_type_and_the_id_that_clients_read(client):
    status, headers, content = client.ask("POST", "/v1/messages", {**ASK, "model": "none"})
    told = json.loads(content)
    assert status == 404 and told["type"] == "error"
    assert told["error"]["type"] == "not_found_error"
    assert told["request_id"] == headers["request-id"] == headers["x-request-id"]


def test_output_config_has_the_form_of_an_answer(client, engine):
    engine.text = "x"
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    config = {"effort": "low", "format": {"type": "json_schema", "schema": schema}}
    assert client.post("/v1/messages", {**ASK, "output_config": config})[0] == 200
    assert engine.options[-1]["schema"] == schema
    config["format"] = {"type": "xml"}
    assert client.post("/v1/messages", {**ASK, "output_config": config})[0] == 400


def test_the_client_of_anthropic(client, engine):
    anthropic = pytest.importorskip("anthropic")  # of the extra `test`
    url = client.url.removesuffix("/v1")
    with anthropic.Anthropic(base_url=url, api_key="any", max_retries=0) as own:
        engine.text = "Hello"
        assert own.messages.create(**ASK).content[0].text == "Hello"
        engine.text = f"<think>so</think>On it.{CALL}"
        with own.messages.stream(**ASK, tools=[TOOL]) as stream:
            texts = list(stream.text_stream)
            made = stream.get_final_message()
        assert "".join(texts) == "On it." and made.stop_reason == "tool_use"
        assert [each.type for each in made.content] == ["thinking", "text", "tool_use"]
        assert made.content[-1].input == {"a": 1}
        counted = own.messages.count_tokens(model="tiny", messages=ASK["messages"])
        assert counted.input_tokens > 0
        assert [each.id for each in own.models.list()] == ["tiny"]
        with pytest.raises(anthropic.NotFoundError) as caught:
            own.messages.create(**{**ASK, "model": "none"})
        assert caught.value.type == "not_found_error" and caught.value.request_id
