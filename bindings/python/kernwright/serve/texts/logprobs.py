"""Log-probabilities in OpenAI's forms."""

from __future__ import annotations

import math
from typing import Any

from kernwright.serve.served import Served

__all__ = ["CompletionLogprobs", "chat_logprobs", "finite", "token_name"]

_LOWEST = -9999.0  # JSON has no infinity


def finite(value: float) -> float:
    """A log-probability that JSON can have."""
    return max(value, _LOWEST) if not math.isnan(value) else _LOWEST


def token_name(served: Served, token: int, as_id: bool) -> str:
    """A token's text; `as_id`: "token_id:ID", as vLLM writes it."""
    return f"token_id:{token}" if as_id else served.token_text(token)[0]


def chat_logprobs(served: Served, token: int, found: Any, as_ids: bool = False) -> dict[str, Any]:
    """An entry of `logprobs.content`: the token, and the most likely ones beside it."""

    def entry(token: int, logprob: float) -> dict[str, Any]:
        text, data = token_name(served, token, as_ids), served.token_text(token)[1]
        return {"token": text, "logprob": finite(logprob), "bytes": data}

    return {
        **entry(token, found.logprob),
        "top_logprobs": [entry(*each) for each in found.top],
    }


class CompletionLogprobs:
    """The `logprobs` of a completion, as its tokens come."""

    def __init__(self, served: Served, as_ids: bool = False) -> None:
        self._served, self._as_ids, self._taken = served, as_ids, 0
        self.tokens: list[str] = []
        self.token_logprobs: list[float | None] = []
        self.top: list[dict[str, float] | None] = []
        self.offsets: list[int] = []

    def add(self, token: int, found: Any, offset: int) -> None:
        """A token, and where its text begins; `found` is None for the first one of a prompt."""
        text = token_name(self._served, token, self._as_ids)
        self.tokens.append(text)
        self.offsets.append(offset)
        if found is None:
            self.token_logprobs.append(None)
            self.top.append(None)
            return
        self.token_logprobs.append(finite(found.logprob))
        tops = {text: finite(found.logprob)} if not found.top else {}
        for other, logprob in found.top:
            tops.setdefault(token_name(self._served, other, self._as_ids), finite(logprob))
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
