"""The parts of a message, as parsers write them."""

from __future__ import annotations

import json
import secrets
from typing import Any, NamedTuple

__all__ = ["MessagePart"]

_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_ID_LENGTH = 9  # as Mistral's templates demand it


class MessagePart(NamedTuple):
    """A piece of a message.

    `kind` is "content", "reasoning", "tool_call" (once for each call, with its number
    `call`, `id` and `name`) or "arguments" (pieces of the JSON of a call; joined, they are all of
    it).

    >>> from kernwright import llm
    >>> parser = llm.MessageParser("hermes")
    >>> [(part.kind, part.text) for part in parser.push("<think>Hm</think>Hi")]
    [('reasoning', 'Hm'), ('content', 'Hi')]
    """

    kind: str
    text: str
    call: int = 0
    id: str = ""
    name: str = ""


class Output:
    """Collects parts; white space beside marks is dropped."""

    def __init__(self) -> None:
        self.parts: list[MessagePart] = []
        self.texts = {"content": "", "reasoning": ""}
        self.calls: list[dict[str, Any]] = []
        self._kind = ""
        self._spaces = ""
        self._strip = False

    def content(self, text: str) -> None:
        """Writes to the content."""
        self._write("content", text)

    def reasoning(self, text: str) -> None:
        """Writes to the reasoning."""
        self._write("reasoning", text)

    def _write(self, kind: str, text: str) -> None:
        """Spaces at the end wait for the next text: a mark after them drops them."""
        if kind != self._kind:
            self._spaces, self._kind = "", kind
        text = self._spaces + text
        if self._strip:
            text = text.lstrip()
        shown = text.rstrip()
        self._spaces = text[len(shown) :]
        if shown:
            self._strip = False
            self._show(kind, shown)

    def _show(self, kind: str, text: str) -> None:
        self.texts[kind] += text
        self.parts.append(MessagePart(kind, text))

    def mark(self) -> None:
        """A mark of the format was read: white space on both sides is dropped."""
        self._spaces, self._strip = "", True

    def separate(self, kind: str) -> None:
        """Begins a further text of a kind, on a line of its own."""
        self.mark()
        if self.texts[kind]:
            self._show(kind, "\n")

    def call(self, name: str, id: str = "") -> None:
        """Begins a call; arguments() adds to it."""
        self.mark()
        id = id or "".join(secrets.choice(_LETTERS) for _ in range(_ID_LENGTH))
        self.calls.append({"id": id, "name": name, "arguments": ""})
        self.parts.append(MessagePart("tool_call", "", len(self.calls) - 1, id, name))

    def arguments(self, text: str) -> None:
        """Writes to the arguments of the last call."""
        if text:
            self.calls[-1]["arguments"] += text
            self.parts.append(MessagePart("arguments", text, len(self.calls) - 1))

    def finish(self) -> None:
        """Ends the message: its last spaces are shown; calls without arguments get an empty
        object."""
        if self._spaces and not self._strip and not self.calls:
            self._show(self._kind, self._spaces)
        self._spaces = ""
        self.end_call()

    def end_call(self) -> None:
        """Ends a call: arguments are never an empty text."""
        if self.calls and not self.calls[-1]["arguments"].strip():
            self.arguments("{}")

    def taken(self) -> list[MessagePart]:
        """The parts since the last time; neighbours of the same kind are joined."""
        made: list[MessagePart] = []
        for part in self.parts:
            last = made[-1] if made else None
            joins = last is not None and (last.kind, last.call) == (part.kind, part.call)
            if last is not None and joins and part.kind != "tool_call":
                made[-1] = last._replace(text=last.text + part.text)
            else:
                made.append(part)
        self.parts = []
        return made

    def message(self) -> dict[str, Any]:
        """The message so far, as templates take it."""
        made: dict[str, Any] = {"role": "assistant", "content": self.texts["content"]}
        if self.texts["reasoning"]:
            made["reasoning_content"] = self.texts["reasoning"]
        if self.calls:
            made["tool_calls"] = [
                {
                    "id": call["id"],
                    "type": "function",
                    "function": {"name": call["name"], "arguments": _object(call["arguments"])},
                }
                for call in self.calls
            ]
        return made


def _object(text: str) -> Any:
    """The object in a JSON text, or the text itself where there is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, dict) else text
