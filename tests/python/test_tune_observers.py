"""tune_kernel(observers=...) and the observers of sensors, with packages that a test makes."""

import numpy as np
import pytest

import kernwright as kw
from kernwright.tune import observers
from kernwright.tune.observers.register import RegisterObserver

N = 100
A = np.random.default_rng(4).random(N, np.float32)
DOUBLE = """
__global__ void twice(float* y, const float* x, int n) {
  int i = blockIdx.x * block_size_x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + WRONG;
}
"""


def twice(*watching, x=A, **more):
    given = {
        "tune_params": {"block_size_x": [32, 64], "WRONG": [0]}, "answer": [2 * A, None, None],
        "iterations": 3, "quiet": True, **more,
    }  # fmt: skip
    return kw.tune.tune_kernel(
        "twice", DOUBLE, N, [np.zeros_like(A), x, np.int32(N)], observers=list(watching), **given
    )


class Diary(observers.BenchmarkObserver):
    """Writes down who called it."""

    def __init__(self):
        self.calls = []

    def register_device(self, dev):
        super().register_device(dev)
        self.calls.append("device")

    def register_configuration(self, params):
        self.calls.append(params["block_size_x"])

    def before_start(self):
        self.calls.append("before")

    def after_start(self):
        self.calls.append("start")

    def after_finish(self):
        self.calls.append("finish")

    def get_results(self):
        calls, self.calls = [c for c in self.calls if c != "device"], []
        return {"calls": calls, "count": np.int64(len(calls)), "time": -1.0}


def test_an_observer_is_called_around_each_launch():
    diary = Diary()
    results, env = twice(diary, metrics={"double": "count * 2"})
    one = ["before", "start", "finish"]
    assert [row["calls"] for row in results] == [[32, *one * 3], [64, *one * 3]]
    assert all(type(row["count"]) is int and row["double"] == 20 for row in results)
    assert all(row["time"] > 0 for row in results)  # the tuner's own
    device = kw.current_device()
    assert diary.dev.name == device.name and diary.dev.env["uuid"] == device.uuid
    assert env["best_config"]["calls"] and env.session.best.config["WRONG"] == 0


def test_observers_may_be_made_by_a_class_or_a_function():
    told = []

    def make(facts):
        told.append(facts)
        return Diary()

    class Named(Diary):
        def __init__(self, facts):
            super().__init__()
            self.lang = facts["lang"]

        def get_results(self):
            return {"lang": self.lang}

    results, _ = twice(Named, make, tune_params={"block_size_x": [32], "WRONG": [0]})
    assert results[0]["count"] == 10 and results[0]["lang"] == "CUDA"
    assert told[0]["lang"] == "CUDA" and told[0]["device"] == 0


def test_a_configuration_that_fails_is_not_observed():
    diary = Diary()
    results, env = twice(diary, tune_params={"block_size_x": [32], "WRONG": [0, 1, "none"]})
    assert ["calls" in row for row in results] == [True, False, False]
    assert [str(row["time"]) for row in results[1:]] == [
        "RuntimeFailedConfig", "CompilationFailedConfig",
    ]  # fmt: skip
    assert env["best_config"]["WRONG"] == 0


def test_what_is_observed_may_be_the_objective():
    class Size(Diary):
        def get_results(self):
            return {"size": [c for c in self.calls if isinstance(c, int)][-1]}

    _, env = twice(Size(), objective="size", objective_higher_is_better=True)
    assert env["best_config"]["block_size_x"] == 64
    _, env = twice(Size(), objectives={"time": False, "size": False})
    assert 32 in [row["block_size_x"] for row in env["best_config"]]


def test_a_prologue_has_a_launch_of_its_own():
    class Prologue(observers.PrologueObserver):
        calls = ""

        def before_start(self):
            self.calls += "b"

        def after_finish(self):
            self.calls += "f"

        def get_results(self):
            return {"prologue": self.calls}

    results, _ = twice(Prologue(), Diary(), tune_params={"block_size_x": [32], "WRONG": [0]})
    assert results[0]["prologue"] == "bf" and results[0]["count"] == 10


def test_a_continuous_observer_reads_power_while_launches_go_on():
    class Meter(Diary):
        watts = 3.0

        def __init__(self):
            super().__init__()
            power = ["meter_power", "meter_energy", "power_readings"]
            self.continuous_observer = observers.ContinuousObserver("meter", power, self, 0.01)

        def read_power(self):
            return self.watts

        def get_results(self):
            return {"seen": len(self.calls)}

    results, _ = twice(Meter(), tune_params={"block_size_x": [32], "WRONG": [0]})
    (row,) = results
    assert row["meter_power"] == 3.0 and row["meter_energy"] > 0
    assert {watts for _, watts in row["power_readings"]} == {3.0}
    assert row["pwr_seen"] == row["seen"] + 3
    for wrong in ({"observables": ["watts"]}, {"observables": [], "continuous_duration": 0}):
        with pytest.raises(kw.InvalidArgument):
            observers.ContinuousObserver("meter", parent=None, **wrong)


def test_outputs_are_shown_to_an_observer_instead_of_being_compared():
    class Sums(observers.OutputObserver):
        def process_output(self, answer, output):
            self.sums = [None if o is None else float(o.sum()) for o in output]
            self.answer = answer

        def get_results(self):
            return {"sums": self.sums}

    params = {"block_size_x": [32], "WRONG": [0, 1]}
    watching = Sums()
    results, _ = twice(watching, tune_params=params)
    sums = [row["sums"] for row in results]
    np.testing.assert_allclose([s[0] for s in sums], [2 * A.sum(), 2 * A.sum() + N], rtol=1e-6)
    assert [s[1:] for s in sums] == [[None, None]] * 2 and len(watching.answer) == 3
    results, _ = twice(watching, tune_params=params, answer=None)
    assert results[0]["sums"][1:] == [pytest.approx(A.sum()), None]
    verified, _ = twice(
        watching, tune_params=params, verify=lambda answer, result: np.allclose(result[0], 2 * A)
    )
    assert ["__error__" in row for row in verified] == [False, True]
    with pytest.raises(kw.InvalidArgument, match="1 values for 3 arguments"):
        twice(watching, answer=[2 * A])


def test_registers_are_those_of_the_kernel():
    results, env = twice(RegisterObserver())
    used = [trial.resources.registers for trial in env.session.trials]
    assert [row["num_regs"] for row in results] == used


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("nvml", "a list of observers, got str"),
        ([object()], "an observer has get_results"),
        ([lambda facts: 5], "has a int"),
    ],
)
def test_what_is_no_observer_is_refused(given, said):
    with pytest.raises(kw.ArgumentError, match=said):
        kw.tune.tune_kernel(
            "twice", DOUBLE, N, [A, A, np.int32(N)], {"block_size_x": [32], "WRONG": [0]},
            observers=given,
        )  # fmt: skip


@pytest.mark.parametrize("found", [None, [1], "value"])
def test_results_of_an_observer_are_a_dict(found):
    class Odd(Diary):
        def get_results(self):
            return found

    with pytest.raises(kw.ArgumentError, match=r"get_results\(\) of Odd gives a dict, got"):
        twice(Odd())


def test_an_error_of_an_observer_ends_the_tuning():
    class Broken(Diary):
        def after_finish(self):
            raise OSError("the meter is unplugged")

    with pytest.raises(OSError, match="unplugged"):
        twice(Broken())


class Sums(observers.OutputObserver):
    """The sum of the first output, and how often it was asked for."""

    asked = 0

    def __init__(self, names=("y",)):
        self.names = list(names)

    def process_output(self, answer, output):
        self.asked += 1
        self._sum = float(output[0].sum())

    def get_results(self):
        return {"sum": self._sum, "names": self.names}


def test_a_cache_keeps_what_was_observed(tmp_path):
    path, first, second = tmp_path / "store.jsonl", Sums(), Sums()
    params = {"block_size_x": [32, 64], "WRONG": [0, "none"]}
    results, _ = twice(first, cache=path, tune_params=params)
    again, env = twice(second, cache=path, tune_params=params)
    assert first.asked == 2 and second.asked == 0 and again == results
    assert results[0]["sum"] == pytest.approx(2 * A.sum(), rel=1e-6)
    assert all(trial.resumed for trial in env.session.trials)
    assert [trial.number for trial in env.session.trials] == [0, 1, 2, 3]
    assert kw.tune.Store(path).problems == []
    replayed, env = twice(Sums(), cache=path, tune_params=params, simulation_mode=True)
    assert [row.get("sum") for row in replayed] == [row.get("sum") for row in results]
    third, _ = twice(cache=path, tune_params=params)  # a session without observers
    assert ["sum" in row for row in third] == [False] * 4


@pytest.mark.parametrize(
    "change",
    [
        {"observers": [Sums(["z"])]}, {"answer": [3 * A, None, None]}, {"x": A + 1},
        {"observers": [Sums(), Diary()]},
    ],
)  # fmt: skip
def test_another_observer_or_other_arrays_are_observed_anew(tmp_path, change):
    path = tmp_path / "store.jsonl"
    params = {"tune_params": {"block_size_x": [32], "WRONG": [0]}, "cache": path}
    twice(Sums(), **params)
    watching = change.pop("observers", [Sums()])
    results, _ = twice(*watching, **params, **change)
    assert watching[0].asked == 1 and len(kw.tune.Store(path).rows("trial")) == 2
    if "x" in change:
        assert results[0]["sum"] == pytest.approx(2 * (A + 1).sum(), rel=1e-6)


def test_a_cache_refuses_values_that_are_no_data(tmp_path):
    class Odd(Diary):
        def get_results(self):
            return {"value": object()}

    assert "value" in twice(Odd())[0][0]
    with pytest.raises(kw.ArgumentError, match="cache= keeps numbers, texts and lists"):
        twice(Odd(), cache=tmp_path / "store.jsonl")

    class NotANumber(Diary):
        def get_results(self):
            return {"value": float("nan")}

    path = tmp_path / "numbers.jsonl"
    assert np.isnan([row["value"] for row in twice(NotANumber(), cache=path)[0]]).all()
    assert kw.tune.Store(path).rows("trial") == []  # JSON has no NaN: it is observed again


def test_a_disk_that_refuses_costs_the_cache_alone(tmp_path, monkeypatch):
    def full(self, *rows):
        raise kw.StoreError("no space left")

    monkeypatch.setattr(kw.tune.Store, "append", full)
    with pytest.warns(RuntimeWarning, match="its trials are not kept: no space left") as told:
        results, _ = twice(Diary(), cache=tmp_path / "store.jsonl")
    assert len(results) == 2 and len(told) == 1
