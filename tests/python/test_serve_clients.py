"""The server, as OpenAI's own client sees it."""

import asyncio
import json

import openai
import pytest
from serving import TINY, WritingEngine, serving

from kernwright import llm
from kernwright.serve.http.keys import Keys

HI = [{"role": "user", "content": "Hi"}]
KEY = "a-key-of-tests"
TOOLS = [{
    "type": "function",
    "function": {"name": "add", "parameters": {"type": "object", "properties": {}}},
}]  # fmt: skip
CALL = '<tool_call>{"name": "add", "arguments": {"a": 1, "b": "two"}}</tool_call>'


@pytest.fixture(scope="module")
def engine():
    return WritingEngine(llm.load(TINY))


@pytest.fixture(scope="module")
def server(engine):
    with serving(engine, keys=Keys({"tests": KEY})) as client:
        yield client


@pytest.fixture
def client(server):
    with openai.OpenAI(base_url=server.url, api_key=KEY, max_retries=0) as client:
        yield client


def test_models(client):
    assert [each.id for each in client.models.list()] == ["tiny"]
    assert client.models.retrieve("tiny").owned_by == "kernwright"


def test_chat(client, engine):
    engine.text = "<think>so</think>Hello"
    made = client.chat.completions.create(model="tiny", messages=HI)
    assert made.choices[0].message.content == "Hello"
    assert made.choices[0].message.reasoning_content == "so"
    assert made.usage.total_tokens == made.usage.prompt_tokens + made.usage.completion_tokens


def test_chat_streams(client, engine):
    engine.text = "Hello there"
    stream = client.chat.completions.create(
        model="tiny", messages=HI, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "Hello there"
    assert chunks[-1].usage.completion_tokens > 0 and not chunks[-1].choices


def test_the_stream_helper_gathers_calls(client, engine):
    engine.text = CALL
    with client.chat.completions.stream(model="tiny", messages=HI, tools=TOOLS) as stream:
        for _ in stream:
            pass
        made = stream.get_final_completion()
    call = made.choices[0].message.tool_calls[0]
    assert made.choices[0].finish_reason == "tool_calls"
    assert json.loads(call.function.arguments) == {"a": 1, "b": "two"}


def test_the_answer_of_a_tool_goes_back(client, engine):
    engine.text = CALL
    made = client.chat.completions.create(model="tiny", messages=HI, tools=TOOLS)
    message = made.choices[0].message
    answer = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "3"}
    engine.text = "It is 3"
    with pytest.raises(openai.BadRequestError, match="the roles are"):  # of the template
        client.chat.completions.create(model="tiny", messages=[*HI, message, answer])


def test_completions(client, engine):
    engine.text = "a b c"
    made = client.completions.create(model="tiny", prompt="x", stop="c")
    assert made.choices[0].text == "a b " and made.choices[0].stop_reason == "c"
    chunks = client.completions.create(model="tiny", prompt="x", stream=True)
    assert "".join(each.choices[0].text for each in chunks) == "a b c"


def test_the_asynchronous_client(server, engine):
    engine.text = "Hello there"

    async def several():
        async with openai.AsyncOpenAI(base_url=server.url, api_key=KEY) as client:

            async def one():
                stream = await client.chat.completions.create(
                    model="tiny", messages=HI, stream=True
                )
                return "".join([c.choices[0].delta.content or "" async for c in stream])

            return await asyncio.gather(*[one() for _ in range(8)])

    assert asyncio.run(several()) == ["Hello there"] * 8


def test_errors_are_those_of_the_client(server, client, engine):
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="none", messages=HI)
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="tiny", messages=HI, temperature=3)
    assert caught.value.param == "temperature" and caught.value.code == "out_of_range"
    wrong = openai.OpenAI(base_url=server.url, api_key="wrong-key", max_retries=0)
    with wrong, pytest.raises(openai.AuthenticationError):
        wrong.models.list()
    engine.refusal = llm.QueueFull("8 wait", retry_after=1)
    try:
        with pytest.raises(openai.RateLimitError):
            client.chat.completions.create(model="tiny", messages=HI)
    finally:
        engine.refusal = None


def test_an_error_within_a_stream_is_raised(client, engine):
    engine.text, engine.seconds = "a b c d e f g h i j", 0.02
    stream = client.chat.completions.create(model="tiny", messages=HI, stream=True)
    next(stream)
    engine.error = llm.EngineClosed("its thread has ended")
    try:
        with pytest.raises(openai.APIError, match="its thread has ended"):
            list(stream)
    finally:
        engine.error, engine.seconds = None, 0.0


def test_responses(client, engine):
    engine.text = "<think>so</think>Hello"
    made = client.responses.create(model="tiny", input="Hi", instructions="Be brief.")
    assert made.output_text == "Hello" and made.status == "completed"
    assert [each.type for each in made.output] == ["reasoning", "message"]
    assert made.usage.total_tokens == made.usage.input_tokens + made.usage.output_tokens
    cut = client.responses.create(model="tiny", input="Hi", max_output_tokens=2)
    assert cut.status == "incomplete" and cut.incomplete_details.reason == "max_output_tokens"


def test_responses_stream(client, engine):
    engine.text = f"<think>so</think>On it.{CALL}"
    tools = [{"type": "function", **TOOLS[0]["function"], "strict": False}]
    with client.responses.stream(model="tiny", input=HI, tools=tools) as stream:
        events = list(stream)
        made = stream.get_final_response()
    assert [each.sequence_number for each in events] == list(range(len(events)))
    kinds = [each.type for each in events]
    assert kinds[0] == "response.created" and kinds[-1] == "response.completed"
    assert kinds.count("response.output_item.added") == 3
    assert kinds.count("response.output_item.done") == 3
    assert made.output_text == "On it."
    call = made.output[-1]
    assert call.name == "add" and json.loads(call.arguments) == {"a": 1, "b": "two"}
    text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    assert text == "On it."


def test_the_items_of_a_response_go_back(client, engine):
    engine.text = "x"
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
        {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a": 1}'},
        {"type": "function_call_output", "call_id": "c1", "output": "1"},
    ]
    with pytest.raises(openai.BadRequestError, match="the roles are"):  # the template has no tools
        client.responses.create(model="tiny", input=items)
    assert client.responses.create(model="tiny", input=items[:2]).output_text == "x"
