"""/v1/responses: events in OpenAI's order and form, and items of answers that are cut."""

import json

import pydantic
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from serving import TINY, WritingEngine, serving

from kernwright import llm

RESPOND = "/v1/responses"
TOOLS = [{"type": "function", "name": "add", "parameters": {"type": "object"}, "strict": False}]
CALL = '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>'
EVENT = pydantic.TypeAdapter(ResponseStreamEvent)


@pytest.fixture(scope="module")
def engine():
    return WritingEngine(llm.load(TINY))


@pytest.fixture(scope="module")
def client(engine):
    with serving(engine) as client:
        yield client


def events_of(client, body):
    """The events of a stream, each as OpenAI's types have it."""
    status, _, content = client.ask("POST", RESPOND, {**body, "stream": True})
    assert status == 200, content
    made = []
    for block in content.decode().split("\n\n")[:-1]:
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        EVENT.validate_python(event)
        made.append(event)
    assert [event["sequence_number"] for event in made] == list(range(len(made)))
    return made


def kinds(events):
    """Types of events in their order, equal ones beside each other once."""
    names = [event["type"].removeprefix("response.") for event in events]
    return [name for i, name in enumerate(names) if i == 0 or names[i - 1] != name]


def test_events_have_the_official_order(client, engine):
    engine.text = f"<think>so be it</think>On it.{CALL}"
    events = events_of(client, {"input": "Hi", "tools": TOOLS})
    assert kinds(events) == [
        "created", "in_progress",
        "output_item.added", "content_part.added", "reasoning_text.delta", "reasoning_text.done",
        "content_part.done", "output_item.done",
        "output_item.added", "content_part.added", "output_text.delta", "output_text.done",
        "content_part.done", "output_item.done",
        "output_item.added", "function_call_arguments.delta", "function_call_arguments.done",
        "output_item.done", "completed",
    ]  # fmt: skip
    items, parts = {}, {}
    for event in events:  # as a client gathers them
        kind, place = event["type"], event.get("output_index")
        if kind == "response.output_item.added":
            items[place] = event["item"]
            assert event["item"]["status"] == "in_progress"
            assert not event["item"].get("content") and not event["item"].get("arguments")
        elif kind == "response.content_part.added":
            assert event["part"]["text"] == ""
            parts[place] = ""
        elif kind.endswith("_text.delta"):
            parts[place] += event["delta"]
        elif kind in ("response.output_text.done", "response.reasoning_text.done"):
            assert event["text"] == parts[place]
        elif kind == "response.content_part.done":
            assert event["part"]["text"] == parts[place]
        elif kind == "response.output_item.done":
            assert event["item"]["status"] == "completed"
            items[place] = event["item"]
    last = events[-1]["response"]
    assert last["output"] == list(items.values()) and last["incomplete_details"] is None
    whole = client.post(RESPOND, {"input": "Hi", "tools": TOOLS})[1]
    Response.model_validate(whole)
    assert [e["type"] for e in whole["output"]] == ["reasoning", "message", "function_call"]
    for found, streamed in zip(whole["output"], last["output"], strict=True):
        same = ("type", "status", "content", "name", "arguments")
        assert [found.get(n) for n in same] == [streamed.get(n) for n in same]


@pytest.mark.parametrize(
    ("text", "most", "statuses"),
    [
        ("word " * 30, 4, ["incomplete"]),
        ("<think>one two three four five six seven eight", 9, ["incomplete"]),
        (f"On it.{CALL}", 29, ["completed", "incomplete"]),
        ("Hello", 40, ["completed"]),
    ],
)
def test_what_is_cut_is_incomplete(client, engine, text, most, statuses):
    engine.text = text
    body = {"input": "Hi", "tools": TOOLS, "max_output_tokens": most}
    cut = statuses[-1] == "incomplete"
    whole = client.post(RESPOND, body)[1]
    Response.model_validate(whole)
    events = events_of(client, body)
    for made in (whole, events[-1]["response"]):
        assert made["status"] == ("incomplete" if cut else "completed")
        assert made["incomplete_details"] == ({"reason": "max_output_tokens"} if cut else None)
        assert [item["status"] for item in made["output"]] == statuses
    assert kinds(events)[-1] == whole["status"]
    ended = [e["item"]["status"] for e in events if e["type"] == "response.output_item.done"]
    assert ended == statuses


def test_an_answer_without_text_has_all_events_but_items(client, engine):
    engine.text = ""
    assert kinds(events_of(client, {"input": "Hi"})) == ["created", "in_progress", "completed"]


def test_the_format_is_told(client, engine):
    engine.text = "5"
    form = {"type": "json_schema", "name": "n", "schema": {"type": "integer"}}
    _, made = client.post(RESPOND, {"input": "Hi", "text": {"format": form}})
    assert made["text"]["format"] == form


def test_a_failure_within_a_stream_has_its_events(client, engine):
    engine.text, engine.seconds = "a b c d e f g h i j", 0.05
    connection = client.connect()
    connection.request("POST", RESPOND, json.dumps({"input": "Hi", "stream": True}))
    answer = connection.getresponse()
    assert answer.readline() == b"event: response.created\n"
    engine.error = llm.EngineClosed("its thread has ended")
    try:
        rest = answer.read().decode()
    finally:
        engine.error, engine.seconds = None, 0.0
        connection.close()
    blocks = [block.split("\n") for block in rest.split("\n\n") if block]
    error, failed = (json.loads(lines[-1].removeprefix("data: ")) for lines in blocks[-2:])
    EVENT.validate_python(error)
    EVENT.validate_python(failed)
    assert error["type"] == "error" and "its thread has ended" in error["message"]
    assert error["code"] == "engine_stopped" and error["param"] is None
    assert failed["type"] == "response.failed" and failed["response"]["status"] == "failed"
    assert failed["sequence_number"] == error["sequence_number"] + 1
    assert failed["response"]["error"]["code"] == "server_error"
