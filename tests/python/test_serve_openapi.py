"""The server's description of itself, read by jsonschema and compared with what the server does."""

import json
import pathlib
import re

import jsonschema
import pytest
from serving import TINY, WritingEngine, serving
from test_serve_wrong import RIGHT, WRONG

from kernwright import llm
from kernwright.serve.http.keys import Keys
from kernwright.serve.http.limits import Limits
from kernwright.serve.texts.sampling import REALS

DOCS = pathlib.Path(__file__).parents[2] / "docs" / "serving.md"


@pytest.fixture(scope="module")
def client():
    engine, options = WritingEngine(llm.load(TINY), "x"), {"adapter_folder": TINY}
    with serving(engine, limits=Limits(messages=20), **options) as client:
        yield client


@pytest.fixture(scope="module")
def told(client):
    status, headers, content = client.ask("GET", "/openapi.json")
    assert status == 200 and headers["content-type"] == "application/json"
    return json.loads(content)


def validator(told, path):
    """Of the bodies of a path."""
    schema = told["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    return jsonschema.Draft202012Validator({**schema, "components": told["components"]})


def references(node):
    if isinstance(node, dict):
        for name, value in node.items():
            yield from [value] if name == "$ref" else references(value)
    elif isinstance(node, list):
        for each in node:
            yield from references(each)


def test_the_description_is_whole(told):
    assert told["openapi"].startswith("3.1")
    for reference in references(told):
        node = told
        for name in reference.removeprefix("#/").split("/"):
            node = node[name]
    for schema in told["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    assert "security" not in told  # this server takes no keys


def test_it_has_the_paths_that_are_there(client, told):
    for path, methods in told["paths"].items():
        for method in ("get", "post"):
            status, headers, content = client.ask(method.upper(), path.format(name="tiny"), b"")
            if method in methods:
                kinds = methods[method]["responses"][str(status)]
                assert status == (200 if method == "get" else 400), path
                kind = headers["content-type"].split(";")[0]
                assert method == "post" or kind in kinds["content"]
            else:
                assert status == 405 and headers["allow"].lower() in methods, path
                assert json.loads(content)["error"]["code"] == "method_not_allowed"
    named = {
        name.replace("NAME", "{name}")
        for row in re.findall(r"^\| `(?:GET|POST) (.*?)\|", DOCS.read_text(), re.MULTILINE)
        for name in re.findall(r"/[\w/]*(?:\.json)?(?:/NAME)?", row)
    }
    assert named == set(told["paths"])


@pytest.mark.parametrize("path", RIGHT)
def test_right_bodies_fit_and_their_answers_too(client, told, path):
    validator(told, path).validate(RIGHT[path])
    status, answer = client.post(path, RIGHT[path])
    assert status == 200
    answers = told["paths"][path]["post"]["responses"]["200"]["content"]
    jsonschema.validate(answer, answers["application/json"]["schema"])
    assert "text/event-stream" in answers


@pytest.mark.parametrize("path", RIGHT)
def test_wrong_bodies_do_not_fit(client, told, path):
    """What the schema refuses, the server refuses; and the schema tells types and bounds."""
    bodies = [body for where, body, *_ in WRONG if where == path and isinstance(body, dict)]
    bodies = [body for body in bodies if body != {"max_tokens": 1e9}]  # a whole number for schemas
    refused = 0
    for body in bodies:
        fits = validator(told, path).is_valid({**RIGHT[path], **body})
        status, answer = client.post(path, {**RIGHT[path], **body})
        assert status in (400, 404)
        error = answer["error"]
        jsonschema.validate(answer, {"$ref": "#/components/schemas/Error", **told})
        refused += not fits
        # No bound, type or name of a field is known to the server alone.
        param = error["param"] or ""
        is_in_schema = error["code"] in ("invalid_type", "unknown_field") or param in REALS
        is_in_schema |= param.startswith(("tools[", "response_format", "text.", "output_config"))
        is_in_schema &= "for the second time" not in error["message"]  # schemas compare no names
        assert not (fits and is_in_schema), body
    assert refused > 0


def test_bounds_of_tokens_are_told(told):
    for path, field, wrong, right in (
        ("/detokenize", "tokens", [-1], [0]), ("/detokenize", "tokens", [2**31], [2**31 - 1]),
        ("/v1/responses", "max_output_tokens", 2**31 + 1, 2**31),
        ("/v1/chat/completions", "max_tokens", 0, 1), ("/v1/completions", "max_tokens", -1, 0),
    ):  # fmt: skip
        for value, fits in ((wrong, False), (right, True)):
            body = {**RIGHT.get(path, {}), field: value}
            assert validator(told, path).is_valid(body) == fits, (path, body)


PART, CALL = {"type": "text", "text": "a"}, {"type": "function", "function": {"name": "f"}}
SAID = {"type": "function_call", "call_id": "1", "name": "f"}
GIVEN = {"type": "function_call_output", "call_id": "1"}
ANY = ("/v1/chat/completions", "/v1/messages", "/v1/responses", "/tokenize")
OPENAI = ("/v1/chat/completions", "/tokenize")
CHAT, MESSAGE = "/v1/chat/completions", RIGHT["/v1/messages"]
HI, FUNCTION = MESSAGE["messages"], {"name": "f", "description": "a", "strict": True}


@pytest.mark.parametrize(("paths", "message", "is_right"), [
    (ANY, {"role": "user", "content": "a"}, True), (ANY, {"role": "user", "content": [PART]}, True),
    (ANY, {"role": "user"}, False), (ANY, {"role": "system", "content": None}, False),
    (ANY, {"role": "assistant"}, True), (ANY, {"role": "assistant", "content": None}, True),
    (ANY, {"role": "robot", "content": "a"}, False), (ANY, {"content": "a"}, False),
    (ANY, {"role": "tool"}, False), (ANY, {"role": "tool", "content": "a"}, False),
    (ANY, {"role": "user", "content": [{"type": "image_url"}]}, False),
    (OPENAI, {"role": "tool", "content": "a", "tool_call_id": "1"}, True),
    (OPENAI, {"role": "user", "content": [{"type": "text"}]}, False),
    (OPENAI, {"role": "assistant", "content": [{"type": "refusal", "refusal": "a"}]}, True),
    (OPENAI, {"role": "assistant", "content": [{"type": "refusal", "text": "a"}]}, False),
    (OPENAI, {"role": "assistant", "tool_calls": [CALL]}, True),
    (("/v1/responses",), {"type": "message", "role": "user", "content": "a"}, True),
    (("/v1/responses",), SAID, True), (("/v1/responses",), {**SAID, "name": None}, False),
    (("/v1/responses",), GIVEN, False), (("/v1/responses",), {**GIVEN, "output": "a"}, True),
    (("/v1/responses",), {**GIVEN, "output": [PART]}, True),
    (("/v1/responses",), {"type": "image"}, False),
    (("/v1/messages",), {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "1", "content": "a"}]}, True),
    (("/v1/messages",), {"role": "user", "content": [{"type": "tool_result"}]}, False),
    (("/v1/messages",), {"role": "user", "content": [{"type": "text"}]}, False),
    (("/v1/messages",), {"role": "assistant", "content": [{"type": "tool_use", "id": "1"}]}, False),
])  # fmt: skip
def test_messages_fit_where_the_server_takes_them(client, told, paths, message, is_right):
    for path in paths:
        field = "input" if path == "/v1/responses" else "messages"
        body = {**RIGHT.get(path, {}), field: [message]}
        assert validator(told, path).is_valid(body) is is_right, path
        status, answer = client.post(path, body)
        refuses = "the chat template of tiny refuses the"
        taken = status == 200 or refuses in answer["error"]["message"]
        assert taken is is_right, path


@pytest.mark.parametrize(("path", "body", "is_right"), [
    ("/tokenize", {"prompt": "a"}, True), ("/tokenize", {"prompt": None}, False),
    ("/tokenize", {"prompt": "a", "messages": [{"role": "user", "content": "a"}]}, False),
    ("/v1/completions", {"prompt": []}, False), ("/v1/completions", {"prompt": [[]]}, False),
    ("/v1/completions", {"prompt": ["a"], "logit_bias": {"5": 100}}, True),
    ("/v1/completions", {"prompt": "a", "logit_bias": {"a": 1}}, False),
    ("/v1/completions", {"prompt": "a", "logit_bias": {"5": 101}}, False),
    ("/v1/completions", {"prompt": "a", "stop_token_ids": [5] * 65}, False),
    ("/v1/completions", {"prompt": "a", "allowed_token_ids": [-1]}, False),
    ("/v1/responses", {"input": "a", "previous_response_id": "b"}, False),
    ("/v1/responses", {"input": "a", "previous_response_id": None}, True),
    (CHAT, {"messages": HI, "tools": [
        {"type": "function", "function": {**FUNCTION, "parameters": {"type": "object"}}}]}, True),
    (CHAT, {"messages": HI, "tools": [{"type": "function", "function": {}}]}, False),
    (CHAT, {"messages": HI, "tools": [{"type": "custom", "custom": FUNCTION}]}, False),
    (CHAT, {"messages": HI, "tool_choice": "auto"}, True),
    (CHAT, {"messages": HI, "tool_choice": "any"}, False),
    (CHAT, {"messages": HI, "tool_choice": {"type": "function"}}, False),
    (CHAT, {"messages": HI, "response_format": {"type": "text"}}, True),
    (CHAT, {"messages": HI, "response_format": {"type": "json_schema"}}, False),
    (CHAT, {"messages": HI, "response_format": {
        "type": "json_schema", "json_schema": {"name": "a", "schema": {}, "strict": True}}}, True),
    ("/v1/responses", {"input": "a", "tools": [{"type": "function", **FUNCTION}]}, True),
    ("/v1/responses", {"input": "a", "tools": [{"type": "function", "function": FUNCTION}]}, False),
    ("/v1/responses", {"input": "a", "text": {"format": {"type": "json_schema"}}}, False),
    ("/v1/responses", {"input": "a", "reasoning": {"effort": "low"}}, True),
    ("/v1/messages", {**MESSAGE, "tools": [{"name": "f", "input_schema": {}}]}, True),
    ("/v1/messages", {**MESSAGE, "tools": [{"input_schema": {}}]}, False),
    ("/v1/messages", {**MESSAGE, "tool_choice": {"type": "auto"}}, True),
    ("/v1/messages", {**MESSAGE, "tool_choice": {"type": "tool"}}, False),
    ("/v1/messages", {**MESSAGE, "tool_choice": {}}, False),
    ("/tokenize", {"messages": HI, "tools": [{"type": "function", "function": {}}]}, False),
])  # fmt: skip
def test_bodies_fit_where_the_server_takes_them(client, told, path, body, is_right):
    assert validator(told, path).is_valid(body) is is_right
    assert (client.post(path, body)[0] == 200) is is_right


def test_bounds_that_models_set_are_told_in_words(told):
    schemas = told["components"]["schemas"]
    for name, field in (
        ("DetokenizeBody", "tokens"), ("CompletionBody", "prompt"), ("ChatBody", "stop_token_ids"),
    ):  # fmt: skip
        assert "vocabulary" in json.dumps(schemas[name]["properties"][field])
    assert "context" in json.dumps(schemas["ChatBody"]["properties"]["truncate_prompt_tokens"])


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/embeddings"])
def test_the_length_of_cut_prompts_is_not_zero(client, told, path):
    field = "input" if path.endswith("embeddings") else "prompt"
    fits = validator(told, path).is_valid
    for value, right in ((0, False), (-2, False), (-1, True), (1, True), (None, True)):
        body = {field: "a", "truncate_prompt_tokens": value}
        assert fits(body) is right, value
        assert (client.post(path, body)[0] == 400) is not right, value


def test_keys_are_told_of_and_asked_for():
    with serving(WritingEngine(llm.load(TINY)), keys=Keys({"a": "first-key"})) as client:
        assert client.ask("GET", "/openapi.json")[0] == 401
        _, _, content = client.ask("GET", "/openapi.json", headers={"X-Api-Key": "first-key"})
        told = json.loads(content)
        named = {name for each in told["security"] for name in each}
        assert named == set(told["components"]["securitySchemes"])
        for path, methods in told["paths"].items():
            for method, operation in methods.items():
                status = client.ask(method.upper(), path.format(name="tiny"))[0]
                assert (status == 401) == (operation.get("security") != []), path
