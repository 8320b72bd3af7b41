"""What a session tunes: checked as a whole, and known by its key."""

import numpy as np
import pytest

from kernwright import _core, tune
from kernwright.errors import Error
from kernwright.tune._launch_rule import LaunchRule
from kernwright.tune._sessions.subject import Subject

TEXT = "__global__ void scale(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= F; }"
ARGS = (np.ones(8, np.float32), 8)


def subject(text=TEXT, args=ARGS, **more):
    space = tune.Space(F=[2, 3], BLOCK=[32, 64])
    given = {"cluster": None, "problem": None, "constants": None, "default": None, **more}
    return Subject(text, space, args, LaunchRule("1", "BLOCK", 0), **given)


def test_the_first_configuration_stands_for_all_or_the_default_does():
    first = subject()
    assert first.name == "scale"
    assert first.default_index is None and first.reference_index == 0
    chosen = subject(default={"F": 3, "BLOCK": 64})
    assert chosen.default_index == chosen.reference_index == chosen.space.index(chosen.default)
    assert chosen.settings()["default"] == chosen.default_index


def test_the_planner_gives_the_launch_of_each_configuration():
    made = subject()
    plan = made.planner()
    blocks = {plan(index)[3][0] for index in range(len(made.space))}
    assert blocks == {32, 64}


def test_the_key_is_that_of_the_text_and_the_space():
    def key(**more):
        return subject(**more).key(_core.current_device(), "cold", "time")

    assert key() == key()
    assert key(text=TEXT.replace("*=", "+="))["source"] != key()["source"]


def test_what_no_configuration_can_run_is_refused():
    with pytest.raises(Error, match="takes 2 arguments"):
        subject(args=ARGS[:1])
    with pytest.raises(Error, match="nowhere"):
        subject(constants={"nowhere": np.ones(1)})


def test_a_verifier_is_made_where_something_is_to_be_compared():
    made = subject()
    assert made.verifier(None, None, None, None) is None
    assert made.verifier("default", None, None, None).wants_default
