"""Text as tokens: bytes, characters or BPE, in shards for kw.train.Shards."""

import json
import pathlib
import sysconfig
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import kernwright as kw

LEFT_OUT = {"site-packages", "dist-packages", "test", "tests"}  # folders


class Tokenizer(NamedTuple):
    vocab_size: int
    encode: Callable  # from a text to its tokens
    decode: Callable  # from tokens to a text


def tokenizer_of(folder):
    """The tokenizer of the data that prepare() wrote into a folder."""
    folder = pathlib.Path(folder)
    kind = json.loads((folder / "data.json").read_text())["kind"]
    if kind == "byte":
        return Tokenizer(
            256, lambda text: np.frombuffer(text.encode(), np.uint8),
            lambda tokens: bytes(tokens).decode(errors="replace"),
        )  # fmt: skip
    if kind == "char":
        characters = json.loads((folder / "characters.json").read_text())
        numbers = {character: number for number, character in enumerate(characters)}
        return Tokenizer(
            len(characters), lambda text: [numbers[character] for character in text],
            lambda tokens: "".join(characters[number] for number in tokens),
        )  # fmt: skip
    if kind == "gpt2":
        import tiktoken

        encoding = tiktoken.get_encoding("gpt2")
        return Tokenizer(encoding.n_vocab, encoding.encode_ordinary, encoding.decode)
    import tokenizers

    bpe = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    return Tokenizer(bpe.get_vocab_size(), lambda text: bpe.encode(text).ids, bpe.decode)


def train_bpe(text, vocab_size):
    """A byte-pair encoding over bytes, as GPT-2's, from a text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer, bpe.decoder = level, decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, initial_alphabet=sorted(level.alphabet()))
    bpe.train_from_iterator(text.splitlines(keepends=True), trainer)
    return bpe


def read_text(source, limit):
    """The first `limit` characters of a file, or of the .py, .txt and .md files in a folder;
    "stdlib" is the folder of Python's standard library."""
    root = pathlib.Path(sysconfig.get_path("stdlib") if source == "stdlib" else source)
    paths = [root]
    if root.is_dir():
        found = sorted(path for path in root.rglob("*") if path.suffix in (".py", ".txt", ".md"))
        paths = [path for path in found if not LEFT_OUT & set(path.relative_to(root).parts)]
    pieces, size = [], 0
    for path in paths:
        if size < limit:
            pieces.append(path.read_text(encoding="utf-8", errors="replace"))
            size += len(pieces[-1])
    text = "".join(pieces)[:limit]
    if len(text) < 1000:
        raise ValueError(f"{root} has {len(text)} characters of text: too few to learn from")
    return text


def prepare(source, kind, folder, limit):
    """Writes train.bin, val.bin (a twentieth) and the tokenizer into a folder, unless they are
    there; returns the tokenizer. `kind` is byte, char, gpt2, or bpe:N for N tokens learned here."""
    folder = pathlib.Path(folder)
    wanted = {"source": str(source), "kind": kind, "limit": limit}
    notes = folder / "data.json"
    if (folder / "val.bin").exists():
        if (found := json.loads(notes.read_text())) != wanted:
            raise ValueError(f"{folder} has the data of {found}, not of {wanted}")
        return tokenizer_of(folder)
    text = read_text(source, limit)
    folder.mkdir(parents=True, exist_ok=True)
    if kind == "char":
        (folder / "characters.json").write_text(json.dumps(sorted(set(text))))
    elif kind.startswith("bpe:"):
        train_bpe(text, int(kind[4:])).save(str(folder / "tokenizer.json"))
    elif kind not in ("byte", "gpt2"):
        raise ValueError(f"a tokenizer is byte, char, gpt2 or bpe:N, not {kind!r}")
    notes.write_text(json.dumps(wanted))
    tokenizer = tokenizer_of(folder)
    tokens = tokenizer.encode(text)
    cut = len(tokens) - len(tokens) // 20
    kw.train.write_shard(folder / "train.bin", tokens[:cut])
    kw.train.write_shard(folder / "val.bin", tokens[cut:])
    return tokenizer
