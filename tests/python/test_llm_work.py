"""Functions that an engine calls between two steps."""

import asyncio
import gc
import threading
import time
from concurrent.futures import CancelledError

import numpy as np
import pytest
from serving import TINY, serving
from summing_model import expected, make_model, prompts_of

import kernwright as kw
from kernwright import llm
from kernwright.errors import ArgumentError
from kernwright.llm._batching.work import WorkQueue


@pytest.fixture(scope="module")
def engine():
    with llm.Engine(make_model(), max_rows=4, max_tokens_per_step=24) as engine:
        yield engine


def long_request(engine):
    """A request whose steps are under way."""
    request = engine.submit([1, 2], max_tokens=90)
    next(request)
    return request


def test_a_function_has_the_thread_and_the_stream_of_the_steps(engine):
    def look():
        return threading.current_thread().name, kw.current_stream(), kw.arange(5).sum()

    request = long_request(engine)
    name, stream, total = engine.between_steps(look).result(60)
    assert name == "kernwright-engine"
    assert stream == engine._delivery._engine._loop.stream
    assert float(total) == 10
    assert request.result(60).tokens == expected([1, 2], 90)
    assert engine.between_steps(look).result(60)[0] == name  # with no request at all


def test_no_step_is_made_while_a_function_runs(engine):
    request = long_request(engine)

    def look():
        before = engine.stats()["steps"]
        time.sleep(0.05)
        return before, engine.stats()["steps"]

    before, after = engine.between_steps(look).result(60)
    assert before == after
    assert request.result(60).tokens == expected([1, 2], 90)
    assert engine.stats()["steps"] > after


def test_a_step_comes_between_two_functions(engine):
    request = long_request(engine)
    begin, ready = threading.Event(), threading.Event()

    def block():
        ready.set()
        assert begin.wait(60)

    blocked = engine.between_steps(block)
    assert ready.wait(60)
    seen = [engine.between_steps(lambda: engine.stats()["steps"]) for _ in range(4)]
    begin.set()
    blocked.result(60)
    steps = [each.result(60) for each in seen]
    assert steps == sorted(set(steps))
    assert request.result(60).tokens == expected([1, 2], 90)


@pytest.mark.parametrize("error", [ValueError("seven"), KeyboardInterrupt(), SystemExit(3)])
def test_errors_go_to_the_caller_alone(engine, error):
    request = long_request(engine)

    def fail():
        raise error

    with pytest.raises(type(error)) as caught:
        engine.between_steps(fail).result(60)
    assert caught.value is error
    assert request.result(60).tokens == expected([1, 2], 90)
    assert engine.healthy


def test_event_loops_await_a_function(engine):
    async def main():
        futures = [engine.between_steps(lambda i=i: i * i) for i in range(3)]
        return await asyncio.gather(*map(asyncio.wrap_future, futures))

    assert asyncio.run(main()) == [0, 1, 4]


def test_a_cancelled_function_is_not_called(engine):
    begin, called = threading.Event(), []
    blocked = engine.between_steps(lambda: begin.wait(60))
    cancelled = engine.between_steps(lambda: called.append(1))
    assert cancelled.cancel()
    begin.set()
    assert blocked.result(60)
    assert engine.between_steps(lambda: 5).result(60) == 5
    assert not called
    with pytest.raises(CancelledError):
        cancelled.result()


def test_what_is_no_function_is_refused(engine):
    with pytest.raises(ArgumentError, match="takes a function, got 5"):
        engine.between_steps(5)


def test_close_ends_functions_that_wait():
    engine = llm.Engine(make_model(), max_rows=2)
    begin, ready = threading.Event(), threading.Event()

    def block():
        ready.set()
        assert begin.wait(60)
        return "ended"

    running = engine.between_steps(block)
    assert ready.wait(60)
    waiting = engine.between_steps(lambda: 1)
    closing = threading.Thread(target=engine.close)
    closing.start()
    while engine.healthy:
        time.sleep(0.001)
    begin.set()
    closing.join(60)
    assert running.result(0) == "ended"
    with pytest.raises(llm.EngineClosed, match="before this function did: it was closed"):
        waiting.result(0)
    with pytest.raises(llm.EngineClosed, match="it was closed"):
        engine.between_steps(lambda: 1)


def test_close_with_a_time_lets_functions_end():
    engine = llm.Engine(make_model(), max_rows=2)
    futures = [engine.between_steps(lambda i=i: time.sleep(0.01) or i) for i in range(4)]
    engine.close(timeout=60)
    assert [each.result(0) for each in futures] == [0, 1, 2, 3]


def test_an_engine_lives_until_its_function_has_ended():
    future = llm.Engine(make_model(), max_rows=2).between_steps(lambda: time.sleep(0.05) or 7)
    gc.collect()
    assert future.result(60) == 7


def test_a_function_that_hangs_ends_the_engine():
    engine = llm.Engine(make_model(), max_rows=2, step_limit=0.2)
    begin = threading.Event()
    running, waiting = engine.between_steps(begin.wait), engine.between_steps(lambda: 1)
    for each in (running, waiting):
        with pytest.raises(llm.EngineClosed, match=r"has not ended within 0\.2 s"):
            each.result(60)
    assert not engine.healthy
    begin.set()
    engine.close()


def test_a_queue_counts_what_waits_and_runs():
    queue = WorkQueue()
    queue.run_one(kw.Stream())  # nothing to do
    assert len(queue) == 0 and queue.age == 0
    seen = []
    future = queue.add(lambda: seen.append((len(queue), queue.age >= 0)))
    assert len(queue) == 1
    queue.run_one(kw.Stream())
    assert seen == [(1, True)] and future.done() and len(queue) == 0


def test_texts_and_embeddings_at_a_time_are_those_alone():
    """Three clients generate while others ask for embeddings and log-probabilities of prompts."""
    prompts = ["def f(x):", "import os", "class A:"]
    alone = llm.load(TINY)
    texts = [alone.generate(prompt, max_tokens=40).text for prompt in prompts]
    vectors = alone.embed(prompts).numpy()
    tokens = alone.tokenizer.encode(prompts[0])
    chances = kw.nn.log_softmax(alone.logits(tokens)).numpy()
    wanted = [chances[i, token] for i, token in enumerate(tokens[1:])]
    made = {}

    def generate(client, i):
        body = {"prompt": prompts[i], "max_tokens": 40, "temperature": 0}
        made["text", i] = [
            client.post("/v1/completions", body)[1]["choices"][0]["text"] for _ in range(2)
        ]

    def embed(client, i):
        found = [client.post("/v1/embeddings", {"input": prompts})[1]["data"] for _ in range(3)]
        made["vectors", i] = [[each["embedding"] for each in data] for data in found]

    def echo(client, i):
        body = {"prompt": prompts[0], "echo": True, "max_tokens": 0, "logprobs": 1}
        found = client.post("/v1/completions", body)[1]["choices"][0]["logprobs"]
        made["echo", i] = found["token_logprobs"]

    with llm.Engine(llm.load(TINY), max_rows=4) as engine, serving(engine) as client:
        works = [(generate, i) for i in range(3)] + [(embed, 0), (embed, 1), (echo, 0)]
        threads = [threading.Thread(target=work, args=(client, i)) for work, i in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert engine.healthy and len(made) == 6
    for i, text in enumerate(texts):
        assert made["text", i] == [text] * 2
    for i in range(2):
        for found in made["vectors", i]:
            assert np.allclose(found, vectors, atol=1e-5)
    assert made["echo", 0][0] is None and np.allclose(made["echo", 0][1:], wanted, atol=1e-3)


def test_many_prompts_are_right_beside_many_functions(engine):
    prompts = prompts_of(31, 8)
    requests = [engine.submit(prompt, max_tokens=9) for prompt in prompts]
    sums = [engine.between_steps(lambda n=n: int(kw.arange(n).sum())) for n in range(1, 20)]
    assert [each.result(60) for each in sums] == [n * (n - 1) // 2 for n in range(1, 20)]
    assert [each.result(60).tokens for each in requests] == [expected(p, 9) for p in prompts]
