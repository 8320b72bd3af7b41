"""Requests of llm.Engine: the prefix cache and its salts, texts that are stopped one by one."""

import math
import pathlib

from summing_model import expected, make_model

from kernwright import llm

TINY = pathlib.Path(__file__).parents[1] / "data" / "tiny_llama"


def test_texts_of_another_salt_share_nothing():
    prompt = list(range(1, 25))
    with llm.Engine(make_model(), max_rows=4) as engine:

        def cached(**options):
            request = engine.submit(prompt, max_tokens=4, **options)
            assert request.result().tokens == expected(prompt, 4)
            return request.cached_tokens

        assert [cached(), cached() > 0] == [0, True]
        assert [cached(cache_salt="a"), cached(cache_salt="b")] == [0, 0]
        assert cached(cache_salt="a") == cached(cache_salt="b") == cached(cache_salt="") > 0


def test_one_text_of_several_may_be_stopped():
    engine = llm.Engine(make_model(), max_rows=4)
    request = engine.submit([1, 2], max_tokens=60, n=3)
    for piece in request:
        if piece.choice == 1 and piece.token is not None:
            request.stop(1)
            break
    made = request.result()
    assert [each.finish_reason for each in made] == ["length", "stop", "length"]
    assert [len(each.tokens) for each in made][::2] == [60, 60] and len(made[1].tokens) < 60
    request.stop(2)  # it has ended
    assert engine.stats()["finished"] == 1
    engine.close()


WAYS = (
    {"repetition_penalty": 1.4}, {"presence_penalty": 1.0, "frequency_penalty": 0.5},
    {"logit_bias": {70: 2.0, 71: -100}}, {"bad_tokens": [70, 71]}, {"min_tokens": 9},
    {"temperature": 1.0, "seed": 3, "top_k": 20}, {"temperature": 1.0, "seed": 4, "min_p": 0.1},
    {"temperature": 1.0, "seed": 5, "top_p": 0.8}, {"stop": ["e"]}, {"choices": ["self", "none"]},
)  # fmt: skip


def test_a_cached_prompt_changes_nothing_in_any_way_to_sample():
    """Tokens and log-probabilities with the prefix cache are those without it."""
    model = llm.load(TINY, dtype="float32")
    prompt, made = list(range(40, 110)), {}
    for is_cached in (False, True):
        with llm.Engine(model, max_rows=4, prefix_cache=is_cached) as engine:
            engine.submit(prompt, max_tokens=1).result(60)
            requests = [
                engine.submit(prompt, **{"max_tokens": 12, "logprobs": 2, **way}) for way in WAYS
            ]
            made[is_cached] = [each.result(300) for each in requests]
            assert all((each.cached_tokens > 0) == is_cached for each in requests)
    for way, without, cached in zip(WAYS, made[False], made[True], strict=True):
        assert (without.tokens, without.text) == (cached.tokens, cached.text), way
        assert without.finish_reason == cached.finish_reason
        pairs = zip(without.logprobs, cached.logprobs, strict=True)
        assert all(math.isclose(a.logprob, b.logprob, abs_tol=1e-4) for a, b in pairs), way
