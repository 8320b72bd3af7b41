"""What a session minimises."""

import math

import numpy as np
import pytest
from tune_sessions import session

import kernwright as kw


def test_objectives():
    tuned = session(objective=lambda trial: -trial.config["BLOCK"])
    assert tuned.run().config["BLOCK"] == 128
    tuned = session(objective=["time", lambda trial: -trial.config["BLOCK"]])
    tuned.run()
    front = tuned.front
    assert front and any(trial.config["BLOCK"] == 128 for trial in front)

    def fails(trial):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        session(objective=fails).run()
    for none in (math.nan, math.inf, -math.inf):
        tuned = session(objective=lambda trial, none=none: none)
        with pytest.warns(RuntimeWarning, match="no finite number"):
            assert tuned.run() is None
    for wrong in (10**400, np.zeros(3), 1j, "fast"):
        with pytest.raises(kw.ArgumentError, match="the objective <lambda> gave"):
            session(objective=lambda trial, wrong=wrong: wrong).run()
    for wrong in ("speed", [], 5):
        with pytest.raises(kw.InvalidArgument):
            session(objective=wrong)


def test_objectives_are_told_apart_whatever_their_names():
    def time(trial):
        return -trial.config["BLOCK"]

    tuned = session(objective=time)
    assert tuned.run().config["BLOCK"] == 128
    tuned = session(
        objective=[lambda trial: trial.config["BLOCK"], lambda trial: -trial.config["BLOCK"]]
    )
    tuned.run()
    assert {trial.config["BLOCK"] for trial in tuned.front} == {32, 64, 128}
    for both in ([time, "time"], ["time", time]):
        tuned = session(objective=both)
        tuned.run()
        assert {"time", "time 2"} <= set(tuned.trials[0].metrics)


def test_a_function_may_have_the_name_of_a_measure():
    def energy(trial):
        return -trial.config["BLOCK"]

    assert session(objective=energy).run().config["BLOCK"] == 128
