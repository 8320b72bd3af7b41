"""Log-probabilities in OpenAI's forms."""

from __future__ import annotations

import math
from typing import Any

from kernwright.serve.served import Served

__all__ = ["CompletionLogprobs", "chat_logprobs", "finite"]

_LOWEST = -9999.0  # JSON has no infinity


def finite(value: float) -> float:
    """A log-probability that JSON can have."""
    return max(value, _LOWEST) if not math.isnan(value) else _LOWEST


def chat_logprobs(served: Served, token: int, found: Any) -> dict[str, Any]:
    """An entry of `logprobs.content`: the token, and the most likely ones beside it."""

    def entry(token: int, logprob: float) -> dict[str, Any]:
        text, data = served.token_text(token)
        return {"token": text, "logprob": finite(logprob), "bytes": data}

    return {
        **entry(token, found.logprob),
        "top_logprobs": [entry(*each) for each in found.top],
    }


class CompletionLogprobs:
    """The `logprobs` of a completion, as its tokens come."""

    def __init__(self, served: Served) -> None:
        self._served, self._taken = served, 0
        self.tokens: list[str] = []
        self.token_logprobs: list[float | None] = []
        self.top: list[dict[str, float] | None] = []
        self.offsets: list[int] = []

    def add(self, token: int, found: Any, offset: int) -> None:
        """A token, and where its text begins; `found` is None for the first one of a prompt."""
        text, _ = self._served.token_text(token)
        self.tokens.append(text)
        self.offsets.append(offset)
        if found is None:
            self.token_logprobs.append(None)
            self.top.append(None)
            return
        self.token_logprobs.append(finite(found.logprob))
        tops = {text: finite(found.logprob)} if not found.top else {}
        for other, logprob in found.top:
            tops.setdefault(self._served.token_text(other)[0], finite(logprob))
        tops.setdefault(text, finite(found.logprob))
        self.top.append(tops)

    def taken(self) -> dict[str, Any]:
        """The entries since the last time."""
        begin, self._taken = self._taken, len(self.tokens)
        return {
            "tokens": self.tokens[begin:],
            "token_logprobs": self.token_logprobs[begin:],
            "top_logprobs": self.top[begin:],
            "text_offset": self.offsets[begin:],
        }
