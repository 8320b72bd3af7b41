"""Which trials of an earlier session another one goes on with, and which results are no hits."""

import json

import numpy as np
import pytest

import kernwright as kw

pytestmark = pytest.mark.usefixtures("sim")

TEXT = """
#ifndef VEC
#define VEC 1
#endif
extern "C" __global__ void scale(const float* x, float* y, float a, int n) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) y[i] = (BLOCK == 64 ? WRONG : a) * x[i];
}
"""
N = 1000
X = np.arange(N, dtype=np.float32)


def session(store, space=None, wrong="9", **more):
    space = kw.tune.Space(BLOCK=[64, 128]) if space is None else space
    more = {"grid": "-(-n // BLOCK)", "block": "BLOCK", **more}
    return kw.tune.Session(
        TEXT.replace("WRONG", wrong), space, (X, kw.Out(np.zeros(N, np.float32)), 2.0, N),
        store=store, budget={"evaluations": 10}, **more,
    )  # fmt: skip


def outcome(made):
    made.run()
    return {trial.config["BLOCK"]: (trial.status, trial.resumed) for trial in made.trials}


def right(x, y, a, n):
    return None, a * x, None, None


def mistaken(x, y, a, n):
    return None, a * x + 1, None, None


def test_trials_are_taken_over_from_sessions_that_checked_alike(tmp_path):
    store = tmp_path / "s.jsonl"
    assert outcome(session(store)) == {64: ("correct", False), 128: ("correct", False)}
    assert outcome(session(store)) == {64: ("correct", True), 128: ("correct", True)}
    wanted = {64: ("correctness", False), 128: ("correct", False)}
    assert outcome(session(store, verify=right)) == wanted
    assert outcome(session(store, verify=right)) == {64: ("correctness", True),
                                                     128: ("correct", True)}  # fmt: skip
    expected = (None, 2 * X, None, None)  # the same values
    assert all(resumed for _, resumed in outcome(session(store, verify=expected)).values())
    assert outcome(session(store, verify=right, rtol=100, atol=1e6))[64] == ("correct", False)
    assert outcome(session(store, verify="default", default={"BLOCK": 64}))[64][1] is False


def test_a_mended_reference_checks_again(tmp_path):
    store = tmp_path / "s.jsonl"
    assert {status for status, _ in outcome(session(store, verify=mistaken)).values()} == {
        "correctness"
    }
    assert outcome(session(store, verify=right))[128] == ("correct", False)


def test_a_timeout_counts_while_the_limit_is_the_same(tmp_path):
    store = tmp_path / "s.jsonl"
    slow = "([] { volatile int q = 0; while (q < 300000) q = q + 1; return 2.0f; }())"
    assert outcome(session(store, wrong=slow, run_timeout=0.05))[64] == ("timeout", False)
    assert outcome(session(store, wrong=slow, run_timeout=0.05))[64] == ("timeout", True)
    found = outcome(session(store, wrong=slow, run_timeout=120))
    assert found == {64: ("correct", False), 128: ("correct", True)}


def test_trials_outlive_the_row_of_their_session(tmp_path):
    store = tmp_path / "s.jsonl"
    session(store).run()
    lines = store.read_text().splitlines()
    damaged = {**json.loads(lines[0]), "driver": "new", "device": 5}
    for first in ("", '{"v": 1, "ki', json.dumps(damaged)):
        store.write_text("\n".join([first, *lines[1:], ""]))
        assert outcome(session(store)) == {64: ("correct", True), 128: ("correct", True)}
        assert outcome(session(store, verify=right))[64] == ("correctness", False)


def test_a_damaged_line_is_warned_of_once_in_a_process(tmp_path, caplog):
    store = tmp_path / "s.jsonl"
    session(store).run()
    lines = [json.loads(line) for line in store.read_text().splitlines()]
    lines[1]["status"] = "fine"
    store.write_text('{"a":\n' + "".join(json.dumps(line) + "\n" for line in lines))
    caplog.clear()
    assert sorted(resumed for _, resumed in outcome(session(store)).values()) == [False, True]
    assert len(kw.tune.Store(store).problems) == 2
    session(store).run()
    told = caplog.text
    assert told.count("line 1 is no JSON object") == 1
    assert told.count('line 3 is a trial of the status "fine"') == 1


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("told", [{}, {"space": kw.tune.Space(BLOCK=[64, 128], VEC=[1, 2])}])
def test_a_result_of_a_narrower_space_is_no_hit(tmp_path, told):
    store = tmp_path / "s.jsonl"
    session(store, wrong="a").run()
    tuned = kw.kernel(TEXT.replace("WRONG", "a")).tuned(
        store, grid="-(-n // (BLOCK * VEC))", block="BLOCK", default={"BLOCK": 64, "VEC": 1}, **told
    )
    y = kw.zeros(N)
    tuned(kw.asarray(X), y, 2.0, N)
    np.testing.assert_array_equal(y.numpy(), 2 * X)
    choice = tuned.choice(n=N)
    assert not choice.from_store and dict(choice.config) == {"BLOCK": 64, "VEC": 1}


def test_the_best_of_a_broken_session_counts_in_one_with_another_seed(tmp_path):
    store, text = tmp_path / "s.jsonl", TEXT.replace("WRONG", "9")
    space = kw.tune.Space(BLOCK=range(32, 1024, 32))
    args = (X, kw.Out(np.zeros(N, np.float32)), 2.0, N)

    def broken(evaluations, take=None, **more):
        made = kw.tune.Session(
            text, space, args, grid="-(-n // BLOCK)", block="BLOCK", store=store,
            budget={"evaluations": evaluations}, **more,
        )  # fmt: skip
        for count, _ in enumerate(made, 1):
            if count == take:
                break
        return made

    first = broken(25, take=20)
    assert first.reason is None
    second = broken(3, seed=1)
    assert len(second.trials) == 3 and second.best.score <= first.best.score
    again = broken(25)
    assert sum(trial.resumed for trial in again.trials) >= 20


def test_another_function_of_trials_scores_again(tmp_path):
    def least(store, sign):
        made = session(store, wrong="a", objective=lambda trial: sign * trial.config["BLOCK"])
        return made.run().config["BLOCK"], {trial.resumed for trial in made.trials}

    store = tmp_path / "store.jsonl"
    assert least(store, -1) == (128, {False})
    assert least(store, 1) == (64, {False})
    assert least(store, -1) == (128, {True})
