"""Sessions over a local Ray of several processes; each node's device is simulated."""

import os
import signal
import time

import numpy as np
import pytest
import ray
from tuning import GRID, SCALE, run

import kernwright as kw
from kernwright.tune import Cluster, Session, Space

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
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, configure_logging=False)
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
            ray.kill(tuned._started_backend._lanes[0])
            time.sleep(0.2)
    assert {trial.status for trial in tuned.trials} == {"correct"}
    assert len(tuned.trials) == len(of)


def test_wrong_clusters(sim, nodes):
    for wrong in (0, -1):
        with pytest.raises(kw.InvalidArgument):
            Cluster(wrong)
    for wrong in ("2", 1.5, True):
        with pytest.raises(kw.ArgumentError):
            Cluster(wrong)
    with pytest.raises(kw.InvalidArgument):
        Cluster(1, compiles=0)
    assert repr(Cluster(3, compiles=2)) == "Cluster(3, compiles=2)"
