"""Device memory from Python: statistics, limits, resources, reports, eviction, blocks."""

import gc
import itertools
import json
import pathlib
import subprocess
import sys
import threading
from html.parser import HTMLParser

import numpy as np
import pytest

import kernwright as kw
from kernwright import memory

MIB = 1 << 20


@pytest.fixture
def pool(device):
    """A pool of its own for the arrays of a test."""
    gc.collect()
    with memory.use(memory.PoolResource()) as resource:
        yield resource
    gc.collect()


def balanced(stats):
    return stats["used"] + stats["padding"] + stats["cached"] == stats["reserved"]


def test_repeated_allocations_are_served_from_the_pool(pool):
    for _ in range(1000):
        kw.empty(MIB // 4)
    stats = memory.stats()
    assert stats["misses"] == stats["driver_allocs"] == 1
    assert stats["hits"] == 999
    assert stats["used"] == 0 and stats["used_peak"] == MIB
    assert balanced(stats)


def test_the_device_s_own_resource_counts_too(device):
    before = memory.stats(device)
    x = kw.empty(1000, np.float64)
    after = memory.stats(device)
    assert after["used"] - before["used"] == 8000
    assert after["blocks"] - before["blocks"] == 1
    assert after["allocations"] - before["allocations"] == 1
    del x
    assert memory.stats()["used"] == before["used"]


def test_statistics_follow_a_random_program(pool):
    random = np.random.default_rng(7)
    live, used, peak, made = [], 0, 0, 0
    for _ in range(600):
        if not live or random.random() < 0.55:
            size = int(random.integers(1, 50_000))
            live.append(kw.empty(size, np.uint8))
            used += size
            peak = max(peak, used)
            made += 1
        else:
            used -= live.pop(int(random.integers(len(live)))).nbytes
        stats = memory.stats()
        assert stats["used"] == used and stats["blocks"] == len(live)
        assert balanced(stats)
    assert stats["used_peak"] == peak and stats["allocations"] == made
    assert stats["hits"] + stats["misses"] == made


def test_trim_gives_back_what_is_not_used(pool):
    kept = kw.empty(MIB, np.uint8)
    kw.empty(8 * MIB, np.uint8)
    assert memory.stats()["cached"] >= 8 * MIB
    assert memory.trim() >= 8 * MIB
    assert memory.trim() == 0
    assert memory.stats()["used"] == kept.nbytes


def test_a_limit_is_kept_and_named(pool):
    x = kw.empty(2 * MIB, np.uint8)
    memory.set_limit(4 * MIB)
    assert memory.stats()["limit"] == 4 * MIB
    with pytest.raises(kw.OutOfMemory, match="limit of 4194304 bytes") as caught:
        kw.empty(3 * MIB, np.uint8)
    assert isinstance(caught.value, MemoryError)
    assert caught.value.requested == 3 * MIB and caught.value.used == x.nbytes
    assert caught.value.reserved <= 4 * MIB
    kw.empty(MIB, np.uint8)
    with pytest.raises(ValueError, match="in use"):
        memory.set_limit(MIB)
    memory.set_limit(None)
    assert memory.stats()["limit"] is None
    kw.empty(3 * MIB, np.uint8)


@pytest.mark.parametrize(
    ("limit", "error"),
    [(0, ValueError), (-1, ValueError), (1.5, TypeError), ("1", TypeError), (True, TypeError),
     (1 << 70, OverflowError)],
)  # fmt: skip
def test_limits_that_cannot_be(pool, limit, error):
    with pytest.raises(error) as caught:
        memory.set_limit(limit)
    assert isinstance(caught.value, kw.Error)
    assert memory.stats()["limit"] is None


def test_out_of_memory_says_who_holds_what(pool):
    held = [kw.empty(MIB, np.uint8) for _ in range(3)]
    with pytest.raises(kw.OutOfMemory) as caught:
        kw.empty(1 << 50, np.uint8)
    assert "3 MiB in 3 allocations from" in str(caught.value)
    assert "test_memory.py:" in str(caught.value)
    assert caught.value.requested == 1 << 50 and caught.value.used == 3 * MIB
    assert len(held) == 3 and kw.empty(10).size == 10


def test_arrays_cannot_be_larger_than_addresses(pool):
    with pytest.raises(ValueError, match="2\\^63"):
        kw.empty((1 << 40, 1 << 40), np.uint8)
    with pytest.raises(ValueError):
        kw.empty(-1)
    with pytest.raises(ValueError, match="2\\^63"):
        kw.pinned((1 << 40, 1 << 22), np.float64)
    assert kw.empty(0).ptr == 0
    assert memory.stats()["blocks"] == 0


def test_leaks_name_the_line_also_through_the_library_s_own_python(pool):
    assert memory.leaks() == []
    x = kw.ones(1000, np.float32)  # this line
    y = [x.copy() for _ in range(2)]
    first, second = memory.leaks()
    assert first["count"] == 2 and first["bytes"] == 8000
    assert second["count"] == 1 and second["place"].split(":")[-1] == str(_line_of("# this line"))
    assert all("test_memory.py" in row["place"] for row in (first, second))
    text = memory.report()
    assert "12,000 bytes in use" in text and second["place"] in text
    del y


def _line_of(mark):
    lines = pathlib.Path(__file__).read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if line.rstrip().endswith(mark))


def test_tracking_adaptor(device):
    tracked = memory.TrackingAdaptor(memory.DeviceResource())
    with memory.use(tracked):
        x = kw.empty(256, np.float32)
        assert "1 KiB in 1 allocation is in use" in tracked.report()
        assert tracked.stats()["used"] == 1024
        del x
    gc.collect()
    assert tracked.report() == "" and tracked.records() == []


def test_what_is_tracked_and_alive_is_reported_at_exit():
    code = (
        "import kernwright as kw\n"
        "kw.memory.use(kw.memory.TrackingAdaptor(kw.memory.PoolResource()))\n"
        "kept = kw.empty(1000, 'float32')\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0
    assert "3.9 KiB in 1 allocation is in use" in run.stderr
    assert "<string>:3" in run.stderr


def test_use_ends_with_its_block_also_after_an_exception(device):
    before = memory.resource()
    with pytest.raises(KeyError):
        with memory.use(memory.DeviceResource()):
            raise KeyError
    assert memory.resource() is before
    array = None
    with memory.use(memory.PoolResource()) as pool:
        array = kw.ones(10)
    assert pool.stats()["blocks"] == 1
    assert (array.numpy() == 1).all()  # memory outlives the choice of its resource
    del array
    assert pool.stats()["blocks"] == 0


def test_snapshot_as_json_and_as_a_page(pool, tmp_path):
    x = kw.empty(MIB, np.uint8)
    kw.empty(5000, np.uint8)
    snapshot = memory.snapshot()
    data = json.loads(snapshot.to_json())
    assert data == snapshot.data
    assert data["stats"]["used"] == x.nbytes
    for segment in data["segments"]:
        offset = 0
        for block in segment["blocks"]:
            assert block["offset"] == offset
            offset += block["bytes"]
        assert offset == segment["bytes"]
    places = [b["place"] for s in data["segments"] for b in s["blocks"] if b["state"] == "used"]
    assert len(places) == 1 and "test_memory.py" in places[0]
    last = data["history"][-1]
    assert last["reserved"] == data["stats"]["reserved"]
    assert last["used"] == x.nbytes
    assert last["operation"] == data["stats"]["allocations"] + data["stats"]["frees"]

    class Checker(HTMLParser):
        open_tags, rectangles = [], 0

        def handle_starttag(self, tag, attributes):
            assert not any(name in ("src", "href") for name, _ in attributes)
            assert tag != "script"
            if tag != "meta":
                self.open_tags.append(tag)
            self.rectangles += tag == "rect"

        def handle_endtag(self, tag):
            assert self.open_tags.pop() == tag

    page = snapshot.to_html()
    checker = Checker()
    checker.feed(page)
    assert checker.open_tags == [] and checker.rectangles >= 2
    assert "test_memory.py" in page and "prefers-color-scheme: dark" in page
    snapshot.save(tmp_path / "memory.html")
    snapshot.save(tmp_path / "memory.json")
    assert (tmp_path / "memory.html").read_text() == page
    assert json.loads((tmp_path / "memory.json").read_text()) == data
    assert "PoolResource" in repr(snapshot)


@pytest.mark.parametrize(
    "make", [memory.DeviceResource, memory.AsyncResource, memory.ManagedResource]
)
def test_history_of_resources_without_a_pool(make, tmp_path):
    sizes = [1000, 5000, 256, 70_000]
    expected, used = [], 0
    with memory.use(make()):
        held = []
        for size in sizes:
            held.append(kw.empty(size, np.uint8))
            used += size
            expected.append(used)
        for size in sizes:
            del held[0]
            used -= size
            expected.append(used)
        snapshot = memory.snapshot()
    samples = snapshot.data["history"]
    assert [s["used"] for s in samples[:-1]] == expected
    assert [s["operation"] for s in samples] == [*range(1, 9), 8]
    assert samples[-1]["used"] == 0
    seconds = [s["seconds"] for s in samples]
    assert seconds == sorted(seconds) and 0 <= seconds[0] <= seconds[-1] < 600
    page = snapshot.to_html()
    assert "No history." not in page and "over 8 operations" in page


def test_the_history_of_a_pool_has_its_peak_and_its_end(pool):
    used = [400_000 * n for n in (*range(1, 11), *range(9, -1, -1))]
    held = [kw.empty(400_000, np.uint8) for _ in range(10)]
    while held:
        held.pop()
    data = memory.snapshot().data
    assert data["stats"]["used"] == 0 and data["stats"]["used_peak"] == max(used)
    by_operation = {s["operation"]: s["used"] for s in data["history"]}
    assert [by_operation[n] for n in range(1, 21)] == used
    last = data["history"][-1]
    assert last["operation"] == data["stats"]["allocations"] + data["stats"]["frees"] == 20


def test_the_page_of_memory_names_its_resource_and_counts_its_operations(pool):
    x = kw.empty(1000, np.uint8)
    page, box = memory.snapshot().to_html(), memory.snapshot()._repr_html_()
    device = memory.snapshot().data["device"]
    title = f"Memory of {device}: {memory.snapshot().data['resource']}"
    assert device in str(memory.resource()) and "PoolResource" in title
    assert f"<title>{title}</title>" in page and f"<h1>{title}</h1>" in page and title in box
    assert "over 1 operation in " in page
    del x
    page = memory.snapshot().to_html()
    assert "over 2 operations in " in page and "in 0.0 s" not in page


def test_the_history_of_the_first_resource_of_a_device(sim):
    before = memory.snapshot().data["history"]
    x = kw.zeros(3000, np.uint8)
    during = memory.snapshot().data
    assert during["history"][-1]["operation"] == before[-1]["operation"] + 1
    assert during["history"][-1]["used"] == before[-1]["used"] + x.nbytes == during["stats"]["used"]
    assert during["history"][-1]["seconds"] >= before[-1]["seconds"]


def test_a_long_history_is_bounded_and_even():
    with memory.use(memory.TrackingAdaptor(memory.DeviceResource())) as resource:
        for _ in range(4000):
            resource.deallocate(resource.allocate(256), 256)
        samples = memory.snapshot().data["history"]
    operations = [s["operation"] for s in samples]
    assert 512 <= len(samples) <= 1025 and operations[0] == 1 and operations[-1] == 8000
    assert max(b - a for a, b in itertools.pairwise(operations)) <= 16


def test_evictable_content_comes_back_bit_for_bit(pool):
    values = np.random.default_rng(3).integers(0, 256, 100_003).astype(np.uint8)
    held = memory.Evictable(kw.asarray(values))
    gc.collect()
    assert held.resident and not held.pinned and held.nbytes == values.nbytes
    assert held.shape == values.shape and held.dtype == values.dtype
    assert held.evict() and not held.resident and not held.evict()
    assert memory.stats()["used"] == 0 and memory.stats()["evictions"] == 1
    x = held.pin()
    assert (x.numpy() == values).all()
    view = x[10:20]
    del x
    assert held.pinned and not held.evict()  # a view of it is alive
    assert (view.numpy() == values[10:20]).all()
    del view
    assert not held.pinned and held.evict()
    assert "host" in repr(held)


def test_eviction_makes_room_and_takes_the_least_recently_used(pool, saxpy):
    memory.set_limit(16 * MIB)
    held = [memory.Evictable(kw.full(MIB, i, np.float32)) for i in range(3)]
    held[0].pin()
    memory.trim()
    x = kw.zeros(MIB, np.float32)
    kw.zeros(MIB, np.float32)
    assert [h.resident for h in held] == [True, False, True]
    for i, entry in enumerate(held):
        y = entry.pin()
        saxpy[MIB // 256, 256](1.0, x, y, y.size)
        assert (y.numpy() == i).all()
        del y


def test_groups_say_what_is_evicted_first_and_what_never(pool):
    memory.set_limit(20 * MIB)
    sure, first = memory.EvictionGroup("guaranteed"), memory.EvictionGroup("best_effort")
    burst = memory.EvictionGroup("burstable", request=4 * MIB)
    groups = (sure, burst, burst, first)
    held = [memory.Evictable(kw.full(MIB, i, "f4"), group=g) for i, g in enumerate(groups)]
    gc.collect()
    memory.trim()
    assert [group.resident for group in (sure, burst, first)] == [4 * MIB, 8 * MIB, 4 * MIB]
    pressure = [kw.zeros(MIB, np.float32) for _ in range(3)]
    assert [entry.resident for entry in held] == [True, False, True, False]
    assert burst.resident == 4 * MIB and held[1].group is burst
    with pytest.raises(kw.OutOfMemory, match="limit"):
        kw.zeros(MIB, np.float32)
    burst.qos, burst.request = "best_effort", 0
    pressure.append(kw.zeros(MIB, np.float32))
    assert not held[2].resident
    assert burst.qos == "best_effort" and "0 bytes on the device" in repr(burst)
    pressure.clear()
    for i, entry in enumerate(held):
        assert (entry.pin().numpy() == i).all()
    for wrong in ("", "urgent"):
        with pytest.raises(kw.InvalidArgument, match="best_effort, burstable or guaranteed"):
            memory.EvictionGroup(wrong)
    with pytest.raises(kw.Error):
        memory.EvictionGroup("burstable", request=-1)
    assert memory.Evictable(kw.ones(3)).group is None


def test_memory_blocks(pool):
    block = memory.alloc(4 * MIB)
    assert block.nbytes == 4 * MIB and block.ptr % 256 == 0
    assert block.device == kw.current_device() and "4194304 bytes" in repr(block)
    assert memory.stats()["used"] == 4 * MIB
    block.free()
    block.free()
    assert memory.stats()["used"] == 0 and "freed" in repr(block)
    with pytest.raises(kw.InvalidArgument, match="freed already"):
        block.ptr
    assert memory.alloc(0).ptr == 0
    stream = kw.Stream()
    on_stream = memory.alloc(100, stream)
    with stream:
        also = memory.alloc(np.int64(100))
    del on_stream, also
    for wrong, error in (
        ((), TypeError), (("x",), TypeError), ((1.5,), TypeError), ((-1,), ValueError),
        ((1 << 70,), OverflowError), ((1, None, 2), TypeError), ((1, "stream"), TypeError),
    ):  # fmt: skip
        with pytest.raises(error):
            memory.alloc(*wrong)
    with pytest.raises(TypeError):
        memory.MemoryBlock()
    with pytest.raises(kw.OutOfMemory):
        memory.alloc(1 << 50)
    assert memory.stats()["blocks"] == 0


def test_pinned_arrays_come_from_a_pool(device):
    gc.collect()
    before = memory.pinned_stats()
    for i in range(50):
        x = kw.pinned(10_000, np.float32)
        x[:] = i
        assert (kw.asarray(x).numpy() == i).all()
        del x
    after = memory.pinned_stats()
    assert after["used"] == before["used"]
    assert after["hits"] - before["hits"] >= 49
    assert after["misses"] - before["misses"] <= 1


def test_record_stream_takes_streams(device):
    x = kw.ones(100)
    stream = kw.Stream()
    x.record_stream(stream)
    x.record_stream(None)
    x[10:].record_stream(stream.handle)
    with stream:
        x.record_stream()
    with pytest.raises(TypeError, match="stream"):
        x.record_stream("stream")


def test_four_threads_write_what_they_read(pool):
    wrong = []

    def work(seed):
        random = np.random.default_rng(seed)
        with kw.Stream():
            for i in range(60):
                size = int(random.integers(1, 5000))
                x = kw.full(size, seed * 1000 + i, np.int32)
                y = x.copy()
                del x
                if not (y.numpy() == seed * 1000 + i).all():
                    wrong.append((seed, i))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    gc.collect()
    assert memory.stats()["used"] == 0


def test_the_torch_allocator_s_functions_are_exported():
    import ctypes

    from kernwright import _core

    library = ctypes.CDLL(_core.__file__)
    names = _core._torch_allocator_functions()
    assert all(getattr(library, name) for name in names)
    free = getattr(library, names[1])
    free.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
    free.restype = None
    free(None, 0, 0, None)
    allocate = getattr(library, names[0])
    allocate.argtypes = [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
    allocate.restype = ctypes.c_void_p
    assert allocate(0, 0, None) is None


def test_torch_allocates_from_our_pool():
    torch = pytest.importorskip("torch")
    if kw.current_device().is_simulated or not torch.cuda.is_available():
        pytest.skip("needs torch and a GPU")
    code = (
        "import torch, kernwright as kw\n"
        "torch.cuda.memory.change_current_allocator(kw.memory.torch_allocator())\n"
        "x = torch.full((1 << 20,), 3.0, device='cuda')\n"
        "assert kw.memory.stats('cuda:0')['used'] >= x.nbytes\n"
        "assert float(x.sum()) == 3.0 * (1 << 20)\n"
        "del x\n"
        "y = kw.asarray(torch.ones(100, device='cuda'))\n"
        "assert (y.numpy() == 1).all()\n"
        "try:\n"
        "    torch.empty(1 << 50, dtype=torch.uint8, device='cuda')\n"
        "except RuntimeError as error:\n"
        "    print('refused', 'no memory for' in str(error))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert "refused True" in run.stdout
