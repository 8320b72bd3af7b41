"""A tokenizer as metadata of a GGUF file: the inverse of llm/_text/gguf.py."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from kernwright.llm._config import Config
from kernwright.llm._errors import ModelError
from kernwright.llm._gguf.metadata import end_tokens
from kernwright.llm._text.files import read_source
from kernwright.llm._text.gguf import ENDS, read_gguf
from kernwright.llm._text.patterns import PRE_TOKENIZERS
from kernwright.llm._text.sentencepiece import TokenKind
from kernwright.llm._text.source import WORD_START, Source
from kernwright.llm._text.tokenizer import Tokenizer

__all__ = ["vocabulary_of"]

_PREFIX = "tokenizer.ggml."
_ROLES = {
    "bos_token": "bos_token_id", "unk_token": "unknown_token_id", "pad_token": "padding_token_id",
    "sep_token": "seperator_token_id", "cls_token": "cls_token_id", "mask_token": "mask_token_id",
}  # fmt: skip
# Texts that rules for cutting tell apart: contractions, digits, marks, spaces, lines, scripts.
_SAMPLES = (
    "Hello world! I'm they'LL we've 12345678 3.14 x_y=z; (a+b)**2 // ok\n\n\tif  x:\r\n  y ",
    "\u00e9t\u00e9 na\u00efve \u00c4\u00d6\u00dc \u4f60\u597d\u4e16\u754c\u3002\u3053\u3093 "
    "\u0395\u03bb \u0414\u0430! \u0e2a\u0e27 \u0627\u0644 \U0001f600\U0001f44d 1\u00b2",
    "   leading, trailing   \n \n", "http://a.b/c?d=e&f#g @user #tag $9.99 'quoted' \"s\" --", "",
)  # fmt: skip


def vocabulary_of(folder: str, config: Config) -> dict[str, Any]:
    """The metadata of a folder's tokenizer, and of the tokens that end a text, for a model with
    this config. They give the same token ids for texts that rules for cutting tell apart, with
    added tokens among them; texts are in the form NFC, which such files do not tell. Raises
    ModelError where no metadata do."""
    size = config.vocab_size
    source = read_source(folder, None, None)
    tokenizer = Tokenizer(source)
    kind = source.spec["model"].get("type")
    if kind != "BPE":
        raise ModelError(f"{source.file}: a vocabulary of {kind} is not written as a .gguf file")
    if len(tokenizer) > size:
        raise ModelError(f"{source.file} has {len(tokenizer)} tokens, and the model {size}")
    _require_no_normalizer(source)
    ends = list(dict.fromkeys([*tokenizer.eos, *config.eos]))
    tokens = [tokenizer.token(id) for id in range(len(tokenizer))] + [""] * (size - len(tokenizer))
    common = _common(source, tokenizer, tokens)
    common["general.name"] = os.path.basename(os.path.abspath(folder))
    named = {each["content"] for each in source.spec.get("added_tokens") or ()}
    told = [id for id in ends if tokens[id] in ENDS and tokens[id] in named]
    # The first is the usual end; a reader finds some others by their names.
    common |= end_tokens([id for id in ends if id not in told or id == ends[0]], source.file)
    samples = [*_SAMPLES, "".join(f"a {each} b{each}c" for each in sorted(named))]
    for kind in _kinds(source.spec, tokens):
        made = common | {_PREFIX + name: value for name, value in kind.items()}
        if _gives_the_same(tokenizer, Tokenizer(read_gguf(source.file, made, None)), samples):
            return made
    raise ModelError(
        f"{source.file}: none of the rules for cutting texts that .gguf files name gives its token "
        f"ids, added tokens among texts included; known are {', '.join(PRE_TOKENIZERS)}"
    )


def _common(source: Source, tokenizer: Tokenizer, tokens: list[str]) -> dict[str, Any]:
    """All but the merges."""
    added = {each["id"]: each for each in source.spec.get("added_tokens") or ()}
    unknown = source.named.get("unk_token")
    kinds = [_kind(token, added.get(id), token == unknown) for id, token in enumerate(tokens)]
    found: dict[str, Any] = {
        "tokens": [token or f"[PAD{id}]" for id, token in enumerate(tokens)],
        "token_type": np.array(kinds, np.int32),
    }
    ids = {role: tokenizer.id(token) for role, token in source.named.items() if token}
    found |= {key: ids[role] for role, key in _ROLES.items() if ids.get(role) is not None}
    around = tokenizer.encode("")
    begins = tokenizer.bos is not None and around[:1] == [tokenizer.bos]
    found |= {"add_bos_token": begins, "add_eos_token": len(around) > begins}
    made = {_PREFIX + name: value for name, value in found.items()}
    for name, text in source.templates.items():
        made["tokenizer.chat_template" + ("" if name == "default" else f".{name}")] = text
    return made


def _kind(token: str, added: Mapping[str, Any] | None, is_unknown: bool) -> TokenKind:
    if added is not None:
        if is_unknown:
            return TokenKind.UNKNOWN
        return TokenKind.CONTROL if added.get("special") else TokenKind.USER
    if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
        return TokenKind.BYTE
    return TokenKind.NORMAL if token else TokenKind.UNUSED


def _kinds(spec: Mapping[str, Any], tokens: list[str]) -> Iterator[dict[str, Any]]:
    """What may tell the merges: scores of pieces, or pairs and one of the known rules."""
    merges = [
        tuple(each.split(" ", 1)) if isinstance(each, str) else tuple(each)
        for each in spec["model"].get("merges") or ()
    ]
    if spec["model"].get("byte_fallback"):
        for space in (True, False):
            yield {"model": "llama", "add_space_prefix": space, "scores": _scores(tokens, merges)}
    pairs = [" ".join(each) for each in merges]
    for name in _rules(repr(spec.get("pre_tokenizer"))):
        yield {"model": "gpt2", "pre": name, "merges": pairs}


def _scores(tokens: list[str], merges: list[tuple[str, ...]]) -> Any:
    """The score of a piece falls with the first merge that makes it; others have the lowest."""
    ranks: dict[str, int] = {}
    for rank, pair in enumerate(merges):
        ranks.setdefault("".join(pair), rank)
    return np.array([-ranks.get(token, len(merges)) for token in tokens], np.float32)


def _rules(told: str) -> list[str]:
    """A name of each rule, first of those with patterns that are told."""
    names: list[str] = []
    for name, rule in PRE_TOKENIZERS.items():
        if rule not in (PRE_TOKENIZERS[each] for each in names):
            names.append(name)

    def is_other(name: str) -> bool:
        return not all(repr(each)[1:-1] in told for each in PRE_TOKENIZERS[name].patterns)

    return sorted(names, key=is_other)


def _require_no_normalizer(source: Source) -> None:
    """Raises ModelError for changes of texts that a .gguf file does not tell."""
    normalizer = source.spec.get("normalizer") or {}
    steps = normalizer.get("normalizers", [normalizer])
    for step in steps:
        kind, pattern = step.get("type"), step.get("pattern", {}).get("String")
        is_space = kind == "Replace" and (pattern, step.get("content")) == (" ", WORD_START)
        if kind not in (None, "NFC", "Prepend") and not is_space:
            raise ModelError(
                f"{source.file}: a .gguf file does not tell the normalizer {step!r:.80}"
            )


def _gives_the_same(tokenizer: Tokenizer, made: Tokenizer, samples: Iterable[str]) -> bool:
    for text in samples:
        ids = tokenizer.encode(text)
        if ids != made.encode(text) or tokenizer.decode(ids) != made.decode(ids):
            return False
    return True
