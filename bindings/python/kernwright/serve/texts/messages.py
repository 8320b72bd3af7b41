"""Messages and tools of a chat: OpenAI's forms to those of templates."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from kernwright.serve.http.errors import ApiError
from kernwright.serve.http.limits import Limits
from kernwright.serve.protocol import ChatBody, TokenizeBody
from kernwright.serve.served import Served

__all__ = ["PARTS", "ROLES", "chat_tokens", "messages_of", "tools_of"]

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
PARTS = ("text", "input_text", "output_text")
_RESERVED = {
    *("messages", "tools", "documents", "name", "add_generation_prompt", "continue_final_message"),
    *("token_limit", "self"),
}


def messages_of(
    messages: Sequence[dict[str, Any]], limits: Limits, places: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """Messages with texts alone, and with arguments of calls as objects. Raises ApiError with
    one of `places`, those of the messages in the body."""
    if not messages:
        raise _wrong("messages", "are empty: a conversation has one at least")
    if len(messages) > limits.messages:
        raise _wrong("messages", f"are {limits.messages} at most, got {len(messages)}")
    named = places or [f"messages[{i}]" for i in range(len(messages))]
    return [_message(each, place) for each, place in zip(messages, named, strict=True)]


def _message(message: dict[str, Any], place: str) -> dict[str, Any]:
    role = message.get("role")
    if role not in ROLES:
        raise _wrong(f"{place}.role", f"is one of {', '.join(ROLES)}, got {role!r:.40}")
    made = {name: value for name, value in message.items() if value is not None}
    made["role"] = "system" if role == "developer" else role  # templates do not know the other
    content = message.get("content")
    if content is None and role != "assistant":
        raise _wrong(f"{place}.content", "is missing")
    made["content"] = _text_of(content, f"{place}.content")
    for name in ("reasoning_content", "reasoning"):
        if name in made and not isinstance(made[name], str):
            raise _wrong(f"{place}.{name}", "is a text")
    if "tool_calls" in made:
        made["tool_calls"] = _calls(made["tool_calls"], f"{place}.tool_calls")
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        raise _wrong(f"{place}.tool_call_id", "is missing: which call the message answers")
    return made


def _text_of(content: Any, place: str) -> str:
    """A content: a text, or a list of parts that are texts; these become lines."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise _wrong(place, f"is a text or a list of parts, got {content!r:.40}")
    texts = []
    for i, part in enumerate(content):
        where = f"{place}[{i}]"
        if not isinstance(part, dict):
            raise _wrong(where, f"is an object, got {part!r:.40}")
        kind = part.get("type")
        if kind != "refusal" and kind not in PARTS:
            raise _wrong(f"{where}.type", f"is {kind!r:.40}: only parts of text are supported")
        text = part.get("refusal" if kind == "refusal" else "text")
        if not isinstance(text, str):
            raise _wrong(f"{where}.text", f"is a text, got {text!r:.40}")
        texts.append(text)
    return "\n".join(texts)


def _calls(calls: Any, place: str) -> list[dict[str, Any]]:
    if not isinstance(calls, list):
        raise _wrong(place, f"is a list, got {calls!r:.40}")
    made = []
    for i, call in enumerate(calls):
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise _wrong(f"{place}[{i}].function", "is an object with a name and arguments")
        arguments = function.get("arguments", "{}")
        if isinstance(arguments, str):
            arguments = _object(arguments)
        made.append({**call, "function": {**function, "arguments": arguments}})
    return made


def _object(text: str) -> Any:
    """The object in a JSON text; the text itself where there is none."""
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, dict) else text


def tools_of(tools: Sequence[dict[str, Any]] | None, limits: Limits) -> list[dict[str, Any]] | None:
    """The tools of a body; None for none. Raises ApiError."""
    if not tools:
        return None
    if len(tools) > limits.tools:
        raise _wrong("tools", f"are {limits.tools} at most, got {len(tools)}")
    names = set()
    for i, tool in enumerate(tools):
        place = f"tools[{i}]"
        function = tool.get("function")
        if tool.get("type") != "function" or not isinstance(function, dict):
            raise _wrong(place, 'is {"type": "function", "function": {...}}')
        name = function.get("name")
        if not isinstance(name, str) or not name:
            raise _wrong(f"{place}.function.name", f"is a text, got {name!r:.40}")
        if name in names:
            raise _wrong(f"{place}.function.name", f"is {name!r:.60} for the second time")
        names.add(name)
        description, strict = function.get("description"), function.get("strict")
        if not isinstance(description, str | None):
            raise _wrong(f"{place}.function.description", f"is a text, got {description!r:.40}")
        if not isinstance(strict, bool | None):
            raise _wrong(f"{place}.function.strict", f"is true or false, got {strict!r:.40}")
        parameters = function.get("parameters")
        if parameters is not None and not isinstance(parameters, dict):
            raise _wrong(f"{place}.function.parameters", "is a JSON schema, an object")
    return list(tools)


def chat_tokens(
    served: Served, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]] | None,
    body: ChatBody | TokenizeBody, effort: str | None = None, last: int | None = None,
) -> list[int]:  # fmt: skip
    """The tokens of messages, continued as the body says. Raises ApiError."""
    goes_on = bool(body.continue_final_message)
    begins = not goes_on if body.add_generation_prompt is None else body.add_generation_prompt
    variables = _variables(body.chat_template_kwargs, effort)
    if isinstance(body, ChatBody) and body.documents:
        variables["documents"] = body.documents
    return served.chat_tokens(
        messages, tools, add_generation_prompt=begins, continue_final_message=goes_on,
        variables=variables, last=last,
    )  # fmt: skip


def _variables(given: dict[str, Any] | None, effort: str | None) -> dict[str, Any]:
    """Variables of the chat template beside messages and tools. Raises ApiError."""
    made = dict(given or {})
    for name in made:
        if name in _RESERVED or not name.isidentifier():
            raise _wrong("chat_template_kwargs", f"cannot have the name {name!r:.60}")
    if effort is not None:
        made.setdefault("reasoning_effort", effort)
    return made


def _wrong(place: str, what: str) -> ApiError:
    return ApiError(400, f"{place} {what}", param=place, code="invalid_value")
