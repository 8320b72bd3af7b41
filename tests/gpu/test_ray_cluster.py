"""A tuning session over a local Ray whose nodes are two GPUs of this host."""

import os
import signal

import numpy as np
import pytest

import kernwright as kw
from kernwright.tune import Cluster, Session, Space

ray = pytest.importorskip("ray")
GPUS = [device for device in kw.devices() if not device.is_simulated]
pytestmark = pytest.mark.skipif(len(GPUS) < 2, reason="there are fewer than two GPUs")

N = 1 << 20
SCALE = """
#if BAD
#define A (a + 1)
#else
#define A a
#endif
__global__ void scale(const float* x, float* y, float a, int n) {
    int first = (blockIdx.x * BLOCK + threadIdx.x) * V;
    for (int i = first; i < first + V && i < n; ++i) y[i] = A * x[i];
}
"""


@pytest.fixture(scope="module")
def nodes():
    ray.init(num_cpus=6, num_gpus=2, include_dashboard=False, log_to_driver=False,
             configure_logging=False)  # fmt: skip
    yield
    ray.shutdown()


def session(devices, **parameters):
    x = np.arange(N, dtype=np.float32)
    return Session(
        kw.kernel(SCALE, defines={"BLOCK": 64, "V": 1, "BAD": 0}),
        Space(**{"BLOCK": [64, 128, 256, 512], "V": [1, 2, 4], "BAD": [0], **parameters}),
        (x, kw.Out(np.zeros(N, np.float32)), 3.0, N),
        grid="-(-n // (BLOCK * V))",
        block="BLOCK",
        devices=devices,
        verify=lambda x, y, a, n: (None, a * x, None, None),
    )


def gpus_of(tuned):
    lanes = tuned._started_backend._lanes
    return [ray.get(lane.__ray_call__.remote(lambda self: ray.get_gpu_ids())) for lane in lanes]


def test_each_node_has_a_gpu_of_its_own(nodes):
    tuned = session(Cluster(compiles=4))
    used = None
    for number, _ in enumerate(tuned):
        if number == 1:
            used = gpus_of(tuned)
    assert sorted(used) == [[0], [1]]
    assert len(tuned.trials) == 12
    assert {trial.status for trial in tuned.trials} == {"correct"}
    assert tuned.best.config["BAD"] == 0 and tuned.best.median > 0


def test_a_wrong_configuration_is_data(nodes):
    tuned = session(Cluster(compiles=4), BLOCK=[128, 256], V=[1], BAD=[0, 1])
    tuned.run()
    statuses = {(trial.config["BAD"], trial.status) for trial in tuned.trials}
    assert statuses == {(0, "correct"), (1, "correctness")}


def test_a_node_whose_process_is_killed_costs_no_trial(nodes):
    tuned = session(Cluster(compiles=4))
    for number, _ in enumerate(tuned):
        if number == 3:
            lane = tuned._started_backend._lanes[0]
            os.kill(ray.get(lane.process.remote()), signal.SIGKILL)
    assert len(tuned.trials) == 12
    assert {(trial.status, trial.error) for trial in tuned.trials} == {("correct", "")}
