"""A state machine over rows, pages and the prefix cache: after each step all is accounted for.

Requests come, end, are cancelled or stopped, lose their rows to others, and push pages out of the
cache, in any order. Each token is that of a loop on the host, which knows none of this.
"""

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from summing_model import expected, make

from kernwright.llm import ContextError
from kernwright.llm._sampling import Sampling
from kernwright.llm._submission import Turn

ROWS, PAGES, SIZE, CONTEXT = 3, 12, 4, 40
BEGINNINGS = ([], [1] * 4, [1] * 8, [1] * 4 + [2] * 8, [3] * 11)  # texts that begin alike
SEEN = {"preemptions": 0, "shared_tokens": 0, "evictions": 0, "cancelled": 0, "stopped": 0}


@pytest.fixture(scope="module")
def engine():
    return make(
        max_rows=ROWS, pages=PAGES, page_size=SIZE, capacity=CONTEXT, max_tokens_per_step=12,
        prefix_cache=True,
    )  # fmt: skip


class Expected:
    """A request, as it must go on."""

    def __init__(self, prompt, count, choices):
        self.tokens = expected(prompt, count)
        self.made = [[] for _ in range(choices)]
        self.open = set(range(choices))
        self.is_cancelled, self.stopped = False, set()

    def add(self, choice, token, reason):
        made = self.made[choice]
        assert choice in self.open
        if token is not None:
            made.append(token)
        assert made == self.tokens[: len(made)]
        if reason is None:
            return
        self.open.discard(choice)
        if reason == "length":
            assert made == self.tokens
        elif reason == "stop":
            assert choice in self.stopped
        else:
            assert reason == "cancelled" and self.is_cancelled


class Machine(RuleBasedStateMachine):
    """What may happen to an engine of few rows and pages."""

    engine = None

    def __init__(self):
        super().__init__()
        self.known, self.before = {}, self.engine.stats()
        self.cached = 0

    def pick(self, number):
        """A request that has not ended, or None."""
        alive = [each for each, request in self.known.items() if request.open]
        return alive[number % len(alive)] if alive else None

    @rule(
        beginning=st.sampled_from(BEGINNINGS), more=st.lists(st.integers(0, 5), max_size=6),
        count=st.integers(1, 16), choices=st.sampled_from([1, 1, 2]),
        priority=st.integers(-1, 1), salt=st.sampled_from(["", "", "a"]),
        user=st.sampled_from(["", "b"]),
    )  # fmt: skip
    def submit(self, beginning, more, count, choices, priority, salt, user):
        prompt = [*beginning, *more] or [7]
        sampling = Sampling(max_tokens=count, choices=choices)
        number = self.engine.begin(prompt, sampling, Turn(priority, user, None, salt))
        self.known[number] = Expected(prompt, count, choices)

    @rule()
    def submit_what_never_fits(self):
        with pytest.raises(ContextError):
            self.engine.begin([1] * CONTEXT, Sampling(max_tokens=1))

    @precondition(lambda self: self.pick(0) is not None)
    @rule(number=st.integers(0, 99))
    def cancel(self, number):
        chosen = self.pick(number)
        self.known[chosen].is_cancelled = True
        self.engine.cancel(chosen)
        SEEN["cancelled"] += 1

    @precondition(lambda self: self.pick(0) is not None)
    @rule(number=st.integers(0, 99))
    def stop(self, number):
        chosen = self.pick(number)
        choice = min(self.known[chosen].open)
        self.known[chosen].stopped.add(choice)
        self.engine.cancel(chosen, choice, stopped=True)
        SEEN["stopped"] += 1

    @precondition(lambda self: self.engine._loop.has_work)
    @rule(count=st.integers(1, 4))
    def step(self, count):
        for _ in range(count):
            if self.engine._loop.has_work:
                self.advance()

    @rule()
    def finish(self):
        while self.engine._loop.has_work:
            self.advance()
        stats = self.engine.stats()
        assert not any(request.open for request in self.known.values())
        assert stats["running"] == stats["waiting"] == stats["used_pages"] == stats["rows"] == 0

    @rule(salt=st.integers(0, 2))
    def evict(self, salt):
        """A text that needs all pages pushes out what is cached."""
        prompt = [50 + salt] * (PAGES - 3) * SIZE
        number = self.engine.begin(prompt, Sampling(max_tokens=2), Turn(cache_salt=str(salt)))
        self.known[number] = Expected(prompt, 2, 1)
        self.finish()

    def advance(self):
        for number, choice, token, reason, *_ in self.engine._loop.advance(self.engine._record):
            self.known[number].add(choice, token, reason)
        stats = self.engine.stats()
        SEEN["evictions"] += stats["cached_pages"] < self.cached
        self.cached = stats["cached_pages"]

    @invariant()
    def pages_and_requests_are_conserved(self):
        stats = self.engine.stats()
        assert stats["free_pages"] + stats["cached_pages"] + stats["used_pages"] == PAGES
        assert min(stats["free_pages"], stats["cached_pages"], stats["used_pages"]) >= 0
        ended = stats["finished"] + stats["aborted"] + stats["failed"]
        assert stats["started"] == ended + stats["running"]
        assert stats["failed"] == 0 and 0 <= stats["rows"] <= ROWS
        alive = sum(bool(request.open) for request in self.known.values())
        assert stats["running"] <= alive

    def teardown(self):
        for number in self.known:
            self.engine.cancel(number)
        while self.engine._loop.has_work:  # also behind a failure: the engine is that of others
            self.engine._loop.advance(self.engine._record)
        stats = self.engine.stats()
        for name in ("preemptions", "shared_tokens"):
            SEEN[name] += stats[name] - self.before[name]
        assert stats["running"] == stats["waiting"] == stats["used_pages"] == stats["rows"] == 0


def test_any_order_of_events_conserves_pages_and_requests(engine):
    Machine.engine = engine
    bounds = settings(
        max_examples=40, stateful_step_count=30, deadline=None, derandomize=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    machine = Machine.TestCase()
    machine.settings = bounds
    machine.runTest()
    assert all(SEEN.values()), SEEN  # the machine has reached all of this
