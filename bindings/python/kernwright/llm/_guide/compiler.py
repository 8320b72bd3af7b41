"""Compiles forms of texts for a vocabulary: masks of the tokens that may come next."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from kernwright.errors import InvalidArgument
from kernwright.llm._errors import ModelError
from kernwright.llm._fields import import_extra
from kernwright.llm._guide.dates import with_strict_dates
from kernwright.llm._guide.form import Form

if TYPE_CHECKING:
    from kernwright.llm._model import Model
    from kernwright.llm._text.tokenizer import Tokenizer

__all__ = ["WHITESPACE", "Compiler", "Guide", "GuideState", "compiler_of", "guide_of"]

_SECONDS = 10.0  # of a compile
_AT_ONCE = 4  # compiles
_KEPT = 64  # compiled forms
_LONGEST_MESSAGE = 500
# Between the tokens of JSON: nothing, a space, or a new line with its indent. Models that may write
# any whitespace sometimes write nothing else.
WHITESPACE = r"( |\n[ \t]{0,40})"


class GuideState:
    """Where a text is in its form. Not for several threads at once."""

    def __init__(self, matcher: Any, form: Form, vocabulary: int) -> None:
        self._matcher, self._form, self._vocabulary = matcher, form, vocabulary

    def advance(self, token: int | None) -> bytes | None:
        """The bits of the tokens that may come behind `token` (None: as the first one), 32 in a
        word; None where the text is complete.

        Raises ModelError where the form fails, or no token of the vocabulary can follow.
        """
        matcher = self._matcher
        if token is not None:
            matcher.consume_token(token)
            if not matcher.is_error() and matcher.is_stopped():
                return None
        mask = _cut(matcher.compute_bitmask(), self._vocabulary)
        if matcher.is_error():
            raise ModelError(f"{self._form.kind} failed: {_shortened(matcher.get_error())}")
        if not any(mask):
            if matcher.is_accepting():
                return None
            raise ModelError(
                f"{self._form.kind}: no token of the vocabulary can follow the text so far"
            )
        return mask

    def rollback(self, count: int) -> None:
        """Takes the last `count` tokens back. Raises ModelError where the form fails."""
        if not self._matcher.rollback(count):
            raise ModelError(f"{self._form.kind} failed: {_shortened(self._matcher.get_error())}")

    def forced(self) -> list[int]:
        """The next tokens where the form leaves no other text, else none."""
        return list(self._matcher.compute_ff_tokens())


class Guide:
    """A compiled form, for any number of texts."""

    def __init__(self, matcher: Any, form: Form, vocabulary: int) -> None:
        self._matcher, self._form, self._vocabulary = matcher, form, vocabulary

    def start(self) -> GuideState:
        """Of a new text. Thread-safe."""
        return GuideState(self._matcher.deep_copy(), self._form, self._vocabulary)


def _cut(mask: bytes, vocabulary: int) -> bytes:
    """The bits of the tokens of a vocabulary, in whole words."""
    words = (vocabulary + 31) // 32
    last = int.from_bytes(mask[4 * words - 4 : 4 * words], "little")
    last &= (1 << (vocabulary - 1) % 32 + 1) - 1
    return mask[: 4 * words - 4] + last.to_bytes(4, "little")


class Compiler:
    """Compiles forms for texts of the tokens of `tokenizer`, of a model with `vocabulary` logits.

    The tokens `eos` end texts. Needs ``pip install 'kernwright[llm]'``. Thread-safe.
    """

    def __init__(self, tokenizer: Tokenizer, vocabulary: int, eos: Sequence[int]) -> None:
        self._library = import_extra("llguidance", "a schema, regex, grammar or choices")
        ends = [token for token in dict.fromkeys(eos) if 0 <= token < vocabulary]
        # Without a token that ends texts there is one that no model gives.
        tokens = _TokenTable(tokenizer, vocabulary, ends or [vocabulary])
        self._tokenizer = self._library.LLTokenizer(
            self._library.TokenizerWrapper(tokens), eos_token=ends or [vocabulary]
        )
        self._vocabulary = vocabulary
        self._lock = threading.Lock()
        self._kept: OrderedDict[Form, Guide] = OrderedDict()

    def has(self, form: Form) -> bool:
        """Whether a form is compiled already."""
        with self._lock:
            return form in self._kept

    def compile(self, form: Form) -> Guide:
        """Raises InvalidArgument for a form that is wrong, unknown or costs too much."""
        with self._lock:
            if form in self._kept:
                self._kept.move_to_end(form)
                return self._kept[form]
        guide = _within(_SECONDS, form, lambda: self._compiled(form))
        with self._lock:
            self._kept[form] = guide
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return guide

    def _compiled(self, form: Form) -> Guide:
        library = self._library
        try:
            matcher = library.LLMatcher(self._tokenizer, self.grammar(form), log_level=0)
            message = matcher.get_error()
            guide = Guide(matcher, form, self._vocabulary)
            if not message and guide.start().advance(None) is None:
                message = "it allows only the empty text"
        except (ValueError, ModelError) as error:
            message = str(error)
        if message:
            raise InvalidArgument(f"{form.kind} cannot be used: {_shortened(message)}")
        return guide

    def grammar(self, form: Form) -> str:
        """The grammar of a form for llguidance. Raises ValueError."""
        matcher = self._library.LLMatcher
        if form.kind == "schema":
            made = matcher.grammar_from_json_schema(
                _strict(form.text), defaults={"whitespace_pattern": WHITESPACE}
            )
        elif form.kind == "regex":
            made = matcher.grammar_from_regex(form.text)
        elif form.kind == "grammar":
            made = matcher.grammar_from_lark(form.text)
        else:
            texts = [json.dumps(each, ensure_ascii=False) for each in json.loads(form.text)]
            made = matcher.grammar_from_lark("start: " + " | ".join(texts))
        return str(made)


class _TokenTable:
    """What llguidance asks of a tokenizer. Tokens without text are never allowed."""

    def __init__(self, tokenizer: Tokenizer, vocabulary: int, eos: Sequence[int]) -> None:
        known = min(len(tokenizer), vocabulary)
        size = max(vocabulary, max(eos) + 1)
        self.tokens = [tokenizer.bytes(token) for token in range(known)] + [b""] * (size - known)
        special = {token for token in tokenizer.special_tokens.values() if token < known}
        self.special_token_ids = sorted(special | set(eos))
        self.eos_token_id, self.bos_token_id = eos[0], tokenizer.bos
        self._tokenizer = tokenizer
        self._ids = {piece: token for token, piece in enumerate(self.tokens) if piece}
        self._longest = max(map(len, self._ids), default=0)

    def __call__(self, text: str) -> list[int]:
        """Tokens of exactly these bytes: a tokenizer may put a space in front, or normalise."""
        ids = self._tokenizer.encode(text, add_special_tokens=False, parse_special=False)
        data, size = text.encode(), len(self.tokens)
        if all(id < size for id in ids) and b"".join(self.tokens[id] for id in ids) == data:
            return ids
        found, begin = [], 0
        while begin < len(data):
            for end in range(min(len(data), begin + self._longest), begin, -1):
                if data[begin:end] in self._ids:
                    found.append(self._ids[data[begin:end]])
                    break
            else:
                break  # no token has this byte
            begin = end
        return found


_slots = threading.BoundedSemaphore(_AT_ONCE)


def _within(seconds: float, form: Form, work: Callable[[], Guide]) -> Guide:
    """What `work` gives, unless it takes longer. Its thread cannot be ended, and keeps its slot."""
    found: list[Guide] = []
    errors: list[BaseException] = []
    ended = threading.Event()

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:
            errors.append(error)
        finally:
            _slots.release()
            ended.set()

    if not _slots.acquire(timeout=seconds):
        raise InvalidArgument(
            f"{form.kind} cannot be compiled now: {_AT_ONCE} others take longer than {seconds:g} s"
        )
    threading.Thread(target=run, name="kernwright-grammar", daemon=True).start()
    if not ended.wait(seconds):
        raise InvalidArgument(
            f"{form.kind} takes longer than {seconds:g} s to compile: make it simpler"
        )
    if errors:
        raise errors[0]
    return found[0]


def _strict(schema: str) -> str:
    """A schema as JSON, with strict dates."""
    if '"format"' not in schema:
        return schema
    try:
        return json.dumps(with_strict_dates(json.loads(schema)), ensure_ascii=False)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _shortened(message: str) -> str:
    message = " ".join(message.split())
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]}..."


_lock = threading.Lock()


def guide_of(model: Model, form: Form | None) -> Guide | None:
    """The form compiled for the texts of a model. Raises InvalidArgument."""
    if form is None:
        return None
    if model.tokenizer is None:
        raise InvalidArgument(
            f"{form.kind} needs the model's tokenizer, and its files have none: it says which "
            "bytes a token stands for"
        )
    return compiler_of(model.tokenizer, model.config.vocab_size, model.eos).compile(form)


def compiler_of(tokenizer: Tokenizer, vocabulary: int, eos: Sequence[int]) -> Compiler:
    """The compiler of a tokenizer; made once."""
    key = vocabulary, tuple(eos)
    with _lock:
        if key not in tokenizer.compilers:
            tokenizer.compilers[key] = Compiler(tokenizer, vocabulary, eos)
        made: Compiler = tokenizer.compilers[key]
        return made
