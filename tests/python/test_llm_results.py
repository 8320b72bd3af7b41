"""What completions and last pieces tell: what ended them, when they began, what was cached; and
models whose tokenizer is of no use."""

import pathlib
import shutil
import time
import warnings

import pytest

import kernwright as kw
from kernwright import llm
from kernwright.errors import InvalidArgument, OutOfMemory

TINY = pathlib.Path(__file__).parents[1] / "data" / "tiny_llama"
FIELDS = {
    "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
    "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2, "dtype": "float32",
}  # fmt: skip
PROMPT = "import os\nimport sys\n\n\ndef main("


@pytest.fixture(scope="module")
def model():
    return llm.load(TINY, dtype="float32", max_length=256)


def ends(model, prompt, **options):
    """(finish_reason, stop_reason) of a call, of a stream and of a request of an engine."""
    one = model.generate(prompt, **options)
    last = list(model.stream(prompt, **options))[-1]
    with llm.Engine(model, max_rows=2) as engine:
        request = engine.submit(prompt, **options)
        final = list(request)[-1]
        other = request.result()
    assert one.tokens == other.tokens
    found = {(each.finish_reason, each.stop_reason) for each in (one, last, other, final)}
    assert len(found) == 1
    return one, found.pop()


def test_what_ended_a_text(model):
    free, reason = ends(model, PROMPT, max_tokens=6)
    assert reason == ("length", None)
    third = free.tokens[2]
    made, reason = ends(model, PROMPT, max_tokens=6, stop_tokens=[third])
    assert reason == ("stop", third) and made.tokens == free.tokens[:3]
    text = free.text[2:4]
    made, reason = ends(model, PROMPT, max_tokens=6, stop=["never there", text])
    assert reason == ("stop", text) and made.text == free.text[: free.text.index(text)]
    eos = model.eos[0]
    made, reason = ends(model, PROMPT, max_tokens=6, logit_bias={eos: 100})
    assert reason == ("stop", eos) and made.tokens == [eos]
    made, reason = ends(model, PROMPT, max_tokens=2, logit_bias={eos: 100}, ignore_eos=True)
    assert reason == ("length", None)


@pytest.mark.parametrize("options", [{}, {"stop": "never there"}, {"n": 2}])
def test_times_of_first_tokens(model, options):
    begin = time.perf_counter()
    made = model.generate([PROMPT, "x = 1"], max_tokens=8, ignore_eos=True, **options)
    spent = time.perf_counter() - begin
    texts = [each for group in made for each in (group if isinstance(group, list) else [group])]
    assert len(texts) == 2 * options.get("n", 1)
    for each in texts:
        assert 0 < each.first_seconds < each.seconds <= spent
    *before, last = model.stream(PROMPT, max_tokens=4, ignore_eos=True)
    assert last.first_seconds > 0
    assert {(piece.first_seconds, piece.stop_reason) for piece in before} == {(None, None)}


def test_tokens_of_the_prompt_that_were_cached(model):
    fresh = llm.load(TINY, dtype="float32", max_length=256)
    prompt = fresh.tokenizer.encode(PROMPT) + list(range(20, 60))
    for known in (0, len(prompt) // 16 * 16):
        made = fresh.generate(prompt, max_tokens=2, ignore_eos=True)
        assert made.cached_tokens == min(known, (len(prompt) - 1) // 16 * 16)
    last = list(fresh.stream(prompt, max_tokens=2, ignore_eos=True))[-1]
    assert last.cached_tokens == (len(prompt) - 1) // 16 * 16
    with llm.Engine(model, max_rows=1) as engine:
        for known in (0, last.cached_tokens):
            request = engine.submit(prompt, max_tokens=2, ignore_eos=True)
            assert request.result().cached_tokens == known == request.cached_tokens


def test_the_answer_of_a_chat_tells_it_too(model):
    messages = [{"role": "user", "content": "def f():\n    return 1\n" * 6}]
    model.generate([5] * 200, max_tokens=4)  # the caches do not grow any more
    made = model.chat(messages, max_tokens=4, ignore_eos=True)
    assert made.first_seconds > 0 and made.stop_reason is None
    again = model.chat([*messages, made.message, *messages], max_tokens=4, ignore_eos=True)
    assert again.cached_tokens > 0


def test_a_conversation_keeps_its_pages_while_it_grows(monkeypatch):
    model = llm.load(TINY, dtype="float32")
    messages = [{"role": "user", "content": "Write a function that adds two numbers, please."}]
    first = model.chat(messages, max_tokens=16)
    messages += [first.message, {"role": "user", "content": "more"}]
    assert model.chat(messages, max_tokens=2).cached_tokens >= first.prompt_tokens // 16 * 16 > 0
    # A larger engine in place of one that is too small takes the pages over.
    monkeypatch.setattr("kernwright.llm._generate._LEAST_CAPACITY", 16)
    model = llm.load(TINY, dtype="float32")
    tokens = [3 + i % 7 for i in range(40)]
    made = model.generate(tokens, max_tokens=2)
    pages = model._generator._size.pages
    longer = [*tokens, *range(5, 60)]
    kept = model.generate(longer, max_tokens=4, ignore_eos=True)
    assert (made.cached_tokens, kept.cached_tokens) == (
        0,
        32,
    ) and pages < model._generator._size.pages
    assert (
        kept.tokens
        == llm.load(TINY, dtype="float32").generate(longer, max_tokens=4, ignore_eos=True).tokens
    )


@pytest.mark.parametrize("damage", ['{"model": {"type": "BPE"', "{}", "\x00\xff"])
def test_token_ids_work_beside_a_damaged_tokenizer(damage, tmp_path):
    folder = tmp_path / "m"
    shutil.copytree(TINY, folder)
    (folder / "tokenizer.json").write_text(damage, encoding="latin-1")
    model = llm.load(folder, dtype="float32", max_length=64)
    with pytest.warns(RuntimeWarning, match=r"tokenizer\.json.*token ids work without"):
        made = model.generate([5, 6, 7], max_tokens=3)
    expected = llm.load(TINY, dtype="float32", max_length=64).generate([5, 6, 7], max_tokens=3)
    assert (made.tokens, made.text) == (expected.tokens, "")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is said once
        assert model.tokenizer is None and "tokenizer.json" in model.tokenizer_error
        for call in (
            lambda: model.generate("text"), lambda: list(model.stream("text")),
            lambda: model.chat([{"role": "user", "content": "hi"}]),
            lambda: model.perplexity("text"), lambda: model.embed("text"),
            lambda: model.generate([1], schema={"type": "object"}),
        ):  # fmt: skip
            with pytest.raises((llm.ModelError, InvalidArgument), match="tokenizer"):
                call()
        with pytest.raises(
            llm.ModelError, match=r"a text needs a tokenizer, and .*tokenizer\.json"
        ):
            model.generate("text")
    model.tokenizer = llm.Tokenizer(TINY)
    assert model.generate("x = ", max_tokens=2).prompt_tokens > 1 and not model.tokenizer_error


def test_numbers_of_stop_tokens_and_strings_have_limits(model):
    model.generate([1], max_tokens=1, stop_tokens=list(range(1000)) * 4)
    with pytest.raises(InvalidArgument, match="there are 4097 stop tokens; at most 4096"):
        model.generate([1], stop_tokens=[7] * 4097)
    with pytest.raises(InvalidArgument, match="there are 17 stop strings; at most 16"):
        model.generate([1], stop=["x"] * 17)
    with pytest.raises(InvalidArgument, match="1025 characters; at most 1024"):
        model.generate([1], stop="x" * 1025)


def test_messages_for_a_new_user(model, tmp_path):
    with pytest.raises(
        llm.ModelError, match=r"Llama-3\.1-8B does not exist; .*nothing is downloaded"
    ):
        llm.load("meta-llama/Llama-3.1-8B")
    large = FIELDS | {"head_dim": 4096, "max_position_embeddings": 2**17}
    wide = llm.load(random=large)
    kw.memory.set_limit(128 << 20)
    try:
        with pytest.raises(
            OutOfMemory, match=r"no sequence of 20001 tokens, or a single one of \d+"
        ):
            wide.generate([1], max_tokens=20000)
        with pytest.raises(OutOfMemory, match=r"weights take .* bytes.*budget= needs less"):
            llm.load(random=FIELDS | {"vocab_size": 2**20, "hidden_size": 64}, memory="device")
    finally:
        kw.memory.set_limit(None)


def test_weights_of_nan_are_an_error_everywhere():
    model = llm.load(random=FIELDS)
    norm = model.module.norm
    norm.weight = kw.full(norm.weight.shape, float("nan"), norm.weight.dtype)
    for call in (
        lambda: model.generate([1]), lambda: list(model.stream([1])),
        lambda: model.perplexity([1, 2, 3]),
    ):  # fmt: skip
        with pytest.raises(llm.ModelError, match="not finite"):
            call()
