"""Model.generate() and its siblings: what transformers wrote, alone, together, in pieces."""

import base64
import itertools
import json
import pathlib
import re
import shutil
import sys

import numpy as np
import pytest

import kernwright as kw
from kernwright import llm
from kernwright.errors import ArgumentError, InvalidArgument

TINY = pathlib.Path(__file__).parents[1] / "data" / "tiny_llama"
FIELDS = {
    "architectures": ["LlamaForCausalLM"], "vocab_size": 48, "hidden_size": 32,
    "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "dtype": "float32",
    "eos_token_id": 47,
}  # fmt: skip


@pytest.fixture(scope="module")
def model():
    return llm.load(TINY, dtype="float32")


@pytest.fixture(scope="module")
def recorded():
    with np.load(TINY / "expected.npz") as file:
        return dict(file)


def test_greedy_tokens_are_those_of_transformers(model, recorded):
    """All prompts as one batch, float32: as far as the highest logit leads."""
    prompts = [recorded[f"prompt_ids_{i}"].tolist() for i in range(4)]
    made = model.generate(prompts, max_tokens=64, ignore_eos=True)
    compared = 0
    for i, each in enumerate(made):
        expected = recorded[f"greedy_{i}"].tolist()[-64:]
        narrow = recorded[f"margins_{i}"] < 1e-3
        count = int(np.argmax(narrow)) if narrow.any() else 64
        assert each.tokens[:count] == expected[:count]
        assert each.prompt_tokens == len(prompts[i]) and each.finish_reason == "length"
        compared += count
    assert compared > 200


def test_a_prompt_as_text_and_as_tokens(model, recorded):
    text, ids = str(recorded["prompt_1"]), recorded["prompt_ids_1"].tolist()
    first, other = model.generate(text, max_tokens=12), model.generate(ids, max_tokens=12)
    assert first.tokens == other.tokens and first.text == other.text
    assert first.text == model.tokenizer.decode(first.tokens)
    assert model.generate(np.array(ids), max_tokens=12).tokens == first.tokens


def test_pieces_joined_are_the_text(model):
    whole = model.generate("def main(", max_tokens=40)
    pieces = list(model.stream("def main(", max_tokens=40))
    assert "".join(piece.text for piece in pieces) == whole.text
    assert [piece.token for piece in pieces] == whole.tokens
    assert [p.finish_reason for p in pieces] == [None] * 39 + ["length"]


def test_stop_strings_end_texts_and_are_not_in_them(model):
    prompts = ["def main(", "import os", "class A"]
    whole = [each.text for each in model.generate(prompts, max_tokens=40)]
    stop = [whole[0][7:10], "no such text"]
    for text, made in zip(whole, model.generate(prompts, max_tokens=40, stop=stop), strict=True):
        if stop[0] in text:
            assert made.text == text[: text.index(stop[0])] and made.finish_reason == "stop"
        else:
            assert made.text == text
    pieces = list(model.stream("def main(", max_tokens=40, stop=stop))
    assert "".join(p.text for p in pieces) == whole[0][: whole[0].index(stop[0])]
    assert pieces[-1].finish_reason == "stop"


def test_tokens_that_end_a_text(model):
    whole = model.generate("def main(", max_tokens=30, ignore_eos=True)
    end = whole.tokens[5]
    first = whole.tokens.index(end)
    made = model.generate("def main(", max_tokens=30, stop_tokens=[end])
    assert made.tokens == whole.tokens[: first + 1] and made.finish_reason == "stop"
    assert made.text == model.tokenizer.decode(whole.tokens[:first])


def test_ends_of_all_files_count(tmp_path):
    folder = shutil.copytree(TINY, tmp_path / "model")
    (folder / "generation_config.json").write_text('{"eos_token_id": [5, 6]}')
    model = llm.load(folder)
    assert set(model.eos) == {5, 6, 1023}


def test_equal_seeds_give_equal_texts_whatever_runs_beside(model):
    options = {"max_tokens": 12, "temperature": 1.0, "seed": 7}
    alone = model.generate("import os", **options)
    again, *_ = model.generate(["import os", "def f(", "class X"], **options)
    assert again.tokens == alone.tokens
    other = model.generate("import os", **options | {"seed": 8})
    assert other.tokens != alone.tokens
    with_none = [model.generate("import os", max_tokens=12, temperature=1.0) for _ in range(2)]
    assert with_none[0].tokens != with_none[1].tokens


def test_several_texts_of_a_prompt(model):
    made = model.generate(["def f(", "import"], max_tokens=10, temperature=1.0, seed=3, n=3)
    assert [len(each) for each in made] == [3, 3]
    assert len({tuple(each.tokens) for each in made[0]}) > 1
    alone = model.generate("def f(", max_tokens=10, temperature=1.0, seed=3, n=3)
    assert [each.tokens for each in alone] == [each.tokens for each in made[0]]
    pieces = list(model.stream("def f(", max_tokens=10, temperature=1.0, seed=3, n=3))
    for choice in range(3):
        mine = [p for p in pieces if p.choice == choice]
        assert [p.token for p in mine] == alone[choice].tokens
        assert mine[-1].finish_reason == "length"


def test_a_stream_that_is_left_ends_and_the_next_call_works(model):
    stream = model.stream("def main(", max_tokens=200)
    assert len(list(itertools.islice(stream, 3))) == 3
    stream.close()
    assert model.generate("def main(", max_tokens=3).finish_reason == "length"


def test_two_streams_at_once_are_those_of_each_alone(model):
    options = {"max_tokens": 15, "ignore_eos": True}
    alone = [model.generate(text, **options).tokens for text in ("def f(", "import")]
    streams = [model.stream(text, **options) for text in ("def f(", "import")]
    pairs = list(zip(*streams, strict=True))
    assert [[pair[i].token for pair in pairs] for i in range(2)] == alone


def test_chats_take_the_template_of_the_files(model, recorded):
    messages = [{"role": "user", "content": "hi"}]
    ids = model.chat_tokens(messages)
    assert ids == model.tokenizer.encode_chat(messages)
    assert model.chat(messages, max_tokens=5).tokens == model.generate(ids, max_tokens=5).tokens


def test_the_answer_of_a_chat_is_a_message(model):
    messages = [{"role": "user", "content": "hi"}]
    made = model.chat(messages, max_tokens=12)
    assert made.message == {"role": "assistant", "content": made.text}
    assert model.generate("hi", max_tokens=2).message is None
    stop = made.text[4:6]
    cut = model.chat(messages, max_tokens=12, stop=stop)
    assert cut.message["content"] == cut.text == made.text[: made.text.index(stop)]
    both = model.chat(messages, max_tokens=6, n=2, temperature=1.0, seed=3)
    assert [each.message["content"] for each in both] == [each.text for each in both]


@pytest.fixture
def bytes_tokenizer(tmp_path):
    """Each byte is a token, and the marks of the hermes format are special ones."""
    path = tmp_path / "bytes.tiktoken"
    path.write_bytes(b"".join(base64.b64encode(bytes([i])) + b" %d\n" % i for i in range(256)))
    marks = ("<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>")
    special = {mark: 256 + i for i, mark in enumerate(marks)}
    return llm.Tokenizer(path, pre="cl100k", special_tokens=special, chat_template="chatml")


def test_reasoning_and_calls_of_a_chat(bytes_tokenizer, monkeypatch):
    tokenizer = bytes_tokenizer
    model = llm.load(random=FIELDS | {"vocab_size": 264, "max_position_embeddings": 256})
    model.tokenizer = tokenizer
    call = '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>'
    text = f"<think>Hm.</think>On it.{call}<|im_end|>"
    tokens = tokenizer.encode(text)
    assert tokens[0] == 258 and tokenizer.decode(tokens).startswith("Hm.On it.{")
    made = llm.Completion(tokenizer.decode(tokens), tokens, "stop", 9, 0.1)
    monkeypatch.setattr(sys.modules["kernwright.llm._model"], "generate", lambda *_: made)
    found = model.chat([{"role": "user", "content": "1?"}], max_tokens=100)
    assert found.tokens == tokens and found.text == made.text
    message = dict(found.message)
    (only,) = message.pop("tool_calls")
    assert only["function"] == {"name": "add", "arguments": {"a": 1}}
    assert message == {"role": "assistant", "content": "On it.", "reasoning_content": "Hm."}
    again = model.chat_tokens([{"role": "user", "content": "1?"}, found.message])
    assert "On it." in tokenizer.decode(again)


def test_embeddings_are_means_of_hidden_states(model):
    made = model.embed(["import os", "def f():"])
    assert made.shape == (2, 128) and made.dtype == "float32"
    one = model.embed("def f():")
    np.testing.assert_allclose(made[1].numpy(), one.numpy(), rtol=1e-4, atol=1e-5)


def test_without_a_tokenizer_tokens_still_work():
    model = llm.load(random=FIELDS)
    assert model.tokenizer is None
    made = model.generate([[1, 2], [3]], max_tokens=4, ignore_eos=True)
    assert [each.text for each in made] == ["", ""] and len(made[0].tokens) == 4
    with pytest.raises(InvalidArgument, match="no tokenizer, so that prompts are lists"):
        model.generate("text")
    with pytest.raises(InvalidArgument, match="stop strings need a tokenizer"):
        model.generate([1], stop="x")
    with pytest.raises(
        llm.ModelError, match=r"a chat needs a tokenizer, and the model.s files have"
    ):
        model.chat([{"role": "user", "content": "hi"}])


def test_prompts_and_limits_beyond_the_context():
    model = llm.load(random=FIELDS)
    with pytest.raises(llm.ContextError, match="65 tokens, and the context holds 64"):
        model.generate([1] * 65)
    with pytest.raises(llm.ContextError, match="64 tokens, and the context of 64 leaves no place"):
        model.generate([1] * 64)
    message = "60 tokens and max_tokens is 5: together 65, and the context holds 64"
    with pytest.raises(llm.ContextError, match=message):
        model.generate([1] * 60, max_tokens=5)
    assert len(model.generate([1] * 60, ignore_eos=True).tokens) == 4


@pytest.mark.parametrize(
    ("prompt", "options", "error", "message"),
    [
        ([], {}, InvalidArgument, "there is no prompt"),
        ([[]], {}, llm.ModelError, "one token at least"),
        ([48], {}, llm.ModelError, "outside of the vocabulary of 48"),
        (5, {}, ArgumentError, "a prompt is a text or a list"),
        ([1], {"temperature": -1}, InvalidArgument, "temperature is 0 or more, got -1"),
        ([1], {"temperature": float("nan")}, InvalidArgument, "temperature"),
        ([1], {"temperature": "hot"}, ArgumentError, "temperature is a number"),
        ([1], {"top_p": 0}, InvalidArgument, "top_p is above 0"),
        ([1], {"top_p": 1.5}, InvalidArgument, "top_p is from 0 to 1"),
        ([1], {"top_k": -1}, InvalidArgument, "top_k is 0 at least"),
        ([1], {"min_p": 2}, InvalidArgument, "min_p is from 0 to 1"),
        ([1], {"max_tokens": 0}, InvalidArgument, "max_tokens is 1 at least"),
        ([1], {"max_tokens": 2.5}, ArgumentError, "max_tokens is an int"),
        ([1], {"max_tokens": 2**31}, InvalidArgument, r"max_tokens is below 2\^31, got 2147483648"),
        ([1], {"n": 0}, InvalidArgument, "n is from 1 to 16384, got 0"),
        ([1], {"n": 10**9}, InvalidArgument, "n is from 1 to 16384, got 1000000000"),
        ([1], {"n": 10**20}, InvalidArgument, "n is from 1 to 16384"),
        ([1], {"seed": 1.5}, ArgumentError, "seed is an int"),
        ([1], {"seed": 2**64}, InvalidArgument, r"seed is from 0 to .*, got 18446744073709551616"),
        ([1], {"seed": -1}, InvalidArgument, "seed is from 0 to .*, got -1"),
        ([1], {"presence_penalty": -1e300}, InvalidArgument, r"presence_penalty .* -1e\+30 to"),
        ([1], {"frequency_penalty": 1e31}, InvalidArgument, r"frequency_penalty .* got 1e\+31"),
        ([1], {"repetition_penalty": 1e-300}, InvalidArgument, "a repetition_penalty .* 1e-30 to"),
        ([1, "a"], {}, ArgumentError, "got 'a' at position 1"),
        (["a", 1], {}, ArgumentError, "got 1 at position 1"),
        ([[1], [1, 2.5]], {}, ArgumentError, "got 2.5 at position 1"),
        ([1], {"stop_tokens": ["x"]}, ArgumentError, "stop_tokens are ints"),
        ([1], {"stop_tokens": [-1]}, InvalidArgument, "stop_tokens has -1, .* from 0 to 47"),
        ([1], {"stop_tokens": [99]}, InvalidArgument, "stop_tokens has 99, .* from 0 to 47"),
        ([1], {"stop": 0}, ArgumentError, "stop is a text or a list of texts, got 0"),
        ([1], {"stop": [0]}, ArgumentError, "stop strings are str, got 0"),
        ([1], {"min_tokens": 5, "max_tokens": 3}, InvalidArgument, "min_tokens is 5, and max_tok"),
        ([1], {"ignore_eos": 1}, ArgumentError, "ignore_eos is True or False"),
        ([1], {"temprature": 1}, ArgumentError, "temprature is no option of generation: max_tok"),
    ],
)
def test_options_that_make_no_sense(prompt, options, error, message):
    with pytest.raises(error, match=message):
        llm.load(random=FIELDS).generate(prompt, **options)


def test_padding_of_the_vocabulary_is_no_token_of_options():
    class Few:
        eos = ()

        def __len__(self) -> int:
            return 40

    model = llm.load(random=FIELDS | {"vocab_size": 64})
    model.tokenizer = Few()  # with the end of texts, 47, there are ids up to that one
    for options, message in (
        ({"logit_bias": {50: 100}}, "logit_bias has 50, which no token has: ids are from 0 to 47"),
        ({"allowed_tokens": [50, 63]}, r"allowed_tokens has no token .* 0 to 47: got \[50, 63\]"),
        ({"stop_tokens": [50]}, "stop_tokens has 50"),
    ):
        with pytest.raises(InvalidArgument, match=message):
            model.generate([1], **options)


def test_options_of_numpy_are_numbers_and_none_is_no_stop_string():
    model = llm.load(random=FIELDS)
    options = {"temperature": np.float32(0.5), "top_k": np.int64(7), "max_tokens": np.int32(4)}
    wanted = model.generate([1, 2], seed=3, temperature=0.5, top_k=7, max_tokens=4)
    made = model.generate([1, 2], seed=np.int64(3), stop=None, stop_tokens=None, **options)
    assert made.tokens == wanted.tokens
    pieces = list(model.stream([1, 2], seed=3, stop=None, **options))
    assert [piece.token for piece in pieces] == wanted.tokens


def test_too_many_stop_strings(model):
    with pytest.raises(InvalidArgument, match="17 stop strings; at most 16"):
        model.generate("a", stop=["x"] * 17)
    with pytest.raises(InvalidArgument, match="a stop string is empty"):
        model.generate("a", stop=[""])


def test_logits_that_are_not_finite_end_with_an_error():
    model = llm.load(random=FIELDS)
    model.module.norm.weight[...] = kw.nan
    with pytest.raises(llm.ModelError, match="are not finite"):
        model.generate([1, 2], max_tokens=5)


@pytest.mark.parametrize("name", ["qwen3", "gemma3", "gpt2", "mixtral", "deepseek_v2", "gpt_oss"])
def test_families_go_on_as_their_whole_text_says(name, tmp_path):
    """Greedy tokens step by step over pages are those of whole sequences."""
    from test_llm_families import language_models, written

    model = llm.load(written(tmp_path, name), dtype="bfloat16")
    prompt = language_models.token_ids()[:20].tolist()
    made = model.generate(prompt, max_tokens=8, ignore_eos=True).tokens
    logits = model.logits(prompt + made[:-1]).numpy()[19:]
    for token, row in zip(made, logits, strict=True):
        assert row[token] >= row.max() - 0.15  # 16-bit sums differ in their last bits


def test_caches_grow_with_what_is_asked_and_say_what_would_fit():
    fields = FIELDS | {"max_position_embeddings": 4096}
    model = llm.load(random=fields)
    model.generate([1], max_tokens=2)
    few = model._generator._size
    model.generate([[1]] * 5, max_tokens=2)
    more = model._generator._size
    model.generate([1] * 1030, max_tokens=2)
    long = model._generator._size
    assert few.rows == 1 and more.rows == 8 and long.rows == 8 and long.capacity == 2048
    assert long.pages < 2 * (1032 / 16 + 1)  # not so many for each row
    model.generate([[1]] * 5, max_tokens=2)
    assert model._generator._size == long

    with kw.memory.use(kw.memory.PoolResource(limit=32 << 20)):
        short = llm.load(random=fields)
        message = "values of 201600 tokens need 0.05 GiB, 256 bytes each, .* left: ([0-9]+) tokens "
        with pytest.raises(kw.OutOfMemory, match=message) as caught:
            short.generate([[1] * 2000] * 100, max_tokens=1)
        tokens, sequences = map(int, re.findall("([0-9]+) (?:tokens fit|seq)", str(caught.value)))
        assert sequences == tokens // 2001 and 256 * tokens < 32 << 20
        short._generator.engine([2001] * (sequences // 2))  # blocks have gaps
        assert len(short.generate([1], max_tokens=2, ignore_eos=True).tokens) == 2


def test_rotary_positions_that_do_not_fit_name_the_context_that_does():
    with kw.memory.use(kw.memory.PoolResource(limit=8 << 20)):
        model = llm.load(random=FIELDS | {"max_position_embeddings": 2**31 - 1})
        message = (
            r"context of 2147483647 tokens need 64.00 GiB, 32 bytes each, .* left: a context of "
            r"([0-9]+) tokens at most fits, .* load the model with a smaller max_length"
        )
        with pytest.raises(kw.OutOfMemory, match=message) as caught:
            model.module._rope.on(model.device)
        fitting = int(re.search("([0-9]+) tokens at most", str(caught.value)).group(1))
        assert 0 < 32 * fitting < 8 << 20
        assert len(model.generate([5], max_tokens=3, ignore_eos=True).tokens) == 3
        del model, caught
        short = llm.load(random=FIELDS | {"max_position_embeddings": 2**31 - 1}, max_length=64)
        assert len(short.generate([5], max_tokens=3, ignore_eos=True).tokens) == 3


def test_rotary_positions_grow_with_texts_and_stay_for_recorded_steps(monkeypatch):
    monkeypatch.setattr(sys.modules[llm.models.RotaryTables.__module__], "_LEAST_POSITIONS", 16)
    monkeypatch.setattr("kernwright.llm._generate._LEAST_CAPACITY", 16)
    model = llm.load(random=FIELDS | {"max_position_embeddings": 2**31 - 1})
    whole = llm.load(random=FIELDS | {"max_position_embeddings": 220})
    options = {"max_tokens": 4, "ignore_eos": True}
    short, long = [5, 6, 7], [each % 40 for each in range(210)]
    made = [model.generate(prompt, **options).tokens for prompt in (short, long, short)]
    assert [rotation.cos.shape[0] for rotation in model.module._rope._made] == [128, 512]
    assert made == [whole.generate(prompt, **options).tokens for prompt in (short, long, short)]
    assert [rotation.cos.shape[0] for rotation in whole.module._rope._made] == [128, 220]
    np.testing.assert_array_equal(model.logits(long).numpy(), whole.logits(long).numpy())


def test_log_probabilities_are_those_of_the_logits(model):
    made = model.generate("def main(", max_tokens=6, logprobs=3)
    prompt = model.tokenizer.encode("def main(")
    logits = model.logits(prompt + made.tokens).numpy().astype(np.float64)[len(prompt) - 1 : -1]
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    assert len(made.logprobs) == 6
    for row, token, found in zip(logs, made.tokens, made.logprobs, strict=True):
        assert found.logprob == pytest.approx(row[token], abs=1e-3)
        best = np.argsort(-row)[:3]
        assert [each for each, _ in found.top] == best.tolist()
        np.testing.assert_allclose([p for _, p in found.top], row[best], atol=1e-3)
    stopped = model.generate("def main(", max_tokens=6, logprobs=3, stop="no such text")
    assert [each.logprob for each in stopped.logprobs] == [each.logprob for each in made.logprobs]
    assert [p.logprobs.logprob for p in model.stream("def main(", max_tokens=6, logprobs=0)] == [
        each.logprob for each in made.logprobs
    ]
    with pytest.raises(InvalidArgument, match="logprobs is 20 at most"):
        model.generate("a", logprobs=21)


def test_deterministic_texts_have_the_same_bits_alone_and_in_a_batch():
    model = llm.load(random=FIELDS | {"max_position_embeddings": 320})
    prompts = [[5, 6, 7], [1] * 40, [9, 8], list(range(40)) * 7]
    options = {"max_tokens": 5, "temperature": 0.8, "seed": 4, "logprobs": 2, "deterministic": True}
    together = model.generate(prompts, **options)
    for prompt, each in zip(prompts, together, strict=True):
        alone = model.generate(prompt, **options)
        assert (alone.tokens, alone.logprobs) == (each.tokens, each.logprobs)
    # One size for generation, one for prompts: with a new token, and (of the longest) without.
    assert model._generator._engine.stats()["graphs"] == 3
    plain = model.generate(prompts[0], max_tokens=5)
    assert plain.tokens == model.generate(prompts[0], max_tokens=5, deterministic=True).tokens
    with pytest.raises(ArgumentError, match="deterministic is True or False"):
        model.generate([1], deterministic=1)


def test_penalties_keep_texts_from_repeating(model):
    plain = model.generate("x = [1, 1, 1,", max_tokens=24, ignore_eos=True).tokens
    options = {"max_tokens": 24, "ignore_eos": True}
    made = model.generate("x = [1, 1, 1,", frequency_penalty=1e4, **options).tokens
    assert len(set(made)) == 24 > len(set(plain))
    made = model.generate("x = [1, 1, 1,", presence_penalty=1e4, **options).tokens
    assert len(set(made)) == 24
    made = model.generate("x = [1, 1, 1,", repetition_penalty=1e4, **options).tokens
    assert not set(made) & set(model.tokenizer.encode("x = [1, 1, 1,"))
    with pytest.raises(InvalidArgument, match="repetition_penalty is above 0"):
        model.generate("a", repetition_penalty=0)


def test_rows_that_pad_the_vocabulary_are_never_sampled(model, tmp_path):
    """Three times the highest row: without a bound the padding has the highest logits."""
    for each in TINY.iterdir():
        if each.suffix == ".json":
            shutil.copy(each, tmp_path)
    arrays = dict(kw.load_safetensors(TINY / "model.safetensors").items())
    name = "model.embed_tokens.weight"
    rows = arrays[name].numpy().astype("float32")
    padding = np.repeat(3 * rows[282:283], 64, axis=0)
    arrays[name] = kw.asarray(np.concatenate([rows, padding])).astype("bfloat16")
    kw.save_safetensors(tmp_path / "model.safetensors", arrays)
    config = json.loads((TINY / "config.json").read_text())
    size = config["vocab_size"]
    (tmp_path / "config.json").write_text(json.dumps(config | {"vocab_size": size + 64}))
    padded = llm.load(tmp_path, dtype="float32")
    assert padded.logits([5]).shape == (1, size + 64)
    for options in ({}, {"temperature": 1.0, "seed": 3, "logprobs": 3}, {"draft": "ngram"}):
        wanted = model.generate("def f(", max_tokens=12, ignore_eos=True, **options)
        made = padded.generate("def f(", max_tokens=12, ignore_eos=True, **options)
        assert made.tokens == wanted.tokens and max(made.tokens) < size


def test_a_layer_of_the_user_keeps_what_it_makes_once():
    """Its first call is no call without launches, which would leave the array as it was."""
    fields = {
        "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
        "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
        "dtype": "float32",
    }  # fmt: skip
    model = llm.load(random=fields)

    class Scaled(kw.nn.Module):
        def __init__(self, inner):
            self.inner, self._factor = inner, None

        def __call__(self, x, **rest):
            if self._factor is None:
                self._factor = kw.full((1,), 3.0) * 10
            return self.inner(x, **rest) * self._factor

    layer = model.module.layers[0]
    layer.mlp = Scaled(layer.mlp)
    made = model.generate([1, 2, 3], max_tokens=4, temperature=0, ignore_eos=True).tokens
    tokens = [1, 2, 3]
    for token in made:
        assert token == int(np.argmax(model.logits(tokens)[-1]))
        tokens.append(token)
    assert layer.mlp._factor.item() == 30
