"""The engine when calls of the driver fail: each call of a run once."""

import textwrap

from children import run_child

PROLOGUE = """
import kernwright as kw
from kernwright._core import _faults as faults
from kernwright.llm._engine import TokenEngine
from kernwright.llm._sampling import Sampling

faults.install("sim")
faults.forbid_late_calls()


def model(step):
    last = step.select(step.tokens).reshape(-1, 1)
    target = (last * 31 + step.select(step.positions).reshape(-1, 1)) % 61
    return (kw.arange(61, dtype="int32").reshape(1, -1) == target).astype("float32")


def expected(prompt, count):
    tokens = list(prompt)
    for _ in range(count):
        tokens.append((tokens[-1] * 31 + len(tokens) - 1) % 61)
    return tokens[len(prompt):]


engine = TokenEngine(
    model, vocabulary=61, cache_layers=[], capacity=64, max_rows=4, page_size=4,
    max_tokens_per_step=16,
)
PROMPTS = [[5, 6, 7], list(range(20))]


def tokens():
    made = engine.run(PROMPTS, Sampling(max_tokens=3))
    return [each.tokens for (each,) in made]


RIGHT = [expected(prompt, 3) for prompt in PROMPTS]
"""


def run(code):
    ended = run_child(PROLOGUE + textwrap.dedent(code), KERNWRIGHT_DEVICE="sim")
    assert (ended.code, ended.err) == (0, "")


def test_after_any_failed_call_the_engine_goes_on():
    run("""
    assert tokens() == RIGHT
    before = faults.calls()
    assert tokens() == RIGHT
    calls = faults.calls() - before
    failed = {}
    for call in range(1, calls + 1):
        faults.arm("", 1, call)
        try:
            assert tokens() == RIGHT
            assert faults.fired() == 1
            continue
        except kw.DriverError as error:
            failed[faults.last_function()] = str(error)
        faults.disarm()
        assert tokens() == RIGHT, call
        stats = engine.stats()
        assert (stats["used_pages"], stats["running"], stats["waiting"]) == (0, 0, 0)
    wanted = {"cuGraphLaunch", "cuEventRecord", "cuEventSynchronize", "cuLaunchKernelEx"}
    assert wanted <= set(failed), failed
    """)


def test_other_streams_say_that_a_step_failed():
    run("""
    stream = engine.stream([3], Sampling(max_tokens=40))
    next(stream)
    faults.arm("cuGraphLaunch", 1)
    try:
        tokens()
    except kw.DriverError:
        pass
    try:
        for _ in range(40):
            next(stream)
        raise SystemExit("no error")
    except kw.Error as error:
        assert "a step failed" in str(error), error
    assert tokens() == RIGHT
    """)


def test_no_call_of_the_driver_holds_pythons_lock():
    run("""
    tokens()
    faults.watch_gil()
    assert tokens() == RIGHT
    assert not faults.names_called_with_gil(), faults.names_called_with_gil()
    """)
