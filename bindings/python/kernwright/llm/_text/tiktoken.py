"""Vocabularies of tiktoken (lines of base64 and rank) and tekken.json."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from typing import Any

from kernwright._support.warn import warn_caller
from kernwright.errors import InvalidArgument
from kernwright.llm._errors import ModelError
from kernwright.llm._fields import Fields
from kernwright.llm._text.patterns import PRE_TOKENIZERS
from kernwright.llm._text.pieces import PRINTABLE
from kernwright.llm._text.source import (
    Source,
    added_token,
    bpe_model,
    byte_level_spec,
    merges_of,
)

_CHARACTERS = {byte: character for character, byte in PRINTABLE.items()}


def _numbered(first: int, *names: str) -> dict[str, int]:
    return {name: first + i for i, name in enumerate(names)}


# Numbers of tokens of well-known files: the name of their rules, and their special tokens.
_KNOWN = {
    50256: ("r50k", {"<|endoftext|>": 50256}),
    50257: ("r50k", {}),
    100256: (
        "cl100k",
        {
            **_numbered(
                100257, "<|endoftext|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"
            ),
            "<|endofprompt|>": 100276,
        },
    ),
    151643: ("qwen", _numbered(151643, "<|endoftext|>", "<|im_start|>", "<|im_end|>")),
    199998: ("o200k", {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}),
    128000: (
        "llama3",
        {
            **_numbered(128000, "<|begin_of_text|>", "<|end_of_text|>"),
            **_numbered(128006, "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>"),
            **_numbered(128009, "<|eot_id|>", "<|python_tag|>"),
        },
    ),
}
_ENDS = ("<|endoftext|>", "<|im_end|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>")


def is_tiktoken(content: bytes) -> bool:
    """Whether a file begins with a line of base64 and a rank."""
    parts = content[:4096].split(b"\n", 1)[0].split()
    return len(parts) == 2 and parts[1].isdigit() and _decoded(parts[0]) is not None


def _decoded(text: bytes | str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def read_tiktoken(
    file: str, content: bytes, pre: str | None, special: Mapping[str, int] | None
) -> Source:
    """A vocabulary of tiktoken. It has no rules of its own: `pre` names them."""
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        parts = line.split()
        token = _decoded(parts[0]) if len(parts) == 2 and parts[1].isdigit() else None
        if token is None or len(parts[1]) > 8:
            raise ModelError(f"{file}: line {number} is no base64 with a rank: {line!r:.60}")
        if not token or token in ranks:
            raise ModelError(f"{file}: line {number} has {token!r:.60}, empty or for a second time")
        ranks[token] = int(parts[1])
    known_pre, known_special = _KNOWN.get(len(ranks), (None, {}))
    name = pre or known_pre
    if name is None:
        warn_caller(
            f"{os.path.basename(file)} has {len(ranks)} tokens and is unknown here; the rules of "
            "cl100k are used, and token ids may differ. Pass pre= with one of "
            + ", ".join(sorted(PRE_TOKENIZERS))
        )
        name = "cl100k"
    tokens = dict(known_special if special is None else special)
    for text, id in tokens.items():
        if not isinstance(text, str) or type(id) is not int or id < 0:
            raise InvalidArgument(f"special_tokens are ids by text, got {text!r:.40}: {id!r:.40}")
    taken = set(ranks.values()).intersection(tokens.values())
    if taken:
        raise InvalidArgument(f"{file}: the ids {sorted(taken)[:8]} of special tokens are taken")
    rules = PRE_TOKENIZERS[name]
    begin = "<|begin_of_text|>" in tokens
    roles = {"bos_token": "<|begin_of_text|>"} if begin else {}
    return Source(
        file=file,
        spec=_spec(file, ranks, rules.patterns, tokens),
        named=roles,
        eos=[tokens[name] for name in _ENDS if name in tokens],
        add_bos=begin,
    )


def read_tekken(file: str, values: Any) -> Source:
    """Mistral's tekken.json: special tokens have the first ids."""
    fields = Fields(file, values)
    config = fields.object("config")
    first = config.need("default_num_special_tokens", int)
    size = config.need("default_vocab_size", int)
    special = {}
    for i, each in enumerate(fields.get("special_tokens", list, [])):
        entry = Fields(file, each, f"special_tokens[{i}]")
        special[entry.need("token_str", str)] = entry.need("rank", int)
    if not special:
        special = {"<unk>": 0, "<s>": 1, "</s>": 2}
    ranks: dict[bytes, int] = {}
    for i, each in enumerate(fields.need("vocab", list)[: max(size - first, 0)]):
        entry = Fields(file, each, f"vocab[{i}]")
        token = _decoded(entry.need("token_bytes", str))
        if not token:
            raise entry.wrong("token_bytes", "is no base64")
        ranks[token] = entry.need("rank", int) + first
    pattern = config.need("pattern", str)
    roles = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
    return Source(
        file=file,
        spec=_spec(file, ranks, (pattern,), special),
        named={role: token for role, token in roles.items() if token in special},
        add_bos="<s>" in special,
    )


def _spec(
    file: str, ranks: dict[bytes, int], patterns: tuple[str, ...], special: dict[str, int]
) -> dict[str, Any]:
    missing = [byte for byte in range(256) if bytes([byte]) not in ranks]
    if missing:
        raise ModelError(f"{file} has no tokens for the bytes {missing[:8]}")
    written = {token: "".join([_CHARACTERS[byte] for byte in token]) for token in ranks}
    vocab = {written[token]: id for token, id in ranks.items()}
    merges = [(written[left], written[right]) for left, right in merges_of(ranks)]
    # The library takes the ids of special tokens from the vocabulary.
    vocab.update(special)
    added = [
        added_token(id, token, special=True)
        for token, id in sorted(special.items(), key=lambda item: item[1])
    ]
    return byte_level_spec(bpe_model(vocab, merges, ignore_merges=True), patterns, added)
