"""Why a task waits, and how one ends that is cancelled or whose work runs nothing."""

import concurrent.futures
import contextlib
import threading

import numpy as np
import pytest

import kernwright as kw
from kernwright.schedule import Scheduler


@pytest.fixture
def stepped():
    """Runs tasks in step() and waits only."""
    with Scheduler(memory=10**6, background=False) as scheduler:
        yield scheduler


def test_the_queue_tells_the_place_of_what_does_not_fit(stepped):
    with stepped.task(memory=600_000, name="holder"):
        tasks = [stepped.submit(kw.ones, 3, memory=500_000) for _ in range(3)]
        told = [stepped.explain(task) for task in tasks]
        assert all('held by "holder" (task 1) (585.9 KiB)' in text for text in told)
        assert "ahead" not in told[0]
        assert told[1].endswith("; 1 task is ahead") and told[2].endswith("; 2 tasks are ahead")
        assert tasks[2].history[1][2].endswith("; 2 of its class or one in front of it wait")
    stepped.drain()
    assert all(task.state == "done" for task in tasks)


def test_a_cancelled_task_never_ends_well(stepped):
    """Whether it launches anything after the cancellation or not, and whatever its work catches."""
    tasks = []

    def no_launch():
        assert tasks[-1].cancel()
        return 3

    def catches():
        assert tasks[-1].cancel()
        with contextlib.suppress(concurrent.futures.CancelledError):
            kw.ones(3)
        return 3

    for work in (no_launch, catches):
        tasks.append(stepped.submit(work, memory=1000))
        after = stepped.submit(kw.ones, 3, after=tasks[-1])
        stepped.drain()
        with pytest.raises(concurrent.futures.CancelledError) as caught:
            tasks[-1].result()
        told = f"task {tasks[-1].id} was cancelled while it ran"
        assert str(caught.value) == told == tasks[-1].history[-1][2]
        assert tasks[-1].cancelled() and not tasks[-1].cancel() and after.state == "failed"
    with stepped.task() as block:
        assert block.cancel()
    assert isinstance(block.exception(), concurrent.futures.CancelledError)
    assert stepped.stats()["memory"]["reserved"] == 0


def test_work_that_would_run_later_is_refused(stepped):
    async def never():
        return 3

    async def never_yields():
        yield 3

    def generates():
        yield 3

    for work, kind in (
        (never, "coroutine"),
        (generates, "generator"),
        (never_yields, "async_generator"),
    ):
        task = stepped.submit(work)
        with pytest.raises(kw.ArgumentError, match=f"returned a {kind}, which has run nothing"):
            task.result()


def test_a_policy_that_chooses_nothing_is_named():
    class Never:
        def choose(self, candidates, load):
            return None

    with Scheduler(policy=Never(), background=False) as scheduler:
        task = scheduler.submit(kw.ones, 3)
        assert not scheduler.step()
        assert "Never has not chosen it" in scheduler.explain(task)
        with pytest.raises(kw.InvalidArgument, match="Never has not chosen it"):
            task.result()


@pytest.mark.parametrize("parties", [1, 3], ids=["one thread", "three threads"])
def test_tasks_that_wait_for_each_other_are_told_so(parties):
    with Scheduler() as scheduler:
        tasks, made, meeting = [], threading.Event(), threading.Barrier(parties)

        def wait(awaited):
            made.wait(30)
            meeting.wait(30)
            return tasks[awaited].result()

        for i in range(3):
            tasks.append(scheduler.submit(wait, (i + 1) % 3, qos="best_effort", name=str(i)))
        made.set()
        for task in tasks:
            with pytest.raises(kw.InvalidArgument, match="neither could end"):
                task.result(30)


def test_a_policy_may_change_its_list():
    class Empties:
        def choose(self, candidates, load):
            chosen = candidates.pop()
            candidates.clear()
            return chosen

    with Scheduler(policy=Empties(), background=False) as scheduler:
        task = scheduler.submit(kw.ones, 3)
        assert scheduler.step() and task.state == "done"


def test_wrong_policies_names_and_numbers():
    class Policy:
        choose = 3

    for policy in (3, Policy()):
        with pytest.raises(kw.ArgumentError, match="choose"):
            Scheduler(policy=policy)
    with pytest.raises(kw.ArgumentError, match="pass an instance"):
        Scheduler(policy=Policy)
    with pytest.raises(kw.InvalidArgument, match="surrogate"):
        Scheduler().submit(kw.ones, 3, name="\ud800")
    for model in ("guaranteed", "task 7"):  # an account would have two meanings
        with pytest.raises(kw.InvalidArgument, match="choose another"):
            Scheduler().submit(kw.ones, 3, model=model)
    assert Scheduler().submit(kw.ones, 3, model="task of mine").result().shape == (3,)
    assert Scheduler().submit(kw.ones, 3, priority=np.int32(2)).result().shape == (3,)


@pytest.mark.parametrize(
    ("text", "told"), [("\ud800", "Odd: \\ud800"), ("a\0b", "Odd: a b"), (None, "__str__() failed")]
)
def test_texts_of_exceptions_are_told_whole(stepped, text, told):
    class Odd(Exception):
        def __str__(self):
            return text

    def fail():
        raise Odd

    task = stepped.submit(fail)
    assert type(task.exception()) is Odd
    assert told in stepped.explain(task)
