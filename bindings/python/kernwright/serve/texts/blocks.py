"""The parts of an answer in the order in which they come, for interfaces that number them."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

__all__ = ["Block", "Blocks", "Change"]


@dataclasses.dataclass
class Block:
    """A part of an answer: "reasoning", "text" or "call"."""

    index: int
    kind: str
    text: str = ""
    """Of a call, its arguments."""
    id: str = ""
    name: str = ""
    is_cut: bool = False
    """Whether the answer was cut within it."""


class Change(NamedTuple):
    """What a delta does to a part: "begin", "more" with a text, or "end"."""

    what: str
    block: Block
    text: str = ""


class Blocks:
    """The parts of one answer, from the deltas of an Answer."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._open: Block | None = None

    def changes(self, delta: dict[str, Any] | None, finish_reason: str | None) -> list[Change]:
        """The changes of a delta; with a finish_reason all parts end."""
        made: list[Change] = []
        found = delta or {}
        for kind, field in (("reasoning", "reasoning_content"), ("text", "content")):
            if found.get(field):
                self._write(made, kind, found[field])
        for call in found.get("tool_calls", ()):
            if "id" in call:
                self._begin(made, "call", call["id"], call["function"]["name"])
            text = call["function"]["arguments"]
            if text and self._open is not None:
                self._open.text += text
                made.append(Change("more", self._open, text))
        if finish_reason is not None:
            if self._open is not None:
                self._open.is_cut = finish_reason == "length"
            self._end(made)
        return made

    def _write(self, made: list[Change], kind: str, text: str) -> None:
        if self._open is None or self._open.kind != kind:
            self._begin(made, kind)
        assert self._open is not None
        self._open.text += text
        made.append(Change("more", self._open, text))

    def _begin(self, made: list[Change], kind: str, id: str = "", name: str = "") -> None:
        self._end(made)
        self._open = Block(len(self.blocks), kind, id=id, name=name)
        self.blocks.append(self._open)
        made.append(Change("begin", self._open))

    def _end(self, made: list[Change]) -> None:
        if self._open is not None:
            made.append(Change("end", self._open))
            self._open = None
