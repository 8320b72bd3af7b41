"""The parts of a tokenizer, the same for files of all formats."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

WORD_START = "\u2581"  # SentencePiece's mark for a space


@dataclass
class Source:
    """A tokenizer in the form of tokenizer.json, and the fields of other files."""

    file: str
    spec: dict[str, Any]
    """The tokenizer in the format of tokenizer.json."""
    text: str | None = None
    """The same as text, where a file has it and nothing was added."""
    named: dict[str, str] = field(default_factory=dict)
    """Special tokens by their roles: bos_token, eos_token, ..."""
    eos: list[int] = field(default_factory=list)
    """Further ids at the end of a text."""
    add_bos: bool | None = None
    """None: the post-processor of `spec` decides."""
    add_eos: bool | None = None
    templates: dict[str, str] = field(default_factory=dict)
    """Chat templates by name; the usual one is "default"."""
    clean_up: bool = False


def added_token(
    id: int, content: str, *, special: bool, lstrip: bool = False, rstrip: bool = False
) -> dict[str, Any]:
    """An entry of `added_tokens`: it is found in a text before all else."""
    return {
        "id": id,
        "content": content,
        "single_word": False,
        "lstrip": lstrip,
        "rstrip": rstrip,
        "normalized": False,
        "special": special,
    }


def post_processor(begin: Sequence[tuple[str, int]], end: Sequence[tuple[str, int]]) -> Any:
    """Puts tokens (content, id) before and after a text."""
    from tokenizers import processors

    marks = [[{"SpecialToken": {"id": t, "type_id": 0}} for t, _ in part] for part in (begin, end)]
    first, second = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    made = processors.TemplateProcessing()
    state = {
        "type": "TemplateProcessing",
        "single": [*marks[0], first, *marks[1]],
        "pair": [*marks[0], first, second, *marks[1]],
        "special_tokens": {t: {"id": t, "ids": [id], "tokens": [t]} for t, id in [*begin, *end]},
    }
    # The constructor cannot take tokens that have a colon.
    made.__setstate__(json.dumps(state).encode())
    return made


def bpe_model(
    vocab: Mapping[str, int],
    merges: list[tuple[str, str]],
    *,
    unknown: str | None = None,
    byte_fallback: bool = False,
    ignore_merges: bool = False,
) -> dict[str, Any]:
    """The `model` of a tokenizer of byte pairs."""
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": unknown,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": unknown is not None,
        "byte_fallback": byte_fallback,
        "ignore_merges": ignore_merges,
        "vocab": dict(vocab),
        "merges": merges,
    }


def byte_level_spec(
    model: dict[str, Any], patterns: Iterable[str], added: list[dict[str, Any]]
) -> dict[str, Any]:
    """Byte pairs over bytes written as printable characters, within the pieces of patterns."""
    cuts = [
        {"type": "Split", "pattern": {"Regex": each}, "behavior": "Isolated", "invert": False}
        for each in patterns
    ]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    steps = [*cuts, {**level, "use_regex": False}]
    return {
        "version": "1.0",
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
        "post_processor": None,
        "decoder": {**level, "use_regex": True},
        "model": model,
    }


def merges_of(ranks: Mapping[Any, float]) -> list[tuple[Any, Any]]:
    """The pairs that make each piece, pieces of lower rank first.

    Pieces are texts or bytes. A vocabulary with ranks (or scores, negated) and without merges is
    tokenised the same with these.
    """
    found = []
    for piece, rank in ranks.items():
        pairs = []
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            if left in ranks and right in ranks:
                pairs.append((ranks[left], ranks[right], left, right))
        pairs.sort(key=lambda pair: pair[:2])
        found += [(rank, pair[2], pair[3]) for pair in pairs]
    found.sort(key=lambda merge: merge[0])
    return [(left, right) for _, left, right in found]
