"""Answers of a chat, taken apart as their tokens come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kernwright.llm._errors import ModelError
from kernwright.llm._options import Generation
from kernwright.llm._parse.output import MessagePart
from kernwright.llm._parse.parser import MessageParser
from kernwright.llm._text.stop import StopCheck

if TYPE_CHECKING:
    from kernwright.llm._model import Model

__all__ = ["AnswerParser"]

_TAIL = 16  # tokens of a prompt, whose end tells whether the model is reasoning already


class AnswerParser:
    """The tokens of one answer as parts of a message, in the format of the model's template.

    `options` are those that the answer is generated with: the message ends where its text does.
    """

    def __init__(
        self, model: Model, prompt: Sequence[int], options: Generation,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:  # fmt: skip
        tokenizer = model.tokenizer
        if tokenizer is None or tokenizer.chat_template is None:
            raise ModelError("an answer is read by the model's chat template, and it has none")
        self._check = StopCheck(
            tokenizer.stream(prompt, skip_special_tokens=False), eos=model.eos, stop=options.stop,
            stop_tokens=options.stop_tokens, min_tokens=options.min_tokens,
            ignore_eos=options.ignore_eos,
        )  # fmt: skip
        self._parser = MessageParser(
            MessageParser.format_of(tokenizer.chat_template.text), tools=tools,
            prompt=tokenizer.decode(prompt[-_TAIL:], skip_special_tokens=False),
        )  # fmt: skip

    def push(self, token: int) -> list[MessagePart]:
        """The parts completed by a token; none behind the end of the text."""
        if self._check.reason is not None:
            return []
        return self._parser.push(self._check.push(token))

    def finish(self) -> list[MessagePart]:
        """The parts held back until the end."""
        return self._parser.push(self._check.finish()) + self._parser.finish()

    @property
    def message(self) -> dict[str, Any]:
        """The message so far: see MessageParser.message."""
        return self._parser.message
