"""The bytes of each token, by the decoder of a tokenizer.json."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from kernwright.llm._fields import Fields

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>\Z")
# Replaced by WordPiece and by clean_up_tokenization_spaces, in this order.
CLEAN_UP = (
    *((" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't")),
    *((" 'm", "'m"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re")),
)


def _printable_bytes() -> dict[str, int]:
    """Bytes by their characters in byte-level vocabularies."""
    same = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in same]
    return {
        **{chr(byte): byte for byte in same},
        **{chr(256 + i): byte for i, byte in enumerate(others)},
    }


PRINTABLE = _printable_bytes()


@dataclass
class PieceTable:
    """The bytes of tokens by id, and the changes of the whole text."""

    pieces: list[bytes]
    first: Callable[[int], bytes] | None
    """The bytes of the first token of a text, where they differ."""
    special: frozenset[int]
    strip: tuple[str, int]
    """A character, and how many of it are dropped where a text begins."""
    replacements: tuple[tuple[str, str], ...] = ()

    def verbatim(self) -> PieceTable:
        """The bytes of tokens, without changes of the text."""
        return replace(self, first=None, strip=("", 0), replacements=())


def piece_table(file: str, spec: dict[str, Any], clean_up: bool) -> PieceTable:
    """The table of a tokenizer. Raises ModelError for unknown decoders."""
    tokens = tokens_of(Fields(file, spec))
    added = {each["id"]: each for each in spec.get("added_tokens") or ()}
    decoder = _Decoder(file, spec)
    return PieceTable(
        pieces=[decoder.piece(token, id in added) for id, token in enumerate(tokens)],
        first=(lambda id: decoder.first(tokens[id])) if decoder.first_differs else None,
        special=frozenset(id for id, each in added.items() if each.get("special")),
        strip=decoder.strip,
        replacements=CLEAN_UP if clean_up else (),
    )


def tokens_of(spec: Fields) -> list[str]:
    """Tokens by id; empty texts where an id has none."""
    found: dict[int, str] = {}
    model = spec.object("model")
    if isinstance(model.values.get("vocab"), list):  # unigrams: pairs of piece and score
        for id, pair in enumerate(model.need("vocab", list)):
            if not isinstance(pair, (list, tuple)) or not pair or not isinstance(pair[0], str):
                raise model.wrong("vocab", f"must have pairs of piece and score, got {pair!r:.60}")
            found[id] = pair[0]
    else:
        for token, id in model.need("vocab", dict).items():
            if type(id) is not int or not 0 <= id < 1 << 24:
                raise model.wrong("vocab", f"has the id {id!r:.40} for {token!r:.60}")
            found[id] = token
    for i, each in enumerate(spec.get("added_tokens", list, [])):
        token_fields = Fields(spec.file, each, f"added_tokens[{i}]")
        id = token_fields.need("id", int)
        if not 0 <= id < 1 << 24:
            raise token_fields.wrong("id", f"is {id}")
        found[id] = token_fields.need("content", str)
    return [found.get(id, "") for id in range(max(found, default=-1) + 1)]


class _Decoder:
    """The steps of a decoder."""

    def __init__(self, file: str, spec: dict[str, Any]) -> None:
        self.fields = Fields(file, spec)
        self.steps: list[Callable[[str], str]] = []
        self.byte_level = self.byte_fallback = False
        self.first_differs = False
        self.first_step: Callable[[str], str] | None = None
        self.strip = ("", 0)
        if self.fields.has("decoder"):
            fused = False
            for step in self._flat(self.fields.object("decoder")):
                fused = self._add(step, fused)

    def _flat(self, decoder: Fields) -> Iterator[Fields]:
        if decoder.need("type", str) != "Sequence":
            yield decoder
            return
        for i, each in enumerate(decoder.need("decoders", list)):
            yield from self._flat(Fields(decoder.file, each, f"{decoder.path('decoders')}[{i}]"))

    def _add(self, step: Fields, fused: bool) -> bool:
        kind = step.need("type", str)
        if kind == "ByteLevel":
            self.byte_level = True
        elif kind == "ByteFallback":
            self.byte_fallback = True
        elif kind == "Replace":
            self.steps.append(_replacing(step))
        elif kind == "Strip":
            if not fused or step.get("stop", int, 0):
                raise step.wrong("type", "is a Strip of each token or of the end: not supported")
            self.strip = step.need("content", str), step.need("start", int)
        elif kind == "Metaspace":
            self._metaspace(step)
        elif kind == "WordPiece":
            self._wordpiece(step)
        elif kind != "Fuse":
            raise step.wrong(
                "type",
                f"is {kind!r:.40}; known are ByteLevel, ByteFallback, Fuse, Metaspace, Replace, "
                "Sequence, Strip, WordPiece",
            )
        return fused or kind == "Fuse"

    def _metaspace(self, step: Fields) -> None:
        mark = step.get("replacement", str, "\u2581")
        self.steps.append(lambda token: token.replace(mark, " "))
        scheme = "always" if step.get("add_prefix_space", bool, True) else "never"
        if step.get("prepend_scheme", str, scheme) != "never":
            self.first_differs, self.first_step = True, lambda token: token.replace(mark, "")

    def _wordpiece(self, step: Fields) -> None:
        prefix, clean = step.get("prefix", str, "##"), step.get("cleanup", bool, True)

        def cleaned(token: str) -> str:
            for found, instead in CLEAN_UP if clean else ():
                token = token.replace(found, instead)
            return token

        def inner(token: str) -> str:
            joins = token.startswith(prefix)
            return cleaned(token[len(prefix) :] if joins else f" {token}")

        self.steps.append(inner)
        self.first_differs, self.first_step = True, cleaned

    def piece(self, token: str, added: bool) -> bytes:
        """The bytes of a token after the first of a text."""
        if self.byte_level:
            if added:
                return _utf8(token)
            values = [PRINTABLE.get(each, -1) for each in token]
            return _utf8(token) if -1 in values else bytes(values)
        if self.byte_fallback and (match := _BYTE.match(token)):
            return bytes([int(match[1], 16)])
        for step in self.steps:
            token = step(token)
        return _utf8(token)

    def first(self, token: str) -> bytes:
        """The bytes of the first token of a text."""
        assert self.first_step is not None
        return _utf8(self.first_step(token))


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")  # a lone surrogate can be written in JSON


def _replacing(step: Fields) -> Callable[[str], str]:
    content = step.need("content", str)
    pattern = step.object("pattern")
    if pattern.has("String"):
        found: str = pattern.need("String", str)
        return lambda token: token.replace(found, content)
    try:
        regex = re.compile(pattern.need("Regex", str))
    except re.error as error:
        raise step.wrong("pattern", f"is a Regex that is unknown here: {error}") from None
    return lambda token: regex.sub(lambda _: content, token)
