"""Vocabularies of SentencePiece: pieces with scores, and its .model files."""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kernwright.llm._errors import ModelError
from kernwright.llm._text.source import (
    WORD_START,
    Source,
    added_token,
    bpe_model,
    merges_of,
)

_UNIGRAM, _PAIRS = 1, 2  # kinds of models


class TokenKind(enum.IntEnum):
    """Kinds of tokens in files of SentencePiece and in GGUF files."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER = 4
    UNUSED = 5
    BYTE = 6


@dataclass
class Pieces:
    """Pieces of text with scores: those of higher score are preferred."""

    tokens: list[str]
    scores: list[float]
    normal: list[bool]
    """Whether a piece is found in texts by its score."""
    added: list[dict[str, Any]]
    unknown: str | None
    byte_fallback: bool
    add_space: bool
    """Whether a text begins with a space."""


def pieces_spec(pieces: Pieces) -> dict[str, Any]:
    """Byte pairs with merges by scores."""
    ranks = {
        token: -score
        for token, score, normal in zip(pieces.tokens, pieces.scores, pieces.normal, strict=True)
        if normal
    }
    model = bpe_model(
        {token: id for id, token in reversed(list(enumerate(pieces.tokens)))},
        merges_of(ranks),
        unknown=pieces.unknown,
        byte_fallback=pieces.byte_fallback,
    )
    steps: list[dict[str, Any]] = [_replace(" ", WORD_START)]
    if pieces.add_space:
        steps.insert(0, {"type": "Prepend", "prepend": WORD_START})
    return _spec(model, steps, None, pieces.added, pieces.add_space)


def character_pairs_spec(
    model: dict[str, Any], patterns: Iterable[str], added: list[dict[str, Any]]
) -> dict[str, Any]:
    """Byte pairs with merges of their own, over characters."""
    cuts = [
        {"type": "Split", "pattern": {"Regex": each}, "behavior": "Isolated", "invert": False}
        for each in patterns
    ]
    before = {"type": "Sequence", "pretokenizers": cuts}
    return _spec(model, [_replace(" ", WORD_START)], before, added, False)


def unigram_spec(pieces: Pieces, charsmap: bytes, remove_spaces: bool) -> dict[str, Any]:
    """The most likely pieces, after the normalisation of `charsmap`."""
    import base64

    unknown = pieces.tokens.index(pieces.unknown) if pieces.unknown else None
    model = {
        "type": "Unigram",
        "unk_id": unknown,
        "vocab": [list(each) for each in zip(pieces.tokens, pieces.scores, strict=True)],
        "byte_fallback": pieces.byte_fallback,
    }
    steps: list[dict[str, Any]] = []
    if charsmap:
        table = base64.b64encode(charsmap).decode()
        steps.append({"type": "Precompiled", "precompiled_charsmap": table})
    if remove_spaces:
        steps.append({"type": "Strip", "strip_left": True, "strip_right": True})
        steps.append({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})
    scheme = "always" if pieces.add_space else "never"
    space = {"type": "Metaspace", "replacement": WORD_START, "prepend_scheme": scheme}
    spec = _spec(model, steps, {**space, "split": True}, pieces.added, False)
    if not pieces.byte_fallback:
        spec["decoder"] = {**space, "split": True}
    return spec


def _replace(what: str, by: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"String": what}, "content": by}


def _spec(
    model: dict[str, Any],
    normalizer: list[dict[str, Any]],
    pre_tokenizer: dict[str, Any] | None,
    added: list[dict[str, Any]],
    strip: bool,
) -> dict[str, Any]:
    decoders = [_replace(WORD_START, " "), {"type": "ByteFallback"}, {"type": "Fuse"}]
    if strip:
        decoders.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    return {
        "version": "1.0",
        "added_tokens": added,
        "normalizer": {"type": "Sequence", "normalizers": normalizer} if normalizer else None,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": decoders},
        "model": model,
    }


def read_sentencepiece(file: str, content: bytes) -> Source:
    """A .model file of SentencePiece, of byte pairs or of unigrams."""
    parts = _Message(file, content)
    tokens, scores, kinds = [], [], []
    for part in parts.messages(1):
        tokens.append(part.text(1))
        scores.append(part.real(2))
        kinds.append(part.whole(3, TokenKind.NORMAL))
    if not tokens:
        raise ModelError(f"{file} is no model of SentencePiece: it has no pieces")
    trainer = next(parts.messages(2), _Message(file, b""))
    normalizer = next(parts.messages(3), _Message(file, b""))
    roles = {}
    for role, number, usual in (("unk", 40, 0), ("bos", 41, 1), ("eos", 42, 2), ("pad", 43, -1)):
        id = trainer.signed(number, usual)
        if 0 <= id < len(tokens):
            roles[f"{role}_token"] = tokens[id]
    pieces = Pieces(
        tokens=tokens,
        scores=scores,
        normal=[kind in (TokenKind.NORMAL, TokenKind.UNUSED) for kind in kinds],
        added=[
            added_token(id, token, special=kind != TokenKind.USER)
            for id, (token, kind) in enumerate(zip(tokens, kinds, strict=True))
            if kind in (TokenKind.UNKNOWN, TokenKind.CONTROL, TokenKind.USER)
        ],
        unknown=roles.get("unk_token"),
        byte_fallback=TokenKind.BYTE in kinds,
        add_space=bool(normalizer.whole(3, 1)),
    )
    kind = trainer.whole(3, _UNIGRAM)
    if kind == _PAIRS:
        return Source(file, pieces_spec(pieces), named=roles, add_bos="bos_token" in roles)
    if kind != _UNIGRAM:
        raise ModelError(f"{file}: trainer_spec.model_type is {kind}; 1 (unigram) and 2 (bpe) work")
    spec = unigram_spec(pieces, normalizer.data(2), bool(normalizer.whole(4, 1)))
    return Source(file, spec, named=roles, add_bos=False, add_eos="eos_token" in roles)


class _Message:
    """Fields of a message of protocol buffers, by number."""

    def __init__(self, file: str, content: bytes) -> None:
        self.file = file
        self.fields: dict[int, list[Any]] = {}
        at = 0
        while at < len(content):
            key, at = self._varint(content, at)
            number, wire = key >> 3, key & 7
            value: Any
            if wire == 0:
                value, at = self._varint(content, at)
            elif wire in (1, 2, 5):
                size = {1: 8, 5: 4}.get(wire)
                if size is None:
                    size, at = self._varint(content, at)
                if size > len(content) - at:
                    raise self._damaged(f"field {number} has {size} bytes at {at}")
                value, at = content[at : at + size], at + size
            else:
                raise self._damaged(f"field {number} has the wire type {wire}")
            self.fields.setdefault(number, []).append(value)

    def _varint(self, content: bytes, at: int) -> tuple[int, int]:
        value = 0
        for i in range(10):
            if at + i >= len(content):
                break
            value |= (content[at + i] & 0x7F) << (7 * i)
            if content[at + i] < 0x80:
                return value, at + i + 1
        raise self._damaged(f"there is no number at {at}")

    def _damaged(self, what: str) -> ModelError:
        return ModelError(f"{self.file} is no model of SentencePiece, or damaged: {what}")

    def messages(self, number: int) -> Iterator[_Message]:
        for each in self.fields.get(number, []):
            if not isinstance(each, bytes):
                raise self._damaged(f"field {number} is a number")
            yield _Message(self.file, each)

    def data(self, number: int) -> bytes:
        value = self.fields.get(number, [b""])[-1]
        if not isinstance(value, bytes):
            raise self._damaged(f"field {number} is a number")
        return value

    def text(self, number: int) -> str:
        try:
            return self.data(number).decode()
        except UnicodeDecodeError:
            raise self._damaged(f"field {number} is not UTF-8") from None

    def real(self, number: int) -> float:
        value = self.data(number) or bytes(4)
        if len(value) != 4:
            raise self._damaged(f"field {number} is no float")
        return float(struct.unpack("<f", value)[0])

    def whole(self, number: int, usual: int) -> int:
        value = self.fields.get(number, [usual])[-1]
        if not isinstance(value, int):
            raise self._damaged(f"field {number} is no whole number")
        return value

    def signed(self, number: int, usual: int) -> int:
        value = self.whole(number, usual)
        return value - (1 << 64) if value >> 63 else value
