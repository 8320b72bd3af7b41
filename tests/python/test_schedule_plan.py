"""Plans in simulated time, against times counted by hand and by a machine of single places."""

import math

import pytest

import kernwright as kw
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.schedule import Planned, _plan, plan


def by_places(kernels, places):
    """The end of one task: each block takes the place that is free first."""
    free, now = [0.0] * places, 0.0
    for blocks, block_us in kernels:
        free = [now] * places
        for _ in range(blocks):
            free.sort()
            free[0] += block_us
        now = max(free)
    return now


@pytest.mark.parametrize("sms", [1, 3, 8])
def test_one_task_takes_the_rounds_of_its_kernels(sms):
    kernels = [(10, 5.0), (1, 7.0), (8, 2.0)]
    found = plan([Planned("a", kernels)], sms=sms)
    assert found.end == found.latency("a") == by_places(kernels, sms)
    rounds = sum(math.ceil(blocks / sms) * us for blocks, us in kernels)
    assert found.end == rounds
    assert found.busy == pytest.approx(sum(b * us for b, us in kernels) / (sms * rounds))
    assert plan([Planned("a", kernels)], sms=1, resident=sms).end == rounds


def test_urgent_blocks_take_the_first_free_places():
    urgent = Planned("urgent", [(4, 10.0)], begin=5.0)
    filler = Planned("filler", [(16, 50.0)], qos="best_effort")
    found = plan([filler, urgent], sms=4)
    task = next(each for each in found.tasks if each.name == "urgent")
    assert (task.submitted, task.begin, task.end) == (5, 50, 60)
    assert found.end == 210 and found.busy == 1
    assert plan([filler, urgent], sms=4, policy="fifo").latency("urgent") == 205
    assert plan([filler, urgent], sms=32).latency("urgent") == 10


def test_best_effort_is_held_while_urgent_tasks_are_there():
    half = Planned("half", [(1, 10.0)] * 5, qos="guaranteed", begin=1.0)
    filler = Planned("filler", [(1, 4.0)] * 10, qos="best_effort")
    found = plan([half, filler], sms=2)
    assert found.latency("half") == 50
    assert found.end == 51 + 9 * 4  # one kernel ran before
    strict = [half._replace(qos="burstable"), filler]
    assert plan(strict, sms=2).end == 51
    assert plan(strict, sms=2, policy="strict").end == 51 + 9 * 4


def test_periods_quantiles_and_rates():
    ticks = Planned("tick", [(1, 100.0)], period=1000.0, times=10)
    block = Planned("block", [(1, 250.0)], begin=4900.0, qos="burstable")
    found = plan([ticks, block], sms=1)
    assert found.latency("tick") == 100
    assert found.latency("tick", 1) == 250
    assert found.latency("tick", 0.9) == 100
    assert found.rate("tick") == pytest.approx(10 / 9100 * 1e6)
    nothing = plan([], sms=1)
    assert (nothing.end, nothing.busy, nothing.rate("tick")) == (0, 0, 0)
    assert repr(found) == "<Plan: 11 tasks in 9100 us, 13.7 % busy>"
    assert kw.schedule.plan([ticks], sms=1).tasks[3].submitted == 3000


def test_the_next_kernel_waits_for_all_blocks_of_the_one_before():
    other = Planned("other", [(1, 5.0)])
    task = Planned("task", [(2, 10.0), (1, 1.0)])  # its blocks run from 0 to 10 and from 5 to 15
    assert plan([other, task], sms=2).latency("task") == 16


def test_all_that_is_held_begins_at_once():
    urgent = Planned("urgent", [(1, 10.0)])
    held = [Planned(name, [(1, 5.0)], qos="best_effort", begin=1.0) for name in "abc"]
    found = plan([urgent, *held], sms=4)
    assert [task.begin for task in found.tasks] == [0, 10, 10, 10]


def test_blocks_that_end_one_by_one_are_counted(monkeypatch):
    """Few rounds of blocks are many groups where each place is free at a time of its own."""
    monkeypatch.setattr(_plan, "MOST_ROUNDS", 1000)
    apart = [Planned("apart", [(1, 1 + i / 64)]) for i in range(50)]
    assert len(plan([*apart, Planned("short", [(500, 1.0)], begin=0.5)], sms=50).tasks) == 51
    with pytest.raises(InvalidArgument, match="more than 1000 different times"):
        plan([*apart, Planned("long", [(5000, 1.0)], begin=0.5)], sms=50)


def test_wrong_numbers():
    task = Planned("a", [(1, 1.0)])
    for wrong in (
        task._replace(kernels=[]), task._replace(kernels=[(0, 1.0)]), task._replace(begin=-1.0),
        task._replace(kernels=[(1, 0.0)]), task._replace(kernels=[(1, math.nan)]),
        task._replace(times=0), task._replace(qos="gold"), task._replace(period=math.inf),
        task._replace(kernels=[(1.5, 1.0)]), task._replace(kernels=3),
        task._replace(kernels=[(1,)]), task._replace(kernels=[("x", 2)]),
        task._replace(kernels=[(1, "2")]), task._replace(begin="0"), task._replace(period=None),
        task._replace(times=2.5), task._replace(times="3"), task._replace(begin=1j),
    ):  # fmt: skip
        with pytest.raises(InvalidArgument, match=r"kernels are pairs|is none of"):
            plan([wrong], sms=1)
    for blocks in (10**8, 10**30):
        with pytest.raises(InvalidArgument, match="rounds of blocks"):
            plan([task._replace(kernels=[(blocks, 1.0)])], sms=4)
    assert plan([task._replace(kernels=iter([(2, 1.0)]))], sms=1).end == 2
    for options in ({"sms": 0}, {"sms": 1, "resident": 0}, {"sms": 1, "policy": "best"}):
        with pytest.raises(InvalidArgument):
            plan([task], **options)
    for work, sms in (([3], 1), ([task], 1.5)):
        with pytest.raises(ArgumentError):
            plan(work, sms=sms)
    with pytest.raises(InvalidArgument, match="no such tasks"):
        plan([task], sms=1).latency("b")
