"""What users of other schedulers reported: each stays away here."""

import logging
import threading

import numpy as np
import pytest

import kernwright as kw
from kernwright.schedule import Scheduler

TWICE = "__global__ void twice(float* x, int n) { int i = threadIdx.x; if (i < n) x[i] *= 2; }"
CLASSES = ("guaranteed", "burstable", "best_effort")


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
