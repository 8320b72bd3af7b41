"""The description of the server in OpenAPI 3.1: GET /openapi.json."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kernwright import __version__
from kernwright.serve.http.errors import TYPES
from kernwright.serve.http.guard import OPEN
from kernwright.serve.http.limits import Limits
from kernwright.serve.openapi_tools import insides
from kernwright.serve.protocol import (
    IGNORED,
    NEUTRAL,
    CountTokensBody,
    ResponsesBody,
    TokenizeBody,
)
from kernwright.serve.server import Server
from kernwright.serve.texts.messages import PARTS, ROLES
from kernwright.serve.texts.sampling import REALS

__all__ = ["description"]

_REFERENCE = "#/components/schemas/{name}"
_JSON = "application/json"
_TEXT = {"type": "string"}
# What a path does, and the fields that each of its answers has.
_PATHS = {
    "/v1/chat/completions": ("Answers to messages", "id object created model choices usage"),
    "/v1/completions": ("Texts that follow prompts", "id object created model choices usage"),
    "/v1/responses": ("An answer in OpenAI's newer form", "id object status model output usage"),
    "/v1/messages": ("An answer in Anthropic's form", "id type role model content usage"),
    "/v1/messages/count_tokens": ("The tokens of such a prompt", "input_tokens"),
    "/v1/load_lora_adapter": ("Loads an adapter", "id object created max_model_len parent root"),
    "/v1/unload_lora_adapter": ("Unloads an adapter", "id object deleted"),
    "/v1/embeddings": ("Vectors of texts", "object data model usage"),
    "/tokenize": ("A text or messages to tokens", "tokens count max_model_len"),
    "/detokenize": ("Tokens to a text", "prompt"),
    "/v1/models": ("The models", "object data"),
    "/v1/models/{name}": ("One model", "id object created owned_by max_model_len"),
    "/health": ("Whether the engines run", "status"),
    "/health/live": ("Whether the engines run", "status"),
    "/health/ready": ("Whether requests are taken", "status"),
    "/metrics": ("Numbers for Prometheus", ""),
    "/openapi.json": ("This description", "openapi info paths components"),
    "/": ("A page for chats", ""),
}
_PARTS = {
    "type": "array",
    "items": {
        "anyOf": [
            {
                "type": "object", "required": ["type", "text"],
                "properties": {"type": {"enum": PARTS}, "text": _TEXT},
            },
            {
                "type": "object", "required": ["type", "refusal"],
                "properties": {"type": {"const": "refusal"}, "refusal": _TEXT},
            },
        ]
    },
}  # fmt: skip
_BLOCKS = {
    "type": "array",
    "items": {
        "anyOf": [
            {
                "type": "object", "required": ["type", *fields],
                "properties": {"type": {"const": kind}, **dict.fromkeys(fields, _TEXT)},
            }
            for kind, fields in (
                ("text", ["text"]), ("tool_use", ["name"]), ("tool_result", ["tool_use_id"]),
                ("thinking", []),
            )
        ]
    },
}  # fmt: skip
# The structs leave prompts, and the inputs of embeddings, as bytes: these schemas tell their forms.
_TOKEN = {
    "type": "integer", "minimum": 0, "maximum": 2**31 - 1,
    "description": "Below the size of the model's vocabulary, else the answer is 400",
}  # fmt: skip
_TOKENS = {"type": "array", "items": _TOKEN}
_PROMPT = {
    "anyOf": [
        _TEXT, {**_TOKENS, "minItems": 1}, {"type": "array", "items": _TEXT, "minItems": 1},
        {"type": "array", "items": {**_TOKENS, "minItems": 1}, "minItems": 1},
    ]
}  # fmt: skip
# The ends of the names of rules for each type.
_RULES = {
    "array": ("Items", "items"), "string": ("Length",), "number": ("imum",), "integer": ("imum",),
    "object": ("Properties", "propertyNames"),
}  # fmt: skip
_OTHER_TYPES = {"/metrics": "text/plain", "/": "text/html"}


def description(
    server: Server, posts: Mapping[str, type[Any]], gets: Iterable[str]
) -> dict[str, Any]:
    """The description of the paths that take POST, with the structs of their bodies, and of those
    that take GET."""
    kinds = list(posts.values())
    names = [*server.models, *server.adapters]  # those of the moment
    _, schemas = msgspec.json.schema_components(kinds, ref_template=_REFERENCE)
    for kind in kinds:
        fields = schemas[kind.__name__]["properties"]
        fields |= {name: each for name, each in insides(kind.__name__).items() if name in fields}
        items = _items(kind)
        _add_bounds(schemas[kind.__name__], server.limits, items)
        schemas[kind.__name__]["properties"]["model"] = {"enum": [*names, None]}
        if kind is TokenizeBody:
            schemas[kind.__name__]["oneOf"] = [
                {"required": [name], "properties": {name: {"not": {"type": "null"}}}}
                for name in ("prompt", "messages")
            ]
        if not server.ignore_unknown:
            _refuse_others(schemas[kind.__name__])
    schemas["Error"] = _error()
    paths = {path: {"post": _operation(path, names, kind)} for path, kind in posts.items()}
    for path in gets:
        name = path.replace(":path", "")
        paths[name] = {"get": _operation(name, names)}
    made: dict[str, Any] = {
        "openapi": "3.1.0", "info": {"title": "Kernwright", "version": __version__},
        "paths": paths, "components": {"schemas": schemas, "responses": _errors()},
    }  # fmt: skip
    if server.keys:
        made["components"]["securitySchemes"] = {
            "bearer": {"type": "http", "scheme": "bearer"},
            "header": {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
        }
        made["security"] = [{"bearer": []}, {"header": []}]
    return made


def _operation(path: str, models: Iterable[str], body: type[Any] | None = None) -> dict[str, Any]:
    summary, fields = _PATHS[path]
    content: dict[str, Any] = {_JSON: {"schema": {"type": "object", "required": fields.split()}}}
    if path in _OTHER_TYPES:
        content = {_OTHER_TYPES[path]: {"schema": _TEXT}}
    elif body is not None and "stream" in body.__struct_fields__:
        content["text/event-stream"] = {}  # a schema would be that of a whole stream
    made: dict[str, Any] = {
        "summary": summary,
        "responses": {"200": {"description": "Success", "content": content}, **_failures(path)},
    }
    if body is not None:
        schema = {"$ref": _REFERENCE.format(name=body.__name__)}
        made["requestBody"] = {"required": True, "content": {_JSON: {"schema": schema}}}
    if path in OPEN:
        made["security"] = []
    if "{name}" in path:
        name = {"type": "string", "enum": list(models)}
        made["parameters"] = [{"name": "name", "in": "path", "required": True, "schema": name}]
    return made


def _failures(path: str) -> dict[str, Any]:
    """The answers of errors by their status. Health has a form of its own for two of them."""
    told = {str(status): {"$ref": f"#/components/responses/{status}"} for status in TYPES}
    if path in OPEN:
        content = {_JSON: {"schema": {"type": "object", "required": ["status"]}}}
        failed = {n: {"description": "It does not", "content": content} for n in ("500", "503")}
        return {"405": told["405"], **failed}
    return told


def _errors() -> dict[str, Any]:
    """Errors by their status."""
    content = {_JSON: {"schema": {"$ref": _REFERENCE.format(name="Error")}}}
    wait = {"Retry-After": {"schema": {"type": "integer"}, "description": "seconds"}}
    return {
        str(status): {
            "description": kind.replace("_", " "), "content": content,
            **({"headers": wait} if status in (429, 503) else {}),
        }
        for status, kind in TYPES.items()
    }  # fmt: skip


def _error() -> dict[str, Any]:
    text_or_null = {"type": ["string", "null"]}
    fields = {"message": _TEXT, "type": _TEXT, "param": text_or_null, "code": text_or_null}
    error = {"type": "object", "required": list(fields), "properties": fields}
    return {"type": "object", "required": ["error"], "properties": {"error": error}}


def _items(kind: type[Any]) -> dict[str, Any]:
    """The messages of a body, or what else lies in its `input`."""
    if issubclass(kind, CountTokensBody):
        return {"anyOf": _messages(_BLOCKS, False)}
    if kind is not ResponsesBody:
        return {"anyOf": _messages(_PARTS, True)}
    texts = {"call_id": _TEXT, "name": _TEXT, "output": {"anyOf": [_TEXT, _PARTS]}}
    calls = [
        {
            "type": "object", "required": ["type", *fields],
            "properties": {"type": {"const": name}, **{field: texts[field] for field in fields}},
        }
        for name, fields in (
            ("function_call", ("call_id", "name")),
            ("function_call_output", ("call_id", "output")), ("reasoning", ()),
        )
    ]  # fmt: skip
    messages = _messages(_PARTS, False)
    for each in messages:
        each["properties"]["type"] = {"const": "message"}
    return {"anyOf": messages + calls}


def _messages(parts: dict[str, Any], tools: bool) -> list[dict[str, Any]]:
    """The forms of a message; `tools`: whether results of tools are messages."""
    content = {"anyOf": [_TEXT, parts]}
    others = [role for role in ROLES if role not in ("assistant", "tool")]
    made: list[dict[str, Any]] = [
        {"required": ["role", "content"], "properties": {"role": {"enum": others}}},
        {"required": ["role"], "properties": {"role": {"const": "assistant"}}},
    ]
    if tools:
        found = {"role": {"const": "tool"}, "tool_call_id": _TEXT}
        made.append({"required": ["role", "content", "tool_call_id"], "properties": found})
    for each in made:
        each |= {"type": "object"}
        each["properties"]["content"] = content
    made[1]["properties"]["content"] = {"anyOf": [{"type": "null"}, *content["anyOf"]]}
    return made


def _add_bounds(schema: dict[str, Any], limits: Limits, items: dict[str, Any]) -> None:
    """Bounds that the types of a body do not tell; `items` are those of its messages."""
    bounds: dict[str, dict[str, Any]] = {
        name: {"minimum" if closed else "exclusiveMinimum": least, "maximum": most}
        for name, (least, most, closed) in REALS.items()
    }
    bounds |= {name: {"minimum": 1, "maximum": limits.choices} for name in ("n", "best_of")}
    names = ("logprobs", "top_logprobs", "prompt_logprobs")
    bounds |= {name: {"minimum": 0, "maximum": limits.logprobs} for name in names}
    bounds["guided_choice"] = {"minItems": 1}
    bounds["allowed_token_ids"] = {"minItems": 1, "items": _TOKEN}
    bounds["stop_token_ids"] = {"maxItems": 64, "items": _TOKEN}
    bounds["timeout"] = {"exclusiveMinimum": 0, "maximum": limits.seconds}
    bounds["cache_salt"] = {"minLength": 1, "maxLength": limits.salt_length}
    bounds["truncate_prompt_tokens"] = {"minimum": -1}
    bounds["tokens"] = {"items": _TOKEN}
    for name in ("max_tokens", "max_completion_tokens", "max_output_tokens"):
        bounds[name] = {"minimum": 0 if "echo" in schema["properties"] else 1, "maximum": 2**31}
    if not limits.priorities:
        bounds["priority"] = {"minimum": 0, "maximum": 0}
    for name in ("messages", "input"):
        bounds[name] = {"minItems": 1, "maxItems": limits.messages, "items": items}
    bounds["tools"] = {"maxItems": limits.tools}
    bounds["logit_bias"] = {
        "maxProperties": 300, "propertyNames": {"pattern": "^[0-9]{1,9}$"},
        "additionalProperties": {"type": "number", "minimum": -100, "maximum": 100},
    }  # fmt: skip
    bounds["stop"] = {"maxItems": limits.stop, "maxLength": limits.stop_length}
    for name, rules in bounds.items():
        for each in _forms(schema["properties"].get(name, {})):
            of_kind = _RULES.get(each.get("type", ""), ())
            each |= {rule: value for rule, value in rules.items() if rule.endswith(of_kind)}

    for each in _forms(schema["properties"].get("truncate_prompt_tokens", {})):
        each |= {"not": {"const": 0}, "description": "The context of the model at most"}
    for name in ("audio", "functions", "function_call", "previous_response_id"):  # refused
        if name in schema["properties"]:
            schema["properties"][name] = {"type": "null"}
    for name in ("prompt", "input"):
        if schema["properties"].get(name) == {}:
            schema["properties"][name] = _PROMPT


def _forms(field: dict[str, Any]) -> list[dict[str, Any]]:
    return list(field.get("anyOf", [field] if field else []))


def _refuse_others(schema: dict[str, Any]) -> None:
    """Fields without effect take anything, some their usual value; others null alone."""
    for name in IGNORED:
        schema["properties"].setdefault(name, {})
    for name, values in NEUTRAL.items():
        schema["properties"].setdefault(name, {"enum": [*values, None]})
    schema["additionalProperties"] = {"type": "null"}
