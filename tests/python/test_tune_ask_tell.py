"""Trials that somebody else measures: ask() and tell()."""

import json
import math

import pytest
from tune_sessions import session

import kernwright as kw


def test_ask_and_tell():
    tuned = session(budget={"evaluations": 4}, strategy="random")
    trials = []
    while (trial := tuned.ask()) is not None:
        trials.append(trial)
    assert len({trial.config for trial in trials}) == 4
    assert tuned.tell(trials[0], 1.5).time == 1.5
    assert tuned.tell(trials[1], [3.0, 1.0, 2.0]).time == 2.0
    assert tuned.tell(trials[2], "runtime", "it fell over").error == "it fell over"
    for wrong in ("fine", -1.0, math.nan, [], object()):
        with pytest.raises((kw.InvalidArgument, kw.ArgumentError)):
            tuned.tell(trials[3], wrong)
    with pytest.raises(kw.InvalidArgument, match="told already"):
        tuned.tell(trials[0], 1.0)
    assert tuned.best.config == trials[0].config
    assert [trial.status for trial in tuned.trials] == ["correct", "correct", "runtime"]
    assert tuned.reason is None
    tuned.tell(trials[3], "compile")
    assert tuned.reason == "budget" and len(tuned.trials) == 4


def test_what_was_told_is_one_trial_in_a_session_that_goes_on():
    tuned = session()
    told = tuned.tell(tuned.ask(), 1e9)
    assert tuned.run().config != told.config
    assert sorted(trial.number for trial in tuned.trials) == list(range(6))


def test_what_the_store_knows_is_not_asked_for_and_counts(tmp_path):
    def asked(**more):
        tuned, configs = session(store=tmp_path / "store.jsonl", **more), []
        while (trial := tuned.ask()) is not None:
            configs.append(trial.config)
            tuned.tell(trial, 1.0 + trial.config["VEC"])
        return tuned, configs

    first, configs = asked(budget={"evaluations": 2})
    assert len(configs) == 2 and first.reason == "budget"
    second, configs = asked()
    assert len(configs) == 4 and second.reason == "complete"
    assert [trial.resumed for trial in second.trials].count(True) == 2
    third, configs = asked()
    assert configs == [] and third.best.config == second.best.config
    assert len(third.trials) == 6 and all(trial.resumed for trial in third.trials)
    rows = [json.loads(line) for line in (tmp_path / "store.jsonl").read_text().splitlines()]
    assert [row["kind"] for row in rows].count("result") == 3


def test_a_block_that_is_left_early_keeps_the_best(tmp_path):
    store = kw.tune.Store(tmp_path / "store.jsonl")
    with session(store=store) as tuned:
        tuned.tell(tuned.ask(), 2.0)
        best = tuned.tell(tuned.ask(), 1.0).config
        tuned.ask()
    with pytest.raises(ZeroDivisionError), session(store=store, seed=1, verify=None) as other:
        for _ in other:
            raise ZeroDivisionError
    first, second = store.results
    assert first["config"] == dict(best) and first["reason"] == tuned.reason == "cancelled"
    assert second["reason"] == "cancelled"
    with session(store=store) as unused:
        pass
    assert unused.reason is None and len(store.results) == 2
