"""Schemas of tools, of the choice among them and of the forms of answers, by interface."""

from __future__ import annotations

from typing import Any

__all__ = ["insides"]

_TEXT = {"type": "string"}
_TEXT_OR_NULL = {"type": ["string", "null"]}
_OBJECT_OR_NULL = {"type": ["object", "null"]}
_FLAG = {"type": ["boolean", "null"]}
_NAME = {
    "type": "string", "minLength": 1,
    "description": "What calls of the function have; each function of a request has its own",
}  # fmt: skip
_CHOSEN = {"type": "string", "minLength": 1, "description": "That of one of the tools"}
_FUNCTION = {
    "name": _NAME,
    "description": {**_TEXT_OR_NULL, "description": "What the function does, for the model"},
    "parameters": {
        **_OBJECT_OR_NULL,
        "description": "The JSON schema of the arguments, an object; without it there are none",
    },
    "strict": {
        **_FLAG,
        "description": "Without effect: arguments of forced calls validate in any case, those of "
        "optional calls are as the model writes them",
    },
}  # fmt: skip


def insides(kind: str) -> dict[str, Any]:
    """The schemas of fields of a body, by the name of its struct."""
    if kind == "ResponsesBody":
        format = {"type": "object", "properties": {"format": _or_null(_format(_schema_fields()))}}
        effort = {"type": "object", "properties": {"effort": _TEXT_OR_NULL}}
        return {
            "tools": _tools({"type": {"const": "function"}, **_FUNCTION}, "type", "name"),
            "tool_choice": _choice(_object({"type": {"const": "function"}, "name": _CHOSEN})),
            "text": _or_null(format), "reasoning": _or_null(effort),
        }  # fmt: skip
    if kind in ("MessagesBody", "CountTokensBody"):
        return _of_messages()
    function = _object(_FUNCTION, "name")
    within = {"type": {"const": "function"}, "function": function}
    named = {"type": {"const": "function"}, "function": _object({"name": _CHOSEN})}
    within_format = {"json_schema": _object(_schema_fields(), "schema")}
    return {
        "tools": _tools(within, "type", "function"), "tool_choice": _choice(_object(named)),
        "response_format": _or_null(_format(within_format, "json_schema")),
    }  # fmt: skip


def _of_messages() -> dict[str, Any]:
    function = {
        "type": {"enum": ["custom"]}, "name": _NAME, "description": _FUNCTION["description"],
        "input_schema": _FUNCTION["parameters"],
    }  # fmt: skip
    several = {"disable_parallel_tool_use": {"type": "boolean"}}
    choices = [
        _object({"type": {"enum": ["auto", "any", "none"]}, **several}, "type"),
        _object({"type": {"const": "tool"}, "name": _CHOSEN, **several}, "type", "name"),
    ]
    format = _format({"schema": {"type": "object"}})
    config = {"format": _or_null(format), "effort": _TEXT_OR_NULL}
    return {
        "tools": _tools(function, "name"),
        "tool_choice": {"anyOf": [{"type": "null"}, *choices]},
        "output_config": _or_null({"type": "object", "properties": config}),
    }


def _tools(function: dict[str, Any], *required: str) -> dict[str, Any]:
    return _or_null({"type": "array", "items": _object(function, *required)})


def _choice(named: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [{"type": "null"}, {"enum": ["auto", "none", "required"]}, named]}


def _schema_fields() -> dict[str, Any]:
    return {
        "name": _TEXT_OR_NULL, "description": _TEXT_OR_NULL, "strict": _FLAG,
        "schema": {"type": "object", "description": "A JSON schema: every answer that is not cut "
                   "validates, whatever strict is"},
    }  # fmt: skip


def _format(fields: dict[str, Any], required: str = "schema") -> dict[str, Any]:
    """A form of answers: fields of a JSON schema are there with the type "json_schema"."""
    plain = _object({"type": {"enum": ["text", "json_object"]}}, "type")
    return {
        "anyOf": [plain, _object({"type": {"const": "json_schema"}, **fields}, "type", required)]
    }


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    """All are required where none is named."""
    return {
        "type": "object", "properties": properties, "required": [*(required or properties)],
    }  # fmt: skip


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [{"type": "null"}, *schema.get("anyOf", [schema])]}
