"""How an answer is shown while it comes: Markdown by rich on a terminal, else plain text."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Any

__all__ = ["PlainView", "RichView", "answer_view"]


def answer_view() -> PlainView | RichView:
    """A view on stdout: rich's on a terminal where rich is installed."""
    if sys.stdout.isatty():
        try:
            return RichView()
        except ImportError:
            pass
    return PlainView()


class PlainView:
    """Prints the text of an answer, piece by piece."""

    def begin(self) -> None:
        """An answer comes."""

    def add(self, text: str, parts: Sequence[Any]) -> None:
        """The next piece of its text."""
        print(text, end="", flush=True)

    def end(self) -> None:
        """The answer has ended."""
        print(flush=True)


class RichView:
    """Shows the parts of a message: reasoning dimmed, content as Markdown, calls as their JSON.

    Blocks that are whole (Markdown parts them by empty lines) are printed for good; the last one is
    drawn anew as it grows. Raises ImportError without rich.
    """

    def __init__(self, console: Any = None) -> None:
        self._console = console or importlib.import_module("rich.console").Console()
        self._live_class = importlib.import_module("rich.live").Live
        self._markdown = importlib.import_module("rich.markdown").Markdown
        self._styled = importlib.import_module("rich.text").Text
        self._live: Any = None
        self._kind, self._text = "content", ""

    def begin(self) -> None:
        """An answer comes."""
        self._kind, self._text = "content", ""
        self._live = self._live_class(
            console=self._console, refresh_per_second=10, vertical_overflow="visible"
        )
        self._live.start()

    def add(self, text: str, parts: Sequence[Any]) -> None:
        """The parts that a token has completed."""
        for part in parts:
            kind = "call" if part.kind in ("tool_call", "arguments") else part.kind
            if kind != self._kind or part.kind == "tool_call":
                self._print(len(self._text))
                self._kind = kind
            self._text += f"{part.name} " if part.kind == "tool_call" else part.text
        self._print(whole_blocks(self._text) if self._kind == "content" else 0)
        self._live.update(self._drawn(self._text))

    def end(self) -> None:
        """The answer has ended: what is left stays on the screen."""
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def _print(self, length: int) -> None:
        """The beginning of the text, for good."""
        if self._text[:length].strip():
            self._live.update("")
            self._console.print(self._drawn(self._text[:length]))
        self._text = self._text[length:]

    def _drawn(self, text: str) -> Any:
        if self._kind == "content":
            return self._markdown(text)
        return self._styled(text, style="dim" if self._kind == "reasoning" else "cyan")


def whole_blocks(text: str) -> int:
    """How much of a Markdown text is whole blocks: up to its last empty line outside of code.

    >>> from kernwright.cli import _answer_view
    >>> _answer_view.whole_blocks("One.\\n\\nTwo"), _answer_view.whole_blocks("```\\na\\n\\nb")
    (6, 0)
    """
    end = at = 0
    fence = ""
    for line in text.splitlines(keepends=True):
        at += len(line)
        bare = line.strip()
        mark = bare[:3]
        if fence:
            fence = "" if bare == fence else fence
        elif mark in ("```", "~~~"):
            fence = mark
        elif not bare and line.endswith("\n"):
            end = at
    return end
