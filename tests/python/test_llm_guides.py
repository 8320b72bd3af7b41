"""Sequences whose next token waits for a mask, beside others that wait for nothing."""

import threading
import time

import numpy as np
import pytest
from summing_model import VOCABULARY, Summing, make, prompts_of

from kernwright import llm
from kernwright.errors import InvalidArgument
from kernwright.llm._sampling import Sampling

SPREAD = 2.0
WORDS = (VOCABULARY + 31) // 32


def mask_of(tokens):
    bits = np.zeros(32 * WORDS, np.uint8)
    bits[list(tokens)] = 1
    return np.packbits(bits, bitorder="little").tobytes()


def next_tokens(made):
    """Those that may come behind the tokens made so far; none where a text is complete."""
    if len(made) >= 12 or made[-1:] == [60]:
        return []
    first = sum(made) * 5 % 50
    return [*range(first, first + 4), *([60] if len(made) > 4 else [])]


class Ruled:
    """A guide by next_tokens(); `wait` is called before each mask but the first."""

    def __init__(self, wait=lambda made: None):
        self.wait = wait

    def start(self):
        return State(self.wait)


class State:
    def __init__(self, wait):
        self.made, self.wait = [], wait

    def advance(self, token):
        if token is not None:
            self.made.append(token)
            self.wait(self.made)
        found = next_tokens(self.made)
        return mask_of(found) if found else None

    def rollback(self, count):
        del self.made[-count:]

    def forced(self):
        found = next_tokens(self.made)
        return found if len(found) == 1 else []


def greedy(prompt, count, forbidden=()):
    """The tokens of a guided text, and of a free one where there is no rule."""
    tokens = list(prompt)
    while len(tokens) - len(prompt) < count:
        allowed = set(next_tokens(tokens[len(prompt) :])) - set(forbidden)
        if not allowed:
            return tokens[len(prompt) :], "stop"
        target = (sum(tokens) * 31 + len(tokens) * 7 + 3) % VOCABULARY
        tokens.append(min(allowed, key=lambda token: ((token - target) % VOCABULARY, token)))
    return tokens[len(prompt) :], "length"


@pytest.fixture(scope="module")
def engine():
    return make(Summing(SPREAD))


@pytest.mark.parametrize("count", [1, 5, 30])
def test_greedy_tokens_under_a_guide_are_those_of_numpy(engine, count):
    prompts = prompts_of(1, 6)
    made = engine.run(prompts, Sampling(max_tokens=count, guide=Ruled()))
    for prompt, (each,) in zip(prompts, made, strict=True):
        assert (each.tokens, each.finish_reason) == greedy(prompt, count)
    assert engine._guides.is_idle


def test_neighbours_of_guided_rows_are_unchanged_byte_for_byte():
    engine = make(Summing(SPREAD), deterministic=True)
    prompts = prompts_of(2, 6, longest=20)
    kinds = [{}, {"temperature": 1.0, "seed": 4}, {"repetition_penalty": 1.2}] * 2
    free = [
        (prompt, Sampling(15, logprobs=3, **kind))
        for prompt, kind in zip(prompts, kinds, strict=True)
    ]
    guided = [(prompt, Sampling(15, guide=Ruled())) for prompt in prompts]
    alone = engine.run_each(free)
    mixed = engine.run_each([each for pair in zip(free, guided, strict=True) for each in pair])
    assert mixed[::2] == alone  # log-probabilities, too
    assert [each.tokens for (each,) in mixed[1::2]] == [greedy(each, 15)[0] for each in prompts]


def test_choices_of_a_guided_request_go_their_own_ways(engine):
    sampling = Sampling(20, choices=5, temperature=3.0, seed=1, guide=Ruled())
    made = engine.run([[7, 8, 9, 10, 11]], sampling)[0]
    assert len({tuple(each.tokens) for each in made}) > 1
    for each in made:
        for i, token in enumerate(each.tokens):
            assert token in next_tokens(each.tokens[:i])
        assert each.finish_reason == "stop"


def test_a_neighbour_goes_on_while_a_guide_takes_its_time(engine):
    goes_on = threading.Event()
    guided = engine.stream([1], Sampling(6, guide=Ruled(lambda made: goes_on.wait(60))))
    first = next(guided).token
    free = engine.run([[3]], Sampling(1))  # the whole engine would hang where it waited
    assert len(list(engine.stream([4, 5], Sampling(20)))) == 20 and free[0][0].tokens
    goes_on.set()
    assert [first, *(piece.token for piece in guided)] == greedy([1], 6)[0]


def test_a_guided_stream_that_is_left_ends(engine):
    goes_on = threading.Event()
    stream = engine.stream([1], Sampling(9, guide=Ruled(lambda made: goes_on.wait(60))))
    next(stream)
    stream.close()
    assert len(engine.run([[2]], Sampling(5))[0][0].tokens) == 5
    goes_on.set()
    stats = engine.stats()
    assert engine._guides.is_idle and stats["running"] == stats["used_pages"] == 0


def test_a_guide_that_fails_ends_its_own_request(engine):
    def fail(made):
        if len(made) == 3:
            raise llm.ModelError("the rule has no more tokens")

    streams = [
        engine.stream([1], Sampling(9, guide=Ruled(fail))),
        engine.stream([2], Sampling(9, guide=Ruled())),
        engine.stream([3], Sampling(9)),
    ]
    assert [next(streams[0]).token for _ in range(3)] == greedy([1], 3)[0]
    with pytest.raises(llm.ModelError, match="no more tokens"):
        next(streams[0])
    assert [p.token for p in streams[1] if p.token is not None] == greedy([2], 9)[0]
    assert len(list(streams[2])) == 9
    failed = engine.stats()["failed"]
    with pytest.raises(llm.ModelError, match="no more tokens"):
        engine.run([[1], [2]], Sampling(9, guide=Ruled(fail)))
    assert engine.stats()["failed"] >= failed + 1
    assert engine.run([[2]], Sampling(9, guide=Ruled()))[0][0].tokens == greedy([2], 9)[0]


def test_other_constraints_of_a_guided_request(engine):
    prompts = prompts_of(4, 5, longest=9)
    made = engine.run(
        prompts, Sampling(9, guide=Ruled(), bad_tokens=[60], logit_bias={3: 1.0, 60: 100})
    )
    for (each,) in made:
        for i, token in enumerate(each.tokens):
            assert token in next_tokens(each.tokens[:i]) and token != 60
    with pytest.raises(InvalidArgument, match="come first"):
        engine.run([[1]], Sampling(9, guide=Ruled(), allowed_tokens=[59]))
    with pytest.raises(llm.ModelError, match="come next"):
        engine.run([[1]], Sampling(9, guide=Ruled(), allowed_tokens=[1, 2, 3]))
    with pytest.raises(InvalidArgument, match="min_tokens"):
        Sampling(9, guide=Ruled(), min_tokens=1)


def test_masks_of_a_wrong_size_and_for_nobody(engine):
    loop = engine._loop
    for wrong in (b"", b"abc", b"abcd" * (WORDS + 1)):
        with pytest.raises(InvalidArgument):
            loop.set_mask(1, 0, [wrong], 0)
    with pytest.raises(InvalidArgument, match="2 drafts"):
        loop.set_mask(1, 0, [mask_of([1])] * 2, 0, [1, 1])
    loop.set_mask(10**9, 0, [mask_of([1])], 0)
    assert engine.run([[2]], Sampling(4, guide=Ruled()))[0][0].tokens == greedy([2], 4)[0]


def test_a_row_that_waits_costs_no_time():
    engine, spent = make(Summing(SPREAD)), []

    def wait(made):
        begin = time.process_time()
        time.sleep(0.3)
        spent.append(time.process_time() - begin)

    stream = engine.stream([1], Sampling(3, guide=Ruled(wait)))
    next(stream)
    engine._sort(engine._loop.advance(engine._record))
    steps = engine.stats()["steps"]
    next(stream)
    assert engine.stats()["steps"] == steps + 1
    assert spent[0] < 0.15
