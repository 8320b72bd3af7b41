"""The engine against a loop on the host, with a model whose next token depends on all before it."""

import random
import re
import signal
import threading

import numpy as np
import pytest
from summing_model import VOCABULARY, Summing, expected, make, prompts_of, require_right_texts

import kernwright as kw
from kernwright import llm
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.llm import ContextError, ModelError
from kernwright.llm._sampling import Sampling


@pytest.fixture(scope="module")
def shared():
    return make()


@pytest.fixture
def engine(shared):
    yield shared
    shared.run([], Sampling())
    stats = shared.stats()
    assert (stats["running"], stats["waiting"], stats["used_pages"]) == (0, 0, 0)


def test_many_prompts_of_any_length_give_the_tokens_of_a_host_loop(engine):
    prompts = prompts_of(1, 9)
    made = engine.run(prompts, Sampling(max_tokens=11))
    assert [[(each.tokens, each.finish_reason)] for (each,) in made] == [
        [(expected(prompt, 11), "length")] for prompt in prompts
    ]


@pytest.mark.parametrize("length", [1, 4, 5, 23, 24, 25, 94])
def test_prompts_at_the_edges_of_pages_and_steps(engine, length):
    prompt = [(7 * i + 3) % VOCABULARY for i in range(length)]
    (made,) = engine.run([prompt], Sampling(max_tokens=6))
    assert made[0].tokens == expected(prompt, min(6, 96 - length))
    assert made[0].finish_reason == "length"


def test_a_stop_token_is_the_last_one(engine):
    prompts = prompts_of(2, 6)
    for least in (0, 3):
        stops = sorted({expected(prompt, 9)[4] for prompt in prompts[:3]})
        made = engine.run(prompts, Sampling(max_tokens=9, stop_tokens=stops, min_tokens=least))
        for prompt, (each,) in zip(prompts, made, strict=True):
            wanted = expected(prompt, 9, stops, least)
            stopped = wanted[-1] in stops and len(wanted) > least
            assert each.tokens == wanted
            assert each.finish_reason == ("stop" if stopped else "length")


def test_choices_share_the_pages_of_their_prompt(engine):
    prompt = prompts_of(3, 1)[0] * 3
    prompt = prompt[:38]
    stream = engine.stream(prompt, Sampling(max_tokens=5, choices=3))
    first = next(stream)
    pieces = [first]
    most = engine.stats()["used_pages"]
    for piece in stream:
        pieces.append(piece)
        most = max(most, engine.stats()["used_pages"])
    for choice in range(3):
        tokens = [piece.token for piece in pieces if piece.choice == choice]
        assert tokens == expected(prompt, 5)
    assert [piece.finish_reason for piece in pieces].count("length") == 3
    assert 9 + 3 <= most <= 9 + 3 * 2  # nine full pages once; what follows for each


def test_texts_that_begin_alike_share_pages_and_stay_right():
    engine = make()
    prompt = prompts_of(12, 1)[0] * 9
    prompt = prompt[:30]
    made = engine.run([prompt], Sampling(max_tokens=20))[0][0].tokens
    assert made == expected(prompt, 20)
    assert engine.stats()["cached_pages"] == 49 // 4
    chat = [*prompt, *made, 5, 6]
    again = engine.run([chat, prompt, chat[:41]], Sampling(max_tokens=9, choices=2))
    for text, choices in zip([chat, prompt, chat[:41]], again, strict=True):
        assert [each.tokens for each in choices] == [expected(text, 9)] * 2
    assert engine.stats()["shared_tokens"] >= 48 + 28 + 40
    plain = make(prefix_cache=False)
    assert plain.run([prompt], Sampling(max_tokens=20))[0][0].tokens == made
    assert plain.stats()["cached_pages"] == 0


def test_shared_beginnings_under_pressure_stay_right():
    engine = make(pages=30)
    require_right_texts(engine, 30, seed=3, rounds=12, at_once=3, new=(1, 20))
    assert engine.stats()["shared_tokens"] >= 40


def test_streams_read_in_turn_run_as_one_batch(engine):
    prompts = prompts_of(4, 3)
    streams = [engine.stream(prompt, Sampling(max_tokens=8)) for prompt in prompts]
    before = engine.stats()["steps"]
    seen = [[], [], []]
    for _ in range(8):
        for stream, tokens in zip(streams, seen, strict=True):
            tokens.append(next(stream).token)
    assert seen == [expected(prompt, 8) for prompt in prompts]
    assert engine.stats()["steps"] - before < 8 + 10


def test_a_stream_that_is_left_gives_its_row_and_pages_back(engine):
    stream = engine.stream([5] * 30, Sampling(max_tokens=50))
    next(stream)
    stream.close()
    other = engine.run([[1, 2]], Sampling(max_tokens=4))
    assert other[0][0].tokens == expected([1, 2], 4)


def test_random_requests_and_cancels_leave_the_others_alone(engine):
    draw = random.Random(7)
    alive, results, started = {}, {}, 0
    while started < 25 or alive:
        if started < 25 and draw.random() < 0.5:
            prompt = prompts_of(draw.random(), 1)[0]
            count = draw.randint(1, 12)
            alive[started] = (engine.stream(prompt, Sampling(max_tokens=count)), prompt, count)
            results[started] = []
            started += 1
        for number in draw.sample(sorted(alive), min(2, len(alive))):
            stream, prompt, count = alive[number]
            if draw.random() < 0.08:
                stream.close()
                del alive[number]
                continue
            piece = next(stream)
            results[number].append(piece.token)
            assert results[number] == expected(prompt, count)[: len(results[number])]
            if piece.finish_reason is not None:
                assert len(results[number]) == count
                del alive[number]
        stats = engine.stats()
        assert stats["free_pages"] + stats["used_pages"] + stats["cached_pages"] == 4 * 24
        assert 0 <= stats["running"] <= 4


def test_requests_wait_for_pages_and_impossible_ones_are_refused():
    engine = make(pages=12)
    prompts = prompts_of(5, 6, longest=20)
    made = engine.run(prompts, Sampling(max_tokens=20))
    assert [each.tokens for (each,) in made] == [expected(prompt, 20) for prompt in prompts]
    with pytest.raises(InvalidArgument, match=r"needs 13 pages of 4 tokens.*has 12.*49 tokens fit"):
        engine.run([[1] * 30], Sampling(max_tokens=20))
    made = engine.run([[1] * 30], Sampling(max_tokens=19))
    assert made[0][0].tokens == expected([1] * 30, 19)


def test_choices_with_few_pages_take_turns():
    engine = make(pages=12)
    prompt = prompts_of(6, 1)[0] * 30
    made = engine.run([prompt[:30]], Sampling(max_tokens=12, choices=6))
    assert [each.tokens for each in made[0]] == [expected(prompt[:30], 12)] * 6
    assert engine.stats()["used_pages"] == 0


@pytest.mark.parametrize(
    ("prompt", "options", "error", "words"),
    [
        ([], {}, InvalidArgument, "at least one token"),
        ([1] * 96, {}, ContextError, "96 tokens leaves no place"),
        ([1, VOCABULARY], {}, InvalidArgument, "token 61 .* vocabulary of 61"),
        ([-1], {}, InvalidArgument, "token -1"),
        ([1], {"max_tokens": 0}, InvalidArgument, "max_tokens is 1 at least"),
        ([1], {"choices": 0}, InvalidArgument, "choices"),
        ([1], {"temperature": -1.0}, InvalidArgument, "temperature"),
        ([1], {"temperature": float("nan")}, InvalidArgument, "temperature"),
        ([1], {"top_p": 1.5}, InvalidArgument, "top_p"),
        ([1], {"max_tokens": 1.5}, ArgumentError, "max_tokens is an int"),
        ([1], {"repetition_penalty": 0.0}, InvalidArgument, "repetition_penalty is above 0"),
        ([1], {"presence_penalty": float("inf")}, InvalidArgument, "presence_penalty is finite"),
        ([1], {"logprobs": 21}, InvalidArgument, "logprobs is 20 at most"),
        ([1], {"logprobs": True}, ArgumentError, "logprobs is an int"),
    ],
)
def test_bad_requests_are_refused_before_anything_runs(engine, prompt, options, error, words):
    with pytest.raises(error, match=words):
        engine.run([[1, 2], prompt], Sampling(**options))


def test_a_failure_while_a_step_is_recorded_leaves_the_engine_usable():
    model = Summing()
    engine = make(model)
    model.failure = ValueError("no such layer")
    with pytest.raises(ValueError, match="no such layer"):
        engine.run([[1, 2, 3]], Sampling())
    model.failure = kw.errors.OutOfMemory("nothing left")
    with pytest.raises(kw.errors.OutOfMemory):
        engine.run([[4, 5]], Sampling(choices=2))
    model.failure = None
    made = engine.run([[1, 2, 3], [9]], Sampling(max_tokens=5))
    assert [each.tokens for (each,) in made] == [expected([1, 2, 3], 5), expected([9], 5)]
    assert engine.stats()["used_pages"] == 0


def test_caches_that_do_not_fit_say_what_would():
    kw.memory.trim()  # else there may be room in what is reserved
    stats = kw.memory.stats()
    kw.memory.set_limit(stats["reserved"] + (4 << 20))
    try:
        with pytest.raises(kw.errors.OutOfMemory) as caught:
            make(pages=1 << 16)
    finally:
        kw.memory.set_limit(stats["limit"])
    found = re.search(
        r"262144 tokens need 0.03 GiB, 128 bytes each.* (\d+) tokens fit, as (\d+) sequences of 96",
        str(caught.value),
    )
    assert found, caught.value
    tokens, sequences = map(int, found.groups())
    assert sequences == tokens // 96 and tokens >= 1 << 13
    made = make().run([[1]], Sampling(max_tokens=2))
    assert made[0][0].tokens == expected([1], 2)


def test_logits_that_are_not_finite_end_their_sequence_alone(engine):
    bad = [50] * 20  # sums to 1000
    stream = engine.stream([3, 4], Sampling(max_tokens=9))
    tokens = [next(stream).token]
    with pytest.raises(ModelError, match="not finite"):
        list(engine.stream(bad, Sampling(max_tokens=9)))
    tokens += [piece.token for piece in stream]
    assert tokens == expected([3, 4], 9)
    with pytest.raises(ModelError, match="not finite"):
        engine.run([bad], Sampling())


def test_each_size_is_recorded_once_and_decoding_is_one_graph_a_step():
    model = Summing()
    engine = make(model, prefix_cache=False)  # which makes prompts shorter
    engine.warm_up(4)
    assert model.calls == [(4, 4)] * 2
    prompts = prompts_of(8, 4)
    engine.run(prompts, Sampling(max_tokens=4))
    recorded = len(model.calls)
    graphs = engine.stats()["graphs"]
    assert recorded == 2 * graphs
    engine.run(prompts, Sampling(max_tokens=4))
    assert len(model.calls) == recorded


SAMPLED = Sampling(max_tokens=12, temperature=1.3, top_k=9, top_p=0.95, seed=11)


def test_same_seed_same_text_whatever_runs_beside():
    engine = make(Summing(spread=2.0))
    prompts = prompts_of(9, 6)
    alone = [engine.run([prompt], SAMPLED)[0][0].tokens for prompt in prompts]
    assert len({tuple(each) for each in alone}) > 1
    together = engine.run([*prompts[3:], *prompts[:3]], SAMPLED)
    assert [each.tokens for (each,) in together] == alone[3:] + alone[:3]
    choices = engine.run([prompts[0]], Sampling(max_tokens=12, temperature=1.3, seed=11, choices=3))
    assert len({tuple(each.tokens) for each in choices[0]}) == 3
    unseeded = Sampling(max_tokens=12, temperature=1.3)
    drawn = [engine.run([prompts[0]], unseeded)[0][0].tokens for _ in range(2)]
    assert drawn[0] != drawn[1]


def test_tokens_are_drawn_with_their_chances():
    engine = make(Summing(spread=1.0))
    made = engine.run([[7]], Sampling(max_tokens=1, temperature=1.0, seed=2, choices=600))
    drawn = np.array([each.tokens[0] for each in made[0]])
    first = (7 * 31 + 7 + 3) % VOCABULARY
    counts = np.bincount((drawn - first) % VOCABULARY, minlength=VOCABULARY)[:5]
    chances = np.exp(-np.arange(5.0)) / np.exp(-np.arange(float(VOCABULARY))).sum()
    assert np.abs(counts - 600 * chances).max() < 5 * np.sqrt(600 * 0.25)


def test_control_c_in_a_run_ends_it_and_the_next_call_works(engine):
    assert threading.current_thread() is threading.main_thread()
    # A test run that was started in the background ignores SIGINT.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            for _ in range(1000):
                engine.run([[1, 2, 3]] * 4, Sampling(max_tokens=90))
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    made = engine.run([[1, 2, 3]], Sampling(max_tokens=5))
    assert made[0][0].tokens == expected([1, 2, 3], 5)


class Reading(Summing):
    """A model that looks at its arrays, as one does to find a fault."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __call__(self, step):
        self.seen += step.tokens.numpy().tolist()
        return super().__call__(step)


@pytest.mark.parametrize("draft", [None, llm.Draft()])
def test_without_graphs_each_step_calls_the_model(draft):
    model = Reading()
    engine = make(model, graphs=False, draft=draft)
    prompts = prompts_of(12, 3)
    made = engine.run(prompts, Sampling(max_tokens=7))
    assert [each.tokens for (each,) in made] == [expected(prompt, 7) for prompt in prompts]
    stats = engine.stats()
    assert (stats["graphs"], stats["steps"]) == (0, len(model.calls))
    wanted = {token for prompt in prompts for token in prompt + expected(prompt, 6)}
    assert wanted <= set(model.seen)


def test_a_step_without_graphs_that_raises_ends_its_requests_alone():
    model = Reading()
    engine = make(model, graphs=False)
    model.failure = ValueError("of a layer")
    with pytest.raises(ValueError, match="of a layer"):
        engine.run([[1, 2, 3]], Sampling(max_tokens=4))
    model.failure = None
    ((made,),) = engine.run([[4, 5]], Sampling(max_tokens=4))
    assert made.tokens == expected([4, 5], 4)
    stats = engine.stats()
    assert (stats["running"], stats["waiting"], stats["used_pages"]) == (0, 0, 0)


def test_a_model_that_is_recorded_cannot_read_its_arrays():
    with pytest.raises(kw.errors.CaptureError):
        make(Reading()).run([[1, 2, 3]], Sampling(max_tokens=4))
