"""Words that a text must not have: the last token of each is masked where the others stand."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.llm._guide.compiler import guide_of
from kernwright.llm._guide.worker import Guide, GuideState
from kernwright.llm._sampling import Sampling, require_known_tokens

if TYPE_CHECKING:
    from kernwright.llm._model import Model
    from kernwright.llm._options import Generation
    from kernwright.llm._text.tokenizer import Tokenizer

__all__ = ["MOST_CHARACTERS", "MOST_WORDS", "require_words", "sampling_of", "tokens_of_words"]

MOST_WORDS, MOST_CHARACTERS = 1024, 1024


def require_words(words: Any) -> None:
    """Raises ArgumentError for what is no list of texts, InvalidArgument for empty ones, long ones
    and too many."""
    if isinstance(words, (str, bytes)) or not isinstance(words, Sequence):
        raise ArgumentError(f"bad_words is a list of texts, got {words!r:.60}")
    if len(words) > MOST_WORDS:
        raise InvalidArgument(f"bad_words has {MOST_WORDS} texts at most, got {len(words)}")
    for each in words:
        if not isinstance(each, str):
            raise ArgumentError(f"bad_words are texts, got {each!r:.60}")
        if not each.strip():
            raise InvalidArgument(f"bad_words has texts with characters, got {each!r:.60}")
        if len(each) > MOST_CHARACTERS:
            raise InvalidArgument(
                f"bad_words has texts of {MOST_CHARACTERS} characters at most, got {len(each)}"
            )


def tokens_of_words(tokenizer: Tokenizer, words: Sequence[str]) -> list[tuple[int, ...]]:
    """The tokens of each word as the beginning of a text, and behind a space where these begin with
    another token and are as many. Raises InvalidArgument for lone surrogates."""
    made: list[tuple[int, ...]] = []
    for word in words:
        bare = word.lstrip()
        first, spaced = (
            tuple(tokenizer.encode(text, add_special_tokens=False)) for text in (bare, f" {bare}")
        )
        made.append(first)
        if len(spaced) == len(first) and spaced[:1] != first[:1]:
            made.append(spaced)
    return [each for each in dict.fromkeys(made) if each]


class WordsState:
    """What came of a text, as far as a word may have begun there. Not for several threads."""

    def __init__(self, guide: WordsGuide, inner: GuideState | None) -> None:
        self._guide, self._inner = guide, inner
        self._text: list[int] = []

    def advance(self, token: int | None) -> bytes | None:
        """The bits of the tokens that may come behind `token`; None where a form is complete."""
        mask: bytes | None = self._guide.all
        if self._inner is not None:
            mask = self._inner.advance(token)
        if token is not None:
            self._text.append(token)
        if mask is None:
            return None
        return self._guide.masked(mask, self._text)

    def rollback(self, count: int) -> None:
        """Takes the last `count` tokens back."""
        if self._inner is not None:
            self._inner.rollback(count)
        del self._text[len(self._text) - count :]

    def forced(self) -> list[int]:
        """The next tokens where a form leaves no other text."""
        return [] if self._inner is None else self._inner.forced()


class WordsGuide:
    """Masks the last token of words of two tokens at least, and what `inner` masks. The first
    `min_tokens` of a text are none of `ends`."""

    def __init__(
        self, words: Sequence[Sequence[int]], vocabulary: int, inner: Guide | None = None,
        min_tokens: int = 0, ends: Sequence[int] = (),
    ) -> None:  # fmt: skip
        self._inner, self._vocabulary = inner, vocabulary
        self._ends, self._min_tokens = tuple(ends), min_tokens
        self._words: dict[int, list[tuple[int, ...]]] = {}
        """By the token in front of the last one."""
        for word in words:
            self._words.setdefault(word[-2], []).append(tuple(word))
        words32 = (vocabulary + 31) // 32
        self.all = ((1 << vocabulary) - 1).to_bytes(4 * words32, "little")
        """The bits of all tokens."""

    def start(self) -> WordsState:
        """Of a new text."""
        return WordsState(self, None if self._inner is None else self._inner.start())

    def masked(self, mask: bytes, text: Sequence[int]) -> bytes:
        """Without the bits of tokens that would end a word behind a text."""
        listed = self._words.get(text[-1], ()) if text else ()
        bad = [word[-1] for word in listed if tuple(text[len(text) - len(word) + 1 :]) == word[:-1]]
        if len(text) < self._min_tokens:
            bad += self._ends
        if not bad:
            return mask
        bits = bytearray(mask)
        for token in bad:
            if 0 <= token < self._vocabulary:
                bits[token // 8] &= ~(1 << token % 8) & 255
        return bytes(bits)


def sampling_of(model: Model, options: Generation, limit: int) -> Sampling:
    """What an engine takes of the options of a text of up to `limit` tokens: with the guide of its
    form and of its bad words. Raises InvalidArgument, also for ids that no token has."""
    require_known_tokens(options, model.sampled_tokens)
    guide = guide_of(model, options.form)
    made = options.sampling(limit, model.eos, guide)
    if not options.bad_words:
        return made
    if model.tokenizer is None:
        raise InvalidArgument(
            "bad_words needs the model's tokenizer, and its files have none: bad_tokens takes ids"
        )
    words = tokens_of_words(model.tokenizer, options.bad_words)
    vocabulary = model.config.vocab_size
    outside = next((each for word in words for each in word if each >= vocabulary), None)
    if outside is not None:
        raise InvalidArgument(
            f"bad_words has the token {outside}, outside of the vocabulary of {vocabulary}"
        )
    bad = dict.fromkeys([*made.bad_tokens, *(word[0] for word in words if len(word) == 1)])
    changes: dict[str, Any] = {"bad_tokens": tuple(bad)}
    longer = [word for word in words if len(word) > 1]
    if longer:
        ends = made.stop_tokens if made.min_tokens else ()
        changes["guide"] = WordsGuide(longer, vocabulary, guide, made.min_tokens, ends)
        changes["min_tokens"] = 0
    return dataclasses.replace(made, **changes)
