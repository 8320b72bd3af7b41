"""`await task`: who is woken, how often, and by whom the task is run."""

import asyncio
import gc
import threading
import weakref

import pytest

import kernwright as kw
from kernwright.schedule import Scheduler
from kernwright.schedule._waiting import _Ends


class Ending:
    """A task that ends when the test says so."""

    def __init__(self):
        self.callbacks = []

    def add_done_callback(self, call):
        self.callbacks.append(call)

    def end(self):
        for call in self.callbacks:
            call(self)


def test_tasks_that_end_together_wake_the_loop_once():
    async def run():
        loop, wakes = asyncio.get_running_loop(), []
        told = loop.call_soon_threadsafe
        loop.call_soon_threadsafe = lambda *call: (wakes.append(call), told(*call))
        ends, tasks = _Ends(), [Ending() for _ in range(20)]
        waits = [asyncio.ensure_future(ends.wait(task, loop)) for task in tasks]
        await asyncio.sleep(0)
        assert ends.waiting == 20
        for task in tasks[:15]:
            thread = threading.Thread(target=task.end)
            thread.start()
            thread.join()
        waits[3].cancel()
        await asyncio.wait(waits[:15])
        assert len(wakes) == 1 and sum(wait.done() for wait in waits) == 15
        for task in tasks[15:]:
            task.end()
        await asyncio.gather(*waits[15:])
        assert len(wakes) == 2 and ends.waiting == 0

    asyncio.run(run())


def test_a_scheduler_without_threads_runs_tasks_in_await():
    order = []

    async def run(scheduler):
        tasks = [scheduler.submit(order.append, i) for i in range(3)]
        await tasks[2]
        assert order == [0, 1, 2]
        held = scheduler.submit(kw.ones, 3, memory=600)
        assert await scheduler.submit(held.result) is not None
        with pytest.raises(KeyError):
            await scheduler.submit({}.pop, "seven")

    with Scheduler(memory=1000, background=False) as scheduler:
        asyncio.run(run(scheduler))


def test_many_coroutines_wait_for_many_tasks():
    async def one(scheduler, i):
        x = await scheduler.submit(kw.full, 2, i, qos=("guaranteed", "best_effort")[i % 2])
        return int(x.numpy()[0])

    async def run():
        with Scheduler() as scheduler:
            return await asyncio.gather(*(one(scheduler, i) for i in range(40)))

    assert asyncio.run(run()) == list(range(40))
    assert asyncio.run(run()) == list(range(40))  # in another loop


def test_a_loop_that_is_closed_is_left_alone():
    go = threading.Event()
    with Scheduler() as scheduler:
        task = scheduler.submit(go.wait, 30, qos="best_effort")

        async def leave():
            ends = _Ends()
            waiting = asyncio.ensure_future(ends.wait(task, asyncio.get_running_loop()))
            await asyncio.sleep(0)
            waiting.cancel()
            return ends, weakref.ref(asyncio.get_running_loop())

        ends, loop = asyncio.run(leave())
        go.set()
        assert task.result() is True
        scheduler.drain()
    gc.collect()
    assert not ends.over and loop() is None
