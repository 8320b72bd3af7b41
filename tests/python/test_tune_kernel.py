"""tune_kernel() with the arguments of Kernel Tuner's function."""

import json
import warnings

import numpy as np
import pytest

import kernwright as kw
from kernwright.tune import tune_kernel

N = 1000
A, B = (np.random.default_rng(3).random((2, N))).astype(np.float32)
ADD = """
__global__ void vector_add(float *c, const float *a, const float *b, int n) {
  int i = blockIdx.x * block_size_x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
"""


def add(**more):
    given = {
        "kernel_name": "vector_add", "kernel_source": ADD, "problem_size": N,
        "arguments": [np.zeros_like(A), A, B, np.int32(N)],
        "tune_params": {"block_size_x": [32, 64, 128]}, "quiet": True,
        "answer": [A + B, None, None, None],
    }  # fmt: skip
    given.update(more)
    return tune_kernel(**given)


def times(results):
    return {result["block_size_x"]: result["time"] for result in results}


def test_the_first_example_of_its_guide():
    results, env = add()
    assert set(times(results)) == {32, 64, 128}
    assert all(isinstance(result["time"], float) for result in results)
    best = env["best_config"]
    if kw.current_device().is_simulated:
        assert best["time"] == min(times(results).values())
    for key in ("compile_time", "verification_time", "benchmark_time"):
        assert all(result[key] >= 0 for result in results)
    assert env["device_name"] == kw.current_device().name and env["iterations"] == 7


def test_a_metric_may_be_the_objective():
    results, env = add(
        objective="GFLOP/s",
        objective_higher_is_better=True,
        metrics={"GFLOP/s": lambda row: 2 * N / row["time"]},
    )
    assert all(result["time"] > 0 for result in results)
    assert all(result["GFLOP/s"] == 2 * N / result["time"] for result in results)
    assert env["best_config"]["GFLOP/s"] == max(result["GFLOP/s"] for result in results)


def test_results_that_are_wrong_or_do_not_compile_are_results():
    text = ADD.replace("a[i] + b[i]", "a[i] + WAY b[i]")
    results, env = add(
        kernel_source=text, tune_params={"block_size_x": [32], "WAY": ["", "2 *", "nonsense"]}
    )
    by_way = {result["WAY"]: result["time"] for result in results}
    assert isinstance(by_way[""], float)
    assert str(by_way["2 *"]) == "RuntimeFailedConfig"
    assert str(by_way["nonsense"]) == "CompilationFailedConfig"
    assert env["best_config"]["WAY"] == ""


@pytest.mark.parametrize(
    ("change", "blocks"),
    [
        ({"restrictions": ["block_size_x > 32"]}, {64, 128}),
        ({"restrictions": lambda p: p["block_size_x"] != 64}, {32, 128}),
        ({"restrictions": [lambda block_size_x: block_size_x < 128]}, {32, 64}),
        ({"tune_params": {"block_size_x": [32, 1 << 20]}}, {32}),
        ({"strategy": "random_sample", "strategy_options": {"max_fevals": 2}, "seed": 1}, 2),
    ],
)
def test_restrictions_and_budgets(change, blocks):
    found = set(times(add(**change)[0]))
    assert (len(found) if isinstance(blocks, int) else found) == blocks


@pytest.mark.parametrize(
    "change",
    [
        {"problem_size": (N,)},
        {"problem_size": "1000"},
        {"problem_size": lambda p: N},
        {"grid_div_x": ["block_size_x"]},
        {"grid_div_x": "block_size_x"},
        {"grid_div_x": lambda p: p["block_size_x"]},
        {"grid_div_x": [], "problem_size": lambda p: -(-N // p["block_size_x"])},
        {"kernel_source": lambda p: ADD},
        {"lang": "CUDA", "compiler_options": ["-std=c++14", "-O3", "-use_fast_math"]},
        {"kernel_source": ADD.replace("block_size_x", "blockDim.x * (kernel_tuner)")},
        {"kernel_source": ADD.replace("block_size_x", "bx"), "block_size_names": ["bx"],
             "tune_params": {"bx": [32, 64]}},
        {"defines": {"block_size_x": "block_size_x", "OTHER": 3}},
        {"verify": lambda answer, result, atol: np.allclose(result[0], A + B)},
        {"answer": None, "verify": lambda answer, result: np.allclose(result[0], A + B)},
        {"kernel_name": "vector_add<block_size_x>",
             "kernel_source": "template <int block>" + ADD.replace("block_size_x", "block")},
        {"smem_args": {"size": lambda p: 4 * p["block_size_x"]}},
    ],
)  # fmt: skip
def test_spellings(change):
    results, env = add(**change)
    assert results and all(isinstance(result["time"], float) for result in results), results
    assert "best_config" in env


def test_a_file_of_the_kernel(tmp_path):
    path = tmp_path / "add.cu"
    path.write_text(ADD)
    assert len(add(kernel_source=str(path))[0]) == 3


def test_verify_can_refuse():
    results, env = add(verify=lambda answer, result: False)
    assert all(str(result["time"]) == "RuntimeFailedConfig" for result in results)
    assert "best_config" not in env


def test_constant_memory():
    text = "__constant__ float weights[2];" + ADD.replace("+ b[i]", "* weights[1]")
    results, _ = add(
        kernel_source=text,
        cmem_args={"weights": np.array([1, 3], np.float32)},
        answer=[A * 3, None, None, None],
    )
    assert all(isinstance(result["time"], float) for result in results)


def test_metrics_and_objectives():
    metrics = {"rate": lambda p: 1e6 / p["time"], "twice": "rate * 2"}
    results, env = add(metrics=metrics, objective="twice", objective_higher_is_better=True)
    assert all(result["twice"] == 2 * result["rate"] for result in results)
    assert env["best_config"]["twice"] == max(result["twice"] for result in results)
    _, env = add(metrics={"size": "block_size_x"}, objectives={"time": False, "size": True})
    assert any(result["block_size_x"] == 128 for result in env["best_config"])
    with pytest.raises(kw.InvalidArgument, match="higher"):
        add(metrics=metrics, objective="twice")
    with pytest.raises(kw.InvalidArgument, match="speed"):
        add(objective="speed", objective_higher_is_better=True)


def test_a_cache_repeats_nothing(tmp_path):
    path = tmp_path / "cache.json"
    first, _ = add(cache=path)
    again, env = add(cache=path)
    assert times(first) == times(again)
    assert all(trial.resumed for trial in env.session.trials)
    foreign = tmp_path / "foreign.json"
    foreign.write_text('{\n"device_name": "A100",\n')
    with pytest.raises(kw.InvalidArgument, match="no store"):
        add(cache=foreign)
    assert foreign.read_text() == '{\n"device_name": "A100",\n'


def test_other_strategies_are_named():
    with pytest.warns(RuntimeWarning, match="portfolio searches instead"):
        add(strategy="pso", strategy_options={"max_fevals": 2})
    with pytest.warns(RuntimeWarning, match="popsize"):
        add(strategy="genetic_algorithm", strategy_options={"popsize": 20})


@pytest.mark.parametrize(
    "change",
    [
        {"lang": "OpenCL"}, {"platform": 1}, {"texmem_args": {"t": A}}, {"compiler": "nvcc"},
        {"simulation_mode": True}, {"observers": [object()]}, {"strategy": "magic"},
        {"iterations": 0}, {"compiler_options": "-O3"}, {"kernel_source": 5},
        {"problem_size": (1, 2, 3, 4)}, {"problem_size": 0.5}, {"tune_params": {}},
        {"answer": [A]}, {"grid_div_x": [0]}, {"strategy_options": 3},
    ],
)  # fmt: skip
def test_what_has_no_meaning_raises(change):
    with pytest.raises((kw.InvalidArgument, kw.ArgumentError)):
        add(**change)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"verify": "close"}, "verify= is a function"),
        ({"block_size_names": ["a", "b", "c", "d"]}, "4 names"),
        ({"block_size_names": "block"}, "list of up to three"),
        ({"smem_args": {"bytes": 64}}, "smem_args"),
        ({"strategy": "random_sample", "strategy_options": {"fraction": 0}}, "fraction"),
        ({"strategy": "random_sample", "strategy_options": {"fraction": "half"}}, "fraction"),
    ],
)
def test_wrong_values_are_named(change, told):
    with pytest.raises((kw.InvalidArgument, kw.ArgumentError), match=told):
        add(**change)


def test_a_fraction_of_the_space_is_a_budget():
    results, _ = add(strategy="random_sample", strategy_options={"fraction": 0.5})
    assert len(results) == 2
    options = {"fraction": 0.9, "max_fevals": 1}
    assert len(add(strategy="random_sample", strategy_options=options)[0]) == 1


def test_a_parameter_without_a_use_is_warned_of():
    with pytest.warns(RuntimeWarning, match="does not use LEFT"):
        add(
            tune_params={"block_size_x": [32], "LEFT": [1, 2], "WORK": [1]},
            grid_div_x=["WORK * 32"],
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        add(tune_params={"block_size_x": [32], "WORK": [1]}, grid_div_x=lambda p: 32 * p["WORK"])
        add(kernel_source=ADD.replace("int i", "int w = WORK; int i"),
            tune_params={"block_size_x": [32], "WORK": [1]})  # fmt: skip


def test_it_prints_as_the_original_does(capsys):
    add(quiet=False)
    out = capsys.readouterr().out
    assert "block_size_x=64, time=" in out
    assert "BEST PERFORMING CONFIGURATION FOR OBJECTIVE time:" in out


def test_results_and_environment_are_plain_data_of_json():
    text = ADD.replace("a[i] + b[i]", "a[i] + WAY b[i]")
    results, env = add(
        kernel_source=text,
        tune_params={"block_size_x": [32], "WAY": ["", "nonsense"]},
        metrics={"GFLOP/s": lambda row: np.float32(2 * N / row["time"])},
    )
    rows, told = json.loads(json.dumps([results, env]))
    failed = {row["WAY"]: row["time"] for row in rows}
    assert failed["nonsense"] == "CompilationFailedConfig" and failed[""] > 0
    assert told["best_config"]["WAY"] == "" and "session" not in told
    (broken,) = (row for row in results if row["WAY"] == "nonsense")
    assert "nonsense" in broken["__error__"].message
    assert env.session.best is not None


def test_an_answer_may_have_any_shape_where_verify_compares():
    text = """__global__ void vector_add(float* parts, const float* a, const float* b, int n) {
      int i = blockIdx.x * block_size_x + threadIdx.x;
      if (i < n) atomicAdd(&parts[blockIdx.x], a[i] + b[i] + WRONG);
    }"""

    def verify(answer, result, atol=None):
        return bool(np.isclose(answer[0], np.sum(result[0]), rtol=1e-4))

    total = np.sum(A + B)
    results, _ = add(
        kernel_source=text, answer=[total, None, None, None], verify=verify,
        tune_params={"block_size_x": [32, 64], "WRONG": [0, 1]},
    )  # fmt: skip
    assert [isinstance(row["time"], float) for row in results] == [
        row["WRONG"] == 0 for row in results
    ]


def test_a_restriction_may_take_all_values_by_position():
    results, _ = add(
        tune_params={"block_size_x": [32, 64], "WAY": [1, 2]},
        restrictions=[lambda *args: args[0] == 32 * args[1]],
    )
    assert {(row["block_size_x"], row["WAY"]) for row in results} == {(32, 1), (64, 2)}


def test_files_behind_the_first_source_are_headers(tmp_path):
    (tmp_path / "sum.h").write_text("__device__ float sum(float a, float b) { return a + b; }\n")
    main = tmp_path / "main.cu"
    main.write_text('#include "sum.h"\n' + ADD.replace("a[i] + b[i]", "sum(a[i], b[i])"))
    results, _ = add(kernel_source=[str(main), str(tmp_path / "sum.h")])
    assert all(isinstance(row["time"], float) for row in results)
    with pytest.raises(kw.InvalidArgument, match=r"there is no file 'none\.h'"):
        add(kernel_source=[str(main), "none.h"])


def theirs(path, indent=None, **changes):
    """A cache file of Kernel Tuner."""
    rows = {
        str(block): {"block_size_x": block, "time": time, "times": [time], "compile_time": 100.0}
        for block, time in ((32, 0.5), (64, 0.25))
    }
    rows["128"] = {"block_size_x": 128, "time": "CompilationFailedConfig", "compile_time": 90.0}
    document = {
        "device_name": "A4000", "kernel_name": "vector_add", "problem_size": [N, 1, 1],
        "tune_params_keys": ["block_size_x"], "tune_params": {"block_size_x": [32, 64, 128]},
        "objective": "time", "cache": rows, **changes,
    }  # fmt: skip
    path.write_text(json.dumps(document, indent=indent))
    return path


@pytest.mark.parametrize("cut", [0, 2])
def test_simulation_mode_searches_a_cache_file_of_kernel_tuner(tmp_path, cut):
    path = theirs(tmp_path / "cache.json")
    text = path.read_text()
    path.write_text(
        text[: len(text) - cut] + ("," if cut else "")
    )  # as an interrupted run leaves it
    before = path.read_bytes()
    results, env = add(
        cache=path, simulation_mode=True, metrics={"double": lambda row: 2 * row["time"]}
    )
    assert {row["block_size_x"]: str(row["time"]) for row in results} == {
        32: "0.5", 64: "0.25", 128: "CompilationFailedConfig",
    }  # fmt: skip
    assert env["best_config"]["block_size_x"] == 64 and env["best_config"]["double"] == 0.5
    assert env["device_name"] == "A4000" and env["simulated_time"] == 290
    assert env.session is None and path.read_bytes() == before
    json.dumps([results, env])
    two, _ = add(
        cache=path, simulation_mode=True, strategy="random_sample",
        strategy_options={"max_fevals": 2}, seed=1,
    )  # fmt: skip
    assert len(two) == 2
    _, env = add(
        cache=path, simulation_mode=True, objectives={"time": False, "compile_time": False}
    )  # 32 compiles in the time of 64, and is slower
    assert [row["block_size_x"] for row in env["best_config"]] == [64]
    spent, env = add(cache=path, simulation_mode=True, strategy_options={"time_limit": 0.15})
    assert len(spent) == 2 and env["simulated_time"] >= 150  # milliseconds when it was measured
    assert len(kw.tune.Table.from_t4(path).replay("random", seed=0)) == 3


def test_a_time_that_stands_for_a_failure_is_none(tmp_path):
    """Kernel Tuner once wrote 1e20 for what it could not measure."""
    rows = {str(b): {"block_size_x": b, "time": t} for b, t in ((32, 1e20), (64, 0.25), (96, 9e19))}
    table = kw.tune.Table.from_t4(theirs(tmp_path / "cache.json", cache=rows))
    assert list(table.costs.values()) == [None, 0.25, 9e19]


def test_a_text_that_mentions_a_cache_is_none(tmp_path):
    path = tmp_path / "notes.py"
    path.write_text('rows = {"tune_params_keys": [], "cache": {}}\n')
    with pytest.raises(kw.InvalidArgument, match="no results of vector_add"):
        add(cache=path, simulation_mode=True)
    with pytest.raises(kw.InvalidArgument, match="is no JSON"):
        kw.tune.Table.from_t4(path)


@pytest.mark.parametrize(
    ("changes", "given", "said"),
    [
        ({"kernel_name": "other"}, {}, "the kernel 'other', not 'vector_add'"),
        ({"problem_size": 7}, {}, "the problem size 7, not 1000"),
        ({"tune_params_keys": ["block_size_y"], "cache": {}}, {}, "the parameters block_size_y"),
        ({}, {"tune_params": {"block_size_x": [32, 1024]}}, "has no result for"),
        ({"cache": {"32": {"block_size_x": 32, "time": 0.0}}},
         {"tune_params": {"block_size_x": [32]}}, "times are numbers above 0"),
    ],
)  # fmt: skip
def test_a_replay_of_other_results_raises(tmp_path, changes, given, said):
    path = theirs(tmp_path / "cache.json", **changes)
    with pytest.raises(kw.InvalidArgument, match=said):
        add(cache=path, simulation_mode=True, **given)


def test_a_replay_wants_a_file():
    with pytest.raises(kw.ArgumentError, match="wants cache="):
        add(simulation_mode=True)
    with pytest.raises(kw.InvalidArgument, match="there is no /nowhere"):
        add(simulation_mode=True, cache="/nowhere/cache.json")


def test_a_store_of_an_earlier_run_is_replayed(tmp_path):
    path = tmp_path / "store.jsonl"
    results, _ = add(cache=path)
    again, env = add(cache=path, simulation_mode=True)
    assert times(again) == times(results) and env["best_config"]["time"] == min(
        times(results).values()
    )


@pytest.mark.parametrize("indent", [None, 1])
def test_nothing_is_appended_to_a_file_of_another_program(tmp_path, indent):
    cache = theirs(tmp_path / "cache.json", indent)
    source = tmp_path / "kernel.cu"
    source.write_text(ADD)
    table = tmp_path / "rows.csv"
    table.write_text("a,b\n1,2\n")
    for path in (cache, source, table):
        before = path.read_bytes()
        with pytest.raises(kw.InvalidArgument):
            add(cache=path)
        assert path.read_bytes() == before
        with pytest.raises(kw.InvalidArgument, match="no store of this library"):
            kw.tune.Store(path).append({"kind": "trial", "session": "a"})
        kernel = kw.kernel(ADD, defines={"block_size_x": 32})
        with pytest.raises(kw.InvalidArgument, match="no store of this library"):
            kernel.online(kw.tune.Space(block_size_x=[32]), grid=1, block=32, store=path)
        assert path.read_bytes() == before


def test_run_kernel_gives_the_arguments_after_one_launch():
    text = "__constant__ float factor[2];\n" + ADD.replace("a[i] + b[i]", "factor[1] * a[i] + b[i]")
    c = np.zeros_like(A)
    found = kw.tune.run_kernel(
        "vector_add", text, N, [c, A, B, np.int32(N)], {"block_size_x": 64},
        cmem_args={"factor": np.array([1, 3], np.float32)},
    )  # fmt: skip
    np.testing.assert_allclose(found[0], 3 * A + B, rtol=1e-6)
    np.testing.assert_array_equal(found[1], A)
    assert found[3] == N and not c.any()
    with pytest.raises(kw.ArgumentError, match="12 bytes for factor, a variable of 8"):
        kw.tune.run_kernel(
            "vector_add", text, N, [c, A, B, N], {"block_size_x": 64},
            cmem_args={"factor": np.ones(3, np.float32)},
        )  # fmt: skip
