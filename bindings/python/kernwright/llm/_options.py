"""How a text goes on: the options of generate(), stream() and chat()."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, TypedDict

import numpy as np

from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.llm._draft import Draft, chosen_draft
from kernwright.llm._errors import ContextError
from kernwright.llm._guide.form import FORMS, Form, form_of
from kernwright.llm._guide.words import require_words
from kernwright.llm._guide.worker import Guide
from kernwright.llm._sampling import NUMBERS, Sampling, TokenOptions
from kernwright.llm._text.stop import StopStrings

__all__ = ["Generation", "GenerationOptions"]

_USUAL_TOKENS = 256
_MOST_TEXTS = 16384  # of a prompt
_MOST_STOP_TOKENS = 4096
_TOKEN_OPTIONS = tuple(field.name for field in dataclasses.fields(TokenOptions))


class GenerationOptions(TypedDict, total=False):
    """The keyword arguments of Model.generate(), which tells what they mean."""

    max_tokens: int | None
    min_tokens: int
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    logprobs: int | None
    seed: int | None
    stop: str | Sequence[str]
    stop_tokens: Sequence[int]
    ignore_eos: bool
    n: int
    deterministic: bool
    draft: str | os.PathLike[str] | Draft | None
    logit_bias: Mapping[int, float]
    allowed_tokens: Sequence[int] | None
    bad_tokens: Sequence[int]
    bad_words: Sequence[str]
    adapter: str | None
    schema: Mapping[str, Any] | str | None
    regex: str | None
    grammar: str | None
    choices: Sequence[str] | None


@dataclasses.dataclass(frozen=True)
class Generation(TokenOptions):
    """Checked options, with their defaults."""

    stop: str | Sequence[str] = ()
    ignore_eos: bool = False
    n: int = 1
    deterministic: bool = False
    draft: str | os.PathLike[str] | Draft | None = None
    schema: Mapping[str, Any] | str | None = None
    regex: str | None = None
    grammar: str | None = None
    choices: Sequence[str] | None = None
    bad_words: Sequence[str] = ()

    @classmethod
    def of(cls, options: GenerationOptions) -> Generation:
        """Raises ArgumentError for names that there are none of, and for wrong values."""
        known = GenerationOptions.__annotations__
        for name in options:
            if name not in known:
                raise ArgumentError(f"{name} is no option of generation: {', '.join(known)}")
        given: dict[str, Any] = dict(options)
        for name in ("stop", "stop_tokens", "bad_tokens", "bad_words"):  # None: none
            if given.get(name, ()) is None:
                del given[name]
        plain = {n: v.item() if isinstance(v, np.generic) else v for n, v in given.items()}
        return cls(**plain)

    def __post_init__(self) -> None:
        for name in ("ignore_eos", "deterministic"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise ArgumentError(f"{name} is True or False, got {value!r:.60}")
        if isinstance(self.n, bool) or not isinstance(self.n, int):
            raise ArgumentError(f"n is an int, got {self.n!r:.60}")
        if not 1 <= self.n <= _MOST_TEXTS:
            raise InvalidArgument(f"n is from 1 to {_MOST_TEXTS}, got {self.n}")
        for name in NUMBERS:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise ArgumentError(f"{name} is a number, got {value!r:.60}")
        if not isinstance(self.stop, (str, list, tuple)):
            raise ArgumentError(f"stop is a text or a list of texts, got {self.stop!r:.60}")
        StopStrings(self.stop)  # raises for wrong ones
        if isinstance(self.stop_tokens, Sequence) and len(self.stop_tokens) > _MOST_STOP_TOKENS:
            raise InvalidArgument(
                f"there are {len(self.stop_tokens)} stop tokens; at most {_MOST_STOP_TOKENS} are "
                "allowed"
            )
        require_words(self.bad_words)
        if self.top_p == 0:
            raise InvalidArgument("top_p is above 0: of 0 no token is left")
        self.sampling(1, ())
        chosen_draft(self.draft, None, self.deterministic)
        if self.max_tokens is not None and self.min_tokens > self.max_tokens:
            raise InvalidArgument(
                f"min_tokens is {self.min_tokens}, and max_tokens {self.max_tokens}: it is at most "
                "that"
            )
        if self.form is not None and self.min_tokens:
            raise InvalidArgument(
                f"min_tokens is {self.min_tokens}, and {self.form.kind} decides where a text ends: "
                "leave one of them out"
            )

    @cached_property
    def form(self) -> Form | None:
        """The form that each text has. Raises ArgumentError, InvalidArgument."""
        return form_of({name: getattr(self, name) for name in FORMS})

    def sampling(self, max_tokens: int, eos: Sequence[int], guide: Guide | None = None) -> Sampling:
        """What the engine takes."""
        ends = [*self.stop_tokens, *(() if self.ignore_eos else eos)]
        values: dict[str, Any] = {name: getattr(self, name) for name in _TOKEN_OPTIONS}
        if self.max_tokens is None:
            values["max_tokens"] = max_tokens
        values["stop_tokens"] = tuple(dict.fromkeys(ends))
        values |= {name: float(values[name]) for name in NUMBERS}
        return Sampling(**values, choices=self.n, guide=guide)

    def limit(self, prompt: int, context: int) -> int:
        """How many tokens may follow a prompt of so many. Raises ContextError where the context
        does not hold both."""
        if self.max_tokens is None:
            if prompt >= context:
                raise ContextError(
                    f"the prompt has {prompt} tokens, and the context of {context} leaves no place "
                    "for a new one"
                )
            return min(_USUAL_TOKENS, context - prompt)
        if prompt + self.max_tokens > context:
            raise ContextError(
                f"the prompt has {prompt} tokens and max_tokens is {self.max_tokens}: together "
                f"{prompt + self.max_tokens}, and the context holds {context}"
            )
        return self.max_tokens
