"""kernwright chat: a conversation with a language model."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from kernwright.cli._models import add_model_arguments, add_sampling_arguments, loaded, sampling_of

_HELP = "/clear forgets the conversation, /system TEXT sets its system message, /stats, /quit"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)
    parser.add_argument("--system", metavar="TEXT", help="the system message")
    parser.add_argument("--message", metavar="TEXT", help="one message and its answer, no more")
    add_sampling_arguments(parser, 1024)


class _Conversation:
    """The messages so far, and what the answers took."""

    def __init__(self, model: Any, options: dict[str, Any], system: str | None) -> None:
        self._model, self._options = model, options
        self._system, self._messages = system, list[dict[str, str]]()
        self._tokens, self._seconds = 0, 0.0

    def answer(self, text: str) -> None:
        """Prints the answer to a message as it comes, and keeps both."""
        messages = [*self._messages, {"role": "user", "content": text}]
        system = [] if self._system is None else [{"role": "system", "content": self._system}]
        prompt = self._model.chat_tokens([*system, *messages])
        begin, parts = time.perf_counter(), []
        stream = self._model.stream(prompt, **self._options)
        try:
            for piece in stream:
                parts.append(piece.text)
                self._tokens += piece.token is not None
                print(piece.text, end="", flush=True)
        except KeyboardInterrupt:  # ends this answer alone
            stream.close()
        print(flush=True)
        self._seconds += time.perf_counter() - begin
        self._messages = [*messages, {"role": "assistant", "content": "".join(parts)}]

    def command(self, line: str) -> bool:
        """Does what a line with a slash says; whether to go on."""
        name, _, rest = line.partition(" ")
        if name in ("/quit", "/exit"):
            return False
        if name == "/clear":
            self._messages = []
        elif name == "/system":
            self._system = rest.strip() or None
        elif name == "/stats":
            rate = self._tokens / self._seconds if self._seconds else 0.0
            print(f"{len(self._messages)} messages; {self._tokens} tokens, {rate:.1f} tokens/s")
        else:
            print(_HELP)
        return True


def run(arguments: argparse.Namespace) -> int:
    model = loaded(arguments)
    conversation = _Conversation(model, sampling_of(arguments), arguments.system)
    if arguments.message is not None:
        conversation.answer(arguments.message)
        return 0
    if sys.stdin.isatty():
        print(_HELP)
    while True:
        try:
            line = input("> " if sys.stdin.isatty() else "").strip()
        except EOFError:
            return 0
        if line.startswith("/"):
            if not conversation.command(line):
                return 0
        elif line:
            conversation.answer(line)
