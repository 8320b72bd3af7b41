"""Schedulers: tasks, their results and errors, admission, policies of Python, asyncio."""

import asyncio
import concurrent.futures
import functools
import gc
import json
import threading
import time
import weakref

import numpy as np
import pytest

import kernwright as kw
from kernwright.schedule import Refused, Scheduler

TWICE = "__global__ void twice(float* x, int n) { int i = threadIdx.x; if (i < n) x[i] *= 2; }"
CLASSES = ("guaranteed", "burstable", "best_effort")


def states(task):
    return [state for state, _, _ in task.history]


@pytest.fixture
def stepped():
    """Runs tasks in step() and waits only."""
    with Scheduler(memory=10**6, background=False) as scheduler:
        yield scheduler


@pytest.mark.parametrize("qos", CLASSES)
def test_a_call_a_kernel_a_graph_and_a_captured_function_are_work(qos):
    twice = kw.kernel(TWICE)
    x = kw.asarray(np.arange(4, dtype=np.float32))
    graph = kw.Graph()
    with graph.capture(kw.Stream()) as stream:
        twice[1, 32, stream](x, 4)
    step = kw.captured(lambda y: y + 1)
    with Scheduler() as scheduler:
        assert scheduler.submit(twice[1, 32], x, 4, qos=qos).result() is None
        scheduler.submit(graph, qos=qos).result()
        total = scheduler.submit(functools.partial(kw.sum, axis=0), x, qos=qos).result()
        assert float(total.numpy()) == 4 * 6
        for _ in range(3):
            y = scheduler.submit(step, x, qos=qos).result()
        np.testing.assert_array_equal(y.numpy(), 4 * np.arange(4) + 1)


def test_work_goes_behind_the_current_stream_and_behind_other_tasks():
    twice = kw.kernel(TWICE)
    with Scheduler() as scheduler, kw.Stream():
        x = kw.ones(4)
        first = scheduler.submit(twice[1, 32], x, 4, qos="best_effort")
        second = scheduler.submit(twice[1, 32], x, 4, after=first)
        scheduler.submit(twice[1, 32], x, 4, qos="burstable", after=[first, second]).result()
        np.testing.assert_array_equal(x.numpy(), np.full(4, 8))


def test_a_task_waits_in_the_class_that_it_was_lent(stepped):
    def waiting():
        return [each["waiting"] for each in stepped.stats()["classes"].values()]

    low = stepped.submit(kw.ones, 3, qos="best_effort")
    assert waiting() == [0, 0, 1]
    stepped.submit(kw.ones, 3, qos="burstable", after=low)
    assert waiting() == [0, 1, 0]
    last = stepped.submit(kw.ones, 3, after=low)
    assert waiting() == [1, 0, 0]
    stepped.drain()
    assert last.result().shape == (3,) and waiting() == [0, 0, 0]


def test_states_stats_and_reasons(stepped):
    task = stepped.submit(kw.exp, kw.ones(3), name="ones", memory=600_000)
    other = stepped.submit(kw.ones, 3, memory=500_000)
    assert (task.state, task.name, task.qos, task.id) == ("queued", "ones", "guaranteed", 1)
    assert repr(task) == '<Task 1 "ones": guaranteed, queued>'
    assert stepped.explain(other) == "task 2 (guaranteed) is queued: 1 task is ahead"
    assert stepped.explain(task) == '"ones" (task 1) (guaranteed) is queued: it is next'
    assert stepped.step()
    task.result()  # a GPU may still be at it
    assert states(task) == ["pending", "queued", "admitted", "running", "done"]
    times = [seconds for _, seconds, _ in task.history]
    assert times == sorted(times)
    assert all(reason for _, _, reason in task.history + other.history)
    assert task.history[1][2] == "nothing that it asks for is short"
    assert task.stats["launches"] == 1
    assert task.stats["bytes"] == 600_000
    assert task.stats["queued"] >= 0
    assert task.done() and not task.cancelled() and task.exception() is None
    assert stepped.stats()["classes"]["guaranteed"]["done"] == 1
    assert stepped.stats()["memory"] == {"total": 1_000_000, "reserved": 0}


def test_what_can_never_fit_is_refused(stepped):
    task = stepped.submit(kw.ones, 3, memory=1_000_001)
    assert task.state == "refused"
    with pytest.raises(Refused, match="at most 1000000 bytes"):
        task.result()
    late = stepped.submit(kw.ones, 3, deadline=-1)
    assert "its deadline passed 1 s before" in str(late.exception())
    assert "passed 0 s before" in str(stepped.submit(kw.ones, 3, deadline=0).exception())


def test_a_task_inside_sees_what_its_own_reservation_leaves(stepped):
    def outer():
        return stepped.submit(kw.ones, 3, memory=600_000).result()

    task = stepped.submit(outer, memory=600_000)
    with pytest.raises(kw.InvalidArgument, match=r"can begin only after it: 585.9 KiB of memory"):
        task.result()
    assert task.state == "failed"


def test_a_task_that_waits_for_itself_is_told_so():
    with Scheduler() as scheduler:
        tasks = []
        ready = threading.Event()

        def wait():
            ready.wait(10)
            tasks[0].result()

        tasks.append(scheduler.submit(wait, qos="best_effort"))
        ready.set()
        with pytest.raises(kw.InvalidArgument, match="waits for itself"):
            tasks[0].result()


def test_work_may_submit_wait_and_synchronise_inside():
    with Scheduler() as scheduler:

        def outer(qos):
            x = scheduler.submit(kw.ones, 3, qos=qos).result()
            kw.synchronize()
            return float(kw.sum(x).numpy())

        assert [scheduler.submit(outer, q, qos=p).result() for p in CLASSES for q in CLASSES] == [
            3.0
        ] * 9


def test_exceptions_are_those_of_the_work():
    class Odd(Exception):
        pass

    odd = Odd("seven")

    def fail():
        raise odd

    with Scheduler() as scheduler:
        task = scheduler.submit(fail, memory=10)
        with pytest.raises(Odd) as caught:
            task.result()
        assert caught.value is odd and task.exception() is odd
        assert task.state == "failed"
        assert "seven" in scheduler.explain(task)
        after = scheduler.submit(kw.ones, 3, after=task)
        assert after.state == "failed"
        wrong = scheduler.submit(kw.kernel(TWICE)[1, 32], kw.ones(3, "f8"), 3)
        with pytest.raises(kw.ArgumentError):
            wrong.result()
        assert scheduler.stats()["memory"]["reserved"] == 0


def test_cancel_takes_waiting_tasks_and_running_ones_at_a_launch(stepped):
    waiting = stepped.submit(kw.ones, 3)
    assert waiting.cancel() and waiting.cancelled() and not waiting.cancel()
    with pytest.raises(concurrent.futures.CancelledError):
        waiting.result()
    begun = threading.Event()

    def endless():
        while True:
            kw.exp(kw.ones(3))
            begun.set()

    with Scheduler() as scheduler:
        task = scheduler.submit(endless, qos="best_effort")
        assert begun.wait(30)
        assert task.cancel()
        with pytest.raises(concurrent.futures.CancelledError):
            task.result(30)
        assert task.state == "cancelled"


def test_timeouts_say_why():
    with Scheduler() as scheduler:
        go = threading.Event()
        task = scheduler.submit(go.wait, 30, qos="best_effort", name="slow")
        with pytest.raises(kw.Timeout, match="slow"):
            task.result(timeout=0.01)
        go.set()
        assert task.result() is True


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"share": 1.5}, "share=(1.5, 1.5)"),
        ({"share": (0.5, 0.25)}, "limit 0.25 is below the request 0.5"),
        ({"share": "much"}, "share is a number, got str"),
        ({"share": True}, "share is a number, got bool"),
        ({"share": (1, 2, 3)}, "(request, limit)"),
        ({"memory": (8, 4), "qos": "burstable"}, "limit of 4 bytes is below"),
        ({"memory": (4, 8)}, 'qos="burstable"'),
        ({"memory": -1}, "at least 0"),
        ({"qos": "gold"}, '"guaranteed", "burstable" or "best_effort"'),
        ({"priority": 1.5}, "priority is an int"),
        ({"priority": 10**9}, "between"),
        ({"deadline": float("nan")}, "deadline=nan"),
        ({"after": 3}, "after= is a task"),
        ({"nam": "x"}, "did you mean name?"),
    ],
)
def test_wrong_options_name_the_value(stepped, options, words):
    with pytest.raises(kw.Error) as caught:
        stepped.submit(kw.ones, 3, **options)
    assert words in str(caught.value)
    assert stepped.stats()["classes"]["guaranteed"]["submitted"] == 0


def test_wrong_schedulers_and_work():
    with pytest.raises(kw.ArgumentError, match="work is missing"):
        Scheduler().submit()
    with pytest.raises(kw.ArgumentError, match="work is a function"):
        Scheduler().submit(3)
    with pytest.raises(kw.NameNotFound, match='"strict"'):
        Scheduler(policy="fifo")
    with pytest.raises(kw.ArgumentError, match="choose"):
        Scheduler(policy=3)
    with pytest.raises(kw.InvalidArgument, match="share"):
        Scheduler(share=0)
    with pytest.raises(kw.InvalidArgument):
        Scheduler(most_running={"best_effort": 0})
    scheduler, other = Scheduler(), Scheduler()
    with pytest.raises(kw.InvalidArgument, match="another scheduler"):
        scheduler.explain(other.submit(kw.ones, 3))
    scheduler.close()
    assert scheduler.closed
    with pytest.raises(kw.InvalidArgument, match="closed"):
        scheduler.submit(kw.ones, 3)


def test_a_submission_inside_of_a_capture_is_refused():
    with Scheduler() as scheduler:
        graph = kw.Graph()
        with graph.capture(kw.Stream()):
            y = kw.ones(3)
            with pytest.raises(kw.CaptureError, match="submit after the capture"):
                scheduler.submit(kw.ones, 3)
        graph.launch()
        np.testing.assert_array_equal(y.numpy(), np.ones(3))

        def capture():
            inner = kw.Graph()
            with inner.capture(kw.current_stream()):
                kw.ones(3)
            inner.launch(kw.current_stream())
            return inner.node_count

        assert scheduler.submit(capture).result() > 0


def test_launches_on_other_streams_belong_to_the_task():
    twice = kw.kernel(TWICE)
    x = kw.ones(4)
    other = kw.Stream()
    with Scheduler() as scheduler:
        task = scheduler.submit(twice[1, 32, other], x, 4)
        task.result()
        np.testing.assert_array_equal(x.numpy(), np.full(4, 2))
        assert task.stats["launches"] == 1
        scheduler.submit(twice[1, 32, 0], x, 4).result()  # the legacy stream
        np.testing.assert_array_equal(x.numpy(), np.full(4, 4))


def test_four_threads_submit_ten_tasks_each():
    with Scheduler(memory=1000) as scheduler:

        def submit(seed):
            tasks = [
                scheduler.submit(kw.full, 3, seed + i, qos=CLASSES[i % 3], memory=300)
                for i in range(10)
            ]
            return [int(task.result().numpy()[0]) for task in tasks]

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            results = list(pool.map(submit, (0, 10, 20, 30)))
        assert [value for ten in results for value in ten] == list(range(40))
        assert scheduler.stats()["memory"]["reserved"] == 0
        assert sum(row["done"] for row in scheduler.stats()["classes"].values()) == 40


def test_a_memory_limit_is_one_of_the_arrays_of_a_task():
    with Scheduler(memory=2**20) as scheduler:
        big = scheduler.submit(kw.ones, 100_000, memory=300_000, name="big")
        with pytest.raises(kw.OutOfMemory) as caught:
            big.result()
        assert '"big" (task 1): ' in str(caught.value)
        assert "400000 bytes, over the limit of 300000 bytes" in str(caught.value)
        assert caught.value.requested == 400_000
        more = scheduler.submit(kw.ones, 100_000, qos="burstable", memory=(1000, 500_000))
        assert more.result().nbytes == 400_000
        assert more.stats["peak"] == 400_000
        assert more.stats["bytes"] == 1000
        assert scheduler.submit(kw.ones, 100_000).stats["peak"] == 0


def test_tasks_of_a_model_share_one_limit_and_one_reservation():
    with Scheduler(memory=2**20, background=False) as scheduler:

        def submit(**options):
            return scheduler.submit(kw.ones, 50_000, model="m", **options)

        held = submit(memory=300_000).result()
        second = submit(memory=300_000)
        with pytest.raises(kw.OutOfMemory, match=r'model "m": .* held: 195\.3 KiB'):
            second.result()
        assert held.nbytes == 200_000
        del held
        tasks = [submit(memory=300_000), submit()]
        with pytest.raises(kw.InvalidArgument, match="one account"):
            submit(memory=400_000)
        scheduler.drain()
        assert [task.state for task in tasks] == ["done", "failed"]
        assert scheduler.stats()["memory"]["reserved"] == 0


def test_views(stepped, tmp_path):
    x = kw.ones(3)
    first = stepped.submit(kw.exp, x, name="<one>", model="[bold]m[/bold]", memory=600_000)
    stepped.submit(kw.exp, x, qos="best_effort").cancel()
    first.result()
    stepped.submit(kw.exp, x, memory=500_000, name="two")
    stepped.submit(kw.exp, x, memory=5_000_000)
    rows = stepped.tasks()
    assert [row["state"] for row in rows] == ["cancelled", "done", "queued"]
    assert rows[2]["explained"].startswith('"two" (task 3)')
    events = stepped.trace()["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert [event["name"] for event in spans] == ["queued", "queued", "running"]
    assert all(event["dur"] >= 0 for event in spans)
    stepped.save(tmp_path / "page.html")
    stepped.save(tmp_path / "trace.json")
    page = (tmp_path / "page.html").read_text()
    assert "&lt;one&gt;" in page and "<one>" not in page and "it is next" in page
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"] == events
    rich = pytest.importorskip("rich.console")
    with (tmp_path / "panel.txt").open("w") as file:
        rich.Console(width=140, file=file).print(stepped.panel())
    panel = (tmp_path / "panel.txt").read_text()
    assert "guaranteed" in panel and "[bold]m[/bold]" in panel  # a name is no markup


def test_long_tasks_of_a_class_run_beside_each_other():
    with Scheduler(memory=1000) as scheduler:
        meeting = threading.Barrier(3)
        tasks = [
            scheduler.submit(meeting.wait, 60, qos="best_effort", memory=200, share=0.3)
            for _ in range(3)
        ]
        assert sorted(task.result(60) for task in tasks) == [0, 1, 2]


def test_policies_of_python_choose(stepped):
    class Last:
        def __init__(self):
            self.loads = []

        def choose(self, candidates, load):
            self.loads.append(load)
            return max(candidates, key=lambda task: task.priority)

    policy = Last()
    order = []
    with Scheduler(policy=policy, background=False) as scheduler:
        assert scheduler.policy.endswith("Last")
        for qos, priority in (("guaranteed", 1), ("best_effort", 3), ("burstable", 2)):
            scheduler.submit(order.append, priority, priority=priority, qos=qos)
        scheduler.drain()
    assert order == [3, 2, 1]
    assert policy.loads[0].waiting == dict.fromkeys(CLASSES, 1)

    class Least:
        def choose(self, candidates, load):
            return np.argmin([task.priority for task in candidates])

    with Scheduler(policy=Least(), background=False) as scheduler:
        for qos, priority in (("guaranteed", 2), ("best_effort", 1)):
            scheduler.submit(order.append, priority, priority=priority, qos=qos)
        scheduler.drain()
    assert order[3:] == [1, 2]

    class Wrong:
        def choose(self, candidates, load):
            return 7

    with Scheduler(policy=Wrong(), background=False) as scheduler:
        scheduler.submit(kw.ones, 3)
        with pytest.raises(kw.Error, match="returned 7"):
            scheduler.step()


def test_policies_of_python_with_threads():
    class First:
        def choose(self, candidates, load):
            return 0

    with Scheduler(policy=First()) as scheduler:
        tasks = [scheduler.submit(kw.full, 2, i, qos=CLASSES[i % 3]) for i in range(12)]
        assert [int(task.result().numpy()[0]) for task in tasks] == list(range(12))


def test_await():
    async def run():
        with Scheduler() as scheduler:
            tasks = [scheduler.submit(kw.full, 2, i, qos=CLASSES[i % 3]) for i in range(6)]
            arrays = await asyncio.gather(*tasks)
            assert [int(x.numpy()[0]) for x in arrays] == list(range(6))

            def fail():
                raise KeyError("seven")

            with pytest.raises(KeyError, match="seven"):
                await scheduler.submit(fail)
            go = threading.Event()
            slow = scheduler.submit(go.wait, 30, qos="best_effort")
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(asyncio.ensure_future(wait(slow)), 0.05)
            go.set()

    async def wait(task):
        return await task

    asyncio.run(run())


def test_callbacks_get_the_task(stepped):
    seen = []
    task = stepped.submit(kw.ones, 3)
    task.add_done_callback(seen.append)
    task.result()
    task.add_done_callback(seen.append)
    assert seen == [task, task]
    with pytest.raises(kw.ArgumentError):
        task.add_done_callback(3)


def test_a_callback_may_take_a_lock_that_is_held_over_submit():
    lock, done = threading.Lock(), []

    def note(task):
        with lock:
            done.append(task)

    x = kw.ones(3)
    with Scheduler(memory=1000) as scheduler:
        for _ in range(100):
            scheduler.submit(kw.exp, x, memory=800).add_done_callback(note)
            with lock:
                scheduler.submit(kw.exp, x, memory=800)
        scheduler.drain()
    deadline = time.monotonic() + 20
    while len(done) < 100 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(done) == 100


def test_what_is_dropped_is_gone():
    class Value:
        pass

    with Scheduler() as scheduler:
        value = Value()
        seen = weakref.ref(value)
        task = scheduler.submit(lambda v: v, value, qos="best_effort")
        assert task.result() is value
        del value, task
        for _ in range(100):
            gc.collect()
            if seen() is None:
                break
            time.sleep(0.01)
        assert seen() is None
    task = Scheduler().submit(kw.ones, 3, qos="burstable")  # the task keeps its scheduler
    assert task.result().shape == (3,)
