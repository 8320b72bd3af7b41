"""Using sessions: seeds, budgets, loops, objectives, launches, wrong calls."""

import asyncio
import gc
import json
import math
import pathlib
import subprocess
import sys
import textwrap
import time
import warnings
import weakref

import numpy as np
import pytest
from tune_sessions import LAUNCH, SCALE, N, X, arguments, session, space, statuses

import kernwright as kw
from kernwright.tune import Session, Space
from kernwright.tune._sessions.signature import is_fixed


def test_seeds_decide_what_is_asked():
    def order(seed):
        tuned = session(
            of=Space(BLOCK=[32 * i for i in range(1, 9)], VEC=range(1, 6)),
            budget={"evaluations": 20}, seed=seed, verify=None,
        )  # fmt: skip
        tuned.run()
        return [t.config for t in sorted(tuned.trials, key=lambda t: t.number)]

    if kw.current_device().is_simulated:  # a clock gives other results
        assert order(1) == order(1)
    assert order(1)[:8] != order(2)[:8]


def test_budgets():
    tuned = session(budget={"evaluations": 2})
    tuned.run()
    assert len(tuned.trials) == 2 and tuned.reason == "budget"
    with pytest.warns(RuntimeWarning, match="tried nothing: its budget ended"):
        assert session(budget={"seconds": 1e-6}).run() is None
    tuned = session(budget={"target": 1e30})
    tuned.run()
    assert tuned.reason == "target"
    start = time.monotonic()
    slow = SCALE.replace("{\n", "{ for (volatile int k = 0; k < 3000 + BLOCK; k++) {}\n", 1)
    many = Space(BLOCK=range(1, 1000), VEC=[1])
    tuned = session(slow, many, budget="1.5s")
    tuned.run()
    assert tuned.reason == "budget" and time.monotonic() - start < 40


@pytest.mark.parametrize(
    "budget",
    [0, 100, "0s", "fast", "12", {"seconds": -1}, {"evaluations": 0}, {"evaluations": 1.5},
     {"gpu_seconds": math.inf}, {"steps": 3}, {"target": math.nan}, [1], {"target": "fast"},
     {"target": []}, {"seconds": 10**400}],
)  # fmt: skip
def test_budgets_that_are_none(budget):
    with pytest.raises(
        (kw.InvalidArgument, kw.ArgumentError), match=r"budget|evaluations|seconds|target"
    ):
        session(budget=budget).run()


def test_a_budget_beyond_all_spaces():
    assert session(budget={"evaluations": 10**30}).run() is not None


@pytest.mark.parametrize("of", [{"workers": 10**6}, {"samples": 10**10}])
def test_more_than_any_machine_has_is_refused(of):
    with pytest.raises(kw.InvalidArgument, match=f"{next(iter(of))}= is at most"):
        session(**of)


def test_a_machine_without_threads_ends_a_session_by_an_error():
    code = textwrap.dedent(
        """
        import resource, sys
        sys.path.insert(0, {folder!r})
        import kernwright as kw, tune_sessions as t
        tuned = t.session(workers=1000)
        pages = int(open("/proc/self/statm").read().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (resource.getpagesize() * pages + (300 << 20),) * 2)
        try:
            tuned.run()
        except kw.Error as error:
            print(error)
        print("alive")
        """
    ).format(folder=str(pathlib.Path(__file__).parent))
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0 and result.stdout.endswith("alive\n"), result.stderr


def test_a_loop_over_trials_can_stop_and_go_on():
    tuned = session()
    for trial in tuned:
        assert trial.status == "correct"
        break
    assert len(tuned.trials) == 1 and tuned.best.config == tuned.trials[0].config
    tuned.run()
    assert len(tuned.trials) == 6


def test_observers_hear_trials_and_lanes():
    class Observer:
        trials, lanes = [], []

        def trial(self, trial):
            self.trials.append(trial.number)

        def lane(self, kind, begins, number, seconds):
            self.lanes.append((kind, begins, number))

    tuned, seen = session(), []
    end = tuned.subscribe(Observer())
    tuned.subscribe(seen.append)
    tuned.run()
    end()
    assert sorted(Observer.trials) == list(range(6)) == sorted(t.number for t in seen)
    for kind in ("compile", "gpu"):
        assert len([e for e in Observer.lanes if e[0] == kind and e[1]]) == 6
        assert len([e for e in Observer.lanes if e[0] == kind and not e[1]]) == 6


def test_asyncio():
    async def main():
        return await session().run_async()

    assert asyncio.run(main()).config is not None

    async def cancelled():
        many = Space(BLOCK=range(1, 1000), VEC=[1])
        tuned = session(of=many)
        task = asyncio.ensure_future(tuned.run_async())
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return tuned

    tuned = asyncio.run(cancelled())
    assert tuned.reason == "cancelled" and len(tuned.trials) < 999


def test_ctrl_c_leaves_a_usable_best(tmp_path):
    store = tmp_path / "store.jsonl"
    code = textwrap.dedent(
        """
        import os, signal, sys, threading
        sys.path.insert(0, {folder!r})
        import tune_sessions as t
        signal.signal(signal.SIGINT, signal.default_int_handler)  # also where ignored
        tuned = t.session(of=t.Space(BLOCK=range(1, 1000), VEC=[1]), store={store!r})
        seen = []  # trials may end in another order than that of their numbers
        def interrupt(trial):
            seen.append(trial)
            if len(seen) == 4:
                os.kill(os.getpid(), signal.SIGINT)
        tuned.subscribe(interrupt)
        try:
            tuned.run()
        except KeyboardInterrupt:
            print("interrupted", tuned.best.config["VEC"], 3 < len(tuned.trials) < 999)
        """
    ).format(folder=str(pathlib.Path(__file__).parent), store=str(store))
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert result.stdout.strip() == "interrupted 1 True", result.stderr
    (row,) = kw.tune.Store(store).results
    assert row["reason"] == "cancelled" and row["config"]["VEC"] == 1


def test_a_session_can_be_stopped_before_and_while_it_starts():
    tuned = session()
    tuned.stop()
    assert tuned.run() is None
    assert tuned.reason == "cancelled" and not tuned.trials
    made = []

    def grid(values):
        for each in made:
            each.stop()
        return -(-N // (values["BLOCK"] * values["VEC"]))

    made.append(session(grid=grid, verify="default"))
    assert made[0].run() is None
    assert made[0].reason == "cancelled" and not made[0].trials


def test_proposals_come_first(tmp_path):
    wanted = [{"BLOCK": 128, "VEC": 2}, {"BLOCK": 64, "VEC": 1}]
    path = tmp_path / "proposals.json"
    path.write_text(json.dumps(wanted))
    for proposals in (wanted, path, lambda session: wanted if not session.trials else []):
        tuned = session(proposals=proposals, strategy="random")
        tuned.run()
        order = sorted(tuned.trials, key=lambda trial: trial.number)
        assert [dict(trial.config) for trial in order[:2]] == wanted
    with pytest.raises(kw.InvalidArgument):
        session(proposals=[{"BLOCK": 7, "VEC": 1}])
    with pytest.raises(kw.StoreError, match=r"none\.json cannot be read"):
        session(proposals=tmp_path / "none.json")
    with pytest.raises(kw.ArgumentError):
        session(proposals=5)
    for junk in (5, "none.json", [5]):
        with pytest.raises(kw.Error, match=r"proposals= is a list|none\.json"):
            session(proposals=lambda session, junk=junk: junk).run()
    with pytest.raises(kw.ArgumentError, match="the argument x is a ndarray"):
        session(grid="x")


def test_a_later_session_starts_from_the_store_s_winner(tmp_path):
    path = tmp_path / "store.jsonl"
    winner = session(store=path).run().config
    later = session(
        store=path, strategy="random", seed=5, verify=None, budget={"evaluations": 1},
        args=(X[:500], kw.Out(np.zeros(500, np.float32)), 2.0, 500),
    )  # fmt: skip
    later.run()
    assert later.trials[0].config == winner


def test_a_configuration_chooses_its_text_and_headers():
    def text(config):
        body = "a * x[i]" if config["WAY"] == "times" else "x[i] + SHIFT"
        return kw.kernel(
            '#include "shift.h"\n__global__ void f(const float* x, float* y, float a, int n) {\n'
            "  int i = blockIdx.x * BLOCK + threadIdx.x;\n"
            f"  if (i < n) y[i] = {body};\n}}",
            headers={"shift.h": f"#define SHIFT {1 if config['BLOCK'] == 32 else 2}"},
        )

    tuned = session(
        text, Space(BLOCK=[32, 64], WAY=["times", "plus"]), grid="-(-n // BLOCK)",
        verify=lambda x, y, a, n: (None, x + 1, None, None),
    )  # fmt: skip
    tuned.run()
    assert [config for config, status in statuses(tuned).items() if status == "correct"] == [
        (32, "plus")
    ]


def test_launches_by_callables_and_tuples():
    seen = []

    def grid(values):
        seen.append(values)
        return (-(-values["n"] // (values["BLOCK"] * values["VEC"])), 1)

    tuned = session(grid=grid, block=("BLOCK", 1), shared_bytes="4 * BLOCK")
    assert tuned.run() is not None
    assert {"n", "BLOCK", "VEC"} <= set(seen[0])

    def raises(values):
        if values["VEC"] == 2:
            raise RuntimeError("no such grid")
        return 32

    tuned = session(grid=raises, verify=None)
    tuned.run()
    assert {t.status for t in tuned.trials if t.config["VEC"] == 2} == {"constraints"}
    assert "no such grid" in next(t.error for t in tuned.trials if t.config["VEC"] == 2)


def test_several_devices_share_the_trials():
    if not kw.current_device().is_simulated:
        pytest.skip("a machine may have one GPU")
    tuned = session(devices=2)
    tuned.run()
    assert len(tuned.trials) == 6


def test_any_stage_can_be_the_first_of_a_new_process():
    _, cost, _ = session()._started().lane.sample(0, 1, 60.0)
    assert cost is None or cost > 0
    assert session()._started().lane.verify(0, 1, 60.0) is None


def test_in_this_process():
    tuned = session(isolation="inproc")
    assert tuned.run() is not None
    assert {trial.status for trial in tuned.trials} == {"correct"}


def test_constants_are_filled():
    text = "__constant__ float weight[2];" + SCALE.replace("a * x", "weight[1] * x")
    tuned = session(text, constants={"weight": np.array([0, 2], np.float32)})
    assert tuned.run() is not None
    assert session(text, constants={"weight": b""})._settings["symbols"] == {"weight": b""}


def test_reports_exports_and_replays(tmp_path):
    tuned = session()
    tuned.run()
    tuned.report(tmp_path / "tune.html")
    assert "scale" in (tmp_path / "tune.html").read_text()
    tuned.export(tmp_path / "t4.json")
    for write in (tuned.report, tuned.export):
        with pytest.raises(kw.StoreError, match=r"no/file cannot be written"):
            write(tmp_path / "no" / "file")
    table = kw.tune.Table.from_t4(tmp_path / "t4.json")
    if kw.current_device().is_simulated:
        assert table.best_cost == tuned.best.score
    assert set(table.costs) == {trial.config for trial in tuned.trials}
    trace = tuned.replay("random", 4, seed=1)
    assert len(trace) == 4
    assert "scale" in tuned._repr_html_() and tuned.trials[0]._repr_html_()


def test_arguments_are_copied_when_the_session_is_made():
    x, y = X.copy(), kw.zeros(N, dtype=np.float32)
    tuned = session(args=(kw.asarray(x), y, 2.0, N))
    x[:] = 0
    assert tuned.run() is not None
    assert float(y.numpy().sum()) == 0


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((X, X.astype(np.float64), 2.0, N), "float64"),
        ((X, X, "two", N), "a str where float32"),
        ((X, X, 2.0, 2**40), "does not fit"),
        ((1.0, X, 2.0, N), "wants an array"),
    ],
)
def test_arguments_that_do_not_fit(args, message):
    tuned = session(args=args, verify=None, problem={"n": N})
    with pytest.raises(kw.ArgumentError, match=message):
        tuned.run()
    assert tuned.trials == [] and tuned.best is None


def test_arguments_that_do_not_fit_some_configurations():
    text = "#define T REAL\n__global__ void zero(T* y) { y[threadIdx.x] = 0; }"
    tuned = kw.tune.Session(
        text, Space(REAL=["double", "float"]), (kw.Out(X.copy()),), grid=1, block=32
    )
    assert tuned.run().config["REAL"] == "float"
    assert sorted(trial.status for trial in tuned.trials) == ["correct", "runtime"]


@pytest.mark.parametrize(
    ("text", "name", "fixed"),
    [
        (SCALE, "scale", True),
        ("#if VEC > 1\n#endif\n__global__ void k(float* x) {}", "k", False),
        ("#ifndef VEC\n#define VEC 2\n#endif\n__global__ void k(float* x) {}", "k", True),
        ("__global__ void k(float* x) {\n#if VEC > 1\n#endif\n}", "k", True),
        ("using T = Pack<float, VEC>;\n__global__ void k(T* x) {}", "k", False),
        ("typedef float T;\n__global__ void __launch_bounds__(BLOCK) k(T* x) {}", "k", True),
        ("struct S { float x[VEC]; };\n__global__ void k(S s) {}", "k", False),
        ("template <int N = VEC> __global__ void k(P<N> x) {}", "k<>", False),
        ("template <typename T> __global__ void k(T* x) {}", "k<float>", True),
        ("template <typename T> __global__ void k(T* x) {}", "k<TYPE>", False),
        ('#include "own.h"\n__global__ void k(float* x) {}', "k", False),
        ("#define W VEC\n#define ARGS float* x, V<W> y\n__global__ void k(ARGS) {}", "k", False),
        ("// k(VEC)\n__global__ void k(float* /* VEC */ x) { f(VEC); }", "k", True),
        ("KERNEL(k)(float* x) {}", "k", False),
    ],
)
def test_signatures_are_told_from_the_text(text, name, fixed):
    assert is_fixed(text, name, ["BLOCK", "VEC", "TYPE"], {}, {}) is fixed


@pytest.mark.parametrize(
    "change",
    [
        {"grid": None}, {"block": None}, {"block": "BLOCKS"}, {"grid": "n //"}, {"grid": 0},
        {"strategy": "best"}, {"isolation": "thread"}, {"policy": "hot"}, {"samples": 0},
        {"verify": (None, X)}, {"verify": (None, X[:5], None, None)}, {"verify": "reference"},
        {"verify": lambda x, y, a, n: None}, {"verify": lambda x, y, a, n: {1: x}},
        {"verify": (None,) * 4}, {"rtol": -1}, {"atol": "x"},
        {"default": {"BLOCK": 32}}, {"default": {"BLOCK": 33, "VEC": 1}}, {"devices": []},
        {"devices": "foo"}, {"constants": {5: X}},
        {"args": 5}, {"args": X}, {"args": (np.array([object()]),)},
        {"workers": 0}, {"seed": "x"},
    ],
)  # fmt: skip
def test_wrong_calls_are_told_when_the_session_is_made(change):
    with pytest.raises((kw.Error, ValueError, TypeError)):
        session(**change)


def test_references_that_raise_are_the_caller_s():
    def reference(*args):
        raise LookupError("no reference")

    with pytest.raises(LookupError, match="no reference"):
        session(verify=reference)


def test_spaces_that_are_none():
    with pytest.raises(kw.InvalidArgument):
        session(of=Space(BLOCK=[32], VEC=[1]).require("BLOCK > 64"))
    with pytest.raises(kw.NameNotFound, match="m"):
        session(of=space().require("m > 3"))
    with pytest.raises(kw.ArgumentError):
        Session(SCALE, {"BLOCK": [32]}, arguments(), **LAUNCH)
    with pytest.raises(kw.ArgumentError):
        Session(5, space(), arguments(), **LAUNCH)
    code = kw.Program(SCALE, kw.ProgramOptions(defines={"BLOCK": 32, "VEC": 1})).compile("ptx")
    with pytest.raises(kw.InvalidArgument, match="object code"):
        Session(code.kernel("scale"), space(), arguments(), **LAUNCH)


def test_sessions_are_collected():
    tuned = session()
    tuned.run()
    gone = weakref.ref(tuned)
    del tuned
    gc.collect()
    assert gone() is None


def test_used_parameters_are_not_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session()


def test_only_one_runs_a_session_at_a_time():
    tuned = session()
    refused = []

    class Observer:
        def trial(self, trial):
            pass

        def lane(self, kind, begins, number, seconds):
            if not refused:
                with pytest.raises(kw.InvalidArgument, match="in use") as caught:
                    tuned.ask()
                refused.append(caught)

    tuned.subscribe(Observer())
    assert tuned.run() is not None and refused


def test_the_best_so_far_can_be_asked_for_while_it_runs():
    tuned, seen = session(default={"BLOCK": 32, "VEC": 1}), []
    tuned.subscribe(lambda trial: seen.append(tuned.best.score))
    tuned.run()
    assert seen == sorted(seen, reverse=True) and len(seen) == 6
    assert tuned.best.default is not None


def test_a_default_that_fails_is_no_reference():
    tuned = session(SCALE.replace("int i", "nonsense i"), verify="default")
    with pytest.raises(kw.InvalidArgument, match="itself fails"):
        tuned.run()
