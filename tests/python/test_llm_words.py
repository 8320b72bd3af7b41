"""bad_words: texts without them, against a loop over the model's logits."""

import numpy as np
import pytest
from serving import PROMPTS, TINY

from kernwright import llm
from kernwright.errors import ArgumentError, InvalidArgument

LENGTH = 16


@pytest.fixture(scope="module")
def model():
    return llm.load(TINY, dtype="float32")


@pytest.fixture(scope="module")
def plain(model):
    """What the model writes behind a prompt, tokens."""
    return model.generate(PROMPTS[0], max_tokens=LENGTH, ignore_eos=True).tokens


def banned(model, words, made):
    """Tokens that may not come behind `made`, as vLLM's rule is written."""
    found = set()
    for word in words:
        variants = [model.tokenizer.encode(word.lstrip(), add_special_tokens=False)]
        spaced = model.tokenizer.encode(" " + word.lstrip(), add_special_tokens=False)
        if spaced[0] != variants[0][0] and len(spaced) == len(variants[0]):
            variants.append(spaced)
        for tokens in variants:
            if made[len(made) - len(tokens) + 1 :] == tokens[:-1] or len(tokens) == 1:
                found.add(tokens[-1])
    return found


def written(model, prompt, words, count, least=0):
    """Greedy tokens; none of the first `least` ends the text."""
    tokens, made = model.tokenizer.encode(prompt), []
    while len(made) < count:
        row = model.logits(tokens + made).numpy()[-1].copy()
        ends = model.eos if len(made) < least else ()
        row[sorted(banned(model, words, made) | set(ends))] = -np.inf
        made.append(int(row.argmax()))
        if made[-1] in model.eos:
            break
    return made


def words_in(model, tokens, sizes):
    """Texts of parts of a text that the tokenizer makes the same tokens of."""
    found = []
    for size in sizes:
        for begin in range(1, len(tokens) - size + 1):
            part = tokens[begin : begin + size]
            word = model.tokenizer.decode(part)
            same = model.tokenizer.encode(word.lstrip(), add_special_tokens=False) == part
            if same and word.strip() and word not in found:
                found.append(word)
                break
    return found


@pytest.mark.parametrize("sizes", [(1,), (2,), (3,), (1, 2, 3)])
def test_words_are_not_written(sizes, model, plain):
    words = words_in(model, plain, sizes)
    assert len(words) == len(sizes)
    wanted = written(model, PROMPTS[0], words, LENGTH)
    assert wanted != plain[: len(wanted)]
    for draft in ("none", "ngram"):
        made = model.generate(PROMPTS[0], max_tokens=LENGTH, bad_words=words, draft=draft)
        assert made.tokens == wanted, draft


def test_each_request_of_a_batch_has_words_of_its_own(model, plain):
    words = [[], words_in(model, plain, (2,)), words_in(model, plain, (1, 3))]
    with llm.Engine(model, max_rows=4, kv_memory=1 << 24) as engine:
        made = [
            engine.submit(prompt, max_tokens=LENGTH, bad_words=each, n=2)
            for prompt in PROMPTS[:2] for each in words
        ]  # fmt: skip
        found = [[text.tokens for text in each.result()] for each in made]
    wanted = [written(model, prompt, each, LENGTH) for prompt in PROMPTS[:2] for each in words]
    assert found == [[each, each] for each in wanted]


def test_words_go_with_least_tokens_forms_and_streams(model, plain):
    words = words_in(model, plain, (2,))
    wanted = written(model, PROMPTS[3], words, LENGTH, least=12)
    made = model.generate(PROMPTS[3], max_tokens=LENGTH, min_tokens=12, bad_words=words)
    assert made.tokens == wanted and len(wanted) >= 12
    pieces = list(model.stream(PROMPTS[0], max_tokens=LENGTH, bad_words=words))
    assert [each.token for each in pieces] == written(model, PROMPTS[0], words, LENGTH)
    form = {"regex": "(import os|import re)", "max_tokens": LENGTH}
    first = model.generate(PROMPTS[0], **form).text
    other = {"import os": "import re", "import re": "import os"}[first]
    made = model.generate(PROMPTS[0], bad_words=[first.removeprefix("import")], **form)
    assert made.text == other and made.finish_reason == "stop"


def test_drawn_texts_have_no_bad_words(model, plain):
    words = words_in(model, plain, (1, 2))
    options = {"max_tokens": LENGTH, "temperature": 1.5, "seed": 4, "n": 6}
    for each in model.generate(PROMPTS[0], bad_words=words, **options):
        for place in range(len(each.tokens)):
            assert each.tokens[place] not in banned(model, words, each.tokens[:place])


def test_wrong_words_are_refused(model):
    for words, error, message in (
        ("word", ArgumentError, "list of texts"), ([1], ArgumentError, "texts, got 1"),
        ([" "], InvalidArgument, "texts with characters"),
        (["a"] * 1025, InvalidArgument, "1024 texts at most, got 1025"),
        (["a" * 1025], InvalidArgument, "1024 characters at most, got 1025"),
        (["\ud800"], InvalidArgument, "lone surrogate"),
    ):  # fmt: skip
        with pytest.raises(error, match=message):
            model.generate([1], max_tokens=2, bad_words=words)
    assert model.generate([1], max_tokens=2, bad_words=None).tokens
    bare = llm.load(random=model.config)
    with pytest.raises(InvalidArgument, match="bad_words needs the model's tokenizer"):
        bare.generate([1], max_tokens=2, bad_words=["a"])
