"""Pages of the prefix cache in the host's memory: texts stay the same, and less is computed."""

import pytest
from model_files import fields_of
from summing_model import expected, make_model

from kernwright import llm
from kernwright.errors import ArgumentError, InvalidArgument

FIELDS = {
    "architectures": ["LlamaForCausalLM"], "vocab_size": 96, "hidden_size": 64,
    "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 128, "dtype": "bfloat16",
}  # fmt: skip


def prompt_of(number):
    """Of three full pages; prompts of even numbers begin alike, and so do those of odd ones."""
    return [(number % 2 * 5 + 3 * i * i) % 96 for i in range(40)] + [number] * 10


def texts_of(engine):
    """Of five prompts in turns, so that each has left the device when it comes again."""
    return [engine.submit(prompt_of(i % 5), max_tokens=6, logprobs=2).result(60) for i in range(15)]


def assert_same(made, wanted, tolerance):
    """The same tokens, unless the two best were nearer than the tolerance: parts of a prompt that
    are computed in steps of other sizes differ by rounding."""
    for i, (ours, theirs) in enumerate(zip(made.tokens, wanted.tokens, strict=True)):
        (_, best), (_, second) = wanted.logprobs[i].top
        if ours != theirs:
            assert best - second < tolerance
            return  # what follows is another text
        assert abs(made.logprobs[i].logprob - wanted.logprobs[i].logprob) < tolerance


@pytest.mark.parametrize(
    "family, dtype",
    [
        ("llama", "float32"),
        ("llama", "int8"),
        ("llama", "float8_e4m3fn"),
        ("deepseek_v2", "float32"),
    ],
)
def test_texts_and_logprobs_are_those_without_it(family, dtype):
    """The last one has caches of latent vectors."""
    fields = FIELDS if family == "llama" else fields_of(family, max_position_embeddings=128)
    numbers = "float32" if dtype == "float32" else "bfloat16"
    model = llm.load(random=fields, dtype=numbers, kv_dtype=dtype)
    page = 16 * model.cache_format.token_bytes(model.cache_layers())
    options = {"max_rows": 1, "kv_memory": 5 * page, "max_tokens_per_step": 64}
    with llm.Engine(model, **options) as engine:
        wanted = texts_of(engine)
        found = engine.stats()
        assert (found["host_pages"], found["saved_pages"], found["loaded_pages"]) == (0, 0, 0)
    with llm.Engine(model, **options, host_cache=30 * page) as engine:
        made = texts_of(engine)
        kept = engine.stats()
    for ours, theirs in zip(made, wanted, strict=True):
        assert_same(ours, theirs, 1e-4 if dtype == "float32" else 2e-2)
    assert kept["loaded_pages"] >= 20
    assert kept["shared_tokens"] >= found["shared_tokens"] + 16 * 20
    assert kept["host_pages"] == kept["saved_pages"] <= 30
    assert kept["free_pages"] + kept["cached_pages"] == 5


def test_a_full_host_cache_gives_up_what_was_not_used_longest():
    prompts = [[i] * 33 for i in range(1, 8)]
    with llm.Engine(make_model(), max_rows=1, kv_memory=4 * 2048, host_cache=6 * 2048) as engine:
        for prompt in [*prompts, prompts[-3], prompts[0]]:
            assert engine.submit(prompt, max_tokens=4).result(60).tokens == expected(prompt, 4)
            for _ in range(4):  # steps, by which pages go to the host
                engine.submit([60], max_tokens=2).result(60)
        found = engine.stats()
    assert found["host_pages"] == 6
    assert found["loaded_pages"] == 2  # of the last three texts are all pages there


@pytest.mark.parametrize(
    "value, error, words",
    [
        ("much", ArgumentError, "host_cache is a number of bytes, a text as '4GB', or None"),
        (True, ArgumentError, "got True"),
        (1.5, ArgumentError, "got 1.5"),
        (0, InvalidArgument, "above 0 bytes"),
        (2047, InvalidArgument, "2047 bytes of the host hold no page of the caches, which takes"),
    ],
)
def test_wrong_sizes_are_refused(value, error, words):
    with pytest.raises(error, match=words):
        llm.Engine(make_model(), max_rows=1, host_cache=value)


def test_it_needs_a_prefix_cache():
    with pytest.raises(InvalidArgument, match="keeps pages of the prefix cache"):
        llm.Engine(make_model(), max_rows=1, host_cache="1MiB", prefix_cache=False)
