"""Schedulers at the end of the interpreter, in a forked child, and blocks that end out of place."""

import gc
import textwrap
import threading

import pytest
from children import run_child

import kernwright as kw
from kernwright.errors import InvalidArgument
from kernwright.schedule import Scheduler

# The promise that the driver is left alone once exit has begun: a late call ends with 97.
PROLOGUE = r"""
import os, sys, threading, time
import kernwright as kw
import kernwright._core as core

core._faults.install("cuda" if os.environ["KERNWRIGHT_DEVICE"].startswith("cuda") else "sim")
core._faults.forbid_late_calls()


class First:
    def choose(self, candidates, load):
        sum(range(50))
        return candidates[0]


scheduler = kw.schedule.Scheduler(memory=1000)
chosen = kw.schedule.Scheduler(policy=First())


def fail():
    raise ValueError("on purpose")


def loop():
    while True:
        sum(range(100))


def nap():
    while True:
        time.sleep(0.0001)


def launch():
    while True:
        kw.ones(3)


def blocks(scheduler=scheduler):
    while True:
        try:
            with scheduler.task(memory=1000):
                sum(range(1000))
        except BaseException as error:
            str(error)


def submissions(scheduler=chosen):
    while True:
        for work in (fail, dict):
            for qos in ("guaranteed", "burstable", "best_effort"):
                task = scheduler.submit(work, qos=qos)
                task.add_done_callback(lambda task: sum(range(100)))
                try:
                    task.result()
                except BaseException as error:
                    str(error)


def mistakes(scheduler=scheduler):
    while True:
        for call in (lambda: scheduler.submit(3, qos="wrong"), lambda: scheduler.partition("x")):
            try:
                call()
            except BaseException as error:
                str(error)


def start(target):
    threading.Thread(target=target, daemon=True).start()


def begin(work, scheduler=scheduler):
    task = scheduler.submit(work, qos="best_effort")
    while task.state != "running":
        time.sleep(0.001)
    return task
"""

ENDS = {
    "while a task computes": "task = begin(loop)",
    "while a task sleeps": "task = begin(nap)",
    "while a task launches": "task = begin(launch)",
    "while tasks of two schedulers compute": "tasks = begin(loop), begin(nap, chosen)",
    "while the work of a task submits tasks": "task = begin(submissions, chosen)",
    "while daemon threads wait for a block": (
        "held = scheduler.task(memory=1000)\nheld.__enter__()\nfor _ in range(4): start(blocks)"
    ),
    "while daemon threads run blocks": "for _ in range(3): start(blocks)",
    "while daemon threads submit": "for _ in range(2): start(submissions)",
    "while daemon threads make mistakes": "for _ in range(2): start(mistakes)",
    "while all of these work": (
        "task = begin(loop)\nfor each in (blocks, submissions, mistakes, launch): start(each)"
    ),
    "without the names": (
        "start(submissions)\nstart(blocks)\ntask = begin(loop)\ndel scheduler, chosen, task"
    ),
}


@pytest.mark.parametrize("way", ENDS)
def test_the_process_ends(way):
    ended = run_child(PROLOGUE + textwrap.dedent(ENDS[way]) + "\ntime.sleep(0.02)\n")
    assert (ended.code, ended.out, ended.err) == (0, "", "")


def test_tasks_may_fail_at_once_while_what_they_need_is_imported():
    ended = run_child("""
    import sys, threading, time
    import kernwright as kw

    both = threading.Barrier(2)

    class Slow:
        def find_spec(self, name, path=None, target=None):
            if name.startswith("concurrent"):
                time.sleep(0.2)  # the other task fails meanwhile

    def fail():
        both.wait()
        raise ValueError("on purpose")

    scheduler = kw.schedule.Scheduler()
    for name in [name for name in sys.modules if name.startswith("concurrent")]:
        del sys.modules[name]
    sys.meta_path.insert(0, Slow())
    tasks = [scheduler.submit(fail, qos="best_effort") for _ in range(2)]
    print([type(task.exception()).__name__ for task in tasks])
    """)
    assert (ended.code, ended.out, ended.err) == (0, "['ValueError', 'ValueError']\n", "")


def test_a_forked_child_does_not_wait_for_tasks():
    ended = run_child("""
    import os, sys, threading
    import kernwright as kw

    scheduler = kw.schedule.Scheduler()
    go = threading.Event()
    first = scheduler.submit(go.wait, qos="best_effort")
    second = scheduler.submit(kw.ones, 3, after=first)
    pid = os.fork()
    if pid == 0:
        begin = scheduler.task().__enter__
        calls = [first.result, second.exception, lambda: first.result(60), begin]
        calls += [first.cancel, scheduler.stats, lambda: scheduler.explain(first)]
        for wait in calls:
            try:
                wait()
            except kw.Error as error:
                if "fork()" not in str(error) or "spawn" not in str(error):
                    os._exit(2)
            else:
                os._exit(3)
        scheduler.drain()
        scheduler.close()
        del first, second, scheduler
        sys.exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    go.set()
    assert second.result().shape == (3,)
    """)
    assert (ended.code, ended.err) == (0, "")


def suspend(scheduler, tasks):
    with scheduler.task(memory=1000) as task:
        tasks.append(task)
        yield


def test_a_block_whose_object_goes_on_another_thread_fails_and_gives_its_memory_back():
    with Scheduler(memory=1000) as scheduler:
        tasks = []
        suspended = suspend(scheduler, tasks)
        thread = threading.Thread(target=next, args=(suspended,))
        thread.start()
        thread.join()
        assert tasks[0].state == "running"
        with pytest.raises(InvalidArgument, match="on the thread where it began"):
            suspended.close()
        del suspended
        gc.collect()
        with pytest.raises(kw.Error, match="did not end in its place"):
            tasks[0].result(60)
        assert scheduler.submit(kw.ones, 3, memory=1000).result(60).shape == (3,)


@pytest.mark.parametrize("qos", ["guaranteed", "burstable", "best_effort"])
def test_blocks_end_in_the_reverse_order(qos):
    with Scheduler(memory=1000) as scheduler:
        outer, inner = scheduler.task(qos=qos, memory=500), scheduler.task(qos=qos, memory=500)
        tasks = [outer.__enter__(), inner.__enter__()]
        with pytest.raises(InvalidArgument, match="behind the blocks of tasks inside it"):
            outer.__exit__(None, None, None)
        assert kw.ones(3).shape == (3,)
        for block in (inner, outer):
            block.__exit__(None, None, None)
        for task in tasks:
            task.result(60)
        assert scheduler.submit(kw.ones, 3, memory=1000).result(60).shape == (3,)
