"""Messages and tools as plain data, for templates."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from kernwright.errors import InvalidArgument

# Names of the reasoning in a message. Templates read the first.
_REASONING = ("reasoning_content", "thinking", "reasoning")
_DEEPEST = 100  # levels of objects and lists


def plain(value: Any, depth: int = 0) -> Any:
    """A value made of JSON's types alone: methods of other objects may write files. Raises
    InvalidArgument for one that is nested too deep."""
    if depth > _DEEPEST:
        raise InvalidArgument(
            f"messages, tools and variables of a template are nested {_DEEPEST} deep at most"
        )
    deeper = depth + 1
    if value is None or type(value) in (str, int, float, bool):
        return value
    for kind in (str, int, float):
        if isinstance(value, kind):
            return getattr(kind, f"__{kind.__name__}__")(value)
    if isinstance(value, Mapping):
        return {plain(key, deeper): plain(item, deeper) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        if type(value) not in (list, tuple):
            return list(value)
        return type(value)(plain(item, deeper) for item in value)
    if isinstance(value, np.generic):
        return plain(value.item(), deeper)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name), deeper) for f in dataclasses.fields(value)}
    if callable(getattr(value, "model_dump", None)):
        return plain(value.model_dump(), deeper)
    return f"<{type(value).__name__}>"


def plain_messages(messages: Any) -> list[dict[str, Any]]:
    """Messages as dictionaries without None. Raises InvalidArgument."""
    if isinstance(messages, (str, Mapping)) or not isinstance(messages, Iterable):
        raise InvalidArgument(
            'messages are a list of {"role": ..., "content": ...}, got ' + f"{messages!r:.80}"
        )
    made = []
    for i, each in enumerate(messages):
        message = plain(each)
        if not isinstance(message, dict):
            raise InvalidArgument(
                f'message {i} must be an object with "role" and "content", got {each!r:.80}'
            )
        if not isinstance(message.get("role"), str):
            raise InvalidArgument(f'message {i} has no "role": {each!r:.80}')
        made.append(_with_reasoning({k: v for k, v in message.items() if v is not None}))
    if not made:
        raise InvalidArgument("there are no messages: a conversation has at least one")
    return made


def _with_reasoning(message: dict[str, Any]) -> dict[str, Any]:
    """The message with its reasoning under the names of templates."""
    for name in _REASONING:
        if name in message:
            reasoning = message[name]
            return {"thinking": reasoning, **message, "reasoning_content": reasoning}
    return message


def plain_tools(tools: Any) -> list[Any] | None:
    """Tools as JSON schemas. Raises InvalidArgument."""
    if tools is None:
        return None
    made = [plain(each) for each in tools]
    for i, (each, tool) in enumerate(zip(made, tools, strict=True)):
        if not isinstance(each, dict):
            raise InvalidArgument(f"tool {i} must be a JSON schema (a dict), got {tool!r:.80}")
    return made
