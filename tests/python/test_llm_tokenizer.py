"""llm.Tokenizer from a model's folder: what the files beside tokenizer.json add."""

import doctest
import inspect
import json

import pytest
import tiny_tokenizers as tiny

import kernwright as kw
from kernwright import llm


@pytest.fixture(scope="module")
def pairs():
    return tiny.byte_level()


def with_bos(made):
    from tokenizers import Tokenizer, processors

    made = Tokenizer.from_str(made.to_str())
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 0)]
    )
    return made


def test_texts_and_ids(pairs, tmp_path):
    tokenizer = llm.Tokenizer(tiny.folder_of(tmp_path / "model", pairs))
    assert len(tokenizer) == 400 and "400 tokens" in repr(tokenizer)
    for text in tiny.TEXTS:
        assert tokenizer.encode(text) == pairs.encode(text).ids
        assert tokenizer.decode(tokenizer.encode(text), skip_special_tokens=False) == text
    of_file = llm.Tokenizer(tmp_path / "model" / "tokenizer.json")
    assert of_file.encode("def add") == tokenizer.encode("def add")
    assert tokenizer.special_tokens == {"<s>": 0, "</s>": 1, "<unk>": 2}
    assert tokenizer.bos is None and tokenizer.eos == () and tokenizer.chat_template is None
    assert tokenizer.token(0) == "<s>" and tokenizer.id("<s>") == 0
    assert tokenizer.id("no such token") is None
    space = tokenizer.id("\u0120")
    assert tokenizer.bytes(space) == b" " and tokenizer.token(space) == "\u0120"


def test_one_bos(pairs, tmp_path):
    """Whether the post-processor adds it, or the config, or the text has it."""
    config = {"bos_token": "<s>", "eos_token": {"content": "</s>", "special": True}}
    bare = pairs.encode("Hi", add_special_tokens=False).ids
    for made, more, begin, end in (
        (with_bos(pairs), {}, [0], []),
        (pairs, {"add_bos_token": True}, [0], []),
        (pairs, {"add_bos_token": True, "add_eos_token": True}, [0], [1]),
        (with_bos(pairs), {"add_bos_token": False}, [], []),
        (pairs, {}, [], []),
    ):
        folder = tiny.folder_of(tmp_path / "m", made, tokenizer_config=config | more)
        tokenizer = llm.Tokenizer(folder)
        assert tokenizer.encode("Hi") == begin + bare + end
        assert tokenizer.encode("Hi", add_special_tokens=False) == bare
        assert tokenizer.encode("<s>Hi") == [0, *bare, *end]
        assert tokenizer.encode("<s><s>Hi") == ([0] if begin else [0, 0]) + bare + end
        assert tokenizer.encode("") == begin + end
        assert (tokenizer.bos, tokenizer.eos) == (0, (1,))


def test_names_of_special_tokens(pairs, tmp_path):
    """Any characters may be in them; ids without a token have none."""
    from tokenizers import AddedToken, Tokenizer

    made = Tokenizer.from_str(pairs.to_str())
    made.add_special_tokens([AddedToken("<a: $B 0>", normalized=False)])
    config = {"bos_token": "<a: $B 0>", "add_bos_token": True, "eos_token": "no token"}
    tokenizer = llm.Tokenizer(tiny.folder_of(tmp_path / "m", made, tokenizer_config=config))
    assert tokenizer.encode("a") == [400, tokenizer.id("a")] and tokenizer.eos == ()
    ranks = {bytes([byte]): byte for byte in range(256)}
    path = tiny.write_tiktoken(tmp_path / "gap.tiktoken", ranks)
    gap = llm.Tokenizer(path, pre="r50k", special_tokens={"<|endoftext|>": 300})
    assert (gap.bos, gap.pad, gap.eos, len(gap)) == (None, None, (300,), 301)
    assert gap.token(280) == "" and gap.decode([97, 280, 98]) == "ab"


def test_eos_is_the_union_of_all_files(pairs, tmp_path):
    folder = tiny.folder_of(
        tmp_path / "m",
        pairs,
        config={"eos_token_id": 5},
        generation_config={"eos_token_id": [6, 5, 7]},
        tokenizer_config={"eos_token": "</s>", "pad_token": "<unk>"},
        special_tokens_map={"bos_token": "<s>", "pad_token": "<s>"},
    )
    tokenizer = llm.Tokenizer(folder)
    assert tokenizer.eos == (1, 5, 6, 7)
    assert (tokenizer.bos, tokenizer.pad) == (0, 2)  # tokenizer_config comes last
    (folder / "config.json").write_text(json.dumps({"text_config": {"eos_token_id": [8]}}))
    assert llm.Tokenizer(folder).eos == (1, 8, 6, 5, 7)
    (folder / "config.json").write_text(json.dumps({"eos_token_id": [9, 400]}))
    with pytest.warns(RuntimeWarning, match=r"has 400 tokens, and eos_token_id has \[400\]"):
        llm.Tokenizer(folder)


def test_added_tokens_of_the_config(pairs, tmp_path):
    tokens = {
        "400": {"content": "<call>", "special": False},
        "401": {"content": "<|end|>", "special": True, "rstrip": True, "lstrip": False},
    }
    folder = tiny.folder_of(
        tmp_path / "m", pairs, tokenizer_config={"added_tokens_decoder": tokens}
    )
    tokenizer = llm.Tokenizer(folder)
    assert len(tokenizer) == 402
    ids = tokenizer.encode("a<call>b<|end|>  c")
    assert ids == [tokenizer.id("a"), 400, tokenizer.id("b"), 401, tokenizer.id("c")]
    assert tokenizer.decode(ids) == "a<call>bc"
    assert tokenizer.decode(ids, skip_special_tokens=False) == "a<call>b<|end|>c"
    tokens["403"] = {"content": "<gap>", "special": True}
    tiny.folder_of(tmp_path / "m", pairs, tokenizer_config={"added_tokens_decoder": tokens})
    with pytest.raises(llm.ModelError, match=r"'<gap>' has the id 403, and .* gives 402"):
        llm.Tokenizer(folder)


def test_special_tokens_of_users_are_plain_text_on_request(pairs, tmp_path):
    tokenizer = llm.Tokenizer(tiny.folder_of(tmp_path / "m", pairs))
    plain = tokenizer.encode("a</s>", parse_special=False)
    assert 1 not in plain and tokenizer.decode(plain) == "a</s>"
    assert tokenizer.encode("a</s>")[-1] == 1  # the other way still works


def words():
    """A tokenizer of words and their parts."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    vocab = ["[UNK]", "do", "n't", "it", "'", "s", "##s", ".", "we", "'re", "!", "is"]
    made = Tokenizer(models.WordPiece({w: i for i, w in enumerate(vocab)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.decoder = decoders.WordPiece(prefix="##", cleanup=False)
    return made


def test_spaces_are_cleaned_up_where_the_config_says_so(tmp_path):
    ids = [1, 2, 3, 4, 5, 7, 8, 9, 6, 10, 4, 4, 3, 4, 11, 7]
    raw = "do n't it ' s . we 'res ! ' ' it ' is ."
    for clean in (False, True):
        config = {"clean_up_tokenization_spaces": clean}
        tokenizer = llm.Tokenizer(tiny.folder_of(tmp_path / "m", words(), tokenizer_config=config))
        expected = raw
        for found, instead in (
            *((" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't")),
            *((" 'm", "'m"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re")),
        ):
            expected = expected.replace(found, instead) if clean else expected
        assert tokenizer.decode(ids) == expected
        stream = tokenizer.stream()
        assert "".join(map(stream.push, ids)) + stream.finish() == expected


def test_byte_pairs_are_never_cleaned_up(pairs, tmp_path):
    config = {"clean_up_tokenization_spaces": True}
    tokenizer = llm.Tokenizer(tiny.folder_of(tmp_path / "m", pairs, tokenizer_config=config))
    assert tokenizer.decode(tokenizer.encode("a , b . c 's")) == "a , b . c 's"


def test_a_prefix_that_merges_do_not_have_is_refused(pairs, tmp_path):
    """The library ends the process of such a file."""
    made = json.loads(pairs.to_str())
    assert made["model"]["merges"]
    for merges in (made["model"]["merges"], ["a x"], [["x", "\u00e9"]]):
        made["model"] |= {"continuing_subword_prefix": "##", "merges": merges}
        (tmp_path / "tokenizer.json").write_text(json.dumps(made))
        with pytest.raises(llm.ModelError, match=r"model.merges has .* does not begin with '##'"):
            llm.Tokenizer(tmp_path)


@pytest.mark.parametrize("tokens", [5, "x"])
def test_added_tokens_are_a_list(pairs, tokens, tmp_path):
    made = json.loads(pairs.to_str()) | {"added_tokens": tokens}
    (tmp_path / "tokenizer.json").write_text(json.dumps(made))
    (tmp_path / "added_tokens.json").write_text('{"new": 400}')
    with pytest.raises(llm.ModelError, match="added_tokens must be a list"):
        llm.Tokenizer(tmp_path)


def test_wrong_arguments(pairs, tmp_path):
    tokenizer = llm.Tokenizer(tiny.folder_of(tmp_path / "m", pairs))
    for call, error, said in (
        (lambda: tokenizer.encode(3), kw.ArgumentError, "a text is a str"),
        (lambda: tokenizer.encode("a\ud800b"), kw.InvalidArgument, "lone surrogate at 1"),
        (lambda: tokenizer.decode([400]), kw.InvalidArgument, "400 is outside of .* 400 tokens"),
        (lambda: tokenizer.decode([-1]), kw.InvalidArgument, "-1 is outside"),
        (lambda: tokenizer.bytes(-1), kw.InvalidArgument, "-1 is outside"),
        (lambda: tokenizer.token(400), kw.InvalidArgument, "400 is outside"),
        (lambda: llm.Tokenizer(3), kw.InvalidArgument, "a path or a kw.Gguf"),
        (lambda: llm.Tokenizer(tmp_path / "m", pre="x"), kw.InvalidArgument, "pre is 'x'"),
        (lambda: llm.Tokenizer(tmp_path / "none"), llm.ModelError, "none does not exist"),
        (lambda: llm.Tokenizer(tmp_path), llm.ModelError, "has no tokenizer: none of"),
        (lambda: tokenizer.encode_chat([]), llm.ModelError, "no chat template.*chatml"),
    ):
        with pytest.raises(error, match=said):
            call()


def test_without_the_extra_its_name_is_told(monkeypatch, tmp_path):
    import sys

    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ImportError, match=r"pip install 'kernwright\[llm\]'"):
        llm.Tokenizer(tmp_path)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"pip install 'kernwright\[llm\]'"):
        llm.ChatTemplate("chatml")


CLASSES = ("Tokenizer", "TextStream", "StopStrings", "StopCheck")
CHAT = ("ChatTemplate", "MessageParser", "MessagePart", "parse_message")


@pytest.mark.parametrize("name", CLASSES + CHAT)
def test_examples_are_true(name, tmp_path, monkeypatch):
    """Those of a class and its methods, after the example of llm.Tokenizer."""
    monkeypatch.chdir(tmp_path)
    space = {"kw": kw}
    found = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    texts = [inspect.getdoc(getattr(llm, name))]
    if name != "Tokenizer":
        texts.insert(0, inspect.getdoc(llm.Tokenizer))
    members = getattr(getattr(llm, name), "__dict__", {})
    texts += [inspect.getdoc(each) for key, each in members.items() if not key.startswith("_")]
    for text in texts:
        test = doctest.DocTestParser().get_doctest(text or "", space, name, "", 0)
        runner.run(test, out=found.append, clear_globs=False)
        space = test.globs
    assert not runner.failures, "".join(found)
    assert runner.tries > 2
