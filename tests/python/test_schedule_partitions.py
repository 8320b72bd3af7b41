"""Schedulers of partitions: where their tasks run, and what they reserve."""

import gc

import numpy as np
import pytest

import kernwright as kw
from kernwright.errors import InvalidArgument, PartitionError
from kernwright.schedule import Refused, Scheduler

PLACES = r"""
__global__ void places(unsigned* seen) {
    unsigned place;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(place));
    if (threadIdx.x == 0) seen[place] = 1;
}
"""
BYTES = 1 << 20

pytestmark = pytest.mark.skipif(
    not kw.current_device().partition_rules.supported, reason="the driver has no green contexts"
)


@pytest.fixture
def whole():
    with Scheduler(memory=BYTES) as scheduler:
        yield scheduler


def places(scheduler):
    """Multiprocessors that a task of many blocks runs on."""
    seen = kw.zeros(1024, "uint32")
    kw.synchronize()
    scheduler.submit(kw.kernel(PLACES)[4 * scheduler.device.attributes["multiprocessor_count"], 32],
                     seen).result()  # fmt: skip
    kw.synchronize()
    return set(np.flatnonzero(seen.numpy()).tolist())


def test_tasks_run_on_multiprocessors_that_no_other_partition_has(whole):
    least = whole.device.partition_rules.minimum
    with whole.partition(least, memory=1000) as one, whole.partition(least, memory=1000) as two:
        assert one.sms >= least and two.sms >= least
        first, second = places(one), places(two)
        assert 0 < len(first) <= one.sms and 0 < len(second) <= two.sms
        assert not first & second
        assert whole.sms == whole.device.attributes["multiprocessor_count"]
        assert places(whole)


def test_memory_is_reserved_until_the_partition_is_gone(whole):
    least = whole.device.partition_rules.minimum
    small = whole.partition(least, memory=BYTES // 4)
    assert whole.stats()["memory"] == {"total": BYTES, "reserved": BYTES // 4}
    assert small.stats()["memory"]["total"] == BYTES // 4
    refused = small.submit(kw.ones, 2, memory=BYTES // 2)
    with pytest.raises(Refused, match=f"512 KiB .* ask for at most {BYTES // 4} bytes"):
        refused.result()
    with pytest.raises(InvalidArgument, match=f"a partition with {BYTES} bytes of memory"):
        whole.partition(least, memory=BYTES)
    small.close()
    del small, refused
    gc.collect()
    assert whole.stats()["memory"]["reserved"] == 0
    with whole.partition(least) as part:  # its part of all
        total = part.stats()["memory"]["total"]
        assert total == int(part.sms / whole.sms * BYTES)


def test_limits_of_a_partition_are_those_of_its_scheduler(whole):
    device = whole.device
    least = device.partition_rules.minimum
    (part,) = device.partitions([least], memory=BYTES, share=0.25)
    with Scheduler(part, background=False) as inside:
        assert inside.sms == part.sms and inside.device == device
        assert inside.stats()["memory"]["total"] == BYTES
        for options, words in (({"memory": BYTES + 1}, "never fit"), ({"share": 0.5}, "has 0.25")):
            with pytest.raises(Refused, match=words):
                inside.submit(kw.ones, 2, **options).result()
        assert places(inside) <= set(part.smids())
    with Scheduler(part, memory=BYTES // 2, share=0.5, background=False) as inside:
        assert inside.stats()["memory"]["total"] == BYTES // 2
        assert inside.stats()["share"]["total"] == 0.25
    (narrow,) = device.partitions([least], streams=3)
    with pytest.raises(PartitionError, match="3"):
        Scheduler(narrow)
    with whole.partition(least, memory=1000, share=0.5) as small:
        assert small.stats()["share"]["total"] == 0.5


def test_bad_requests(whole):
    with pytest.raises(InvalidArgument, match="sms=0"):
        whole.partition(0)
    with pytest.raises(kw.errors.ArgumentError, match="sms is an int"):
        whole.partition("8")
    with pytest.raises(InvalidArgument, match="memory=0"):
        whole.partition(8, memory=0)
    with pytest.raises(PartitionError):
        whole.partition(whole.sms + 1)
    assert whole.stats()["memory"]["reserved"] == 0
    with (
        whole.partition(whole.device.partition_rules.minimum, memory=10) as part,
        pytest.raises(InvalidArgument, match="has no partitions"),
    ):
        part.partition(8)
    whole.close()
    with pytest.raises(InvalidArgument, match="closed"):
        whole.partition(8)


def test_a_graph_captured_in_a_task_of_a_partition_runs_there(whole):
    least = whole.device.partition_rules.minimum
    blocks = 4 * whole.sms
    kernel = kw.kernel(PLACES)
    seen = kw.zeros(1024, "uint32")
    kw.synchronize()

    def capture():
        before = kw.current_stream().handle
        graph = kw.Graph()
        with graph.capture(kw.current_stream()):
            kernel[blocks, 32](seen)
        assert kw.current_stream().handle == before
        return graph

    with whole.partition(least) as one, whole.partition(least) as two:
        graph = one.submit(capture).result()
        whole.submit(graph).result()
        kw.synchronize()
        found = set(np.flatnonzero(seen.numpy()).tolist())
        assert 0 < len(found) <= one.sms
        assert not found & places(two)


def test_a_partition_of_the_whole_device_can_be_made_again_after_its_memory(whole):
    for _ in range(3):
        part = whole.partition(whole.sms, memory=1000)
        x = part.submit(kw.ones, 100).result()
        assert float(kw.sum(x).numpy()) == 100
        part.close()
        del part, x
        gc.collect()


@pytest.mark.parametrize("yields", [False, True])
def test_a_closed_scheduler_keeps_no_partition(whole, yields):
    device = whole.device
    least = device.partition_rules.minimum
    free = device.partition_rules.free
    (part,) = device.partitions([least])
    inside = Scheduler(part, yields=yields)
    small = whole.partition(least, memory=1000)
    assert places(inside) and places(small)
    assert device.partition_rules.free < free
    for scheduler in (inside, small):
        scheduler.close()
        scheduler.close()  # changes nothing
    del part
    gc.collect()
    assert device.partition_rules.free == free
    assert whole.stats()["memory"]["reserved"] == 0
    assert small.sms >= least and small.tasks()[0]["state"] == "done"
    with pytest.raises(InvalidArgument, match="closed"):
        inside.submit(kw.ones, 3)
