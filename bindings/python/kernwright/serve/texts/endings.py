"""The end of a text, shown or not: stop strings, stop tokens, special tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kernwright import llm

__all__ = ["Ending", "Endings"]


class Endings(NamedTuple):
    """How the texts of a body end."""

    strings: Sequence[str] = ()
    tokens: frozenset[int] = frozenset()
    """Of stop_token_ids."""
    least: int = 0
    """Stop strings do not count in so many first tokens."""
    included: bool = False
    """Whether a text shows the string or the token at its end."""
    special: bool = False
    """Whether special tokens are shown."""

    @property
    def needs_tokens(self) -> bool:
        """Whether a text differs from that of the engine."""
        return self.special or (self.included and bool(self.tokens))


class Ending:
    """Looks for the end of one text."""

    def __init__(self, endings: Endings) -> None:
        self._strings = llm.StopStrings(endings.strings, include=endings.included)
        self._endings = endings
        self.tokens = 0
        """Of the text so far, counted by the caller."""
        self.token: int | None = None
        """Of stop_token_ids, at its end."""

    @property
    def reason(self) -> str | int | None:
        """The stop string at its end, or the token of stop_token_ids."""
        return self.token if self._strings.matched is None else self._strings.matched

    @property
    def string(self) -> str | None:
        """The stop string at its end."""
        return self._strings.matched

    def push(self, text: str) -> str:
        """The part of a text to show now."""
        if not self._endings.strings or self.tokens < self._endings.least:
            return text
        return self._strings.push(text)

    def finish(self) -> str:
        """The text held back."""
        return self._strings.finish()

    def shows(self, token: int, is_last: bool) -> bool:
        """Whether a text shows a token, perhaps its last one."""
        if not is_last:
            return True
        if token in self._endings.tokens:
            self.token = token
        return self._endings.included
