"""How a prompt goes on, as an engine takes it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.llm._guide.worker import Guide
from kernwright.llm._recording import MOST_LOGPROBS

__all__ = ["NUMBERS", "Sampling", "TokenOptions", "require_known_tokens"]

# Values of sampling that go to the device as float32.
NUMBERS = ("temperature", "top_p", "min_p", "repetition_penalty", "presence_penalty",
            "frequency_penalty")  # fmt: skip
_MOST_PENALTY = 1e30  # of which logits stay finite in float32


@dataclasses.dataclass(frozen=True)
class TokenOptions:
    """What Sampling and the options of Model.generate() say of tokens. The values are those of
    kw.nn.sample().

    The repetition penalty is for all tokens of a sequence. presence_penalty is subtracted from the
    logits of tokens generated before, frequency_penalty as often as each was. `logprobs` asks for
    the log-probability of each token, and for so many of the highest (20 at most). `stop_tokens`
    end a sequence, and are its last token; they are not sampled among the first `min_tokens`.
    `logit_bias` has numbers from -100 to 100 that are added to the logits of up to 300 tokens,
    behind penalties. Only `allowed_tokens` (None: all) without `bad_tokens` are sampled. Equal
    seeds give equal tokens, whatever else runs beside; None draws a seed. `adapter` is the name of
    one that is loaded.
    """

    max_tokens: int | None = None
    min_tokens: int = 0
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logprobs: int | None = None
    seed: int | None = None
    stop_tokens: Sequence[int] = ()
    logit_bias: Mapping[int, float] = dataclasses.field(default_factory=dict)
    allowed_tokens: Sequence[int] | None = None
    bad_tokens: Sequence[int] = ()
    adapter: str | None = None


@dataclasses.dataclass(frozen=True)
class Sampling(TokenOptions):
    """How a prompt goes on, as checked values.

    `choices` sequences go on from one prompt. A `guide` says of each token which ones may come
    next; it leaves no place for min_tokens.
    """

    max_tokens: int = 16
    choices: int = 1
    guide: Guide | None = None

    def __post_init__(self) -> None:
        for name, least in (("max_tokens", 1), ("min_tokens", 0), ("choices", 1), ("top_k", 0),
                            ("logprobs", 0)):  # fmt: skip
            value = getattr(self, name)
            if name == "logprobs" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int):
                raise ArgumentError(f"{name} is an int, got {value!r:.60}")
            if not least <= value < 2**31:
                bound = f"{least} at least" if value < least else "below 2^31"
                raise InvalidArgument(f"{name} is {bound}, got {value}")
        if not 0 <= self.temperature < float("inf"):
            raise InvalidArgument(f"a temperature is 0 or more, got {self.temperature}")
        for name in ("top_p", "min_p"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidArgument(f"{name} is from 0 to 1, got {getattr(self, name)}")
        if not 1 / _MOST_PENALTY <= self.repetition_penalty <= _MOST_PENALTY:
            raise InvalidArgument(
                f"a repetition_penalty is above 0, from {1 / _MOST_PENALTY:g} to {_MOST_PENALTY:g} "
                f"(logits stay finite in float32), got {self.repetition_penalty}"
            )
        for name in ("presence_penalty", "frequency_penalty"):
            if not abs(getattr(self, name)) <= _MOST_PENALTY:
                raise InvalidArgument(
                    f"a {name} is finite, from {-_MOST_PENALTY:g} to {_MOST_PENALTY:g} (logits "
                    f"stay finite in float32), got {getattr(self, name)}"
                )
        if self.logprobs is not None and self.logprobs > MOST_LOGPROBS:
            raise InvalidArgument(f"logprobs is {MOST_LOGPROBS} at most, got {self.logprobs}")
        _require_seed(self.seed)
        for name in ("stop_tokens", "allowed_tokens", "bad_tokens"):
            _require_tokens(name, getattr(self, name))
        _require_biases(self.logit_bias)
        if self.adapter is not None and not isinstance(self.adapter, str):
            raise ArgumentError(f"adapter is the name of one, got {self.adapter!r:.60}")
        if self.guide is not None and self.min_tokens:
            raise InvalidArgument(
                f"min_tokens is {self.min_tokens}, and a guide decides where a text ends: leave "
                "one of them out"
            )


def require_known_tokens(options: TokenOptions, sampled: int) -> None:
    """Raises InvalidArgument for ids in stop_tokens and logit_bias that no token has, and for
    allowed_tokens without a token: ids from `sampled` on are padding of the vocabulary."""
    for name in ("stop_tokens", "logit_bias"):
        unknown = next((each for each in getattr(options, name) if not 0 <= each < sampled), None)
        if unknown is not None:
            raise InvalidArgument(
                f"{name} has {unknown}, which no token has: ids are from 0 to {sampled - 1}"
            )
    allowed = options.allowed_tokens
    if allowed is not None and not any(0 <= each < sampled for each in allowed):
        raise InvalidArgument(
            f"allowed_tokens has no token of the vocabulary, whose ids are from 0 to {sampled - 1}:"
            f" got {list(allowed)!r:.60}"
        )


def _require_seed(seed: Any) -> None:
    if seed is None:
        return
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise ArgumentError(f"seed is an int or None, got {seed!r:.60}")
    if not 0 <= seed < 2**64:
        raise InvalidArgument(f"seed is from 0 to {2**64 - 1} (2^64 - 1), got {seed}")


def _require_tokens(name: str, tokens: Any) -> None:
    if tokens is None and name == "allowed_tokens":
        return
    if isinstance(tokens, (str, bytes)) or not isinstance(tokens, Sequence):
        raise ArgumentError(f"{name} is a list of token ids, got {tokens!r:.60}")
    for token in tokens:
        if isinstance(token, bool) or not isinstance(token, int):
            raise ArgumentError(f"{name} are ints, got {token!r:.60}")
        if not -(2**31) <= token < 2**31:
            raise InvalidArgument(f"{name} has {token}, which is no token id")


def _require_biases(biases: Any) -> None:
    if not isinstance(biases, Mapping):
        raise ArgumentError(f"logit_bias is a dict of numbers by token ids, got {biases!r:.60}")
    _require_tokens("logit_bias", list(biases))
    for token, value in biases.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ArgumentError(f"logit_bias has numbers, got {value!r:.60} for token {token}")
        if not -100 <= value <= 100:
            raise InvalidArgument(f"logit_bias is from -100 to 100, got {value} for token {token}")
