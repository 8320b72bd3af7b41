"""Cycles of references through schedulers and tasks are garbage."""

import gc
import os
import sys
import time
import weakref

import pytest

import kernwright as kw
from kernwright.schedule import Scheduler


class First:
    """A policy that may hold its own scheduler."""

    def choose(self, candidates, load):
        return candidates[0]


def count_threads():
    return len(os.listdir("/proc/self/task"))


def await_threads(most):
    """Whether no more threads than these are left, soon."""
    for _ in range(500):
        if count_threads() <= most:
            return True
        time.sleep(0.01)
    return False


def hold_scheduler(policy, scheduler, task):
    policy.scheduler = scheduler


def hold_tasks(policy, scheduler, task):
    policy.tasks = [task, scheduler.submit(kw.ones, 2, qos="best_effort")]


def hold_method(policy, scheduler, task):
    policy.submit = scheduler.submit


def hold_block(policy, scheduler, task):
    with scheduler.task(memory=100, name="block") as policy.task:
        policy.scheduler = scheduler


def hold_closed(policy, scheduler, task):
    policy.scheduler = scheduler
    scheduler.close()


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted by /proc")
@pytest.mark.parametrize("hold", [hold_scheduler, hold_tasks, hold_method, hold_block, hold_closed])
def test_a_policy_and_its_own_scheduler_are_freed(hold):
    kw.ones(3).numpy()  # threads of the device itself
    Scheduler().submit(kw.ones, 3, qos="best_effort").result()
    gc.collect()
    before = count_threads()
    policy = First()
    scheduler = Scheduler(policy=policy)
    task = scheduler.submit(kw.ones, 3, qos="best_effort")
    assert task.result().shape == (3,)
    hold(policy, scheduler, task)
    found = weakref.ref(policy)
    del policy, scheduler, task
    gc.collect()
    assert found() is None
    assert await_threads(before)


def test_a_policy_in_use_stays():
    policy = First()
    scheduler = Scheduler(policy=policy, background=False)
    policy.scheduler = scheduler
    tasks = [scheduler.submit(kw.ones, n, qos="best_effort") for n in (1, 2)]
    found = weakref.ref(policy)
    del policy, scheduler
    gc.collect()
    assert found() is not None
    assert [task.result().shape for task in tasks] == [(1,), (2,)]
    del tasks
    gc.collect()
    assert found() is None


class Thing:
    pass


def give_back(thing):
    return thing


def test_a_task_in_the_trace_of_its_own_exception_is_freed():
    def fail():
        raise ValueError("no")

    def run(thing):
        task = Scheduler().submit(fail)
        with pytest.raises(ValueError, match="no"):
            task.result()
        assert isinstance(task.exception(), ValueError)

    thing = Thing()
    found = weakref.ref(thing)
    run(thing)
    del thing
    gc.collect()
    assert found() is None


def test_a_task_in_its_own_result_is_freed():
    thing = Thing()
    thing.task = Scheduler().submit(give_back, thing)
    assert thing.task.result() is thing
    found = weakref.ref(thing)
    del thing
    gc.collect()
    assert found() is None


def test_a_task_that_was_cancelled_in_its_own_arguments_is_freed():
    scheduler = Scheduler(background=False)
    thing = Thing()
    thing.task = scheduler.submit(print, thing, qos="best_effort")
    assert thing.task.cancel()
    found = weakref.ref(thing)
    del thing
    gc.collect()
    assert found() is None
