"""What users of other schedulers reported: each stays away here."""

import gc
import logging
import threading
import time

import numpy as np
import pytest

import kernwright as kw
from kernwright.schedule import Scheduler

TWICE = "__global__ void twice(float* x, int n) { int i = threadIdx.x; if (i < n) x[i] *= 2; }"
CLASSES = ("guaranteed", "burstable", "best_effort")


def wait_until(is_so):
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_launches_that_are_waited_for_count_as_device_time():
    twice = kw.kernel(TWICE)
    x = kw.ones(32)

    def loop():
        for _ in range(4):
            twice[1, 32](x, 32)
            kw.synchronize()

    with Scheduler() as scheduler:
        for options in ({"share": 0.3}, {"qos": "best_effort"}, {}):
            task = scheduler.submit(loop, model=str(options), **options)
            task.result()
            assert task.stats["launches"] == 4 and task.stats["device"] > 0
        tenants = scheduler.stats()["tenants"]
        assert all(row["device"] > 0 and row["used"] > 0 for row in tenants.values())


def test_statistics_are_right_from_the_first_launch():
    with Scheduler() as scheduler:
        scheduler.submit(kw.exp, kw.ones(8), qos="best_effort").result()
        row = scheduler.stats()["classes"]["best_effort"]
        assert row["device"] > 0 and (row["submitted"], row["done"]) == (1, 1)


def test_no_stream_is_shared_by_two_classes_and_none_is_the_legacy_one():
    streams = {qos: set() for qos in CLASSES}
    with Scheduler() as scheduler:
        tasks = [
            (qos, scheduler.submit(lambda: kw.current_stream().handle, qos=qos))
            for qos in CLASSES
            for _ in range(6)
        ]
        for qos, task in tasks:
            streams[qos].add(task.result())
    assert all(streams.values()) and not any(0 in each for each in streams.values())
    assert len(set.union(*streams.values())) == sum(map(len, streams.values())) <= 7


def test_work_on_the_legacy_stream_is_named(caplog):
    twice = kw.kernel(TWICE)
    x = kw.ones(4)
    with caplog.at_level(logging.WARNING, logger="kernwright"), Scheduler() as scheduler:
        scheduler.submit(twice[1, 32, 0], x, 4, name="old").result()
    assert '"old" (task 1) launches on the legacy stream' in caplog.text


def test_streams_of_others_belong_to_the_task():
    twice = kw.kernel(TWICE)
    x = kw.ones(4)
    own = kw.Stream()
    with Scheduler() as scheduler:
        for qos in CLASSES:
            task = scheduler.submit(twice[1, 32, own.handle], x, 4, qos=qos)
            task.result()
            assert task.stats["launches"] == 1
    np.testing.assert_array_equal(x.numpy(), np.full(4, 8))


def test_guaranteed_work_passes_no_gate_beside_best_effort():
    go, begun = threading.Event(), threading.Event()

    def hold():
        begun.set()
        go.wait(30)

    with Scheduler() as scheduler:
        low = scheduler.submit(hold, qos="best_effort")
        assert begun.wait(30)
        task = scheduler.submit(kw.exp, kw.ones(8))
        task.result()
        assert task.stats["preemptions"] == 0 and low.state == "running"
        go.set()
        low.result()


def test_a_failed_capture_leaves_the_next_launch_alone():
    twice = kw.kernel(TWICE)
    x = kw.ones(4)

    def broken():
        graph = kw.Graph()
        with graph.capture(kw.current_stream()):
            twice[1, 32](x, 4)
            x.numpy()

    with Scheduler() as scheduler:
        for qos in CLASSES:
            with pytest.raises(kw.CaptureError):
                scheduler.submit(broken, qos=qos).result()
            scheduler.submit(twice[1, 32], x, 4, qos=qos).result()
    np.testing.assert_array_equal(x.numpy(), np.full(4, 8))


def test_a_task_that_is_waited_for_gets_the_class_of_the_waiting_one():
    order = []
    with Scheduler(background=False) as scheduler:
        low = scheduler.submit(order.append, "low", qos="best_effort")
        scheduler.submit(order.append, "middle", qos="burstable")
        scheduler.submit(order.append, "high", after=low)
        scheduler.drain()
    assert order == ["low", "high", "middle"]


def test_strict_best_effort_makes_no_progress_beside_guaranteed_work():
    go, stop, holds = threading.Event(), threading.Event(), threading.Event()
    x = kw.ones(8)

    def endless():
        while not stop.is_set():
            kw.exp(x)

    def hold():
        holds.set()
        go.wait(60)

    with Scheduler(policy="strict") as scheduler:
        low = scheduler.submit(endless, qos="best_effort")
        high = threading.Thread(target=lambda: scheduler.submit(hold).result())
        try:
            wait_until(lambda: low.stats["launches"] > 3)
            high.start()
            assert holds.wait(60)
            launches = low.stats["launches"] + 1  # one may have passed the gate before
            for _ in range(20):
                assert scheduler.submit(kw.exp, x).result().shape == (8,)  # runs beside hold()
                time.sleep(0.002)
            assert low.stats["launches"] <= launches
            kept_back = "is running: a launch waits: the policy strict keeps its class back"
            wait_until(lambda: kept_back in scheduler.explain(low))
            go.set()
            high.join()
            wait_until(lambda: low.stats["launches"] > launches)
        finally:
            go.set()
            stop.set()
        low.result()


def test_tasks_that_nobody_keeps_give_back_what_they_reserved():
    def fail():
        raise KeyError("seven")

    with Scheduler(memory=1000) as scheduler:
        for qos in CLASSES:
            for work in (lambda: None, fail):
                scheduler.submit(work, qos=qos, memory=400, share=0.4)
        gc.collect()
        wait_until(lambda: sum(row["done"] for row in scheduler.stats()["classes"].values()) == 3)
        wait_until(lambda: scheduler.stats()["memory"]["reserved"] == 0)
        assert scheduler.stats()["share"]["reserved"] == 0


def test_two_schedulers_promise_no_byte_twice():
    held, go = threading.Event(), threading.Event()

    def hold():
        held.set()
        go.wait(60)

    with Scheduler() as first, Scheduler() as second:
        most = second.stats()["memory"]["total"] * 3 // 5
        task = first.submit(hold, qos="best_effort", memory=most)
        assert held.wait(60)
        other = second.submit(kw.ones, 2, memory=most)
        with pytest.raises(TimeoutError, match="other schedulers of the device hold"):
            other.result(timeout=0.01)
        assert second.submit(kw.ones, 2).result(timeout=60).shape == (2,)
        go.set()
        task.result(timeout=60)
        assert other.result(timeout=60).shape == (2,)
    with Scheduler(background=False) as rest:
        with Scheduler(memory=rest.stats()["memory"]["total"]):
            other = rest.submit(kw.ones, 2, memory=1)
            assert not rest.step()
        assert rest.step()


@pytest.mark.parametrize("qos", CLASSES)
def test_a_graph_with_arrays_is_captured_in_a_task_with_a_limit(qos):
    def capture(x):
        graph = kw.Graph()
        with graph.capture(kw.current_stream()):
            y = kw.exp(x) + kw.ones(256)
        return graph, y

    x = kw.zeros(256)
    with Scheduler(memory=2**24) as scheduler:
        graph, y = scheduler.submit(capture, x, memory=2**20, qos=qos).result()
        scheduler.submit(graph, qos=qos).result()
        np.testing.assert_array_equal(y.numpy(), np.full(256, 2))
        with pytest.raises(kw.OutOfMemory):
            scheduler.submit(capture, kw.zeros(2**20), memory=2**20, qos=qos).result()
        scheduler.submit(kw.exp, x, memory=2**20, qos=qos).result()
        assert scheduler.stats()["memory"]["reserved"] == 0


def test_what_an_urgent_task_waits_for_is_not_kept_back_by_it():
    """A best-effort task in front of a launch, which the running guaranteed task keeps back."""
    twice = kw.kernel(TWICE)
    x = kw.ones(4)
    begun, go = threading.Event(), threading.Event()

    def low():
        begun.set()
        go.wait()
        twice[1, 32](x, 4)
        return 3

    def waits_for_it(task):
        go.set()
        while not task.stats["preemptions"]:
            time.sleep(0.001)
        return task.result(timeout=20)

    def waits_for_its_memory(task):
        go.set()
        while not task.stats["preemptions"]:
            time.sleep(0.001)
        other = scheduler.submit(lambda: 5, qos="best_effort", memory=600_000)
        return other.result(timeout=20)

    for work, found in ((waits_for_it, 3), (waits_for_its_memory, 5)):
        with Scheduler(memory=1_000_000) as scheduler:
            begun.clear()
            go.clear()
            task = scheduler.submit(low, qos="best_effort", memory=900_000)
            assert begun.wait(20)
            assert scheduler.submit(work, task).result(timeout=60) == found
            assert task.result(timeout=20) == 3


def test_a_policy_of_python_that_fails_is_told_once_and_asked_again(caplog):
    class Failing:
        fails = True

        def choose(self, candidates, load):
            if self.fails:
                raise KeyError("nothing to choose")
            return 0

    policy = Failing()
    with (
        Scheduler(policy=policy, memory=2**20) as scheduler,
        caplog.at_level(logging.ERROR, logger="kernwright"),
    ):
        task = scheduler.submit(kw.ones, 3)

        def told():
            return len([r for r in caplog.records if "Failing failed" in r.getMessage()])

        wait_until(lambda: told() and "nothing" in scheduler.explain(task))
        with pytest.raises(TimeoutError, match=r"Failing failed: .*nothing to choose"):
            task.result(timeout=0.3)
        assert told() == 1
        policy.fails = False
        assert task.result(timeout=20).shape == (3,)


SPINNERS = 16

SPIN = """
__global__ void meet(unsigned* arrived, unsigned* met) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  atomicAdd(arrived, 1u);
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (*(volatile unsigned*)arrived < COUNT && now - begin < 2000000000ull);
  *met = *(volatile unsigned*)arrived;
}
"""


@pytest.mark.skipif(kw.current_device().is_simulated, reason="it runs one launch after another")
def test_sixteen_streams_run_at_once():
    """Hardware queues for 8 streams would keep the ninth block behind the end of the first."""
    meet = kw.kernel(SPIN, defines={"COUNT": SPINNERS})
    arrived, met = kw.zeros(1, dtype="uint32"), kw.zeros(SPINNERS, dtype="uint32")
    meet[1, 1](kw.zeros(1, dtype="uint32") + SPINNERS, met[:1])  # is compiled and loaded before
    streams = [kw.Stream() for _ in range(SPINNERS)]
    kw.synchronize()
    for index, stream in enumerate(streams):
        meet[1, 1, stream](arrived, met[index : index + 1])
    kw.synchronize()
    assert met.numpy().tolist() == [SPINNERS] * SPINNERS
