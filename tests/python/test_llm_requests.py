"""Requests of llm.Engine: salts of the prefix cache, and texts that are stopped one by one."""

from summing_model import expected, make_model

from kernwright import llm


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
