"""Text in pieces, read by generators: they yield where they need more of it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

Write = Callable[[str], None]
Wait = Generator[None, None, None]


class Reader:
    """The unread part of a text. Its generators return "" at the end of the text."""

    def __init__(self) -> None:
        self._text = ""
        self._at = 0
        self._final = False
        self._noted: list[str] | None = None

    def feed(self, text: str, final: bool) -> None:
        """Appends a piece; the last one is final."""
        self._text, self._at = self._text[self._at :] + text, 0
        self._final = final

    def peek(self) -> Generator[None, None, str]:
        """The next character, still unread."""
        while self._at == len(self._text):
            if self._final:
                return ""
            yield
        return self._text[self._at]

    def next(self) -> Generator[None, None, str]:
        """The next character."""
        character = yield from self.peek()
        self._take(len(character))
        return character

    def spaces(self) -> Wait:
        """Skips white space."""
        while (yield from self.peek()).isspace():
            self._take(1)

    def until(self, marks: Sequence[str], write: Write) -> Generator[None, None, str]:
        """Writes the text before the first of some marks, as it comes, and skips the mark.

        Returns the mark. No mark may begin with another one.
        """
        while True:
            found = [(at, mark) for mark in marks if (at := self._text.find(mark, self._at)) >= 0]
            if found:
                at, mark = min(found)
                write(self._take(at - self._at))
                self._take(len(mark))
                return mark
            rest = len(self._text) - self._at
            keep = 0 if self._final else self._beginning(marks)
            write(self._take(rest - keep))
            if self._final:
                return ""
            yield

    def collect(self, marks: Sequence[str]) -> Generator[None, None, tuple[str, str]]:
        """The text before the first of some marks, and the mark."""
        parts: list[str] = []
        mark = yield from self.until(marks, parts.append)
        return "".join(parts), mark

    def _beginning(self, marks: Sequence[str]) -> int:
        """How many of the last characters may begin a mark."""
        longest = min(max(map(len, marks)) - 1, len(self._text) - self._at)
        for count in range(longest, 0, -1):
            tail = self._text[len(self._text) - count :]
            if any(mark.startswith(tail) for mark in marks):
                return count
        return 0

    def _take(self, count: int) -> str:
        taken = self._text[self._at : self._at + count]
        self._at += count
        if self._noted is not None:
            self._noted.append(taken)
        return taken

    def note(self) -> None:
        """Begins to remember the characters read from here on, if it does not yet."""
        if self._noted is None:
            self._noted = []

    def noted(self) -> str:
        """Those characters; they are forgotten."""
        text, self._noted = "".join(self._noted or ()), None
        return text
