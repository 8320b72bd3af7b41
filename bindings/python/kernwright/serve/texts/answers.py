"""The answers of a chat: pieces of text to content, reasoning and tool calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernwright import llm
from kernwright.llm._parse.formats import MARKS
from kernwright.serve.served import Served
from kernwright.serve.texts.endings import Ending, Endings
from kernwright.serve.texts.logprobs import chat_logprobs

__all__ = ["Answer", "Prompt"]

_TAIL = 16  # tokens of a prompt that may open its reasoning


class Prompt:
    """The prompt of the answers of a chat."""

    def __init__(
        self, served: Served, tokens: Sequence[int], tools: Sequence[dict[str, Any]] | None,
        endings: Endings, *, several_calls: bool = True, has_form: bool = False,
        is_plain: bool = False, shows_reasoning: bool = True, names_tokens: bool = True,
    ) -> None:  # fmt: skip
        self.served, self.tokens, self.tools, self.endings = served, tokens, tools, endings
        self.has_form = has_form
        """Whether the bytes of the tokens are the text, as grammars see them."""
        self.several_calls = several_calls
        """Whether an answer may have more than one call: it ends before the second one else."""
        self.shows_reasoning, self.names_tokens = shows_reasoning, names_tokens
        """Whether answers have reasoning; whether logprobs have texts of tokens, not their ids."""
        self.format = None if is_plain else served.chat_format
        """None: all of an answer is its content."""
        self.hidden: frozenset[int] = frozenset()
        """Special tokens without a meaning in the format: an answer does not show them."""
        if self.format is not None and not endings.special:
            special = served.tokenizer.special_tokens
            self.hidden = frozenset(
                id for text, id in special.items() if text not in MARKS[self.format]
            )
        self.end = served.tokenizer.decode(tokens[-_TAIL:], skip_special_tokens=False)


class Answer:
    """One answer, as its tokens come.

    Stop strings count in the content alone, not in reasoning and calls. Marks of the format may be
    special tokens, so that the text is made here, with them.
    """

    def __init__(self, prompt: Prompt) -> None:
        served = prompt.served
        self._served = served
        self._several_calls = prompt.several_calls
        self._parser = None
        if prompt.format is not None:
            self._parser = llm.MessageParser(prompt.format, tools=prompt.tools, prompt=prompt.end)
        self._hidden, self._shows_reasoning = prompt.hidden, prompt.shows_reasoning
        self._as_ids = not prompt.names_tokens
        self._text = served.tokenizer.stream(
            prompt.tokens, verbatim=prompt.has_form,
            skip_special_tokens=self._parser is None and not prompt.endings.special,
        )  # fmt: skip
        self._ending = Ending(prompt.endings)
        self.content, self.reasoning = "", ""
        self.calls: list[dict[str, Any]] = []
        self.logprobs: list[dict[str, Any]] = []
        """Of all tokens so far."""
        self.tokens: list[int] = []
        """All tokens so far, its last one included."""
        self.finish_reason: str | None = None
        self._told = self._told_tokens = 0
        self._begun = False

    def push(self, piece: llm.Piece) -> dict[str, Any] | None:
        """The delta of a piece; None where it shows nothing and ends nothing."""
        text = ""
        if piece.token is not None:
            self.tokens.append(piece.token)
            self._ending.tokens += 1
            is_end = piece.finish_reason == "stop"
            if self._ending.shows(piece.token, is_end) and piece.token not in self._hidden:
                text = self._text.push(piece.token)
            if piece.logprobs is not None and not is_end:
                self.logprobs.append(
                    chat_logprobs(self._served, piece.token, piece.logprobs, self._as_ids)
                )
        if piece.finish_reason is not None:
            text += self._text.finish()
        delta: dict[str, Any] = {}
        for part in self._parts(text, piece.finish_reason is not None):
            self._add(delta, part)
            if self.finish_reason is not None:
                break
        if piece.finish_reason is not None and self.finish_reason is None:
            self._content(delta, self._ending.finish())
            self.finish_reason = piece.finish_reason
        if self.finish_reason == "stop" and self.calls and self._ending.string is None:
            self.finish_reason = "tool_calls"
        if (delta or self.finish_reason is not None) and not self._begun:
            self._begun = True
            delta = {"role": "assistant", **delta}
        return delta if delta or self.finish_reason is not None else None

    @property
    def stop_string(self) -> str | None:
        """The stop string that ended it."""
        return self._ending.string

    @property
    def stop_reason(self) -> str | int | None:
        """The stop string or the token of stop_token_ids at its end."""
        return self._ending.reason

    def new_tokens(self) -> list[int]:
        """The tokens since the last time."""
        begin, self._told_tokens = self._told_tokens, len(self.tokens)
        return self.tokens[begin:]

    def new_logprobs(self) -> list[dict[str, Any]]:
        """Those of tokens since the last time."""
        begin, self._told = self._told, len(self.logprobs)
        return self.logprobs[begin:]

    def message(self) -> dict[str, Any]:
        """The whole answer."""
        content = self.content if self.content or not self.calls else None
        made: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
        if self.reasoning:
            made["reasoning_content"] = self.reasoning
        if self.calls:
            made["tool_calls"] = self.calls
        return made

    def _parts(self, text: str, final: bool) -> list[llm.MessagePart]:
        if self._parser is None:
            return [llm.MessagePart("content", text)] if text else []
        parts = self._parser.push(text) if text else []
        return parts + self._parser.finish() if final else parts

    def _add(self, delta: dict[str, Any], part: llm.MessagePart) -> None:
        if part.kind == "content":
            self._content(delta, self._ending.push(part.text))
            if self._ending.string is not None:
                self.finish_reason = "stop"
            return
        self._content(delta, self._ending.finish())  # no stop string spans a call
        if part.kind == "reasoning" and not self._shows_reasoning:
            return
        if part.kind == "reasoning":
            self.reasoning += part.text
            delta["reasoning_content"] = delta.get("reasoning_content", "") + part.text
        elif part.kind == "tool_call" and self.calls and not self._several_calls:
            self.finish_reason = "tool_calls"
        elif part.kind == "tool_call":
            function = {"name": part.name, "arguments": ""}
            self.calls.append({"id": part.id, "type": "function", "function": dict(function)})
            call = {"index": part.call, "id": part.id, "type": "function", "function": function}
            delta.setdefault("tool_calls", []).append(call)
        else:
            self.calls[part.call]["function"]["arguments"] += part.text
            calls = delta.setdefault("tool_calls", [])
            if not calls or calls[-1]["index"] != part.call:
                calls.append({"index": part.call, "function": {"arguments": ""}})
            calls[-1]["function"]["arguments"] += part.text

    def _content(self, delta: dict[str, Any], text: str) -> None:
        if text:
            self.content += text
            delta["content"] = delta.get("content", "") + text
