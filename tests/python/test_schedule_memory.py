"""Arrays that schedulers keep: what goes to the host first, and comes back bit for bit."""

import gc

import numpy as np
import pytest

import kernwright as kw
from kernwright import memory
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.schedule import Scheduler

MIB = 1 << 20


@pytest.fixture
def pool():
    """A pool of its own with 16 MiB, so that a few arrays fill it."""
    gc.collect()
    with memory.use(memory.PoolResource(limit=16 * MIB)) as resource:
        yield resource
    gc.collect()


@pytest.fixture
def stepped(pool):
    with Scheduler(memory=64 * MIB, background=False) as scheduler:
        yield scheduler


def filled(value, mib=4):
    return kw.full(mib * MIB // 4, value, "f4")


def total(*arrays):
    return [float(kw.max(x).numpy()) for x in arrays]


def test_a_model_leaves_whole_and_comes_back_with_its_next_task(stepped):
    x, y = filled(3), filled(5)
    values = np.random.default_rng(1).standard_normal(1000).astype("f4")
    odd = kw.asarray(values)
    kept = stepped.keep({"weights": [x, y]}, odd, model="train")
    assert kept.nbytes == kept.resident == 8 * MIB + 4000
    with pytest.raises(InvalidArgument, match="a scheduler keeps its content"):
        kw.exp(x)
    with pytest.raises(InvalidArgument, match="a scheduler keeps"):
        x.ptr
    pressure = [filled(0) for _ in range(3)]  # no place for them beside the model
    assert kept.resident == 0 and memory.stats()["evictions"] == 3
    del pressure
    gc.collect()
    task = stepped.submit(total, x, y, model="train", qos="best_effort")
    assert task.result() == [3, 5] and kept.resident == kept.nbytes
    with kept:
        assert x.shape == y.shape == (MIB,) and odd.shape == (1000,)
        np.testing.assert_array_equal(odd.numpy(), values)
        assert kept.evict() == 0  # in use
        x += 1
    assert kept.evict() == kept.nbytes
    assert stepped.submit(total, x, model="train").result() == [4]
    kept.release()
    assert total(x, y) == [4, 5] and kept.nbytes == 0
    with pytest.raises(InvalidArgument, match="released"), kept:
        pass


def test_a_task_that_finds_no_place_for_its_model_fails_with_the_cause(stepped):
    x = filled(3, 8)
    kept = stepped.keep(x, model="m")
    blocked = [filled(0, 12)]
    assert kept.resident == 0
    task = stepped.submit(total, x, model="m")
    with pytest.raises(kw.OutOfMemory, match="limit"):
        task.result()
    assert task.state == "failed"
    blocked.clear()
    gc.collect()
    assert stepped.submit(total, x, model="m").result() == [3]


def test_best_effort_goes_before_burstable_and_guaranteed_stays(stepped):
    kept = {}
    for value, qos in enumerate(("guaranteed", "burstable", "best_effort")):
        kept[qos] = stepped.keep(filled(value), model=qos, qos=qos)
    pressure = [filled(0)]
    assert [kept[qos].resident // MIB for qos in kept] == [4, 4, 4]
    pressure.append(filled(0))
    assert [kept[qos].resident // MIB for qos in kept] == [4, 4, 0]
    pressure.append(filled(0))
    assert [kept[qos].resident // MIB for qos in kept] == [4, 0, 0]
    with pytest.raises(kw.OutOfMemory):
        filled(0)


def test_a_model_may_leave_as_soon_as_its_work_is_done(pool):
    """Without a wait for the task, which nobody has looked at since."""
    with Scheduler(memory=64 * MIB) as scheduler:
        x = filled(3)
        kept = scheduler.keep(x, model="m")
        for _ in range(20):
            scheduler.submit(kw.exp, x, model="m")
            kw.synchronize()
            assert kept.evict() == kept.nbytes


def test_models_that_take_turns_leave_the_third_alone_only_while_it_is_fresh(stepped):
    """Hysteresis: what came back shortly before goes after what was not asked for."""
    arrays = {name: filled(i) for i, name in enumerate("abc")}
    kept = {name: stepped.keep(x, model=name) for name, x in arrays.items()}
    for name in "abcab":
        assert stepped.submit(total, arrays[name], model=name).state == "queued"
        stepped.drain()
    kept["a"].evict()
    stepped.submit(total, arrays["a"], model="a").result()  # back: the freshest
    held = filled(9, 8)
    assert kept["a"].resident and not kept["b"].resident and not kept["c"].resident
    del held
    for i, name in enumerate("abc"):
        assert stepped.submit(total, arrays[name], model=name).result() == [i]


def test_a_module_with_its_optimiser_trains_on_between_evictions(pool):
    def trained(evict):
        kw.random.seed(1)
        model = kw.nn.Sequential(kw.nn.Linear(4, 8), kw.nn.Linear(8, 1))
        optimiser = kw.optim.AdamW(model, lr=0.1)
        x = kw.asarray(np.linspace(-1, 1, 32, dtype="f4").reshape(8, 4))

        def step():
            loss, gradients = kw.value_and_grad(lambda m, v: (m(v) ** 2).mean())(model, x)
            optimiser.step(gradients)
            return float(loss.numpy())

        with Scheduler(memory=64 * MIB, background=False) as scheduler:
            kept = scheduler.keep(model, optimiser, model="train") if evict else None
            losses = []
            for _ in range(4):
                losses.append(scheduler.submit(step, model="train", qos="best_effort").result())
                if kept is not None:
                    assert kept.evict() == kept.nbytes > 0
            if kept is not None:
                kept.release()
        return losses, [p.numpy() for _, p in model.named_parameters()]

    plain, evicted = trained(False), trained(True)
    assert plain[0] == evicted[0]
    for a, b in zip(plain[1], evicted[1], strict=True):
        np.testing.assert_array_equal(a, b)


def test_evictable_arrays_of_a_task_are_of_its_class(stepped):
    def make():
        return memory.Evictable(kw.ones(3))

    group = stepped.submit(make, qos="burstable", memory=(1 << 20, 2 << 20)).result().group
    assert (group.qos, group.request) == ("burstable", 1 << 20)
    first = stepped.submit(make, qos="best_effort", model="m").result().group
    second = stepped.submit(make, qos="best_effort", model="m").result().group
    assert first is second and first.qos == "best_effort"
    assert make().group is None


def test_bad_input(stepped):
    x = kw.ones(8)
    view = x[2:]
    with pytest.raises(InvalidArgument, match="another object has the memory"):
        stepped.keep(kw.ones(3), x, model="m")
    assert float(x.sum().numpy()) == 8
    del view
    kept = stepped.keep(x, model="m")
    with pytest.raises(InvalidArgument, match='the model "m" has arrays already'):
        stepped.keep(kw.ones(3), model="m")
    for objects, options, words in (
        ((), {"model": "n"}, "no arrays"),
        ((3,), {"model": "n"}, "no arrays"),
        ((kw.ones(3),), {"model": ""}, "name of a model"),
        ((kw.ones(3),), {"model": 3}, "name of a model"),
        ((kw.ones(3),), {}, "name of a model"),
    ):
        with pytest.raises(ArgumentError, match=words):
            stepped.keep(*objects, **options)
    with pytest.raises(InvalidArgument, match="best_effort, burstable or guaranteed"):
        stepped.keep(kw.ones(3), model="n", qos="gold")
    assert repr(kept) == "<Kept arrays of m: 32 of 32 bytes on the device>"
    del kept
    assert stepped.submit(total, x, model="m").result() == [1]


def test_the_end_of_a_block_without_a_beginning_changes_nothing(stepped):
    x = kw.ones(4)
    kept = stepped.keep(x, model="m")
    with pytest.raises(kw.InvalidArgument, match="no block"):
        kept.__exit__(None, None, None)
    with kept:
        assert float(x.sum().numpy()) == 4


def add_one(x):
    x += 1


def put_one(x):
    x[0] = 1


def put_array(x):
    x[...] = np.ones(4, "f4")


@pytest.mark.parametrize(
    "write",
    [add_one, put_one, put_array, lambda x: x.fill(1), lambda x: kw.exp(kw.ones(4), out=x)],
    ids=["+=", "an element", "all", "fill", "out"],
)
@pytest.mark.parametrize("is_evicted", [False, True])
def test_a_write_to_a_kept_array_says_what_to_do(stepped, write, is_evicted):
    x = kw.ones(4)
    kept = stepped.keep(x, model="m")
    if is_evicted:
        assert kept.evict() == x.nbytes
    with pytest.raises(
        InvalidArgument, match=r"a scheduler keeps its content .* in a task of that"
    ):
        write(x)
    with kept:
        np.testing.assert_array_equal(x.numpy(), np.ones(4))
        write(x)


def test_an_array_that_left_the_device_is_shown(stepped):
    net = kw.nn.Linear(2, 2)
    kept = stepped.keep(net, model="m")
    kept.evict()
    assert repr(net.weight) == "kw.Array(not on a device, shape=(2, 2), dtype=float32)"
    assert "Linear" in repr(net)


def test_the_end_of_the_scheduler_gives_arrays_back():
    x = kw.full(3, 7, "f4")
    scheduler = Scheduler(memory=64 * MIB)
    scheduler.keep(x, model="m")
    scheduler.close()
    with pytest.raises(InvalidArgument, match="the scheduler is closed"):
        scheduler.keep(kw.ones(3), model="n")
    del scheduler
    gc.collect()
    np.testing.assert_array_equal(x.numpy(), [7, 7, 7])


def test_code_of_kernels_counts(stepped):
    twice = kw.kernel("__global__ void twice(float* x) { x[threadIdx.x] *= 2; }")
    x = kw.ones(4)
    twice[1, 4](x)
    task = stepped.submit(twice[1, 4], x, memory=1 << 20)
    task.result()
    assert 100 < task.stats["peak"] < 1 << 20
    small = stepped.submit(twice[1, 4], x, memory=64, name="small")
    with pytest.raises(kw.OutOfMemory, match=r'"small" .* code of twice: .* limit of 64 bytes'):
        small.result()
    graph = kw.Graph()
    with graph.capture(kw.Stream()) as stream:
        twice[1, 4, stream](x)
    with pytest.raises(kw.OutOfMemory):
        stepped.submit(graph, memory=64).result()
