"""Sessions over a local Ray of several processes; each node's device is simulated."""

import contextlib
import itertools
import os
import pathlib
import signal
import subprocess
import sys

import numpy as np
import pytest
from tuning import GRID, SCALE, run

import kernwright as kw
from kernwright.tune import Cluster, Session, Space
from kernwright.tune._cluster import ClusterBackend

ray = pytest.importorskip("ray")  # `make test` has it: see tests/lint/test_tools.py

N = 300
X = np.arange(N, dtype=np.float32)
FAULTY = SCALE.replace(
    "int first",
    """
#if BAD == 1
    y[1 << 28] = 1;
#elif BAD == 2
    this does not compile
#elif BAD == 3
    a += 1;
#endif
    int first""",
)


@pytest.fixture(scope="module")
def nodes():
    """A Ray of this machine, whose workers run on the simulated device."""
    before = os.environ.get("KERNWRIGHT_DEVICE")
    os.environ["KERNWRIGHT_DEVICE"] = "sim"
    ray.init(num_cpus=4, resources={"slot": 1}, include_dashboard=False, log_to_driver=False,
             configure_logging=False)  # fmt: skip
    yield
    ray.shutdown()
    if before is None:
        del os.environ["KERNWRIGHT_DEVICE"]
    else:
        os.environ["KERNWRIGHT_DEVICE"] = before


def session(cluster, text=SCALE, space=None, **options):
    options = {"verify": lambda x, y, a, n: (None, a * x, None, None), **options}
    return Session(
        kw.kernel(text),
        space or Space(BLOCK=[32, 64, 128], V=[1, 2]),
        (X, kw.Out(np.zeros(N, np.float32)), 3.0, N),
        grid=GRID,
        block="BLOCK",
        devices=cluster,
        **options,
    )


def test_a_cluster_finds_what_one_process_finds(sim, nodes, tmp_path):
    cluster = Cluster(2, compiles=2)
    store = tmp_path / "store.jsonl"
    spread, single = session(cluster, store=store), session(None)
    best = spread.run()
    assert best.config == single.run().config
    assert {t.config: t.score for t in spread.trials} == {t.config: t.score for t in single.trials}
    assert all(trial.status == "correct" and trial.code for trial in spread.trials)
    assert all(trial.resources for trial in spread.trials)
    fast = kw.kernel(SCALE).tuned(store)
    run(fast, N)
    assert fast.choices[0].config == best.config


def test_failures_are_data_on_a_cluster_too(sim, nodes):
    of = Space(BLOCK=[32, 2048], V=[1], BAD=[0, 1, 2, 3]).require("BLOCK == 32 or BAD == 0")
    tuned = session(Cluster(2, compiles=1), FAULTY, of)
    best = tuned.run()
    assert best.config == {"BLOCK": 32, "V": 1, "BAD": 0}
    statuses = {(t.config["BLOCK"], t.config["BAD"]): t.status for t in tuned.trials}
    assert statuses == {
        (32, 0): "correct",
        (32, 1): "runtime",
        (32, 2): "compile",
        (32, 3): "correctness",
        (2048, 0): "constraints",
    }
    assert all(trial.error for trial in tuned.trials if trial.status != "correct")


def test_the_default_is_the_reference_on_each_node(sim, nodes):
    of = Space(BLOCK=[32], V=[1, 2], BAD=[0, 3])
    default = {"BLOCK": 32, "V": 1, "BAD": 0}
    tuned = session(Cluster(2, compiles=1), FAULTY, of, verify="default", default=default)
    tuned.run()
    assert {(t.config["BAD"], t.status) for t in tuned.trials} == {
        (0, "correct"),
        (3, "correctness"),
    }


def test_lost_processes_of_nodes_cost_no_trial(sim, nodes):
    of = Space(BLOCK=[32 * i for i in range(1, 9)], V=[1, 2, 4])
    tuned = session(Cluster(2, compiles=2), space=of)
    killed = 0
    for number, _ in enumerate(tuned):
        if number in (2, 9):
            lanes = tuned._started_backend._lanes
            os.kill(ray.get(lanes[killed % 2].process.remote()), signal.SIGKILL)
            killed += 1
    assert killed == 2
    assert len(tuned.trials) == len(of)
    assert {(trial.status, trial.error) for trial in tuned.trials} == {("correct", "")}


def test_an_actor_that_ray_gives_up_is_started_anew(sim, nodes):
    of = Space(BLOCK=[32, 64, 96, 128], V=[1, 2])
    cluster = Cluster(1, compiles=1, resources={"max_restarts": 0, "max_task_retries": 0})
    tuned = session(cluster, space=of)
    for number, _ in enumerate(tuned):
        if number == 1:
            (lane,) = tuned._started_backend._lanes
            ray.kill(lane)
            with pytest.raises(ray.exceptions.RayActorError):  # soon, not at once
                while True:
                    ray.get(lane.process.remote())
    assert {trial.status for trial in tuned.trials} == {"correct"}
    assert len(tuned.trials) == len(of)


def children_of(process):
    """Processes that this one started."""
    found = []
    for task in pathlib.Path(f"/proc/{process}/task").iterdir():
        with contextlib.suppress(OSError):
            found += map(int, (task / "children").read_text().split())
    return found


def test_a_process_that_is_lost_before_any_stage_costs_no_trial(sim, nodes, monkeypatch):
    """The process of a lane, and then the one in which it runs kernels."""
    run_stage, losses = ClusterBackend._run, iter(("load", "verify", "sample") * 2)
    whose, wanted = itertools.chain(["lane"] * 3, ["kernels"] * 3), [next(losses)]

    def lose(backend, lane, work, stage, *more):
        if [stage] == wanted:
            process = ray.get(backend._lanes[lane].process.remote())
            killed = [process] if next(whose) == "lane" else children_of(process)
            assert killed
            for number in killed:
                os.kill(number, signal.SIGKILL)
            wanted[:] = [next(losses, None)]
        return run_stage(backend, lane, work, stage, *more)

    monkeypatch.setattr(ClusterBackend, "_run", lose)
    of = Space(BLOCK=[32, 64, 96, 128], V=[1, 2])
    tuned = session(Cluster(1, compiles=1), space=of)
    tuned.run()
    assert wanted == [None]
    assert [(trial.status, trial.error) for trial in tuned.trials] == [("correct", "")] * len(of)


def test_a_compile_that_ends_its_processes_is_data(sim, nodes, monkeypatch):
    def lost(backend, *more):
        made(backend, *more)
        backend._compile = ray.remote(num_cpus=1, max_retries=0, num_returns=2)(
            lambda *plan: os._exit(1)
        )

    made = ClusterBackend.__init__
    monkeypatch.setattr(ClusterBackend, "__init__", lost)
    tuned = session(Cluster(1, compiles=1), space=Space(BLOCK=[32], V=[1, 2]))
    with pytest.warns(RuntimeWarning, match="2 compile"):
        assert tuned.run() is None
    assert [trial.status for trial in tuned.trials] == ["compile"] * 2
    assert all("lost a task" in trial.error for trial in tuned.trials)


def test_a_session_that_has_ended_holds_no_device(sim, nodes):
    """There is one slot, and the first session is still there."""
    cluster = Cluster(1, compiles=1, resources={"resources": {"slot": 1}})
    first = session(cluster, space=Space(BLOCK=[32], V=[1]))
    second = session(cluster, space=Space(BLOCK=[64], V=[1]))
    assert first.run() and second.run()
    assert first.run().config == {"BLOCK": 32, "V": 1}


def test_a_cluster_starts_nothing_before_a_session_does(monkeypatch):
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda **options: pytest.fail("Ray was started"))
    assert repr(Cluster()) == "Cluster(None, compiles=None)"
    assert repr(Cluster(2)) == "Cluster(2, compiles=None)"


def test_a_ray_of_this_machine_starts_without_a_word():
    code = """
import numpy as np, kernwright as kw
session = kw.tune.Session(
    "__global__ void fill(float* x) { x[threadIdx.x] = BLOCK; }", kw.tune.Space(BLOCK=[32]),
    (np.zeros(32, np.float32),), grid=1, block="BLOCK", devices=kw.tune.Cluster(1, compiles=1))
assert session.run().config["BLOCK"] == 32
"""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=300,
        env={**os.environ, "KERNWRIGHT_DEVICE": "sim"},
    )  # fmt: skip
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_wrong_clusters(sim, nodes):
    for wrong in (0, -1):
        with pytest.raises(kw.InvalidArgument):
            Cluster(wrong)
    for wrong in ("2", 1.5, True):
        with pytest.raises(kw.ArgumentError):
            Cluster(wrong)
        with pytest.raises(kw.ArgumentError):
            Cluster(1, resources=wrong)
    with pytest.raises(kw.InvalidArgument):
        Cluster(1, compiles=0)
    assert repr(Cluster(3, compiles=2)) == "Cluster(3, compiles=2)"
