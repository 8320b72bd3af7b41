"""Texts of models back to messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernwright.errors import InvalidArgument
from kernwright.llm._parse.formats import FORMATS, format_of
from kernwright.llm._parse.output import MessagePart, Output
from kernwright.llm._parse.reader import Reader

__all__ = ["MessageParser", "MessagePart", "parse_message"]


class MessageParser:
    """Takes the text of a model apart as it comes: content, reasoning, tool calls.

    `format` is "hermes" (Hermes, Qwen and other models with <tool_call>), "llama3", "mistral",
    "harmony" (gpt-oss) or "deepseek"; `MessageParser.format_of()` finds it by a template. `tools`
    are those of the prompt; `prompt` is its text: a prompt with an open <think> at its end begins
    the reasoning. The text must have the special tokens of the format
    (``skip_special_tokens=False``); tokens at the end of a turn are dropped.

    Joined parts are the same for any pieces of a text. Calls of wrong form stay content.

    >>> from kernwright import llm
    >>> parser = llm.MessageParser("hermes")
    >>> parts = parser.push('On it.<tool_call>{"name": "add", "argum')
    >>> parts += parser.push('ents": {"a": 1}}</tool_call>') + parser.finish()
    >>> [(part.kind, part.text or part.name) for part in parts]
    [('content', 'On it.'), ('tool_call', 'add'), ('arguments', '{"a": 1}')]
    """

    def __init__(
        self,
        format: str,
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        prompt: str = "",
    ) -> None:
        if format not in FORMATS:
            raise InvalidArgument(
                f"format is {format!r:.40}; known are {', '.join(sorted(FORMATS))}"
            )
        thinking = prompt.rstrip().endswith(("<think>", "[THINK]"))
        self._reader, self._output = Reader(), Output()
        self._steps = FORMATS[format](self._reader, self._output, thinking, tools)
        self._ended = False

    @staticmethod
    def format_of(template: str) -> str:
        """The format of the models of a chat template's text.

        >>> from kernwright import llm
        >>> llm.MessageParser.format_of("{{ '<|start|>assistant<|channel|>final<|message|>' }}")
        'harmony'
        """
        return format_of(template)

    def push(self, text: str) -> list[MessagePart]:
        """The parts completed by a further piece of the text."""
        return self._feed(text, False)

    def finish(self) -> list[MessagePart]:
        """The parts held back until the end of the text."""
        return self._feed("", True)

    def _feed(self, text: str, final: bool) -> list[MessagePart]:
        if self._ended:
            raise InvalidArgument("the message has ended: nothing can be added")
        self._reader.feed(text, final)
        next(self._steps, None)
        if final:
            self._ended = True
            self._output.finish()
        return self._output.taken()

    @property
    def message(self) -> dict[str, Any]:
        """The message so far, for `ChatTemplate.render()`: "role", "content", and where there are
        such, "reasoning_content" and "tool_calls" (with arguments as objects).

        >>> from kernwright import llm
        >>> parser = llm.MessageParser("mistral")
        >>> _ = parser.push('[TOOL_CALLS]add[ARGS]{"a": 1}') + parser.finish()
        >>> parser.message["tool_calls"][0]["function"]
        {'name': 'add', 'arguments': {'a': 1}}
        """
        return self._output.message()


def parse_message(
    text: str,
    format: str,
    *,
    tools: Sequence[Mapping[str, Any]] | None = None,
    prompt: str = "",
) -> dict[str, Any]:
    """The message in a whole text of a model; arguments are those of `MessageParser`.

    >>> from kernwright import llm
    >>> llm.parse_message("<think>\\n2 + 2\\n</think>\\n\\n4", "hermes")
    {'role': 'assistant', 'content': '4', 'reasoning_content': '2 + 2'}
    """
    parser = MessageParser(format, tools=tools, prompt=prompt)
    parser.push(text)
    parser.finish()
    return parser.message
