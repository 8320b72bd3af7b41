"""Tokenizers of GGUF files, from their metadata."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kernwright._support.warn import warn_caller
from kernwright.llm._fields import Fields
from kernwright.llm._text.patterns import PRE_TOKENIZERS, PreTokenizer
from kernwright.llm._text.sentencepiece import (
    Pieces,
    TokenKind,
    character_pairs_spec,
    pieces_spec,
    unigram_spec,
)
from kernwright.llm._text.source import (
    WORD_START,
    Source,
    added_token,
    bpe_model,
    byte_level_spec,
)

_PREFIX = "tokenizer.ggml."
_ROLES = {
    "bos_token_id": "bos_token",
    "eos_token_id": "eos_token",
    "unknown_token_id": "unk_token",
    "padding_token_id": "pad_token",
    "seperator_token_id": "sep_token",  # the format's spelling
    "cls_token_id": "cls_token",
    "mask_token_id": "mask_token",
}
# Files name one end of a text. Models write others, too.
ENDS = {
    *("<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|endoftext|>"),
    *("<|eom_id|>", "<|end_of_text|>", "<end_of_turn>", "<turn|>", "<end_of_utterance>"),
    *("<EOT>", "[EOT]", "[EOS]", "<eos>", "[e~[", "<|flush|>", "<|calls|>", "<|tool_response>"),
    "<\uff5cend\u2581of\u2581sentence\uff5c>",
}


def read_gguf(file: str, metadata: dict[str, Any], pre: str | None) -> Source:
    """A tokenizer from the metadata of a GGUF file. `pre` overrides tokenizer.ggml.pre."""
    return _Reader(file, metadata, pre).read()


class _Reader:
    def __init__(self, file: str, metadata: dict[str, Any], pre: str | None) -> None:
        self.metadata = Fields(file, metadata)
        named = {
            name.removeprefix(_PREFIX): value
            for name, value in metadata.items()
            if name.startswith(_PREFIX)
        }
        self.fields = Fields(file, named, _PREFIX[:-1])
        self.kind = self.fields.need("model", str)
        if pre is not None:
            named["pre"] = pre
        self.tokens = self.fields.texts("tokens")
        if not self.tokens:
            raise self.fields.wrong("tokens", "is an empty list")
        self.types = self._numbers("token_type", int, TokenKind.NORMAL)
        self.roles = {role: self.tokens[id] for role, id in self._ids()}

    def read(self) -> Source:
        makers = {
            "gpt2": self._byte_pairs,
            "gemma4": self._byte_pairs,
            "llama": self._sentencepiece,
            "t5": self._unigram,
            "bert": self._wordpiece,
        }
        if self.kind not in makers:
            raise self.fields.wrong(
                "model", f"is {self.kind!r:.40}; known are {', '.join(sorted(makers))}"
            )
        spec, add_bos, add_eos = makers[self.kind]()
        return Source(
            file=self.fields.file,
            spec=spec,
            named=self.roles,
            eos=list(self._ends()),
            add_bos=self.fields.get("add_bos_token", bool, add_bos),
            add_eos=self.fields.get("add_eos_token", bool, add_eos),
            templates=self._templates(),
        )

    def _numbers(self, name: str, kind: type, value: Any) -> list[Any]:
        """A list with a number for each token."""
        if not self.fields.has(name):
            return [value] * len(self.tokens)
        found = self.fields.get(name, list)
        if len(found) < len(self.tokens):
            raise self.fields.wrong(name, f"has {len(found)} entries for {len(self.tokens)} tokens")
        if not all(isinstance(each, (int, kind)) for each in found):
            raise self.fields.wrong(name, "must be a list of numbers")
        return list(found[: len(self.tokens)])

    def _ids(self) -> Iterable[tuple[str, int]]:
        for name, role in _ROLES.items():
            id = self.fields.get(name, int)
            if id is not None and 0 <= id < len(self.tokens):  # -1: there is none
                yield role, id

    def _ends(self) -> Iterable[int]:
        for name in ("eos_token_id", "eot_token_id", "eom_token_id"):
            id = self.fields.get(name, int)
            if id is not None and 0 <= id < len(self.tokens):
                yield id
        for id, token in enumerate(self.tokens):
            if token in ENDS and self.types[id] in (TokenKind.CONTROL, TokenKind.USER):
                yield id

    def _added(self) -> list[dict[str, Any]]:
        """Control tokens and tokens of the user. Phi-3 drops spaces after its own."""
        name = self.metadata.get("general.name", str, "").lower()
        strips = "phi-3" in name or "phi3" in name
        made = []
        for id, (token, kind) in enumerate(zip(self.tokens, self.types, strict=True)):
            unknown = kind == TokenKind.UNKNOWN and token == self.roles.get("unk_token")
            if token and (unknown or kind in (TokenKind.CONTROL, TokenKind.USER)):
                rstrip = strips and token not in ("<unk>", "<s>", "<|endoftext|>")
                made.append(added_token(id, token, special=kind != TokenKind.USER, rstrip=rstrip))
        return made

    def _vocab(self) -> dict[str, int]:
        """Ids by token. Of equal tokens, the first has the id."""
        return {token: id for id, token in reversed(list(enumerate(self.tokens)))}

    def _byte_pairs(self) -> tuple[dict[str, Any], bool, bool]:
        pre = self._pre_tokenizer()
        merges = []
        for i, text in enumerate(self.fields.texts("merges")):
            cut = text.find(" ", 1)
            if cut < 0:
                raise self.fields.wrong("merges", f"has {text!r:.60} at {i}, which is no pair")
            merges.append((text[:cut], text[cut + 1 :]))
        model = bpe_model(
            self._vocab(),
            merges,
            unknown=None if pre.byte_level else self.roles.get("unk_token"),
            byte_fallback=not pre.byte_level,
            ignore_merges=pre.ignore_merges,
        )
        if pre.byte_level:
            spec = byte_level_spec(model, pre.patterns, self._added())
        else:
            spec = character_pairs_spec(model, pre.patterns, self._added())
        return spec, pre.add_bos, False

    def _pre_tokenizer(self) -> PreTokenizer:
        name = self.fields.get("pre", str, "gemma4" if self.kind == "gemma4" else None)
        if name in PRE_TOKENIZERS:
            return PRE_TOKENIZERS[name]
        said = f"is {name!r:.60}, which is unknown here" if name else "is missing"
        warn_caller(
            f"{self.fields.file}: {_PREFIX}pre {said}; the rules of 'default' are used, and token "
            "ids may differ from those of the model's training. Pass pre= with one of "
            + ", ".join(sorted(PRE_TOKENIZERS))
        )
        return PRE_TOKENIZERS["default"]

    def _pieces(self) -> Pieces:
        return Pieces(
            tokens=self.tokens,
            scores=self._numbers("scores", float, 0.0),
            normal=[kind in (TokenKind.NORMAL, TokenKind.UNUSED) for kind in self.types],
            added=self._added(),
            unknown=self.roles.get("unk_token"),
            byte_fallback=TokenKind.BYTE in self.types,
            add_space=self.fields.get("add_space_prefix", bool, True),
        )

    def _sentencepiece(self) -> tuple[dict[str, Any], bool, bool]:
        return pieces_spec(self._pieces()), True, False

    def _unigram(self) -> tuple[dict[str, Any], bool, bool]:
        charsmap = self.fields.get("precompiled_charsmap", list, [])
        remove = self.fields.get("remove_extra_whitespaces", bool, False)
        try:
            table = bytes(each & 0xFF for each in charsmap)
        except TypeError:
            raise self.fields.wrong("precompiled_charsmap", "must be a list of bytes") from None
        return unigram_spec(self._pieces(), table, remove), False, True

    def _wordpiece(self) -> tuple[dict[str, Any], bool, bool]:
        special = {
            token
            for id, token in enumerate(self.tokens)
            if self.types[id] in (TokenKind.CONTROL, TokenKind.USER)
        }
        vocab = {}
        for id, token in enumerate(self.tokens):
            inner = token[:1] != WORD_START and token not in special
            vocab["##" + token if inner else token.removeprefix(WORD_START)] = id
        lower = self.fields.get("normalizer.lowercase", bool, True)
        spec = {
            "version": "1.0",
            "added_tokens": self._added(),
            "normalizer": {
                "type": "BertNormalizer",
                "clean_text": True,
                "handle_chinese_chars": True,
                "strip_accents": self.fields.get("normalizer.strip_accents", bool, lower),
                "lowercase": lower,
            },
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": None,
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "model": {
                "type": "WordPiece",
                "unk_token": self.roles.get("unk_token", "[UNK]"),
                "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100,
                "vocab": vocab,
            },
        }
        if "cls_token" in self.roles:
            self.roles.setdefault("bos_token", self.roles["cls_token"])
        if "sep_token" in self.roles:
            self.roles.setdefault("eos_token", self.roles["sep_token"])
        return spec, True, True

    def _templates(self) -> dict[str, str]:
        found = {}
        prefix = "tokenizer.chat_template"
        for name in self.metadata.values:
            if name == prefix or name.startswith(prefix + "."):
                found[name.removeprefix(prefix)[1:] or "default"] = self.metadata.need(name, str)
        return found
