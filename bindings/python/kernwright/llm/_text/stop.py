"""The end of a text: stop strings across tokens, ids, limits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.llm._text.stream import TextStream, held_back

__all__ = ["StopCheck", "StopStrings"]

_MOST = 16
_LONGEST = 1024


class StopStrings:
    """Cuts a text before the first of some stop strings; the text comes in pieces.

    `stop` is a text or at most 16 of them. The first to end counts, and of several with
    the same end, the longest: the same for any pieces. Only a possible beginning of one is held
    back. With `include` the stop string itself is shown, too.
    Raises InvalidArgument for empty, too long or too many stop strings.

    >>> from kernwright import llm
    >>> stops = llm.StopStrings(["stop"])
    >>> stops.push("one st"), stops.push("op two"), stops.matched
    ('one ', '', 'stop')
    """

    matched: str | None
    """The stop string in the text, once it is found."""

    def __init__(self, stop: str | Iterable[str] = (), *, include: bool = False) -> None:
        self.stop = [stop] if isinstance(stop, str) else list(stop)
        self._include = include
        self.matched = None
        self._held = ""
        for each in self.stop:
            if not isinstance(each, str):
                raise ArgumentError(f"stop strings are str, got {each!r:.60}")
            if not each:
                raise InvalidArgument("a stop string is empty: it would end each text at once")
            if len(each) > _LONGEST:
                raise InvalidArgument(
                    f"a stop string has {len(each)} characters; at most {_LONGEST} are allowed"
                )
        if len(self.stop) > _MOST:
            raise InvalidArgument(
                f"there are {len(self.stop)} stop strings; at most {_MOST} are allowed"
            )

    def push(self, text: str) -> str:
        """The text to show now; empty after a stop string."""
        if self.matched is not None:
            return ""
        text = self._held + text
        found = [(at + len(each), at, each) for each in self.stop if (at := text.find(each)) >= 0]
        if found:
            end, at, self.matched = min(found)
            self._held = ""
            return text[: end if self._include else at]
        keep = max((held_back(text, each) for each in self.stop), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def finish(self) -> str:
        """The text held back, at an end without a stop string."""
        held, self._held = self._held, ""
        return held


class StopCheck:
    """Decides after each token whether a text ends, and how much of it is shown.

    `eos`: ids at its end; their own text is not shown. `stop`: see `StopStrings`.
    `stop_tokens`: further ids, even with `ignore_eos`. Before `min_tokens` nothing
    ends it. `stream` turns ids into text; without one (no tokenizer), texts are empty, and stop
    strings are refused. Raises InvalidArgument for numbers out of range.

    >>> check = llm.StopCheck(tokenizer.stream(), eos=tokenizer.eos, stop="):", max_tokens=100)
    >>> [check.push(token) for token in b"f(x):"]  # of the example of llm.Tokenizer
    ['f', '(', 'x', '', '']
    >>> check.reason, check.matched
    ('stop', '):')
    """

    reason: str | None
    """"stop" or "length" once the text has ended."""
    matched: str | int | None
    """The stop string or the token at its end."""
    tokens: int
    """How many tokens were pushed."""

    def __init__(
        self,
        stream: TextStream | None,
        *,
        eos: Iterable[int] = (),
        stop: str | Iterable[str] = (),
        stop_tokens: Iterable[int] = (),
        min_tokens: int = 0,
        max_tokens: int | None = None,
        ignore_eos: bool = False,
    ) -> None:
        self._strings = StopStrings(stop)
        if self._strings.stop and stream is None:
            raise InvalidArgument(
                "stop strings need a tokenizer, and there is none: use stop_tokens"
            )
        if min_tokens < 0 or (max_tokens is not None and max_tokens < max(min_tokens, 1)):
            raise InvalidArgument(
                f"min_tokens is {min_tokens} and max_tokens {max_tokens}: they must be in order, "
                "and max_tokens at least 1"
            )
        self._stream = stream
        self._ends = frozenset(stop_tokens) | (frozenset() if ignore_eos else frozenset(eos))
        self._least, self._most = min_tokens, max_tokens
        self.reason, self.matched, self.tokens = None, None, 0

    @property
    def suppressed(self) -> Sequence[int]:
        """Ids not to sample now, because `min_tokens` are not reached.

        >>> from kernwright import llm
        >>> llm.StopCheck(None, eos=[2], min_tokens=1).suppressed
        [2]
        """
        return sorted(self._ends) if self.tokens < self._least else []

    def push(self, token: int) -> str:
        """The text to show after this token. Sets `reason` where the text ends."""
        if self.reason is not None:
            raise InvalidArgument(f"the text has ended already ({self.reason})")
        self.tokens += 1
        if token in self._ends and self.tokens > self._least:
            self.reason, self.matched = "stop", token
            return self._rest()
        shown = self._shown(self._stream.push(token) if self._stream is not None else "")
        if self.reason is None and self.tokens == self._most:
            self.reason = "length"
            shown += self._rest()
        return shown

    def finish(self) -> str:
        """The text held back, where something else ended the text.

        >>> from kernwright import llm
        >>> check = llm.StopCheck(tokenizer.stream(), stop="):")  # of the example of llm.Tokenizer
        >>> [check.push(token) for token in b"(x)"], check.finish()
        (['(', 'x', ''], ')')
        """
        return "" if self.reason is not None else self._rest()

    def _shown(self, text: str) -> str:
        if self.tokens < self._least:
            return text
        shown = self._strings.push(text)
        if self._strings.matched is not None:
            self.reason, self.matched = "stop", self._strings.matched
        return shown

    def _rest(self) -> str:
        """The text held back; the end of a cut character may complete a stop string."""
        shown = self._shown(self._stream.finish() if self._stream is not None else "")
        return shown + self._strings.finish()
