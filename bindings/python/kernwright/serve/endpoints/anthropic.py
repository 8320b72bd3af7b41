"""POST /v1/messages: Anthropic's interface for chats."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from kernwright.serve.calls import Call
from kernwright.serve.endpoints.chat import Chat
from kernwright.serve.http.errors import ApiError, about, renamed
from kernwright.serve.http.streaming import event
from kernwright.serve.protocol import ChatBody, CountTokensBody, MessagesBody, chat_body
from kernwright.serve.served import Served
from kernwright.serve.server import Server
from kernwright.serve.texts.answers import Answer
from kernwright.serve.texts.blocks import Block, Blocks, Change
from kernwright.serve.texts.messages import chat_tokens, messages_of, tools_of
from kernwright.serve.texts.tool_choice import choice_of

__all__ = ["AnthropicMessage", "count_tokens"]

_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
# Fields of chats as this interface has them.
_FIELDS = {
    r"^max_completion_tokens": "max_tokens",
    r"^response_format(\.json_schema)?": "output_config.format",
    r"^reasoning_effort": "output_config.effort",
    r"^stop\b": "stop_sequences",
    r"^(messages\[\d+\])\.tool_call_id": r"\1.content.tool_use_id",
    r"^tools\[(\d+)\]\.function\.parameters": r"tools[\1].input_schema",
    r"^tools\[(\d+)\]\.function": r"tools[\1]",
}
_DELTAS = {
    "text": ("text_delta", "text"),
    "reasoning": ("thinking_delta", "thinking"),
    "call": ("input_json_delta", "partial_json"),
}


class AnthropicMessage:
    """The answer to one body, a chat in another form. It is made by a worker thread."""

    ends_with_done = False

    def __init__(self, server: Server, served: Served, body: MessagesBody, call: Call) -> None:
        self._call, self._served = call, served
        with renamed(_FIELDS):
            chat, places = _chat_body(body)
            self._chat = Chat(server, served, chat, call, places)
        self.texts = self._chat.texts
        self._blocks = Blocks()
        self._answer: Answer | None = None

    @staticmethod
    def failure(error: ApiError) -> bytes:
        """The event of an error within a stream."""
        told = error.body()["error"]
        return event(
            {"type": "error", "error": {"type": told["type"], "message": error.message}}, "error"
        )

    async def _changes(self) -> AsyncIterator[Change]:
        async for _, answer, delta in self._chat.pieces():
            self._answer = answer
            for change in self._blocks.changes(delta, answer.finish_reason):
                yield change

    async def whole(self) -> dict[str, Any]:
        """The body of the answer."""
        async for _ in self._changes():
            pass
        return self._message([_content(each) for each in self._blocks.blocks])

    async def events(self) -> AsyncIterator[bytes]:
        """Events with types, as Anthropic has them: blocks begin, grow and end."""
        begun = False
        async for change in self._changes():
            if not begun:
                begun = True
                yield self._start()
            yield _told(change)
        if not begun:
            yield self._start()
        delta = {name: self._message([])[name] for name in ("stop_reason", "stop_sequence")}
        usage = {"output_tokens": self._call.completion_tokens}
        kind = "message_delta"
        yield event({"type": kind, "delta": delta, "usage": usage}, kind)
        yield event({"type": "message_stop"}, "message_stop")

    def _start(self) -> bytes:
        message = {**self._message([]), "stop_reason": None, "stop_sequence": None}
        return event({"type": "message_start", "message": message}, "message_start")

    def _message(self, content: list[dict[str, Any]]) -> dict[str, Any]:
        call, answer = self._call, self._answer
        matched = None if answer is None else answer.stop_string
        reason = "stop" if answer is None else answer.finish_reason or "stop"
        return {
            "id": f"msg_{call.id}", "type": "message", "role": "assistant",
            "model": self._served.name, "content": content, "stop_sequence": matched,
            "stop_reason": "stop_sequence" if matched else _REASONS.get(reason, "end_turn"),
            "usage": {
                "input_tokens": call.prompt_tokens - call.cached_tokens,
                "cache_read_input_tokens": call.cached_tokens, "cache_creation_input_tokens": 0,
                "output_tokens": call.completion_tokens,
            },
        }  # fmt: skip


def _content(block: Block, is_begin: bool = False) -> dict[str, Any]:
    """A block; at its begin it is empty."""
    if block.kind == "text":
        return {"type": "text", "text": "" if is_begin else block.text}
    if block.kind == "reasoning":
        return {"type": "thinking", "thinking": "" if is_begin else block.text, "signature": ""}
    given: Any = {}
    if not is_begin:
        try:
            given = json.loads(block.text or "{}")
        except ValueError:  # cut by max_tokens
            given = {"arguments": block.text}
    return {"type": "tool_use", "id": block.id, "name": block.name, "input": given}


def _told(change: Change) -> bytes:
    block = change.block
    if change.what == "begin":
        name = "content_block_start"
        more = {"content_block": _content(block, True)}
    elif change.what == "more":
        name = "content_block_delta"
        kind, field = _DELTAS[block.kind]
        more = {"delta": {"type": kind, field: change.text}}
    else:
        name, more = "content_block_stop", {}
    return event({"type": name, "index": block.index, **more}, name)


def count_tokens(server: Server, served: Served, body: CountTokensBody) -> dict[str, Any]:
    """The tokens that messages and tools have as a prompt."""
    with renamed(_FIELDS), about("messages"):
        fields, places = _chat_fields(body)
        chat = chat_body(fields)
        messages = messages_of(chat.messages, server.limits, places)
        tools = tools_of(chat.tools, server.limits)
        tools = choice_of(chat.tool_choice, tools).told(tools)
        tokens = chat_tokens(served, messages, tools, chat, chat.reasoning_effort)
    return {"input_tokens": len(tokens)}


def _chat_fields(body: CountTokensBody) -> tuple[dict[str, Any], list[str]]:
    """What makes a prompt, as a chat has it, and the places of its messages in the body."""
    made: list[dict[str, Any]] = []
    places: list[str] = []
    if body.system is not None:
        made.append({"role": "system", "content": body.system})
        places.append("system")
    for i, each in enumerate(body.messages):
        found = _messages(i, each)
        made += found
        places += [f"messages[{i}]"] * len(found)
    choice = body.tool_choice
    config = body.output_config or {}
    form = config.get("format")
    if isinstance(form, dict) and "json_schema" not in form:
        form = {"type": form.get("type"), "json_schema": {"schema": form.get("schema")}}
    fields = {
        "messages": made,
        "model": body.model, "tools": _tools(body.tools),
        "tool_choice": _choice(choice),
        "parallel_tool_calls": not (choice or {}).get("disable_parallel_tool_use", False),
        "response_format": form, "reasoning_effort": config.get("effort"),
    }  # fmt: skip
    return fields, places


def _chat_body(body: MessagesBody) -> tuple[ChatBody, list[str]]:
    """The same as a chat, and the places of its messages."""
    fields, places = _chat_fields(body)
    made = {
        **fields, "max_completion_tokens": body.max_tokens,
        "temperature": body.temperature, "top_p": body.top_p, "top_k": body.top_k,
        "stop": body.stop_sequences,
    }  # fmt: skip
    return chat_body(made), places


def _choice(choice: dict[str, Any] | None) -> Any:
    if choice is None:
        return None
    kind, name = choice.get("type"), choice.get("name")
    if kind not in ("auto", "any", "none", "tool") or (
        kind == "tool" and not isinstance(name, str)
    ):
        told = 'is {"type": "auto"}, "any" or "none", or {"type": "tool", "name": ...}'
        raise _wrong("tool_choice", f"{told}, got {choice!r:.60}")
    if not isinstance(choice.get("disable_parallel_tool_use", False), bool):
        raise _wrong("tool_choice.disable_parallel_tool_use", "is true or false")
    if kind == "tool":
        return {"type": "function", "function": {"name": name}}
    return "required" if kind == "any" else kind


def _tools(tools: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
    made = []
    for i, tool in enumerate(tools or ()):
        if tool.get("type", "custom") != "custom":
            raise _wrong(f"tools[{i}].type", f"is {tool['type']!r:.40}: it is not supported")
        function = {
            "name": tool.get("name"), "description": tool.get("description"),
            "parameters": tool.get("input_schema"),
        }  # fmt: skip
        told = {name: value for name, value in function.items() if value is not None}
        made.append({"type": "function", "function": told})
    return made or None


def _messages(number: int, message: dict[str, Any]) -> list[dict[str, Any]]:
    """A message with blocks as messages of a chat: results of tools come first, as their own."""
    content, role = message.get("content"), message.get("role")
    if not isinstance(content, list):
        return [{"role": role, "content": content}]
    results: list[dict[str, Any]] = []
    made: dict[str, Any] = {"role": role, "content": []}
    for i, block in enumerate(content):
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text":
            made["content"].append({"type": "text", "text": block.get("text")})
        elif kind == "tool_use":
            function = {"name": block.get("name"), "arguments": json.dumps(block.get("input", {}))}
            call = {"id": block.get("id"), "type": "function", "function": function}
            made.setdefault("tool_calls", []).append(call)
        elif kind == "tool_result":
            result = block.get("content") or ""
            results.append(
                {"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": result}
            )
        elif kind == "thinking":
            made["reasoning_content"] = block.get("thinking")
        else:
            place = f"messages[{number}].content[{i}].type"
            raise _wrong(place, f"is {kind!r:.40}: only texts and tools are supported")
    has_own = made["content"] or made.keys() - {"role", "content"} or not results
    return [*results, *([made] if has_own else [])]


def _wrong(place: str, what: str) -> ApiError:
    return ApiError(400, f"{place} {what}", param=place, code="unsupported_value")
