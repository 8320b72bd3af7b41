"""Wrong requests: each gets an answer that names field and bound, and nothing else happens."""

import json

import pytest
from serving import TINY, WritingEngine, serving

from kernwright import llm
from kernwright.errors import OutOfMemory
from kernwright.serve.http.limits import Limits

CHAT, COMPLETE = "/v1/chat/completions", "/v1/completions"
RESPOND, MESSAGE = "/v1/responses", "/v1/messages"
TOOLS = [{"type": "function", "function": {"name": "add"}}]
HI = [{"role": "user", "content": "Hi"}]


@pytest.fixture(scope="module")
def engine():
    return WritingEngine(llm.load(TINY), "x")


@pytest.fixture(scope="module")
def client(engine):
    with serving(engine, limits=Limits(body=100_000, messages=20)) as client:
        yield client


def deep(depth):
    return b'{"messages": [{"role": "user", "content": ' + b"[" * depth + b"]" * depth + b"}]}"


def nested(depth):
    value = 1
    for _ in range(depth):
        value = {"a": value}
    return value


WRONG = [
    # path, body (a dict adds to a right one), status, field, a part of the message
    (CHAT, {"temperature": 2.5}, 400, "temperature", "from 0 to 2, got 2.5"),
    (CHAT, {"temperature": "hot"}, 400, "temperature", "got `str`"),
    (CHAT, {"temperature": -1}, 400, "temperature", "got -1"),
    (CHAT, {"top_p": 0}, 400, "top_p", "above 0"),
    (CHAT, {"min_p": 1.5}, 400, "min_p", "from 0 to 1"),
    (CHAT, {"top_k": 10**30}, 400, "top_k", "got 1000"),
    (CHAT, {"top_k": 1.5}, 400, "top_k", "got `float`"),
    (CHAT, {"n": 0}, 400, "n", "from 1 to 16, got 0"),
    (CHAT, {"n": 17}, 400, "n", "from 1 to 16, got 17"),
    (CHAT, {"n": True}, 400, "n", "got `bool`"),
    (CHAT, {"max_tokens": 0}, 400, "max_tokens", "got 0"),
    (CHAT, {"max_tokens": -5}, 400, "max_tokens", "got -5"),
    (CHAT, {"max_tokens": 1e9}, 400, "max_tokens", "got `float`"),
    (CHAT, {"seed": 2**64}, 400, "seed", "got 18446744073709551616"),
    (CHAT, {"presence_penalty": 3}, 400, "presence_penalty", "from -2 to 2"),
    (CHAT, {"repetition_penalty": 0}, 400, "repetition_penalty", "above 0"),
    (CHAT, {"stop": ["a"] * 17}, 400, "stop", "16 strings at most, got 17"),
    (CHAT, {"stop": "a" * 1025}, 400, "stop", "1024 characters at most, got 1025"),
    (CHAT, {"stop": [1]}, 400, "stop[0]", "got `int`"),
    (CHAT, {"stop_token_ids": [-1]}, 400, "stop_token_ids", "got -1"),
    (CHAT, {"logit_bias": {"5": 101}}, 400, "logit_bias", "from -100 to 100, got 101"),
    (CHAT, {"logit_bias": {"a": 1}}, 400, "logit_bias", "as keys, got a"),
    (CHAT, {"logit_bias": {str(i): 1 for i in range(301)}}, 400, "logit_bias", "300 tokens"),
    (CHAT, {"top_logprobs": 3}, 400, None, "needs logprobs"),
    (CHAT, {"logprobs": True, "top_logprobs": 21}, 400, "top_logprobs", "from 0 to 20"),
    (CHAT, {"temprature": 1}, 400, "temprature", "did you mean temperature?"),
    (CHAT, {"model": "gpt-4"}, 404, "model", "there is tiny"),
    (CHAT, {"messages": []}, 400, "messages", "one at least"),
    (CHAT, {"messages": HI * 21}, 400, "messages", "20 at most, got 21"),
    (CHAT, {"messages": None}, 400, "messages", "got `null`"),
    (CHAT, {"messages": [{"role": "robot", "content": ""}]}, 400, "messages[0].role", "robot"),
    (CHAT, {"messages": [{"role": "user"}]}, 400, "messages[0].content", "missing"),
    (CHAT, {"messages": [{"role": "user", "content": 5}]}, 400, "messages[0].content", "got 5"),
    (CHAT, {"messages": [{"role": "tool", "content": ""}]}, 400, "messages[0].tool_call_id", ""),
    (
        CHAT,
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
        400, "messages[0].content[0].type", "only parts of text",
    ),
    (
        CHAT, {"messages": [{"role": "assistant", "content": "", "tool_calls": [{}]}]},
        400, "messages[0].tool_calls[0].function", "",
    ),
    (CHAT, {"tools": [{"type": "function"}]}, 400, "tools[0]", ""),
    (CHAT, {"tools": [{"type": "function", "function": {"name": ""}}]}, 400,
     "tools[0].function.name", ""),
    (CHAT, {"tools": TOOLS * 2}, 400, "tools[1].function.name", "'add' for the second time"),
    (CHAT, {"tool_choice": "required"}, 400, "tool_choice", "needs tools"),
    (CHAT, {"tool_choice": "any", "tools": TOOLS}, 400, "tool_choice", "got 'any'"),
    (CHAT, {"tool_choice": {"type": "function"}, "tools": TOOLS}, 400, "tool_choice", "got {"),
    (CHAT, {"tool_choice": {"type": "function", "function": {"name": "b"}}, "tools": TOOLS}, 400,
     "tool_choice", "'b' is none of the tools add"),
    (CHAT, {"tool_choice": "required", "tools": [
        {"type": "function", "function": {"name": "a", "parameters": {"type": "array"}}}]}, 400,
     "tools", "are an object"),
    (CHAT, {"tool_choice": "required", "tools": [
        {"type": "function", "function": {"name": "a b"}}]}, 400, "tools", "cannot be forced"),
    (CHAT, {"tools": [{"type": "function", "function": {"name": "a", "description": [1]}}]}, 400,
     "tools[0].function.description", "is a text, got [1]"),
    (CHAT, {"tools": [{"type": "function", "function": {"name": "a", "strict": "yes"}}]}, 400,
     "tools[0].function.strict", "true or false"),
    (CHAT, {"response_format": {"type": "json_schema", "json_schema": {"name": 5, "schema": {}}}},
     400, "response_format.json_schema.name", "got `int`"),
    (CHAT, {"response_format": {"type": "json_schema", "json_schema": {"schema": {}, "strict": 1}}},
     400, "response_format.json_schema.strict", "got `int`"),
    (CHAT, {"response_format": {"type": "xml"}}, 400, "response_format.type", "xml"),
    (CHAT, {"response_format": {"type": "json_schema"}}, 400,
     "response_format.json_schema.schema", "is an object"),
    (CHAT, {"functions": []}, 400, "functions", "use tools"),
    (CHAT, {"modalities": ["audio"]}, 400, "modalities", "audio"),
    (CHAT, {"chat_template_kwargs": {"messages": 1}}, 400, "chat_template_kwargs", "messages"),
    (CHAT, {"messages": [{"role": "user", "content": "a " * 3000}]}, 400, None,
     "the prompt is too long: the text has"),
    (CHAT, b"", 400, None, "the body is empty"),
    (CHAT, b" \r\n", 400, None, "the body is empty"),
    (CHAT, b'{"a"', 400, None, "no JSON"),
    (CHAT, b"[]", 400, "body", "got `array`"),
    (CHAT, b"{}", 400, "messages", "missing"),
    (CHAT, b'{"messages": [{"role": "user", "content": "\xff"}]}', 400, None, "not UTF-8"),
    (CHAT, b'{"messages": [{"role": "user", "content": "\\ud800"}]}', 400, None, "no JSON"),
    (CHAT, b'{"temperature": NaN, "messages": []}', 400, None, "no JSON"),
    (CHAT, deep(20_000), 400, None, "nested too deep"),
    (CHAT, b'{"messages": "' + b"a" * 100_001 + b'"}', 413, None, "100000 bytes at most"),
    (COMPLETE, {"prompt": None}, 400, "prompt", "missing"),
    (COMPLETE, {"prompt": []}, 400, "prompt", "not empty"),
    (COMPLETE, {"prompt": {}}, 400, "prompt", "is a text"),
    (COMPLETE, {"prompt": [1, "a"]}, 400, "prompt", "got `str`"),
    (COMPLETE, {"prompt": ["a", 1]}, 400, "prompt", "got `int`"),
    (COMPLETE, {"prompt": [1.5]}, 400, "prompt", "got `float`"),
    (COMPLETE, {"prompt": [-1]}, 400, "prompt", "outside of the vocabulary"),
    (COMPLETE, {"prompt": [[]]}, 400, "prompt", "one token at least"),
    (COMPLETE, {"prompt": [1] * 513}, 400, "prompt", "513 tokens"),
    (COMPLETE, {"prompt": ["a"] * 257}, 400, "prompt", "256 prompts at most, got 257"),
    (COMPLETE, b'{"prompt": "\xff\xfe"}', 400, "prompt", "not UTF-8"),
    (COMPLETE, b'{"prompt": ["a", "\xc3\x28"]}', 400, "prompt", "not UTF-8"),
    (COMPLETE, b'{"prompt": "\\ud800"}', 400, None, "no JSON"),
    (COMPLETE, {"suffix": "b"}, 400, "suffix", "suffix is not supported"),
    (COMPLETE, {"best_of": 1, "n": 2}, 400, "best_of", "n at least"),
    (COMPLETE, {"best_of": 2, "stream": True}, 400, "best_of", "cannot be streamed"),
    (COMPLETE, {"best_of": 17}, 400, "best_of", "from 1 to 16"),
    (COMPLETE, {"logprobs": 21}, 400, "logprobs", "from 0 to 20"),
    (COMPLETE, {"max_tokens": 0}, 400, "max_tokens", "got 0"),
    (RESPOND, b"{}", 400, "input", "missing"),
    (RESPOND, {"previous_response_id": "resp_1"}, 400, "previous_response_id", "not kept"),
    (RESPOND, {"include": ["message.output_text.logprobs"]}, 400, "include", "responses none"),
    (RESPOND, {"input": [{"type": "image"}]}, 400, "input[0].type", "unknown"),
    (RESPOND, {"tools": [{"type": "web_search"}]}, 400, "tools[0].type", "web_search"),
    (RESPOND, {"temperature": 3}, 400, "temperature", "from 0 to 2"),
    (RESPOND, {"text": {"format": {"type": "xml"}}}, 400, "text.format.type", "xml"),
    (MESSAGE, {"max_tokens": None}, 400, "max_tokens", "got `null`"),
    (MESSAGE, {"messages": [{"role": "user", "content": [{"type": "image"}]}]}, 400,
     "messages[0].content[0].type", "only texts and tools"),
    (MESSAGE, {"tools": [{"type": "bash_20250124"}]}, 400, "tools[0].type", "bash"),
    (MESSAGE, {"top_k": 1.5}, 400, "top_k", "got `float`"),
    ("/tokenize", b"{}", 400, "prompt", "a prompt or messages"),
    ("/detokenize", b"{}", 400, "tokens", "missing"),
    ("/detokenize", {"tokens": [5000]}, 400, "tokens", "outside of the vocabulary"),
    ("/v1/embeddings", {"input": "a", "encoding_format": "hex"}, 400, "encoding_format", "hex"),
    ("/v1/embeddings", {"input": "a", "dimensions": 3}, 400, "dimensions", "is 128"),
    ("/v1/embeddings", {"input": [5000]}, 400, "input", "outside of the vocabulary"),
    ("/v1/embeddings", {"input": "word " * 600}, 400, "input", "the limit is 512"),
    (COMPLETE, {"prompt": "word " * 600}, 400, "prompt", "the limit is 512"),
    (CHAT, {"messages": [{"role": "user", "content": "word " * 600}]}, 400, "messages",
     "the limit is 512"),
    (CHAT, {"messages": HI, "chat_template_kwargs": nested(101)}, 400, "messages",
     "nested 100 deep at most"),
    ("/v1/embeddings", {"input": "a", "truncate_prompt_tokens": 0}, 400, "truncate_prompt_tokens",
     "from 1 to 512"),
    (RESPOND, {"input": "a", "min_p": 2}, 400, "min_p", "2"),
    # Interfaces beside chats have other names of the same fields, and other places.
    (RESPOND, {"max_output_tokens": 0}, 400, "max_output_tokens", "max_output_tokens is from 1"),
    (RESPOND, {"input": "word " * 600}, 400, "input", "input: the prompt is too long"),
    (RESPOND, {"input": []}, 400, "input", "input are empty"),
    (RESPOND, {"instructions": "a", "input": [{"role": "user", "content": "a"}, {"role": "robot",
     "content": ""}]}, 400, "input[1].role", "input[1].role is one of"),
    (RESPOND, {"tools": [{"type": "function", "name": ""}]}, 400, "tools[0].name", "tools[0].name"),
    (RESPOND, {"text": {"format": {"type": "json_schema", "schema": 5}}}, 400, "text.format.schema",
     "text.format.schema is an object"),
    (RESPOND, {"text": {"format": 5}}, 400, "text.format", "got 5"),
    (RESPOND, {"reasoning": {"effort": 5}}, 400, "reasoning.effort", "got `int`"),
    (RESPOND, {"reasoning": {"effort": "low"}, "top_k": -2}, 400, "top_k", "got -2"),
    (RESPOND, {"tools": [{"type": "function", "name": "a", "strict": 1}]}, 400, "tools[0].strict",
     "true or false"),
    (RESPOND, {"text": {"format": {"type": "json_schema", "name": 5, "schema": {}}}}, 400,
     "text.format.name", "got `int`"),
    (MESSAGE, {"tools": [{"name": "a", "description": 5}]}, 400, "tools[0].description", "a text"),
    (MESSAGE, {"tool_choice": {"type": "auto", "disable_parallel_tool_use": 5}}, 400,
     "tool_choice.disable_parallel_tool_use", "true or false"),
    (MESSAGE, {"tool_choice": {}}, 400, "tool_choice", "got {}"),
    (MESSAGE, {"output_config": {"effort": 5}}, 400, "output_config.effort", "got `int`"),
    (RESPOND, {"input": [{"type": "function_call", "call_id": "a", "name": 5}]}, 400,
     "input[0].name", "got 5"),
    (RESPOND, {"input": [{"type": "function_call_output", "output": "a"}]}, 400,
     "input[0].call_id", "got None"),
    (RESPOND, {"input": [{"type": "function_call_output", "call_id": "a"}]}, 400,
     "input[0].output", "a text"),
    (MESSAGE, {"tool_choice": {"type": "tool", "name": 5}, "tools": [{"name": "a"}]}, 400,
     "tool_choice", '{"type": "tool", "name": ...}, got'),
    (MESSAGE, {"tool_choice": {"type": "required"}}, 400, "tool_choice", "got {'type'"),
    (MESSAGE, {"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]}, 400,
     "messages[0].content.tool_use_id", "messages[0].content.tool_use_id is missing"),
    (CHAT, {"chat_template_kwargs": {"self": 1}}, 400, "chat_template_kwargs", "'self'"),
    (MESSAGE, {"max_tokens": 0}, 400, "max_tokens", "max_tokens is from 1"),
    (MESSAGE, {"system": [{"type": "image"}]}, 400, "system.content[0].type", "image"),
    (MESSAGE, {"stop_sequences": ["a"] * 17}, 400, "stop_sequences", "16 strings at most"),
    (MESSAGE, {"tools": [{"name": "a", "input_schema": 5}]}, 400, "tools[0].input_schema",
     "a JSON schema"),
    (MESSAGE, {"output_config": {"format": {"type": "xml"}}}, 400, "output_config.format.type",
     "xml"),
    (CHAT, {"max_completion_tokens": 0}, 400, "max_completion_tokens", "got 0"),
    (CHAT, {"messages": [{"role": "user", "content": "a"}, 5]}, 400, "messages[1]", "got `int`"),
]  # fmt: skip
RIGHT = {
    CHAT: {"messages": HI}, COMPLETE: {"prompt": "a"}, RESPOND: {"input": "a"},
    MESSAGE: {"messages": HI, "max_tokens": 5},
}  # fmt: skip


@pytest.mark.parametrize(("path", "body", "status", "param", "message"), WRONG)
def test_wrong_fields(client, engine, path, body, status, param, message):
    before = engine.requests
    sent = body if isinstance(body, bytes) else {**RIGHT.get(path, {}), **body}
    found, answer = client.post(path, sent)
    assert found == status, answer
    error = answer["error"]
    assert message in error["message"], error
    assert param is None or error["param"] == param
    assert set(error) == {"message", "type", "param", "code"}
    assert error["type"] and error["code"] and len(error["message"]) < 400
    assert engine.requests == before


def test_errors_of_the_engine_have_their_status(client, engine):
    for error, status, code in (
        (llm.QueueFull("8 requests wait", retry_after=2.5), 429, "queue_full"),
        (llm.ContextError("too long"), 400, "context_length_exceeded"),
        (llm.EngineClosed("it was closed"), 500, "engine_stopped"),
        (OutOfMemory("no pages"), 503, "out_of_memory"),
        (RuntimeError("a secret"), 500, "server_error"),
    ):
        engine.refusal = error
        try:
            found, headers, content = client.ask("POST", CHAT, {"messages": HI})
        finally:
            engine.refusal = None
        assert found == status and json.loads(content)["error"]["code"] == code
        assert (headers["retry-after"] is not None) == (status in (429, 503))
        assert b"a secret" not in content


def test_unknown_fields_may_be_ignored(engine):
    with serving(engine, ignore_unknown=True) as client:
        assert client.post(CHAT, {"messages": HI, "temprature": 1})[0] == 200


def test_paths_and_methods(client):
    for method, path, status in (
        ("GET", "/nothing", 404), ("POST", "/v2/chat", 404), ("GET", "/../etc/passwd", 404),
        ("GET", CHAT, 405), ("DELETE", "/v1/models", 405), ("GET", "/v1/models/none", 404),
        ("TRACE", CHAT, 405), ("QUERY", "/v1/models", 405), ("OPTIONS", "/health", 405),
        ("GET", "/v1/models/", 404), ("GET", "/health/", 404), ("POST", f"{CHAT}/", 404),
    ):  # fmt: skip
        found, _, content = client.ask(method, path)
        assert found == status and json.loads(content)["error"]["message"]
    for path in ("/health", "/health/ready", "/v1/models", "/metrics"):  # balancers ask so
        assert client.ask("HEAD", path)[::2] == (200, b"")
    status, answer = client.ask("GET", "/v1/models/tiny")[::2]
    assert status == 200 and json.loads(answer)["max_model_len"] == 512


def test_requests_have_ids(client):
    _, headers, _ = client.ask("GET", "/health", headers={"X-Request-Id": "abc-1"})
    assert headers["x-request-id"] == "abc-1"
    ids = set()
    for given in ("a b", "x" * 129, ""):
        _, headers, _ = client.ask("GET", "/health", headers={"X-Request-Id": given})
        ids.add(headers["x-request-id"])
    assert len(ids) == 3 and "a b" not in ids
