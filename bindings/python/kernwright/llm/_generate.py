"""Texts that go on: prompts of a model through its engine, and the tokens back to text."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import kernwright as kw
from kernwright.errors import ArgumentError, InvalidArgument, OutOfMemory
from kernwright.llm._engine import Generated, TokenEngine
from kernwright.llm._options import Generation
from kernwright.llm._recording import TokenLogprobs
from kernwright.llm._text.stop import StopCheck

if TYPE_CHECKING:
    from kernwright.llm._model import Model

__all__ = ["Completion", "Piece"]

_MOST_ROWS = 256  # sequences that run at a time; others wait
_LEAST_CAPACITY = 1024
_PAGE = 16  # tokens
# Of deterministic engines: as all steps are of one size, these are costs of each.
_SAME_ROWS, _SAME_TOKENS = 32, 256


@dataclasses.dataclass(frozen=True)
class Completion:
    """A text that a model wrote."""

    text: str
    """Without the prompt, special tokens and the stop string; "" without a tokenizer."""
    tokens: list[int]
    """With the token that ended the text, if one did."""
    finish_reason: str
    """"stop": a token or a string that ends texts; "length": max_tokens."""
    prompt_tokens: int
    """How many tokens the prompt has."""
    seconds: float
    """From the call to the end of its last text."""
    logprobs: list[TokenLogprobs] | None = None
    """Of each token, where they were asked for: `.logprob`, and `.top`, the highest ones as
    (token, log-probability)."""


class Piece(NamedTuple):
    """What a stream gives for each token, and at the end of a text."""

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


class _Size(NamedTuple):
    """What an engine has place for: sequences at a time, tokens of each, pages of all."""

    rows: int
    capacity: int
    pages: int

    def holds(self, other: _Size) -> bool:
        return all(mine >= theirs for mine, theirs in zip(self, other, strict=True))


class Generator:
    """The engine of a model, which grows with what is asked of it."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._engine: TokenEngine | None = None
        self._size = _Size(0, 0, 0)
        self._deterministic = False

    def engine(self, lengths: Sequence[int], deterministic: bool = False) -> TokenEngine:
        """An engine for sequences of so many tokens each: the one that there is, or a larger one in
        its place. Raises OutOfMemory, which tells what would fit."""
        rows = min(len(lengths), _SAME_ROWS if deterministic else _MOST_ROWS)
        pages = [-(-length // _PAGE) for length in sorted(lengths, reverse=True)[:rows]]
        needed = _Size(rows, max(lengths), sum(pages))
        context = self._model.config.max_length
        if deterministic:  # only the number of pages may change no bit
            needed = _Size(_SAME_ROWS, context, sum(pages))
        if deterministic != self._deterministic:
            self._engine, self._size = None, _Size(0, 0, 0)
            self._deterministic = deterministic
        if self._engine is None or not self._size.holds(needed):
            self._engine, before = None, self._size  # its caches are given back first
            self._size = _Size(0, 0, 0)
            grown = _Size(*(1 << (max(each) - 1).bit_length()
                            for each in zip(needed, before, strict=True)))  # fmt: skip
            grown = grown._replace(capacity=min(max(grown.capacity, _LEAST_CAPACITY), context))
            try:
                self._engine, self._size = self._made(grown), grown
            except OutOfMemory:
                self._engine, self._size = self._made_exactly(needed), needed
        return self._engine

    def _made(self, size: _Size) -> TokenEngine:
        model = self._model
        return TokenEngine(
            model.module, vocabulary=model.config.vocab_size, cache_layers=model.cache_layers(),
            capacity=size.capacity, max_rows=size.rows, page_size=_PAGE, pages=size.pages,
            max_tokens_per_step=_SAME_TOKENS if self._deterministic else max(2048, 2 * size.rows),
            dtype=model.cache_dtype, deterministic=self._deterministic, device=model.device,
        )  # fmt: skip

    def _made_exactly(self, size: _Size) -> TokenEngine:
        try:
            return self._made(size)
        except OutOfMemory as error:
            layers = self._model.cache_layers()
            each = 2 * sum(heads * dim for heads, dim in layers)
            each *= np.dtype(kw.empty(0, self._model.cache_dtype).dtype).itemsize
            free = _available(self._model.device)
            raise OutOfMemory(
                f"the caches of {size.rows} sequences need {size.pages * _PAGE * each:,} bytes, "
                f"{each:,} a token, and {free:,} are free: {max(free // each, 0):,} tokens of all "
                f"sequences together would fit ({error})"
            ) from None

    def prepared(
        self, prompts: Sequence[list[int]], options: Generation
    ) -> tuple[TokenEngine, list[int]]:
        """An engine for these prompts, and how many tokens may follow each."""
        context = self._model.config.max_length
        limits = [options.limit(len(prompt), context) for prompt in prompts]
        lengths = [len(prompt) + limit for prompt, limit in zip(prompts, limits, strict=True)]
        all_lengths = [each for each in lengths for _ in range(options.n)]
        return self.engine(all_lengths, options.deterministic), limits


def _available(device: Any) -> int:
    """Bytes that arrays can still take: free ones and those of the pool that nobody uses."""
    with device:
        found = kw.memory.stats()
    free = device.memory_info().free + found["reserved"] - found["used"]
    limit = found.get("limit")
    return int(free if limit is None else min(free, limit - found["used"]))


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
    if all(isinstance(each, (int, np.integer)) for each in prompts):
        return [tokens_of(model, prompts)], True
    return [tokens_of(model, each) for each in prompts], False


def tokens_of(model: Model, prompt: Any) -> list[int]:
    """The tokens of one prompt. Raises ModelError, ContextError, ArgumentError."""
    if isinstance(prompt, str):
        if model.tokenizer is None:
            raise InvalidArgument(
                "the model has no tokenizer, so that prompts are lists of tokens, not a text"
            )
        prompt = model.tokenizer.encode(prompt)
    return model.checked_tokens(prompt)


def generate(model: Model, generator: Generator, prompts: Any, options: Generation) -> Any:
    """See Model.generate()."""
    begin = time.perf_counter()
    lists, alone = prompts_of(model, prompts)
    engine, limits = generator.prepared(lists, options)
    if options.stop:
        made = [
            _watched(model, engine, prompt, limit, options)
            for prompt, limit in zip(lists, limits, strict=True)
        ]
        results = _in_turns(made, options)
    else:
        results = _at_once(model, engine, lists, limits, options)
    seconds = time.perf_counter() - begin
    found = [
        [dataclasses.replace(each, seconds=seconds) for each in choices] for choices in results
    ]
    listed: list[Any] = [choices if options.n > 1 else choices[0] for choices in found]
    return listed[0] if alone else listed


def _at_once(
    model: Model, engine: TokenEngine, lists: Sequence[list[int]], limits: Sequence[int],
    options: Generation,
) -> list[list[Completion]]:  # fmt: skip
    """All prompts without a look at their text."""
    requests = [
        (prompt, options.sampling(limit, model.eos))
        for prompt, limit in zip(lists, limits, strict=True)
    ]
    return [
        [_completion(model, prompt, choice, options) for choice in choices]
        for prompt, choices in zip(lists, engine.run_each(requests), strict=True)
    ]


def _completion(
    model: Model, prompt: list[int], made: Generated, options: Generation
) -> Completion:
    text = ""
    if model.tokenizer is not None:
        ends = set(model.eos) | set(options.stop_tokens)
        shown = made.tokens
        if made.finish_reason == "stop" and shown and shown[-1] in ends:
            shown = shown[:-1]
        stream = model.tokenizer.stream(prompt)
        text = "".join(stream.push(token) for token in shown) + stream.finish()
    return Completion(text, made.tokens, made.finish_reason, len(prompt), 0.0, made.logprobs)


def stream(model: Model, generator: Generator, prompt: Any, options: Generation) -> Iterator[Piece]:
    """See Model.stream()."""
    lists, alone = prompts_of(model, prompt)
    if not alone:
        raise ArgumentError("stream() takes one prompt; generate() takes several")
    engine, limits = generator.prepared(lists, options)
    return _Watched(model, engine, lists[0], limits[0], options)


class _Watched(Iterator[Piece]):
    """The tokens of a request as text, which ends at stop strings."""

    def __init__(
        self, model: Model, engine: TokenEngine, prompt: list[int], limit: int,
        options: Generation,
    ) -> None:  # fmt: skip
        tokenizer = model.tokenizer
        self.prompt = prompt
        self.checks = [
            StopCheck(
                None if tokenizer is None else tokenizer.stream(prompt), eos=model.eos,
                stop=options.stop, stop_tokens=options.stop_tokens,
                min_tokens=options.min_tokens, max_tokens=limit, ignore_eos=options.ignore_eos,
            )
            for _ in range(options.n)
        ]  # fmt: skip
        self._tokens = engine.stream(prompt, options.sampling(limit, model.eos))

    def __next__(self) -> Piece:
        while True:
            piece = next(self._tokens)
            check = self.checks[piece.choice]
            if check.reason is not None:
                continue  # behind a stop string
            text = "" if piece.token is None else check.push(piece.token)
            reason = check.reason or piece.finish_reason
            if all(each.reason is not None for each in self.checks):
                self._tokens.close()
            return Piece(text, piece.token, piece.choice, reason, piece.logprobs)

    def close(self) -> None:
        """Ends the text, if it still goes on."""
        self._tokens.close()


def _watched(
    model: Model, engine: TokenEngine, prompt: list[int], limit: int, options: Generation
) -> _Watched:
    return _Watched(model, engine, prompt, limit, options)


@dataclasses.dataclass
class _Gathered:
    """What came of one text so far."""

    tokens: list[int] = dataclasses.field(default_factory=list)
    texts: list[str] = dataclasses.field(default_factory=list)
    logprobs: list[TokenLogprobs] = dataclasses.field(default_factory=list)
    reason: str = ""

    def add(self, piece: Piece) -> None:
        if piece.token is not None:
            self.tokens.append(piece.token)
        if piece.logprobs is not None:
            self.logprobs.append(piece.logprobs)
        self.texts.append(piece.text)
        self.reason = piece.finish_reason or ""


def _in_turns(streams: Sequence[_Watched], options: Generation) -> list[list[Completion]]:
    """The completions of streams that are read in turn, so that all run as one batch."""
    gathered = [[_Gathered() for _ in each.checks] for each in streams]
    left = list(range(len(streams)))
    try:
        while left:
            for i in list(left):
                piece = next(streams[i], None)
                if piece is None:
                    left.remove(i)
                else:
                    gathered[i][piece.choice].add(piece)
    finally:
        for each in streams:
            each.close()
    return [
        [
            Completion(
                "".join(found.texts), found.tokens, found.reason, len(each.prompt), 0.0,
                None if options.logprobs is None else found.logprobs,
            )
            for found in choices
        ]
        for each, choices in zip(streams, gathered, strict=True)
    ]  # fmt: skip
