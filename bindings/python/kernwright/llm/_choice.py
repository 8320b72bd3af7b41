"""One text of a request, as its tokens come."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kernwright.llm._options import Generation
from kernwright.llm._recording import TokenLogprobs
from kernwright.llm._text.stop import StopCheck

if TYPE_CHECKING:
    from kernwright.llm._model import Model

__all__ = ["Completion", "Piece"]


@dataclasses.dataclass(frozen=True)
class Completion:
    """A text that a model wrote.

    >>> from kernwright import llm
    >>> model = llm.load(random={
    ...     "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
    ...     "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
    ...     "dtype": "float32",
    ... })
    >>> made = model.generate([1, 2, 3], max_tokens=4, logprobs=2)
    >>> made.finish_reason, made.prompt_tokens, len(made.logprobs[0].top)
    ('length', 3, 2)
    """

    text: str
    """Without the prompt, special tokens and the stop string; "" without a tokenizer."""
    tokens: list[int]
    """With the token that ended the text, if one did."""
    finish_reason: str
    """"stop": a token or a string that ends texts; "length": max_tokens. Of an llm.Request also
    "cancelled" and "timeout"."""
    prompt_tokens: int
    """How many tokens the prompt has."""
    seconds: float
    """From the call to the end of its last text."""
    first_seconds: float | None = None
    """From the call to this text's first token; None for a text without tokens."""
    stop_reason: str | int | None = None
    """The stop string or the token that ended the text; None where something else did."""
    cached_tokens: int = 0
    """Tokens of the prompt whose keys and values the caches had already."""
    logprobs: list[TokenLogprobs] | None = None
    """Of each token, where they were asked for: `.logprob`, and `.top`, the highest ones as
    (token, log-probability)."""
    message: dict[str, Any] | None = None
    """Of chat(): the text as a message for llm.ChatTemplate.render(), which llm.MessageParser took
    apart: "role", "content", "reasoning_content" and "tool_calls" where there are such."""
    drafted: int = 0
    """How many tokens were guessed and checked, with a `draft`."""
    accepted: int = 0
    """How many of these the model would have written, and came without a step of their own."""


class Piece(NamedTuple):
    """What a stream gives for each token, and at the end of a text.

    >>> from kernwright import llm
    >>> model = llm.load(random={
    ...     "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
    ...     "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
    ...     "dtype": "float32",
    ... })
    >>> [piece.token is None for piece in model.stream([1, 2, 3], max_tokens=2)]
    [False, False]
    """

    text: str
    """The text that is certain by now: bytes of a character wait for the last one, and what may be
    the beginning of a stop string waits, too."""
    token: int | None
    choice: int
    """Which of the n texts it belongs to."""
    finish_reason: str | None
    """Why the text ends with this piece; None where it goes on."""
    logprobs: TokenLogprobs | None = None
    """The token's, where they were asked for."""
    stop_reason: str | int | None = None
    """Of the last piece: see Completion, as for the next two."""
    first_seconds: float | None = None
    cached_tokens: int = 0


class Choice:
    """Turns the tokens of one text into pieces, until a stop string, a token or the engine ends it.

    `limit` is the most tokens that it may get, `number` its place among the n texts of the prompt.
    Raises InvalidArgument for stop strings of no use. Not for several threads.
    """

    def __init__(
        self, model: Model, prompt: Sequence[int], limit: int, options: Generation, number: int
    ) -> None:
        stream = None
        if model.tokenizer is not None:
            stream = model.tokenizer.stream(prompt, verbatim=options.form is not None)
        self.number, self.reason = number, ""
        self.drafts = 0, 0  # checked, accepted
        self.cached_tokens = 0
        self.began, self.first_seconds = time.perf_counter(), None  # type: float, float | None
        self._check = StopCheck(
            stream, eos=model.eos, stop=options.stop, stop_tokens=options.stop_tokens,
            min_tokens=options.min_tokens, max_tokens=limit, ignore_eos=options.ignore_eos,
        )  # fmt: skip
        self._tokens: list[int] = []
        self._texts: list[str] = []
        self._logprobs: list[TokenLogprobs] | None = None if options.logprobs is None else []

    @property
    def is_stopped_by_text(self) -> bool:
        """Whether a stop string ended it: the engine does not know yet."""
        return isinstance(self._check.matched, str)

    @property
    def stop_reason(self) -> str | int | None:
        """The stop string or the token at its end."""
        return self._check.matched if self.reason == "stop" else None

    def add(
        self, token: int | None, reason: str | None, logprobs: TokenLogprobs | None
    ) -> Piece | None:
        """The piece of a token, of an end that the engine gave as `reason`, or of both. None behind
        the end of the text."""
        if self.reason:
            return None
        text = self._check.finish() if token is None else self._check.push(token)
        if token is not None:
            if self.first_seconds is None:
                self.first_seconds = time.perf_counter() - self.began
            self._tokens.append(token)
            if reason is not None and self._check.reason is None:
                text += self._check.finish()
        if logprobs is not None and self._logprobs is not None:
            self._logprobs.append(logprobs)
        self._texts.append(text)
        self.reason = self._check.reason or reason or ""
        if not self.reason:
            return Piece(text, token, self.number, None, logprobs)
        return Piece(text, token, self.number, self.reason, logprobs, self.stop_reason,
                     self.first_seconds, self.cached_tokens)  # fmt: skip

    def completion(self, prompt_tokens: int, seconds: float) -> Completion:
        """What came of it."""
        return Completion(
            "".join(self._texts), self._tokens, self.reason, prompt_tokens, seconds,
            self.first_seconds, self.stop_reason, self.cached_tokens, self._logprobs,
            drafted=self.drafts[0], accepted=self.drafts[1],
        )  # fmt: skip
