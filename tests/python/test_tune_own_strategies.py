"""tune_kernel(strategy=...) with strategies of the caller, and Kernel Tuner's helpers for them."""

import json
import types

import numpy as np
import pytest

import kernwright as kw
from kernwright.tune.file_utils import store_metadata_file, store_output_file
from kernwright.tune.searchspace import Searchspace
from kernwright.tune.strategies.common import CostFunc, get_options
from kernwright.tune.strategies.wrapper import OptAlg, OptAlgWrapper
from kernwright.tune.util import StopCriterionReached, get_best_config, get_config_string

N = 500
A = np.random.default_rng(7).random(N, np.float32)
TEXT = """
__global__ void add(float* y, const float* x, int n) {
  int first = (blockIdx.x * block_size_x + threadIdx.x) * TILE;
  for (int i = first; i < first + TILE && i < n; ++i) y[i] = x[i] + 1;
}
"""
PARAMS = {"block_size_x": [32, 64, 128], "TILE": [1, 2, 4]}


def tuned(strategy, text=TEXT, **more):
    given = {
        "answer": [A + 1, None, None], "grid_div_x": ["block_size_x", "TILE"], "quiet": True,
        "tune_params": PARAMS, **more,
    }  # fmt: skip
    return kw.tune.tune_kernel(
        "add", text, N, [np.zeros_like(A), A, np.int32(N)], strategy=strategy, **given
    )


def values(results):
    return [(row["block_size_x"], row["TILE"]) for row in results]


class Descent:
    """Goes to the best neighbour until none is better."""

    def tune(self, searchspace, runner, tuning_options):
        costs, known = CostFunc(searchspace, tuning_options, runner), {}
        place = tuple(costs.get_start_pos())
        self.path = [place]
        while True:
            around = [place, *searchspace.get_neighbors(place, "adjacent")]
            new = [each for each in around if each not in known]
            known.update(zip(new, costs.eval_all(new) if new else [], strict=True))
            best = min(around, key=known.__getitem__)
            if best == place:
                return costs.results
            place = best
            self.path.append(place)


def test_an_object_with_tune_chooses_the_configurations():
    descent = Descent()
    results, env = tuned(descent, strategy_options={"x0": (128, 4), "popsize": 7})
    rows = {(row["block_size_x"], row["TILE"]): row["time"] for row in results}
    assert descent.path[0] == values(results)[0] == (128, 4)
    assert len(results) == len(rows) <= 9  # each once
    (best,) = values([env["best_config"]])
    assert best == descent.path[-1] and rows[best] == min(rows.values())
    if kw.current_device().is_simulated:
        assert env.session.best.config["TILE"] == env["best_config"]["TILE"]
    # On a GPU the session corrects its scores by a reference for the drift of clocks.
    scores = [trial.score for trial in env.session.trials if trial.score is not None]
    assert len(scores) == len(rows) and env.session.best.score == min(scores)


def test_modules_and_functions_are_strategies():
    def tune(searchspace, runner, tuning_options):
        assert searchspace.size == 9 and tuning_options.budget.max_fevals == 9
        assert tuning_options["objective"] == ["time"] and not tuning_options.verbose
        assert tuning_options.strategy_options.seed == 3
        rows = runner.run([(64, 1), (32, 4), (64, 1)], tuning_options)
        assert rows[0] == rows[2] and rows[0]["time"] > 0

    for strategy in (tune, types.SimpleNamespace(tune=tune)):
        results, _ = tuned(strategy, strategy_options={"seed": 3})
        assert values(results) == [(64, 1), (32, 4)]


def test_a_budget_ends_a_strategy():
    def greedy(searchspace, runner, tuning_options):
        costs = CostFunc(searchspace, tuning_options, runner)
        for each in searchspace.sorted_list():
            costs(each)
        pytest.fail("the budget is above 4 evaluations")

    results, _ = tuned(greedy, strategy_options={"max_fevals": 4})
    assert values(results) == [(32, 1), (32, 2), (32, 4), (64, 1)]

    def asks_for_all(searchspace, runner, tuning_options):
        rows = runner.run(searchspace.list, tuning_options)
        assert [row is None for row in rows] == [False] * 2 + [True] * 7
        assert tuning_options.budget.get_fraction_consumed() == 1
        raise StopCriterionReached("enough")

    assert len(tuned(asks_for_all, strategy_options={"max_fevals": 2})[0]) == 2
    results, _ = tuned(asks_for_none := lambda *all_of_it: None)
    assert results == [] and callable(asks_for_none)
    with pytest.raises(kw.InvalidArgument, match="time_limit is -1"):
        tuned(greedy, strategy_options={"time_limit": -1})


def test_an_algorithm_is_wrapped():
    class Random(OptAlg):
        def __call__(self, func, searchspace):
            while True:
                func(searchspace.get_random_sample(1)[0])

    results, _ = tuned(OptAlgWrapper(Random()), strategy_options={"max_fevals": 20})
    again, _ = tuned(Random(), strategy_options={"max_fevals": 3})
    assert 1 <= len(results) <= 9 and 1 <= len(again) <= 3
    plain = OptAlgWrapper(lambda func, searchspace: func((64, 2)))
    assert values(tuned(plain)[0]) == [(64, 2)]


def test_errors_of_a_strategy_reach_the_caller():
    def broken(searchspace, runner, tuning_options):
        runner.run([(32, 1)], tuning_options)
        return tuning_options.population

    with pytest.raises(AttributeError, match="no option 'population'"):
        tuned(broken)
    with pytest.raises(kw.InvalidArgument, match="does not have"):
        tuned(lambda space, runner, options: runner.run([(32, 3)], options))
    with pytest.raises(kw.InvalidArgument, match="has 1 values"):
        tuned(lambda space, runner, options: runner.run([(32,)], options))
    with pytest.raises(kw.InvalidArgument, match="strategy= is a name"):
        tuned(5)
    for wrong in ("two", True, [3]):
        with pytest.raises(kw.ArgumentError, match="max_fevals is a number"):
            tuned(Descent(), strategy_options={"max_fevals": wrong})
    with pytest.raises(kw.ArgumentError, match="a tuple of values, got dict"):
        tuned(lambda space, runner, options: runner.run([{"block_size_x": 32}], options))


def test_failures_cost_more_than_all_others():
    found = {}

    def all_of_them(searchspace, runner, tuning_options):
        costs = CostFunc(searchspace, tuning_options, runner, invalid_value=1e9)
        found["restricted"] = costs((128, 4))
        for each in searchspace:
            found[each] = costs(each)

    wrong = TEXT.replace("x[i] + 1", "x[i] + (TILE != 2)")
    tuned(all_of_them, text=wrong, restrictions=["block_size_x < 128"])
    assert found.pop("restricted") == 1e9
    assert {values for values, cost in found.items() if cost == 1e9} == {(32, 2), (64, 2)}
    assert len(found) == 6


def test_a_strategy_searches_the_results_of_a_file(tmp_path):
    rows = {
        f"{b},{t}": {"block_size_x": b, "TILE": t, "time": b / 100 + t, "compile_time": 2.0}
        for b in PARAMS["block_size_x"] for t in PARAMS["TILE"]
    }  # fmt: skip
    rows["32,1"]["time"] = "RuntimeFailedConfig"
    path = tmp_path / "cache.json"
    document = {"kernel_name": "add", "tune_params_keys": list(PARAMS), "cache": rows}
    path.write_text(json.dumps(document))
    descent = Descent()
    results, env = tuned(
        descent, cache=path, simulation_mode=True, strategy_options={"x0": [128, 4]}
    )
    assert values([env["best_config"]]) == [(64, 1)] == descent.path[-1:]
    assert env["total_compile_time"] == 2 * len(results) and env.session is None
    assert env["best_config"]["time"] == pytest.approx(1.64)


def test_a_strategy_goes_on_with_a_cache(tmp_path):
    path, shown = tmp_path / "store.jsonl", []

    def at_hand(searchspace, runner, tuning_options):
        shown.append(runner.run([(32, 1), (64, 2)], tuning_options))

    first, _ = tuned(at_hand, cache=path)
    again, env = tuned(at_hand, cache=path)
    assert again == first and shown[0] == shown[1]
    assert [trial.resumed for trial in env.session.trials] == [True, True]
    tuned(at_hand, cache=path, text=TEXT.replace("+ 1", "+ 1.0f"))  # another source
    assert len(kw.tune.Store(path).rows("trial")) == 4
    foreign = tmp_path / "kernel.cu"
    foreign.write_text(TEXT)
    with pytest.raises(kw.InvalidArgument):
        tuned(at_hand, cache=foreign)
    assert foreign.read_text() == TEXT


def test_names_of_strategies_are_members_too(recwarn):
    strategies = kw.tune.strategies
    assert "portfolio" in strategies() and repr(strategies.pso) == "<strategy pso>"
    results, _ = tuned(strategies.random_sample, strategy_options={"max_fevals": 2}, seed=1)
    named, _ = tuned("random_sample", strategy_options={"max_fevals": 2}, seed=1)
    assert values(results) == values(named)
    assert not recwarn.list
    with pytest.raises(AttributeError, match="no strategy 'magic'"):
        _ = strategies.magic

    def first_at_random(searchspace, runner, tuning_options):
        found = strategies.random_sample.tune(searchspace, runner, tuning_options)
        assert len(found) == 5
        return found

    assert len(tuned(first_at_random, strategy_options={"max_fevals": 5})[0]) == 5


def space_of(**parameters):
    return Searchspace(kw.tune.Space(**parameters))


def test_a_searchspace_has_kernel_tuner_s_methods():
    space = Searchspace(kw.tune.Space(a=[4, 1, 2], b=[0, 1, 2]).require("a != 1 or b == 0"))
    assert space.size == len(space) == 7 and space.param_names == ["a", "b"]
    assert set(space.list) == {(4, 0), (4, 1), (4, 2), (1, 0), (2, 0), (2, 1), (2, 2)}
    assert space.sorted_list()[:4] == [(4, 0), (4, 1), (4, 2), (1, 0)]
    assert space.sorted_list(sort_last_param_first=True)[:4] == [(4, 0), (1, 0), (2, 0), (4, 1)]
    assert space.is_param_config_valid((1, 0)) and not space.is_param_config_valid((1, 1))
    assert space.get_param_config_index((1, 1)) is None
    index = space.get_param_config_index((2, 1))
    assert space.get_param_configs_at_indices([index]) == [(2, 1)]
    assert set(space.get_neighbors((2, 0), "Hamming")) == {(4, 0), (1, 0), (2, 1), (2, 2)}
    assert set(space.get_neighbors((2, 1), "strictly-adjacent")) == {(2, 0), (2, 2), (1, 0)}
    assert (4, 0) not in space.get_neighbors((2, 0), "adjacent")
    assert space.get_param_neighbors((2, 0), 1, "Hamming", randomize=False) == [1, 2]
    assert space.get_random_neighbor((1, 0)) in space.get_neighbors((1, 0))
    assert len(set(space.get_random_sample(99))) == 7
    assert space_of(a=[1]).get_random_neighbor((1,)) is None
    for wrong in (lambda: space.get_random_sample_indices(8), lambda: space.get_neighbors((2,)),
                  lambda: space.get_neighbors((2, 0), "near")):  # fmt: skip
        with pytest.raises(kw.InvalidArgument):
            wrong()


class Settings(dict):
    __getattr__ = dict.__getitem__


def costs_over(space, cost, **options):
    def run(configurations, _):
        return [{"time": cost(*each)} for each in configurations]

    settings = Settings(
        strategy_options={}, budget=kw.tune.util.TuningBudget(max_fevals=1000),
        objective=["time"], objective_higher_is_better=[False],
    )  # fmt: skip
    return CostFunc(space, settings, types.SimpleNamespace(run=run), **options)


def test_values_snap_to_the_nearest_and_scaled_ones_are_places():
    space = space_of(a=[1, 10, 100], b=["x", "y"])
    plain = costs_over(space, lambda a, b: a + (b == "y"))
    assert plain((7, "x")) == 10 and plain((1000, "y")) == 101
    assert plain.get_bounds() == [(1, 100), ("x", "y")]
    with pytest.raises(kw.InvalidArgument, match="is near none"):
        plain((1, "z"))
    strict = costs_over(space, lambda a, b: a, snap=False, invalid_value=5e5)
    assert strict((7, "x")) == 5e5 and strict((10, "x")) == 10
    scaled = costs_over(space, lambda a, b: a + (b == "y"), scaling=True)
    bounds, start, eps = scaled.get_bounds_x0_eps()
    assert bounds == [(0, 1), (0, 2 / 3)] and eps == 1 / 3 and start.shape == (2,)
    for place, value in ((-1.0, 1), (0.1, 1), (0.5, 10), (0.9, 100), (9.0, 100)):
        assert scaled((place, 0.0)) == value and scaled((place, 0.6)) == value + 1


def test_a_minimiser_of_scipy_finds_the_minimum():
    optimize = pytest.importorskip("scipy.optimize")
    space = space_of(a=list(range(20)), b=list(range(10)))
    costs = costs_over(space, lambda a, b: float((a - 13) ** 2 + (b - 4) ** 2), scaling=True)
    bounds, _, _ = costs.get_bounds_x0_eps()
    optimize.differential_evolution(costs, bounds, rng=np.random.default_rng(0), maxiter=15)
    assert min(row["time"] for row in costs.results) == 0


def test_options_of_strategies():
    known = {"fraction": ("how much", 0.1), "method": ("which", "best")}
    assert get_options({"method": "fast", "max_fevals": 3}, known) == [0.1, "fast"]
    with pytest.raises(kw.InvalidArgument, match="'speed'; the strategy takes: fraction"):
        get_options({"speed": 3}, known)
    with pytest.raises(kw.InvalidArgument, match="'x0'"):
        get_options({"x0": 3}, known, unsupported=["x0"])


def test_results_and_the_device_go_into_files(tmp_path):
    results, _ = tuned(None, tune_params={"block_size_x": [32, 64], "TILE": [1]})
    store_output_file(tmp_path / "new" / "rows", results, PARAMS)
    table = kw.tune.Table.from_t4(tmp_path / "new" / "rows.json")
    assert {config["block_size_x"]: cost for config, cost in table.costs.items()} == {
        row["block_size_x"]: row["time"] for row in results
    }
    store_metadata_file(str(tmp_path / "about.json"))
    document = json.loads((tmp_path / "about.json").read_text())
    query = document["metadata"]["environment"]["device_query"]
    assert query["name"] == kw.current_device().name
    broken, _ = tuned(
        None, tune_params={"block_size_x": [32], "TILE": [1], "WAY": ["nonsense", 1]},
        text=TEXT.replace("+ 1", "+ WAY"),
    )  # fmt: skip
    store_output_file(tmp_path / "broken.json", broken, PARAMS)
    rows = json.loads((tmp_path / "broken.json").read_text())["results"]
    assert [row["invalidity"] for row in rows] == ["compile", "correct"]
    assert get_best_config(broken, "time") is broken[1]
    assert get_config_string({"a": 1, "t": 0.25, "z": 3}, ["a", "t"], {"t": "ms"}) == (
        "a=1, t=0.250ms"
    )
    with pytest.raises(kw.InvalidArgument, match="no best result"):
        get_best_config(broken[:1], "time")
    with pytest.raises(kw.InvalidArgument, match="one objective"):
        store_output_file(tmp_path / "two.json", results, PARAMS, objective=["a", "b"])
