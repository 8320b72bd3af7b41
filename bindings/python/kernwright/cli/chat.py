"""kernwright chat: a conversation with a language model."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from kernwright.cli._models import (
    add_draft_arguments,
    add_graph_argument,
    add_model_arguments,
    add_sampling_arguments,
    draft_of,
    loaded,
    refuse_arguments,
    sampling_of,
)

_HELP = "/clear forgets the conversation, /system TEXT sets its system message, /stats, /quit"
_MOST_TOKENS = 1024  # of an answer, unless --max-tokens says otherwise


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)
    parser.add_argument("--system", metavar="TEXT", help="the system message")
    parser.add_argument("--message", metavar="TEXT", help="one message and its answer, no more")
    add_draft_arguments(parser)
    add_graph_argument(parser)
    refuse_arguments(parser)
    add_sampling_arguments(parser, None, f"{_MOST_TOKENS}, or what the context leaves")


class _Conversation:
    """The messages so far, and what the answers took."""

    def __init__(self, model: Any, options: dict[str, Any], system: str | None) -> None:
        from kernwright.cli._answer_view import answer_view

        self._model, self._options, self._view = model, options, answer_view()
        self._system, self._messages = system, list[dict[str, Any]]()
        self._tokens = self._counted = self._context = 0
        self._seconds = 0.0

    def answer(self, text: str) -> None:
        """Shows the answer to a message as it comes, and keeps both."""
        from kernwright.llm._answers import AnswerParser
        from kernwright.llm._options import Generation

        messages = [*self._messages, {"role": "user", "content": text}]
        system = [] if self._system is None else [{"role": "system", "content": self._system}]
        prompt = self._model.chat_tokens([*system, *messages])
        left = max(self._model.config.max_length - len(prompt), 1)
        options = {"max_tokens": min(_MOST_TOKENS, left), **self._options}
        stream = self._model.stream(prompt, **options)
        parser = AnswerParser(self._model, prompt, Generation(**options))
        times = []
        self._view.begin()
        try:
            for piece in stream:
                if piece.token is not None:
                    times.append(time.perf_counter())
                parts = [] if piece.token is None else parser.push(piece.token)
                self._view.add(piece.text, parts)
        except KeyboardInterrupt:  # ends this answer alone
            stream.close()
        finally:
            self._view.add("", parser.finish())
            self._view.end()
        self._tokens += len(times)
        self._context = len(prompt) + len(times)
        if len(times) > 1:  # the first token is the prompt's time
            self._counted += len(times) - 1
            self._seconds += times[-1] - times[0]
        self._messages = [*messages, parser.message]

    def command(self, line: str) -> bool:
        """Does what a line with a slash says; whether to go on."""
        name, _, rest = line.partition(" ")
        if name in ("/quit", "/exit"):
            return False
        if name == "/clear":
            self._messages, self._context = [], 0
        elif name == "/system":
            self._system = rest.strip() or None
        elif name == "/stats":
            print(self.stats())
        else:
            print(_HELP)
        return True

    def stats(self) -> str:
        """What was said so far, and how fast."""
        rate = self._counted / self._seconds if self._seconds else 0.0
        return (
            f"{len(self._messages)} messages; {self._tokens} tokens, {rate:.1f} tokens/s; "
            f"{self._context} of {self._model.config.max_length} tokens of context"
        )


def run(arguments: argparse.Namespace) -> int:
    model = loaded(arguments)
    options = sampling_of(arguments) | {"draft": draft_of(arguments)}
    conversation = _Conversation(model, options, arguments.system)
    if arguments.message is not None:
        conversation.answer(arguments.message)
    else:
        _converse(conversation)
    print(conversation.stats(), file=sys.stderr)
    return 0


def _converse(conversation: _Conversation) -> None:
    """Lines of stdin until /quit or its end."""
    from kernwright.llm import ContextError

    terminal = sys.stdin.isatty()
    if terminal:
        print(_HELP)
    while True:
        try:
            line = input("> " if terminal else "").strip()
        except EOFError:
            return
        if line.startswith("/"):
            if not conversation.command(line):
                return
        elif line:
            try:
                conversation.answer(line)
            except ContextError as error:  # the conversation stays as it was
                print(f"kernwright chat: {error}; /clear begins anew", file=sys.stderr)
