"""POST /v1/responses: OpenAI's other interface for chats, without stored conversations."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from kernwright.serve.calls import Call
from kernwright.serve.endpoints.chat import Chat
from kernwright.serve.http.errors import ApiError, renamed
from kernwright.serve.http.streaming import event
from kernwright.serve.protocol import ChatBody, MoreSampling, ResponsesBody, chat_body
from kernwright.serve.served import Served
from kernwright.serve.server import Server
from kernwright.serve.texts.blocks import Block, Blocks, Change

__all__ = ["Responses"]

# Fields of chats as this interface has them.
_FIELDS = {
    r"^messages\b": "input",
    r"^max_completion_tokens": "max_output_tokens",
    r"^response_format(\.json_schema)?": "text.format",
    r"^reasoning_effort": "reasoning.effort",
    r"^tools\[(\d+)\]\.function": r"tools[\1]",
}


class Responses:
    """The answer to one body, a chat in another form. It is made by a worker thread."""

    ends_with_done = False

    def __init__(self, server: Server, served: Served, body: ResponsesBody, call: Call) -> None:
        _refuse_what_is_not_there(body)
        self._body, self._call, self._served = body, call, served
        with renamed(_FIELDS):
            chat, places = _chat_body(body)
            self._chat = Chat(server, served, chat, call, places)
        self.texts = self._chat.texts
        self._blocks, self._reason = Blocks(), ""
        self._number, self._reasoning_tokens = 0, 0

    def failure(self, error: ApiError) -> bytes:
        """The events of an error within a stream: the error, and the failed response."""
        told = error.body()["error"]
        named = {name: told[name] for name in ("message", "code", "param")}
        failed = self._response("failed") | {
            "error": {"code": "server_error", "message": error.message}
        }
        return self._event("error", **named) + self._event("response.failed", response=failed)

    async def _changes(self) -> AsyncIterator[Change]:
        async for _, answer, delta in self._chat.pieces():
            self._reason = answer.finish_reason or ""
            self._reasoning_tokens += delta is not None and "reasoning_content" in delta
            for change in self._blocks.changes(delta, answer.finish_reason):
                yield change

    async def whole(self) -> dict[str, Any]:
        """The body of the answer."""
        async for _ in self._changes():
            pass
        return self._response()

    async def events(self) -> AsyncIterator[bytes]:
        """Events with types, as OpenAI has them: items begin, grow and end."""
        begun = False
        async for change in self._changes():
            if not begun:
                begun = True
                yield self._begin()
            for name, fields in self._told(change):
                yield self._event(name, **fields)
        if not begun:
            yield self._begin()
        made = self._response()
        yield self._event(f"response.{made['status']}", response=made)

    def _begin(self) -> bytes:
        made = self._response("in_progress")
        return b"".join(
            self._event(f"response.{kind}", response=made) for kind in ("created", "in_progress")
        )

    def _event(self, name: str, /, **fields: Any) -> bytes:
        self._number += 1
        return event({"type": name, "sequence_number": self._number - 1, **fields}, name)

    def _told(self, change: Change) -> list[tuple[str, dict[str, Any]]]:
        block = change.block
        place = {"item_id": self._id(block), "output_index": block.index}
        part = {**place, "content_index": 0}
        item: dict[str, Any] = {"output_index": block.index}
        name = "output_text" if block.kind == "text" else "reasoning_text"
        more: dict[str, Any] = {"logprobs": []} if block.kind == "text" else {}
        if change.what == "begin":
            made = [("response.output_item.added", {**item, "item": self._item(block, False)})]
            if block.kind != "call":
                made.append(("response.content_part.added", {**part, "part": _part(block, "")}))
            return made
        if change.what == "more":
            if block.kind == "call":
                return [("response.function_call_arguments.delta", {**place, "delta": change.text})]
            return [(f"response.{name}.delta", {**part, "delta": change.text, **more})]
        if block.kind == "call":
            done = {**place, "name": block.name, "arguments": block.text}
            made = [("response.function_call_arguments.done", done)]
        else:
            made = [
                (f"response.{name}.done", {**part, "text": block.text, **more}),
                ("response.content_part.done", {**part, "part": _part(block, block.text)}),
            ]
        return [*made, ("response.output_item.done", {**item, "item": self._item(block, True)})]

    def _id(self, block: Block) -> str:
        prefix = {"text": "msg", "call": "fc", "reasoning": "rs"}[block.kind]
        return f"{prefix}_{self._call.id}_{block.index}"

    def _item(self, block: Block, is_whole: bool) -> dict[str, Any]:
        status = "incomplete" if block.is_cut else "completed"
        status = status if is_whole else "in_progress"
        made: dict[str, Any] = {"id": self._id(block), "status": status}
        if block.kind == "call":
            return {
                **made, "type": "function_call", "call_id": block.id, "name": block.name,
                "arguments": block.text if is_whole else "",
            }  # fmt: skip
        content = [_part(block, block.text)] if is_whole else []
        if block.kind == "reasoning":
            return {**made, "type": "reasoning", "summary": [], "content": content}
        return {**made, "type": "message", "role": "assistant", "content": content}

    def _response(self, status: str | None = None) -> dict[str, Any]:
        body, call = self._body, self._call
        cut = status is None and self._reason == "length"
        status = status or ("incomplete" if cut else "completed")
        ended = status not in ("in_progress", "failed")
        return {
            "id": f"resp_{call.id}", "object": "response", "created_at": self._chat.created,
            "status": status, "model": self._served.name, "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "output": [self._item(each, True) for each in self._blocks.blocks] if ended else [],
            "instructions": body.instructions, "max_output_tokens": body.max_output_tokens,
            "metadata": body.metadata or {},
            "parallel_tool_calls": body.parallel_tool_calls is not False,
            "previous_response_id": None, "temperature": body.temperature, "top_p": body.top_p,
            "tool_choice": body.tool_choice or "auto", "tools": body.tools or [],
            "reasoning": {"effort": (body.reasoning or {}).get("effort"), "summary": None},
            "truncation": "disabled",
            "text": {"format": {"type": "text"}, **(body.text or {})},
            "usage": self._usage() if ended else None,
        }  # fmt: skip

    def _usage(self) -> dict[str, Any]:
        call = self._call
        return {
            "input_tokens": call.prompt_tokens,
            "input_tokens_details": {"cached_tokens": call.cached_tokens, "cache_write_tokens": 0},
            "output_tokens": call.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": self._reasoning_tokens},
            "total_tokens": call.prompt_tokens + call.completion_tokens,
        }


def _part(block: Block, text: str) -> dict[str, Any]:
    if block.kind == "reasoning":
        return {"type": "reasoning_text", "text": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _refuse_what_is_not_there(body: ResponsesBody) -> None:
    if body.previous_response_id is not None:
        raise _unsupported("previous_response_id", "responses are not kept: send all items")
    if body.background:
        raise _unsupported("background", "responses come within their request")
    if body.truncation not in (None, "disabled"):
        raise _unsupported("truncation", 'prompts are never cut: it is "disabled"')
    if "message.output_text.logprobs" in (body.include or ()):
        raise _unsupported("include", "chats have log-probabilities, responses none")


def _chat_body(body: ResponsesBody) -> tuple[ChatBody, list[str]]:
    """The same as a chat, and the places of its messages."""
    messages: list[dict[str, Any]] = []
    places: list[str] = []
    if body.instructions is not None:
        messages.append({"role": "system", "content": body.instructions})
        places.append("instructions")
    if isinstance(body.input, str):
        messages.append({"role": "user", "content": body.input})
        places.append("input")
    else:
        _add_items(body.input, messages, places)
    form = (body.text or {}).get("format")
    if not isinstance(form, dict | None):
        raise _unsupported("text.format", f"it is an object, got {form!r:.40}")
    if isinstance(form, dict) and form.get("type") == "json_schema" and "json_schema" not in form:
        form = {"type": "json_schema", "json_schema": {**form}}
    made = {
        "messages": messages, "model": body.model,
        "max_completion_tokens": body.max_output_tokens, "temperature": body.temperature,
        "top_p": body.top_p, "tools": _tools(body.tools), "tool_choice": _choice(body.tool_choice),
        "parallel_tool_calls": body.parallel_tool_calls,
        "reasoning_effort": (body.reasoning or {}).get("effort"), "response_format": form,
        **{name: getattr(body, name) for name in MoreSampling.__struct_fields__},
    }  # fmt: skip
    return chat_body(made), places


def _choice(choice: Any) -> Any:
    """The name of a function lies in a field of its own in chats."""
    if isinstance(choice, dict) and "name" in choice:
        return {"type": choice.get("type"), "function": {"name": choice["name"]}}
    return choice


def _tools(tools: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
    """Functions lie in a field of their own in chats."""
    made = []
    for i, tool in enumerate(tools or ()):
        if tool.get("type") != "function":
            raise _unsupported(f"tools[{i}].type", f'is "function", got {tool.get("type")!r:.40}')
        made.append(
            {"type": "function", "function": {k: v for k, v in tool.items() if k != "type"}}
        )
    return made or None


def _add_items(
    items: list[dict[str, Any]], made: list[dict[str, Any]], places: list[str]
) -> None:  # fmt: skip
    """Items to messages: calls belong to the message of the assistant before them."""
    for i, item in enumerate(items):
        kind = item.get("type", "message")
        if kind == "message":
            made.append({"role": item.get("role"), "content": item.get("content")})
        elif kind == "function_call":
            _require_texts(item, i, "call_id", "name")
            call = {
                "id": item.get("call_id"), "type": "function",
                "function": {"name": item.get("name"), "arguments": item.get("arguments", "{}")},
            }  # fmt: skip
            if not made or made[-1]["role"] != "assistant":
                made.append({"role": "assistant", "content": None})
            made[-1].setdefault("tool_calls", []).append(call)
        elif kind == "function_call_output":
            _require_texts(item, i, "call_id")
            output = item.get("output")
            if not isinstance(output, str | list):
                raise _unsupported(f"input[{i}].output", "it is a text or a list of parts")
            made.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": output})
        elif kind != "reasoning":
            raise _unsupported(f"input[{i}].type", f"{kind!r:.40} is unknown")
        places += [f"input[{i}]"] * (len(made) - len(places))


def _require_texts(item: dict[str, Any], number: int, *names: str) -> None:
    for name in names:
        if not isinstance(item.get(name), str):
            raise _unsupported(
                f"input[{number}].{name}", f"it is a text, got {item.get(name)!r:.40}"
            )


def _unsupported(place: str, what: str) -> ApiError:
    return ApiError(400, f"{place}: {what}", param=place, code="unsupported_value")
