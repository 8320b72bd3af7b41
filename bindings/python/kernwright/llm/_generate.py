"""Texts that go on: prompts of a model through its engine, and the tokens back to text."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kernwright.errors import ArgumentError, InvalidArgument, OutOfMemory
from kernwright.llm._choice import Choice, Completion, Piece
from kernwright.llm._draft import Draft, chosen_draft
from kernwright.llm._draft_model import loaded_draft
from kernwright.llm._engine import Generated, TokenEngine
from kernwright.llm._guide.words import sampling_of
from kernwright.llm._options import Generation
from kernwright.llm._size import MOST_ROWS, PAGE, SAME_ROWS, EngineSize

if TYPE_CHECKING:
    from kernwright.llm._model import Model

_LEAST_CAPACITY = 1024  # tokens of a sequence, and of all pages


class Generator:
    """The engine of a model, which grows with what is asked of it."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._engine: TokenEngine | None = None
        self._size = EngineSize(0, 0, 0)
        self._deterministic = False
        self._draft: Draft | None = None
        self._loaded: tuple[Draft, Draft | None] | None = None  # a draft, and with its model

    def engine(
        self, lengths: Sequence[int], deterministic: bool = False, draft: Draft | None = None,
        prompt: Sequence[int] = (), adapter: str | None = None,
    ) -> TokenEngine:  # fmt: skip
        """An engine for sequences of so many tokens each: the one that there is, or a larger one in
        its place, with the kept pages of `prompt`. Raises OutOfMemory, which tells what would
        fit."""
        rows = min(len(lengths), SAME_ROWS if deterministic else MOST_ROWS)
        pages = [-(-length // PAGE) for length in sorted(lengths, reverse=True)[:rows]]
        needed = EngineSize(rows, max(lengths), sum(pages))
        context = self._model.config.max_length
        if deterministic:  # rows and capacity could change bits, pages cannot
            needed = EngineSize(SAME_ROWS, context, sum(pages))
        draft = self._with_model(draft)
        if (deterministic, draft) != (self._deterministic, self._draft):
            self._engine, self._size = None, EngineSize(0, 0, 0)
            self._deterministic, self._draft = deterministic, draft
        if self._engine is None or not self._size.holds(needed):
            kept, arrays = 0, dict[str, Any]()
            if self._engine is not None and prompt:
                kept, arrays = self._engine.kept_pages(prompt, adapter)
            self._engine, before = None, self._size  # its caches are given back first
            self._size = EngineSize(0, 0, 0)
            grown = EngineSize(*(1 << (max(each) - 1).bit_length()
                            for each in zip(needed, before, strict=True)))  # fmt: skip
            capacity = min(max(grown.capacity, _LEAST_CAPACITY), context)
            least = -(-min(_LEAST_CAPACITY, context) // PAGE)
            grown = grown._replace(capacity=capacity, pages=max(grown.pages, least))
            for size in dict.fromkeys((grown, needed)):
                try:
                    self._engine, self._size = self._made(size), size
                    break
                except OutOfMemory:
                    if size == needed:
                        raise
            if kept and self._engine is not None:
                self._engine.write_pages(prompt[:kept], arrays, adapter, prompt)
        assert self._engine is not None
        return self._engine

    def _with_model(self, draft: Draft | None) -> Draft | None:
        """The draft with its model: that of the last call with one stays."""
        if draft is None or not draft.has_model:
            return draft
        if self._loaded is None or self._loaded[0] != draft:
            self._engine, self._loaded = None, None
            self._size = EngineSize(0, 0, 0)
            self._loaded = draft, loaded_draft(draft, self._model)
        return self._loaded[1]

    def _made(self, size: EngineSize) -> TokenEngine:
        return size.engine(self._model, deterministic=self._deterministic, draft=self._draft)

    def prepared(
        self, prompts: Sequence[list[int]], options: Generation
    ) -> tuple[TokenEngine, list[int]]:
        """An engine for these prompts, and how many tokens may follow each."""
        context = self._model.config.max_length
        limits = [options.limit(len(prompt), context) for prompt in prompts]
        lengths = [len(prompt) + limit for prompt, limit in zip(prompts, limits, strict=True)]
        all_lengths = [each for each in lengths for _ in range(options.n)]
        draft = chosen_draft(options.draft, self._model.draft, options.deterministic)
        prompt = prompts[0] if len(prompts) == 1 else ()  # a conversation that goes on
        engine = self.engine(all_lengths, options.deterministic, draft, prompt, options.adapter)
        return engine, limits


def prompts_of(model: Model, prompts: Any) -> tuple[list[list[int]], bool]:
    """Lists of tokens, and whether there was one prompt alone: a text, tokens, or a list of
    these."""
    if isinstance(prompts, str):
        return [tokens_of(model, prompts)], True
    if isinstance(prompts, np.ndarray):
        prompts = prompts.tolist()
    if not isinstance(prompts, (list, tuple)):
        raise ArgumentError(
            f"a prompt is a text or a list of tokens, or a list of such, got {prompts!r:.60}"
        )
    if not prompts:
        raise InvalidArgument("there is no prompt: an empty list was given")
    if isinstance(prompts[0], (int, np.integer)):
        return [tokens_of(model, prompts)], True
    for place, each in enumerate(prompts):
        if isinstance(each, (int, np.integer)):
            raise ArgumentError(
                f"prompts are texts or lists of tokens, got {each!r:.60} at position {place}"
            )
    return [tokens_of(model, each) for each in prompts], False


def whole_numbers(tokens: Any) -> list[int]:
    """Tokens as ints; a list of ints is looked through by no code of Python. Raises
    ArgumentError."""
    try:
        if isinstance(tokens, (list, tuple)) and set(map(type, tokens)) == {int}:
            return list(tokens)
        listed = None if isinstance(tokens, (str, bytes)) else list(tokens)
    except TypeError:
        listed = None
    if listed is None:
        raise ArgumentError(f"tokens are a list of whole numbers, got {tokens!r:.60}")
    return [_whole_number(each, place) for place, each in enumerate(listed)]


def _whole_number(token: Any, place: int) -> int:
    try:
        if not isinstance(token, (str, bool, float)):
            return int(token)
    except (TypeError, ValueError):
        pass
    raise ArgumentError(
        f"tokens are a list of whole numbers, got {token!r:.60} at position {place}"
    )


def tokens_of(model: Model, prompt: Any) -> list[int]:
    """The tokens of one prompt. Raises ModelError, ContextError, ArgumentError."""
    if isinstance(prompt, str):
        if model.tokenizer is None and not model.tokenizer_error:
            raise InvalidArgument(
                "the model has no tokenizer, so that prompts are lists of tokens, not a text"
            )
        prompt = model.require_tokenizer("a prompt that is a text").encode(prompt)
    return model.checked_tokens(prompt)


def generate(model: Model, generator: Generator, prompts: Any, options: Generation) -> Any:
    """See Model.generate()."""
    begin = time.perf_counter()
    lists, alone = prompts_of(model, prompts)
    engine, limits = generator.prepared(lists, options)
    if options.stop:
        made = [
            _Watched(model, engine, prompt, limit, options, begin)
            for prompt, limit in zip(lists, limits, strict=True)
        ]
        results = _in_turns(made)
    else:
        results = _at_once(model, engine, lists, limits, options, begin)
    seconds = time.perf_counter() - begin
    found = [
        [dataclasses.replace(each, seconds=seconds) for each in choices] for choices in results
    ]
    listed: list[Any] = [choices if options.n > 1 else choices[0] for choices in found]
    return listed[0] if alone else listed


def _at_once(
    model: Model, engine: TokenEngine, lists: Sequence[list[int]], limits: Sequence[int],
    options: Generation, begin: float,
) -> list[list[Completion]]:  # fmt: skip
    """All prompts without a look at their text."""
    requests = [
        (prompt, sampling_of(model, options, limit))
        for prompt, limit in zip(lists, limits, strict=True)
    ]
    return [
        [_completion(model, prompt, limit, options, made, begin) for made in choices]
        for prompt, limit, choices in zip(lists, limits, engine.run_each(requests), strict=True)
    ]


def _completion(
    model: Model, prompt: list[int], limit: int, options: Generation, made: Generated, begin: float
) -> Completion:
    choice = Choice(model, prompt, limit, options, 0)
    choice.drafts = made.drafted, made.accepted
    choice.cached_tokens = made.cached
    if made.first is not None:
        choice.first_seconds = made.first - begin
    for place, token in enumerate(made.tokens, 1):
        reason = made.finish_reason if place == len(made.tokens) else None
        choice.add(token, reason, made.logprobs[place - 1] if made.logprobs else None)
    if not made.tokens:
        choice.add(None, made.finish_reason, None)
    return choice.completion(len(prompt), 0.0)


def stream(model: Model, generator: Generator, prompt: Any, options: Generation) -> Iterator[Piece]:
    """See Model.stream()."""
    begin = time.perf_counter()
    lists, alone = prompts_of(model, prompt)
    if not alone:
        raise ArgumentError("stream() takes one prompt; generate() takes several")
    engine, limits = generator.prepared(lists, options)
    return _Watched(model, engine, lists[0], limits[0], options, begin)


class _Watched(Iterator[Piece]):
    """The tokens of a request as text, which ends at stop strings."""

    def __init__(
        self, model: Model, engine: TokenEngine, prompt: list[int], limit: int,
        options: Generation, begin: float,
    ) -> None:  # fmt: skip
        self.prompt = prompt
        self.choices = [Choice(model, prompt, limit, options, i) for i in range(options.n)]
        for each in self.choices:
            each.began = begin
        self._tokens = engine.stream(prompt, sampling_of(model, options, limit))

    def __next__(self) -> Piece:
        while True:
            token = next(self._tokens)
            choice = self.choices[token.choice]
            choice.drafts = token.drafted, token.accepted
            choice.cached_tokens = token.cached
            piece = choice.add(token.token, token.finish_reason, token.logprobs)
            if piece is None:
                continue  # behind a stop string
            if all(each.reason for each in self.choices):
                self._tokens.close()
            elif choice.is_stopped_by_text:
                self._tokens.stop(choice.number)
            return piece

    def close(self) -> None:
        """Ends the text, if it still goes on."""
        self._tokens.close()


def _in_turns(streams: Sequence[_Watched]) -> list[list[Completion]]:
    """The completions of streams that are read in turn, so that all run as one batch."""
    left = list(streams)
    try:
        while left:
            left = [each for each in left if next(each, None) is not None]
    finally:
        for each in streams:
            each.close()
    return [
        [choice.completion(len(each.prompt), 0.0) for choice in each.choices] for each in streams
    ]
