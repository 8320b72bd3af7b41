"""llm.Tokenizer from GGUF, SentencePiece, tiktoken and tekken files, beside plain algorithms."""

import base64
import itertools
import json
import re

import pytest
import tiny_tokenizers as tiny

import kernwright as kw
from kernwright import llm

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def scored_ids(text, pieces):
    """SentencePiece's own rule: the neighbours of the highest score are joined, the left first."""
    ids = {piece: id for id, (piece, _, _) in enumerate(pieces)}
    scores = {piece: score for piece, score, kind in pieces if kind == 1}
    symbols = list(text.replace(" ", "\u2581"))
    while True:
        pairs = [
            (scores[a + b], -i)
            for i, (a, b) in enumerate(itertools.pairwise(symbols))
            if a + b in scores
        ]
        if not pairs:
            break
        at = -max(pairs)[1]
        symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
    found = []
    for each in symbols:
        known = [ids[each]] if each in scores else [ids[f"<0x{b:02X}>"] for b in each.encode()]
        found += known
    return found


def ranked_ids(text, ranks, pattern):
    """tiktoken's rule: within each piece, the neighbours of the lowest rank are joined."""
    found = []
    for piece in re.findall(pattern, text):
        parts = [bytes([byte]) for byte in piece.encode()]
        while len(parts) > 1 and piece.encode() not in ranks:
            joined = [ranks.get(a + b, 1 << 30) for a, b in itertools.pairwise(parts)]
            if min(joined) == 1 << 30:
                break
            at = joined.index(min(joined))
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        found += [ranks[piece.encode()]] if piece.encode() in ranks else [ranks[p] for p in parts]
    return found


@pytest.fixture(scope="module")
def pieces():
    return tiny.scored_pieces()


@pytest.fixture(scope="module")
def pairs():
    return tiny.byte_level()


def test_byte_pairs_of_gguf_are_those_of_the_library(pairs, tmp_path):
    path = tiny.write_gguf(tmp_path / "pairs.gguf", tiny.gguf_of_pairs(pairs))
    tokenizer = llm.Tokenizer(path)
    assert len(tokenizer) == pairs.get_vocab_size() and tokenizer.bos == 0
    with kw.Gguf(path) as opened:
        of_opened = llm.Tokenizer(opened)
    for text in tiny.TEXTS:
        expected = pairs.encode(text, add_special_tokens=False).ids
        assert tokenizer.encode(text, add_special_tokens=False) == expected, text
        assert of_opened.encode(text) == expected, text  # gpt-2 adds no BOS
        assert tokenizer.decode(expected) == text.replace("<unk>", "")


PATTERNS = {
    "llama-bpe": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "qwen2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}


@pytest.mark.parametrize("name", PATTERNS)
def test_rules_of_gguf_are_those_of_models(name, tmp_path):
    """The pattern written out as in the tokenizer.json of such models."""
    made = tiny.byte_level(pattern=PATTERNS[name])
    metadata = tiny.gguf_of_pairs(made) | {"tokenizer.ggml.pre": name}
    tokenizer = llm.Tokenizer(tiny.write_gguf(tmp_path / "m.gguf", metadata))
    for text in tiny.TEXTS:
        expected = made.encode(text, add_special_tokens=False).ids
        assert tokenizer.encode(text, add_special_tokens=False) == expected, text
    assert tokenizer.encode("a")[:1] == ([0] if name == "llama-bpe" else tokenizer.encode("a"))


def test_every_rule_cuts_every_text_into_all_of_it(pairs, tmp_path):
    from kernwright.llm._text.patterns import PRE_TOKENIZERS

    path = tiny.write_gguf(tmp_path / "pairs.gguf", tiny.gguf_of_pairs(pairs))
    assert len(PRE_TOKENIZERS) > 70
    for name, rules in PRE_TOKENIZERS.items():
        if not rules.byte_level:
            continue
        tokenizer = llm.Tokenizer(path, pre=name)
        for text in tiny.TEXTS:
            ids = tokenizer.encode(text, parse_special=False)
            assert tokenizer.decode(ids) == text, (name, text)


def test_an_unknown_rule_warns_and_is_named(pairs, tmp_path):
    for metadata, said in (
        (tiny.gguf_of_pairs(pairs) | {"tokenizer.ggml.pre": "my-own"}, "'my-own'"),
        ({k: v for k, v in tiny.gguf_of_pairs(pairs).items() if not k.endswith("pre")}, "missing"),
    ):
        path = tiny.write_gguf(tmp_path / "m.gguf", metadata)
        with pytest.warns(RuntimeWarning, match=f"tokenizer.ggml.pre .*{said}") as warned:
            tokenizer = llm.Tokenizer(path)
        assert warned[0].filename == __file__
        assert tokenizer.decode(tokenizer.encode("It's 1234")) == "It's 1234"
        llm.Tokenizer(path, pre="gpt-2")  # without a warning


@pytest.mark.parametrize("source", ["gguf", "model"])
def test_pieces_with_scores_follow_the_rule_of_sentencepiece(source, pieces, tmp_path):
    if source == "gguf":
        path = tiny.write_gguf(tmp_path / "m.gguf", tiny.gguf_of_pieces(pieces))
    else:
        path = tiny.write_sentencepiece(tmp_path / "tokenizer.model", pieces)
    tokenizer = llm.Tokenizer(path)
    assert (tokenizer.bos, tokenizer.eos, len(tokenizer)) == (1, (2,), len(pieces))
    for text in tiny.TEXTS:
        if "<unk>" in text:
            continue
        expected = scored_ids(f" {text}", pieces) if text else []
        assert tokenizer.encode(text) == [1, *expected], text
        assert tokenizer.decode([1, *expected]) == text  # without the leading space


def test_tokens_added_to_pieces(pieces, tmp_path):
    """The file of older models beside tokenizer.model."""
    tiny.write_sentencepiece(tmp_path / "tokenizer.model", pieces)
    added = {"<|im_end|>": len(pieces) + 1, "<|im_start|>": len(pieces)}
    (tmp_path / "added_tokens.json").write_text(json.dumps(added))
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": "<|im_end|>"}')
    tokenizer = llm.Tokenizer(tmp_path)
    assert tokenizer.eos == (len(pieces) + 1,) and len(tokenizer) == len(pieces) + 2
    ids = tokenizer.encode("a<|im_end|>")
    assert ids[-1] == len(pieces) + 1 and tokenizer.decode(ids) == "a"
    assert tokenizer.decode(tokenizer.encode("<|im_start|>a")) == "<|im_start|> a"
    (tmp_path / "added_tokens.json").write_text('{"<a>": "x"}')
    with pytest.raises(llm.ModelError, match=r"added_tokens\.json: <a> must be a whole number"):
        llm.Tokenizer(tmp_path)


def test_a_leading_space_only_where_the_file_wants_it(pieces, tmp_path):
    made = tiny.gguf_of_pieces(pieces, **{"ggml.add_space_prefix": False})
    bare = llm.Tokenizer(tiny.write_gguf(tmp_path / "m.gguf", made))
    path = tiny.write_sentencepiece(tmp_path / "m.model", pieces, add_dummy_prefix=False)
    for tokenizer in (bare, llm.Tokenizer(path)):
        for text in ("the sun", " the sun"):
            ids = tokenizer.encode(text, add_special_tokens=False)
            assert ids == scored_ids(text, pieces)
            assert tokenizer.decode(ids) == text


def test_kinds_of_tokens(pieces, tmp_path):
    """Control tokens are special; tokens of the user are found first and are shown."""
    extra = [("<|call|>", 0.0, 3), ("<tool>", 0.0, 4), ("unused", 0.0, 5)]
    made = tiny.gguf_of_pieces(pieces + extra, **{"ggml.eot_token_id": len(pieces)})
    tokenizer = llm.Tokenizer(tiny.write_gguf(tmp_path / "m.gguf", made))
    call, tool = len(pieces), len(pieces) + 1
    assert tokenizer.eos == (2, call) and tokenizer.special_tokens["<|call|>"] == call
    ids = tokenizer.encode("a<tool>b<|call|>")
    assert tool in ids and call in ids
    assert tokenizer.decode(ids) == "a<tool> b"  # a space after each token, as llama.cpp has it
    plain = tokenizer.encode("a<tool>b<|call|>", parse_special=False)
    assert tool in plain and call not in plain


def test_unigrams_take_the_most_likely_pieces(tmp_path):
    pieces = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3)]
    pieces += [("\u2581ab", -1.0, 1), ("\u2581a", -2.0, 1), ("b", -3.0, 1), ("\u2581", -4.0, 1)]
    pieces += [("bc", -2.5, 1), ("c", -5.0, 1), ("a", -5.5, 1)]
    path = tiny.write_sentencepiece(tmp_path / "spiece.model", pieces, kind=1)
    ids = {piece: id for id, (piece, _, _) in enumerate(pieces)}
    tokenizer = llm.Tokenizer(path)
    # ab + c costs 6, a + bc 4.5.
    best = [ids["\u2581a"], ids["bc"]]
    assert tokenizer.encode("abc") == [*best, 2]
    assert tokenizer.encode("ab   abc ") == [ids["\u2581ab"], *best, 2]
    assert tokenizer.decode(tokenizer.encode("ab abc")) == "ab abc"
    metadata = tiny.gguf_of_pieces(pieces) | {
        "tokenizer.ggml.model": "t5",
        "tokenizer.ggml.remove_extra_whitespaces": True,
    }
    of_gguf = llm.Tokenizer(tiny.write_gguf(tmp_path / "m.gguf", metadata))
    assert of_gguf.encode("ab   abc ") == tokenizer.encode("ab   abc ")


def test_words_in_pieces(tmp_path):
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "\u2581play", "ing", "ed", "\u2581the", "\u2581."]
    metadata = {
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3, 3, 3, 3, 1, 1, 1, 1, 1],
        "tokenizer.ggml.unknown_token_id": 1,
        "tokenizer.ggml.cls_token_id": 2,
        "tokenizer.ggml.seperator_token_id": 3,
    }
    tokenizer = llm.Tokenizer(tiny.write_gguf(tmp_path / "m.gguf", metadata))
    assert tokenizer.encode("The playing played.") == [2, 7, 4, 5, 4, 6, 8, 3]
    assert tokenizer.encode("nothing") == [2, 1, 3]
    assert tokenizer.decode([2, 7, 4, 5, 4, 6, 8, 3]) == "the playing played."


def ranked(pairs):
    """Ranks of bytes, from the vocabulary of the library without its special tokens."""
    from kernwright.llm._text.pieces import PRINTABLE

    vocab = pairs.get_vocab()
    tokens = sorted((t for t in vocab if t not in tiny.SPECIAL), key=vocab.get)
    return {bytes(PRINTABLE[each] for each in token): rank for rank, token in enumerate(tokens)}


def test_tiktoken(pairs, tmp_path):
    ranks = ranked(pairs)
    path = tiny.write_tiktoken(tmp_path / "own.tiktoken", ranks)
    special = {"<|endoftext|>": len(ranks), "<|im_end|>": len(ranks) + 1}
    tokenizer = llm.Tokenizer(path, pre="r50k", special_tokens=special)
    assert tokenizer.eos == tuple(special.values()) and len(tokenizer) == len(ranks) + 2
    # Of ASCII alone: re has no \p{L}.
    pattern = r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+"
    for text in tiny.TEXTS:
        if text.isascii():
            assert tokenizer.encode(text) == ranked_ids(text, ranks, pattern), text
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.encode("a<|im_end|>")[-1] == len(ranks) + 1
    with pytest.warns(RuntimeWarning, match="own.tiktoken has .* unknown here"):
        llm.Tokenizer(path)
    with pytest.raises(kw.InvalidArgument, match="are taken"):
        llm.Tokenizer(path, pre="r50k", special_tokens={"<s>": 5})


def test_tekken(pairs, tmp_path):
    ranks = ranked(pairs)
    vocab = [
        {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
        for token, rank in ranks.items()
    ]
    content = {
        "config": {
            "pattern": GPT2,
            "default_num_special_tokens": 10,
            "default_vocab_size": len(ranks) + 10 - 3,  # the last three are not used
        },
        "vocab": vocab,
        "special_tokens": [
            {"rank": i, "token_str": token, "is_control": True}
            for i, token in enumerate(["<unk>", "<s>", "</s>", "[INST]"])
        ],
    }
    path = tmp_path / "tekken.json"
    path.write_text(json.dumps(content))
    kept = {token: rank for token, rank in ranks.items() if rank < len(ranks) - 3}
    plain = llm.Tokenizer(
        tiny.write_tiktoken(tmp_path / "own.tiktoken", kept), pre="r50k", special_tokens={}
    )
    tokenizer = llm.Tokenizer(tmp_path)  # tekken.json comes before *.tiktoken
    assert (tokenizer.bos, tokenizer.eos, len(tokenizer)) == (1, (2,), len(ranks) + 7)
    for text in tiny.TEXTS:
        text = text.replace("<unk>", "").replace("[INST]", "")
        assert tokenizer.encode(text) == [1] + [id + 10 for id in plain.encode(text)]
    assert tokenizer.encode("[INST]") == [1, 3]
