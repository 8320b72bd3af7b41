"""llm.Engine: requests of many threads and event loops, against a loop on the host."""

import asyncio
import gc
import pathlib
import random
import threading
import time

import pytest
from summing_model import expected, make_model, prompts_of

from kernwright import llm
from kernwright.errors import ArgumentError, Error, InvalidArgument, OutOfMemory, Timeout

TINY = pathlib.Path(__file__).parents[1] / "data" / "tiny_llama"


def make_engine(model=None, **options):
    options = {"max_rows": 4, "max_tokens_per_step": 24, **options}
    return llm.Engine(model or make_model(), **options)


def assert_conserved(stats, pages):
    assert stats["started"] == (
        stats["finished"] + stats["aborted"] + stats["failed"] + stats["running"]
    )
    assert stats["free_pages"] + stats["used_pages"] + stats["cached_pages"] == pages


def is_finite(prompt, count):
    """Summing has no number at a sum of 1000."""
    tokens = prompt + expected(prompt, count)
    return all(sum(tokens[:end]) != 1000 for end in range(len(prompt), len(tokens) + 1))


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.fixture(scope="module")
def shared():
    with make_engine() as engine:
        yield engine


@pytest.fixture
def engine(shared):
    yield shared
    wait_until(lambda: shared.stats()["running"] == shared.stats()["waiting"] == 0)
    stats = shared.stats()
    assert_conserved(stats, 4 * 6)
    assert stats["used_pages"] == 0 and stats["rows"] == 0
    assert shared.healthy


@pytest.fixture(scope="module")
def texts():
    with make_engine(llm.load(TINY, dtype="float32"), max_rows=2) as engine:
        yield engine


def test_many_threads_get_the_tokens_of_a_host_loop(engine):
    made = {}

    def ask(number):
        for i, prompt in enumerate(prompts_of(number, 3)):
            tokens = [piece.token for piece in engine.submit(prompt, max_tokens=7)]
            made[number, i] = (tokens, expected(prompt, 7))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(made) == 15
    for tokens, wanted in made.values():
        assert tokens == wanted


def test_event_loops_iterate_and_await(engine):
    prompts = prompts_of(21, 6)

    async def iterate(prompt):
        return [piece.token async for piece in engine.submit(prompt, max_tokens=6)]

    async def wait(prompt):
        return (await engine.submit(prompt, max_tokens=6)).tokens

    async def both():
        ways = [iterate, wait] * 3
        return await asyncio.gather(
            *(way(prompt) for way, prompt in zip(ways, prompts, strict=True))
        )

    results = []
    threads = [threading.Thread(target=lambda: results.append(asyncio.run(both())))
               for _ in range(2)]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    wanted = [expected(prompt, 6) for prompt in prompts]
    assert results == [wanted, wanted]


def test_a_task_that_is_cancelled_while_it_waits_leaves_the_request_usable(engine):
    async def main():
        request = engine.submit([3, 4], max_tokens=60)
        task = asyncio.create_task(anext(request))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        made = await request
        assert made.tokens == expected([3, 4], 60)

    asyncio.run(main())


def test_the_result_stays_beside_the_iteration(engine):
    request = engine.submit([5, 6, 7], max_tokens=4, n=2)
    pieces = list(request)
    assert list(request) == []
    made = request.result()
    assert [each.tokens for each in made] == [expected([5, 6, 7], 4)] * 2
    assert [each.finish_reason for each in made] == request.finish_reason == ["length"] * 2
    for choice in range(2):
        assert [p.token for p in pieces if p.choice == choice] == made[choice].tokens
    assert request.prompt_tokens == made[0].prompt_tokens == 3
    assert made[0].seconds > 0 and repr(request).endswith("['length', 'length']>")


def test_a_wait_may_end_before_the_request(engine):
    request = engine.submit([9] * 30, max_tokens=60)
    with pytest.raises(Timeout, match=rf"request {request.id} has not ended within 0 s"):
        request.result(timeout=0)
    assert request.result(timeout=60).tokens == expected([9] * 30, 60)


def test_a_shared_beginning_is_found_in_the_cache():
    with make_engine() as engine:
        prompt = prompts_of(22, 1)[0] * 40
        first = engine.submit(prompt[:50], max_tokens=2)
        first.result()
        second = engine.submit(prompt[:50], max_tokens=2)
        assert second.result().tokens == expected(prompt[:50], 2)
        assert (first.cached_tokens, second.cached_tokens) == (0, 48)
        assert engine.stats()["prompt_tokens"] == 100
    with make_engine(prefix_cache=False) as engine:
        for _ in range(2):
            request = engine.submit(prompt[:50], max_tokens=2)
            assert request.result().tokens == expected(prompt[:50], 2)
            assert request.cached_tokens == 0


def test_cancelled_requests_end_and_leave_the_others_alone(engine):
    prompts = prompts_of(23, 4)
    before = engine.stats()["aborted"]
    others = [engine.submit(prompt, max_tokens=40) for prompt in prompts[:3]]
    for _ in range(20):  # a fast device may end a request before its cancellation
        request = engine.submit(prompts[3], max_tokens=50)
        next(request)
        request.cancel()
        made = request.result(60)
        if made.finish_reason != "length":
            break
    assert made.finish_reason == request.finish_reason == "cancelled"
    assert made.tokens == expected(prompts[3], 50)[: len(made.tokens)]
    assert 1 <= len(made.tokens) < 50
    assert [piece.finish_reason for piece in request][-1] == "cancelled"
    request.cancel()
    for prompt, other in zip(prompts, others, strict=False):
        assert other.result(60).tokens == expected(prompt, 40)
    assert engine.stats()["aborted"] == before + 1


def test_requests_that_nobody_refers_to_are_cancelled(engine):
    before = engine.stats()
    for prompt in prompts_of(24, 9):
        next(engine.submit(prompt, max_tokens=50))
    gc.collect()
    wait_until(lambda: engine.stats()["running"] == 0)
    after = engine.stats()
    assert after["aborted"] == before["aborted"] + 9
    assert after["tokens"] - before["tokens"] < 9 * 50


def test_random_requests_and_cancels(engine):
    draw = random.Random(5)
    alive = []
    for _ in range(40):
        prompt, count = prompts_of(draw.random(), 1)[0], draw.randint(1, 20)
        if not is_finite(prompt, count):
            continue
        alive.append((engine.submit(prompt, max_tokens=count), prompt, count))
        if draw.random() < 0.3:
            draw.choice(alive)[0].cancel()
        assert_conserved(engine.stats(), 24)
    for request, prompt, count in alive:
        made = request.result(60)
        assert made.tokens == expected(prompt, count)[: len(made.tokens)]
        assert made.finish_reason == "cancelled" or len(made.tokens) == count


def test_stop_strings_end_each_text_where_generate_ends_it(texts):
    model = texts.model
    whole = model.generate("def main(", max_tokens=30, temperature=1.0, n=3, seed=4)
    stop = [whole[1].text[5:8]]
    wanted = model.generate("def main(", max_tokens=30, temperature=1.0, n=3, seed=4, stop=stop)
    before = texts.stats()
    request = texts.submit("def main(", max_tokens=30, temperature=1.0, n=3, seed=4, stop=stop)
    pieces = list(request)
    for choice, each in enumerate(wanted):
        assert "".join(p.text for p in pieces if p.choice == choice) == each.text
        ends = [p.finish_reason for p in pieces if p.choice == choice]
        assert ends == [None] * (len(ends) - 1) + [each.finish_reason]
    assert [each.text for each in request.result()] == [each.text for each in wanted]
    assert "stop" in request.finish_reason
    wait_until(lambda: texts.stats()["running"] == 0)
    after = texts.stats()
    assert (after["finished"] - before["finished"], after["aborted"]) == (1, before["aborted"])


def test_log_probabilities_come_with_the_tokens(texts):
    made = texts.submit("import ", max_tokens=5, logprobs=3).result()
    wanted = texts.model.generate("import ", max_tokens=5, logprobs=3)
    assert made.tokens == wanted.tokens and made.text == wanted.text
    for each, other in zip(made.logprobs, wanted.logprobs, strict=True):
        assert each.logprob == pytest.approx(other.logprob, abs=1e-4)
        assert [token for token, _ in each.top] == [token for token, _ in other.top]


def test_text_is_made_outside_of_the_thread_that_runs_steps(texts):
    tokenizer, names = texts.model.tokenizer, set()

    class Watched:
        eos = tokenizer.eos

        def encode(self, text):
            return tokenizer.encode(text)

        def stream(self, prompt, verbatim=False):
            made = tokenizer.stream(prompt)
            push = made.push

            class Stream:
                def push(self, token):
                    names.add(threading.current_thread().name)
                    return push(token)

                def finish(self):
                    return made.finish()

            return Stream()

    texts.model.tokenizer = Watched()
    try:
        texts.submit("import ", max_tokens=5).result()
    finally:
        texts.model.tokenizer = tokenizer
    assert names == {"kernwright-text"}


def test_a_text_that_cannot_be_made_fails_its_request_alone(texts):
    tokenizer = texts.model.tokenizer

    class Broken:
        eos = tokenizer.eos

        def stream(self, prompt, verbatim=False):
            return self

        def push(self, token):
            raise KeyError(token)

        def finish(self):
            return ""

    texts.model.tokenizer = Broken()
    try:
        request = texts.submit([1, 2], max_tokens=5)
    finally:
        texts.model.tokenizer = tokenizer
    with pytest.raises(Error, match="KeyError"):
        request.result(60)
    assert request.finish_reason == "error"
    assert len(texts.submit([1, 2], max_tokens=5).result(60).tokens) <= 5


@pytest.mark.parametrize(
    ("prompt", "options", "error", "words"),
    [
        ([], {}, llm.ModelError, "one token at least"),
        ([61], {}, llm.ModelError, "the token 61 is outside"),
        ([1] * 97, {}, llm.ContextError, "97 tokens, and the context holds 96"),
        ([1] * 90, {"max_tokens": 7}, llm.ContextError, "together 97"),
        ("a text", {}, InvalidArgument, "no tokenizer"),
        ([1], {"stop": "x"}, InvalidArgument, "stop strings need a tokenizer"),
        ([1], {"stop_words": ["x"]}, ArgumentError, "stop_words is no option"),
        ([1], {"deterministic": True}, InvalidArgument, "option of the whole engine"),
        ([1], {"temperature": -1.0}, InvalidArgument, "a temperature is 0 or more"),
        ([1], {"priority": "high"}, ArgumentError, "priority is an int"),
        ([1], {"priority": 2**31}, InvalidArgument, "below 2\\^31"),
        ([1], {"user": 7}, ArgumentError, "user is a str"),
        ([1], {"timeout": 0}, InvalidArgument, "timeout is above 0"),
        ([1], {"timeout": float("nan")}, InvalidArgument, "timeout is above 0"),
        ([1], {"timeout": "1"}, ArgumentError, "timeout is a number of seconds"),
        ([1], {"cache_salt": b"1"}, ArgumentError, "cache_salt is a str"),
    ],
)
def test_wrong_requests_are_refused_at_once(engine, prompt, options, error, words):
    before = engine.stats()
    with pytest.raises(error, match=words):
        engine.submit(prompt, **options)
    assert engine.stats()["started"] == before["started"]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"max_rows": 0}, InvalidArgument, "max_rows is 1 at least"),
        ({"max_rows": True}, ArgumentError, "max_rows is an int"),
        ({"kv_memory": "all"}, ArgumentError, "kv_memory is a number of bytes"),
        ({"kv_memory": "1KB"}, OutOfMemory, "kv_memory of 1,000 bytes holds no page"),
        ({"queue_limit": 0}, InvalidArgument, "queue_limit is 1 at least"),
        ({"max_tokens_per_step": 0}, InvalidArgument, "max_tokens_per_step is 1 at least"),
        ({"max_tokens_per_step": True}, ArgumentError, "max_tokens_per_step is an int"),
        ({"max_tokens_per_step": 3}, InvalidArgument, "4 rows has at least as many tokens, not 3"),
        ({"step_limit": -1}, InvalidArgument, "step_limit is above 0"),
        ({"kv_memory": 100}, OutOfMemory, "holds no page of 16 tokens, which takes 2,048"),
    ],
)
def test_engines_without_sense_are_refused(options, error, words):
    with pytest.raises(error, match=words):
        make_engine(**options)


def test_what_can_never_fit_is_refused_with_what_would():
    with make_engine(kv_memory=3 * 2048) as engine:
        with pytest.raises(InvalidArgument, match="the cache has 3: together 49 tokens fit"):
            engine.submit([1] * 30, max_tokens=20)
        assert engine.submit([1] * 30, max_tokens=19).result().tokens == expected([1] * 30, 19)


def test_bad_logits_fail_their_request_alone(engine):
    before = engine.stats()["failed"]
    other = engine.submit([1, 2], max_tokens=30)
    request = engine.submit([50] * 20, max_tokens=30)
    assert not is_finite([50] * 20, 30)
    with pytest.raises(llm.ModelError, match="not finite"):
        request.result(60)
    with pytest.raises(llm.ModelError, match="not finite"):
        list(request)
    assert other.result(60).tokens == expected([1, 2], 30)
    assert engine.stats()["failed"] == before + 1


def test_a_failure_while_a_step_is_recorded_names_its_cause():
    model = make_model()
    model.module.summing.failure = ValueError("no such kernel here")
    with make_engine(model) as engine:
        requests = [engine.submit([1, 2], max_tokens=3) for _ in range(2)]
        for request in requests:
            with pytest.raises(Error, match="no such kernel here"):
                request.result(60)
        assert engine.healthy
        model.module.summing.failure = None
        assert engine.submit([1, 2], max_tokens=3).result(60).tokens == expected([1, 2], 3)
        wait_until(lambda: engine.stats()["running"] == 0)
        assert engine.stats()["failed"] == 2
        assert_conserved(engine.stats(), 24)


def test_texts_that_outgrow_the_pages_are_preempted_and_stay_right():
    prompts = prompts_of(25, 4, longest=8)
    with make_engine(kv_memory=8 * 2048) as engine:
        requests = [engine.submit(prompt, max_tokens=70) for prompt in prompts]
        for prompt, request in zip(prompts, requests, strict=True):
            assert request.result(60).tokens == expected(prompt, 70)
        wait_until(lambda: engine.stats()["running"] == 0)
        stats = engine.stats()
        assert 0 < stats["preemptions"] < 20
        assert stats["recomputed_tokens"] < 20 * 80
        assert_conserved(stats, 8)


def test_preempted_texts_are_drawn_as_they_would_be_alone():
    model = make_model(spread=8.0)
    options = {"max_tokens": 60, "temperature": 1.0, "frequency_penalty": 0.5, "logprobs": 2}
    with make_engine(model) as engine:
        alone = [engine.submit([i], seed=i, **options).result(60) for i in range(4)]
        assert engine.stats()["preemptions"] == 0
    with make_engine(model, kv_memory=7 * 2048) as engine:
        requests = [engine.submit([i], seed=i, **options) for i in range(4)]
        for request, wanted in zip(requests, alone, strict=True):
            made = request.result(60)
            assert made.tokens == wanted.tokens
            assert [each.top for each in made.logprobs] == [each.top for each in wanted.logprobs]
        assert engine.stats()["preemptions"] > 0


def test_a_full_queue_refuses_and_says_when_to_come_again():
    with make_engine(max_rows=1, queue_limit=2) as engine:
        running = engine.submit([1, 2], max_tokens=90)
        next(running)
        waiting = [engine.submit([1, 2], max_tokens=90) for _ in range(2)]
        with pytest.raises(llm.QueueFull, match="2 requests wait already, the queue_limit") as info:
            engine.submit([1, 2])
        assert 1 <= info.value.retry_after <= 60
        assert engine.stats()["waiting"] == 2
        waiting[0].cancel()
        waiting[0].result(60)
        wait_until(lambda: engine.stats()["waiting"] == 1)
        other = engine.submit([5], max_tokens=2)
        running.cancel()
        waiting[1].cancel()
        assert other.result(60).tokens == expected([5], 2)


def test_higher_priorities_end_first():
    with make_engine(max_rows=1) as engine:
        first = engine.submit([1, 2], max_tokens=80)
        next(first)
        low = engine.submit([3], max_tokens=60, priority=-1)
        high = engine.submit([4], max_tokens=5, priority=1)
        assert high.result(60).tokens == expected([4], 5)
        assert first.finish_reason is low.finish_reason is None
        assert first.result(60).tokens == expected([1, 2], 80)
        assert low.result(60).tokens == expected([3], 60)
        assert engine.stats()["preemptions"] == 1


def test_users_get_equal_shares():
    with make_engine(max_rows=1, prefix_cache=False) as engine:
        first = engine.submit([1, 2], max_tokens=60, user="many")
        next(first)
        others = [engine.submit([3], max_tokens=60, user="many") for _ in range(4)]
        engine.submit([4], max_tokens=5, user="one").result(60)
        assert sum(each.finish_reason is not None for each in (first, *others)) <= 2


def test_a_timeout_ends_requests_with_what_they_have():
    model = make_model()
    with make_engine(model, max_rows=1) as engine:
        assert engine.model is model
        engine.submit([1, 2], max_tokens=2).result()
        running = engine.submit([1, 2], max_tokens=90)
        waiting = engine.submit([3], max_tokens=9, timeout=0.001)
        assert waiting.result(60).tokens == []
        assert waiting.finish_reason == "timeout"
        assert running.result(60).tokens == expected([1, 2], 90)
        assert engine.submit([3], max_tokens=9, timeout=60).result(60).finish_reason == "length"
        wait_until(lambda: engine.stats()["running"] == 0)
        assert (engine.stats()["aborted"], engine.stats()["finished"]) == (1, 3)


def test_close_lets_requests_end_within_its_time():
    engine = make_engine()
    request = engine.submit([1, 2], max_tokens=40)
    engine.close(timeout=60)
    assert request.result().tokens == expected([1, 2], 40)
    assert not engine.healthy
    with pytest.raises(llm.EngineClosed, match="it was closed"):
        engine.submit([1])
    engine.close()
    assert engine.stats()["finished"] == 1


def test_close_ends_what_still_runs():
    engine = make_engine(max_rows=1)
    running, waiting = (engine.submit([1, 2], max_tokens=90) for _ in range(2))
    next(running)
    engine.close()
    assert waiting.result().tokens == []
    for request in (running, waiting):
        assert request.result().finish_reason == "cancelled"
    assert_conserved(engine.stats(), 6)
    assert engine.stats()["aborted"] == 2


def test_an_engine_that_nobody_refers_to_ends_its_threads():
    engine = make_engine()
    engine.submit([1], max_tokens=2).result()
    threads = [engine._delivery._steps, engine._delivery._events]
    assert all(each.is_alive() for each in threads)
    request = engine.submit([1], max_tokens=90)
    del engine
    assert request.result(60).tokens == expected([1], 90)  # its request keeps it
    del request
    gc.collect()
    for each in threads:
        each.join(20)
        assert not each.is_alive()
