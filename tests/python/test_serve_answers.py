"""Chats over HTTP with texts that a test chooses: reasoning, tool calls, stop strings, usage."""

import asyncio
import json
import math
import types

import pytest
from serving import TINY, WritingEngine, serving

from kernwright import llm
from kernwright.serve.app import make_app
from kernwright.serve.model_slot import ModelSlot
from kernwright.serve.served import Served
from kernwright.serve.server import Server
from kernwright.serve.texts.logprobs import CompletionLogprobs, chat_logprobs

TOOL = {
    "type": "function",
    "function": {
        "name": "add",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
    },
}
ASK = {"messages": [{"role": "user", "content": "Hi"}]}


@pytest.fixture(scope="module")
def engine():
    return WritingEngine(llm.load(TINY))


@pytest.fixture(scope="module")
def client(engine):
    with serving(engine) as client:
        yield client


def gathered(events):
    """The message that the deltas of a stream's first choice make, and its finish reasons."""
    made, calls, reasons = {"content": "", "reasoning_content": ""}, [], []
    for event in events:
        for choice in event["choices"]:
            delta = choice["delta"]
            for name in ("content", "reasoning_content"):
                made[name] += delta.get(name) or ""
            for call in delta.get("tool_calls", ()):
                if "id" in call:
                    assert call["index"] == len(calls)
                    calls.append({"id": call["id"], "name": call["function"]["name"], "text": ""})
                calls[call["index"]]["text"] += call["function"]["arguments"]
            if choice["finish_reason"] is not None:
                reasons.append(choice["finish_reason"])
    return made, calls, reasons


@pytest.mark.parametrize(
    ("text", "content", "reasoning", "calls"),
    [
        ("Hello there", "Hello there", "", []),
        ("", "", "", []),
        ("<think>\nHm, so.\n</think>\n\n42", "42", "Hm, so.", []),
        ("caf\u00e9 \U0001f600\u4e16", "caf\u00e9 \U0001f600\u4e16", "", []),
        (
            'On it.<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>',
            "On it.", "", [("add", {"a": 1})],
        ),
        (
            '<tool_call>{"name": "add", "arguments": {}}</tool_call>'
            '<tool_call>{"name": "add", "arguments": {"a": 2}}</tool_call>',
            None, "", [("add", {}), ("add", {"a": 2})],
        ),
        ("<tool_call>no call", "<tool_call>no call", "", []),
    ],
)  # fmt: skip
def test_streams_and_whole_answers_have_the_same_parts(
    client, engine, text, content, reasoning, calls
):
    engine.text = text
    body = {**ASK, "tools": [TOOL]}
    status, whole = client.post("/v1/chat/completions", body)
    assert status == 200
    choice = whole["choices"][0]
    message = choice["message"]
    assert message["content"] == content
    assert message.get("reasoning_content", "") == reasoning
    found = [each["function"] for each in message.get("tool_calls", ())]
    assert [(f["name"], json.loads(f["arguments"])) for f in found] == calls
    reason = "tool_calls" if calls else "stop"
    assert choice["finish_reason"] == reason

    options = {"stream_options": {"include_usage": True}}
    *events, last, done = client.events("/v1/chat/completions", {**body, **options})
    assert done == "[DONE]" and last["choices"] == [] and last["usage"] == whole["usage"]
    assert all(event["usage"] is None for event in events)
    assert events[0]["choices"][0]["delta"]["role"] == "assistant"
    assert len({event["id"] for event in events}) == 1
    made, streamed, reasons = gathered(events)
    assert made["content"] == (content or "") and made["reasoning_content"] == reasoning
    assert [(call["name"], json.loads(call["text"])) for call in streamed] == calls
    assert reasons == [reason]


def test_each_token_of_text_is_an_event_and_none_is_empty(client, engine):
    engine.text = "import os, sys, re"
    count = len(engine.model.tokenizer.encode(engine.text, add_special_tokens=False))
    *events, _ = client.events("/v1/chat/completions", ASK)
    shown = [event["choices"][0]["delta"].get("content") for event in events]
    assert len(events) == count + 1 and shown[-1] is None and all(shown[:-1])
    assert events[-1]["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("chat_format", ["hermes", None])
def test_stop_strings_count_in_the_content_alone(engine, chat_format):
    engine.text = "<think>a END b</think>one END two" if chat_format else "one END two"
    with serving(engine, chat_format=chat_format) as client:
        for stop in ("END", ["xyz", "END"]):
            *events, done = client.events("/v1/chat/completions", {**ASK, "stop": stop})
            made, _, reasons = gathered(events)
            assert made["content"] == "one " and reasons == ["stop"] and done == "[DONE]"
            assert made["reasoning_content"] == ("a END b" if chat_format else "")
    assert engine.running == 0


@pytest.mark.parametrize(("path", "body"), [
    ("/v1/chat/completions", {**ASK, "stream_options": {"include_usage": True}}),
    ("/v1/completions", {"prompt": "a", "stream_options": {"include_usage": True}}),
    ("/v1/responses", {"input": "a"}), ("/v1/messages", {**ASK, "max_tokens": 100}),
])  # fmt: skip
def test_what_ends_a_stream_is_one_write(engine, path, body):
    """The last token's event, the usage and [DONE]: nothing waits between them."""
    engine.text = "import os"
    whole = asyncio.run(writes(engine, path, {**body, "stream": True}))
    assert whole[0]["type"] == "http.response.start" and whole[0]["status"] == 200
    blocks = [each["body"].decode() for each in whole[1:]]
    assert [each["more_body"] for each in whole[1:]] == [True] * (len(blocks) - 1) + [False]
    assert all(block.endswith("\n\n") for block in blocks)
    *_, last = blocks
    if path in ("/v1/chat/completions", "/v1/completions"):
        assert [block.count("data: ") for block in blocks] == [1] * (len(blocks) - 1) + [3]
        stop, usage, done = last.split("\n\n")[:-1]
        assert '"finish_reason":"stop"' in stop and '"completion_tokens":3' in usage
        assert done == "data: [DONE]"
    else:
        assert '"completed"' in last or "message_stop" in last
        assert last.count("data: ") > 2


async def writes(engine, path, body):
    """What the application sends for a request."""
    served = Served("tiny", engine.model, engine, "hermes")
    server, sent = Server({"tiny": ModelSlot.filled(served)}), []
    parts = iter([{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}])
    left = asyncio.Event()

    async def receive():
        return next(parts, None) or await left.wait()

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": path, "headers": [], "query_string": b""}
    await make_app(server)(scope, receive, send)
    return sent


def test_texts_of_several_choices_end_once_each(client, engine):
    engine.text = "a b c"
    body = {**ASK, "n": 3, "stop": "c"}
    status, whole = client.post("/v1/chat/completions", body)
    assert status == 200 and [each["index"] for each in whole["choices"]] == [0, 1, 2]
    assert {each["message"]["content"] for each in whole["choices"]} == {"a b "}
    *events, _ = client.events("/v1/chat/completions", body)
    ends = [c["index"] for e in events for c in e["choices"] if c["finish_reason"]]
    assert sorted(ends) == [0, 1, 2]


def test_a_length_is_no_tool_call(client, engine):
    engine.text = '<tool_call>{"name": "add", "arguments": {"a": 12345678'
    _, whole = client.post("/v1/chat/completions", {**ASK, "tools": [TOOL], "max_tokens": 12})
    assert whole["choices"][0]["finish_reason"] == "length"
    assert whole["usage"]["completion_tokens"] == 12


def test_prompts_have_the_messages_of_clients(client, engine):
    """Parts, developers, nulls, calls with arguments in JSON: all become what templates take."""
    engine.text = "x"
    messages = [
        {"role": "developer", "content": [{"type": "text", "text": "a"}]},
        {"role": "user", "content": [{"type": "text", "text": "b"}, {"type": "text", "text": "c"}]},
        {"role": "assistant", "content": None, "refusal": None},
    ]
    _, found = client.post("/tokenize", {"messages": messages})
    _, plain = client.post(
        "/tokenize",
        {"messages": [
            {"role": "system", "content": "a"}, {"role": "user", "content": "b\nc"},
            {"role": "assistant", "content": ""},
        ]},
    )  # fmt: skip
    assert found["tokens"] == plain["tokens"] and found["count"] == len(plain["tokens"])
    status, whole = client.post("/v1/chat/completions", {"messages": messages})
    assert status == 200 and whole["usage"]["prompt_tokens"] == found["count"]


NOT_OF_RESPONSES = ("messages", "max_tokens", "max_completion_tokens", "logprobs")


def test_options_reach_the_engine(client, engine):
    engine.text = "x"
    body = {
        **ASK, "max_completion_tokens": 5, "max_tokens": 7, "temperature": 0, "top_p": 0.5,
        "top_k": -1, "min_p": 0.1, "repetition_penalty": 1.5, "presence_penalty": -1, "seed": 7,
        "frequency_penalty": 2, "ignore_eos": True, "min_tokens": 2, "stop_token_ids": [4],
        "logit_bias": {"7": -100}, "logprobs": None, "user": "u", "metadata": {"a": "b"},
        "unknown": None,
    }  # fmt: skip
    assert client.post("/v1/chat/completions", body)[0] == 200
    assert engine.options[-1] == {
        "max_tokens": 5, "temperature": 0.0, "top_p": 0.5, "top_k": 0, "min_p": 0.1,
        "repetition_penalty": 1.5, "presence_penalty": -1.0, "frequency_penalty": 2.0, "seed": 7,
        "ignore_eos": True, "min_tokens": 2, "stop_tokens": [4],
        "logit_bias": {7: -100.0},
    }  # fmt: skip
    expected = engine.options[-1]
    more = {name: value for name, value in body.items() if name not in NOT_OF_RESPONSES}
    respond = {"input": ASK["messages"], "max_output_tokens": 5, "stop": ["zzz"]} | more
    assert client.post("/v1/responses", respond)[0] == 200
    assert engine.options[-1] == expected  # stop strings are looked for beside the engine
    assert client.post("/v1/chat/completions", ASK)[0] == 200
    told = engine.options[-1]
    assert told["temperature"] == 1.0 and told["top_p"] == 1.0
    assert told["max_tokens"] == 512 - client.post("/tokenize", ASK)[1]["count"]


def test_log_probabilities_are_numbers_that_json_has(engine):
    served = Served("tiny", engine.model, engine)
    lowest = -9999.0
    found = types.SimpleNamespace(
        logprob=-math.inf, top=[(5, -0.25), (6, -math.inf), (7, math.nan), (8, -1e30)]
    )
    made = chat_logprobs(served, 6, found)
    assert made["logprob"] == lowest
    assert [each["logprob"] for each in made["top_logprobs"]] == [-0.25, *[lowest] * 3]
    completion = CompletionLogprobs(served)
    completion.add(6, found, 0)
    told = completion.taken()
    assert told["token_logprobs"] == [lowest] and min(told["top_logprobs"][0].values()) == lowest
    assert json.loads(json.dumps([made, told], allow_nan=False)) == [made, told]


def test_reasoning_may_be_left_out(client, engine):
    engine.text = "<think>Hm, so.</think>42"
    for told in (True, False):
        body = {**ASK, "include_reasoning": told}
        message = client.post("/v1/chat/completions", body)[1]["choices"][0]["message"]
        assert message.get("reasoning_content", "") == ("Hm, so." if told else "")
        *events, _ = client.events("/v1/chat/completions", body)
        made, _, reasons = gathered(events)
        assert made == {"content": "42", "reasoning_content": "Hm, so." if told else ""}
        assert message["content"] == "42" and reasons == ["stop"]
