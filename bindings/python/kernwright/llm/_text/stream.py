"""Text of tokens, one by one."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from kernwright.errors import InvalidArgument
from kernwright.llm._text.pieces import PieceTable

__all__ = ["TextStream"]

_LONGEST = 4  # bytes of a character


class TextStream:
    """Text of tokens, one by one; `Tokenizer.stream()` makes it.

    The pieces, joined, are the text of `Tokenizer.decode()` for the same tokens, whatever they are.
    A piece is held back only while its last character lacks bytes, or while its last space may be
    dropped. Bytes of no UTF-8 come as U+FFFD.

    >>> stream = tokenizer.stream()  # of the example of llm.Tokenizer: each byte is a token
    >>> [stream.push(token) for token in (65, 226, 130, 172, 226)] + [stream.finish()]
    ['A', '', '', '\u20ac', '', '\ufffd']
    """

    def __init__(self, table: PieceTable, prompt: Sequence[int], skip_special: bool) -> None:
        self._table = table
        self._skipped = table.special if skip_special else frozenset()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._first = True
        self._strip = table.strip[1]
        self._replacements = [_Replacement(*each) for each in table.replacements]
        if len(prompt):
            self._continue(prompt)

    def push(self, token: int) -> str:
        """The text completed by a token; often empty. Raises InvalidArgument for an id outside
        of the vocabulary."""
        return self._text(self._bytes(token), False)

    def finish(self) -> str:
        """The text held back. Nothing may be pushed after it."""
        return self._text(b"", True)

    def whole(self, tokens: Sequence[int]) -> str:
        """The rest of a text at once: as push() of each token, and finish()."""
        return self._text(b"".join([self._bytes(token) for token in tokens]), True)

    def _bytes(self, token: int) -> bytes:
        table = self._table
        if not 0 <= token < len(table.pieces):
            raise InvalidArgument(
                f"the token id {token} is outside of the vocabulary of {len(table.pieces)} tokens"
            )
        if token in self._skipped:
            return b""
        if self._first:
            self._first = False
            if table.first is not None:
                return table.first(token)
        return table.pieces[token]

    def _text(self, data: bytes, final: bool) -> str:
        text = self._decoder.decode(data, final)
        while self._strip and text:
            if text[0] != self._table.strip[0]:
                self._strip = 0
            else:
                text, self._strip = text[1:], self._strip - 1
        for each in self._replacements:
            text = each.push(text) + (each.finish() if final else "")
        return text

    def _continue(self, prompt: Sequence[int]) -> None:
        """Begins after a prompt. Of its bytes, only an unfinished character is kept."""
        if self._replacements or self._strip > 1:
            for token in prompt:
                self.push(token)
            return
        tail = b""
        self._first = False
        for token in reversed(prompt):
            tail = self._bytes(token) + tail
            if len(tail) >= _LONGEST:
                break
        self._decoder.decode(tail)
        self._first = all(token in self._skipped for token in prompt)
        if tail:
            self._strip = 0


class _Replacement:
    """Replaces a text in pieces, as str.replace() does in the whole."""

    def __init__(self, found: str, instead: str) -> None:
        self.found, self.instead, self.held = found, instead, ""

    def push(self, text: str) -> str:
        *parts, rest = (self.held + text).split(self.found)
        keep = held_back(rest, self.found)
        self.held = rest[len(rest) - keep :]
        return "".join([part + self.instead for part in parts]) + rest[: len(rest) - keep]

    def finish(self) -> str:
        held, self.held = self.held, ""
        return held


def held_back(text: str, found: str) -> int:
    """How many of the last characters of a text may begin `found`."""
    for count in range(min(len(text), len(found) - 1), 0, -1):
        if found.startswith(text[len(text) - count :]):
            return count
    return 0
