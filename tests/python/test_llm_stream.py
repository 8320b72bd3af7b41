"""llm.TextStream, llm.StopStrings and llm.StopCheck: text in pieces is the text of the whole."""

import pytest
import tiny_tokenizers as tiny
from hypothesis import given, settings
from hypothesis import strategies as st

import kernwright as kw
from kernwright import llm


def made_tokenizers(folder):
    pairs, pieces = tiny.byte_level(), tiny.scored_pieces()
    unigrams = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3)]
    unigrams += [(piece, -float(i), 1) for i, (piece, _, kind) in enumerate(pieces) if kind == 1]
    words = [
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "\u2581a",
        "\u2581.",
        "\u2581n't",
        "s",
        "'",
        "\u2581'",
        "\u2581'm",
    ]
    bert = {
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.tokens": words,
        "tokenizer.ggml.token_type": [3, 3, 3, *[1] * 7],
    }
    cleaned = {"clean_up_tokenization_spaces": True}
    from test_llm_tokenizer import words as parts

    return {
        "pairs": llm.Tokenizer(tiny.folder_of(folder / "pairs", pairs)),
        "pieces": llm.Tokenizer(tiny.write_gguf(folder / "p.gguf", tiny.gguf_of_pieces(pieces))),
        "unigrams": llm.Tokenizer(tiny.write_sentencepiece(folder / "u.model", unigrams, kind=1)),
        "words": llm.Tokenizer(tiny.write_gguf(folder / "w.gguf", bert)),
        "cleaned": llm.Tokenizer(tiny.folder_of(folder / "c", parts(), tokenizer_config=cleaned)),
    }


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    return made_tokenizers(tmp_path_factory.mktemp("tokenizers"))


NAMES = ("pairs", "pieces", "unigrams", "words", "cleaned")
LISTS = st.lists(st.integers(0, 1 << 20), max_size=24)


@pytest.mark.parametrize("name", NAMES)
@given(LISTS, st.integers(0, 24), st.booleans())
@settings(max_examples=150, deadline=None)
def test_pieces_joined_are_the_whole_text(tokenizers, name, ids, cut, skip):
    """From any random ids, after any prompt: also where it ends within a character."""
    tokenizer = tokenizers[name]
    ids = [id % len(tokenizer) for id in ids]
    whole = tokenizer.decode(ids, skip_special_tokens=skip)
    stream = tokenizer.stream(skip_special_tokens=skip)
    parts = [stream.push(id) for id in ids]
    assert "".join(parts) + stream.finish() == whole
    # What a prompt has shown when it ends, and what comes after it.
    shown = "".join(parts[:cut])
    later = tokenizer.stream(ids[:cut], skip_special_tokens=skip)
    assert shown + "".join(map(later.push, ids[cut:])) + later.finish() == whole


@pytest.mark.parametrize("name", ["pairs", "unigrams", "words", "cleaned"])
@given(LISTS, st.booleans())
@settings(max_examples=100, deadline=None)
def test_the_whole_text_is_that_of_the_library(tokenizers, name, ids, skip):
    tokenizer = tokenizers[name]
    ids = [id % len(tokenizer) for id in ids]
    expected = tokenizer._made.decode(ids, skip_special_tokens=skip)
    if name != "cleaned":  # which transformers does, not the library
        assert tokenizer.decode(ids, skip_special_tokens=skip) == expected


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
@settings(max_examples=200, deadline=None)
def test_any_text_comes_back(tokenizers, text):
    for name in ("pairs", "pieces"):
        tokenizer = tokenizers[name]
        ids = tokenizer.encode(text, parse_special=False)
        stream = tokenizer.stream()
        assert "".join(map(stream.push, ids)) + stream.finish() == text


def test_only_an_unfinished_character_is_held_back(tokenizers):
    for name in ("pairs", "pieces"):
        tokenizer = tokenizers[name]
        data = "\U0001f600".encode()
        byte = [tokenizer.id(f"<0x{b:02X}>") for b in range(256)]
        if name == "pairs":
            from kernwright.llm._text.pieces import PRINTABLE

            byte = [tokenizer.id(each) for each, _ in sorted(PRINTABLE.items(), key=lambda p: p[1])]
        letter = tokenizer.id("a")
        stream = tokenizer.stream([letter])
        assert [stream.push(byte[b]) for b in data] == ["", "", "", "\U0001f600"]
        assert stream.push(letter) == "a"
        # Broken by a letter, and at the end.
        assert [stream.push(byte[0xE2]), stream.push(letter)] == ["", "\ufffda"]
        assert [stream.push(byte[0xE2]), stream.push(byte[0x82]), stream.finish()] == [
            *("", "", "\ufffd"),
        ]
        real = [byte[b] for b in "\ufffd".encode()]
        stream = tokenizer.stream()
        assert [stream.push(id) for id in (letter, *real, letter)] == ["a", "", "", "\ufffd", "a"]
        # A prompt that ends within a character: the stream has the character.
        stream = tokenizer.stream([letter, *[byte[b] for b in data[:3]]])
        assert stream.push(byte[data[3]]) == "\U0001f600"


def test_the_space_at_the_beginning(tokenizers):
    """It is dropped where a text begins, and kept after a prompt."""
    tokenizer = tokenizers["pieces"]
    ids = tokenizer.encode("in in", add_special_tokens=False)
    stream = tokenizer.stream()
    assert "".join(map(stream.push, ids)) == "in in"
    stream = tokenizer.stream(ids)
    assert "".join(map(stream.push, ids)) == " in in"
    stream = tokenizer.stream([tokenizer.bos])
    assert "".join(map(stream.push, ids)) == "in in"


def test_ids_outside_of_the_vocabulary(tokenizers):
    stream = tokenizers["pairs"].stream()
    for id in (-1, 400):
        with pytest.raises(kw.InvalidArgument, match=f"{id} is outside of the vocabulary"):
            stream.push(id)


# ---- stop strings


def stopped(text, stops):
    """The text before the stop string that is complete first, and that string: a plain loop."""
    for end in range(len(text) + 1):
        ending = [each for each in stops if text[:end].endswith(each)]
        if ending:
            longest = max(ending, key=len)
            return text[: end - len(longest)], longest
    return text, None


PARTS = st.lists(st.text("ab", max_size=4), max_size=12)


@given(PARTS, st.lists(st.text("ab", min_size=1, max_size=5), max_size=4))
@settings(max_examples=500, deadline=None)
def test_stop_strings_across_pieces(parts, stops):
    check = llm.StopStrings(stops)
    shown = ""
    for i, part in enumerate(parts):
        shown += check.push(part)
        text = "".join(parts[: i + 1])
        if check.matched is None:  # all is shown but the longest that may begin a stop string
            held = next(
                text[i:] for i in range(len(text) + 1)
                if any(s != text[i:] and s.startswith(text[i:]) for s in [*stops, "x"])
            )  # fmt: skip
            assert shown + held == text
    if check.matched is None:
        shown += check.finish()
    assert (shown, check.matched) == stopped("".join(parts), stops)
    including = llm.StopStrings(stops, include=True)
    whole = "".join([*(including.push(part) for part in parts), including.finish()])
    assert (whole, including.matched) == (shown + (check.matched or ""), check.matched)


@pytest.mark.parametrize(
    ("stop", "said"),
    [("", "is empty"), (["a", ""], "is empty"), (["a"] * 17, "17 stop strings; at most 16"),
     ("a" * 1025, "1025 characters")],
)  # fmt: skip
def test_wrong_stop_strings(stop, said):
    with pytest.raises(kw.InvalidArgument, match=said):
        llm.StopStrings(stop)
    with pytest.raises(kw.ArgumentError, match="stop strings are str"):
        llm.StopStrings([3])


# ---- the end of a text


def ended(tokenizer, text, **options):
    """What is shown of a text, its reason, and how many tokens were taken."""
    check = llm.StopCheck(tokenizer.stream(), **options)
    shown = ""
    for id in text if isinstance(text, list) else tokenizer.encode(text):
        shown += check.push(id)
        if check.reason is not None:
            break
    return shown, check.reason, check.matched, check.tokens


def test_stop_within_a_token(tokenizers):
    tokenizer = tokenizers["pairs"]
    assert len(tokenizer.encode("return")) < 6  # the stop string ends within a token
    assert ended(tokenizer, "return it", stop="et")[:3] == ("r", "stop", "et")
    assert ended(tokenizer, "return", stop=["xyz", "nx"])[:2] == ("return"[:-1], None)
    check = llm.StopCheck(tokenizer.stream(), stop="nx", max_tokens=len(tokenizer.encode("return")))
    assert "".join(map(check.push, tokenizer.encode("return"))) == "return"
    assert check.reason == "length"  # what was held back is shown


def test_eos_min_tokens_and_ignore_eos(tokenizers):
    tokenizer = tokenizers["pairs"]
    a = tokenizer.id("a")
    ids = [a, 1, a, 1, a]
    assert ended(tokenizer, ids, eos=[1, 2]) == ("a", "stop", 1, 2)
    assert ended(tokenizer, ids, eos=[1], min_tokens=2) == ("aa", "stop", 1, 4)
    assert ended(tokenizer, ids, eos=[1], ignore_eos=True) == ("aaa", None, None, 5)
    assert ended(tokenizer, ids, eos=[1], ignore_eos=True, max_tokens=4)[:2] == ("aa", "length")
    assert ended(tokenizer, ids, eos=[2], stop_tokens=[1], ignore_eos=True)[1:3] == ("stop", 1)
    assert ended(tokenizer, [a] * 5, stop="aa", min_tokens=3) == ("aa", "stop", "aa", 4)
    assert ended(tokenizer, [a] * 3, stop="aa", max_tokens=2)[:2] == ("", "stop")
    check = llm.StopCheck(None, eos=[5, 1], min_tokens=1)
    assert check.suppressed == [1, 5]
    assert check.push(1) == "" and check.reason is None and check.suppressed == []
    assert check.push(5) == "" and (check.reason, check.matched) == ("stop", 5)
    with pytest.raises(kw.InvalidArgument, match="has ended already"):
        check.push(5)


def test_a_character_cut_by_the_end(tokenizers):
    tokenizer = tokenizers["pieces"]
    byte = tokenizer.id("<0xE2>")
    assert ended(tokenizer, [tokenizer.id("a"), byte, 2], eos=[2])[:2] == ("a\ufffd", "stop")


def test_wrong_limits(tokenizers):
    for options in ({"min_tokens": -1}, {"max_tokens": 0}, {"min_tokens": 5, "max_tokens": 4}):
        with pytest.raises(kw.InvalidArgument, match="max_tokens"):
            llm.StopCheck(None, **options)
    with pytest.raises(kw.InvalidArgument, match="need a tokenizer"):
        llm.StopCheck(None, stop="a")
