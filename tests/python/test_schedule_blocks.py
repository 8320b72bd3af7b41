"""Blocks as tasks, and what takes a scheduler: engines, captured functions, tuning; copies."""

import gc
import threading
import time

import numpy as np
import pytest

import kernwright as kw
from kernwright import llm
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.schedule import Refused, Scheduler

TINY = {
    "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
    "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
    "dtype": "float32", "max_position_embeddings": 64,
}  # fmt: skip
TWICE = """__global__ void twice(const float* x, float* y, int n) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}"""


@pytest.fixture
def stepped():
    with Scheduler(memory=1 << 20, background=False) as scheduler:
        yield scheduler


def done(scheduler, qos):
    return scheduler.stats()["classes"][qos]["done"]


@pytest.mark.parametrize("qos", ["guaranteed", "burstable", "best_effort"])
def test_a_block_is_a_task_between_the_work_of_its_stream(qos):
    with Scheduler(memory=1 << 20) as scheduler, kw.Stream() as outer:
        x = kw.ones(4)
        with scheduler.task(qos=qos, memory=1 << 18, name="block") as task:
            assert kw.current_stream() != outer
            assert scheduler.stats()["memory"]["reserved"] == 1 << 18
            y = kw.exp(x * 0) + 1
        assert kw.current_stream() == outer
        np.testing.assert_array_equal((y + x).numpy(), [3, 3, 3, 3])
        assert task.result() is None and (task.state, task.qos) == ("done", qos)
        assert task.stats["launches"] >= 2 and task.stats["peak"] > 0
        assert scheduler.stats()["memory"]["reserved"] == 0


def test_what_leaves_a_block_fails_its_task(stepped):
    with pytest.raises(KeyError, match="seven"), stepped.task(memory=100) as task:
        raise KeyError("seven")
    stepped.drain()
    assert task.state == "failed" and "seven" in stepped.explain(task)
    assert stepped.stats()["memory"]["reserved"] == 0
    with pytest.raises(kw.errors.Error, match="seven"):
        task.result()


def test_blocks_nest_and_submit(stepped):
    with stepped.task(qos="best_effort") as outer:
        with stepped.task(qos="guaranteed"):
            inner = stepped.submit(kw.ones, 3).result()
        with pytest.raises(InvalidArgument, match="waits for itself"):
            outer.result()
    assert inner.shape == (3,)
    stepped.drain()
    assert (done(stepped, "guaranteed"), done(stepped, "best_effort")) == (2, 1)


def test_wrong_blocks(stepped):
    with pytest.raises(ArgumentError, match="did you mean name"):
        stepped.task(names="x")
    with pytest.raises(InvalidArgument, match="above 0 and at most 1"):
        stepped.task(share=2.0)
    with pytest.raises(Refused, match="can never fit"), stepped.task(memory=1 << 30):
        pass
    with (
        stepped.task(memory=1 << 20),
        pytest.raises(InvalidArgument, match="cannot begin now"),
        stepped.task(memory=1 << 20),
    ):
        pass
    block = stepped.task()
    with block, pytest.raises(InvalidArgument, match="has begun"):
        block.__enter__()
    with pytest.raises(InvalidArgument, match="ends on the thread"):
        block.__exit__(None, None, None)
    graph = kw.Graph()
    with graph.capture(kw.Stream()), pytest.raises(kw.CaptureError), stepped.task():
        pass
    stepped.close()
    with pytest.raises(InvalidArgument, match="closed"), stepped.task():
        pass


def test_a_block_waits_until_memory_is_free():
    with Scheduler(memory=1000) as scheduler:
        go, begun = threading.Event(), threading.Event()

        def hold():
            with scheduler.task(memory=600):
                begun.set()
                go.wait(30)

        thread = threading.Thread(target=hold)
        thread.start()
        assert begun.wait(30)
        threading.Timer(0.05, go.set).start()
        with scheduler.task(memory=600) as task:
            assert go.is_set()
        thread.join()
        task.result()
        assert done(scheduler, "guaranteed") == 2


def test_steps_of_an_engine_are_guaranteed():
    plain = llm.load(random=TINY).generate([1, 2, 3], max_tokens=4, seed=1).tokens
    with Scheduler(memory=1 << 20) as scheduler:
        model = llm.load(random=TINY, scheduler=scheduler)
        assert model.scheduler is scheduler
        assert model.generate([1, 2, 3], max_tokens=4, seed=1).tokens == plain
        steps = done(scheduler, "guaranteed")
        assert steps >= 4
        with llm.Engine(model, max_rows=2) as engine:
            assert engine.submit([1, 2, 3], max_tokens=4, seed=1).result().tokens == plain
        assert done(scheduler, "guaranteed") > steps
        scheduler.close()  # steps are plain launches then
        assert model.generate([1, 2, 3], max_tokens=4, seed=1).tokens == plain
    for take, value in ((llm.load, TINY), (llm.Engine, model), (kw.captured, kw.exp)):
        given = {"random": value} if take is llm.load else {}
        with pytest.raises(ArgumentError, match=r"scheduler= is a kw.schedule.Scheduler or None"):
            take(*([] if given else [value]), scheduler=3, **given)
    del engine, model
    gc.collect()


def test_online_trials_are_best_effort_and_wait_for_others():
    twice = kw.kernel(TWICE)
    x, y = kw.ones(500), kw.zeros(500)
    with Scheduler(memory=1 << 20) as scheduler:
        serve = twice.online(
            kw.tune.Space(BLOCK=[32, 64]), overhead=100.0, grid="-(-n // BLOCK)", block="BLOCK",
            scheduler=scheduler,
        )  # fmt: skip
        with scheduler.task(qos="guaranteed"):
            for _ in range(20):
                serve(x, y, x.size)
        assert done(scheduler, "best_effort") == 0
        scheduler.drain()
        until = time.monotonic() + 60
        while not serve.frozen and time.monotonic() < until:
            serve(x, y, x.size)
        scheduler.drain()  # the end of a task is seen some time behind its work
        assert serve.frozen and {trial.status for trial in serve.trials} == {"correct"}
        submitted = scheduler.stats()["classes"]["best_effort"]["submitted"]
        assert done(scheduler, "best_effort") == submitted > 0
        np.testing.assert_array_equal(y.numpy(), np.full(500, 2))


def test_online_trials_wait_for_tasks_that_wait():
    twice, go, begun = kw.kernel(TWICE), threading.Event(), threading.Event()
    x, y = kw.ones(500), kw.zeros(500)
    with Scheduler(memory=1 << 20) as scheduler:

        def hold():
            with scheduler.task(qos="best_effort", memory=1 << 20):
                begun.set()
                go.wait(30)

        serve = twice.online(
            kw.tune.Space(BLOCK=[32, 64]), overhead=100.0, grid="-(-n // BLOCK)", block="BLOCK",
            scheduler=scheduler,
        )  # fmt: skip
        thread = threading.Thread(target=hold)
        thread.start()
        assert begun.wait(30)
        waiting = scheduler.submit(kw.ones, 3, qos="guaranteed", memory=1 << 20)
        before = scheduler.stats()["classes"]["best_effort"]["submitted"]
        for _ in range(20):
            serve(x, y, x.size)
        assert scheduler.stats()["classes"]["guaranteed"]["waiting"] == 1
        assert scheduler.stats()["classes"]["best_effort"]["submitted"] == before
        go.set()
        assert waiting.result().shape == (3,)
        thread.join()


def test_trials_of_a_session_are_best_effort():
    x = np.ones(100, np.float32)
    with Scheduler(memory=1 << 20) as scheduler:
        session = kw.tune.Session(
            TWICE, kw.tune.Space(BLOCK=[32, 64]), (x, kw.Out(x.copy()), 100),
            grid="-(-n // BLOCK)", block="BLOCK", isolation="inproc", scheduler=scheduler,
        )  # fmt: skip
        assert session.run() is not None
        scheduler.drain()
        assert done(scheduler, "best_effort") >= len(session.trials) == 2
    with pytest.raises(ArgumentError, match="scheduler="):
        kw.tune.Session(TWICE, kw.tune.Space(BLOCK=[32]), (), grid=1, block=1, scheduler=3)


def test_copies_of_a_task_have_its_class(stepped):
    engine = kw.TransferEngine()
    values = np.arange(6 << 18, dtype=np.float32)  # 6 MiB

    def copies():
        there = kw.asarray(values)
        back = engine.download(there).result()
        engine.upload(back, there).wait()
        return there.numpy()

    for qos in ("guaranteed", "burstable", "best_effort"):
        np.testing.assert_array_equal(stepped.submit(copies, qos=qos).result(), values)
    with pytest.raises(ArgumentError, match="qos= is the name of a class"):
        engine.upload(values, qos=3)
