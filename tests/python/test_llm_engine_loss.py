"""llm.Engine when its thread ends, or a step fails or hangs: nobody waits in vain."""

import pathlib
import textwrap

from children import run_child

PROLOGUE = f"""
import sys
import threading
import time
import kernwright as kw
from kernwright import llm
from kernwright._core import _faults as faults

faults.install("sim")
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
from summing_model import expected, make_model

engine = llm.Engine(make_model(), max_rows=2, max_tokens_per_step=24, step_limit=0.5)
assert engine.submit([1, 2], max_tokens=5).result(60).tokens == expected([1, 2], 5)


def error_of(call):
    try:
        call()
    except kw.Error as error:
        return error
    raise AssertionError("no error")


def wait_until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
"""


def run(code):
    ended = run_child(PROLOGUE + textwrap.dedent(code), KERNWRIGHT_DEVICE="sim")
    assert (ended.code, ended.err) == (0, "")


def test_the_end_of_the_thread_fails_what_runs_and_closes_the_engine():
    run("""
    from kernwright.llm._engine import TokenEngine

    engine.close()
    ends = threading.Event()

    def serve(self, between):
        ends.wait(20)
        raise kw.DeviceLost("the device is gone")

    TokenEngine.serve = serve
    engine = llm.Engine(make_model(), max_rows=2)
    assert engine.healthy
    requests = [engine.submit([3], max_tokens=80) for _ in range(3)]
    function = engine.between_steps(lambda: 1)
    ends.set()
    error = error_of(lambda: function.result(20))
    assert isinstance(error, llm.EngineClosed) and "the device is gone" in str(error), error
    for request in requests:
        error = error_of(lambda: request.result(20))
        assert isinstance(error, llm.EngineClosed) and "the device is gone" in str(error), error
        assert request.finish_reason == "error"
    assert not engine.healthy
    error = error_of(lambda: engine.submit([1]))
    assert isinstance(error, llm.EngineClosed) and "the device is gone" in str(error), error
    engine.close()
    names = [each.name for each in threading.enumerate()]
    assert "kernwright-engine" not in names and "kernwright-text" not in names
    """)


def test_a_failed_step_fails_its_requests_and_the_engine_goes_on():
    run("""
    request = engine.submit([1, 2], max_tokens=80)
    next(request)
    faults.arm("cuGraphLaunch", 1)
    assert "cuGraphLaunch" in str(error_of(lambda: request.result(60)))
    assert engine.healthy
    assert engine.submit([1, 2], max_tokens=5).result(60).tokens == expected([1, 2], 5)
    stats = engine.stats()
    assert (stats["failed"], stats["used_pages"]) == (1, 0)
    engine.close()
    """)


def test_a_step_that_hangs_is_noticed():
    run("""
    request = engine.submit([1, 2], max_tokens=80)
    next(request)
    faults.arm("cuEventSynchronize", 0, delay=4.0, after=True)
    began = time.monotonic()
    error = error_of(lambda: request.result(60))
    assert time.monotonic() - began < 3.5
    assert isinstance(error, llm.EngineClosed) and "within 0.5 s" in str(error), error
    assert not engine.healthy
    assert "step_limit" in str(error_of(lambda: engine.submit([1])))
    began = time.monotonic()
    engine.close()
    assert time.monotonic() - began < 1
    engine._delivery._steps.join(20)  # the call returns after all
    """)


def test_a_device_that_hangs_in_front_of_a_new_graph_is_noticed():
    """Changes of rows are sent before a step of another size is recorded: that waits, too."""
    run("""
    for _ in range(3):
        assert engine.submit([1, 2], max_tokens=9).result(60).tokens == expected([1, 2], 9)
    requests = [engine.submit([3, 4], max_tokens=80)]

    def grow():  # the next step has two rows, whose graph is not there yet
        requests.append(engine.submit([5], max_tokens=80))
        faults.arm("cuEventSynchronize", 0, delay=4.0, after=True)

    engine.between_steps(grow).result(20)
    for request in requests:
        error = error_of(lambda: request.result(3.5))
        assert isinstance(error, llm.EngineClosed) and "within 0.5 s" in str(error), error
    assert not engine.healthy
    engine.close()
    engine._delivery._steps.join(20)  # the call returns after all
    """)


def test_the_thread_of_steps_needs_no_lock_of_python():
    run("""
    made = engine.submit([1, 2], max_tokens=3).result(60)
    faults.watch_gil()
    assert engine.submit([1, 2], max_tokens=30).result(60).tokens == expected([1, 2], 30)
    assert faults.names_called_with_gil() == set()
    engine.close()
    """)


def test_an_engine_that_is_not_closed_lets_the_process_end():
    run("""
    waiting = engine.submit([1, 2], max_tokens=90)
    """)
